"""Shared by the decoders of all formats: words, fields to operands, literals."""

from __future__ import annotations

from sassxlate.disasm.rdna3.instruction import Arg, I
from sassxlate.disasm.rdna3.tables.layout import Layout, layouts
from sassxlate.disasm.rdna3.tables.operand_codes import (
    LITERAL_MARK,
    bits_of,
    inline_code,
    literal_value,
)
from sassxlate.errors import EncodeError


def word_at(data: bytes, at: int) -> int:
    """The 32-bit word at a byte offset; SX0522 past the end."""
    if at + 4 > len(data):
        raise EncodeError("SX0522", "the code ends inside an instruction")
    return int.from_bytes(data[at : at + 4], "little")


def layout_of(fmt: str, opcode: int) -> Layout:
    """The layout of an opcode; SX0520 if the format does not have it."""
    lay = layouts(fmt).get(opcode)
    if lay is None:
        raise EncodeError("SX0520", f"no {fmt} instruction has opcode {opcode}")
    return lay


def check_known(lay: Layout, raw: int, also: int = 0) -> str:
    """The token of Inst.enc that records bits which the hardware ignores; SX0523 for other bits."""
    extra = raw & ~lay.known
    if not extra and not also:
        return ""
    if extra & ~lay.ignored:
        raise EncodeError("SX0523", f"{lay.info.op}: bits {extra & ~lay.ignored:#x} must be zero")
    return f"ignored:{extra | raw & also:X}" if extra | raw & also else ""


def operands_of(lay: Layout, raw: int) -> list[Arg]:
    """The operands; literals are LITERAL_MARK.  SX0524 for a reserved value."""
    out: list[Arg] = []
    for lo, mask, table in lay.plan:
        arg = table[raw >> lo & mask]
        if arg is None:
            value = raw >> lo & mask
            raise EncodeError("SX0524", f"{lay.info.op}: operand code {value:#x} is reserved")
        out.append(arg)
    return out


def fill_literal(lay: Layout, args: list[Arg], word: int) -> str:
    """Replace the literal marks; returns the tokens of Inst.enc for literals that also have an
    inline form."""
    enc = ""
    for i, arg in enumerate(args):
        if arg is LITERAL_MARK:
            operand = lay.info.args[i]
            if operand.type == "lane" or operand.cls == "vi":
                raise EncodeError("SX0524", f"{lay.info.op}: {operand.field} cannot be a literal")
            value = literal_value(word, operand.type)
            shared = any(a.cls == "i" for a in lay.info.args)  # v_fmaak_f16 and v_fmamk_f16
            if word >> 16 and bits_of(operand.type) == 16 and not shared:
                value &= 0xFFFF  # the hardware ignores the upper half
                enc += f" word:{word:X}"
            args[i] = I(value)
            inline = inline_code(value, operand.type) is not None or operand.type == "mix"
            if operand.cls != "i" and inline:
                enc += f" lit{i}"
    return enc


def read_literal(lay: Layout, args: list[Arg], data: bytes, at: int) -> tuple[str, int]:
    """(tokens of enc, bytes read) of the literal word, if the operands have one."""
    for arg in args:
        if arg is LITERAL_MARK:
            return fill_literal(lay, args, word_at(data, at)), 4
    return "", 0
