"""Two instructions as one: fused operations, and products with their sums."""

from __future__ import annotations

from sassxlate.disasm.rdna3 import RRef
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.lowering.optimize.draft import (  # fmt: skip
    Draft,
    instead,
    legal,
    plain,
    source,
)

# A result that is read once, by an instruction that can do both: (first, second): (both, source
# of the operands).  a, b are the first's operands, c the second's other; r: order matters, and the
# first's result is the second's operand of that number.
_COMMUTE = frozenset("v_add_nc_u32 v_or_b32 v_xor_b32 v_and_b32 v_min_i32 v_min_u32 v_max_i32 "
                     "v_max_u32".split())  # fmt: skip
_FUSED = {
    ("v_add_nc_u32", "v_add_nc_u32"): ("v_add3_u32", "abc"),
    ("v_lshlrev_b32", "v_add_nc_u32"): ("v_lshl_add_u32", "bac"),
    ("v_xor_b32", "v_add_nc_u32"): ("v_xad_u32", "abc"),
    ("v_and_b32", "v_or_b32"): ("v_and_or_b32", "abc"),
    ("v_or_b32", "v_or_b32"): ("v_or3_b32", "abc"),
    ("v_xor_b32", "v_xor_b32"): ("v_xor3_b32", "abc"),
    ("v_lshlrev_b32", "v_or_b32"): ("v_lshl_or_b32", "bac"),
    ("v_min_i32", "v_min_i32"): ("v_min3_i32", "abc"),
    ("v_min_u32", "v_min_u32"): ("v_min3_u32", "abc"),
    ("v_max_i32", "v_max_i32"): ("v_max3_i32", "abc"),
    ("v_max_u32", "v_max_u32"): ("v_max3_u32", "abc"),
    ("v_max_i32", "v_min_i32"): ("v_maxmin_i32", "abc"),
    ("v_max_u32", "v_min_u32"): ("v_maxmin_u32", "abc"),
    ("v_min_i32", "v_max_i32"): ("v_minmax_i32", "abc"),
    ("v_min_u32", "v_max_u32"): ("v_minmax_u32", "abc"),
}


def fused(d: Draft) -> None:
    """Fuses two instructions into one."""
    n = 0
    while n < len(d.lines):
        if not _fuse(d, n):
            n += 1


def _fuse(d: Draft, n: int) -> bool:
    first = d.lines[n].inst
    if not first.op.startswith("v_") or not plain(first) or len(first.args) != 3:
        return False
    to = first.args[0]
    if not isinstance(to, V) or to.n != 1:
        return False
    (ref,) = source(to)
    uses = d.uses(n, ref)
    if uses is None or len(uses) != 1:
        return False
    m = uses[0]
    second = d.lines[m].inst
    if not plain(second) or len(second.args) != 3 or d.lines[n].region != d.lines[m].region:
        return False
    if not all(d.unchanged(source(a), n, m) for a in first.args[1:]):
        return False
    made = _both(first, second, to)
    if made is None or not legal(made):
        return False
    d.join([d.lines[n].group, d.lines[m].group])
    d.put(m, made)
    d.remove([n])
    return True


def _both(first: Inst, second: Inst, to: V) -> Inst | None:
    (a, b), (result, x, y) = first.args[1:], second.args
    if (x == to) == (y == to):
        return None
    c = y if x == to else x
    found = _FUSED.get((first.op, second.op))
    if found is not None and (second.op in _COMMUTE):
        op, order = found
        named = {"a": a, "b": b, "c": c}
        return Inst(op, (result, *(named[k] for k in order)))
    if (first.op, second.op) == ("v_add_nc_u32", "v_lshlrev_b32") and y == to:
        return Inst("v_add_lshl_u32", (result, a, b, c))
    if (first.op, second.op) == ("v_lshrrev_b32", "v_and_b32"):
        mask = c.value & 0xFFFFFFFF if isinstance(c, I) else 0
        if mask and mask & (mask + 1) == 0 and mask != 0xFFFFFFFF:
            return Inst("v_bfe_u32", (result, b, a, I(mask.bit_length())))
    if first.op == "v_not_b32" and second.op == "v_and_b32":
        return Inst("v_bfi_b32", (result, a, I(0), c))
    return None


def products(d: Draft) -> None:
    """Products with constants as shifts and sums."""
    n = 0
    while n < len(d.lines):
        inst = d.lines[n].inst
        if inst.op == "v_mul_lo_u32" and plain(inst):
            _product(d, n, inst)
        elif inst.op in ("v_mad_i64_i32", "v_mad_u64_u32") and plain(inst):
            _narrow_product(d, n, inst)
        n += 1


def _product(d: Draft, n: int, inst: Inst) -> None:
    to, x, y = inst.args
    if isinstance(x, I):
        x, y = y, x
    if not isinstance(y, I) or isinstance(x, I):
        return
    k = y.value & 0xFFFFFFFF
    made: list[Inst] = []
    if k and k & (k - 1) == 0:
        made = [Inst("v_lshlrev_b32", (to, I(k.bit_length() - 1), x))]
    elif k > 2 and (k - 1) & (k - 2) == 0:
        made = [Inst("v_lshl_add_u32", (to, x, I((k - 1).bit_length() - 1), x))]
    elif k.bit_count() == 2:
        low = (k & -k).bit_length() - 1
        temp = next(d.free_vectors(), None)
        if temp is not None:
            made = [
                Inst("v_lshlrev_b32", (temp, I(low), x)),
                Inst("v_lshl_add_u32", (to, x, I(k.bit_length() - 1), temp)),
            ]
    elif k > 3 and k & (k + 1) == 0:
        temp = next(d.free_vectors(), None)
        if temp is not None:
            made = [
                Inst("v_lshlrev_b32", (temp, I(k.bit_length()), x)),
                Inst("v_sub_nc_u32", (to, temp, x)),
            ]
    instead(d, n, made)


def _narrow_product(d: Draft, n: int, inst: Inst) -> None:
    """A wide product by a power of two of which only the low word is read."""
    to, carry, x, y, z = inst.args
    if not isinstance(to, V) or not isinstance(carry, S | Sp):
        return
    high = RRef("v", to.index + 1)
    if not d.dead_at(n + 1, high) or (isinstance(carry, S) and not is_unread(d, n, carry)):
        return
    if isinstance(x, I):
        x, y = y, x
    low = V(to.index)
    addend: Arg = (
        I(z.value & 0xFFFFFFFF)
        if isinstance(z, I)
        else (type(z)(z.index) if isinstance(z, V | S) else z)
    )
    if not isinstance(y, I):
        return
    k = y.value & 0xFFFFFFFF
    if k == 0 or k & (k - 1):
        return
    shift = I(k.bit_length() - 1)
    if addend == I(0):
        instead(d, n, [Inst("v_lshlrev_b32", (low, shift, x))])
    else:
        instead(d, n, [Inst("v_lshl_add_u32", (low, x, shift, addend))])


def is_unread(d: Draft, n: int, mask: S) -> bool:
    return d.dead_at(n + 1, RRef("s", mask.index))
