"""Encoding of vector ALU instructions: VOP1, VOP2, VOPC, VOP3, VOP3SD, VOP3P, with DPP."""

from __future__ import annotations

from typing import Final

from sassxlate.disasm.rdna3.codec import dpp
from sassxlate.disasm.rdna3.codec.operands import LIT, codes_of, one_literal, place
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.rdna3.tables.layout import Layout, layout
from sassxlate.disasm.rdna3.tables.opcodes import OpInfo
from sassxlate.disasm.rdna3.tables.operand_codes import NULL, VCC_LO, bits_of
from sassxlate.errors import EncodeError

_SHIFTS64: Final = frozenset({"v_lshlrev_b64", "v_lshrrev_b64", "v_ashrrev_i64"})
_SHORT: Final = ("VOP1", "VOP2", "VOPC")


def check_modifiers(inst: Inst, lay: Layout) -> None:
    """SX0507 if the 64-bit encoding lacks a modifier that the instruction has."""
    if inst.neg & ~lay.neg or inst.abs & ~lay.abs:
        raise EncodeError("SX0507", "neg or abs on an operand that has none")
    if inst.clamp and not lay.clamp:
        raise EncodeError("SX0507", "it has no clamp")
    if inst.omod and not (lay.omod and 0 < inst.omod < 4):
        raise EncodeError("SX0507", f"omod {inst.omod} is not available")
    if inst.op_sel & ~lay.op_sel:
        raise EncodeError("SX0507", "op_sel on an operand that has none")
    neg_hi = 0 if lay.format.name != "VOP3P" or lay.abs else lay.neg
    if inst.neg_hi & ~neg_hi:
        raise EncodeError("SX0507", "neg_hi on an operand that has none")


def scalar_reads(row: OpInfo, codes: list[int]) -> set[int]:
    """The scalar sources that occupy the constant bus (constants and null are free)."""
    scalars: set[int] = set()
    for i, operand in enumerate(row.args):
        code = codes[i]
        constant = 128 <= code < 235 or 240 <= code < 251
        if code < 256 and operand.role != "w" and code != NULL and not constant:
            scalars.add(code | operand.n << 16)  # s0 and s[0:1] are two values
    if "vcc" in row.reads:
        scalars.add(-1)  # LLVM counts the implicit VCC beside an explicit one
    return scalars


def _uses_bus(row: OpInfo, codes: list[int]) -> bool:
    if row.reads and "vcc" in row.reads:
        return True
    for code in codes:
        if code >= LIT or (code < 256 and not (128 <= code < 235 or 240 <= code < 251)):
            return True
    return False


def check_constant_bus(row: OpInfo, codes: list[int]) -> None:
    """At most two scalar values, literal included (one for 64-bit shifts)."""
    if not _uses_bus(row, codes):  # like most
        return
    # A literal that is read by operands of two widths counts twice, as in LLVM.
    widths = {bits_of(a.type) for a, code in zip(row.args, codes, strict=True) if code >= LIT}
    count = len(scalar_reads(row, codes)) + len(widths)
    limit = 1 if row.op in _SHIFTS64 else 2
    if count > limit:
        raise EncodeError("SX0504", f"reads {count} scalar values, the limit is {limit}")


def fits_short(inst: Inst, lay: Layout, codes: list[int]) -> str | None:
    """Why the 32-bit encoding cannot express it; None if it can."""
    if inst.clamp or inst.omod:
        return "it has no clamp or omod"
    for slot in lay.slots:
        code = codes[slot.arg]
        if slot.bias and (code < 256 or code >= LIT):
            return f"{slot.operand.field} must be a VGPR"
    for i in lay.vcc:
        if codes[i] != VCC_LO:
            return f"{lay.info.args[i].field} must be vcc_lo"
    if lay.halves or inst.op_sel:
        halves = 0
        for place_, bit, arg in lay.halves:
            if 256 <= codes[arg] < LIT:
                halves |= bit
                if codes[arg] >= 384:
                    return "16-bit operands are in v0 to v127"
            del place_
        if inst.op_sel & ~halves:
            return "op_sel selects no half of a VGPR"
    return None


def _dpp_register(lay: Layout, codes: list[int]) -> int:
    if not lay.dpp:
        raise EncodeError("SX0507", "it has no DPP")
    register = -1
    for operand, code in zip(lay.info.args, codes, strict=True):
        if code >= LIT:
            raise EncodeError("SX0507", "DPP excludes a literal")
        if operand.field in ("src0", "src1") and code < 256:
            raise EncodeError("SX0507", f"with DPP {operand.field} must be a VGPR")
        if operand.field == "src0":
            register = code - 256
    return register


def _short(inst: Inst, lay: Layout, codes: list[int]) -> bytes:
    raw = place(lay.base, lay.slots, codes)
    if inst.op_sel:
        for bit_place, bit, _ in lay.halves:
            if inst.op_sel & bit:
                raw |= 1 << bit_place
    if inst.dpp:
        source, word = dpp.parse(inst.dpp)
        register = _dpp_register(lay, codes)
        if inst.op_sel & 1:
            register |= 0x80
        word |= register
        for i in (0, 1):
            word |= (inst.neg >> i & 1) << 20 + 2 * i | (inst.abs >> i & 1) << 21 + 2 * i
        return (raw & ~0x1FF | source | word << 32).to_bytes(8, "little")
    literal = one_literal(codes)
    if literal is None:
        return raw.to_bytes(4, "little")
    return (raw | literal << 32).to_bytes(8, "little")


def _long(inst: Inst, lay: Layout, codes: list[int]) -> bytes:
    check_modifiers(inst, lay)
    check_constant_bus(lay.info, codes)
    raw = place(lay.base, lay.slots, codes) | inst.clamp << 15 | inst.neg << 61
    if lay.format.name == "VOP3P":
        high = inst.abs if lay.abs else inst.neg_hi
        raw |= high << 8 | inst.op_sel << 11
        raw |= (inst.op_sel_hi & 3) << 59 | (inst.op_sel_hi >> 2 & 1) << 14
    else:
        raw |= inst.omod << 59 | inst.abs << 8 | inst.op_sel << 11
    if inst.dpp:
        source, word = dpp.parse(inst.dpp)
        word |= _dpp_register(lay, codes)
        return (raw & ~(0x1FF << 32) | source << 32 | word << 64).to_bytes(12, "little")
    literal = one_literal(codes)
    if literal is None:
        return raw.to_bytes(8, "little")
    return (raw | literal << 64).to_bytes(12, "little")


def encode_valu(inst: Inst, row: OpInfo) -> bytes:
    """A vector ALU instruction in its shortest format.

    Raises:
        EncodeError: SX0502 to SX0507.
    """
    if inst.y is not None:
        raise EncodeError("SX0502", "only v_dual_* has a second half")
    codes = codes_of(inst, row)
    formats = row.formats
    first = formats[0]
    if first in _SHORT:
        lay = layout(inst.op, first)
        reason = fits_short(inst, lay, codes)
        signs = inst.neg | inst.abs
        if signs and reason is None:
            if not inst.dpp or inst.dpp.startswith("dpp8"):
                reason = "it has no neg or abs"
            elif signs & ~layout(inst.op, formats[-1]).neg:
                raise EncodeError("SX0507", "neg or abs on an operand that has none")
        if len(formats) == 1 and reason is not None:
            raise EncodeError("SX0507", reason)
        if reason is None and (len(formats) == 1 or "e64" not in inst.enc):
            check_constant_bus(row, codes)
            return _short(inst, lay, codes)
    return _long(inst, layout(inst.op, formats[-1]), codes)
