"""Machine code to instructions.  Every bit is accounted for: a bit that is unknown, or set where it
must be clear, is an error, never dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sassxlate.disasm.rdna3.codec import dpp
from sassxlate.disasm.rdna3.codec.decode.fields import (
    check_known,
    fill_literal,
    layout_of,
    operands_of,
    read_literal,
    word_at,
)
from sassxlate.disasm.rdna3.codec.decode.graphics import buffer, export, interpolate, lds_direct
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Sp, V
from sassxlate.disasm.rdna3.tables.layout import Layout, layouts
from sassxlate.disasm.rdna3.tables.opcodes import IMAGES, OPS
from sassxlate.disasm.rdna3.tables.operand_codes import LITERAL_MARK, NULL, scalar, source_table
from sassxlate.errors import EncodeError, Where

_SHORT: Final = {"VOP1", "VOP2", "VOPC"}
_SIGNED: Final = frozenset(
    f"s_{name}_i32"
    for name in (
        "movk",
        "cmovk",
        "addk",
        "mulk",
        *(f"cmpk_{c}" for c in ["eq", "lg", "gt", "ge", "lt", "le"]),
    )
)
_Decoder = Callable[[bytes, int, int], tuple[Inst, int]]


def _scalar(fmt: str, shift: int, mask: int) -> _Decoder:
    def run(data: bytes, at: int, raw: int) -> tuple[Inst, int]:
        lay = layout_of(fmt, raw >> shift & mask)
        imm = 0
        if lay.info.kind == "message" and fmt == "SOP1":
            imm = raw & 0xFF
            raw &= ~0xFF
        kept = check_known(lay, raw)
        args = operands_of(lay, raw)
        enc, more = read_literal(lay, args, data, at + 4)
        return Inst(lay.info.op, tuple(args), imm, enc=(kept + enc).strip()), 4 + more

    return run


def _sopk(data: bytes, at: int, raw: int) -> tuple[Inst, int]:
    fmt = "SOPP" if raw >> 23 == 0b101111111 else "SOPK"
    lay = layout_of(fmt, raw >> 16 & 0x7F if fmt == "SOPP" else raw >> 23 & 0x1F)
    kept = check_known(lay, raw)
    args = operands_of(lay, raw)
    imm = raw & 0xFFFF
    row = lay.info
    if imm >= 0x8000 and (row.op in _SIGNED or row.kind == "branch" or row.op == "s_call_b64"):
        imm -= 0x10000
    _, more = read_literal(lay, args, data, at + 4)
    return Inst(row.op, tuple(args), imm, enc=kept), 4 + more


def _halves(lay: Layout, raw: int, args: list[Arg]) -> int:
    out = 0
    for place, bit, arg in lay.halves:
        if raw >> place & 1 and type(args[arg]) is V:
            out |= bit
    return out


def _short(fmt: str, shift: int, mask: int) -> _Decoder:
    def run(data: bytes, at: int, raw: int) -> tuple[Inst, int]:
        lay = layout_of(fmt, raw >> shift & mask)
        source = raw & 0x1FF
        if source in (250, 233, 234) and lay.plan:
            return _short_dpp(lay, raw, source, word_at(data, at + 4))
        kept = check_known(lay, raw)
        args = operands_of(lay, raw)
        enc, more = read_literal(lay, args, data, at + 4)
        enc = kept + enc
        op_sel = _halves(lay, raw, args) if lay.halves else 0
        return Inst(lay.info.op, tuple(args), op_sel=op_sel, enc=enc.strip()), 4 + more

    return run


def _control(lay: Layout, source: int, word: int) -> str:
    text = dpp.text(source, word)
    if text is None or not lay.dpp:
        raise EncodeError("SX0524", f"{lay.info.op}: no DPP control {word:#010x}")
    return text


def _short_dpp(lay: Layout, raw: int, source: int, word: int) -> tuple[Inst, int]:
    text = _control(lay, source, word)
    raw = raw & ~0x1FF | 256 | word & 0xFF
    args = operands_of(lay, raw)
    neg = abs_ = 0
    if source == 250:
        neg = (word >> 20 & 1) | (word >> 22 & 1) << 1
        abs_ = (word >> 21 & 1) | (word >> 23 & 1) << 1
        long = layouts("VOP3").get(lay.info.forms.get("VOP3", -1))
        signs = lay.neg if long is None else long.neg
        if (neg | abs_) & ~signs:
            raise EncodeError("SX0523", f"{lay.info.op}: a sign modifier on an integer")
    op_sel = _halves(lay, raw, args)
    return Inst(lay.info.op, tuple(args), 0, neg, abs_, op_sel=op_sel, dpp=text), 8


def _vop3(data: bytes, at: int, low: int) -> tuple[Inst, int]:
    opcode = low >> 16 & 0x3FF
    lay = layouts("VOP3").get(opcode) or layouts("VOP3SD").get(opcode)
    if lay is None:
        raise EncodeError("SX0520", f"no VOP3 instruction has opcode {opcode}")
    return _long(lay, data, at, low)


def _vop3p(data: bytes, at: int, low: int) -> tuple[Inst, int]:
    kind = low >> 24 & 3
    if kind == 1:
        return interpolate(data, at, low)
    if kind == 2:
        return lds_direct(low)
    if kind == 3:
        raise EncodeError("SX0520", "no format begins with 0xcf")
    return _long(layout_of("VOP3P", low >> 16 & 0x7F), data, at, low)


def _halve_constants(raw: int, hi: int, args: list[Arg]) -> None:
    """Inline constants of v_fma_mix* are f16 if op_sel_hi selects f16."""
    table = source_table("src", 1, "f16")
    for i, place in enumerate((32, 41, 50)):
        code = raw >> place & 0x1FF
        arg = table[code]
        if hi >> i & 1 and type(arg) is I:
            args[i + 1] = arg


def _check_dpp(lay: Layout, args: list[Arg]) -> None:
    """SX0524 if the second source of a DPP instruction is not a VGPR (gfx11.5 allows others)."""
    for operand, arg in zip(lay.info.args, args, strict=True):
        if operand.field == "src1" and not isinstance(arg, V):
            raise EncodeError("SX0524", f"{lay.info.op}: with DPP src1 must be a VGPR")


def _long(lay: Layout, data: bytes, at: int, low: int) -> tuple[Inst, int]:
    """VOP3, VOP3SD and VOP3P, with a literal or a DPP word."""
    raw = low | word_at(data, at + 4) << 32
    source = raw >> 32 & 0x1FF
    size, control = 8, ""
    if source in (250, 233, 234) and lay.plan:
        word = word_at(data, at + 8)
        control = _control(lay, source, word)
        if source == 250 and word >> 20 & 0xF:
            raise EncodeError("SX0523", f"{lay.info.op}: sign bits in the DPP word of VOP3")
        raw = raw & ~(0x1FF << 32) | (256 | word & 0xFF) << 32
        size = 12
    kept = check_known(lay, raw)
    if lay.info.op.startswith("v_cmpx") and raw & 0xFF != 126:
        raise EncodeError("SX0524", f"{lay.info.op}: the destination must be exec")
    args = operands_of(lay, raw)
    enc, more = read_literal(lay, args, data, at + 8)
    if more and control:
        raise EncodeError("SX0524", f"{lay.info.op}: DPP and a literal")
    if control:
        _check_dpp(lay, args)
    if lay.info.formats[0] in _SHORT:
        enc = "e64" + enc
    enc = f"{kept} {enc}" if kept else enc
    neg, clamp = raw >> 61, bool(raw >> 15 & 1)
    if lay.format.name == "VOP3P":
        high = raw >> 8 & 7
        hi = (raw >> 59 & 3) | (raw >> 14 & 1) << 2
        if lay.info.mixed and hi:
            _halve_constants(raw, hi, args)
        inst = Inst(
            lay.info.op,
            tuple(args),
            0,
            neg,
            high if lay.abs else 0,
            clamp,
            op_sel=raw >> 11 & 7,
            op_sel_hi=hi,
            neg_hi=0 if lay.abs else high,
            dpp=control,
            enc=enc.strip(),
        )
        return inst, size + more
    omod = raw >> 59 & 3
    abs_ = op_sel = 0
    if lay.format.name == "VOP3":
        if not lay.info.op.startswith("v_cmpx"):
            abs_, op_sel = raw >> 8 & 7, raw >> 11 & 15
        else:
            abs_, op_sel = raw >> 8 & 7, raw >> 11 & 15
    inst = Inst(
        lay.info.op, tuple(args), 0, neg, abs_, clamp, omod, op_sel, dpp=control, enc=enc.strip()
    )
    return inst, size + more


def _half(lay: Layout, raw: int, src0: int, src1: int, vdst: int) -> list[Arg]:
    args: list[Arg] = []
    for operand in lay.info.args:
        if operand.field == "vdst":
            args.append(V(vdst))
        elif operand.field == "lit":
            args.append(LITERAL_MARK)
        else:
            code = raw >> src0 & 0x1FF if operand.field == "src0" else 256 + (raw >> src1 & 0xFF)
            arg = source_table("src", 1, operand.type)[code]
            if arg is None:
                raise EncodeError("SX0524", f"{lay.info.op}: operand code {code:#x} is reserved")
            args.append(arg)
    return args


def _vopd(data: bytes, at: int, low: int) -> tuple[Inst, int]:
    raw = low | word_at(data, at + 4) << 32
    x = layout_of("VOPD", raw >> 22 & 15)
    y = layout_of("VOPD", raw >> 17 & 31)
    dst = raw >> 56
    xargs = _half(x, raw, 0, 9, dst)
    yargs = _half(y, raw, 32, 41, (raw >> 49 & 0x7F) << 1 | (dst & 1 ^ 1))
    kept = ""
    for half, bits in ((x, 0xFF << 9), (y, 0xFF << 41)):
        if not any(a.field == "src1" for a in half.info.args) and raw & bits:
            kept += f"ignored:{raw & bits:X} "
    size, words = 8, ["", ""]
    if any(arg is LITERAL_MARK for arg in (*xargs, *yargs)):
        literal = word_at(data, at + 8)
        words = [fill_literal(x, xargs, literal), fill_literal(y, yargs, literal)]
        size = 12
    second = Inst(y.info.op, tuple(yargs), enc=words[1].strip())
    return Inst(x.info.op, tuple(xargs), y=second, enc=(kept + words[0]).strip()), size


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def _smem(data: bytes, at: int, low: int) -> tuple[Inst, int]:
    raw = low | word_at(data, at + 4) << 32
    lay = layout_of("SMEM", low >> 18 & 0xFF)
    kept = check_known(lay, raw)
    args = operands_of(lay, raw)
    if not lay.plan:
        return Inst(lay.info.op, enc=kept), 8
    code = raw >> 57
    if code != NULL:
        offset = scalar(code, 1)
        if offset is None:
            raise EncodeError("SX0524", f"{lay.info.op}: operand code {code:#x} is reserved")
        args.append(offset)
    imm = _signed(raw >> 32 & 0x1FFFFF, 21)
    more = (("probe", raw >> 6 & 0x7F),) if lay.info.op.startswith("s_atc_probe") else ()
    glc, dlc = bool(raw >> 14 & 1), bool(raw >> 13 & 1)
    return Inst(lay.info.op, tuple(args), imm, glc=glc, dlc=dlc, more=more, enc=kept), 8


def _ds(data: bytes, at: int, low: int) -> tuple[Inst, int]:
    raw = low | word_at(data, at + 4) << 32
    lay = layout_of("DS", low >> 18 & 0xFF)
    kept = check_known(lay, raw)
    args = tuple(operands_of(lay, raw))
    gds = bool(raw >> 17 & 1)
    if "gds" in lay.info.flags and not gds:
        raise EncodeError("SX0524", f"{lay.info.op}: the gds bit must be set")
    if "2addr" in lay.info.op:
        return Inst(lay.info.op, args, raw & 0xFF, imm2=raw >> 8 & 0xFF, gds=gds, enc=kept), 8
    return Inst(lay.info.op, args, raw & 0xFFFF, gds=gds, enc=kept), 8


def _flat(data: bytes, at: int, low: int) -> tuple[Inst, int]:
    raw = low | word_at(data, at + 4) << 32
    segment = low >> 16 & 3
    if segment == 3:
        raise EncodeError("SX0520", "no FLAT instruction has segment 3")
    name = ("FLAT", "SCRATCH", "GLOBAL")[segment]
    lay = layout_of(name, low >> 18 & 0x7F)
    row = lay.info
    operands = row.args
    unused = 0
    glc = bool(low >> 14 & 1)
    if row.atomic and not glc:
        operands = operands[1:]
        unused |= 0xFF << 56
    code = raw >> 48 & 0x7F
    if name == "FLAT" and code != NULL:
        raise EncodeError("SX0524", f"{row.op}: it has no scalar base")
    vector = bool(raw >> 55 & 1)
    if name == "SCRATCH" and not vector:
        unused |= 0xFF << 32
    kept = check_known(lay, raw, unused)
    args: list[Arg] = []
    for operand in operands:
        field = operand.field
        if field == "saddr":
            arg = Sp("off") if code == NULL else source_table("sd", operand.n, "b32")[code]
        elif field == "addr" and name == "SCRATCH" and not vector:
            arg = Sp("off")
        else:
            n = 1 if field == "addr" and name == "GLOBAL" and code != NULL else operand.n
            place = lay.format.fields[field].lo
            arg = source_table("v", n, "b32")[raw >> place & 0xFF]
        if arg is None:
            raise EncodeError("SX0524", f"{row.op}: {field} is not a register")
        args.append(arg)
    imm = raw & 0x1FFF if name == "FLAT" else _signed(raw & 0x1FFF, 13)
    dlc, slc = bool(raw >> 13 & 1), bool(raw >> 15 & 1)
    return Inst(row.op, tuple(args), imm, glc=glc, dlc=dlc, slc=slc, enc=kept), 8


def _image(data: bytes, at: int, low: int) -> tuple[Inst, int]:
    del data, at
    name = IMAGES.get(low >> 18 & 0xFF)
    if name is None:
        raise EncodeError("SX0520", f"no MIMG instruction has opcode {low >> 18 & 0xFF}")
    raise EncodeError("SX0521", f"{name}: image instructions are not supported")


def _dispatch() -> tuple[_Decoder | None, ...]:
    """Decoder by the top nine bits."""
    table: list[_Decoder | None] = [None] * 512
    vop2 = _short("VOP2", 25, 0x3F)
    sop2 = _scalar("SOP2", 23, 0x7F)
    for top in range(256):
        table[top] = vop2
    for low in range(4):
        table[0b0111110 << 2 | low] = _short("VOPC", 17, 0xFF)
        table[0b0111111 << 2 | low] = _short("VOP1", 9, 0xFF)
    for top in range(0b100000000, 0b110000000):
        table[top] = sop2
    for top in range(0b101100000, 0b110000000):
        table[top] = _sopk
    table[0b101111101] = _scalar("SOP1", 8, 0xFF)
    table[0b101111110] = _scalar("SOPC", 16, 0x7F)
    wide: dict[int, _Decoder] = {
        0b110010: _vopd,
        0b110011: _vop3p,
        0b110101: _vop3,
        0b110110: _ds,
        0b110111: _flat,
        0b111000: buffer,
        0b111010: buffer,
        0b111100: _image,
        0b111101: _smem,
        0b111110: export,
    }
    for top6, run in wide.items():
        for low in range(8):
            table[top6 << 3 | low] = run
    return tuple(table)


_DISPATCH: Final = _dispatch()


def _check_zeros(inst: Inst) -> None:
    """SX0523 if a register field that the opcode does not use is set and LLVM wants zeros."""
    row = OPS[inst.op]
    if row.is_vopd or "DS" in row.forms or inst.op in ("v_nop", "v_pipeflush"):
        raise EncodeError("SX0523", f"{inst.op}: an unused register field is not zero")


def decode(data: bytes, offset: int = 0, *, strict: bool = False) -> tuple[Inst, int]:
    """The instruction at a byte offset, and its size (4, 8 or 12 bytes).

    Branches keep their signed distance in dwords in ``imm``; see ``branch_target``.  The hardware
    ignores register fields that an opcode does not use; ``strict`` refuses those which LLVM's
    disassembler refuses: in DS, VOPD, v_nop and v_pipeflush.

    Raises:
        EncodeError: SX0520 to SX0524, with the offset and the first word.
    """
    try:
        raw = word_at(data, offset)
        run = _DISPATCH[raw >> 23]
        if run is None:
            raise EncodeError("SX0520", f"no format begins with {raw >> 26:#08b}")
        found = run(data, offset, raw)
        if strict and "ignored" in found[0].enc:
            _check_zeros(found[0])
        return found
    except EncodeError as error:
        word = int.from_bytes(data[offset : offset + 4], "little")
        raise EncodeError(error.code, error.message, Where(offset=offset, word=word)) from None


def decode_program(data: bytes, base: int = 0) -> tuple[tuple[int, Inst], ...]:
    """All instructions of a piece of code, each with its byte offset (plus ``base``).

    Raises:
        EncodeError: as decode(); there is no resynchronisation after an unknown word.
    """
    out: list[tuple[int, Inst]] = []
    at = 0
    while at < len(data):
        inst, size = decode(data, at)
        out.append((base + at, inst))
        at += size
    return tuple(out)


def branch_target(inst: Inst, offset: int) -> int:
    """The byte offset that a direct branch or s_call_b64 at ``offset`` goes to."""
    return offset + 4 + inst.imm * 4
