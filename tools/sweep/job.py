"""Takes the truth on a machine with an NVIDIA GPU: compiles all groups, runs them, keeps lines.

``python job.py OUT [--jobs N] [--groups N] [--shape NAME...] [--runner WORDS]``; needs nvcc, Python 3.11 and numpy.
OUT gets ``FLAGS.jsonl.gz``, the driver's lines, ``sources.json``, the CRC of each kernel's source,
and ``log.txt``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.sweep import plan

from .kernel import SEED, Group
from .supervise import DRIVER, supervise

_COMPILE_S, _RUN_S, _SILENCE_S = 150, 60, 6  # limits


def _compile(group: Group, flags: str, folder: Path, deadline: float) -> tuple[str, str]:
    out = folder / f"{group.name}.{flags}.cubin"
    left = deadline - time.monotonic()
    if left < 1:
        return out.name, "not begun"
    command = ["nvcc", "-arch=sm_90", "-cubin", "-w", *plan.FLAGS[flags]]
    command += [str(folder / f"{group.name}.cu"), "-o", str(out)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        return out.name, "too long"
    return out.name, done.stdout + done.stderr if done.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(description="Take the sweep's truth on an NVIDIA GPU.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--groups", type=int, help="of each shape, for a try")
    parser.add_argument("--flags", default=",".join(plan.TRUTHS))
    parser.add_argument("--runner", default="", help="words before the driver's")
    parser.add_argument("--silence", type=float, default=_SILENCE_S)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--shape", nargs="+", default=[], help="of the kernels (all)")
    parser.add_argument("--compile-limit", type=float, default=_COMPILE_S)
    parser.add_argument("--run-limit", type=float, default=_RUN_S)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with (given.out / "log.txt").open("w") as log, tempfile.TemporaryDirectory() as scratch:

        def say(text: str) -> None:
            print(f"{time.monotonic() - started:6.1f} s {text}", file=log, flush=True)

        folder = Path(scratch)
        made = plan.in_turn(list(plan.groups(given.seed, given.shape or None)))
        if given.groups:
            names = [s.name for s in plan.SHAPES]
            made = [
                g for n in names for g in [m for m in made if m.name.startswith(n)][: given.groups]
            ]
        for group in made:
            (folder / f"{group.name}.cu").write_text(group.source(90))
        sources = {k.name: k.source_crc for g in made for k in g.kernels}
        (given.out / "sources.json").write_text(json.dumps(sources))
        say(f"{len(made)} groups written, {len(sources)} kernels")
        kinds = given.flags.split(",")
        work = [(g, f) for f in kinds for g in made if plan.wanted(g, f)]
        with ThreadPoolExecutor(given.jobs) as pool:
            deadline = started + given.compile_limit

            def one(item: tuple[Group, str]) -> tuple[str, str]:
                return _compile(item[0], item[1], folder, deadline)

            for name, error in pool.map(one, work):
                if error:
                    say(f"{name}: {error[:600]}")
        say(f"{len(work)} compiled")
        for flags in kinds:
            _run(made, flags, folder, given, say)
    return 0


def _run(
    made: list[Group],
    flags: str,
    folder: Path,
    given: argparse.Namespace,
    say: Callable[[str], None],
) -> None:
    listed: list[dict[str, Any]] = []
    for group in made:
        cubin = folder / f"{group.name}.{flags}.cubin"
        if cubin.is_file():
            listed.append({"cubin": str(cubin), "kernels": [k.launch() for k in group.on(90)]})
    count = 0
    with gzip.open(given.out / f"{flags}.jsonl.gz", "wt") as out:

        def put(line: dict[str, Any]) -> None:
            nonlocal count
            count += 1
            if "e" in line:
                say(f"{flags} {line}")
            print(json.dumps(line, separators=(",", ":")), file=out)

        command = [*shlex.split(given.runner), sys.executable, *DRIVER]
        try:
            supervise(
                command, listed, put, silence_s=given.silence,
                deadline=time.monotonic() + given.run_limit, errors=given.out / "stderr.txt",
            )  # fmt: skip
        except RuntimeError as error:
            say(f"{flags}: {error}")
    say(f"{flags}: {count} kernels of {sum(len(g['kernels']) for g in listed)}")


if __name__ == "__main__":
    sys.exit(main())
