"""One instruction in one format, compiled: the place of every operand, and the meaningful bits.

``layouts(fmt)`` maps an opcode to its Layout; the encoder and the decoder both read it, so that
they cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from sassxlate.disasm.rdna3.instruction import Arg, Sp
from sassxlate.disasm.rdna3.tables.opcodes import FORMATS, OPS, Field, Format, Operand, OpInfo
from sassxlate.disasm.rdna3.tables.operand_codes import LITERAL_MARK, M0, NULL, source_table

FLOATS: Final = frozenset({"f16", "bf16", "f32", "f64"})
EXEC_DST: Final = 126  # v_cmpx in VOP3 has EXEC in its destination field
NO_IMMEDIATE: Final = frozenset(
    {
        "s_wait_idle",
        "s_code_end",
        "s_endpgm_saved",
        "s_endpgm_ordered_ps_done",
        "s_wakeup",
        "s_ttracedata",
        "s_icache_inv",
        "s_barrier",
    }
)
# Of fields that no operand stands for.  Not `(None,) * 512`: mypyc writes such a tuple out.
_NO_ARGS: Final[tuple[Arg | None, ...]] = tuple([None] * 512)
SOURCES: Final = {"src0": 0, "src1": 1, "src2": 2, "vdst": 3}


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of operand ``arg``: its code is ``(field value << step) + bias``."""

    arg: int
    lo: int
    mask: int
    bias: int
    step: int
    operand: Operand


@dataclass(frozen=True, slots=True)
class Layout:
    """An instruction in a format.

    ``base`` has the fixed bits, the opcode and the defaults; ``known`` the bits that are fixed or
    belong to a field, ``ignored`` register fields that the opcode does not use (the hardware
    ignores them); all other bits must be zero.  ``vcc`` lists operands that this format fixes
    to vcc_lo.  ``halves`` lists (bit place, bit of op_sel, operand) of the 16-bit operands of a
    32-bit encoding.  ``op_sel``, ``neg`` and ``abs`` are masks of allowed bits.
    """

    info: OpInfo
    format: Format
    base: int
    known: int
    ignored: int
    slots: tuple[Slot, ...]
    vcc: tuple[int, ...]
    halves: tuple[tuple[int, int, int], ...]
    op_sel: int
    neg: int
    abs: int
    clamp: bool
    omod: bool
    dpp: bool
    plan: tuple[tuple[int, int, tuple[Arg | None, ...]], ...]  # (place, mask, table) per operand


def _field_of(info: OpInfo, fmt: Format, operand: Operand) -> Field | None:
    """The field of an operand, None if the format implies it."""
    name = operand.field
    if name == "sdst" and fmt.name in ("VOP1", "VOP3"):
        place = fmt.fields["vdst"]  # the destination is a scalar register there
        return Field("sd", place.lo, 7)
    return fmt.fields.get(name)


def _table(field: Field, operand: Operand) -> tuple[Arg | None, ...]:
    """Field value to operand; values that the operand's class excludes are None."""
    cls, n, typ = operand.cls, operand.n, operand.type
    if field.kind == "v":
        return source_table("v", n, typ)
    if cls == "sx":
        table = list(source_table("sd", n, typ))
        table[M0] = None
        return tuple(table)
    if field.kind in ("sd", "sb", "sq"):
        return source_table(field.kind, n, typ)
    if field.kind == "s":
        if cls == "sd":
            return source_table("sd", n, typ) + _NO_ARGS[:128]
        return source_table("s", n, typ)
    if cls == "v":
        return _NO_ARGS[:256] + source_table("v", n, typ)
    if cls == "s":
        return source_table("s", n, typ) + _NO_ARGS[:256]
    if cls == "sd":
        return source_table("sd", n, typ) + _NO_ARGS[:384]
    full = source_table("src", n, typ)
    if cls == "vi":
        return (
            *_NO_ARGS[:128], *full[128:209], *_NO_ARGS[:31],
            *full[240:249], *_NO_ARGS[:7], *full[256:],
        )  # fmt: skip
    return full


def _known(fmt: Format, info: OpInfo, slots: list[Slot], op_sel: int, neg: int, abs_: int) -> int:
    known = fmt.mask | fmt.op.mask << fmt.op.lo
    for slot in slots:
        known |= slot.mask << slot.lo
    if fmt.name == "SOPP" and info.op in NO_IMMEDIATE:
        return known
    fields = fmt.fields
    allowed = {
        "op_sel": op_sel,
        "neg": neg,
        "abs": abs_,
        "neg_hi": abs_ if info.op.startswith("v_fma_mix") else neg,
        "clamp": int("clamp" in info.flags or fmt.name == "VINTERP"),
        "omod": 3 if "omod" in info.flags else 0,
        "offset1": 0xFF if "_2addr_" in info.op or info.op.endswith("_2addr") else 0,
    }
    for name, field in fields.items():
        if field.kind == "i":
            known |= allowed.get(name, field.mask) << field.lo
    if fmt.name == "DS":
        known |= 0xFFFF  # offset0 and offset1 are one 16-bit offset or two of 8 bits
    if not info.args and fmt.name in ("SMEM", "MUBUF", "DS"):
        known = fmt.mask | fmt.op.mask << fmt.op.lo
        if info.op.startswith("ds_gws"):
            known |= 0xFFFF
    if fmt.name == "DS":
        known = known & ~(1 << 17) if "no_gds" in info.flags else known | 1 << 17
    if info.op == "ds_nop":
        known &= ~(0xFFFF | 1 << 17)
    if fmt.name == "MUBUF" and "atomic" in info.flags:
        known &= ~(1 << 53)  # no tfe
    if info.op.startswith("s_atc_probe"):
        known = known & ~0x6000 | 0x7F << 6  # in place of the data; neither glc nor dlc
    if info.op == "lds_direct_load":
        known &= ~(0xFF << 8)
    return known


def _modifiers(info: OpInfo, fmt: str) -> tuple[int, int, int]:
    """Masks of the bits of op_sel, neg and abs (VOP3P: neg_lo, and abs for the mixed ones)."""
    op_sel = neg = abs_ = 0
    for operand in info.args:
        bit = SOURCES.get(operand.field)
        if bit is None:
            continue
        if operand.half:
            op_sel |= 1 << bit
        dot2 = info.op.startswith("v_dot2_") and operand.type.startswith("pk_")
        if bit < 3 and (operand.type in FLOATS or dot2):
            neg |= 1 << bit
    if fmt == "VOP3":
        abs_ = neg
    if fmt == "VINTERP":
        op_sel = 15 if op_sel else 0
    if info.op.startswith("v_permlane") and "16" in info.op:
        op_sel = 3
    if fmt == "VOP3P":
        sources = (1 << sum(a.field.startswith("src") for a in info.args)) - 1
        flags = info.flags
        op_sel = 0 if "no_op_sel" in flags else sources
        neg = sources if "neg_lo" in flags else 0
        if "iu" in flags:
            neg = 3  # signedness of the two factors
        abs_ = sources if info.op.startswith("v_fma_mix") else 0
    return op_sel, neg, abs_


def _build(info: OpInfo, fmt: Format, opcode: int) -> Layout:
    base = fmt.value | opcode << fmt.op.lo
    if "gds" in info.flags:
        base |= 1 << 17
    slots: list[Slot] = []
    vcc: list[int] = []
    halves: list[tuple[int, int, int]] = []
    plan: list[tuple[int, int, tuple[Arg | None, ...]]] = []
    short = fmt.size == 4 and fmt.name.startswith("VOP")
    for i, operand in enumerate(info.args):
        if operand.cls == "i":
            plan.append((0, 0, (LITERAL_MARK,)))
            continue
        field = _field_of(info, fmt, operand)
        if field is None:
            vcc.append(i)
            plan.append((0, 0, (Sp("vcc_lo"),)))
            continue
        bias = 256 if field.kind == "v" else 0
        step = {"sb": 1, "sq": 2}.get(field.kind, 0)
        table = _table(field, operand)
        if operand.half and short:
            low = table[-256:-128]  # the top bit of a register's number selects the high half
            table = table[:-256] + low + low
        slots.append(Slot(i, field.lo, field.mask, bias, step, operand))
        plan.append((field.lo, field.mask, table))
        if operand.half and short:
            halves.append((field.lo + 7, 1 << SOURCES[operand.field], i))
    op_sel, neg, abs_ = _modifiers(info, fmt.name)
    known = _known(fmt, info, slots, op_sel, neg, abs_)
    if fmt.name == "VOP3" and info.op.startswith("v_cmpx"):
        base |= EXEC_DST
        known |= 0xFF
    if fmt.name in ("GLOBAL", "FLAT", "SCRATCH"):
        known |= 0x7F << 48
        if fmt.name == "FLAT":
            base |= NULL << 48
            known &= ~(1 << 55 | 1 << 12)  # no scratch address; the offset is 12 bits unsigned
        if fmt.name == "GLOBAL":
            known &= ~(1 << 55)
    if fmt.name == "SMEM" and info.args:
        known |= 0x7F << 57
    registers = sum(f.mask << f.lo for f in fmt.fields.values() if f.kind != "i")
    if any(a.field == "sdst" for a in info.args) and fmt.name in ("VOP1", "VOP3"):
        place = fmt.fields["vdst"]
        registers &= ~(place.mask << place.lo)  # the top bit of a scalar register's number is zero
    return Layout(
        info,
        fmt,
        base,
        known,
        registers & ~known,
        tuple(slots),
        tuple(vcc),
        tuple(halves),
        op_sel,
        neg,
        abs_,
        "clamp" in info.flags,
        "omod" in info.flags,
        "dpp" in info.flags,
        tuple(plan),
    )


_LAYOUTS: Final[dict[tuple[str, str], Layout]] = {}


def layout(op: str, fmt: str) -> Layout:
    """The layout of a mnemonic in one of its formats (KeyError: not one of its formats)."""
    key = (op, fmt)
    known = _LAYOUTS.get(key)
    if known is None:
        known = _LAYOUTS[key] = _build(OPS[op], FORMATS[fmt], OPS[op].forms[fmt])
    return known


@cache
def layouts(fmt: str) -> dict[int, Layout]:
    """Opcode to layout of one format."""
    return {row.forms[fmt]: layout(op, fmt) for op, row in OPS.items() if fmt in row.forms}
