"""Text of instructions as llvm-mc and llvm-objdump print it."""

from __future__ import annotations

from typing import Final

from sassxlate.disasm.rdna3.codec.encode.memory import is_off, present
from sassxlate.disasm.rdna3.codec.encode.vector import fits_short
from sassxlate.disasm.rdna3.codec.operands import codes_of, literal_of, mixed
from sassxlate.disasm.rdna3.codec.text.graphics import buffer_text, export_text, ldsdir_text
from sassxlate.disasm.rdna3.codec.text.immediates import immediate_text, swizzle_text
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, Label, S, Sp, V
from sassxlate.disasm.rdna3.tables.layout import layout
from sassxlate.disasm.rdna3.tables.opcodes import OPS, Operand, OpInfo, info
from sassxlate.disasm.rdna3.tables.operand_codes import bits_of, inline_code, literal_word

_FLOATS: Final = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0")
_SPECIAL: Final = {"scc": "src_scc"}
_OMOD: Final = ("", " mul:2", " mul:4", " div:2")


def constant_text(value: int, typ: str, forced: bool = False) -> str:
    """A constant in an operand of a type; ``forced``: a literal although an inline form exists."""
    code = inline_code(value, typ)
    if code is not None and not forced:
        return _inline_text(code, typ)
    word = literal_word(value, typ)
    return hex(value) if word is None else literal_text(word, typ)


def literal_text(word: int, typ: str) -> str:
    """A literal; ``lit()`` encloses a value that the assembler would otherwise encode as an inline
    constant.

    For 16-bit operands LLVM prints the lower half if that is unambiguous, and what it compares
    with depends on the type.
    """
    if typ == "f64":
        code = inline_code(word << 32, typ)
        return "0" if word == 0 else f"{word:#x}" if code is None else _inline_text(code, typ)
    low = word & 0xFFFF
    if typ == "mixed f32":
        inline = inline_code(low, "f16") is not None or word != low
    elif typ in ("f16", "bf16"):
        inline = inline_code(low, typ) is not None
    elif bits_of(typ) == 16:
        inline = inline_code(word, "b32") is not None
    else:
        inline = inline_code(word, typ) is not None
        if typ == "pk_f16x2" and word >> 16 == low:
            inline = inline_code(low, "f16") is not None
    half = bits_of(typ) == 16 and typ != "bf16"
    return f"lit({word:#x})" if inline else f"{low if half else word:#x}"


def _inline_text(code: int, typ: str) -> str:
    if code <= 192:
        return str(code - 128)
    if code <= 208:
        return str(192 - code)
    if code == 248:
        return "0.15915494309189532" if bits_of(typ) == 64 else "0.15915494"
    return _FLOATS[code - 240]


def operand_text(arg: Arg, operand: Operand | None = None, forced: bool = False) -> str:
    """An operand's text, without its modifiers."""
    if isinstance(arg, V):
        return _tuple_text("v", arg.index, arg.n)
    if isinstance(arg, S):
        return _tuple_text("s", arg.index, arg.n)
    if isinstance(arg, Sp):
        if arg.name.startswith("ttmp") and arg.n > 1:
            return _tuple_text("ttmp", int(arg.name[4:]), arg.n)
        if arg.n == 2 and arg.name in ("vcc_lo", "exec_lo"):
            return arg.name[:-3]
        return _SPECIAL.get(arg.name, arg.name)
    if isinstance(arg, I):
        if (
            operand is not None
            and operand.cls == "i"
            and operand.field == "lit"
            and operand.type != "b32"
        ):
            return f"{literal_word(arg.value, operand.type) or 0:#x}"
        return constant_text(arg.value, operand.type if operand else "b32", forced)
    return arg.name


def _tuple_text(letter: str, index: int, n: int) -> str:
    return f"{letter}{index}" if n == 1 else f"{letter}[{index}:{index + n - 1}]"


def describe(inst: Inst) -> str:
    """A short text of an instruction that may be illegal, for messages."""
    parts = ", ".join(operand_text(arg) for arg in inst.args)
    tail = f" imm:{inst.imm:#x}" if inst.imm else ""
    more = f" :: {describe(inst.y)}" if inst.y is not None else ""
    return f"{inst.op} {parts}".rstrip() + tail + more


def _bits(value: int, count: int) -> str:
    return "[" + ",".join(str(value >> i & 1) for i in range(count)) + "]"


def is_short(inst: Inst, row: OpInfo) -> bool:
    """Whether encode() chooses the 32-bit encoding of a vector ALU instruction."""
    first = row.formats[0]
    if first not in ("VOP1", "VOP2", "VOPC"):
        return False
    if len(row.forms) == 1:
        return True
    if "e64" in inst.enc or fits_short(inst, layout(inst.op, first), codes_of(inst, row)):
        return False
    return not (inst.neg | inst.abs) or inst.dpp.startswith(("quad", "row"))


def _valu_text(inst: Inst, row: OpInfo) -> str:
    short = is_short(inst, row)
    name = inst.op + _suffix(inst, row, short)
    vop3p = "VOP3P" in row.forms
    forms = row.formats
    lay = layout(inst.op, forms[0] if short else forms[-1])
    halves = "VOP3P" not in forms
    parts: list[str] = []
    operands = mixed(row, inst) if row.mixed else row.args
    for i, operand in enumerate(operands):
        arg = inst.args[i]
        text = _source_text(inst, row, i, operand)
        source = {"src0": 0, "src1": 1, "src2": 2, "vdst": 3}.get(operand.field, 3)
        if operand.half and halves and isinstance(arg, V):
            text += ".h" if inst.op_sel >> source & 1 else ".l"
        if source < 3 and not (vop3p and not lay.abs):
            if inst.abs >> source & 1:
                text = f"|{text}|"
            if inst.neg >> source & 1:
                plain = isinstance(arg, I) and not inst.abs >> source & 1 and text[0] != "l"
                text = f"neg({text})" if plain else f"-{text}"
        parts.append(text)
    return f"{name} {', '.join(parts)}".rstrip() + _valu_tail(inst, row, short, lay.abs)


# LLVM's type of an operand if it differs from the instruction's.
_PRINTED_AS: Final = {
    ("v_cndmask_b16", "src0"): "i16",
    ("v_cndmask_b16", "src1"): "i16",
    ("v_ldexp_f16", "src1"): "f16",
}


def _source_text(inst: Inst, row: OpInfo, i: int, operand: Operand) -> str:
    """An operand's text; Inst.enc has the meaning of a literal if its value is ambiguous."""
    arg = inst.args[i]
    forced = inst.enc != "" and f"lit{i}" in inst.enc
    if not isinstance(arg, I) or operand.cls == "i":
        return operand_text(arg, operand, forced)
    typ = _PRINTED_AS.get((row.op, operand.field), operand.type)
    code = None if forced else inline_code(arg.value, operand.type)
    if code is not None:
        if row.is_wmma and code == 248:
            return _inline_text(248, "f64")  # LLVM prints it with all digits, whatever the type
        return f"{arg.value:#x}" if typ == "i16" and code >= 240 else _inline_text(code, typ)
    word = literal_word(arg.value, operand.type)
    if "word:" in inst.enc and operand.half:
        word = literal_of(inst.enc)
    if word is None:
        return operand_text(arg, operand, forced)
    return literal_text(word, "mixed f32" if row.mixed and typ == "f32" else typ)


def _suffix(inst: Inst, row: OpInfo, short: bool) -> str:
    forms = row.formats
    if inst.dpp:
        if short:
            return "" if "VOPC" in forms else "_dpp"
        return "_e64_dpp"
    if len(forms) == 1 or row.op in ("v_nop", "v_pipeflush"):
        return ""
    return "_e32" if short else "_e64"


def _valu_tail(inst: Inst, row: OpInfo, short: bool, mixed: int) -> str:
    out = ""
    sources = sum(a.field.startswith("src") and a.type != "mask" for a in row.args)
    if "VOP3P" in row.forms:
        if inst.op_sel:
            out += f" op_sel:{_bits(inst.op_sel, sources)}"
        default = 0 if mixed else (1 << sources) - 1
        hi = inst.op_sel_hi & (1 << sources) - 1
        if hi != default and "no_op_sel" not in row.flags:
            out += f" op_sel_hi:{_bits(hi, sources)}"
        if not mixed:
            count = 3 if sources == 3 else sources
            if inst.neg:
                out += f" neg_lo:{_bits(inst.neg, count)}"
            if inst.neg_hi:
                out += f" neg_hi:{_bits(inst.neg_hi, count)}"
    elif inst.op_sel and not short and row.op != "v_cndmask_b16":
        out += " op_sel:" + _op_sel_text(inst, row, sources)
    if row.kind == "interp":
        out = " clamp" * inst.clamp + out + f" wait_exp:{dict(inst.more).get('wait_exp', 0)}"
    elif inst.clamp:
        out += " clamp"
    out += _OMOD[inst.omod]
    return out + (f" {inst.dpp}" if inst.dpp else "")


def _op_sel_text(inst: Inst, row: OpInfo, sources: int) -> str:
    op_sel = inst.op_sel
    if row.op.startswith(("v_permlane", "v_cmpx")) or (inst.dpp and row.op.startswith("v_cmp")):
        return _bits(op_sel, 2)
    if row.op.startswith("v_fmac"):
        sources = 3
    return _bits(op_sel & (1 << sources) - 1 | (op_sel >> 3 & 1) << sources, sources + 1)


def _vopd_text(inst: Inst) -> str:
    halves = [inst] if inst.y is None else [inst, inst.y]
    out: list[str] = []
    for half in halves:
        row = info(half.op)
        parts = [
            operand_text(arg, row.args[i] if i < len(row.args) else None, f"lit{i}" in half.enc)
            for i, arg in enumerate(half.args)
        ]
        out.append(f"{half.op} {', '.join(parts)}")
    return " :: ".join(out)


def _scalar_text(inst: Inst, row: OpInfo) -> str:
    args = list(inst.args)
    imm = inst.imm
    label = None
    if len(args) > len(row.args):
        last = args.pop()
        if isinstance(last, I):
            imm = last.value
        else:
            label = operand_text(last)
    parts = [
        operand_text(arg, operand, f"lit{i}" in inst.enc)
        for i, (arg, operand) in enumerate(zip(args, row.args, strict=False))
    ]
    extra = label if label is not None else immediate_text(inst.op, row, imm)
    if extra is not None:
        if inst.op.startswith("s_setreg"):
            parts.insert(0, extra)
        elif extra:
            parts.append(extra)
    return f"{inst.op} {', '.join(parts)}".rstrip()


def _smem_text(inst: Inst, row: OpInfo) -> str:
    args = list(inst.args)
    imm = inst.imm
    if len(args) > len(row.args):
        last = args.pop()
        if isinstance(last, I):
            imm += last.value
        elif not is_off(last):
            args.append(last)
    parts = [operand_text(arg) for arg in args]
    if inst.op.startswith("s_atc_probe"):
        probe = dict(inst.more).get("probe", 0)
        parts.insert(0, str(probe) if probe <= 64 else f"{probe:#x}")
    tail = ""
    if row.args:
        offset = f"{imm:#x}" if imm >= 0 else f"-{-imm:#x}"
        if len(args) == len(row.args):
            parts.append(offset if imm else "null")
        elif imm:
            tail = f" offset:{offset}"
    return f"{inst.op} {', '.join(parts)}".rstrip() + tail + _cache_text(inst)


def _cache_text(inst: Inst) -> str:
    return " glc" * inst.glc + " slc" * inst.slc + " dlc" * inst.dlc


def _ds_text(inst: Inst, row: OpInfo) -> str:
    parts = ", ".join(operand_text(arg) for arg in inst.args)
    tail = ""
    if "2addr" in inst.op:
        tail += f" offset0:{inst.imm}" if inst.imm else ""
        tail += f" offset1:{inst.imm2}" if inst.imm2 else ""
    elif inst.imm and inst.op == "ds_swizzle_b32":
        tail += f" offset:{swizzle_text(inst.imm)}"
    elif inst.imm:
        tail += f" offset:{inst.imm}"
    return f"{inst.op} {parts}".rstrip() + tail + " gds" * (inst.gds or "gds" in row.flags)


def _flat_text(inst: Inst, row: OpInfo) -> str:
    args = list(inst.args)
    if row.kind != "flat" and len(args) == len(present(inst, row)) - 1:
        args.append(Sp("off"))
    parts = ["off" if is_off(arg) else operand_text(arg) for arg in args]
    tail = f" offset:{inst.imm}" if inst.imm else ""
    return f"{inst.op} {', '.join(parts)}" + tail + _cache_text(inst)


def format_inst(inst: Inst) -> str:
    """One instruction in LLVM's syntax, without its comment.

    Raises:
        EncodeError: SX0501, an unknown mnemonic; SX0502 and SX0503, impossible operands.
    """
    row = OPS.get(inst.op) or info(inst.op)
    kind = row.kind
    if kind in ("valu", "interp"):
        return _vopd_text(inst) if row.is_vopd else _valu_text(inst, row)
    if kind in ("flat", "global", "scratch"):
        return _flat_text(inst, row)
    if kind == "lds":
        return _ds_text(inst, row)
    if kind in ("buffer", "ldsdir", "export"):
        parts = [
            "off" if is_off(a) and i == 1 else operand_text(a) for i, a in enumerate(inst.args)
        ]
        if kind == "buffer":
            return buffer_text(inst, parts, _cache_text(inst))
        return ldsdir_text(inst, parts) if kind == "ldsdir" else export_text(inst, parts)
    if "SMEM" in row.forms:
        return _smem_text(inst, row)
    return _scalar_text(inst, row)


def format_item(item: Item) -> str:
    """One line of a program: a label, or an indented instruction with its comment."""
    if isinstance(item, Label):
        return f"{item.name}:" + (f"  // {item.comment}" if item.comment else "")
    text = f"\t{format_inst(item)}"
    return f"{text:<56}// {item.comment}" if item.comment else text


def format_program(items: tuple[Item, ...] | list[Item]) -> str:
    """A program as assembly text that llvm-mc accepts."""
    return "".join(format_item(item) + "\n" for item in items)
