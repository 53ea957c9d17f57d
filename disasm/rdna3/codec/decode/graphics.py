"""Formats that are rare in compute code: typed buffers, interpolation, LDS parameters, exports."""

from __future__ import annotations

from sassxlate.disasm.rdna3.codec.decode.fields import check_known, layout_of, operands_of, word_at
from sassxlate.disasm.rdna3.instruction import Arg, Inst, Sp
from sassxlate.disasm.rdna3.tables.operand_codes import LITERAL_MARK, source_table
from sassxlate.errors import EncodeError

OFF = Sp("off")
EXPORT_TARGETS = frozenset((*range(9), *range(12, 17), *range(20, 23)))


def buffer(data: bytes, at: int, low: int) -> tuple[Inst, int]:
    """MUBUF and MTBUF.  ``more`` has offen, idxen and tfe if set, and MTBUF's format."""
    raw = low | word_at(data, at + 4) << 32
    typed = low >> 26 == 0b111010
    lay = layout_of(*(("MTBUF", low >> 15 & 15) if typed else ("MUBUF", low >> 18 & 0xFF)))
    row = lay.info
    if not row.args:
        return Inst(row.op, enc=check_known(lay, raw)), 8
    offen, idxen, tfe = raw >> 54 & 1, raw >> 55 & 1, raw >> 53 & 1
    addresses = offen + idxen
    kept = check_known(lay, raw, 0 if addresses else 0xFF << 32)
    found = operands_of(lay, raw)
    data_n = row.args[0].n + tfe
    registers = source_table("v", data_n, "b32")[raw >> 40 & 0xFF]
    address = OFF if not addresses else source_table("v", addresses, "b32")[raw >> 32 & 0xFF]
    if found[3] is LITERAL_MARK:
        raise EncodeError("SX0524", f"{row.op}: soffset cannot be a literal")
    if registers is None or address is None:
        raise EncodeError("SX0524", f"{row.op}: registers past v255")
    more = [(name, 1) for name, on in (("idxen", idxen), ("offen", offen), ("tfe", tfe)) if on]
    if typed:
        more.append(("format", raw >> 19 & 0x7F))
    inst = Inst(
        row.op,
        (registers, address, *found[2:]),
        raw & 0xFFF,
        glc=bool(raw >> 14 & 1),
        dlc=bool(raw >> 13 & 1),
        slc=bool(raw >> 12 & 1),
        more=tuple(more),
        enc=kept,
    )
    return inst, 8


def interpolate(data: bytes, at: int, low: int) -> tuple[Inst, int]:
    """VINTERP: three VGPRs, with ``wait_exp`` in ``more``."""
    raw = low | word_at(data, at + 4) << 32
    lay = layout_of("VINTERP", low >> 16 & 0x7F)
    kept = check_known(lay, raw)
    args = tuple(operands_of(lay, raw))
    inst = Inst(
        lay.info.op,
        args,
        neg=raw >> 61,
        clamp=bool(raw >> 15 & 1),
        op_sel=raw >> 11 & 15,
        more=(("wait_exp", raw >> 8 & 7),),
        enc=kept,
    )
    return inst, 8


def lds_direct(low: int) -> tuple[Inst, int]:
    """LDSDIR: 32 bits; ``attr``, ``chan`` and ``wait_vdst`` are in ``more``."""
    lay = layout_of("LDSDIR", low >> 20 & 3)
    kept = check_known(lay, low)
    wait = ("wait_vdst", low >> 16 & 15)
    more: tuple[tuple[str, int], ...] = (wait,)
    if lay.info.op == "lds_param_load":
        more = (("attr", low >> 10 & 63), ("chan", low >> 8 & 3), wait)
    return Inst(lay.info.op, tuple(operands_of(lay, low)), more=more, enc=kept), 4


def export(data: bytes, at: int, low: int) -> tuple[Inst, int]:
    """EXP: four registers, ``off`` where not enabled; target, done and row are in ``more``."""
    raw = low | word_at(data, at + 4) << 32
    lay = layout_of("EXP", 0)
    target = low >> 4 & 63
    if target not in EXPORT_TARGETS:
        raise EncodeError("SX0524", f"exp: there is no target {target}")
    unused = sum(0xFF << 32 + 8 * i for i in range(4) if not low >> i & 1)
    kept = check_known(lay, raw, unused)
    args: list[Arg] = operands_of(lay, raw)
    args = [arg if low >> i & 1 else OFF for i, arg in enumerate(args)]
    more = [("target", target)]
    more += [(name, 1) for name, bit in (("done", 11), ("row_en", 13)) if low >> bit & 1]
    return Inst("exp", tuple(args), more=tuple(more), enc=kept), 8
