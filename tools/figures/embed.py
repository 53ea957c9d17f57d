"""`run` and `embed` side by side on a folder of programs: whether both print the same.

::

    python -m tools.figures.embed PROGRAMS --sample docs/compatibility-sample.toml --most 45

Each program is run, embedded, started with an empty PATH, no other variable and the same name, and
run once more; what differs between the two runs is not compared (bench.programs.compare).
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sassxlate.bench.programs.compare import difference
from sassxlate.bench.programs.find import BenchProgram, find

_OURS = (sys.executable, "-P", "-m", "sassxlate")
_RUN = (*_OURS, "run", "--device", "emulator", "--tier", "llvm", "--keep-status", "--")


@dataclass(frozen=True, slots=True)
class _Ended:
    status: int  # -1: it took too long
    out: str
    err: str
    seconds: float


def _run(
    words: Sequence[str], program: BenchProgram, env: Mapping[str, str], limit: float, of: str = ""
) -> _Ended:
    started = time.monotonic()
    try:
        done = subprocess.run(
            words, cwd=program.path.parent, env=env, capture_output=True, timeout=limit,
            stdin=subprocess.DEVNULL, executable=of or None, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return _Ended(-1, "", "", limit)
    out, err = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    return _Ended(done.returncode, out, err, time.monotonic() - started)


def _compare(program: BenchProgram, folder: Path, limit: float) -> tuple[str, float, float]:
    """What differs ("": nothing), and the seconds of the second run and of the embedded program."""
    device = {"SASSXLATE_CC": "9.0" if program.arch == "sm_90" else "8.0"}
    if program.multiprocessors:
        device["SASSXLATE_MULTIPROCESSORS"] = str(program.multiprocessors)
    env = {**os.environ, **device}
    words = [str(program.path), *program.args]
    first = _run([*_RUN, *words], program, env, limit)
    if first.status == -1:
        return "the run took too long", 0, 0
    out = folder / program.path.name
    made = _run([*_OURS, "embed", str(program.path), "-o", str(out)], program, env, 4 * limit)
    if made.status:
        return f"not embedded: {made.err.strip()[-200:]}", 0, 0
    mine = _run(words, program, {"PATH": "", **device}, limit, of=str(out))
    second = _run([*_RUN, *words], program, env, limit)
    out.unlink()
    if mine.status != first.status:
        return f"status {mine.status} for {first.status}", second.seconds, mine.seconds
    why = difference(mine.out, [first.out, second.out], program.ignore)
    return why, second.seconds, mine.seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=Path, help="names and arguments of programs")
    parser.add_argument("--most", type=int, default=40, help="so many of them, by seed")
    parser.add_argument("--seed", type=int, default=24)
    parser.add_argument("--limit", type=float, default=150.0, help="seconds of a run")
    given = parser.parse_args()
    programs = find(given.folder, given.sample)
    random.Random(given.seed).shuffle(programs)
    same = 0
    ran = embedded = 0.0
    with tempfile.TemporaryDirectory(prefix="embedded-") as name:
        for program in programs[: given.most]:
            why, warm, mine = _compare(program, Path(name), given.limit)
            print(f"{program.name}: {why or 'same'}, {warm:.1f} s, embedded {mine:.1f} s")
            same += not why
            ran, embedded = ran + warm, embedded + mine
    print(f"{same} of {len(programs[: given.most])} the same; warm runs {ran:.1f} s, "
          f"embedded {embedded:.1f} s")  # fmt: skip
    return int(same < len(programs[: given.most]))


if __name__ == "__main__":
    sys.exit(main())
