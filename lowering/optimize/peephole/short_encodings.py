"""Shorter encodings of the same code: exchanged operands, VCC for a mask, sums in place.

An instruction of the VALU takes one dword if its last source is a VGPR and its mask is VCC,
otherwise two.  Nothing here changes which instructions compute a result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sassxlate.disasm.rdna3 import RRef
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp
from sassxlate.disasm.rdna3.tables.operand_codes import VCC_LO
from sassxlate.lowering.optimize.cost import instruction
from sassxlate.lowering.optimize.draft import Draft, legal, plain, source, substituted

_VCC: Final = Sp("vcc_lo")
_VCC_REF: Final = RRef("s", VCC_LO)
# The instruction that computes the same with its two sources exchanged.
_EXCHANGED: Final = {
    **{op: op for op in (
        "v_add_nc_u32", "v_and_b32", "v_or_b32", "v_xor_b32", "v_xnor_b32", "v_min_i32",
        "v_min_u32", "v_max_i32", "v_max_u32", "v_mul_f32", "v_add_f32", "v_min_f32", "v_max_f32",
        "v_mul_f16", "v_add_f16", "v_mul_u32_u24", "v_mul_i32_i24",
    )},
    "v_sub_nc_u32": "v_subrev_nc_u32", "v_subrev_nc_u32": "v_sub_nc_u32",
    "v_sub_f32": "v_subrev_f32", "v_subrev_f32": "v_sub_f32",
    "v_sub_f16": "v_subrev_f16", "v_subrev_f16": "v_sub_f16",
}  # fmt: skip
_TURNED: Final = {
    "lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "nlt": "ngt", "ngt": "nlt", "nle": "nge",
    "nge": "nle", "eq": "eq", "ne": "ne", "lg": "lg", "neq": "neq", "nlg": "nlg", "u": "u",
    "o": "o",
}  # fmt: skip


def exchanged(inst: Inst) -> Inst | None:
    """The instruction with its two sources exchanged, if there is one."""
    if len(inst.args) != 3 or inst.op_sel or inst.clamp or inst.omod or inst.dpp:
        return None
    op = _EXCHANGED.get(inst.op)
    if op is None and inst.op.startswith("v_cmp_"):
        _, _, relation, kind = inst.op.split("_", 3)
        turned = _TURNED.get(relation)
        op = f"v_cmp_{turned}_{kind}" if turned is not None else None
    if op is None:
        return None
    to, a, b = inst.args
    neg = (inst.neg & 1) << 1 | inst.neg >> 1 & 1
    size = (inst.abs & 1) << 1 | inst.abs >> 1 & 1
    return replace(inst, op=op, args=(to, b, a), neg=neg, abs=size)


def _subtracted(inst: Inst) -> Inst | None:
    """A sum with a negated operand as a difference."""
    if inst.op not in ("v_add_f32", "v_add_f16") or inst.neg not in (1, 2):
        return None
    if inst.abs or inst.clamp or inst.omod or inst.op_sel:
        return None
    to, a, b = inst.args
    kind = inst.op[-3:]
    return Inst(f"v_sub_{kind}", (to, a, b) if inst.neg == 2 else (to, b, a))


def _in_place(inst: Inst) -> list[Inst]:
    """A fused product and sum that adds to its own result, or takes a literal."""
    if inst.op != "v_fma_f32" or not plain(inst):
        return []
    to, a, b, c = inst.args
    out: list[Inst] = []
    for x, y in ((a, b), (b, a)):
        if c == to:
            out.append(Inst("v_fmac_f32", (to, x, y)))
        if isinstance(c, I):
            out.append(Inst("v_fmaak_f32", (to, x, y, c)))
        if isinstance(y, I):
            out.append(Inst("v_fmamk_f32", (to, x, y, c)))
    return out


def turned(d: Draft) -> None:
    """Puts each instruction in its shortest form."""
    for n, at in enumerate(d.lines):
        inst = at.inst
        if not inst.op.startswith("v_"):
            continue
        made = [other for one in (inst, _subtracted(inst)) if one for other in (exchanged(one),)]
        found = [m for m in (*made, _subtracted(inst), *_in_place(inst)) if m is not None]
        best = min(filter(legal, found), key=instruction, default=None)
        if best is not None and instruction(best) < instruction(inst):
            d.put(n, replace(best, origin=None, enc=""))


def in_vcc(d: Draft) -> None:
    """Puts short-lived masks in VCC, if that shortens their readers or writers."""
    for n, at in enumerate(d.lines):
        inst = at.inst
        place = next((i for i in (0, 1) if _is_mask(d, inst, i)), None)
        if place is None or not inst.op.startswith("v_"):
            continue
        mask = inst.args[place]
        (ref,) = source(mask)
        uses = d.uses(n, ref)
        if not uses or not _vcc_free(d, n, uses[-1]):
            continue
        made = {n: replace(inst, args=_with(inst, place, _VCC))}
        for m in uses:
            other = substituted(d.lines[m].inst, mask, _VCC)
            if other is None:
                break
            made[m] = _carried(d, m, other) if m == uses[-1] else other
        else:
            made[n] = min((made[n], exchanged(made[n]) or made[n]), key=_price)
            before = sum(instruction(d.lines[m].inst) for m in made)
            if all(map(legal, made.values())) and sum(map(instruction, made.values())) < before:
                for m, other in made.items():
                    d.put(m, other)


def _price(inst: Inst) -> int:
    return instruction(inst) if legal(inst) else 1 << 20


def _is_mask(d: Draft, inst: Inst, i: int) -> bool:
    if not inst.op.startswith(("v_cmp_", "v_add_co_", "v_sub_co_", "v_subrev_co_")):
        return False
    if i != (0 if inst.op.startswith("v_cmp_") else 1) or i >= len(inst.args):
        return False
    arg = inst.args[i]
    return isinstance(arg, S) and arg.n == 1 and d.temporary(RRef("s", arg.index))


def _with(inst: Inst, i: int, arg: Arg) -> tuple[Arg, ...]:
    return (*inst.args[:i], arg, *inst.args[i + 1 :])


def _vcc_free(d: Draft, first: int, last: int) -> bool:
    """Whether VCC is unused and dead from one line to another."""
    between = d.lines[first : last + 1]
    if any(_VCC_REF in at.reads | at.writes for at in between):
        return False
    return d.dead_at(first, _VCC_REF)


def _carried(d: Draft, n: int, inst: Inst) -> Inst:
    """A sum with carry-in whose carry-out is never read: it goes to VCC, too, which is shorter."""
    if not inst.op.endswith("_co_ci_u32") or len(inst.args) != 5:
        return inst
    out = inst.args[1]
    if isinstance(out, S) and not d.dead_at(n + 1, RRef("s", out.index)):
        return inst
    made = replace(inst, args=_with(inst, 1, _VCC))
    to, _, a, b, carry = made.args
    other = replace(made, args=(to, _VCC, b, a, carry))
    options = [made, *([other] if inst.op.startswith("v_add") else [])]
    return min((inst, *options), key=_price)


def shortest(d: Draft) -> None:
    """Makes the changes of this module in the draft: :func:`turned`, then :func:`in_vcc`."""
    turned(d)
    in_vcc(d)


__all__ = ["exchanged", "in_vcc", "shortest", "turned"]
