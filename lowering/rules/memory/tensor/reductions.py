"""Reductions of tiles in shared memory into global tensors (UTMAREDG), element by element.

The instruction names the operation, the tensor map the type.  Measured on an H100
(``fixtures/silicon/sm_90/tensor_reductions.npz``): the sums, extremes and bits are those of the
atomics on global memory, for the pairs of operation and type in :data:`TYPES`; of the others an
illegal instruction, or not measured: here a trap.  FP32 keeps denormals.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.memory.atomic import Kind, global_loop, native_name
from sassxlate.lowering.rules.memory.memory import Address
from sassxlate.lowering.rules.memory.tensor.box import TensorCopy
from sassxlate.lowering.target import EXEC, OFF

TRAP_TYPE: Final = 0x56  # trap id: a reduction of a type that has no such operation
_TYPE_BIT = 24  # of the map's flags
# The atomics' types by CUtensorMapDataType.
_UINT32, _INT32, _UINT64, _INT64, _HALF, _SINGLE, _DOUBLE, _BFLOAT = range(2, 10)
_NAMES: Mapping[int, str] = {
    _UINT32: "u32", _INT32: "i32", _UINT64: "u64", _INT64: "i64", _HALF: "f16x2",
    _SINGLE: "f32 kept", _DOUBLE: "f64", _BFLOAT: "bf16x2",
}  # fmt: skip
_EXTREMES = (_UINT32, _INT32, _UINT64, _INT64, _HALF, _BFLOAT)
_BITS = (_UINT32, _INT32, _UINT64)
TYPES: Mapping[str, tuple[int, ...]] = {
    "ADD": (_UINT32, _INT32, _UINT64, _HALF, _SINGLE, _DOUBLE, _BFLOAT),
    "MIN": _EXTREMES, "MAX": _EXTREMES, "INC": (_UINT32,), "DEC": (_UINT32,),
    "AND": _BITS, "OR": _BITS, "XOR": _BITS,
}  # fmt: skip
_PAIRS = (_HALF, _BFLOAT)  # elements of two bytes, two at a time: rows are whole 16 bytes


class TensorReduction(TensorCopy):
    """One reduction."""

    def __init__(self, c: RuleEmitter) -> None:
        super().__init__(c, inwards=False)
        self.op = next(op for op in TYPES if c.ins.has(op))

    def along_row(self) -> None:
        """The elements of this lane's row, of the map's type."""
        c = self.c
        ways = {kind << _TYPE_BIT: partial(self.elements, kind) for kind in TYPES[self.op]}
        # Scalars that a row does not need are in VGPRs meanwhile: atomics need some of their own.
        idle = [S(self.map.index), S(self.map.index + 1), self.near, self.rows]
        with c.scope():
            kept = [(scalar, c.to_v(scalar)) for scalar in idle]
            with c.scope():
                c.lend(idle)
                self.ways(I(15 << _TYPE_BIT), ways, TRAP_TYPE)
            for scalar, value in kept:
                c.raw(Inst("v_readfirstlane_b32", (scalar, value), uniform=True))

    def elements(self, kind: int) -> None:
        """Reduces a word, or a pair of words, in each step."""
        atomic = Kind(self.op, _NAMES[kind])
        many = 2 if kind in _PAIRS or atomic.words == 2 else 1
        self.steps(4 * atomic.words, many, partial(self.reduced, atomic))

    def reduced(self, atomic: Kind, place: V, now: S) -> None:
        """One step of the lanes ``now``."""
        c, n = self.c, atomic.words
        data, name = c.vtemp(n), native_name(atomic)
        c.raw(Inst(f"ds_load_b{32 * n}", (data, place)))
        c.raw(Inst("s_mov_b32", (EXEC, now)))
        if name is not None:
            c.raw(Inst(f"global_atomic_{name}", (self.far, data, OFF)))
        else:
            global_loop(c, atomic, Address(self.far, OFF, 0), False, data)
        c.raw(Inst("s_mov_b32", (EXEC, self.left)))
