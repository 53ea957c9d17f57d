"""How a kernel's addresses in LDS probably lie, where they do not grow evenly from lane to lane.

A network that sorts has lane i at ``2 * i - (i & 7)``: dwords in runs, with gaps between them, and
the same in each wave.  Code that knows them needs no gather.  As in `lane_strides`, the code is
followed with v0 counted up from lane to lane, and what is found proves nothing: the access
compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from sassxlate.cfg.rdna3_flow import DecodedStep, Flow
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.reads_writes import effects
from sassxlate.disasm.rdna3.tables.opcodes import OPS
from sassxlate.lowering.emulate.wave.addresses.forward import at_starts
from sassxlate.lowering.target import LANES

_MASK = 0xFFFFFFFF
_Values = tuple[int, ...]  # of the lanes
_SAME: _Values = (0,) * LANES
_MOST = 2000  # instructions of a kernel; in longer ones no patterns are looked for


@dataclass(frozen=True, slots=True)
class _Fact:
    """What lanes have, in wave 0; unless ``exact``, a number that is added to all of them is
    missing, which no lane's bits are known without."""

    values: _Values
    exact: bool


_UNIFORM = _Fact(_SAME, False)
_Facts = dict[int, _Fact]  # by VGPR; missing if unknown


def _of(facts: _Facts, arg: Arg) -> _Fact | None:
    if isinstance(arg, V):
        return facts.get(arg.index)
    if isinstance(arg, I):
        return _Fact((arg.value & _MASK,) * LANES, True)
    return _UNIFORM if isinstance(arg, S | Sp) else None


def _sum(*parts: _Fact) -> _Fact:
    total = tuple(sum(lane) & _MASK for lane in zip(*(p.values for p in parts), strict=True))
    return _Fact(total, all(p.exact for p in parts))


def _difference(a: _Fact, b: _Fact) -> _Fact:
    values = tuple(x - y & _MASK for x, y in zip(a.values, b.values, strict=True))
    return _Fact(values, a.exact and b.exact)


def _difference_reversed(a: _Fact, b: _Fact) -> _Fact:
    return _difference(b, a)


def _shifted(a: _Fact, by: _Fact) -> _Fact | None:
    if not by.exact or by.values.count(by.values[0]) != LANES:
        return None
    return _Fact(tuple(x << (by.values[0] & 31) & _MASK for x in a.values), a.exact)


def _shifted_by(by: _Fact, a: _Fact) -> _Fact | None:
    return _shifted(a, by)


def _shifted_plus(a: _Fact, by: _Fact, b: _Fact) -> _Fact | None:
    shifted = _shifted(a, by)
    return None if shifted is None else _sum(shifted, b)


def _sum_shifted(a: _Fact, b: _Fact, by: _Fact) -> _Fact | None:
    return _shifted(_sum(a, b), by)


def _bits(of: Callable[[int, int], int]) -> Callable[[_Fact, _Fact], _Fact | None]:
    def rule(a: _Fact, b: _Fact) -> _Fact | None:
        if not (a.exact and b.exact):
            return None
        return _Fact(tuple(map(of, a.values, b.values)), True)

    return rule


def _same(a: _Fact) -> _Fact:
    return a


_RULES: dict[str, Callable[..., _Fact | None]] = {  # of the sources' facts, in LLVM's order
    "v_mov_b32": _same,
    "v_add_nc_u32": _sum,
    "v_add3_u32": _sum,
    "v_sub_nc_u32": _difference,
    "v_subrev_nc_u32": _difference_reversed,
    "v_lshlrev_b32": _shifted_by,
    "v_lshl_add_u32": _shifted_plus,
    "v_add_lshl_u32": _sum_shifted,
    "v_and_b32": _bits(int.__and__),
    "v_or_b32": _bits(int.__or__),
    "v_xor_b32": _bits(int.__xor__),
    "v_lshrrev_b32": _bits(lambda by, a: a >> (by & 31)),
}


def _result(inst: Inst, facts: _Facts) -> _Fact | None:
    """Of the VGPR that an instruction writes."""
    rule = _RULES.get(inst.op.replace("v_dual_", "v_"))
    if rule is None or inst.dpp:
        return None
    sources = [_of(facts, arg) for arg in inst.args[1:]]
    known = [fact for fact in sources if fact is not None]
    return rule(*known) if len(known) == len(sources) else None


def _step(inst: Inst, facts: _Facts) -> None:
    if inst.op not in OPS:  # a meaning without an encoding: it may write any register
        facts.clear()
        return
    halves = (inst,) if inst.y is None else (replace(inst, y=None), inst.y)
    results = [_result(half, facts) for half in halves]
    for half, result in zip(halves, results, strict=True):
        for ref in effects(half).writes:
            if ref.kind != "v":
                continue
            facts.pop(ref.number, None)
            if result is not None:
                facts[ref.number] = result


def _apart(values: _Values) -> _Values:
    return tuple(value - values[0] & _MASK for value in values)


def _meet(a: _Facts, b: _Facts) -> _Facts:
    out: _Facts = {}
    for register in a.keys() & b.keys():
        fact, other = a[register], b[register]
        if fact == other:
            out[register] = fact
        elif _apart(fact.values) == _apart(other.values):
            out[register] = _Fact(_apart(fact.values), False)
    return out


def _address(inst: Inst) -> Arg:
    return inst.args["_load" in inst.op]


def _unknown(steps: Iterable[DecodedStep], strides: Mapping[int, int]) -> list[DecodedStep]:
    """The accesses to LDS of whose addresses `lane_strides` found nothing."""
    ops = ("ds_load", "ds_store")
    return [step for step in steps if step.inst.op.startswith(ops) and step.pc not in strides]


def patterns(flow: Flow, strides: Mapping[int, int]) -> dict[int, _Values]:
    """By the offset of a load or store of LDS: by lane, how many bytes it probably is above lane 0;
    only where ``strides`` has nothing."""
    steps = [step for block in flow.blocks.values() for step in block.steps]
    if len(steps) > _MOST or not _unknown(steps, strides):
        return {}
    first: _Facts = {0: _Fact(tuple(range(LANES)), True)}
    before = at_starts(flow, first, _step, _meet)
    out: dict[int, _Values] = {}
    for start, facts in before.items():
        wanted = {step.pc for step in _unknown(flow.blocks[start].steps, strides)}
        for step in flow.blocks[start].steps if wanted else ():
            fact = _of(facts, _address(step.inst)) if step.pc in wanted else None
            if fact is not None:
                out[step.pc] = _apart(fact.values)
            _step(step.inst, facts)
    return out


__all__ = ["patterns"]
