"""Branches that all lanes of a warp take alike if its block has rows of whole warps.

threadIdx.x is the number of the lane and one of the warp then, and loops like
``for (i = threadIdx.x; i < n + lane; ...)`` are left by all lanes in one turn.  One load of all
lanes from one address gives them one value, too.  Neither is known of a launch, so it is a
presumption, made only for kernels that would be refused without it, and tested: where the lanes of
such a branch do not agree, they trap (`tier/control.py`).  The facts that follow from it hold until
then: all lanes came to the branch together, in SASS as in LLVM's code, and go on together.

Each register has a :class:`Kind`.  Blocks are followed as in `cfg/uniformity.py`: a value written
where lanes run apart is of no kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from sassxlate.cfg import Cfg, Uniformity, analyse
from sassxlate.cfg.build import conditions, is_conditional
from sassxlate.cfg.graph import Block
from sassxlate.disasm.sass.instruction import (
    Const,
    Imm,
    Instruction,
    Operand,
    Pred,
    Reg,
    RegRef,
    Special,
)
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.tier.refusal import FLOW, refused


class Kind(IntEnum):
    """A register's values in the lanes of a warp: one value; a multiple of 32 and the lane's
    number; a value and the lane's number; any."""

    ONE = 0
    ALIGNED = 1
    STEPS = 2
    ANY = 3


_LANES = 32
_LUT_AND = 0xC0
_SPECIALS: Mapping[str, Kind] = {
    "SR_TID.X": Kind.ALIGNED, "SR_LANEID": Kind.ALIGNED, "SR_CTAID.X": Kind.ONE,
    "SR_CTAID.Y": Kind.ONE, "SR_CTAID.Z": Kind.ONE, "SRZ": Kind.ONE,
}  # fmt: skip
_LOADS = frozenset({"LDG", "LDC", "ULDC"})
_State = dict[RegRef, Kind]  # of registers that are not of one value


def either(a: Kind, b: Kind) -> Kind:
    """Of a value that is one or the other, the same in all lanes."""
    if a == b:
        return a
    return Kind.STEPS if Kind.ONE not in (a, b) and Kind.ANY not in (a, b) else Kind.ANY


def _of(state: _State, operand: Operand | None) -> Kind:
    """The kind of an operand, without regard to a sign."""
    match operand:
        case Imm() | None:
            return Kind.ONE
        case Reg():
            if operand.is_zero or operand.file == "UR":
                return Kind.ONE
            return state.get(RegRef(operand.file, operand.index), Kind.ONE)
        case Pred():
            if operand.index == 7 or operand.file == "UP":
                return Kind.ONE
            return state.get(RegRef(operand.file, operand.index), Kind.ONE)
        case Const():
            return _of(state, operand.index)
        case Special():
            return _SPECIALS.get(operand.name, Kind.ANY)
        case _:
            return Kind.ANY


def _signed(operand: Operand | None) -> bool:
    return any(getattr(operand, sign, False) for sign in ("neg", "abs", "inv"))


def _sum(state: _State, *operands: Operand | None) -> Kind:
    """Of a sum of operands."""
    some = [o for o in operands if _of(state, o) != Kind.ONE]
    if not some:
        return Kind.ONE
    kinds = {_of(state, o) for o in some}
    if Kind.ANY in kinds or len(some) > 2:
        return Kind.ANY
    if len(some) == 2:
        minus = [getattr(o, "neg", False) for o in some]
        return Kind.ONE if minus[0] != minus[1] else Kind.ANY
    return Kind.ANY if _signed(some[0]) else Kind.STEPS


def _number(ins: Instruction, role: str) -> int | None:
    operand = ins.get(role)
    return operand.value if isinstance(operand, Imm) else None


def _result(state: _State, ins: Instruction) -> Kind:
    """The kind of an instruction's results where all lanes run it."""
    t, name = traits(ins), ins.mnemonic
    reads = [state.get(ref, Kind.ONE) for ref in ins.reads if ref.file in ("R", "P")]
    if t.uniform:
        return Kind.ONE
    if isinstance(special := ins.get("sr"), Special):
        return _of(state, special)
    load = name in _LOADS and not ins.has("STRONG")
    if load or (name == "SHFL" and ins.has("IDX") and _number(ins, "Rc") == _LANES - 1):
        others = [ins.get("Rb")] if name == "SHFL" else []
        kinds = [_of(state, o) for o in others] if others else reads
        return Kind.ONE if all(k == Kind.ONE for k in kinds) else Kind.ANY
    if not t.pure:
        return Kind.ANY
    if all(k == Kind.ONE for k in reads):
        return Kind.ONE
    return _of_lanes(state, ins)


def _of_lanes(state: _State, ins: Instruction) -> Kind:
    """The same, for sources that are not all of one value."""
    name = ins.mnemonic
    a, b, c = (ins.get(role) for role in ("Ra", "Rb", "Rc"))
    if name == "MOV" or (name == "IMAD" and ins.has("MOV")):
        source = b if name == "MOV" else c
        return Kind.ANY if _signed(source) else _of(state, source)
    if name == "IADD3" and not ins.has("X"):
        return _sum(state, a, b, c)
    if name == "IMAD" and not ins.has("X") and not ins.has("HI") and not ins.has("WIDE"):
        if _number(ins, "Rb") == 1:
            return _sum(state, a, c)
        alike = _of(state, a) == _of(state, b) == Kind.ONE
        return _sum(state, c) if alike else Kind.ANY
    if name == "ISETP" and not ins.has("EX"):
        lanes = _of(state, a) in _WITH_LANE and _of(state, b) in _WITH_LANE
        chained = all(_of(state, ins.get(p)) == Kind.ONE for p in ("Pp", "Pr"))
        return Kind.ONE if lanes and chained and not (_signed(a) or _signed(b)) else Kind.ANY
    if name == "SHF" and ins.has("R") and ins.has("HI") and _of(state, a) == Kind.ONE:
        count = _number(ins, "Rb")
        far = count is not None and 1 << count >= _LANES
        return Kind.ONE if far and _of(state, c) == Kind.ALIGNED else Kind.ANY
    aligned = _of(state, a) == Kind.ALIGNED and not _signed(a)
    if name == "LOP3" and aligned and _number(ins, "lut") == _LUT_AND:
        mask = _number(ins, "Rb")
        return Kind.ONE if mask is not None and not mask & (_LANES - 1) else Kind.ANY
    return Kind.ANY


_WITH_LANE = (Kind.ALIGNED, Kind.STEPS)


def _through(state: _State, block: Block, converged: bool) -> _State:
    """The kinds after a block."""
    state = dict(state)
    for ins in block.instructions:
        written = [ref for ref in ins.writes if ref.file in ("R", "P")]
        if not written:
            continue
        kind = _result(state, ins) if converged else Kind.ANY
        guarded = not ins.guard.is_true
        alike = _of(state, ins.guard) == Kind.ONE
        for ref in written:
            now = kind
            if guarded:
                now = either(kind, state.get(ref, Kind.ONE)) if alike else Kind.ANY
            if now == Kind.ONE:
                state.pop(ref, None)
            else:
                state[ref] = now
    return state


def _agreeing(cfg: Cfg, facts: Uniformity) -> set[int]:
    """The blocks whose lanes leave them alike, if those of ``facts`` run together."""
    into: list[_State | None] = [None] * len(cfg.blocks)
    into[0] = {}
    outs: list[_State] = [{} for _ in cfg.blocks]
    work = [0]
    while work:
        n = work.pop()
        state = into[n]
        assert state is not None
        outs[n] = _through(state, cfg.blocks[n], facts.converged[n])
        for edge in cfg.successors[n]:
            if edge.kind == "back":
                continue
            old = into[edge.dst]
            if old is None:
                new = dict(outs[n])
            else:
                new = {
                    r: either(old.get(r, Kind.ONE), outs[n].get(r, Kind.ONE))
                    for r in old.keys() | outs[n].keys()
                }
            if new != old:
                into[edge.dst] = new
                work.append(edge.dst)
    return {
        n
        for n, block in enumerate(cfg.blocks)
        if into[n] is not None and facts.converged[n]
        if all(_of(outs[n], p) == Kind.ONE for p in conditions(block.last))
    }


def _chooses(cfg: Cfg, block: Block) -> bool:
    """Whether it ends with a branch that may go on; nvcc writes far ones as CALL."""
    ways = {e.kind for e in cfg.successors[block.index]}
    branch = block.last.mnemonic in ("BRA", "CALL") and ways == {"taken", "fall"}
    return branch and is_conditional(block.last)


def presumed(cfg: Cfg) -> Uniformity:
    """Which blocks all lanes run together, by this presumption."""
    alike = {b.index for b in cfg.blocks if _chooses(cfg, b)}
    while True:
        facts = analyse(cfg, alike)
        kept = alike & _agreeing(cfg, facts)
        if kept == alike:
            return facts
        alike = kept


def tested(cfg: Cfg, facts: Uniformity, step: Sequence[bool]) -> frozenset[int]:
    """The branches, by offset, that are presumed to go one way.

    Raises Refused (SX0463) if lanes may come to one in several turns of LLVM's loops.
    """
    known = analyse(cfg).uniform_branch
    out: set[int] = set()
    for n, block in enumerate(cfg.blocks):
        last = block.last
        if _chooses(cfg, block) and facts.uniform_branch[n] and not known[n]:
            if not step[n]:
                raise refused(FLOW, "a branch where lanes run apart", last)
            out.add(last.offset)
    return frozenset(out)


__all__ = ["Kind", "either", "presumed", "tested"]
