"""Encoding of scalar ALU, program control and scalar memory instructions."""

from __future__ import annotations

from sassxlate.disasm.rdna3.codec.operands import (
    codes_of,
    one_literal,
    operand_code,
    place,
    signed_field,
    unsigned_field,
)
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, LabelRef, Sp
from sassxlate.disasm.rdna3.tables.layout import layout
from sassxlate.disasm.rdna3.tables.opcodes import Operand, OpInfo
from sassxlate.disasm.rdna3.tables.operand_codes import NULL
from sassxlate.errors import EncodeError

_OFFSET = Operand("soffset", "r", "sd", 1, "b32")


def plain(inst: Inst) -> None:
    """SX0507 if an instruction has modifiers that only vector instructions have."""
    if inst.neg or inst.abs or inst.clamp or inst.omod or inst.op_sel or inst.neg_hi:
        raise EncodeError("SX0507", "it has no neg, abs, clamp, omod or op_sel")
    if inst.dpp or inst.y is not None:
        raise EncodeError("SX0507", "it has neither DPP nor a second half")


def encode_sop(inst: Inst, row: OpInfo) -> bytes:
    """SOP1, SOP2, SOPC: one literal at most, shared by equal constants."""
    plain(inst)
    lay = layout(inst.op, row.formats[0])
    codes = codes_of(inst, row)
    raw = place(lay.base, lay.slots, codes)
    if row.kind == "message":
        return (raw | _imm(inst, 8)).to_bytes(4, "little")
    if inst.imm:
        raise EncodeError("SX0508", "it has no immediate")
    literal = one_literal(codes)
    if literal is None:
        return raw.to_bytes(4, "little")
    return (raw | literal << 32).to_bytes(8, "little")


def _imm(inst: Inst, bits: int) -> int:
    if not -(1 << bits - 1) <= inst.imm < 1 << bits:
        raise EncodeError("SX0508", f"the immediate {inst.imm} does not fit in {bits} bits")
    return inst.imm & (1 << bits) - 1


def with_immediate(inst: Inst, row: OpInfo) -> tuple[tuple[Arg, ...], int]:
    """(operands, simm16): a trailing constant operand is the immediate."""
    args = inst.args
    if len(args) == len(row.args) + 1:
        last = args[-1]
        if isinstance(last, LabelRef):
            raise EncodeError("SX0510", f"the label {last.name!r} is not resolved")
        if not isinstance(last, I) or inst.imm:
            raise EncodeError("SX0502", f"takes {len(row.args)} operands and an immediate")
        value = last.value
        if not -0x8000 <= value <= 0xFFFF:
            raise EncodeError("SX0508", f"the immediate {value} does not fit in 16 bits")
        return args[:-1], value & 0xFFFF
    return args, _imm(inst, 16)


def encode_sopk(inst: Inst, row: OpInfo) -> bytes:
    """SOPK and SOPP; the immediate is ``imm`` or one more operand."""
    plain(inst)
    lay = layout(inst.op, row.formats[0])
    args, imm = with_immediate(inst, row)
    codes = codes_of(inst, row, args)
    raw = place(lay.base, lay.slots, codes) | imm
    literal = one_literal(codes)
    if literal is None:
        return raw.to_bytes(4, "little")
    return (raw | literal << 32).to_bytes(8, "little")


def encode_smem(inst: Inst, row: OpInfo) -> bytes:
    """SMEM: data, base and an optional scalar offset; ``imm`` is the offset in bytes."""
    plain(inst)
    lay = layout(inst.op, "SMEM")
    args, imm, offset = inst.args, inst.imm, NULL
    if row.args and len(args) == len(row.args) + 1:
        last, args = args[-1], args[:-1]
        if isinstance(last, I):
            imm += last.value
        elif not (isinstance(last, Sp) and last.name in ("null", "off")):
            offset = operand_code(last, _OFFSET)
    codes = codes_of(inst, row, args)
    raw = place(lay.base, lay.slots, codes)
    if not row.args:
        return raw.to_bytes(8, "little")
    raw |= inst.glc << 14 | inst.dlc << 13 | offset << 57
    if inst.op.startswith("s_atc_probe"):
        if inst.glc or inst.dlc:
            raise EncodeError("SX0507", "it has neither glc nor dlc")
        raw |= unsigned_field(dict(inst.more).get("probe", 0), 7, "the probe") << 6
    if "buffer" in inst.op:
        raw |= unsigned_field(imm, 20, "the offset") << 32
    else:
        raw |= signed_field(imm, 21, "the offset") << 32
    return raw.to_bytes(8, "little")
