"""Encoding of LDS and vector memory instructions: DS, FLAT, GLOBAL, SCRATCH."""

from __future__ import annotations

from sassxlate.disasm.rdna3.codec.encode.scalar import plain
from sassxlate.disasm.rdna3.codec.operands import (
    codes_of,
    operand_code,
    place,
    signed_field,
    unsigned_field,
)
from sassxlate.disasm.rdna3.instruction import Arg, Inst, Sp
from sassxlate.disasm.rdna3.tables.layout import Layout, layout
from sassxlate.disasm.rdna3.tables.opcodes import Operand, OpInfo
from sassxlate.disasm.rdna3.tables.operand_codes import NULL
from sassxlate.errors import EncodeError

OFF = Sp("off")


def is_off(arg: Arg) -> bool:
    """Whether an operand is written ``off`` or ``null``, that is, whether there is none."""
    return isinstance(arg, Sp) and arg.name in ("off", "null")


def encode_ds(inst: Inst, row: OpInfo) -> bytes:
    """DS: ``imm`` is the offset in bytes; for ``2addr`` imm and imm2 are counts of elements."""
    plain(inst)
    lay = layout(inst.op, "DS")
    raw = place(lay.base, lay.slots, codes_of(inst, row)) | inst.gds << 17
    if "2addr" in inst.op:
        raw |= unsigned_field(inst.imm, 8, "offset0") | unsigned_field(inst.imm2, 8, "offset1") << 8
    else:
        if inst.imm2:
            raise EncodeError("SX0508", "it has one offset")
        raw |= unsigned_field(inst.imm, 16, "the offset")
    return raw.to_bytes(8, "little")


def present(inst: Inst, row: OpInfo) -> tuple[Operand, ...]:
    """The operands that a FLAT-like instruction has: an atomic has vdst only with glc."""
    if row.atomic and not inst.glc:
        return row.args[1:]
    return row.args


def _cache_bits(inst: Inst) -> int:
    return inst.glc << 14 | inst.dlc << 13 | inst.slc << 15


def encode_flat(inst: Inst, row: OpInfo) -> bytes:
    """FLAT, GLOBAL and SCRATCH.

    GLOBAL with a scalar base takes a 32-bit VGPR offset; SCRATCH takes ``off`` for either part.
    The scalar operand may be left out instead of written ``off``.
    """
    plain(inst)
    name = row.formats[0]
    lay = layout(inst.op, name)
    operands = present(inst, row)
    args = inst.args
    if name != "FLAT" and len(args) == len(operands) - 1:
        args = (*args, OFF)
    if len(args) != len(operands):
        raise EncodeError("SX0502", f"takes {len(operands)} operands, not {len(args)}")
    raw = lay.base | _cache_bits(inst)
    scalar = name != "FLAT" and not is_off(args[-1])
    if not scalar:
        raw |= NULL << 48
    for operand, arg in zip(operands, args, strict=True):
        raw |= _flat_operand(lay, operand, arg, scalar)
    if name == "FLAT":
        return (raw | unsigned_field(inst.imm, 12, "the offset")).to_bytes(8, "little")
    return (raw | signed_field(inst.imm, 13, "the offset")).to_bytes(8, "little")


def _flat_operand(lay: Layout, operand: Operand, arg: Arg, scalar: bool) -> int:
    field = lay.format.fields[operand.field]
    if operand.field == "saddr":
        return operand_code(arg, operand) << field.lo if scalar else 0
    if operand.field == "addr":
        if lay.format.name == "SCRATCH":
            if is_off(arg):
                return 0
            return operand_code(arg, operand) - 256 << field.lo | 1 << 55
        if scalar:
            operand = Operand("addr", "r", "v", 1, "b32")
    return operand_code(arg, operand) - 256 << field.lo
