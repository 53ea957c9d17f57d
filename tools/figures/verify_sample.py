"""Real kernels for the verifier: a sample drawn by a seed, and the verdicts on its blocks.

    python -m tools.figures.verify_sample draw FOLDER > docs/verification-sample.txt
    python -m tools.figures.verify_sample measure FOLDER docs/verification-sample.txt -o
    verdicts.jsonl

FOLDER holds executables as SUITE/PROGRAM/PROGRAM.sm_XX.  A line of a sample names suite and
program, architecture and kernel.  Kernels that are refused are passed over while drawing, so that
verdicts, which are unknown then, have no influence.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from sassxlate.disasm.containers import Cubin, Kernel, load
from sassxlate.errors import SassxlateError
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.report.judged import ProofSettings
from sassxlate.lowering.report.proofs import judge_all
from sassxlate.processes import cores

SEED = 20261121
COUNT = 240


def programs(folder: Path) -> Iterator[tuple[str, int, Path]]:
    """(suite/program, architecture, file)."""
    for path in sorted(folder.glob("*/*/*.sm_*")):
        arch = path.suffix.removeprefix(".sm_")
        if path.is_file() and arch.isdecimal():
            yield f"{path.parent.parent.name}/{path.parent.name}", int(arch), path


def kernels_of(path: Path, arch: int) -> dict[str, tuple[Cubin, Kernel]]:
    """By name; the first of each."""
    out: dict[str, tuple[Cubin, Kernel]] = {}
    for _, cubin in load(str(path)).cubins():
        if cubin.arch == arch and not cubin.relocatable:
            for kernel in cubin.kernels:
                out.setdefault(kernel.name, (cubin, kernel))
    return out


def draw(folder: Path, seed: int, count: int) -> Iterator[str]:
    """Lines of a sample."""
    everything: list[tuple[str, int, Path, str]] = []
    for name, arch, path in programs(folder):
        everything += [(name, arch, path, k) for k in kernels_of(path, arch)]
    yield f"# {count} kernels by seed {seed}, of {len(everything)}; those that are refused left out"
    random.Random(seed).shuffle(everything)
    found = 0
    for name, arch, path, kernel in everything:
        cubin, _ = kernels_of(path, arch)[kernel]
        try:
            translate_kernel(cubin, kernel)
        except SassxlateError:
            continue
        yield f"{name} sm_{arch} {kernel}"
        found += 1
        if found == count:
            return


def chosen(folder: Path, sample: Path) -> list[tuple[str, Cubin, Kernel]]:
    """The kernels of a sample."""
    files = {(name, arch): path for name, arch, path in programs(folder)}
    out: list[tuple[str, Cubin, Kernel]] = []
    loaded: dict[tuple[str, int], dict[str, tuple[Cubin, Kernel]]] = {}
    for line in sample.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line:
            continue
        name, arch, kernel = line.split(" ")
        at = name, int(arch.removeprefix("sm_"))
        if at not in loaded:
            loaded[at] = kernels_of(files[at], at[1])
        out.append((name, *loaded[at][kernel]))
    return out


def measure(
    kernels: Sequence[tuple[str, Cubin, Kernel]],
    output: Path | None,
    settings: ProofSettings,
    jobs: int,
) -> None:
    """Prints the counts of verdicts, why blocks are unknown, and times."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    readings: Counter[str] = Counter()
    times: list[float] = []
    stream = output.open("w", encoding="utf-8") if output else None
    answers = judge_all([(c, k) for _, c, k in kernels], settings, None, jobs)
    for (name, cubin, kernel), answer in zip(kernels, answers, strict=True):
        if answer.refused is not None:
            print(f"{name} {kernel.name}: {answer.refused}", file=sys.stderr)
            counts["refused kernels"] += 1
        for judged in answer.judged:
            verdict = asdict(judged.verdict)
            kind = type(judged.verdict).__name__
            counts[kind] += 1
            times.append(judged.ms)
            if kind == "Unknown":
                reasons[re.sub(r"\b\d+\b", "N", verdict["reason"])] += 1
            for reading in verdict.get("modulo", ()):
                readings[reading] += 1
            if stream:
                head = {"program": name, "arch": cubin.arch, "kernel": kernel.name}
                where = {"offset": judged.start, "ms": judged.ms, "verdict": kind}
                stream.write(json.dumps({**head, **where, **verdict}) + "\n")
                stream.flush()
    total = sum(counts[k] for k in ("Proved", "Refuted", "Unknown"))
    print(f"{len(kernels)} kernels, {total} blocks: {dict(counts)}")
    print(f"milliseconds a block: median {statistics.median(times):.1f}, most {max(times):.0f}")
    for title, found in (("unknown", reasons), ("proved modulo", readings)):
        for reason, n in found.most_common():
            print(f"{title:>13} {n:6} {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("draw", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("sample", type=Path, nargs="?")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("-j", "--jobs", type=int, default=cores())
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--timeout", type=float, default=10.0)
    args = parser.parse_args()
    if args.what == "draw":
        for line in draw(args.folder, args.seed, args.count):
            print(line, flush=True)
        return
    settings = ProofSettings(int(1000 * args.timeout))
    measure(chosen(args.folder, args.sample), args.output, settings, args.jobs)


if __name__ == "__main__":
    main()
