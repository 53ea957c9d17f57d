"""The ways out of code that lacks blocks: what a wave leaves to the library, and how."""

from __future__ import annotations

from sassxlate.disasm.rdna3.reads_writes import FIRST, SGPR_BITS
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_HI, EXEC_LO, NULL
from sassxlate.lowering.emulate.image.abi import LeftLayout, Rt, WaveLayout
from sassxlate.lowering.emulate.wave.access.memory_helpers import runtime_call
from sassxlate.lowering.emulate.wave.partial.left_out import SCC, LeftOut
from sassxlate.lowering.emulate.wave.registers import V32, State
from sassxlate.lowering.llvm.ir_text import Function, Module
from sassxlate.lowering.target import LANES

_WORDS = 64  # bits of a word of a set of registers
_V_BYTES = 4 * LANES
_NAME = "leave"


def is_part(module: Module) -> bool:
    """Whether blocks were left out."""
    return _NAME in module.functions


def emit(state: State, fn: Function, module: Module, left: LeftOut, entry: int) -> None:
    """The ways out, at labels ``leave`` with the block's start; after `State.finish`."""
    if not left.live:
        return
    name = _leave(module)
    most = max(vgprs.bit_length() for vgprs in left.vgprs().values())
    size = LeftLayout.VGPR + _V_BYTES * max(most, 1)
    fn.entry.append(f"  %left = alloca [{size} x i8], align 64")
    for start, live in sorted(left.live.items()):
        fn.label(f"leave{start}")
        _store(state, fn, live | 1 << FIRST["s"] + EXEC_LO)
        done = fn.emit_new("load i64, ptr %executed")
        p = fn.emit_new(f"getelementptr i8, ptr %w, i64 {int(WaveLayout.EXECUTED)}")
        fn.do(f"store i64 {done}, ptr {p}")
        fn.do(f"call void {name}(ptr %w, i32 {start - entry}, ptr %left)")
        fn.do("ret void")


def _store(state: State, fn: Function, live: int) -> None:
    """Stores the registers that have a slot; of others the library knows what they began with."""
    scalars, vectors = live & SGPR_BITS, live >> FIRST["v"]
    stored = 0
    for i in _numbers(scalars):
        slot = state.slot_of_s(i) if i not in (NULL, EXEC_HI) else None
        if slot is not None:
            stored |= 1 << i
            _move(fn, "i32", slot, LeftLayout.SCALARS + 4 * i)
    if live & SCC and (slot := state.slot_of_scc()) is not None:
        stored |= 1 << NULL  # which is no register
        value = fn.emit_new(f"load i1, ptr {slot}")
        wide = fn.emit_new(f"zext i1 {value} to i32")
        fn.do(f"store i32 {wide}, ptr {_at(fn, LeftLayout.SCALARS + 4 * NULL)}")
    for i in _numbers(vectors):
        slot = state.slot_of_v(i)
        if slot is not None:
            stored |= 1 << 128 + i
            _move(fn, V32, slot, LeftLayout.VGPR + _V_BYTES * i)
    for word in range((128 + 256) // _WORDS):
        bits = stored >> _WORDS * word & (1 << _WORDS) - 1
        fn.do(f"store i64 {bits}, ptr {_at(fn, LeftLayout.STORED + 8 * word)}")


def _move(fn: Function, type_: str, slot: str, to: int) -> None:
    value = fn.emit_new(f"load {type_}, ptr {slot}")
    fn.do(f"store {type_} {value}, ptr {_at(fn, to)}")


def _at(fn: Function, offset: int) -> str:
    return fn.emit_new(f"getelementptr i8, ptr %left, i64 {offset}")


def _numbers(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def _leave(module: Module) -> str:
    if _NAME not in module.functions:
        module.functions[_NAME] = (
            f"define internal void @{_NAME}(ptr %w, i32 %pc, ptr %left) noinline cold nounwind {{\n"
            + runtime_call(Rt.LEAVE, "void", "ptr %w, i32 %pc, ptr %left")
            + "  ret void\n}\n"
        )
    return f"@{_NAME}"


__all__ = ["emit", "is_part"]
