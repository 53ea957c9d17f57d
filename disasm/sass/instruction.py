"""SASS instructions as values: produced by the decoder and read by everything else.

Names are NVIDIA's as nvdisasm prints them.  Every operand has a *role* (``Rd``, ``Ra``, ``Pu`` ...)
that does not depend on whether the text shows it: an IADD3 always has ``Pu`` and ``Pv``, which are
PT when nothing is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sassxlate.quick_init import quick_init

RZ = 255  # the index of RZ and, in this representation, of URZ on every architecture
PT = 7  # the index of PT and UPT

RegFile: TypeAlias = Literal["R", "UR"]
PredFile: TypeAlias = Literal["P", "UP"]


@quick_init
@dataclass(frozen=True, slots=True)
class Reg:
    """A general or uniform register; ``width`` counts the 32-bit registers from ``index`` on.

    ``select`` is the printed part selector without its dot (``H0_H0``, ``B1``, ``64`` ...).
    """

    file: RegFile
    index: int
    width: int = 1
    neg: bool = False
    abs: bool = False
    inv: bool = False
    select: str = ""
    reuse: bool = False

    @property
    def is_zero(self) -> bool:
        return self.index == RZ


@dataclass(frozen=True, slots=True)
class Pred:
    """A predicate register or PT; ``inv`` is the ``!``."""

    file: PredFile
    index: int
    inv: bool = False

    @property
    def is_true(self) -> bool:
        return self.index == PT and not self.inv

    @property
    def is_false(self) -> bool:
        return self.index == PT and self.inv


@dataclass(frozen=True, slots=True)
class Imm:
    """An immediate as raw bits: 32 of them, or 64 (a double's encoded high word, shifted up)."""

    value: int
    bits: int = 32
    kind: Literal["int", "f32", "f64", "f16x2"] = "int"
    neg: bool = False
    inv: bool = False


@dataclass(frozen=True, slots=True)
class Const:
    """c[bank][index + offset]; ``width`` counts 32-bit words; ``ur`` is the bindless c[UR] form.

    ``offset`` is signed, as nvdisasm prints it, because an index may be added to it.
    """

    bank: int
    offset: int
    index: Reg | None = None
    ur: Reg | None = None
    width: int = 1
    neg: bool = False
    abs: bool = False
    inv: bool = False
    select: str = ""

    @property
    def place(self) -> int:
        """The byte offset in the bank, without an index: a bank has up to 64 KiB, and its upper
        half is printed as negative offsets."""
        return self.offset & 0xFFFF


@dataclass(frozen=True, slots=True)
class Mem:
    """[base*scale + ureg + offset]; ``base.width`` 2 is a 64-bit address; ``desc`` is ignored."""

    base: Reg | None
    offset: int = 0
    ureg: Reg | None = None
    scale: int = 1
    desc: Reg | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A code address, in bytes from the start of the section."""

    target: int


@dataclass(frozen=True, slots=True)
class Special:
    """A special register by number and by nvdisasm's name (``SR_TID.X``)."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class BReg:
    """A convergence barrier register B0 to B15, or a thread-state register of BMOV."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """A choice that is printed as an operand, by value and by name (``ARRAY_2D``)."""

    value: int
    name: str


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """SB0 to SB5, of DEPBAR."""

    index: int


Operand: TypeAlias = Reg | Pred | Imm | Const | Mem | Label | Special | BReg | Name | Scoreboard


@dataclass(frozen=True, slots=True)
class Control:
    """Scheduling information, bits 105 to 125; barriers are 7 if none is set."""

    stall: int
    yield_: bool
    write_barrier: int
    read_barrier: int
    wait_mask: int
    reuse: int


@dataclass(frozen=True, slots=True)
class RegRef:
    """One 32-bit register or predicate: file "R", "UR", "P", "UP" or "B"."""

    file: Literal["R", "UR", "P", "UP", "B"]
    index: int


@quick_init
@dataclass(frozen=True, slots=True)
class Instruction:
    """One decoded SASS word.

    ``modifiers`` are the dotted parts of the mnemonic, in print order (``("E", "64")``).
    ``reads`` and ``writes`` are exact, implicit ones and the guard included; RZ and PT never occur.
    """

    arch: int
    offset: int
    word: int
    mnemonic: str
    modifiers: tuple[str, ...]
    guard: Pred
    operands: Mapping[str, Operand]
    control: Control
    reads: frozenset[RegRef]
    writes: frozenset[RegRef]
    text: str  # as nvdisasm prints it, without offset and closing semicolon, with the guard

    def placed(self, offset: int, arch: int) -> Instruction:
        """The same at another place and of another architecture: dataclasses.replace, faster."""
        return Instruction(
            arch, offset, self.word, self.mnemonic, self.modifiers, self.guard, self.operands,
            self.control, self.reads, self.writes, self.text,
        )  # fmt: skip

    def has(self, modifier: str) -> bool:
        return modifier in self.modifiers

    def __getitem__(self, role: str) -> Operand:
        return self.operands[role]

    def get(self, role: str) -> Operand | None:
        operands = self.operands
        # What the decoder makes is one, which compiled code reads in a fifth of the time.
        if isinstance(operands, dict):
            return operands.get(role)
        return operands.get(role)
