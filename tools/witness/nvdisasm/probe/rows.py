"""Rows to be probed, words made up from them, nvdisasm's answers: see `__main__.py`."""

from __future__ import annotations

import collections
import hashlib
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sassxlate.disasm.sass.codec import legality
from sassxlate.disasm.sass.codec.decode import CompiledRow, index, opcode_bits, row_of
from sassxlate.disasm.sass.codec.operand_bits import value_bits
from sassxlate.disasm.sass.tables.spec import Idiom, Mod, R
from tools.witness.nvdisasm import witness as sass_witness
from tools.witness.nvdisasm.sweep import place, runs

OPCODE = 0xFFF | 1 << 91
CONTROL = (1 << 126) - (1 << 105)
SIMPLE = 0x7E1 << 105  # no barriers, one cycle


def pext(word: int, mask: int) -> int:
    """The bits of a mask, packed together."""
    return legality.gather(word, mask)


@dataclass(slots=True)
class Target:
    """A row of a generation, with nvdisasm's answers on its words."""

    row: CompiledRow
    name: str
    signature: str
    parts: list[int] = field(default_factory=lambda: list[int]())  # masks of what can combine
    values: dict[int, list[int]] = field(default_factory=lambda: dict[int, list[int]]())
    good: dict[int, str] = field(default_factory=lambda: dict[int, str]())
    bad: set[int] = field(default_factory=lambda: set[int]())
    bases: list[int] = field(default_factory=lambda: list[int]())
    # By the mask of parts that were varied by themselves: whether their values were ever printed.
    tests: dict[int, dict[int, bool]] = field(
        default_factory=lambda: collections.defaultdict(dict[int, bool])
    )
    reserved: int = 0
    ignored: int = 0
    control: str = ""
    groups: list[tuple[int, int]] = field(default_factory=lambda: list[tuple[int, int]]())
    notes: list[str] = field(default_factory=lambda: list[str]())


def name_of(row: CompiledRow) -> str:
    """The identifier of a row within a generation: its opcode and its fixed bits."""
    return legality.name_of(row.row.opcode, row.match_mask, row.match_value)


def signature(row: CompiledRow) -> str:
    """Changes where the row does."""
    body = repr((
        row.row.mnemonic,
        row.row.text,
        row.match_mask,
        [(m.name, m.field, sorted(m.names.items()) if isinstance(m, Mod) else "")
         for m in row.row.mods],
        sorted((role, repr(replace(slot, reuse=None) if isinstance(slot, R) else slot))
               for role, slot in row.row.operands.items()),
        row.row.free, row.row.ones,
    ))  # fmt: skip
    body = re.sub(r" at 0x[0-9a-f]+>", ">", body)  # functions have another address each time
    return hashlib.sha256(body.encode()).hexdigest()[:12]


def choosers(row: CompiledRow) -> tuple[list[int], dict[int, list[int]]]:
    """The parts of a word that may combine, with the values that the row gives a meaning."""
    parts: list[int] = []
    values: dict[int, list[int]] = {}
    operand_values = 0
    for slot in row.row.operands.values():
        operand_values |= value_bits(slot, row.generation)
    taken = operand_values | row.match_mask | OPCODE | 0xF000 | CONTROL
    for mod in row.row.mods:
        mask = mod.field.mask & ~taken
        if not mask:
            continue
        taken |= mask
        parts.append(mask)
        if isinstance(mod, Idiom) or mask != mod.field.mask:
            values[mask] = list(range(1 << min(mask.bit_count(), 8)))
        else:
            named = {pext(_spread(mod, v), mask) for v in mod.names}
            values[mask] = sorted(named)
    for mask in row.operand_masks.values():
        for part in runs(mask & ~taken):
            parts.append(part)
            values[part] = list(range(1 << part.bit_count()))
        taken |= mask
    return parts, values


def _spread(mod: Mod, value: int) -> int:
    word = shift = 0
    for lo, width in mod.field.parts:
        word |= (value >> shift & (1 << width) - 1) << lo
        shift += width
    return word


class Questions:
    """Words to ask about, with what to do with each answer."""

    def __init__(self, witness: sass_witness.Witness, arch: int) -> None:
        self.witness = witness
        self.arch = arch
        self.known: dict[int, str | None] = {}
        self.count = 0

    def ask(self, words: Iterable[int]) -> None:
        """Make the answers known."""
        new = [w for w in dict.fromkeys(words) if w not in self.known]
        self.count += len(new)
        for word, text in zip(new, self.witness.texts(self.arch, new, at_zero=True), strict=True):
            self.known[word] = text

    def learn(self, target: Target, word: int, varied: int) -> None:
        """File the answer about a target's word, in which the bits ``varied`` were changed."""
        text = self.known[word]
        good = text is not None and not sass_witness.doubtful(text)
        if good:
            target.good[word] = text or ""
        else:
            target.bad.add(word)
        if varied:
            tests, value = target.tests[varied], pext(word, varied)
            tests[value] = tests.get(value, False) or good


Question: TypeAlias = tuple[int, int]  # a word, the bits that were varied by themselves


def each(
    questions: Questions,
    targets: Sequence[Target],
    make: Callable[[Target], Iterable[Question]],
) -> None:
    """Ask and file what ``make`` wants to know about each target."""
    wanted = [
        (target, word, varied)
        for target in targets
        for word, varied in make(target)
        if row_of(word, questions.arch) is target.row
    ]
    questions.ask(word for _, word, _ in wanted)
    for target, word, varied in wanted:
        questions.learn(target, word, varied)


def usual(row: CompiledRow) -> int:
    """The row's opcode and fixed bits, PT and RZ where nothing is chosen."""
    word = opcode_bits(row.row.opcode) | row.match_value | 7 << 12 | SIMPLE
    for part in row.row.ones:
        word |= part.mask
    return word


def invent(target: Target, rng: random.Random, count: int) -> Iterator[Question]:
    """Words of the row with any modifiers and operands."""
    base = usual(target.row)
    operands = 0
    for slot in target.row.row.operands.values():
        operands |= value_bits(slot, target.row.generation)
    operands &= ~target.row.match_mask
    for i in range(count):
        word = base
        fill = (0, -1, rng.getrandbits(128), rng.getrandbits(128))[i % 4] & operands
        word = word & ~operands | fill
        for mask in target.parts:
            word = word & ~mask | place(mask, rng.choice(target.values[mask] or [0]))
        if word & target.row.match_mask == target.row.match_value:
            yield word, 0


def targets_of(generation: int) -> list[Target]:
    """All rows of a generation."""
    out: list[Target] = []
    for rows in index(generation).values():
        for row in rows:
            parts, values = choosers(row)
            out.append(Target(row, name_of(row), signature(row), parts, values))
    return out


def log(what: str, questions: Questions) -> None:
    """Progress."""
    print(f"  {what} ({questions.count} words)", file=sys.stderr, flush=True)
