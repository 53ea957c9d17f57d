"""Mutated files by the million: one file and one command a seed, on all cores, resumable.

``python -m tests.mutations.sweep OUT --count 1000000 --workers 32 --seconds 300`` damages the
repository's
fixtures, runs a subcommand on each in process, and judges the end: done, an honest negative, or a
typed error with its place, within ten seconds and two gigabytes.  OUT gets ``chunks.jsonl`` (what
is done: a second call goes on from there), ``faults.txt`` (seed by seed) and ``summary.json``; the
table of ends is printed.  ``--seed N`` runs one seed again and says everything.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.disasm.containers import load_bytes

from .chain import (
    TIME_LIMIT_S,
    TooLongError,
    code_spans,
    fatbin_spans,
    handle_alarms,
    judge,
    limited,
)
from .mutate import Span, mutated

HERE = Path(__file__).resolve().parent
ROOT = Path(os.environ.get("SASSXLATE_ROOT", HERE.parents[1]))


FIXTURES = ROOT / "fixtures"
DATA = ROOT / "tests" / "disasm" / "containers" / "data"
MEMORY_LIMIT = 2 << 30  # bytes of address space beyond what the process has when it starts
CHUNK = 500  # seeds that a process answers for at a time
_IN_JSON = re.compile(r'"(code|error)": "(SX0\d{3}|[^"]*SX0\d{3})')
Chance = random.Random
Command = Callable[[Chance, Path, Path, Path], list[str]]


@dataclass(frozen=True, slots=True)
class Original:
    """A file to damage, where, and what reads it."""

    kind: str
    path: Path
    data: bytes
    spans: Sequence[Span]
    commands: Sequence[Command]


def _ls(rng: Chance, file: Path, _out: Path, _other: Path) -> list[str]:
    more = rng.choice(([], ["--format", "json"], ["--arch", "sm_80"], ["-k", "*"]))
    return ["ls", str(file), *more]


def _extract(rng: Chance, file: Path, out: Path, _other: Path) -> list[str]:
    more = rng.choice(([], ["-k", "*"], ["--kind", "ptx"]))
    return ["extract", str(file), "-o", str(out / "extract"), *more]


def _disasm(rng: Chance, file: Path, _out: Path, _other: Path) -> list[str]:
    more = rng.choice(
        ([], ["--encoding", "--control"], ["--format", "json"], ["--source"], ["--source-line"],
         ["--source-ptx"], ["--control", "--format", "json"])
    )  # fmt: skip
    return ["disasm", str(file), *more]


def _cfg(rng: Chance, file: Path, _out: Path, _other: Path) -> list[str]:
    form = rng.choice(("text", "dot", "json", "svg", "html"))
    return ["cfg", str(file), "-k", "*", "--format", form]


def _callgraph(rng: Chance, file: Path, _out: Path, _other: Path) -> list[str]:
    return ["callgraph", str(file), "--format", rng.choice(("text", "dot", "json"))]


def _diff(rng: Chance, file: Path, _out: Path, other: Path) -> list[str]:
    sides = rng.choice(((file, other), (other, file), (file, file)))
    form = rng.choice(("text", "json", "html"))
    return ["diff", *map(str, sides), "-k", "*", "--format", form]


def _against(rng: Chance, file: Path, _out: Path, _other: Path) -> list[str]:
    return ["diff", str(file), "--against", "rdna3", "-k", "*", "--format",
            rng.choice(("text", "json", "html"))]  # fmt: skip


def _translate(_rng: Chance, file: Path, out: Path, _other: Path) -> list[str]:
    return ["translate", str(file), "-o", str(out / "translate")]


@cache
def parameters(data: bytes) -> tuple[int, ...]:
    """The sizes of the first kernel's parameters, in bytes."""
    kernels = (k for _, cubin in load_bytes(data).cubins() for k in cubin.kernels)
    first = next(kernels, None)
    return () if first is None else tuple(p.size for p in first.params)


def _interpret(rng: Chance, file: Path, _out: Path, other: Path) -> list[str]:
    forms = {4: ("u32:5", "f32:1.5", "u32:64"), 8: ("buf:256:floats", "buf:1k", "u64:0")}
    sizes = parameters(other.read_bytes())
    arguments = [f"--arg={rng.choice(forms.get(size, ('u32:5',)))}" for size in sizes]
    more = rng.choice(([], ["--format", "json"], ["--trace", "0"]))
    return ["interpret", str(file), "-k", "*", "--grid", "1", "--block", "32",
            "--limit", "3000", *arguments, *more]  # fmt: skip


def _asm(rng: Chance, file: Path, _out: Path, _other: Path) -> list[str]:
    return ["asm", str(file), "--arch", rng.choice(("sm_75", "sm_80", "sm_90"))]


def _trace(_rng: Chance, file: Path, _out: Path, _other: Path) -> list[str]:
    return ["trace", str(file), "-k", "*", "--grid", "1", "--block", "32", "--limit", "200",
            "--give-up", "3000", "--arg", "buf:1k", "--arg", "buf:1k"]  # fmt: skip


def _verify(_rng: Chance, file: Path, _out: Path, _other: Path) -> list[str]:
    return [
        "verify",
        "blocks",
        str(file),
        "--no-cache",
        "-j",
        "1",
        "--timeout",
        "0.05",
        "--vectors",
        "2",
    ]


LIGHT = (_ls, _ls, _extract, _disasm, _disasm, _callgraph)
HEAVY = (_cfg, _diff, _against, _translate, _interpret)
SOLVER = (_trace, _verify)  # what needs LLVM and z3


def archive(members: Sequence[tuple[str, bytes]]) -> bytes:
    """A static archive."""
    out = b"!<arch>\n"
    for name, data in members:
        out += b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (f"{name}/".encode(), 0, 0, 0, b"644", len(data))
        out += data + b"\n" * (len(data) % 2)
    return out


def bundle(data: bytes) -> bytes:
    """An offload bundle of one code object."""
    name = b"hipv4-amdgcn-amd-amdhsa--gfx1100"
    head = struct.pack("<QQQQ", 1, 56 + len(name), len(data), len(name)) + name
    return b"__CLANG_OFFLOAD_BUNDLE__" + head + data


@cache
def originals(solver: bool) -> tuple[Original, ...]:
    """All files that are damaged, those that many commands read more often."""
    light = (*LIGHT, *LIGHT, *HEAVY) if not solver else SOLVER
    found: list[Original] = []
    kernels = sorted((FIXTURES / "kernels").glob("sm_*/*.cubin"))
    for path in (*kernels, *sorted(DATA.glob("*.cubin")), *sorted(DATA.glob("*.fatbin"))):
        found.append(Original("file", path, path.read_bytes(), (), light))
    for path in kernels:
        heavy = SOLVER if solver else (*HEAVY, _disasm)
        found.append(Original("code", path, path.read_bytes(), code_spans(path), heavy))
    for name in ("saxpy", "reduction", "collatz"):
        path = FIXTURES / "programs" / name
        data = path.read_bytes()
        found += [Original("program", path, data, (), light)] * 10
        found += [Original("containers", path, data, fatbin_spans(path), light)] * 40
    if solver:
        return tuple(found)
    for path in sorted((FIXTURES / "bench").glob("*.hsaco")):
        data, read = path.read_bytes(), (_disasm, _cfg, _diff)
        found += [Original("code object", path, data, (), read)] * 10
        found += [Original("bundle", path, bundle(data), (), (_disasm, _cfg))] * 5
    parts = [(p.name, p.read_bytes()) for p in sorted(DATA.glob("*.fatbin"))]
    read = (_ls, _extract, _disasm)
    found += [Original("archive", DATA / "lib.a", archive(parts), (), read)] * 30
    for path in kernels[::20]:
        text = CliRunner().invoke(cli, ["disasm", "--control", str(path)]).stdout.encode()
        found += [Original("text", path.with_suffix(".sass"), text, (), (_asm,))] * 20
    return tuple(found)


def one(seed: int, folder: Path, solver: bool) -> tuple[str, str | None]:
    """Kind, command and exit status of a seed, and what was wrong with that."""
    rng = random.Random(seed)
    chosen = originals(solver)[rng.randrange(len(originals(solver)))]
    file, out, other = folder / f"mutant-{chosen.path.name}", folder / "out", folder / "original"
    file.write_bytes(mutated(chosen.data, seed, chosen.spans))
    other.write_bytes(chosen.data)
    arguments = rng.choice(chosen.commands)(rng, file, out, other)
    out.mkdir(exist_ok=True)
    started = time.process_time()
    try:
        with limited():
            result = CliRunner().invoke(cli, arguments)
            fault = judge(result, out, file)
            about_file = "SX01" in result.stderr and str(other) not in result.stderr
            if fault is not None and "is not named" in fault and not about_file:
                fault = None  # of the arguments, or of the other file
            if fault is not None and "without a code" in fault and _IN_JSON.search(result.stdout):
                fault = None
            end = str(result.exit_code)
    except TooLongError:
        fault, end = f"no end within {TIME_LIMIT_S} s of CPU time", "late"
    if fault is None and time.process_time() - started > TIME_LIMIT_S:
        fault = "too slow"
    for path in sorted(out.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    what = f"seed {seed}: {chosen.kind} {chosen.path.name}: {' '.join(arguments)}"
    return f"{chosen.kind} {arguments[0]} {end}", None if fault is None else f"{what}: {fault}"


def work(first: int, count: int, mark: Path, solver: bool) -> None:
    """A chunk, in a process of its own: prints one JSON line."""
    import sassxlate.lowering.pipeline  # noqa: F401  # pyright: ignore[reportUnusedImport]

    handle_alarms()
    originals(solver)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + MEMORY_LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    ends: Counter[str] = Counter()
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="sassxlate-sweep-", dir=mark.parent) as folder:
        for seed in range(first, first + count):
            mark.write_text(str(seed))  # should it end the process
            end, fault = one(seed, Path(folder), solver)
            ends[end] += 1
            if fault is not None:
                faults.append(fault)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"first": first, "ends": ends, "faults": faults, "peak_mib": peak}))


class Sweep:
    """The processes, and what they have said."""

    def __init__(self, out: Path, solver: bool) -> None:
        self.out, self.solver = out, solver
        self.done: dict[int, dict[str, Any]] = {}
        self.log = out / "chunks.jsonl"
        if self.log.exists():
            for line in self.log.read_text().splitlines():
                said = json.loads(line)
                self.done[said["first"]] = said
        self.running: dict[subprocess.Popen[str], tuple[int, int, Path]] = {}
        self.marks = Path(tempfile.mkdtemp(prefix="sassxlate-sweeps-"))

    def start(self, first: int, count: int = CHUNK) -> None:
        """A process for the seeds."""
        mark = self.marks / str(first)
        command = [
            sys.executable,
            "-m",
            "tests.mutations.sweep",
            str(self.out),
            "--work",
            f"{first},{count},{mark}",
        ]
        command += ["--solver"] * self.solver
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        self.running[process] = first, count, mark

    def reap(self) -> None:
        """What has ended; a process that ended badly is one fault, and the rest of its seeds."""
        for process in [p for p in self.running if p.poll() is not None]:
            first, _, mark = self.running.pop(process)
            out, err = process.communicate()
            try:
                said = json.loads(out)
            except ValueError:
                seed = mark.read_text() if mark.exists() else "none"
                text = f"seed {seed}: the process ended with {process.returncode}: {err[-300:]!r}"
                said = {"first": first, "ends": {"ended": 1}, "faults": [text], "peak_mib": 0}
            self.done[first] = dict[str, Any](said)
            with open(self.log, "a") as log:
                log.write(json.dumps(said) + "\n")

    def run(self, seeds: range, workers: int, seconds: float) -> None:
        """Until all is done or the time is over."""
        deadline = time.monotonic() + seconds
        left = [n for n in range(seeds.start, seeds.stop, CHUNK) if n not in self.done][::-1]
        while (left and time.monotonic() < deadline) or self.running:
            while left and len(self.running) < workers and time.monotonic() < deadline:
                first = left.pop()
                self.start(first, min(CHUNK, seeds.stop - first))
            time.sleep(0.05)
            self.reap()
            if time.monotonic() > deadline + 60:
                for process in self.running:
                    process.kill()

    def summary(self) -> dict[str, Any]:
        """All that is known."""
        ends: Counter[str] = Counter()
        faults: list[str] = []
        peak = 0
        for said in self.done.values():
            ends.update(said["ends"])
            faults += said["faults"]
            peak = max(peak, int(said["peak_mib"]))
        return {
            "cases": ends.total(), "faults": len(faults), "peak_mib": peak,
            "ends": dict(sorted(ends.items())), "first_faults": faults[:50],
        }  # fmt: skip


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--solver", action="store_true", help="trace and verify (LLVM, z3)")
    parser.add_argument("--seed", type=int, help="one seed, in this process")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        first, count, mark = options.work.split(",", 2)
        work(int(first), int(count), Path(mark), options.solver)
        return
    if options.seed is not None:
        handle_alarms()
        with tempfile.TemporaryDirectory() as folder:
            print(*one(options.seed, Path(folder), options.solver), sep="\n")
        return
    options.out.mkdir(parents=True, exist_ok=True)
    sweep = Sweep(options.out, options.solver)
    sweep.run(range(options.first, options.first + options.count), options.workers, options.seconds)
    told = sweep.summary()
    (options.out / "summary.json").write_text(json.dumps(told, indent=1) + "\n")
    faults: list[str] = [f for said in sweep.done.values() for f in said["faults"]]
    (options.out / "faults.txt").write_text("".join(f"{fault}\n" for fault in faults))
    for end, number in told["ends"].items():
        print(f"{number:>9}  {end}")
    print(f"{told['cases']} cases, {told['faults']} faults, at most {told['peak_mib']} MiB")


if __name__ == "__main__":
    main()
