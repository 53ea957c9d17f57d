"""Fields of bits: sign extension, masks, counts, the highest bit, predicates as a word."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, S
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic.operands import const_value, shift_amount
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import EXEC, ZERO


def sgxt(c: RuleEmitter) -> None:
    """Sign- or zero-extends the low Rb bits of Ra."""
    op = "v_bfe_u32" if c.ins.has("U32") else "v_bfe_i32"
    amount = shift_amount(c, 32)
    if isinstance(amount, I):
        if amount.value >= 32:
            c.emit("v_mov_b32", c.dst_last(), c.src("Ra"))
        elif amount.value == 0:
            c.emit("v_mov_b32", c.dst_last(), ZERO)
        else:
            c.emit(op, c.dst_last(), c.src("Ra"), ZERO, amount)
        return
    part, whole = c.vtemp(), c.stemp()
    c.emit(op, part, c.src("Ra"), ZERO, amount)
    c.emit("v_cmp_eq_u32", whole, I(32), amount)
    c.emit("v_cndmask_b32", c.dst_last(), part, c.src("Ra"), whole)


def bmsk(c: RuleEmitter) -> None:
    """Rb ones from bit Ra up."""
    width = shift_amount(c, 32)
    ones, wide = c.vtemp(), c.stemp()
    c.emit("v_bfm_b32", ones, width, ZERO)
    c.emit("v_cmp_eq_u32", wide, I(32), c.to_v(width))
    c.emit("v_cndmask_b32", ones, ones, I(0xFFFFFFFF), wide)
    shifted = c.vtemp()
    c.emit("v_lshlrev_b32", shifted, c.src("Ra"), ones)
    if c.ins.has("W"):
        c.emit("v_mov_b32", c.dst_last(), shifted)
        return
    far = c.stemp()
    c.emit("v_cmp_lt_u32", far, I(31), c.vsrc("Ra"))
    c.emit("v_cndmask_b32", c.dst_last(), shifted, ZERO, far)


def popc(c: RuleEmitter) -> None:
    c.emit("v_bcnt_u32_b32", c.dst_last(), c.isrc("Rb"), ZERO)


def brev(c: RuleEmitter) -> None:
    c.emit("v_bfrev_b32", c.dst_last(), c.isrc("Rb"))


def flo(c: RuleEmitter) -> None:
    """The position of the highest one (for signed negatives: zero), or its distance from the top
    with .SH; all ones when there is none."""
    value = c.isrc("Rb")
    if not c.ins.has("U32"):
        sign, folded = c.vtemp(), c.vtemp()
        c.emit("v_ashrrev_i32", sign, I(31), value)
        c.emit("v_xor_b32", folded, sign, value)
        value = folded
    lead = c.vtemp()
    c.emit("v_clz_i32_u32", lead, value)  # -1 for zero
    if c.ins.has("SH"):
        c.emit("v_mov_b32", c.dst_last(), lead)
        return
    place, found = c.vtemp(), c.stemp()
    c.emit("v_sub_nc_u32", place, I(31), lead)
    c.emit("v_cmp_ne_u32", found, ZERO, c.to_v(value))
    c.emit("v_cndmask_b32", c.dst_last(), I(0xFFFFFFFF), place, found)


def _byte(c: RuleEmitter, reg: Instruction) -> int:
    selects = [getattr(o, "select", "") for o in reg.operands.values()]
    for n in range(4):
        if reg.has(f"B{n}") or f"B{n}" in selects:
            return n
    return 0


def p2r(c: RuleEmitter) -> None:
    """Packs P0 to P6, or uniform predicates, under a mask into a byte of Rd; the other bits come
    from Ra."""
    shift = 8 * _byte(c, c.ins)
    mask = const_value(c.ins.get("mask"))
    if mask is None:
        raise c.refuse("P2R with a mask in a register")
    if mask >> 8:
        raise c.refuse("P2R with a mask of more than a byte")
    base: Arg = ZERO if c.ins.get("Ra") is None else c.src("Ra")
    out = c.vtemp()
    c.emit("v_and_b32", out, I(~(mask << shift) & 0xFFFFFFFF), base)
    bit = c.vtemp()
    for n, place in _predicates(c).items():
        if mask >> n & 1:
            c.emit("v_cndmask_b32", bit, ZERO, I(1 << (n + shift)), place)
            c.emit("v_or_b32", out, out, bit)
    if mask & 0x80:
        c.emit("v_or_b32", out, I(0x80 << shift), out)
    c.emit("v_mov_b32", c.dst_last(), out)


def r2p(c: RuleEmitter) -> None:
    """Unpacks bits of a byte of Ra into P0 to P6 under a mask."""
    shift = 8 * _byte(c, c.ins)
    mask = const_value(c.ins.get("mask"))
    if mask is None:
        raise c.refuse("R2P with a mask in a register")
    if mask >> 8:
        raise c.refuse("R2P with a mask of more than a byte")
    bit = c.vtemp()
    c.operand("Ra")  # its selector is the byte
    value = c.src("Ra")
    for n in range(7):
        if mask >> n & 1:
            hit = c.stemp()
            c.emit("v_and_b32", bit, I(1 << (n + shift)), value)
            c.emit("v_cmp_ne_u32", hit, ZERO, bit)
            write_p(c, n, hit)


def _predicates(c: RuleEmitter) -> Mapping[int, S]:
    """The places of P0 to P6, or of the uniform predicates."""
    return c.k.regs.up if c.ins.mnemonic in ("UP2UR", "UR2UP") else c.k.regs.p


def write_p(c: RuleEmitter, index: int, mask: S) -> None:
    """Merges a clean lane mask into P``index``, or the uniform predicate."""
    place = _predicates(c)[index]
    c.emit("s_and_not1_b32", place, place, EXEC)
    c.emit("s_or_b32", place, place, mask)


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "SGXT": "U32 W",
    "BMSK": "W",
    "POPC": "",
    "BREV": "",
    "FLO": "U32 SH",
    "P2R": "B1 B2 B3",
    "R2P": "",
    "UP2UR": "B1 B2 B3",
    "UR2UP": "",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("sgxt", "SGXT", sgxt),
    Rule("usgxt", "USGXT", sgxt),
    Rule("bmsk", "BMSK", bmsk),
    Rule("ubmsk", "UBMSK", bmsk),
    Rule("popc", "POPC", popc),
    Rule("upopc", "UPOPC", popc),
    Rule("brev", "BREV", brev),
    Rule("ubrev", "UBREV", brev),
    Rule("flo", "FLO", flo),
    Rule("uflo", "UFLO", flo),
    Rule("p2r", "P2R", p2r),
    Rule("r2p", "R2P", r2p),
    Rule("up2ur", "UP2UR", p2r),
    Rule("ur2up", "UR2UP", r2p),
)
