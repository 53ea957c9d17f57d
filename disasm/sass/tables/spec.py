"""The vocabulary of the encoding tables: bit fields, operand slots, modifiers and rows.

A row of a table defines one form of one instruction completely: its opcode, the architectures
that have it, its operands with the bits that hold them, its modifiers with NVIDIA's spelling for
each value, and how the line is printed.  Nothing here decodes; see
:mod:`sassxlate.disasm.sass.codec.row_compiler`.

Bit numbers count from the least significant bit of the 128-bit little-endian word.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

# One representative architecture for each encoding generation, oldest first.
GENERATIONS: tuple[int, ...] = (75, 80, 86, 87, 89, 90, 100, 103, 110, 120)

# Architectures that share a generation's machine code (sm_86, 88 and 89 do not differ in anything
# that ptxas writes, but sm_89 has FP8 operations that 86 lacks; sm_110 was named 101 at first).
GENERATION_OF: Mapping[int, int] = {
    75: 75, 80: 80, 87: 87, 86: 86, 88: 86, 89: 89, 90: 90,
    100: 100, 101: 110, 103: 103, 110: 110, 120: 120, 121: 120,
}  # fmt: skip

DESCRIPTOR = 4  # the uniform register of a descriptor that is not printed

Width: TypeAlias = "int | str"  # a count of 32-bit registers, or the modifier that decides it


@dataclass(frozen=True, slots=True)
class Bits:
    """A field: the concatenation of ``parts`` (low bit, width), the least significant first."""

    parts: tuple[tuple[int, int], ...]

    @property
    def width(self) -> int:
        return sum(w for _, w in self.parts)

    @property
    def mask(self) -> int:
        total = 0
        for lo, w in self.parts:
            total |= ((1 << w) - 1) << lo
        return total

    def get(self, word: int) -> int:
        value = shift = 0
        for lo, w in self.parts:
            value |= (word >> lo & (1 << w) - 1) << shift
            shift += w
        return value


def bits(lo: int, width: int = 1) -> Bits:
    """A contiguous field."""
    return Bits(((lo, width),))


def join(*parts: tuple[int, int]) -> Bits:
    """A field in pieces, the least significant piece first."""
    return Bits(parts)


@dataclass(frozen=True, slots=True)
class Count:
    """A count of registers that several fields decide together; ``of`` sees the whole word.

    ``field`` is the union of the bits that ``of`` reads.
    """

    field: Bits
    of: Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Mod:
    """A dotted part of the mnemonic.

    ``names`` maps the field's values to spellings: "" prints nothing, and a value that is absent
    is undefined.  ``widths`` gives the register counts that operands take from this modifier.
    A name may hold several dotted parts ("F32.FTZ.RN").
    """

    name: str
    field: Bits
    names: Mapping[int, str]
    widths: Mapping[int, int] = dataclasses.field(default_factory=dict[int, int])


@dataclass(frozen=True, slots=True)
class Idiom:
    """A dotted part that several fields decide together; ``spell`` sees the whole word.

    ``field`` is the union of the bits that ``spell`` reads; bits of operands may be among
    them.
    """

    name: str
    field: Bits
    spell: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Select:
    """The part selector of an operand (``.H1_H1``); absent values are undefined."""

    field: Bits
    names: Mapping[int, str]
    inside: bool = False  # of the bars of an absolute value
    spaced: frozenset[int] = frozenset()  # values that put a space into a constant's text


@dataclass(frozen=True, slots=True)
class R:
    """A general or uniform register.

    ``neg`` prints ``-``, or ``~`` if the modifier named ``inv_if`` is set; ``inv`` prints ``~``.
    """

    lo: int
    width: Width | Count = 1
    file: Literal["R", "UR"] = "R"
    neg: int | None = None
    abs: int | None = None
    inv: int | None = None
    inv_if: str = ""
    select: Select | None = None
    suffix: str = ""  # a fixed part selector
    reuse: int | None = None
    write: bool = False
    both: bool = False  # read and written
    wrap: str = ""  # text around it: ``gdesc[{}]``; ``{next}`` is the next register
    real: bool = False  # with RZ the word is not an instruction
    split: Bits | None = None  # the eight bits of its number if they are not contiguous


@dataclass(frozen=True, slots=True)
class P:
    """A predicate; ``inv`` is the bit of ``!``.  ``write`` marks destinations."""

    lo: int
    inv: int | None = None
    file: Literal["P", "UP"] = "P"
    write: bool = False
    flip: int = 0  # the field holds index ^ flip
    default_inv: bool = False  # the default that templates elide is !PT


@dataclass(frozen=True, slots=True)
class I:  # noqa: E742
    """An immediate.  ``style``: how it prints; ``scale`` multiplies the field's value."""

    field: Bits
    kind: Literal["int", "f32", "f64", "f16x2"] = "int"
    style: Literal["hex", "shex", "dec", "f16", "bf16", "f32", "f64", "pair"] = "hex"
    bits: int = 32
    signed: bool = False
    scale: int = 1
    elide: int | None = None  # the value that templates elide
    signed_by: int | None = None  # the bit of the word that makes ``hex`` print a sign
    bf16: str = ""  # "modifier=value" that turns a pair of f16 into one of bf16


@dataclass(frozen=True, slots=True)
class Fixed:
    """An operand without its own bits: the role exists, with a constant value."""

    kind: Literal["P", "UP", "R", "UR", "int"]
    value: int = 7
    inv: bool = False


@dataclass(frozen=True, slots=True)
class C:
    """c[bank][offset]: ALU operand, or LDC's with an index register."""

    width: Width = 1
    neg: int | None = None
    abs: int | None = None
    inv: int | None = None
    inv_if: str = ""
    select: Select | None = None
    offset: Bits = bits(40, 14)  # signed, in units of ``scale`` bytes
    scale: int = 4
    bank: Bits = bits(54, 5)
    index: int | None = None
    index_file: Literal["R", "UR"] = "R"
    gap: bool = False  # half-precision operands print a space between the brackets
    bindless: int | None = None  # the low bit of the UR that holds the descriptor
    signed: bool = False  # the offset has a sign although the bank is a descriptor's


@dataclass(frozen=True, slots=True)
class M:
    """A memory operand [base + ureg + offset].

    ``wide`` is the bit (or a constant) that makes ``base`` a 64-bit pair; ``uwide`` the same for
    the base next to a uniform register (printed ``.64``/``.U32``); ``desc`` the bit that turns the
    uniform register into a descriptor, ``desc_shown`` the bit that makes sm_80 print it.
    ``hide_urz`` leaves out URZ beside a 64-bit base; ``show_rz`` prints RZ as a 32-bit base.
    ``space`` is the name of a separate memory, printed before the brackets.
    """

    base: int | None = 24
    offset: Bits = bits(40, 24)
    signed: bool = True
    ureg: int | None = None
    wide: int | None = None
    uwide: int | None = None
    scale: Bits | None = None
    desc: int | None = None
    desc_low: bool = False  # the descriptor is printed only if desc_shown is set
    desc_shown: int | None = None
    hide_urz: bool = False
    show_rz: bool = False
    space: str = ""
    narrow_rz: bool = False  # compilers leave ``uwide`` clear if the base is RZ
    unit: int = 1  # bytes per unit of the offset
    sign_alone: bool = False  # the offset has its sign even without a register
    write: bool = False


@dataclass(frozen=True, slots=True)
class L:
    """A code address: PC + 16 + the signed field times ``scale``; absolute without ``relative``.

    With ``displacement`` the operand is an Imm, the signed field times ``scale``, since a
    register is added to it.
    """

    field: Bits
    scale: int = 4
    relative: bool = True
    displacement: bool = False  # the operand is the displacement, although the text is the address
    elide_zero: bool = False


@dataclass(frozen=True, slots=True)
class S:
    """A special register."""

    field: Bits = bits(72, 8)
    wide: str = ""


@dataclass(frozen=True, slots=True)
class B:
    """A convergence barrier, or with ``names`` a thread-state register."""

    field: Bits
    names: Mapping[int, str] | None = None
    write: bool = False
    read: bool = True


@dataclass(frozen=True, slots=True)
class N:
    """NVIDIA's name for the value of a field, printed as an operand (``ARRAY_2D``)."""

    field: Bits
    names: Mapping[int, str]
    elide: int | None = None  # the value that templates elide


@dataclass(frozen=True, slots=True)
class SB:
    """A scoreboard."""

    field: Bits


@dataclass(frozen=True, slots=True)
class Mask:
    """A set of scoreboards or of predicates as an integer; prints ``{5,3}``, or nothing when 0."""

    field: Bits


@dataclass(frozen=True, slots=True)
class When:
    """``slot`` if the modifier ``mod`` is set, otherwise the constant ``other``."""

    mod: str
    slot: R | P | I | C | M | L
    other: Fixed


Operand: TypeAlias = R | P | I | Fixed | C | M | L | S | B | N | SB | Mask | When

Effect: TypeAlias = Literal["", "p2r", "r2p", "up2ur", "ur2up"]


@dataclass(frozen=True, slots=True)
class Row:
    """One form of one instruction.

    ``opcode`` is bits 0 to 11 with bit 91 above them.  ``operands`` maps roles to slots.  ``text``
    is the print template: roles in print order, split by commas (or by blanks where NVIDIA prints
    none); ``Pu?`` elides an operand that has its default value, ``Pp:X`` prints it only if the
    modifier X is printed, ``'PR'`` is a literal.  ``fixed`` are constant bits (field, value) that
    belong to the opcode; ``free`` and ``ones`` are fields without meaning that may hold anything:
    compilers mostly write zeros into the former, ones into the latter.  All bits that belong to no
    field are zero in compilers' output; NVIDIA's disassembler ignores them, except
    ``reserved``.
    """

    mnemonic: str
    opcode: int
    operands: Mapping[str, Operand]
    text: str
    mods: tuple[Mod | Idiom, ...] = ()
    since: int = 75
    until: int = 999
    absent: tuple[int, ...] = ()  # intermediate generations that lack it
    fixed: tuple[tuple[Bits, int], ...] = ()
    free: tuple[Bits, ...] = ()
    ones: tuple[Bits, ...] = ()
    reserved: tuple[Bits, ...] = ()
    reserved_since: int = 75  # the first generation in which ``reserved`` bits have a meaning
    effect: Effect = ""
    guard: Literal["P", "UP"] = "P"

    def of(self, generation: int) -> bool:
        return self.since <= generation <= self.until and generation not in self.absent

    def with_(self, **changes: object) -> Row:
        return replace(self, **changes)  # type: ignore[arg-type]


def enum(
    name: str, lo: int, width: int, spellings: str, widths: Mapping[str, int] | None = None
) -> Mod:
    """A modifier from a list of spellings: ``_`` prints nothing, ``-`` is undefined.

    ``widths`` maps spellings to the register counts that they give to operands.
    """
    names = {i: ("" if s == "_" else s) for i, s in enumerate(spellings.split()) if s != "-"}
    by_value = {i: widths[s or "_"] for i, s in names.items() if widths and (s or "_") in widths}
    return Mod(name, bits(lo, width), names, by_value)


def const(name: str) -> Mod:
    """A dotted part that is always printed."""
    return Mod(name, Bits(()), {0: name})


def flag(name: str, bit: int) -> Mod:
    """A modifier of one bit that prints ``name`` when it is set."""
    return Mod(name, bits(bit), {0: "", 1: name})
