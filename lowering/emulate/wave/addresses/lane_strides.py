"""How a kernel's addresses probably differ from lane to lane: which form of an access to try first.

A register's stride is what it grows by from lane to lane in a run of them (`contiguous`), as
far as the code shows it, with v0's packed thread numbers counted up by one.  Blocks may have any
shape and instructions may be masked, so a stride proves nothing: every form checks the addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sassxlate.cfg.rdna3_flow import DecodedStep, Flow
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.reads_writes import effects
from sassxlate.disasm.rdna3.tables.opcodes import OPS
from sassxlate.lowering.emulate.wave.addresses.forward import at_starts

SCATTERED = -1  # made of what lanes loaded from different addresses

_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class _Fact:
    """``stride`` in units of the value, or SCATTERED; ``value``, where it is a known constant;
    ``packed``: v0's thread numbers, ten bits each."""

    stride: int
    value: int | None = None
    packed: bool = False


_UNIFORM, _NEXT, _LOADED = _Fact(0), _Fact(1), _Fact(SCATTERED)
_Facts = dict[int, "_Fact | None"]  # by VGPR: None if unknown; missing if not written so far


def _of(facts: _Facts, arg: Arg) -> _Fact | None:
    if isinstance(arg, V):
        return facts.get(arg.index)
    if isinstance(arg, I):
        return _Fact(0, arg.value & _MASK)
    return _UNIFORM if isinstance(arg, S | Sp) else None


def _sum(*parts: _Fact | None, signs: Iterable[int] = (1, 1, 1)) -> _Fact | None:
    if _LOADED in parts:
        return _LOADED
    total = 0
    for part, sign in zip(parts, signs, strict=False):
        if part is None:
            return None
        total += sign * part.stride
    return _Fact(total & _MASK)


def _product(a: _Fact | None, b: _Fact | None) -> _Fact | None:
    if _LOADED in (a, b):
        return _LOADED
    if a is None or b is None:
        return None
    if a.stride == b.stride == 0:
        if a.value is not None and b.value is not None:
            return _Fact(0, a.value * b.value & _MASK)
        return _UNIFORM
    if a.value is None:
        a, b = b, a
    return None if a.value is None else _Fact(a.value * b.stride & _MASK)


def _shifted(a: _Fact | None, by: _Fact | None) -> _Fact | None:
    if by is not None and by.value is not None:
        by = _Fact(0, 1 << (by.value & 31))
    return _product(a, by)


_F = _Fact | None


def _same(a: _F) -> _F:
    return a


def _less(a: _F, b: _F) -> _F:
    return _sum(a, b, signs=(1, -1))


def _less_reversed(a: _F, b: _F) -> _F:
    return _sum(a, b, signs=(-1, 1))


def _shifted_by(by: _F, a: _F) -> _F:
    return _shifted(a, by)


def _shifted_plus(a: _F, by: _F, b: _F) -> _F:
    return _sum(_shifted(a, by), b)


def _sum_shifted(a: _F, b: _F, by: _F) -> _F:
    return _shifted(_sum(a, b), by)


def _product_plus(a: _F, b: _F, c: _F) -> _F:
    return _sum(_product(a, b), c)


_Rule = Callable[..., _F]  # of the sources' facts, in LLVM's order
_RULES: dict[str, _Rule] = {
    "v_mov_b32": _same,
    "v_add_nc_u32": _sum,
    "v_add3_u32": _sum,
    "v_or_b32": _sum,  # of fields that do not overlap
    "v_or3_b32": _sum,
    "v_sub_nc_u32": _less,
    "v_subrev_nc_u32": _less_reversed,
    "v_lshlrev_b32": _shifted_by,
    "v_lshlrev_b64": _shifted_by,
    "v_lshl_add_u32": _shifted_plus,
    "v_lshl_or_b32": _shifted_plus,
    "v_add_lshl_u32": _sum_shifted,
    "v_mul_lo_u32": _product,
    "v_mul_u32_u24": _product,
    "v_mul_i32_i24": _product,
    "v_mad_u32_u24": _product_plus,
    "v_mad_i32_i24": _product_plus,
}
# The same with a carry or a mask among the operands: how many destinations, how many sources.
_WITH_CARRY: dict[str, tuple[int, int, _Rule]] = {
    "v_add_co_u32": (2, 2, _sum),
    "v_add_co_ci_u32": (2, 2, _sum),
    "v_sub_co_u32": (2, 2, _RULES["v_sub_nc_u32"]),
    "v_subrev_co_u32": (2, 2, _RULES["v_subrev_nc_u32"]),
    "v_mad_u64_u32": (2, 3, _RULES["v_mad_u32_u24"]),
    "v_mad_i64_i32": (2, 3, _RULES["v_mad_i32_i24"]),
}
# Sums of 64 bits: nothing of the addend's upper half comes into the lower half of the result.
_WIDE_SUMS = ("v_mad_u64_u32", "v_mad_i64_i32")
# Lanes have values of other lanes, or of a mask.
_UNKNOWN = ("v_cndmask", "v_writelane", "v_permlane", "ds_permute", "ds_bpermute", "ds_swizzle")


def _field(op: str, args: tuple[Arg, ...], facts: _Facts) -> _Fact | None:
    """Of v0's packed numbers: x is the next one in each lane, y and z are the same."""
    if op == "v_and_b32":
        for a, b in ((args[1], args[2]), (args[2], args[1])):
            fact = _of(facts, b)
            if a == I(0x3FF) and fact is not None and fact.packed:
                return _NEXT
    elif op == "v_bfe_u32" and (fact := _of(facts, args[1])) is not None and fact.packed:
        return _NEXT if args[2] == I(0) else _UNIFORM
    elif op == "v_lshrrev_b32" and (fact := _of(facts, args[2])) is not None and fact.packed:
        return _UNIFORM
    return None


def _lane_number(inst: Inst, facts: _Facts) -> _Fact | None:
    if inst.args[1] in (I(-1), I(_MASK)):
        return _sum(_NEXT, _of(facts, inst.args[2]))
    return None


def _result(inst: Inst, facts: _Facts) -> _Fact | None:
    """Of all VGPRs that an instruction other than a memory access writes."""
    op = inst.op.replace("v_dual_", "v_")
    if inst.dpp or op.startswith(_UNKNOWN):
        return None
    if op == "v_mbcnt_lo_u32_b32":
        return _lane_number(inst, facts)
    rule, first, sources = _RULES.get(op), 1, inst.args[1:]
    if rule is None and op in _WITH_CARRY:
        first, count, rule = _WITH_CARRY[op]
        sources = inst.args[first : first + count]
    if rule is not None:
        return rule(*(_of(facts, arg) for arg in sources))
    found = _field(op, inst.args, facts)
    return found if found is not None else _any(inst, facts)


def _any(inst: Inst, facts: _Facts) -> _Fact | None:
    """Of equal values any function is equal, and of loaded ones it is anything."""
    unknown = False
    for ref in effects(inst).reads:
        if ref.kind != "v":
            continue
        fact = facts.get(ref.number)
        if fact is None or fact.stride > 0:
            unknown = True
        elif fact.stride == SCATTERED:
            return _LOADED
    return None if unknown else _UNIFORM


def _address(inst: Inst) -> Arg | None:
    """The operand with the lanes' addresses, of an access to memory that all waves see."""
    op = inst.op
    if not op.startswith(("global_", "flat_", "ds_")) or not inst.args:
        return None
    stores = "_store" in op or ("atomic" in op and not inst.glc)
    return inst.args[0 if stores or len(inst.args) < 2 else 1]


def _unread(inst: Inst) -> int | None:
    """The VGPR whose value is not in the lower half of a result."""
    addend = inst.args[-1] if inst.op in _WIDE_SUMS else None
    return addend.index + 1 if isinstance(addend, V) else None


def _step(inst: Inst, facts: _Facts) -> None:
    if inst.op not in OPS:  # a meaning without an encoding
        facts.update(dict.fromkeys(facts))
        return
    found = effects(inst)
    read, written = found.reads, found.writes
    targets = [ref.number for ref in written if ref.kind == "v"]
    if not targets:
        return
    upper = _unread(inst)
    if any(ref.kind == "v" and ref.number not in facts and ref.number != upper for ref in read):
        for register in targets:  # what is made of nothing is not yet anything, either
            facts.pop(register, None)
        return
    fact: _Fact | None = None
    if "_load" in inst.op:
        where = _address(inst)
        at = _of(facts, where) if where is not None else None
        if at is not None:
            fact = _UNIFORM if at.stride == 0 else _LOADED
    elif inst.op.startswith("v_") and inst.y is None:
        fact = _result(inst, facts)
    elif inst.y is not None:
        halves = (replace(inst, y=None), inst.y)
        both = [_result(half, facts) for half in halves]
        for half, result in zip(halves, both, strict=True):
            facts.update((r.number, result) for r in effects(half).writes if r.kind == "v")
        return
    facts.update(dict.fromkeys(targets, fact))


def _meet(a: _Facts, b: _Facts) -> _Facts:
    out = {**a, **b}
    for register in a.keys() & b.keys():
        fact, other = a[register], b[register]
        if fact != other:
            same = fact is not None and other is not None and fact.stride == other.stride
            out[register] = _Fact(fact.stride) if same and fact is not None else None
    return out


def strides(flow: Flow) -> dict[int, int]:
    """By the offset of a memory access: the stride of its addresses in bytes, modulo 2**32, or
    SCATTERED; accesses of which nothing is known are missing."""
    first: _Facts = {0: _Fact(1, packed=True)}
    before = at_starts(flow, first, _step, _meet)
    out: dict[int, int] = {}
    for start, known in before.items():
        _accesses(flow.blocks[start].steps, dict(known), out)
    return out


def _accesses(steps: Iterable[DecodedStep], facts: _Facts, out: dict[int, int]) -> None:
    for step in steps:
        where = _address(step.inst)
        fact = _of(facts, where) if isinstance(where, V) else None
        if fact is not None:
            out[step.pc] = fact.stride
        _step(step.inst, facts)


__all__ = ["SCATTERED", "strides"]
