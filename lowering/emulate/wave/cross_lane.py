"""Cross-lane operations: DPP, permutes, reads and writes of single lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sassxlate.disasm.rdna3.codec import dpp as dpp_text
from sassxlate.disasm.rdna3.instruction import Arg, Inst, V
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.emulate.wave.registers import lane_numbers
from sassxlate.lowering.llvm.ir_text import Val, const, vec_type
from sassxlate.lowering.target import LANES

V32 = vec_type(32)


def shuffle(c: Context, value: Val, source: Sequence[int]) -> Val:
    """Lane i of the result is lane source[i]; a vector of any width."""
    if not value.vec:
        return value
    index = ", ".join(f"i32 {s}" for s in source)
    ref = c.fn.emit(
        f"shufflevector {value.type} {value.ref}, {value.type} poison, <{LANES} x i32> <{index}>"
    )
    return Val(ref, value.width, True)


def _lane_set(bits: int) -> Val:
    text = ", ".join("i1 true" if bits >> i & 1 else "i1 false" for i in range(LANES))
    return Val(f"<{text}>", 1, True)


# --- DPP -------------------------------------------------------------------------------------


def _row_source(control: int, lane: int) -> int | None:
    """The lane that `lane` reads under a 9-bit DPP16 control; None outside its row."""
    row, at = lane & ~15, lane & 15
    n = control & 15
    if control < 0x100:
        return (lane & ~3) + (control >> 2 * (lane & 3) & 3)
    kind = control & 0x1F0
    if kind == 0x100:  # row_shl
        return row + at + n if at + n < 16 else None
    if kind == 0x110:  # row_shr
        return row + at - n if at >= n else None
    if kind == 0x120:  # row_ror
        return row + (at - n) % 16
    if control == 0x140:
        return row + 15 - at
    if control == 0x141:
        return row + (at & 8) + 7 - (at & 7)
    if kind == 0x150:
        return row + n
    if kind == 0x160:
        return row + (at ^ n)
    return None


def dpp(c: Context, inst: Inst, arg: Arg) -> Val:
    """Source 0 after the DPP permutation; records the lanes that the instruction may write."""
    code, word = dpp_text.parse(inst.dpp)
    if not isinstance(arg, V):
        raise c.error(inst, "DPP needs a VGPR")
    if code == 250:
        control = word >> 8 & 0x1FF
        sources = [_row_source(control, lane) for lane in range(LANES)]
        fetch_inactive, zero = bool(word >> 18 & 1), bool(word >> 19 & 1)
        banks, rows = word >> 24 & 15, word >> 28 & 15
        allowed = sum(
            1 << lane
            for lane in range(LANES)
            if rows >> lane // 16 & 1 and banks >> (lane // 4 & 3) & 1
        )
    else:
        pick = word >> 8
        sources = [(lane & ~7) + (pick >> 3 * (lane & 7) & 7) for lane in range(LANES)]
        fetch_inactive, zero, allowed = code == 234, True, 0xFFFFFFFF
    inside = sum(1 << lane for lane, s in enumerate(sources) if s is not None)
    index = [s if s is not None else lane for lane, s in enumerate(sources)]
    value = shuffle(c, c.state.read_v_all(arg.index), index)
    valid = _lane_set(inside)
    if not fetch_inactive:
        active = shuffle(c, c.state.exec_lanes(), index)
        valid = c.d.and_(active, valid)
    write = _lane_set(allowed)
    if zero:
        value = c.d.select(valid, value, const(0, 32))
        c.dpp_enable = None if allowed == 0xFFFFFFFF else write
    else:
        c.dpp_enable = c.d.and_(write, valid)
    return value


def dpp_keep(c: Context, inst: Inst, dst: Arg, value: Val) -> Val:
    """The result in lanes that may be written, otherwise the old value."""
    enable = c.dpp_enable
    if enable is None:
        return value
    if value.width == 64:
        old = c.read64(inst, dst)
    else:
        old = c.read32(inst, dst)
        if value.width == 16:
            old = c.d.extract(old, 16 * (inst.op_sel >> 3 & 1), 16)
    return c.d.select(enable, value, old)


# --- single lanes ------------------------------------------------------------------------------


def _lane_index(c: Context, inst: Inst, arg: Arg) -> Val:
    return c.d.and_(c.read32(inst, arg), const(31, 32))


def _extract(c: Context, value: Val, lane: Val) -> Val:
    if not value.vec:
        return value
    return Val(c.fn.emit(f"extractelement {value.type} {value.ref}, i32 {lane.ref}"), 32, False)


def _readlane(c: Context, inst: Inst) -> None:
    value = c.state.read_v_all(c.vgpr(inst, inst.args[1]))
    c.write32(inst, inst.args[0], _extract(c, value, _lane_index(c, inst, inst.args[2])))


def _readfirstlane(c: Context, inst: Inst) -> None:
    """With no active lane, lane 0 is read."""
    value = c.state.read_v_all(c.vgpr(inst, inst.args[1]))
    first = c.d.and_(c.d.ctz(c.state.exec_mask()), const(31, 32))  # no lane: 32
    c.write32(inst, inst.args[0], _extract(c, value, first))


def _writelane(c: Context, inst: Inst) -> None:
    index = c.vgpr(inst, inst.args[0])
    old = c.d.splat(c.state.read_v_all(index))
    value, lane = c.read32(inst, inst.args[1]), _lane_index(c, inst, inst.args[2])
    ref = c.fn.emit(f"insertelement {V32} {old.ref}, i32 {value.ref}, i32 {lane.ref}")
    c.state.write_v_all(index, Val(ref, 32, True))


# --- permutes ----------------------------------------------------------------------------------


def gather_lanes(c: Context, value: Val, index: Val) -> Val:
    """Lane i of the result is lane index[i] (0 to 31) of `value`."""
    if not value.vec:
        return value
    index = c.d.splat(index)
    if c.d.avx512:
        halves: list[str] = []
        for half in range(2):
            lo = ", ".join(f"i32 {i}" for i in range(16))
            hi = ", ".join(f"i32 {i + 16}" for i in range(16))
            cut = [
                c.fn.emit(f"shufflevector {V32} {v.ref}, {V32} poison, <16 x i32> <{part}>")
                for v, part in ((value, lo), (value, hi), (index, (lo, hi)[half]))
            ]
            name = "@llvm.x86.avx512.vpermi2var.d.512"
            c.module.declare(f"<16 x i32> {name}(<16 x i32>, <16 x i32>, <16 x i32>)")
            halves.append(
                c.fn.emit(
                    f"call <16 x i32> {name}(<16 x i32> {cut[0]}, <16 x i32> {cut[2]}, "
                    f"<16 x i32> {cut[1]})"
                )
            )
        both = ", ".join(f"i32 {i}" for i in range(LANES))
        ref = c.fn.emit(
            f"shufflevector <16 x i32> {halves[0]}, <16 x i32> {halves[1]}, "
            f"<{LANES} x i32> <{both}>"
        )
        return Val(ref, 32, True)
    data, where = c.fn.buffer("lanes", 128), c.fn.buffer("index", 128)
    c.fn.do(f"store {V32} {value.ref}, ptr {data}, align 64")
    c.fn.do(f"store {V32} {index.ref}, ptr {where}, align 64")
    c.fn.do(f"call void {_gather_helper(c)}(ptr {data}, ptr {where})")
    return Val(c.fn.emit_new(f"load {V32}, ptr {where}, align 64"), 32, True)


def _gather_helper(c: Context) -> str:
    """@lanes.gather(data, index): the values overwrite the index."""
    c.module.functions.setdefault(
        "lanes.gather",
        "define internal void @lanes.gather(ptr %data, ptr %index) noinline nounwind {\n"
        "entry:\n  br label %loop\nloop:\n"
        "  %i = phi i64 [ 0, %entry ], [ %j, %loop ]\n"
        "  %p = getelementptr i32, ptr %index, i64 %i\n"
        "  %n = load i32, ptr %p\n  %n64 = zext i32 %n to i64\n"
        "  %q = getelementptr i32, ptr %data, i64 %n64\n"
        "  %v = load i32, ptr %q\n  store i32 %v, ptr %p\n"
        "  %j = add i64 %i, 1\n  %c = icmp ult i64 %j, 32\n"
        "  br i1 %c, label %loop, label %done\ndone:\n  ret void\n}\n",
    )
    return "@lanes.gather"


def _lane_of_byte_address(c: Context, inst: Inst, addr: Arg) -> Val:
    d = c.d
    byte = d.add(c.read32(inst, addr), c.displacement(inst, 32))
    return d.and_(d.lshr(byte, const(2, 32)), const(31, 32))


def _active_or_zero(c: Context, inst: Inst, arg: Arg) -> Val:
    value = c.d.splat(c.read32(inst, arg))
    return c.d.select(c.state.exec_lanes(), value, const(0, 32))


def _bpermute(c: Context, inst: Inst) -> None:
    """Inactive source lanes read as 0."""
    index = _lane_of_byte_address(c, inst, inst.args[1])
    data = _active_or_zero(c, inst, inst.args[2])
    c.write32(inst, inst.args[0], gather_lanes(c, data, index))


def _permute(c: Context, inst: Inst) -> None:
    """Pushes: the highest active lane that targets a lane wins; other lanes get 0."""
    index = _lane_of_byte_address(c, inst, inst.args[1])
    data, where, out = (c.fn.buffer(n, 128) for n in ("lanes", "index", "pushed"))
    value = c.d.splat(c.read32(inst, inst.args[2]))
    c.fn.do(f"store {V32} {value.ref}, ptr {data}, align 64")
    c.fn.do(f"store {V32} {c.d.splat(index).ref}, ptr {where}, align 64")
    c.fn.do(f"store {V32} zeroinitializer, ptr {out}, align 64")
    c.module.declare("i32 @llvm.cttz.i32(i32, i1)")
    c.module.functions.setdefault(
        "lanes.push",
        "define internal void @lanes.push(ptr %data, ptr %index, ptr %out, i32 %exec) "
        "noinline nounwind {\n"
        "entry:\n  %any = icmp ne i32 %exec, 0\n  br i1 %any, label %loop, label %done\nloop:\n"
        "  %m = phi i32 [ %exec, %entry ], [ %m2, %loop ]\n"
        "  %l = call i32 @llvm.cttz.i32(i32 %m, i1 true)\n"
        "  %m1 = sub i32 %m, 1\n  %m2 = and i32 %m, %m1\n  %l64 = zext i32 %l to i64\n"
        "  %p = getelementptr i32, ptr %index, i64 %l64\n"
        "  %n = load i32, ptr %p\n  %n64 = zext i32 %n to i64\n"
        "  %q = getelementptr i32, ptr %data, i64 %l64\n  %v = load i32, ptr %q\n"
        "  %o = getelementptr i32, ptr %out, i64 %n64\n  store i32 %v, ptr %o\n"
        "  %c = icmp ne i32 %m2, 0\n"
        "  br i1 %c, label %loop, label %done\ndone:\n  ret void\n}\n",
    )
    mask = c.state.exec_mask().ref
    c.fn.do(f"call void @lanes.push(ptr {data}, ptr {where}, ptr {out}, i32 {mask})")
    ref = c.fn.emit_new(f"load {V32}, ptr {out}, align 64")
    c.write32(inst, inst.args[0], Val(ref, 32, True))


def _swizzle_source(imm: int, lane: int) -> int:
    if imm >> 15 & 1:  # quad permutation
        return (lane & ~3) + (imm >> 2 * (lane & 3) & 3)
    and_, or_, xor = imm & 31, imm >> 5 & 31, imm >> 10 & 31
    return ((lane & and_) | or_) ^ xor


def _rotate_source(imm: int, lane: int) -> int:
    """Rotate mode: bits 4 to 0 keep lane bits, 9 to 5 the distance, 10 the direction."""
    keep, by = imm & 31, imm >> 5 & 31
    moved = lane - by if imm >> 10 & 1 else lane + by
    return (lane & keep) | (moved & 31 & ~keep)


def _swizzle(c: Context, inst: Inst) -> None:
    imm = inst.imm & 0xFFFF
    if imm >= 0xE000:
        raise c.error(inst, "the FFT mode of ds_swizzle is not supported")
    pick = _rotate_source if imm >= 0xC000 else _swizzle_source
    data = _active_or_zero(c, inst, inst.args[1])
    c.write32(inst, inst.args[0], shuffle(c, data, [pick(imm, i) for i in range(LANES)]))


def _permlane16(cross: bool) -> Callable[[Context, Inst], None]:
    def emit(c: Context, inst: Inst) -> None:
        """Each lane of a row of 16 picks a lane of its row, or of the other one."""
        d = c.d
        lane = lane_numbers()
        low, high = (c.read32(inst, a) for a in inst.args[2:4])
        word = d.select(_lane_set(0x00FF00FF), d.splat(low), d.splat(high))
        bit = d.shl(d.and_(lane, const(7, 32)), const(2, 32))
        nibble = d.and_(d.lshr(word, bit), const(15, 32))
        row = d.and_(lane, const(16, 32))
        index = d.or_(nibble, d.xor(row, const(16, 32)) if cross else row)
        data = c.d.splat(c.state.read_v_all(c.vgpr(inst, inst.args[1])))
        value = gather_lanes(c, data, index)
        if not inst.op_sel & 1:  # inactive lanes are not fetched
            active = d.zext(c.state.exec_lanes(), 32)
            there = d.eq(gather_lanes(c, active, index), const(1, 32))
            old = const(0, 32) if inst.op_sel & 2 else c.read32(inst, inst.args[0])
            value = d.select(there, value, old)
        c.write32(inst, inst.args[0], value)

    return emit


def _permlane64(c: Context, inst: Inst) -> None:
    """A wave of 32 has no other half: no effect."""


def _swap(c: Context, inst: Inst) -> None:
    a, b = (c.read32(inst, arg) for arg in inst.args[:2])
    c.write32(inst, inst.args[0], b)
    c.write32(inst, inst.args[1], a)


EMITTERS: dict[str, Callable[[Context, Inst], None]] = {
    "v_readlane_b32": _readlane,
    "v_readfirstlane_b32": _readfirstlane,
    "v_writelane_b32": _writelane,
    "ds_bpermute_b32": _bpermute,
    "ds_permute_b32": _permute,
    "ds_swizzle_b32": _swizzle,
    "v_permlane16_b32": _permlane16(False),
    "v_permlanex16_b32": _permlane16(True),
    "v_permlane64_b32": _permlane64,
    "v_swap_b32": _swap,
}

__all__ = ["EMITTERS", "dpp", "dpp_keep", "gather_lanes", "shuffle"]
