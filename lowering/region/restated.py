"""The code of real instructions from the code of the lines that express them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from sassxlate.disasm.rdna3 import RRef, reads, writes
from sassxlate.disasm.rdna3.instruction import Arg, Inst, Item, S, V
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.errors import EncodeError
from sassxlate.lowering.abi.kernarg import BankLayout, bank_layout
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.places import VTEMPS
from sassxlate.lowering.region.region import Region
from sassxlate.lowering.target import NULL

OLDER: Final = bank_layout(90)  # the layout of the kernarg segment of older kernels
_SIZES: Final = {"block_dim": 12, "grid_dim": 12, "param_base": 1 << 16}


def joined(groups: Sequence[Sequence[Inst]], known: Restated, base: int) -> list[list[Inst]]:
    """The code of each instruction from that of its lines, with copies to uniform registers and the
    loads of what is lent; ``base`` is the first vector temporary."""
    lay = known.block.around.layout
    kernarg = known.regs.target.kernarg
    lines = [[_moved(i, kernarg, OLDER, lay) for i in group] for group in groups]
    for n, (place, copy) in known.moves.items():
        ref = RRef("v", copy.index)
        later = (i for group in lines[n + 1 :] for i in group)
        left_out = not any(ref in writes(i) for i in lines[n])
        if left_out and any(ref in reads(i) for i in later):
            lines[n].append(Inst("v_mov_b32", (copy, place)))
    for n, (to, source) in known.copies.items():
        op = "v_readfirstlane_b32" if isinstance(to, S) else "v_mov_b32"
        lines[n].append(Inst(op, (to, source)))
    out: list[list[Inst]] = []
    at = 0
    for count in known.parts:
        mine = [inst for group in lines[at : at + count] for inst in group]
        out.append(_masks(mine, known.masks))
        at += count
    return _loaded(_vectors(out, known.vectors, base), known.words, kernarg)


def said_at(lay: BankLayout, offset: int) -> int:
    """The offset in older kernels of the value at an offset of the kernarg segment."""
    return _elsewhere(lay, OLDER, offset)


def lower(code: Sequence[Sequence[Item]], lay: BankLayout, kernarg: S) -> list[list[Item]]:
    """Code as it is said where places in the kernarg segment are, whose address is in the SGPRs
    ``kernarg``.  EncodeError SX0543 for a place
    that does not belong to a constant."""
    out = [
        [_moved(i, kernarg, lay, OLDER) if isinstance(i, Inst) else i for i in group]
        for group in code
    ]
    for before, now in zip(code, out, strict=True):
        for was, inst in zip(before, now, strict=True):
            if isinstance(inst, Inst) and _moved(inst, kernarg, OLDER, lay) != was:
                raise EncodeError("SX0543", "a place in the kernarg segment has no name")
    return out


def _moved(inst: Inst, kernarg: S, before: BankLayout, now: BankLayout) -> Inst:
    if kernarg not in inst.args:
        return inst
    at = _elsewhere(before, now, inst.imm)
    return inst if at == inst.imm else replace(inst, imm=at)


def _elsewhere(before: BankLayout, now: BankLayout, offset: int) -> int:
    for name, size in _SIZES.items():
        first: int = getattr(before, name)
        if first <= offset < first + size:
            there: int = getattr(now, name)
            return there + offset - first
    return offset


def _masks(code: Sequence[Inst], masks: Collection[int]) -> list[Inst]:
    """Drops the care for bits of waiting lanes in a predicate that is not the block's."""
    out: list[Inst] = []
    for inst in code:
        to = inst.args[0] if inst.args else None
        if isinstance(to, S) and to.index in masks and inst.args[1:2] == (to,):
            if inst.op == "s_and_not1_b32" and _is_exec(inst.args[2]):
                continue
            if inst.op == "s_or_b32":
                out.append(Inst("s_mov_b32", (to, inst.args[2])))
                continue
        out.append(inst)
    return out


def _is_exec(arg: Arg) -> bool:
    return getattr(arg, "name", "") == "exec_lo" or (isinstance(arg, S) and arg.index == EXEC_LO)


def _vectors(code: list[list[Inst]], lent: Sequence[int], base: int) -> list[list[Inst]]:
    """Assigns lent vector registers to temporaries that the code does not name."""
    named = {a.index + i for g in code for x in g for a in x.args if isinstance(a, V)
             for i in range(a.n)}  # fmt: skip
    wanted = [v for v in lent if v in named]
    if not wanted:
        return code
    free = [base + i for i in reversed(range(VTEMPS)) if base + i not in named]
    places = dict(zip(wanted, free, strict=False))

    def arg(old: Arg) -> Arg:
        return V(places.get(old.index, old.index)) if isinstance(old, V) and old.n == 1 else old

    return [[replace(x, args=tuple(map(arg, x.args))) for x in group] for group in code]


def _loaded(code: list[list[Inst]], words: Mapping[int, int], kernarg: S) -> list[list[Inst]]:
    """The loads of lent constants, each before the first code that reads it.  A move out of a
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
                made.append(_load_of(to, kernarg, words[new[0]]))
                done.update(new)
                continue
            for first in new:
                if first in done:
                    continue
                pair = first % 2 == 0 and words.get(first + 1) == words[first] + 4
                pair = pair and first + 1 in times and first + 1 not in done
                made.append(_load_of(S(first, 2 if pair else 1), kernarg, words[first]))
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


def _load_of(to: S, kernarg: S, offset: int) -> Inst:
    return Inst(f"s_load_b{32 * to.n}", (to, kernarg, NULL), imm=offset)


@dataclass(frozen=True, slots=True)
class Restated:
    """A block's instructions as lines of older forms: ``lines[at:at + parts[n]]`` are those of the
    n-th, ``at`` the sum of the parts before.

    ``block`` has offsets in the kernarg segment as the text gives them; ``regs`` has places for
    what is lent: ``lent`` are the SGPRs, ``words`` the offsets in bank 0 of those that hold
    constants, ``masks`` those that hold predicates, ``vectors`` the VGPRs.  A line whose result the
    block keeps in a uniform register is followed by the copy in ``copies``; ``moves`` are lines
    that copy such a register, which an answer may leave out."""

    block: Region
    lines: tuple[Instruction, ...]
    parts: tuple[int, ...]
    regs: RegisterMap
    lent: frozenset[int] = frozenset()
    words: Mapping[int, int] = field(default_factory=dict[int, int])
    masks: frozenset[int] = frozenset()
    vectors: tuple[int, ...] = ()
    copies: Copies = field(default_factory=dict[int, "tuple[S | V, V]"])
    moves: Copies = field(default_factory=dict[int, "tuple[S | V, V]"])


Copies: TypeAlias = Mapping[int, "tuple[S | V, V]"]  # by line: place of a uniform register, VGPR


__all__ = ["Copies", "Restated", "joined", "lower", "said_at"]
