"""Instruction words to measure, made from the encoding tables.

Every modifier value of every form, each sign, complement and selector, and random combinations;
operands are the registers of :mod:`probe`'s template.  Words that nvdisasm rejects or prints
with marks of doubt are left out.
"""

from __future__ import annotations

import itertools
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sassxlate.disasm.sass import BadWord, decode_section
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.semantics import semantics_table
from sassxlate.disasm.sass.tables import ROWS
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    Fixed,
    I,
    Mask,
    Mod,
    Operand,
    P,
    R,
    Row,
    When,
    bits,
)

CLASSES = ("words", "floats", "doubles", "halves")
# Where the template keeps the values, by role; uniform registers have the same numbers.
REGISTERS = {"Ra": 4, "Rb": 2, "Rc": 8, "Rd": 10}
_SIGNS = {"Pp": 4, "Pq": 2, "Pr": 8}  # PLOP3 over the signs of registers
PREDICATES = {"Pu": 3, "Pv": 4, "Pp": 0, "Pq": 1, "Pr": 2}
_INTEGERS = (
    0, 1, 2, 5, 7, 31, 32, 33, 63, 64, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
    0x12345678, 0xFFFFFFF0,
)  # fmt: skip
_FLOATS = (
    0, 0x80000000, 0x3F800000, 0xBF800000, 0x3F000000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 1,
    0x00800000, 0x40490FDB, 0x4B000001,
)  # fmt: skip
_SMALL = ("F16", "BF16", "E4M3", "E5M2")
_FORMATS = ("F32", "F64", *_SMALL)
_CONVERSIONS = ("F2F", "F2I", "FRND", "MUFU", "F2FP")
# Forms that nvdisasm prints and an H200 refused to execute: they are not measured again.
REFUSED = tuple(re.compile(pattern) for pattern in (
    r"F2FP\.\S*\b(E4M3|E5M2|TF32)\S*\.(F32\.PACK_AB|F32\.MERGE_C|\w+\.UNPACK_B)(\.RZ)? ",
    r"F2FP\.\S*\bBF16\.E\wM\w\.UNPACK_B ",
    r"F2FP\.\S*\b(F16|BF16|TF32)\.F16\.UNPACK_B_MERGE_C",
    r"F2FP\.\S*\b(F16|BF16|TF32)\.F32\.PACK_AB_MERGE_C",
    r"F2IP\.U8\.\S*RELU",
    r"(HADD2|HMUL2|HFMA2)\.\S*BF16_V2\.\S*(FTZ|FMZ|SAT)",
    r"(HSET2|HSETP2|HMNMX2|VHMNMX)\.\S*BF16_V2\.\S*FTZ",
    r"HFMA2\.\S*F32|HFMA2\S* .*\.F32",
    r"VI(ADD)?MNMX3?\.U\S*RELU",
    r"HADD2\.F32\S* R\d+, (?!-RZ, )",
    r"IADD3\S* R\d+, P\d, P\d, [-~]R\w+, [-~]R",
    r"(UIADD3|U?LEA)\S* U?R\d+, U?P\d, (UP\d, )?[-~]U?R\w+, [-~]U?R",
))  # fmt: skip
# Forms that need operands of their own.
WRITTEN = (
    *(f"HADD2.F32{sat} R10, -RZ, {source}" for sat in ("", ".SAT", ".FTZ")
      for source in ("R2.H0_H0", "R2.H1_H1", "-R2.H0_H0", "|R2|.H1_H1", "-|R2|.H0_H0")),
    "IMAD.MOV.U32 R10, RZ, RZ, R2", "IMAD.MOV R10, RZ, RZ, R2",
    *(f"IMAD.SHL.U32 R10, R4, {1 << n:#x}, RZ" for n in (1, 2, 8, 15)),
    *(f"IMAD.IADD{sort} R10, R4, 0x1, {other}" for sort in ("", ".U32") for other in ("R8", "-R8")),
    "HFMA2.MMA R10, -RZ, RZ, 1.875, 0.0004794597625732421875", "HFMA2 R10, -RZ, RZ, 1, -1",
    "CS2R R10, SRZ", "CS2R.32 R10, SRZ",
    # Zeros with a sign, which carry.
    *(f"{u}IADD3 {u}R10, {u}P3, {u}P4, {a}, {b}, {c}".replace("RZ", f"{u}RZ") for u in ("", "U")
      for a, b, c in ((f"{u}R4", "-RZ", "RZ"), ("-RZ", f"{u}R2", "RZ"), ("-RZ", "RZ", f"{u}R8"),
                      ("RZ", "-RZ", "RZ"))),
)  # fmt: skip
_ALL = 512  # as many combinations of modifiers are all measured
# Stall 15, wait for nothing, no barrier: the template waits around the slot.
_CONTROL = 0x7E0 | 15


@dataclass(frozen=True, slots=True)
class Word:
    """A word to measure, and the class of its inputs.

    ``place`` is the template's: ``-`` of registers alone, ``U`` of uniform ones, ``M`` of both,
    with results in registers.
    """

    word: int
    kind: str
    place: str
    text: str


def _put(word: int, field: Bits, value: int) -> int:
    for lo, width in field.parts:
        ones = (1 << width) - 1
        word = word & ~(ones << lo) | (value & ones) << lo
        value >>= width
    return word


def _slot(operand: Operand) -> Operand:
    return operand.slot if isinstance(operand, When) else operand


class _Form:
    """One row, with its registers in place; None of the template's registers: ``usable`` false."""

    def __init__(self, row: Row, chance: random.Random) -> None:
        self.row = row
        self.chance = chance
        self.word = row.opcode & 0xFFF | row.opcode >> 12 << 91 | 7 << 12
        for field, value in row.fixed:
            self.word = _put(self.word, field, value)
        for field in row.ones:
            self.word = _put(self.word, field, -1)
        self.immediates: list[tuple[str, I | Mask]] = []
        self.flags: list[tuple[Bits, int]] = []
        self.files: set[str] = set()
        self.usable = all(self._place(role, _slot(o)) for role, o in row.operands.items())
        hidden = row.operands.get("Pv")
        if isinstance(row.operands.get("Pu"), Fixed) and isinstance(hidden, P):
            self.word = _put(self.word, bits(hidden.lo, 3), 7)  # neither is printed
        self.mods = [m for m in row.mods if isinstance(m, Mod) and m.field.parts]

    def _place(self, role: str, slot: Operand) -> bool:
        if isinstance(slot, R):
            number = REGISTERS.get(role, _SIGNS.get(role))
            if number is None:
                return False
            self.files.add(slot.file)
            field = bits(slot.lo, 6 if slot.file == "UR" else 8)
            self.word = _put(self.word, field, number)
            if not slot.write:
                self.flags += [
                    (bits(b), 1) for b in (slot.neg, slot.abs, slot.inv) if b is not None
                ]
                if slot.select:
                    self.flags += [(slot.select.field, v) for v in slot.select.names]
        elif isinstance(slot, P):
            if role not in PREDICATES:
                return False
            self.word = _put(self.word, bits(slot.lo, 3), PREDICATES[role] ^ slot.flip)
            if not slot.write and slot.inv is not None:
                self.flags.append((bits(slot.inv), 1))
        elif isinstance(slot, I | Mask):
            self.immediates.append((role, slot))
        elif not isinstance(slot, Fixed):
            return False
        return True

    def _immediate(self, role: str, slot: I | Mask) -> int:
        width, chance = slot.field.width, self.chance
        if role in ("lut", "lut2"):
            return chance.randrange(256)
        if role == "shift":
            return chance.choice((0, 1, 4, 31))
        if role == "mask":
            if self.row.mnemonic in ("P2R", "R2P", "UP2UR", "UR2UP"):
                return chance.choice((0x7F, 0x2A, 0x15))
            return 15 if "MOV" in self.row.mnemonic else chance.randrange(1 << width)
        kind = slot.kind if isinstance(slot, I) else "int"
        values: Sequence[int] = _INTEGERS if kind == "int" else _FLOATS
        return chance.choice(values) & (1 << width) - 1

    def finish(self, word: int) -> int:
        for role, slot in self.immediates:
            word = _put(word, slot.field, self._immediate(role, slot))
        return word & ~(((1 << 23) - 1) << 105) | _CONTROL << 105

    def variants(self, combinations: int) -> Iterator[int]:
        """The plain form, each modifier and flag alone, pairs of modifiers, all combinations if
        these are few, and random combinations.

        A modifier that has to have a value has its first one in the plain form.
        """
        chance, plain = self.chance, self.word
        for mod in self.mods:
            if 0 not in mod.names:
                plain = _put(plain, mod.field, next(iter(mod.names)))
        for _ in range(3 if self.immediates else 1):
            yield self.finish(plain)
            for mod in self.mods:
                for value in mod.names:
                    yield self.finish(_put(plain, mod.field, value))
        yield from self._products(plain, self.mods, 0 if self.immediates else _ALL)
        for pair in itertools.combinations(self.mods, 2):
            yield from self._products(plain, pair, combinations)
        for field, value in self.flags:
            yield self.finish(_put(plain, field, value))
        for _ in range(combinations if self.mods or self.flags else 0):
            word = plain
            for mod in self.mods:
                if chance.random() < 0.6:
                    word = _put(word, mod.field, chance.choice(list(mod.names)))
            for field, value in self.flags:
                if chance.random() < 0.35:
                    word = _put(word, field, value)
            if self.row.opcode >> 9 & 7 == 1 and chance.random() < 0.15:  # RZ in places
                word = _put(word, bits(chance.choice((24, 32, 64)), 8), 255)
            yield self.finish(word)

    def _products(self, plain: int, mods: Sequence[Mod], most: int) -> Iterator[int]:
        """Values of modifiers together, ``most`` of them."""
        every = list(itertools.product(*(mod.names for mod in mods)))
        for values in self.chance.sample(every, min(len(every), most)):
            word = plain
            for mod, value in zip(mods, values, strict=True):
                word = _put(word, mod.field, value)
            yield self.finish(word)


def kind_of(text: str) -> str:
    """The class of inputs for an instruction."""
    head = re.sub(r"^@\S+ ", "", text).split()[0]
    name, *mods = head.split(".")
    name = name.removeprefix("U")
    source = next((m for m in reversed(mods) if m in _FORMATS), "F32")
    if name[0] == "D" or "64H" in head or (source == "F64" and name != "I2F"):
        return "doubles"
    if name[0] == "H" or name == "VHMNMX":
        return "halves"
    if name in _CONVERSIONS and source in _SMALL:
        return "halves"
    if name in ("I2F", "I2FP"):
        return "words"
    return "floats" if name[0] == "F" or name == "MUFU" else "words"


def words(generation: int, combinations: int, seed: int) -> list[int]:
    """Candidates for every mnemonic that has a meaning; with a tenth of the combinations for forms
    that also read uniform registers."""
    found: dict[int, None] = {}
    for mixed, count in ((False, combinations), (True, combinations // 10)):
        chance = random.Random(seed)
        for row in ROWS:
            if row.mnemonic not in semantics_table() or not row.of(generation):
                continue
            form = _Form(row, chance)
            if form.usable and (len(form.files) > 1) == mixed:
                for word in form.variants(count):
                    found.setdefault(word)
    control = "[B------:R-:W-:Y:S15]"
    for text in WRITTEN:
        code = assemble_listing([f"{control} {text} ;"], generation)[""]
        found.setdefault(int.from_bytes(code[:16], "little"))
    return list(found)


def _place_of(ins: Instruction) -> str:
    """The template for an instruction, or nothing if none fits."""
    written = {r.file for r in ins.writes}
    if not any(r.file in ("UR", "UP") for r in ins.reads | ins.writes):
        return "-"
    if written & {"R", "P"}:
        return "" if written & {"UR", "UP"} else "M"
    return "U"


def legal(arch: int, candidates: Sequence[int], texts: Sequence[str | None]) -> list[Word]:
    """Those that nvdisasm prints without a mark of doubt, and as we do."""
    raw = b"".join(w.to_bytes(16, "little") for w in candidates)
    out: list[Word] = []
    for word, want, ins in zip(
        candidates, texts, decode_section(raw, arch).instructions, strict=True
    ):
        if want is None or isinstance(ins, BadWord) or re.search(r"INVALID|\?\?", want):
            continue
        if arch == 90 and any(pattern.match(want) for pattern in REFUSED):
            continue
        if ins.text != want:
            print(f"{word:#034x}: nvdisasm {want}, ours {ins.text}", file=sys.stderr)
            continue
        place = _place_of(ins)
        if place:
            out.append(Word(word, kind_of(want), place, want))
    return out
