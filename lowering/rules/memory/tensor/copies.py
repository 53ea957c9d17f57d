"""Copies between global tensors and shared memory by tensor maps (UTMALDG, UTMASTG): of tiles
(``box.py``) and of columns of pixels (``pixels.py``); reductions (UTMAREDG) of tiles
(``reductions.py``)."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import I, Inst
from sassxlate.disasm.sass.instruction import Reg
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.memory.asynchronous import bytes_arrive, nothing
from sassxlate.lowering.rules.memory.tensor.box import TensorCopy
from sassxlate.lowering.rules.memory.tensor.pixels import PixelCopy
from sassxlate.lowering.rules.memory.tensor.reductions import TensorReduction
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import EXEC


def _tensor(c: RuleEmitter, it: TensorCopy) -> None:
    inwards, done = it.inwards, c.k.label("Lnone")
    c.branch("s_cbranch_execz", done)
    it.read()
    it.describe()
    it.copy()
    c.raw(Inst("s_mov_b32", (EXEC, it.save)))
    if inwards:
        box = c.reg("box")
        with c.scope():
            total, size = c.stemp(), c.stemp()
            c.raw(Inst("s_and_b32", (size, it.flags, I(3))))
            c.raw(Inst("s_lshl_b32", (total, it.inner, size)))
            c.raw(Inst("s_mul_i32", (total, total, it.rows)))
            barrier = c.to_s(c.value(Reg("UR", box.index + 1)))
            bytes_arrive(c, barrier, total)
        c.raw(Inst("s_mov_b32", (EXEC, it.save)))
    c.mark(done)


def load(c: RuleEmitter) -> None:
    """UTMALDG: once per warp; the box's bytes arrive at the barrier, also those outside of the
    tensor.  In a cluster of one block .MULTICAST is a copy to that block."""
    _tensor(c, (PixelCopy if c.ins.has("IM2COL") else TensorCopy)(c, inwards=True))


def store(c: RuleEmitter) -> None:
    """UTMASTG: once per warp."""
    _tensor(c, (PixelCopy if c.ins.has("IM2COL") else TensorCopy)(c, inwards=False))


def reduce(c: RuleEmitter) -> None:
    """UTMAREDG: once per warp."""
    if c.ins.has("IM2COL"):
        raise c.refuse("a reduction of pixels")
    _tensor(c, TensorReduction(c))


# The modifiers that each rule translates or refuses.
KNOWN: Mapping[str, str] = {
    "UTMALDG": "1D 2D 3D 4D 5D IM2COL MULTICAST",
    "UTMASTG": "1D 2D 3D 4D 5D IM2COL",
    "UTMAREDG": "1D 2D 3D 4D 5D IM2COL ADD MIN MAX INC DEC AND OR XOR",
    "UTMACCTL": "IV PF IVALL",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("utmaldg", "UTMALDG", load, temporaries=32),
    Rule("utmastg", "UTMASTG", store, temporaries=32),
    Rule("utmaredg", "UTMAREDG", reduce, temporaries=48),
    # The cache of tensor maps, which are read from memory each time.
    Rule("utmacctl", "UTMACCTL", nothing),
)
