"""Stores to surfaces."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import I, Inst
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.memory.texture import table as word
from sassxlate.lowering.rules.memory.texture.table import coordinates, descriptor
from sassxlate.lowering.rules.modifiers import SCOPES, SIZES
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import EXEC


def sust(c: RuleEmitter) -> None:
    """SUST.D: plain bytes; x counts bytes, y rows.  Out of range .TRAP faults, .IGN does
    nothing."""
    shape = next((m for m in c.ins.modifiers if m in ("1D", "2D", "3D")), None)
    if shape is None or not c.ins.has("D"):
        raise c.refuse("this form of a surface store")
    words = coordinates(c, "Ra")
    axes = int(shape[0])
    if len(words) < axes:
        raise c.refuse("coordinates of a surface", "SX0412")
    size = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
    n = next((size[m] for m in c.ins.modifiers if m in size), 4)
    texture = descriptor(c, c.stemp(2))
    data = c.vtuple("Rb", max(1, n // 4))
    numbers = words[:axes]
    save, good, offset = c.stemp(), c.stemp(), c.vtemp()
    with c.scope():
        last = c.vtemp()
        c.emit("v_add_nc_u32", last, I(n - 1), numbers[0])
        c.emit("v_cmp_gt_u32", good, texture.field(word.BYTES_X), last)
        # The first byte, too: just below 2^32 the last one is a small number again.
        fields = (word.BYTES_X, word.HEIGHT, word.DEPTH)
        for field, number in zip(fields, numbers, strict=False):
            if field == word.BYTES_X and n == 1:
                continue
            with c.scope():
                mask = c.stemp()
                c.emit("v_cmp_gt_u32", mask, texture.field(field), number)
                c.emit("s_and_b32", good, good, mask)
    c.emit("v_mov_b32", offset, numbers[0])
    for field, number in zip((word.PITCH, word.SLICE), numbers[1:], strict=False):
        with c.scope():
            term = c.vtemp()
            c.emit("v_mul_lo_u32", term, texture.field(field), number)
            c.emit("v_add_nc_u32", offset, offset, term)
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    if c.ins.has("TRAP"):
        fine = c.k.label("Lsurface")
        c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, good)))
        c.branch("s_cbranch_execz", fine)
        c.raw(Inst("s_trap", (), imm=2))
        c.mark(fine)
        c.raw(Inst("s_mov_b32", (EXEC, save)))
    elif not c.ins.has("IGN"):
        raise c.refuse("boundary mode of a surface store")
    c.raw(Inst("s_and_b32", (EXEC, EXEC, good)))
    store = Inst(f"global_store_b{8 * n}", (offset, data, texture.field(word.BASE, 2)))
    c.raw(store)
    c.raw(Inst("s_mov_b32", (EXEC, save)))


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "SUST": f"D BA 1D 2D 3D TRAP IGN {SIZES} {SCOPES}",
}
RULES: tuple[Rule, ...] = knowing(KNOWN, Rule("sust", "SUST", sust))
