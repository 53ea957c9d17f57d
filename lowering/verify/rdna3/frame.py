"""What a piece of code preserves, whatever it computes: EXEC, inactive lanes, and every register
except those that it may write.

Masks are followed through the code, loops included, by what is known about the lanes inactive at
its start: their bits are 0, or those of a register at the start, or anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sassxlate.disasm.rdna3 import RRef, info, reads, writes
from sassxlate.disasm.rdna3.codec.decode.instruction import branch_target
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.tables.operand_codes import ALIASES, EXEC_LO
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.verdict import Undecided

_ANY, _NONE = (
    -1,
    -2,
)  # other lanes' bits: anything; all 0; or the register they come from
_ACROSS = frozenset({"ds_bpermute_b32", "ds_permute_b32", "ds_swizzle_b32"})
_READS_LANE = frozenset({"v_readfirstlane_b32", "v_readlane_b32"})


@dataclass(frozen=True, slots=True)
class Mask:
    """For a scalar register: the bits of outside lanes, and whether all inside lanes are set."""

    outside: int
    full: bool = False

    def join(self, other: Mask) -> Mask:
        same = self.outside == other.outside
        return Mask(self.outside if same else _ANY, self.full and other.full)


_UNKNOWN = Mask(_ANY)
_ENTRY = Mask(_NONE, True)
State = dict[int, Mask]
# Fields of MODE, followed like masks, with their own numbers instead of a register's.
_MODES = {"s_round_mode": -10, "s_denorm_mode": -11}
_START: State = {EXEC_LO: _ENTRY, -10: Mask(0), -11: Mask(15)}


@dataclass(frozen=True, slots=True)
class Frame:
    """The registers that the code wrote, and for scalar ones the fate of other lanes' bits."""

    written: frozenset[RRef]
    masks: Mapping[int, Mask]

    def keeps(self, index: int) -> bool:
        """Whether the bits of inactive lanes are unchanged."""
        return self.masks.get(index, Mask(index)).outside == index


def frame(code: Sequence[Placed], memory: frozenset[str], temporaries: int = 256) -> Frame:
    """Follows the code.  Raises Undecided if EXEC is not restored at the end, an outside lane may
    be written, control leaves, or memory is accessed in a way not listed in ``memory``.

    Vector registers from ``temporaries`` on are dead in all lanes, and may be written in all.
    Each call is followed by its routine (:mod:`.inlined_routines`)."""
    places = {step.pc: i for i, step in enumerate(code)}
    end = code[-1].next if code else 0
    places[end] = len(code)
    states: list[State | None] = [None] * (len(code) + 1)
    states[0] = dict(_START)
    written: set[RRef] = set()
    work = [0]
    while work:
        at = work.pop()
        if at == len(code):
            continue
        state = states[at]
        assert state is not None
        step = code[at]
        written |= writes(step.inst)
        after = _step(step.inst, dict(state), memory, temporaries)
        nexts = [at + 1]
        if step.inst.op.startswith(("s_cbranch_", "s_branch")):
            target = branch_target(step.inst, step.pc)
            if target not in places:
                raise Undecided(f"{step.inst.op} leaves the instruction's code")
            nexts = [places[target], *([at + 1] if step.inst.op != "s_branch" else [])]
        for n in nexts:
            old = states[n]
            new = after if old is None else _joined(old, after)
            if new != old:
                states[n] = new
                work.append(n)
    last = states[len(code)]
    if last is None:
        raise Undecided("code without an end")
    if last[EXEC_LO] != _ENTRY:
        raise Undecided("EXEC is not restored")
    if any(last[key] != _START[key] for key in _MODES.values()):
        raise Undecided("MODE may not be restored at the end")
    return Frame(frozenset(r for r in written if r.kind in ("v", "s")), last)


def _joined(a: State, b: State) -> State:
    return {r: a.get(r, Mask(r)).join(b.get(r, Mask(r))) for r in {*a, *b}}


def _scalar(arg: Arg) -> int | None:
    if isinstance(arg, S):
        return arg.index
    return ALIASES.get(arg.name) if isinstance(arg, Sp) else None


def _value(state: State, arg: Arg) -> Mask:
    if isinstance(arg, I):
        return Mask(_NONE if arg.value == 0 else _ANY, arg.value & 0xFFFFFFFF == 0xFFFFFFFF)
    index = _scalar(arg)
    return _UNKNOWN if index is None else state.get(index, Mask(index))


def _step(inst: Inst, state: State, memory: frozenset[str], temporaries: int) -> State:
    row = info(inst.op)
    if inst.op in _MODES:
        state[_MODES[inst.op]] = Mask(inst.imm)
        return state
    if any(r.kind == "mode" for r in writes(inst)):
        raise Undecided(f"{inst.op} of MODE")
    touched = {r.kind for r in reads(inst) | writes(inst)} & {"mem", "lds", "scratch"}
    if row.kind == "smem":
        touched = set[str]()
    if touched - memory and inst.op not in _ACROSS:
        raise Undecided(f"{inst.op} in code that must not access memory")
    inside = state[EXEC_LO].outside == _NONE
    outside = inst.op == "v_writelane_b32" or not inside
    if outside and any(r.kind == "v" and r.number < temporaries for r in writes(inst)):
        raise Undecided(f"{inst.op} may write an inactive lane")
    scalars = [r.number for r in writes(inst) if r.kind == "s"]
    if row.kind in ("valu", "trans") or inst.op.startswith("v_"):
        for index in scalars:
            if inst.op in _READS_LANE:
                state[index] = _UNKNOWN
            elif index == EXEC_LO:  # v_cmpx
                state[index] = Mask(state[index].outside)
            else:
                state[index] = Mask(_NONE if inside else _ANY)
        return state
    results = _masks(inst, state)
    for index in scalars:
        state[index] = results.get(index, _UNKNOWN)
    return state


def _masks(inst: Inst, state: State) -> State:
    """The known results of instructions on whole masks."""
    args = inst.args
    target = _scalar(args[0]) if args else None
    if target is None:
        return {}
    sources = [_value(state, a) for a in args[1:] if not isinstance(a, V)]
    match inst.op:
        case "s_mov_b32":
            return {target: sources[0]}
        case "s_and_b32":
            return {target: _and(*sources)}
        case "s_or_b32":
            return {target: _or(*sources)}
        case "s_and_not1_b32":
            return {target: _and_not(*sources)}
        case "s_cselect_b32":
            return {target: sources[0].join(sources[1])}
        case "s_and_saveexec_b32":
            return {target: state[EXEC_LO], EXEC_LO: _and(state[EXEC_LO], sources[0])}
        case "s_and_not0_saveexec_b32":
            return {target: state[EXEC_LO], EXEC_LO: Mask(state[EXEC_LO].outside)}
        case _:
            return {}


def _and(a: Mask, b: Mask) -> Mask:
    if _NONE in (a.outside, b.outside):
        return Mask(_NONE, a.full and b.full)
    return Mask(a.outside if a.outside == b.outside else _ANY, a.full and b.full)


def _or(a: Mask, b: Mask) -> Mask:
    full = a.full or b.full
    if _NONE in (a.outside, b.outside):
        return Mask(b.outside if a.outside == _NONE else a.outside, full)
    return Mask(a.outside if a.outside == b.outside else _ANY, full)


def _and_not(a: Mask, b: Mask) -> Mask:
    return Mask(a.outside if a.outside == _NONE or b.outside == _NONE else _ANY)


__all__ = ["Frame", "Mask", "frame"]
