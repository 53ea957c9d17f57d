"""Questions in words that a model knows: forms of later architectures as those of sm_80 and sm_90.

From sm_100 on SASS has a few very frequent forms that older architectures write otherwise: sums and
moves of 64 bits in one instruction, constants that are loaded by their offset, which is another
than in older kernels.
For the question alone each is said as what older code has in its place, which may be several lines;
the answer's code of those lines belongs to the one instruction.  Nothing rests on it: what is
proved is the code of the real instructions.

What a line names and the block has not is lent a scalar temporary: the carry between the halves of
a sum, and words of constant bank 0, which are loaded in front of the code that reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sassxlate.disasm.rdna3 import reads
from sassxlate.disasm.rdna3.ir import Inst, S
from sassxlate.disasm.sass.ir import RZ, Const, Imm, Instruction, Operand, Pred, Reg
from sassxlate.lowering.allocate import KERNARG, RegisterMap
from sassxlate.lowering.context import NULL

SINCE: Final = 100  # the first architecture with such forms
LENT: Final = range(4, 18)  # of the scalar temporaries: rules and models use the others most
_CARRY: Final = 100  # predicates with numbers that no block has
_TRUE, _FALSE = Pred("P", 7), Pred("P", 7, inv=True)
_ZERO: Final = Reg("R", RZ)


@dataclass(frozen=True, slots=True)
class Familiar:
    """A block's instructions as lines of older forms: ``lines[parts[0]:parts[0] + parts[1]]`` are
    those of the second.  ``regs`` has places for what is lent, ``lent`` the SGPRs, ``words`` the
    offsets in bank 0 of those that hold constants."""

    lines: tuple[Instruction, ...]
    parts: tuple[int, ...]
    regs: RegisterMap
    lent: frozenset[int] = frozenset()
    words: Mapping[int, int] = field(default_factory=dict[int, int])


@dataclass(slots=True)
class _Lender:
    """Scalar temporaries in the order in which they are lent; pairs and fours are aligned."""

    regs: RegisterMap
    grid: frozenset[int]
    free: list[int]
    predicates: dict[int, S] = field(default_factory=dict[int, S])
    words: dict[int, int] = field(default_factory=dict[int, int])  # SGPR -> offset
    at: dict[int, int] = field(default_factory=dict[int, int])  # the other way

    def carry(self) -> Pred | None:
        if not self.free:
            return None
        number = _CARRY + len(self.predicates)
        self.predicates[number] = S(self.free.pop())
        return Pred("P", number)

    def constant(self, offset: int, count: int) -> bool:
        """Whether the words from an offset on have places, side by side."""
        wanted = [offset + 4 * i for i in range(count)]
        known = [self.at.get(w) for w in wanted]
        if any(w in self.grid for w in wanted):
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


def familiar(
    sass: Sequence[Instruction], regs: RegisterMap, grid: frozenset[int] = frozenset()
) -> Familiar | None:
    """The instructions in older forms; None where they are that already.  ``grid`` are the offsets
    of words of bank 0 that are no constants in memory."""
    if not sass or sass[0].arch < SINCE:
        return None
    temporaries = sorted(regs.stemps)
    free = [temporaries[i] for i in LENT if i < len(temporaries)]
    lender = _Lender(regs, grid, free)
    lines: list[Instruction] = []
    parts: list[int] = []
    for ins in sass:
        said = list(_said(ins, lender))
        lines += said
        parts.append(len(said))
    if tuple(lines) == tuple(sass):
        return None
    consts = dict(regs.consts) | {(0, w): S(place) for place, w in lender.words.items()}
    known = replace(regs, consts=consts, p={**regs.p, **lender.predicates})
    lent = frozenset(lender.words) | {s.index for s in lender.predicates.values()}
    return Familiar(tuple(lines), tuple(parts), known, lent, dict(lender.words))


def _said(ins: Instruction, lender: _Lender) -> Iterator[Instruction]:
    made: list[Instruction] | None = None
    match ins.mnemonic:
        case "LDCU" | "LDC":
            made = _load(ins, lender)
        case "IADD" if ins.modifiers == ("64",):
            made = _sum(ins, lender)
        case "MOV" | "UMOV" | "SEL" | "USEL" if ins.has("64"):
            made = _halves(ins)
        case "HFMA2" if not ins.modifiers and _is_zero(ins["Ra"]) and _is_zero(ins["Rb"]):
            made = [replace(ins, modifiers=("MMA",))]
        case "VIMNMX" if ins.has("S32"):
            made = [replace(ins, modifiers=tuple(m for m in ins.modifiers if m != "S32"))]
        case _:
            pass
    yield from made or [ins]


def _is_zero(operand: Operand) -> bool:
    return isinstance(operand, Reg) and operand.is_zero


def _load(ins: Instruction, lender: _Lender) -> list[Instruction] | None:
    """A load of a fixed place as what copies constant words: LDCU as ULDC, wider ones in pairs,
    LDC as MOV, word by word."""
    source, to = ins["src"], ins["Rd"]
    if not isinstance(source, Const) or not isinstance(to, Reg) or to.is_zero:
        return None
    indexed = source.index is not None and not source.index.is_zero
    if indexed or source.bank or source.ur is not None or source.place & 3:
        return None
    if ins.modifiers != {1: (), 2: ("64",), 4: ("128",)}.get(to.width):
        return None
    words = [(0, source.place + 4 * i) for i in range(to.width)]
    pair = min(to.width, 2)
    for n in range(0, to.width, pair):
        known = all(w in lender.regs.consts for w in words[n : n + pair])
        if not known and not lender.constant(words[n][1], pair):
            return None
    step = pair if ins.mnemonic == "LDCU" else 1
    made: list[Instruction] = []
    for n in range(0, to.width, step):
        target = replace(to, index=to.index + n, width=step)
        value = Const(0, words[n][1], width=step)
        if ins.mnemonic == "LDCU":
            operands: dict[str, Operand] = {**ins.operands, "Rd": target, "src": value}
            modifiers = ("64",) if step == 2 else ()
            made.append(replace(ins, mnemonic="ULDC", modifiers=modifiers, operands=operands))
        else:
            operands = {"Rd": target, "Rb": value, "mask": Imm(15)}
            made.append(replace(ins, mnemonic="MOV", modifiers=(), operands=operands))
    return made


def _sum(ins: Instruction, lender: _Lender) -> list[Instruction] | None:
    """IADD.64 as IADD3 and IADD3.X."""
    to, a, b = ins["Rd"], _both(ins["Ra"]), _both(ins["Rb"])
    into, out = ins.get("Pp"), ins.get("Pu")
    if not isinstance(to, Reg) or to.is_zero or a is None or b is None:
        return None
    if not isinstance(into, Pred) or not into.is_false or not isinstance(out, Pred):
        return None
    carry = lender.carry()
    if carry is None:
        return None
    low = {
        "Rd": replace(to, width=1), "Ra": a[0], "Rb": b[0], "Rc": _ZERO,
        "Pu": carry, "Pv": _TRUE, "Pp": _FALSE, "Pq": _FALSE,
    }  # fmt: skip
    high = {
        **low, "Rd": replace(to, index=to.index + 1, width=1), "Ra": a[1], "Rb": b[1],
        "Pu": out, "Pp": carry,
    }  # fmt: skip
    return [
        replace(ins, mnemonic="IADD3", modifiers=(), operands=low),
        replace(ins, mnemonic="IADD3", modifiers=("X",), operands=high),
    ]


def _halves(ins: Instruction) -> list[Instruction] | None:
    """An instruction that does the same to both words as one for each."""
    parts: tuple[dict[str, Operand], dict[str, Operand]] = {}, {}
    for role, operand in ins.operands.items():
        wide = isinstance(operand, Reg) and not operand.is_zero and operand.width == 2
        wide = wide or _is_zero(operand) or (isinstance(operand, Imm) and role != "mask")
        both = _both(operand) if wide else (operand, operand)
        if both is None:
            return None
        for part, half in zip(parts, both, strict=True):
            part[role] = half
    modifiers = tuple(m for m in ins.modifiers if m != "64")
    return [replace(ins, modifiers=modifiers, operands=part) for part in parts]


def _both(operand: Operand) -> tuple[Operand, Operand] | None:
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
            return _number(value), _number(value >> 32)
        case _:
            return None


def _number(value: int) -> Operand:
    """A word, as older code has it."""
    return Imm(value & 0xFFFFFFFF, 32, "int") if value & 0xFFFFFFFF else _ZERO


# --- answers ----------------------------------------------------------------------------------


def joined(
    groups: Sequence[Sequence[Inst]], parts: Sequence[int], words: Mapping[int, int]
) -> list[list[Inst]]:
    """The code of each instruction from that of the lines, and with the loads of what is lent."""
    out: list[list[Inst]] = []
    at = 0
    for count in parts:
        out.append([inst for group in groups[at : at + count] for inst in group])
        at += count
    return _loaded(out, words)


def _loaded(code: list[list[Inst]], words: Mapping[int, int]) -> list[list[Inst]]:
    """The loads of lent constants, each in front of the first code that reads it.  A move out of a
    constant that nothing else reads is the load itself."""
    times: dict[int, int] = {}
    for group in code:
        for inst in group:
            for ref in set(reads(inst)):
                if ref.kind == "s" and ref.number in words:
                    times[ref.number] = times.get(ref.number, 0) + 1
    done: set[int] = set()
    out: list[list[Inst]] = []
    for group in code:
        made: list[Inst] = []
        for inst in group:
            read = {r.number for r in reads(inst) if r.kind == "s"}
            new = [w for w in sorted(read) if w in words and w not in done]
            if new and _is_move(inst, new) and all(times[w] == 1 for w in new):
                to = inst.args[0]
                assert isinstance(to, S)
                made.append(_load_of(to, words[new[0]]))
                done.update(new)
                continue
            for first in new:
                if first in done:
                    continue
                pair = first % 2 == 0 and words.get(first + 1) == words[first] + 4
                pair = pair and first + 1 in times and first + 1 not in done
                made.append(_load_of(S(first, 2 if pair else 1), words[first]))
                done.update((first, first + 1) if pair else (first,))
            made.append(inst)
        out.append(made)
    return out


def _is_move(inst: Inst, places: Sequence[int]) -> bool:
    if inst.op not in ("s_mov_b32", "s_mov_b64") or len(inst.args) != 2:
        return False
    to, source = inst.args
    if not isinstance(to, S) or not isinstance(source, S) or to.index % source.n:
        return False
    return [source.index + i for i in range(source.n)] == list(places)


def _load_of(to: S, offset: int) -> Inst:
    return Inst(f"s_load_b{32 * to.n}", (to, KERNARG, NULL), imm=offset)


__all__ = ["SINCE", "Familiar", "familiar", "joined"]
