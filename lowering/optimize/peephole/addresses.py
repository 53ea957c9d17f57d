"""Addresses: wide products with a power of two, as shifts and sums."""

from __future__ import annotations

from typing import Final

from sassxlate.disasm.rdna3 import RRef
from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.tables.operand_codes import VCC_LO
from sassxlate.lowering.optimize.cost import instruction
from sassxlate.lowering.optimize.draft import Draft, instead, legal, line, moved, plain, source

_ALL: Final = 0xFFFFFFFF


def addresses(d: Draft) -> None:
    """A wide product with a power of two whose result is moved: shifted and added in place."""
    n = 0
    while n + 2 < len(d.lines):
        inst = d.lines[n].inst
        if inst.op == "v_mad_i64_i32" and plain(inst):
            _address(d, n, inst)
        n += 1


def _address(d: Draft, n: int, inst: Inst) -> None:
    found = _scaled(inst)
    low, high = moved(d.lines[n + 1].inst), moved(d.lines[n + 2].inst)
    if found is None or found[2] >= 31 or low is None or high is None:
        return
    value, x, shift, base = found
    if low[1] != V(value.index) or high[1] != V(value.index + 1):
        return
    to = low[0]
    if not isinstance(to, V) or high[0] != V(to.index + 1):
        return
    if not all(d.uses(n, r) == [n + 1 + i] for i, r in enumerate(sorted(source(value)))):
        return
    pair = V(to.index, 2)
    if source(base) & source(pair) or x != V(to.index):
        return
    kind = type(base)
    made = [
        Inst("v_ashrrev_i32", (V(to.index + 1), I(31), x)),
        Inst("v_lshlrev_b64", (pair, I(shift), pair)),
        Inst("v_add_co_u32", (V(to.index), Sp("vcc_lo"), kind(base.index), V(to.index))),
        Inst("v_add_co_ci_u32", (V(to.index + 1), Sp("vcc_lo"), kind(base.index + 1),
                                 V(to.index + 1), Sp("vcc_lo"))),
    ]  # fmt: skip
    if not all(map(legal, made)) or not d.dead_at(n, RRef("s", VCC_LO)):
        return
    group = d.lines[n].group
    groups = [d.lines[m].group for m in range(n, n + 3)]
    d.join(groups)
    d.lines[n : n + 3] = [line(i, group) for i in made]
    d.changed = True
    d.settle()


def near_addresses(d: Draft) -> None:
    """A base plus a small number of elements: a shift and a sum instead of a wide product."""
    n = 0
    while n < len(d.lines):
        inst = d.lines[n].inst
        if inst.op in ("v_mad_i64_i32", "v_mad_u64_u32") and plain(inst):
            _near_address(d, n, inst)
        n += 1


def _near_address(d: Draft, n: int, inst: Inst) -> None:
    product = _scaled(inst)
    if product is None or source(product[3]) & source(product[0]):
        return
    to, x, shift, base = product
    found = _most(d, n, x)
    if found is None or found[1] << shift > _ALL or not d.dead_at(n, RRef("s", VCC_LO)):
        return
    kind = type(base)
    low, high = V(to.index), V(to.index + 1)
    made = [
        Inst("v_lshlrev_b32", (low, I(shift), x)),
        Inst("v_add_co_u32", (low, Sp("vcc_lo"), kind(base.index), low)),
        Inst("v_add_co_ci_u32", (high, Sp("null"), kind(base.index + 1), I(0), Sp("vcc_lo"))),
    ]
    if sum(map(instruction, made)) < instruction(inst):
        d.join([d.lines[found[0]].group, d.lines[n].group])
        instead(d, n, made)


def _most(d: Draft, n: int, value: V) -> tuple[int, int] | None:
    """The line that makes a word, and the word's upper bound."""
    (ref,) = source(value)
    for m in range(n - 1, -1, -1):
        if ref not in d.lines[m].writes:
            continue
        inst = d.lines[m].inst
        if not plain(inst) or not d.reaches(m, n) or inst.args[0] != value:
            return None
        match inst:
            case Inst(op="v_and_b32", args=(_, I(value=mask), _) | (_, _, I(value=mask))):
                return m, mask & _ALL
            case Inst(op="v_bfe_u32", args=(_, _, _, I(value=width))):
                return m, (1 << (width & 31)) - 1
            case Inst(op="v_lshrrev_b32", args=(_, I(value=count), _)):
                return m, _ALL >> (count & 31)
            case _:
                return None
    return None


def _scaled(inst: Inst) -> tuple[V, V, int, S | V] | None:
    """For a sum with a product by a power of two: destination, factor, power, base."""
    to, _, x, y, base = inst.args
    if isinstance(x, I):
        x, y = y, x
    if not isinstance(to, V) or not isinstance(x, V) or not isinstance(y, I):
        return None
    k = y.value & _ALL
    if k == 0 or k & (k - 1) or not isinstance(base, S | V):
        return None
    return to, x, k.bit_length() - 1, base


__all__ = ["addresses", "near_addresses"]
