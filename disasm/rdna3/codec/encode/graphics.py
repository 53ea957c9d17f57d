"""Encoding of formats that are rare in compute code: buffers, interpolation, exports."""

from __future__ import annotations

from sassxlate.disasm.rdna3.codec.decode.graphics import EXPORT_TARGETS
from sassxlate.disasm.rdna3.codec.encode.memory import is_off
from sassxlate.disasm.rdna3.codec.encode.scalar import plain
from sassxlate.disasm.rdna3.codec.encode.vector import check_modifiers
from sassxlate.disasm.rdna3.codec.operands import codes_of, operand_code, place, unsigned_field
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.rdna3.tables.layout import layout
from sassxlate.disasm.rdna3.tables.opcodes import Operand, OpInfo
from sassxlate.errors import EncodeError


def modifiers(inst: Inst, allowed: tuple[str, ...]) -> dict[str, int]:
    """``Inst.more`` as a dictionary; SX0507 if it has a modifier that is not ``allowed``."""
    found = dict(inst.more)
    unknown = [name for name in found if name not in allowed]
    if unknown:
        raise EncodeError("SX0507", f"it has no {unknown[0]}")
    return found


def encode_buffer(inst: Inst, row: OpInfo) -> bytes:
    """MUBUF and MTBUF: data, address or ``off``, descriptor, scalar offset."""
    plain(inst)
    fmt = row.formats[0]
    lay = layout(inst.op, fmt)
    if not row.args:
        return place(lay.base, lay.slots, codes_of(inst, row)).to_bytes(8, "little")
    known = ("offen", "idxen", "tfe") if fmt == "MUBUF" else ("offen", "idxen", "format")
    more = modifiers(inst, known)
    offen, idxen, tfe = more.get("offen", 0), more.get("idxen", 0), more.get("tfe", 0)
    if tfe and row.atomic:
        raise EncodeError("SX0507", "an atomic has no tfe")
    if len(inst.args) != len(row.args):
        raise EncodeError("SX0502", f"takes {len(row.args)} operands, not {len(inst.args)}")
    vdata, vaddr, srsrc, soffset = inst.args
    raw = lay.base | offen << 54 | idxen << 55 | tfe << 53
    raw |= inst.glc << 14 | inst.dlc << 13 | inst.slc << 12
    raw |= unsigned_field(inst.imm, 12, "the offset")
    if fmt == "MTBUF":
        raw |= unsigned_field(more.get("format", 1), 7, "the format") << 19
    wide = row.args[0].n + tfe
    raw |= operand_code(vdata, Operand("vdata", "r", "v", wide, "b32")) - 256 << 40
    if offen + idxen:
        address = Operand("vaddr", "r", "v", offen + idxen, "b32")
        raw |= operand_code(vaddr, address) - 256 << 32
    elif not is_off(vaddr):
        raise EncodeError("SX0502", "an address needs offen or idxen")
    raw |= operand_code(srsrc, row.args[2]) >> 2 << 48
    return (raw | operand_code(soffset, row.args[3]) << 56).to_bytes(8, "little")


def encode_interp(inst: Inst, row: OpInfo) -> bytes:
    """VINTERP."""
    if inst.abs or inst.omod or inst.dpp or inst.neg_hi or inst.imm:
        raise EncodeError("SX0507", "it has no abs, omod, neg_hi or DPP")
    lay = layout(inst.op, "VINTERP")
    check_modifiers(Inst(inst.op, neg=inst.neg, op_sel=inst.op_sel), lay)
    raw = place(lay.base, lay.slots, codes_of(inst, row))
    wait = modifiers(inst, ("wait_exp",)).get("wait_exp", 0)
    raw |= unsigned_field(wait, 3, "wait_exp") << 8
    return (raw | inst.neg << 61 | inst.op_sel << 11 | inst.clamp << 15).to_bytes(8, "little")


def encode_ldsdir(inst: Inst, row: OpInfo) -> bytes:
    """LDSDIR."""
    plain(inst)
    lay = layout(inst.op, "LDSDIR")
    known = ("attr", "chan", "wait_vdst") if inst.op == "lds_param_load" else ("wait_vdst",)
    more = modifiers(inst, known)
    raw = place(lay.base, lay.slots, codes_of(inst, row))
    raw |= unsigned_field(more.get("attr", 0), 6, "the attribute") << 10
    raw |= unsigned_field(more.get("chan", 0), 2, "the channel") << 8
    raw |= unsigned_field(more.get("wait_vdst", 0), 4, "wait_vdst") << 16
    return raw.to_bytes(4, "little")


def encode_export(inst: Inst, row: OpInfo) -> bytes:
    """EXP: registers that are ``off`` are not enabled."""
    plain(inst)
    more = modifiers(inst, ("target", "done", "row_en"))
    if len(inst.args) != 4:
        raise EncodeError("SX0502", f"takes 4 operands, not {len(inst.args)}")
    target = more.get("target", 0)
    if target not in EXPORT_TARGETS:
        raise EncodeError("SX0508", f"there is no target {target}")
    raw = layout(inst.op, "EXP").base | target << 4
    raw |= more.get("done", 0) << 11 | more.get("row_en", 0) << 13
    for i, arg in enumerate(inst.args):
        if not is_off(arg):
            raw |= 1 << i | operand_code(arg, row.args[i]) - 256 << 32 + 8 * i
    return raw.to_bytes(8, "little")
