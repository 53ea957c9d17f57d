"""Translates a seeded sample of a set of files' kernels: what each became, and what it cost.

One line a kernel, tab-separated: file, architecture, kernel, SASS and RDNA3 instructions, the
SHA-256 of the code object (or the code of the error), CPU seconds.  Two trees that translate alike
write the same lines but for the last column; `--against` compares with such a file.

    python -m tools.kernel_digests --count 1000 --seed 1 --out made.tsv LIB.so...
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sassxlate.disasm.containers import Cubin, load
from sassxlate.errors import SassxlateError
from sassxlate.lowering.pipeline import translate_kernel


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel's line.  ``digest`` is the error's code where it was refused; ``sass`` is then 0."""

    file: str
    arch: str
    kernel: str
    sass: int
    rdna3: int
    digest: str
    cpu: float

    @property
    def key(self) -> tuple[str, str, str]:
        """By which two files' rows are compared."""
        return self.file, self.arch, self.kernel

    def line(self) -> str:
        """The row as text, without a line's end."""
        fields = (*self.key, str(self.sass), str(self.rdna3), self.digest, f"{self.cpu:.6f}")
        return "\t".join(fields)


def read(path: Path) -> list[Row]:
    """The rows of a file that :func:`main` wrote."""
    made: list[Row] = []
    for line in path.read_text().splitlines():
        file, arch, kernel, sass, rdna3, digest, cpu = line.split("\t")
        made.append(Row(file, arch, kernel, int(sass), int(rdna3), digest, float(cpu)))
    return made


def kernels(files: Sequence[Path]) -> Iterator[tuple[str, Cubin, str]]:
    """Every kernel of the files' cubins: the file's name, the cubin, the kernel's name.  Of the
    copies of a kernel for an architecture in a file, the first."""
    for path in files:
        seen: set[tuple[int, str, str]] = set()
        for _, cubin in load(path).cubins():
            for kernel in cubin.kernels:
                key = cubin.arch, cubin.variant, kernel.name
                if key not in seen:
                    seen.add(key)
                    yield path.name, cubin, kernel.name


def sample(files: Sequence[Path], count: int, seed: int) -> list[tuple[str, Cubin, str]]:
    """``count`` of the kernels, drawn with the same chance each, in the order of the draw: the
    first ones of a sample are a sample, too."""
    found = list(kernels(files))
    return random.Random(seed).sample(found, min(count, len(found)))


def translate(file: str, cubin: Cubin, name: str) -> Row:
    """The row of one kernel."""
    arch = f"sm_{cubin.arch}{cubin.variant}"
    started = time.process_time()
    try:
        made = translate_kernel(cubin, name)
    except SassxlateError as error:
        return Row(file, arch, name, 0, 0, error.code, time.process_time() - started)
    used = time.process_time() - started
    counts = made.report.sass_instructions, made.report.rdna_instructions
    return Row(file, arch, name, *counts, hashlib.sha256(made.code_object).hexdigest(), used)


def summary(rows: Sequence[Row]) -> str:
    """CPU microseconds a SASS instruction: of all together, and the kernels' median."""
    done = [row for row in rows if row.sass]
    if not done:
        return f"{len(rows)} kernels, none translated"
    total = sum(row.cpu for row in done) / sum(row.sass for row in done) * 1e6
    median = statistics.median(row.cpu / row.sass for row in done) * 1e6
    return (
        f"{len(rows)} kernels, {len(rows) - len(done)} refused; {sum(r.sass for r in done)} SASS, "
        f"{sum(r.rdna3 for r in done)} RDNA3 instructions; CPU us an instruction: "
        f"{total:.1f} in all, {median:.1f} median"
    )


def differences(rows: Sequence[Row], others: Sequence[Row]) -> list[str]:
    """A line for each kernel that became something else, or is in one of the two alone."""
    mine, theirs = ({row.key: row.digest for row in some} for some in (rows, others))
    return [
        "\t".join((*key, theirs.get(key, "-"), mine.get(key, "-")))
        for key in sorted(mine.keys() | theirs.keys())
        if mine.get(key) != theirs.get(key)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """1 if something differs from ``--against``."""
    parser = argparse.ArgumentParser(prog="tools.kernel_digests", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where the lines go; without it, nowhere")
    parser.add_argument("--against", type=Path, help="an earlier --out")
    parser.add_argument("--first", type=int, help="only that many of the sample")
    given = parser.parse_args(argv)
    rows: list[Row] = []
    with open(given.out or os.devnull, "w", encoding="utf-8", buffering=1) as out:
        for one in sample(given.files, given.count, given.seed)[: given.first]:
            rows.append(translate(*one))
            print(rows[-1].line(), file=out)
    print(summary(rows))
    if given.against is None:
        return 0
    keys = {row.key for row in rows}
    changed = differences(rows, [row for row in read(given.against) if row.key in keys])
    print(*changed, f"{len(changed)} of {len(rows)} differ", sep="\n")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
