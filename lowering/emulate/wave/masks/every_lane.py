"""Where all lanes that a wave began with are active: a write there leaves nothing of what was.

Compilers restore EXEC after a branch from the register that kept it.  So each mask is followed
through the code: it is all of the wave's lanes, or some of them.  Lanes that a wave began without
never become active, unless a mask of another kind gets into EXEC: of such code nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.cfg.rdna3_flow import Flow
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, V
from sassxlate.disasm.rdna3.reads_writes import effects, registers
from sassxlate.disasm.rdna3.tables.opcodes import OPS
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.lowering.emulate.wave.addresses.forward import at_starts

_Facts = dict[int, bool]  # by scalar register: all lanes, or some of them; missing if unknown
_ALL, _SOME = True, False
# Instructions that look at lanes which are not active, or write them.
_OTHERS = ("v_readlane", "v_writelane", "v_permlane")


def looks_at_others(inst: Inst) -> bool:
    """Whether an instruction may look at lanes of its VGPRs which are not active, or write them."""
    return inst.dpp != "" or inst.op.startswith(_OTHERS)


@dataclass(frozen=True, slots=True)
class EveryLane:
    """The offsets of instructions before which all lanes are active, the blocks at whose ends they
    are, and the VGPRs whose other lanes' values may be looked at."""

    at: frozenset[int] = frozenset()
    ends: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()


def _of(facts: _Facts, arg: Arg) -> bool | None:
    if isinstance(arg, I):
        return _SOME if arg.value == 0 else None
    found = registers(arg)
    return facts.get(found[0].number) if len(found) == 1 and found[0].kind == "s" else None


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is _ALL and b is _ALL:
        return _ALL
    return None if a is None and b is None else _SOME


def _or(a: bool | None, b: bool | None) -> bool | None:
    return None if a is None or b is None else a or b


def _both(a: bool | None, b: bool | None) -> bool | None:
    """Of lanes that one of two masks has, or either."""
    if a is _ALL and b is _ALL:
        return _SOME
    return None if a is None or b is None else _SOME


def _without(a: bool | None, b: bool | None) -> bool | None:
    del b
    return None if a is None else _SOME


def _other(a: bool | None, b: bool | None) -> bool | None:
    return a if a == b else _both(a, b)


_RULES = {
    "s_and": _and, "s_or": _or, "s_xor": _both, "s_and_not1": _without, "s_cselect": _other,
}  # fmt: skip
_SAVING = {
    "s_and_saveexec_b32": _and, "s_or_saveexec_b32": _or, "s_xor_saveexec_b32": _both,
    "s_and_not1_saveexec_b32": _without,
}  # fmt: skip


def _masks(inst: Inst, facts: _Facts) -> dict[int, bool | None]:
    """What is known of the scalar registers that an instruction writes."""
    written = [ref.number for ref in effects(inst).writes if ref.kind == "s"]
    if not written:
        return {}
    op = inst.op
    if op.startswith("v_"):
        # One bit for each active lane; v_readlane and the like write words.
        masks = op.startswith(("v_cmp", "v_add_co", "v_sub_co", "v_subrev_co"))
        return dict.fromkeys(written, _SOME if masks else None)
    if op in _SAVING:
        old = facts.get(EXEC_LO)
        (target,) = registers(inst.args[0])
        return {target.number: old, EXEC_LO: _SAVING[op](_of(facts, inst.args[1]), old)}
    out = dict[int, bool | None].fromkeys(written)
    if op in ("s_mov_b32", "s_mov_b64"):
        zero = inst.args[1] == I(0)
        sources = registers(inst.args[1])
        for n, number in enumerate(sorted(written)):
            out[number] = _SOME if zero else facts.get(sources[n].number) if sources else None
        return out
    rule = _RULES.get(op.removesuffix("_b32")) if op.endswith("_b32") else None
    if rule is not None and len(written) == 1:
        out[written[0]] = rule(*(_of(facts, arg) for arg in inst.args[1:3]))
    return out


def _step(inst: Inst, facts: _Facts) -> None:
    if inst.op not in OPS:  # a meaning without an encoding
        facts.clear()
        return
    for number, fact in _masks(inst, facts).items():
        if fact is None:
            facts.pop(number, None)
        else:
            facts[number] = fact


def _meet(a: _Facts, b: _Facts) -> _Facts:
    return {n: a[n] and b[n] for n in a.keys() & b.keys()}


def every_lane(flow: Flow) -> EveryLane:
    """Where all lanes are active."""
    before = at_starts(flow, {EXEC_LO: _ALL}, _step, _meet)
    at, ends, kept = set[int](), set[int](), set[int]()
    for start, known in before.items():
        facts = dict(known)
        for step in flow.blocks[start].steps:
            if facts.get(EXEC_LO) is _ALL:
                at.add(step.pc)
            elif EXEC_LO not in facts:
                return EveryLane()
            if looks_at_others(step.inst):
                kept |= {r for arg in step.inst.args if isinstance(arg, V) for r in _numbers(arg)}
            _step(step.inst, facts)
        if EXEC_LO not in facts:
            return EveryLane()
        if facts[EXEC_LO] is _ALL:
            ends.add(start)
    return EveryLane(frozenset(at), frozenset(ends), frozenset(kept))


def _numbers(arg: V) -> range:
    return range(arg.index, arg.index + arg.n)


__all__ = ["EveryLane", "every_lane", "looks_at_others"]
