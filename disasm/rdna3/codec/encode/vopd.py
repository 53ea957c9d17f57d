"""Encoding of VOPD: two instructions at once, with the rules of RDNA3 ISA, section 7.6."""

from __future__ import annotations

from typing import Final

from sassxlate.disasm.rdna3.codec.encode.vector import scalar_reads
from sassxlate.disasm.rdna3.codec.operands import LIT, codes_of, one_literal
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.rdna3.tables.layout import layout
from sassxlate.disasm.rdna3.tables.opcodes import OPS, OpInfo, info
from sassxlate.disasm.rdna3.tables.operand_codes import LITERAL
from sassxlate.errors import EncodeError

Y_ONLY: Final = 16  # opcodes from here exist only in the second half


def _half(inst: Inst) -> tuple[OpInfo, list[int]]:
    row = OPS.get(inst.op) or info(inst.op)
    if not row.is_vopd:
        raise EncodeError("SX0509", f"{inst.op} cannot be half of a dual instruction")
    if inst.neg or inst.abs or inst.clamp or inst.omod or inst.op_sel or inst.dpp:
        raise EncodeError("SX0507", "a dual instruction has no modifiers")
    return row, codes_of(inst, row)


def _by_field(row: OpInfo, codes: list[int]) -> dict[str, int]:
    out = {operand.field: code for operand, code in zip(row.args, codes, strict=True)}
    if row.op.startswith("v_dual_fmamk"):
        out["src2"] = out["addend"] = out.pop("src1")  # in the field of src1, but the third source
    elif "rw" in (operand.role for operand in row.args):
        out["src2"] = out["vdst"]
    return out


def _check_banks(x: dict[str, int], y: dict[str, int]) -> None:
    """Sources of the two halves come from different banks, destinations are even and odd."""
    if (x["vdst"] ^ y["vdst"]) & 1 == 0:
        raise EncodeError("SX0509", "one destination must be even and the other odd")
    for name, banks in (("src0", 4), ("src1", 4), ("src2", 2)):
        a, b = x.get(name, 0), y.get(name, 0)
        if 256 <= a < LIT and 256 <= b < LIT and a % banks == b % banks:
            raise EncodeError("SX0509", f"{name} of both halves is in VGPR bank {a % banks}")


def encode_vopd(inst: Inst, row: OpInfo) -> bytes:
    """``v_dual_* :: v_dual_*``: the first half is ``inst``, the second ``inst.y``.

    Raises:
        EncodeError: SX0509 for the rules of dual issue, otherwise as for a single instruction.
    """
    if inst.y is None:
        raise EncodeError("SX0509", "a dual instruction needs its second half")
    if inst.y.y is not None:
        raise EncodeError("SX0509", "a dual instruction has two halves")
    xrow, xcodes = _half(inst)
    yrow, ycodes = _half(inst.y)
    if xrow.forms["VOPD"] >= Y_ONLY:
        raise EncodeError("SX0509", f"{inst.op} exists only as the second half")
    x, y = _by_field(xrow, xcodes), _by_field(yrow, ycodes)
    _check_banks(x, y)
    scalars = scalar_reads(xrow, xcodes) | scalar_reads(yrow, ycodes)
    literal = one_literal(xcodes + ycodes)
    if len(scalars) + (literal is not None) > 2:
        raise EncodeError("SX0504", "reads more than two scalar values")
    fields = layout(inst.op, "VOPD").format.fields
    raw = layout(inst.op, "VOPD").base | yrow.forms["VOPD"] << fields["opy"].lo
    raw |= (x["vdst"] - 256) << fields["vdst"].lo | (y["vdst"] - 256 >> 1) << fields["vdsty"].lo
    for codes, names in ((x, ("src0", "src1")), (y, ("srcy0", "srcy1"))):
        raw |= (codes["src0"] if codes["src0"] < LIT else LITERAL) << fields[names[0]].lo
        second = codes.get("src1", codes.get("addend", 0))
        if second:
            raw |= (second - 256) << fields[names[1]].lo
    if literal is None:
        return raw.to_bytes(8, "little")
    return (raw | literal << 64).to_bytes(12, "little")
