"""Names that a question in older forms needs and the block lacks: scalar temporaries for words of
constant bank 0, which are loaded before the code that reads them, and for predicates; and vector
registers, whose places are temporaries that the answer does not use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sassxlate.disasm.rdna3.instruction import S
from sassxlate.disasm.sass.instruction import RZ, Imm, Instruction, Operand, Pred, Reg, Special
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.places import CLASSES
from sassxlate.lowering.region.region import KernelEnv
from sassxlate.lowering.region.restated import said_at

LENT: Final = range(4, 18)  # lent scalar temporaries: rules and models use the others more
_FIRST: Final = 100  # numbers of lent predicates, which no block has
_REGISTERS: Final = 1000  # and registers
_VECTORS: Final = 8  # at most
TRUE, FALSE = Pred("P", 7), Pred("P", 7, inv=True)
ZERO: Final = Reg("R", RZ)


@dataclass(slots=True)
class ScratchNames:
    """Lends scratch names; pairs and quadruples of scalar temporaries are aligned."""

    regs: RegisterMap
    surroundings: KernelEnv
    free: list[int] = field(init=False)
    apart: frozenset[int] = field(init=False)  # words of bank 0 that are not constants in memory
    predicates: dict[tuple[str, int], S] = field(default_factory=dict["tuple[str, int]", S])
    words: dict[int, int] = field(default_factory=dict[int, int])  # SGPR -> offset
    at: dict[int, int] = field(default_factory=dict[int, int])  # the other way
    vectors: dict[int, int] = field(default_factory=dict[int, int])  # register -> VGPR
    zero: set[tuple[str, int]] = field(default_factory=set["tuple[str, int]"])  # hold 0

    def __post_init__(self) -> None:
        temporaries = sorted(self.regs.stemps)
        self.free = [temporaries[i] for i in LENT if i < len(temporaries)]
        lay = self.surroundings.layout
        windows = [w for w in (lay.shared_window, lay.local_window) if w is not None]
        self.apart = frozenset((*self.surroundings.grid_words, *windows, *(w + 4 for w in windows)))

    def predicate(self, uniform: bool = False) -> Pred | None:
        """Lends a predicate; None if no scalar temporary is left."""
        if not self.free:
            return None
        file: Final = "UP" if uniform else "P"
        number = _FIRST + len(self.predicates)
        self.predicates[file, number] = S(self.free.pop())
        return Pred(file, number)

    def constant(self, offset: int, count: int) -> bool:
        """Lends adjacent places for the words from an offset on; False if there are none."""
        wanted = [offset + 4 * i for i in range(count)]
        known = [self.at.get(w) for w in wanted]
        if any(w in self.apart for w in wanted):
            return False
        if None not in known:
            return known == list(range(known[0] or 0, (known[0] or 0) + count))
        if any(k is not None for k in known):
            return False
        for first in self.free:
            run = [first + i for i in range(count)]
            if first % count == 0 and all(r in self.free for r in run):
                for place, word in zip(run, wanted, strict=True):
                    self.free.remove(place)
                    self.words[place] = word
                    self.at[word] = place
                return True
        return False

    def vector(self) -> Reg | None:
        """Lends a register, in a VGPR after all that have names; None if none is left."""
        place = self.regs.vtemp_base + CLASSES["t"] + 1 + 2 * len(self.vectors)
        if len(self.vectors) == _VECTORS or place > 255:
            return None
        number = _REGISTERS + 2 * len(self.vectors)
        self.vectors[number] = place
        return Reg("R", number)

    def value(self, operand: Operand) -> Operand:
        """Z for a register that is known to hold 0."""
        plain = isinstance(operand, Reg) and not operand.inv and not operand.neg
        if plain and isinstance(operand, Reg) and (operand.file, operand.index) in self.zero:
            return ZERO
        return operand

    def step(self, ins: Instruction) -> None:
        """Takes note of an instruction's results that are zero."""
        to = ins.get("Rd")
        if not isinstance(to, Reg):
            return
        places = {(to.file, to.index + i) for i in range(to.width)}
        self.zero -= places
        if ins.guard.is_true and ins.mnemonic in ("MOV", "UMOV", "HFMA2", "CS2R"):
            sources = [o for r, o in ins.operands.items() if r not in ("Rd", "mask")]
            if all(is_zero(o) or _is_nothing(o) for o in sources):
                self.zero |= places

    @property
    def masks(self) -> frozenset[int]:
        """SGPRs that are lent to predicates."""
        return frozenset(s.index for s in self.predicates.values())

    @property
    def lent(self) -> frozenset[int]:
        """All SGPRs that are lent."""
        return frozenset(self.words) | self.masks

    def known(self) -> RegisterMap:
        """The register map with what is lent."""
        regs = self.regs
        consts = {(0, word): S(place) for place, word in self.words.items()}
        p = {number: at for (file, number), at in self.predicates.items() if file == "P"}
        up = {number: at for (file, number), at in self.predicates.items() if file == "UP"}
        return replace(
            regs, consts={**regs.consts, **consts}, p={**regs.p, **p}, up={**regs.up, **up},
            r={**regs.r, **self.vectors},
        )  # fmt: skip

    def around(self) -> KernelEnv:
        """The kernel's environment with kernarg places as restated."""
        lay = self.surroundings.layout
        tables = {bank: said_at(lay, at) for bank, at in self.surroundings.bank_table.items()}
        return replace(self.surroundings, bank_table=tables)


def line(
    ins: Instruction,
    mnemonic: str,
    modifiers: Sequence[str],
    operands: dict[str, Operand],
    guard: Pred | None = None,
) -> Instruction:
    """A restated instruction (not executed), under the real one's guard or another."""
    return replace(
        ins,
        mnemonic=mnemonic,
        modifiers=tuple(modifiers),
        operands=operands,
        guard=ins.guard if guard is None else guard,
    )


def both(operand: Operand) -> tuple[Operand, Operand] | None:
    """The low and the high word; a negative register is the complement above the carry."""
    match operand:
        case Reg(is_zero=True, neg=False):
            half = replace(operand, width=1)
            return half, half
        case Reg(is_zero=True):
            return None
        case Reg(width=2, select="", abs=False, inv=False):
            low = replace(operand, width=1)
            return low, replace(low, index=operand.index + 1, neg=False, inv=operand.neg)
        case Imm(neg=False, inv=False):
            value = operand.value
            if operand.bits != 64:
                value = (value & 0xFFFFFFFF) - ((value & 0x80000000) << 1)
            return number(value), number(value >> 32)
        case _:
            return None


def number(value: int) -> Operand:
    """A word, as older code has it."""
    return Imm(value & 0xFFFFFFFF, 32, "int") if value & 0xFFFFFFFF else ZERO


def _is_nothing(operand: Operand) -> bool:
    if isinstance(operand, Imm):
        return not operand.value
    return isinstance(operand, Special) and operand.name == "SRZ"


def is_zero(operand: Operand | None) -> bool:
    """Whether an operand is RZ or URZ."""
    return isinstance(operand, Reg) and operand.is_zero


__all__ = ["FALSE", "LENT", "TRUE", "ZERO", "ScratchNames", "both", "is_zero", "line", "number"]
