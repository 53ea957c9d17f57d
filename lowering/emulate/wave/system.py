"""Calls of the native library from a wave: hardware registers, messages."""

from __future__ import annotations

from sassxlate.cfg.rdna3_flow import hwreg
from sassxlate.disasm.rdna3.instruction import I, Inst
from sassxlate.disasm.rdna3.tables.operand_codes import M0
from sassxlate.lowering.emulate.image.abi import Rt, WaveLayout
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Val, const

_DEALLOC_VGPRS = 3
_GET_REALTIME = 0x83
_MODE, _SHADER_CYCLES = 1, 29


def runtime(c: Context, rt: Rt, result: str, args: str) -> str:
    """A call through SxRuntime from the wave function; its result's name."""
    fn = c.fn
    p = fn.emit_new(f"getelementptr i8, ptr %w, i64 {int(WaveLayout.RT)}")
    table = fn.emit_new(f"load ptr, ptr {p}")
    slot = fn.emit_new(f"getelementptr ptr, ptr {table}, i64 {int(rt)}")
    f = fn.emit_new(f"load ptr, ptr {slot}")
    if result == "void":
        fn.do(f"call void {f}({args})")
        return ""
    return fn.emit_new(f"call {result} {f}({args})")


def _getreg(c: Context, inst: Inst, mode: int | None) -> None:
    register, offset, size = hwreg(inst.imm & 0xFFFF)
    if register == _SHADER_CYCLES:  # has 20 bits
        ref = runtime(c, Rt.CLOCK, "i64", "ptr %w, i32 0")
        value = c.d.and_(c.d.extract(Val(ref, 64, False), 0, 32), const(0xFFFFF, 32))
    elif register == _MODE and mode is not None:
        value = const(mode, 32)
    elif register == _MODE:
        raise c.error(inst, "the rounding or denormal mode is not known here", "SX0622")
    else:
        raise c.error(inst, f"hardware register {register} is not supported")
    field = c.d.and_(c.d.lshr(value, const(offset, 32)), const((1 << size) - 1, 32))
    c.write32(inst, inst.args[0], field)


def _sendmsg(c: Context, inst: Inst) -> None:
    imm = inst.imm & 0xFFFF
    if imm & 0xFF == _DEALLOC_VGPRS:
        return
    m0 = c.state.read_s(M0)
    runtime(c, Rt.MESSAGE, "i64", f"ptr %w, i32 {imm}, i32 {m0.ref}, i32 {c.pc_ref}")


def _sendmsg_rtn(c: Context, inst: Inst) -> None:
    imm = inst.imm & 0xFF
    if inst.args and isinstance(inst.args[-1], I):
        imm = inst.args[-1].value & 0xFF
    if imm == _GET_REALTIME:
        ref = runtime(c, Rt.CLOCK, "i64", "ptr %w, i32 1")
    else:
        m0 = c.state.read_s(M0)
        ref = runtime(c, Rt.MESSAGE, "i64", f"ptr %w, i32 {imm}, i32 {m0.ref}, i32 {c.pc_ref}")
    value = Val(ref, 64, False)
    if inst.op.endswith("b64"):
        c.write64(inst, inst.args[0], value)
    else:
        c.write32(inst, inst.args[0], c.d.extract(value, 0, 32))


def emit_system(c: Context, inst: Inst, mode: int | None) -> bool:
    """Emits the instruction; False if it is of another kind.  `mode` is the MODE register, None if
    a part of it is not known.

    Raises:
        EmulatorError: SX0620, a hardware register that the emulated device does not have; SX0622,
        MODE is read where it is not known.
    """
    op = inst.op
    if op == "s_barrier":
        runtime(c, Rt.BARRIER, "void", f"ptr %w, i32 {c.pc_ref}")
    elif op == "s_sleep":
        runtime(c, Rt.YIELD, "void", f"ptr %w, i32 {c.pc_ref}")
    elif op == "s_getreg_b32":
        _getreg(c, inst, mode)
    elif op in ("s_setreg_b32", "s_setreg_imm32_b32"):
        register, _, _ = hwreg(inst.imm & 0xFFFF)
        if register != _MODE:
            raise c.error(inst, f"hardware register {register} is not supported")
    elif op in ("s_sendmsg", "s_sendmsghalt"):
        _sendmsg(c, inst)
    elif op in ("s_sendmsg_rtn_b32", "s_sendmsg_rtn_b64"):
        _sendmsg_rtn(c, inst)
    else:
        return False
    return True
