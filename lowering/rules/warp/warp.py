"""Communication between the lanes of a wave, special registers, sleep and traps."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.sass.instruction import Special
from sassxlate.disasm.sass.semantics.arithmetic.multiprocessor import NAME as SMID
from sassxlate.lowering.builder.lane_id import lane_id
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic.operands import const_value
from sassxlate.lowering.rules.memory.memory import add64, address64
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import EXEC, NULL, ZERO

ALL = I(0xFFFFFFFF)


# --- shuffles -------------------------------------------------------------------------------------


def shfl(c: RuleEmitter) -> None:
    """PTX shfl: Rc holds the segment mask in bits 12:8 and the clamp in bits 4:0."""
    mode = next((m for m in ("IDX", "UP", "DOWN", "BFLY") if c.ins.has(m)), None)
    if mode is None:
        raise c.refuse("mode of SHFL")
    lane = lane_id(c)
    limit, base, segment = _segments(c, lane)
    step: Arg
    known = const_value(c.ins.get("Rb"))
    if known is not None:
        step = I(known & 31)
    else:
        temp = c.vtemp()
        c.emit("v_and_b32", temp, I(31), c.src("Rb"))
        step = temp
    source, inside = c.vtemp(), c.stemp()
    if limit == I(31) and segment == ZERO and mode in ("BFLY", "IDX"):  # any lane is inside
        if mode == "BFLY":
            c.emit("v_xor_b32", source, lane, step)
            c.emit("v_lshlrev_b32", source, I(2), source)
        elif isinstance(step, I):
            c.emit("v_mov_b32", source, I(4 * step.value))
        else:
            c.emit("v_lshlrev_b32", source, I(2), step)
        c.raw(Inst("ds_bpermute_b32", (c.dst_last(), source, c.vsrc("Ra"))))
        if c.wants_pred("Pu"):
            c.pred_commit("Pu", EXEC, clean=True)
        return
    if mode == "UP":
        c.emit("v_sub_nc_u32", source, lane, step)
        c.emit("v_cmp_ge_i32", inside, source, limit)
    else:
        if mode == "DOWN":
            c.emit("v_add_nc_u32", source, lane, step)
        elif mode == "BFLY":
            c.emit("v_xor_b32", source, lane, step)
        else:
            _indexed(c, source, step, base, segment)
        c.emit("v_cmp_le_i32", inside, source, limit)
    c.emit("v_cndmask_b32", source, lane, source, inside)
    c.emit("v_lshlrev_b32", source, I(2), source)
    data = c.vsrc("Ra")
    # Sources of a permutation are the registers of active lanes only; the address is in bytes.
    c.raw(Inst("ds_bpermute_b32", (c.dst_last(), source, data)))
    if c.wants_pred("Pu"):
        c.pred_commit("Pu", inside, clean=True)


def _segments(c: RuleEmitter, lane: V) -> tuple[Arg, Arg, Arg]:
    """(last lane of the segment, first lane of it, the segment mask)."""
    control = const_value(c.ins.get("Rc"))
    if control is not None:
        clamp, segment = control & 31, control >> 8 & 31
        if segment == 0:
            return I(clamp), ZERO, ZERO
        base, limit = c.vtemp(), c.vtemp()
        c.emit("v_and_b32", base, I(segment), lane)
        c.emit("v_or_b32", limit, I(clamp & ~segment), base)
        return limit, base, I(segment)
    mask, clamp_v, base, limit = c.vtemp(), c.vtemp(), c.vtemp(), c.vtemp()
    value = c.vsrc("Rc")
    c.emit("v_bfe_u32", mask, value, I(8), I(5))
    c.emit("v_and_b32", clamp_v, I(31), value)
    c.emit("v_and_b32", base, mask, lane)
    c.emit("v_bfi_b32", limit, mask, base, clamp_v)
    return limit, base, mask


def _indexed(c: RuleEmitter, out: V, step: Arg, base: Arg, segment: Arg) -> None:
    if segment == ZERO:
        c.emit("v_mov_b32", out, step)
        return
    c.emit("v_bfi_b32", out, segment, base, step)  # base has no bits outside the segment mask


# --- votes ----------------------------------------------------------------------------------------


def vote(c: RuleEmitter) -> None:
    """VOTE, VOTEU over the active lanes; Rd is the ballot."""
    voters = c.stemp()
    c.emit("s_and_b32", voters, c.pred("Pp"), EXEC)
    if c.wants_pred("Pu"):
        out = c.stemp()
        if c.ins.has("ANY"):
            c.emit("s_cmp_lg_u32", voters, ZERO)
        elif c.ins.has("ALL"):
            c.emit("s_cmp_eq_u32", voters, EXEC)
        elif c.ins.has("EQ"):
            all_, none = c.stemp(), c.stemp()
            c.emit("s_cmp_eq_u32", voters, EXEC)
            c.emit("s_cselect_b32", all_, ALL, ZERO)
            c.emit("s_cmp_eq_u32", voters, ZERO)
            c.emit("s_cselect_b32", none, ALL, ZERO)
            c.emit("s_or_b32", out, all_, none)
            c.emit("s_cmp_lg_u32", out, ZERO)
        else:
            raise c.refuse("mode of VOTE")
        c.emit("s_cselect_b32", out, ALL, ZERO)
        c.pred_commit("Pu", out)
    reg = c.ins.get("Rd")
    if reg is not None and not c.reg("Rd").is_zero:
        c.give_scalar("Rd", voters)


def match(c: RuleEmitter) -> None:
    """MATCH.ANY: the active lanes with this lane's value.  MATCH.ALL: all of them, or none."""
    wide = c.ins.has("U64")
    value = c.vtuple("Ra", 2 if wide else 1)
    save, left, same = c.stemp(), c.stemp(), c.stemp()
    firsts = [c.stemp() for _ in range(value.n)]
    if c.ins.has("ALL"):
        _equal_to_first(c, value, firsts, same)
        out = c.stemp()
        c.emit("s_cmp_eq_u32", same, EXEC)
        c.emit("s_cselect_b32", out, EXEC, ZERO)
        c.emit("s_cselect_b32", left, ALL, ZERO)
        if c.wants_pred("Pu"):
            c.pred_commit("Pu", left)
        c.give_scalar("Rd", out)
        return
    result = c.vtemp()
    c.emit("s_mov_b32", save, EXEC)
    c.emit("s_mov_b32", left, EXEC)
    again, done = c.k.label("Lmatch"), c.k.label("Lmatch_done")
    c.branch("s_cbranch_execz", done)
    c.mark(again)
    _equal_to_first(c, value, firsts, same)
    c.emit("s_mov_b32", EXEC, same)
    c.emit("v_mov_b32", result, same)
    c.emit("s_and_not1_b32", left, left, same)
    c.emit("s_mov_b32", EXEC, left)
    c.branch("s_cbranch_execnz", again)
    c.mark(done)
    c.emit("s_mov_b32", EXEC, save)
    c.emit("v_mov_b32", c.dst_last(), result)


def _equal_to_first(c: RuleEmitter, value: V, firsts: list[S], same: S) -> None:
    for i, first in enumerate(firsts):
        word = V(value.index + i)
        c.emit("v_readfirstlane_b32", first, word)
        hit = same if i == 0 else c.stemp()
        c.emit("v_cmp_eq_u32", hit, first, word)
        if i:
            c.emit("s_and_b32", same, same, hit)


_REDUX = {
    ("SUM", ""): ("s_add_u32", 0),
    ("AND", ""): ("s_and_b32", 0xFFFFFFFF),
    ("OR", ""): ("s_or_b32", 0),
    ("XOR", ""): ("s_xor_b32", 0),
    ("MIN", "S32"): ("s_min_i32", 0x7FFFFFFF),
    ("MAX", "S32"): ("s_max_i32", 0x80000000),
    ("MIN", ""): ("s_min_u32", 0xFFFFFFFF),
    ("MAX", ""): ("s_max_u32", 0),
}


def redux(c: RuleEmitter) -> None:
    """REDUX: combines Ra of the active lanes in a loop, one lane per turn; Rd is uniform."""
    op = next((m for m in ("SUM", "AND", "OR", "XOR", "MIN", "MAX") if c.ins.has(m)), "AND")
    sort = "S32" if c.ins.has("S32") and op in ("MIN", "MAX") else ""
    name, identity = _REDUX[op, sort]
    value = c.vsrc("Ra")
    total, left, lane, item = c.stemp(), c.stemp(), c.stemp(), c.stemp()
    c.emit("s_mov_b32", total, I(identity))
    c.emit("s_mov_b32", left, EXEC)
    again, done = c.k.label("Lredux"), c.k.label("Lredux_done")
    c.branch("s_cbranch_execz", done)
    c.mark(again)
    c.emit("s_ctz_i32_b32", lane, left)
    c.emit("v_readlane_b32", item, value, lane)
    c.emit(name, total, total, item)
    c.emit("s_bitset0_b32", left, lane)
    c.emit("s_cmp_lg_u32", left, ZERO)
    c.branch("s_cbranch_scc1", again)
    c.mark(done)
    c.give_scalar("Rd", total)


def elect(c: RuleEmitter) -> None:
    """ELECT: the first active lane for which the predicate holds; Rd is its number."""
    voters, leader, out = c.stemp(), c.stemp(), c.stemp()
    c.emit("s_and_b32", voters, c.pred("Pp"), EXEC)
    c.emit("s_ctz_i32_b32", leader, voters)
    if c.wants_pred("Pu"):
        c.emit("s_sub_u32", out, ZERO, voters)
        c.emit("s_and_b32", out, out, voters)
        c.pred_commit("Pu", out, clean=True)
    if not c.reg("Rd").is_zero:
        c.give_scalar("Rd", leader)


def r2ur(c: RuleEmitter) -> None:
    """The first lane's value.  The predicate is true if this lane's value differs: nvcc puts
    it, negated, on BRA.CONV and BRA.DIV, which need one mask in all lanes."""
    first = c.to_s(c.src("Ra"), uniform=not c.wants_pred("Pu"))
    if c.wants_pred("Pu"):
        differ = c.stemp()
        c.emit("v_cmp_ne_u32", differ, first, c.vsrc("Ra"))
        if c.ins.has("OR"):  # or the predicate was already true
            c.emit("s_or_b32", differ, differ, c.pred("Pu"))
            c.emit("s_and_b32", differ, differ, EXEC)
        c.pred_commit("Pu", differ, clean=True)
    if not c.reg("Rd").is_zero:
        c.write_uniform(c.reg("Rd"), 0, first)


# --- special registers ----------------------------------------------------------------------------


def special_value(c: RuleEmitter, name: str) -> Arg:
    """A special register by nvdisasm's name."""
    m = c.k.regs
    out = c.vtemp()
    match name:
        case "SR_TID.X":
            c.emit("v_and_b32", out, I(0x3FF), m.tid)
        case "SR_TID.Y":
            c.emit("v_bfe_u32", out, m.tid, I(10), I(10))
        case "SR_TID.Z":
            c.emit("v_bfe_u32", out, m.tid, I(20), I(10))
        case "SR_CTAID.X":
            return c.target.group_id[0]
        case "SR_CTAID.Y":
            return c.target.group_id[1]
        case "SR_CTAID.Z":
            return c.target.group_id[2]
        case "SR_LANEID":
            return lane_id(c)
        case "SR_EQMASK" | "SR_LTMASK" | "SR_LEMASK" | "SR_GTMASK" | "SR_GEMASK":
            _lane_mask(c, out, name[3:5])
        case "SRZ" | "SR_CgaCtaId" | "SR_CgaSize" | "SR_SWINLO" | "SR_LWINLO":
            return ZERO
        case "SR_LMEMHIOFF":  # the lowest offset of the stack, which debug code checks
            return ZERO
        case "SR_SWINHI":
            return c.aperture("src_shared_base")
        case "SR_LWINHI":
            return c.aperture("src_private_base")
        case _ if name == SMID:
            return _multiprocessor(c)
        case _:
            raise c.refuse(f"special register {name}", "SX0414")
    return out


def _multiprocessor(c: RuleEmitter) -> S:
    """:func:`multiprocessor` of the semantics, in scalar registers."""
    at, place = c.k.layout.grid_dim, [c.to_s(x) for x in c.target.group_id]
    number, quotient, pair = c.stemp(), c.stemp(), c.stemp(2)
    count = S(pair.index)
    c.raw(Inst("s_load_b64", (pair, c.target.kernarg, NULL), imm=c.k.smid))
    c.emit("s_mul_i32", number, place[2], c.constant_word(0, at + 4))
    c.emit("s_add_u32", number, number, place[1])
    c.emit("s_mul_i32", number, number, c.constant_word(0, at))
    c.emit("s_add_u32", number, number, place[0])
    c.emit("s_mul_hi_u32", quotient, number, S(pair.index + 1))
    c.emit("s_mul_i32", quotient, quotient, count)
    c.emit("s_sub_u32", number, number, quotient)
    # Below 2 * count; one that is below count becomes larger by the subtraction, which wraps.
    c.emit("s_sub_u32", quotient, number, count)
    c.emit("s_min_u32", number, number, quotient)
    return number


def _lane_mask(c: RuleEmitter, out: V, relation: str) -> None:
    lane = lane_id(c)
    match relation:
        case "EQ":
            c.emit("v_lshlrev_b32", out, lane, I(1))
        case "LT":
            c.emit("v_bfm_b32", out, lane, ZERO)
        case "GE":
            c.emit("v_lshlrev_b32", out, lane, ALL)
        case "LE":
            c.emit("v_lshlrev_b32", out, lane, ALL)
            c.emit("v_lshlrev_b32", out, I(1), out)
            c.emit("v_not_b32", out, out)
        case _:
            c.emit("v_lshlrev_b32", out, lane, ALL)
            c.emit("v_lshlrev_b32", out, I(1), out)


def _clock(c: RuleEmitter, name: str) -> tuple[Arg, Arg]:
    """(low, high) of a clock: RDNA3's of 100 MHz, as nanoseconds or as cycles of 2 GHz.

    RDNA3's own counter of cycles has 20 bits.  A wait until so many cycles have passed, as CUDA
    programs write it, would not end when the counter wraps before; and 64 bits are promised.  The
    rate is within 1 % of the one that the driver reports (CU_DEVICE_ATTRIBUTE_CLOCK_RATE).
    """
    factor = I(20) if name.startswith("SR_CLOCK") else I(10)
    low = c.stemp()
    pair = c.stemp(2)
    c.raw(Inst("s_sendmsg_rtn_b64", (pair,), imm=0x83))  # MSG_RTN_GET_REALTIME
    high = c.stemp()
    c.emit("s_mul_i32", low, S(pair.index), factor)
    c.emit("s_mul_hi_u32", high, S(pair.index), factor)
    c.emit("s_mul_i32", S(pair.index + 1), S(pair.index + 1), factor)
    c.emit("s_add_u32", high, high, S(pair.index + 1))
    return low, high


_OF_LANES = frozenset(
    (
        "SR_LANEID SR_EQMASK SR_LTMASK SR_LEMASK SR_GTMASK "
        "SR_GEMASK SR_TID SR_TID.X SR_TID.Y SR_TID.Z"
    ).split()
)


def s2r(c: RuleEmitter) -> None:
    special = c.operand("sr")
    if not isinstance(special, Special):
        raise c.refuse("no special register", "SX0412")
    name = special.name
    if name.startswith(("SR_CLOCK", "SR_GLOBALTIMER")):
        low, high = _clock(c, name)
        dst = c.dst_last()
        c.emit("v_mov_b32", V(dst.index), high if name.endswith("HI") else low)
        if dst.n == 2:
            c.emit("v_mov_b32", V(dst.index + 1), high)
        return
    value = special_value(c, name)
    if c.reg("Rd").file == "UR":
        if name in _OF_LANES:
            raise c.refuse(f"{name}, which lanes differ in, as a uniform value", "SX0414")
        c.write_uniform(c.reg("Rd"), 0, c.to_s(value))
        for word in range(1, c.reg("Rd").width):
            c.write_uniform(c.reg("Rd"), word, ZERO)
        return
    dst = c.dst_last()
    c.emit("v_mov_b32", V(dst.index), value)
    for i in range(1, dst.n):
        c.emit("v_mov_b32", V(dst.index + i), ZERO)


def nanosleep(c: RuleEmitter) -> None:
    c.raw(Inst("s_sleep", (), imm=1))


def trap(c: RuleEmitter) -> None:
    if not c.ins.has("TRAP"):
        raise c.refuse("breakpoint")
    skip = c.k.label("Lnotrap")
    c.branch("s_cbranch_execz", skip)
    c.raw(Inst("s_trap", (), imm=2))
    c.mark(skip)


def qspc(c: RuleEmitter) -> None:
    """Whether a generic address lies in shared (S), local (L) or global (G) memory."""
    at = address64(c, c.mem(), flat=True)
    if "Rd" in c.ins.operands and not c.reg("Rd").is_zero:
        raise c.refuse("the register that QSPC writes")
    assert isinstance(at.v, V)
    high = V((add64(c, at.v, I(at.imm)) if at.imm else at.v).index + 1)
    shared, local = c.stemp(), c.stemp()
    c.emit("v_cmp_eq_u32", shared, c.aperture("src_shared_base"), high)
    c.emit("v_cmp_eq_u32", local, c.aperture("src_private_base"), high)
    if c.ins.has("D"):  # another block's shared memory: there are no clusters of several blocks
        c.pred_commit("Pu", ZERO, clean=True)
        return
    if c.ins.has("S"):
        hit = shared
    elif c.ins.has("L"):
        hit = local
    else:
        hit = c.stemp()
        c.emit("s_or_b32", hit, shared, local)
        c.emit("s_and_not1_b32", hit, EXEC, hit)
    c.pred_commit("Pu", hit, clean=True)


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "SHFL": "IDX UP DOWN BFLY",
    "VOTE": "ALL ANY EQ",
    "VOTEU": "ALL ANY EQ",
    "MATCH": "ALL ANY U64",
    "REDUX": "SUM AND OR XOR MIN MAX S32",
    "CREDUX": "MIN MAX S32",
    "ELECT": "",
    "R2UR": "OR",
    "S2R": "",
    "S2UR": "",
    "CS2R": "32",
    "CS2UR": "32",
    "NANOSLEEP": "RAND WARP SYNCS",
    "BPT": "TRAP",
    "QSPC": "E S L G D",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("shfl", "SHFL", shfl),
    Rule("vote", "VOTE", vote),
    Rule("voteu", "VOTEU", vote),
    Rule("match", "MATCH", match),
    Rule("redux", "REDUX", redux),
    Rule("credux", "CREDUX", redux),
    Rule("elect", "ELECT", elect),
    Rule("r2ur", "R2UR", r2ur),
    Rule("s2r", "S2R", s2r),
    Rule("s2ur", "S2UR", s2r),
    Rule("cs2r", "CS2R", s2r),
    Rule("cs2ur", "CS2UR", s2r),
    Rule("nanosleep", "NANOSLEEP", nanosleep),
    Rule("bpt", "BPT", trap),
    Rule("qspc", "QSPC", qspc),
)
