"""The opcode forms that nvdisasm supports, those in the tables, and those that are missing.

::

    # one architecture: a line for each that is missing
    python -m tools.witness.nvdisasm.opcodes --arch 90
    python -m tools.witness.nvdisasm.opcodes                # all, and the table
    python -m tools.witness.nvdisasm.opcodes --arch 90 --bases 40 --words words.txt

A form is an opcode (bits 0 to 11 and 91) with a mnemonic.  Every opcode is asked with several base
words: synthetic ones and the other bits of golden words (more of those with ``--bases``).  A word
that nvdisasm prints without marks of doubt has a form that it supports; the form is ours if we
print the same for one of its words, *partly* ours if for some of them we do not.  Some forms show
only where certain bits have certain values, so the counts are lower bounds.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from sassxlate.disasm.sass import BadWord
from sassxlate.disasm.sass.codec.decode import opcode_bits, opcode_of
from sassxlate.disasm.sass.tables.spec import GENERATIONS
from tools.generate import sass_golden
from tools.witness.nvdisasm import witness as sass_witness

Form: TypeAlias = tuple[int, str]
OPCODES = 1 << 13
_OPCODE = 0xFFF | 1 << 91
_ALWAYS = 0x7 << 12  # the guard PT
_NO_BARRIER = 0x000FC000_00000000 << 64
_PREDICATES = 7 << 81 | 7 << 84 | 7 << 87
_REGISTERS = (0, 0x10_0000_000C_0804 << 16, 0xFF_0000_00FF_FFFF << 16)
# sm_75's nvdisasm gives up on a whole file at some of these words.
_DEADLY = {75: frozenset({0x121, 0x122})}
_BATCH = 24_000


@dataclass(slots=True)
class Counts:
    """How often a form was printed alike, and a word for which it was not."""

    equal: int = 0
    differing: int = 0
    sample: tuple[int, str, str] | None = None


@dataclass(slots=True)
class Coverage:
    """The forms of one architecture."""

    forms: dict[Form, Counts] = field(
        default_factory=lambda: collections.defaultdict[Form, Counts](Counts)
    )

    @property
    def ours(self) -> list[Form]:
        """Forms that we print as nvdisasm does, at least once."""
        return [form for form, counts in self.forms.items() if counts.equal]

    @property
    def missing(self) -> list[Form]:
        """Forms of which we printed no word alike."""
        return [form for form, counts in self.forms.items() if not counts.equal]

    @property
    def partly(self) -> list[Form]:
        """Forms of which some words print otherwise or are refused."""
        return [f for f, counts in self.forms.items() if counts.equal and counts.differing]


def bases(arch: int, count: int, seed: int = 5) -> list[int]:
    """Words without opcode: registers 0, small ones and RZ, predicates P0 and PT; golden ones."""
    synthetic = [
        _NO_BARRIER | _ALWAYS | registers | predicates
        for registers in _REGISTERS
        for predicates in (0, _PREDICATES)
    ]
    path = sass_golden.GOLDEN / f"sm_{arch}.txt"
    words = sorted(word for word, _ in sass_golden.read_golden(path))
    rng = random.Random(seed)
    real = rng.sample(words, min(count, len(words)))
    return synthetic + [word & ~_OPCODE & ~(0xF << 12) | _ALWAYS for word in real]


def words_of(arch: int, real: Iterable[int], extra: Sequence[int]) -> Iterator[int]:
    """Every opcode with every base, the golden words and further ones."""
    path = sass_golden.GOLDEN / f"sm_{arch}.txt"
    yield from (word for word, _ in sass_golden.read_golden(path))
    yield from extra
    deadly = _DEADLY.get(arch, frozenset())
    for base in real:
        for opcode in range(OPCODES):
            if opcode & 0x1FF not in deadly:
                yield base | opcode_bits(opcode)


def sweep(witness: sass_witness.Witness, arch: int, words: Iterable[int]) -> Coverage:
    """Ask nvdisasm and ourselves."""
    found = Coverage()
    known = list(dict.fromkeys(words))
    for first in range(0, len(known), _BATCH):
        part = known[first : first + _BATCH]
        texts = witness.texts(arch, part, at_zero=True)
        for word, text in zip(part, texts, strict=True):
            if text is None or re.search(r"INVALID|\?\?\?|UNDEFINED", text):
                continue
            name = re.sub(r"^@\S+ ", "", text).split(" ")[0].partition(".")[0]
            counts = found.forms[opcode_of(word), name]
            # Each word is at offset 0, as in the texts.
            (ours,) = sass_witness.read(word.to_bytes(16, "little"), arch, strict=False)
            if ours == text:
                counts.equal += 1
            else:
                counts.differing += 1
                shown = ours.error.message if isinstance(ours, BadWord) else ours
                counts.sample = counts.sample or (word, text, shown)
    return found


def report(arch: int, coverage: Coverage, verbose: bool) -> None:
    """The missing forms by mnemonic, with what nvdisasm prints for one of them."""
    by_name: dict[str, list[int]] = collections.defaultdict(list)
    for opcode, name in coverage.missing:
        by_name[name].append(opcode)
    for name, opcodes in sorted(by_name.items()):
        sample = coverage.forms[min(opcodes), name].sample
        shown = f"{sample[1]}  |  {sample[2]}" if sample else ""
        print(f"sm_{arch} missing {name} {' '.join(f'{o:04x}' for o in sorted(opcodes))}: {shown}")
    if not verbose:
        return
    for opcode, name in sorted(coverage.partly):
        sample = coverage.forms[opcode, name].sample
        if sample:
            print(f"sm_{arch} partly {name} {opcode:04x}: {sample[0]:#034x}")
            print(f"    {sample[1]}\n    {sample[2]}")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arch", type=int, choices=GENERATIONS, help="one architecture")
    parser.add_argument("--bases", type=int, default=10, help="golden words taken as bases")
    parser.add_argument("--words", type=Path, help="further words, one hexadecimal a line")
    parser.add_argument("--partly", action="store_true", help="print forms that differ in part")
    options = parser.parse_args()
    extra: list[int] = []
    if options.words:
        lines = options.words.read_text().split()
        extra = [int(line, 16) for line in lines if re.fullmatch(r"(0x)?[0-9a-f]{1,32}", line)]
    try:
        witness = sass_witness.find()
    except sass_witness.NoWitness as error:
        print(error, file=sys.stderr)
        return 2
    print(f"nvdisasm {witness.version}, sha256 {witness.sha256}")
    table: list[str] = []
    for arch in [options.arch] if options.arch else GENERATIONS:
        real = bases(arch, options.bases)
        coverage = sweep(witness, arch, words_of(arch, real, extra))
        report(arch, coverage, options.partly)
        names = {name for _, name in coverage.forms}
        table.append(
            f"{arch:4}{len(coverage.forms):8}{len(names):12}{len(coverage.ours):8}"
            f"{len(coverage.partly):10}{len(coverage.missing):9}"
        )
    print("arch   forms   mnemonics    ours    partly  missing")
    print("\n".join(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
