"""Translates a seeded sample of a set of files' kernels: what each became, and what it cost.

One line a kernel, tab-separated: file, architecture, kernel, SASS and RDNA3 instructions, the
SHA-256 of the code object (or the code of the error), CPU seconds, and why it was refused.  Two
trees that translate alike write the same lines but for the last two columns; `--against` compares
with such a file.

    python -m tools.kernel_digests --count 1000 --seed 1 --out made.tsv LIB.so...
    python -m tools.kernel_digests --corpus FOLDER
    python -m tools.kernel_digests --count 2000 --seed 19 --arch 90 --jobs 16 libcublas.so.13 ...
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sassxlate import collector
from sassxlate.disasm.containers import Cubin, load
from sassxlate.errors import SassxlateError, UsageError
from sassxlate.executors import Begin, Place, in_order
from sassxlate.lowering.pipeline import translate_code
from tools import corpus


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel's line.  ``digest`` is the error's code where it was refused; ``sass`` is then 0.
    ``why`` is the error's sentence, without its place."""

    file: str
    arch: str
    kernel: str
    sass: int
    rdna3: int
    digest: str
    cpu: float
    why: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """By which two files' rows are compared."""
        return self.file, self.arch, self.kernel

    def line(self) -> str:
        """The row as text, without a line's end."""
        counts = str(self.sass), str(self.rdna3)
        return "\t".join((*self.key, *counts, self.digest, f"{self.cpu:.6f}", self.why))


def read(path: Path) -> list[Row]:
    """The rows of a file that :func:`main` wrote."""
    made: list[Row] = []
    for line in path.read_text().splitlines():
        file, arch, kernel, sass, rdna3, digest, cpu, *why = line.split("\t")
        made.append(Row(file, arch, kernel, int(sass), int(rdna3), digest, float(cpu), *why))
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


def sample(
    files: Sequence[Path], count: int, seed: int, arch: int | None = None
) -> list[tuple[str, Cubin, str]]:
    """``count`` of the kernels, or of those for an architecture (90: sm_90 and sm_90a), drawn with
    the same chance each, in the order of the draw: the first ones of a sample are a sample, too.
    Only the cubins that were drawn stay in memory."""
    places: list[tuple[Path, int, str]] = []
    for path in files:
        seen: set[tuple[int, str, str]] = set()
        for number, (_, cubin) in enumerate(load(path).cubins(arch=arch)):
            for kernel in cubin.kernels if arch in (None, cubin.arch) else ():
                key = cubin.arch, cubin.variant, kernel.name
                if key not in seen:
                    seen.add(key)
                    places.append((path, number, kernel.name))
    drawn = random.Random(seed).sample(places, min(count, len(places)))
    cubins: dict[tuple[Path, int], Cubin] = {}
    for path in files:
        numbers = {number for file, number, _ in drawn if file == path}
        for number, (_, cubin) in enumerate(load(path).cubins(arch=arch)) if numbers else ():
            if number in numbers:
                cubins[path, number] = cubin
    return [(path.name, cubins[path, number], kernel) for path, number, kernel in drawn]


def translate(file: str, cubin: Cubin, name: str) -> Row:
    """The row of one kernel, made as the service makes it."""
    with collector.paused():  # until its result is dropped
        return _translate(file, cubin, name)


def _translate(file: str, cubin: Cubin, name: str) -> Row:
    arch = f"sm_{cubin.arch}{cubin.variant}"
    started = time.process_time()
    try:
        made = translate_code(cubin, name)
    except SassxlateError as error:
        used = time.process_time() - started
        told = f"{error.where.inst or ''}: {error.message}".replace("\t", " ").replace("\n", " ")
        return Row(file, arch, name, 0, 0, error.code, used, told)
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


def reasons(rows: Sequence[Row]) -> list[str]:
    """A line for each error: how many kernels it refused, its code, and one of its sentences."""
    refused = [row for row in rows if not row.sass]
    counts = Counter(row.digest for row in refused)
    first = {row.digest: row.why for row in reversed(refused)}
    return [f"{count:6} {code} {first[code]}" for code, count in counts.most_common()]


def rows_of(chosen: Sequence[tuple[str, Cubin, str]], jobs: int) -> Iterator[Row]:
    """The rows in order, made by ``jobs`` processes."""
    # Forked processes find the cubins in memory; only a kernel's number is sent to them.
    lost = UsageError("SX0888", "the process that translated a kernel died")
    begin = Begin(_take, (chosen,))
    yield from in_order(Place(jobs), _numbered, range(len(chosen)), lost=lost, begin=begin)


_taken: list[tuple[str, Cubin, str]] = []


def _take(chosen: Sequence[tuple[str, Cubin, str]]) -> None:
    _taken[:] = chosen


def _numbered(number: int) -> Row:
    return translate(*_taken[number])


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
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument(
        "--corpus", type=Path, help="instead of files: the folder that tools.corpus unpacked"
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where the lines go; without it, nowhere")
    parser.add_argument("--against", type=Path, help="an earlier --out")
    parser.add_argument("--first", type=int, help="only that many of the sample")
    parser.add_argument("--arch", type=int, help="only kernels for it: 90 is sm_90 and sm_90a")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args(argv)
    rows: list[Row] = []
    if bool(given.files) == bool(given.corpus):
        parser.error("either files or --corpus")
    if given.corpus:
        names = corpus.read()[: given.first]
        chosen = corpus.kernels(given.corpus, names)
    else:
        chosen = sample(given.files, given.count, given.seed, given.arch)[: given.first]
    with open(given.out or os.devnull, "w", encoding="utf-8", buffering=1) as out:
        for row in rows_of(chosen, given.jobs):
            rows.append(row)
            print(row.line(), file=out)
    print(summary(rows), *reasons(rows), sep="\n")
    if given.against is None:
        return 0
    keys = {row.key for row in rows}
    changed = differences(rows, [row for row in read(given.against) if row.key in keys])
    print(*changed, f"{len(changed)} of {len(rows)} differ", sep="\n")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
