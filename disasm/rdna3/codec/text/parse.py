"""Reads instructions as LLVM prints them: the inverse of :func:`.text.format_inst`.

The result is printed again and compared, so that a text is understood completely or refused.
Instructions that compute code does not use (exports, images) are not read; labels and DPP controls
only by :func:`parse_with_labels`, for lines of a program.
"""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from typing import Final

from sassxlate.disasm.rdna3.codec.text.immediates import depctr_imm, message_number, waitcnt_imm
from sassxlate.disasm.rdna3.codec.text.instruction import format_inst
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, LabelRef, S, Sp, V
from sassxlate.disasm.rdna3.tables.opcodes import OPS, Operand, OpInfo
from sassxlate.disasm.rdna3.tables.operand_codes import ALIASES
from sassxlate.errors import EncodeError, Where

_TUPLE = re.compile(r"([vs])(?:(\d+)|\[(\d+):(\d+)\])(\.[lh])?")
_NUMBER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)")
_FLOAT = re.compile(r"-?\d+\.\d+")
_TAIL = re.compile(
    r" (glc|slc|dlc|gds|clamp|mul:[24]|div:2|offset[01]?:-?(?:0x[0-9a-f]+|\d+)|"
    r"(?:op_sel|op_sel_hi|neg_lo|neg_hi):\[[01,]+\])$"
)
_LABEL = re.compile(r"[A-Za-z_][\w.$]*(?:-[A-Za-z_][\w.$]*)?")
_HALVES = re.compile(r" op_sel_hi:\[([01,]+)\]")
_DPP = re.compile(r" ((?:quad_perm|row_\w+|dpp8|bank_mask):.*)$")
_COUNTER = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")
_DEPCTR = re.compile(r"depctr_(\w+)\((\d+)\)")
_SPECIALS: Final = frozenset(
    {*ALIASES, "off", "null", "vcc", "exec", "src_scc", "src_shared_base", "src_shared_limit",
     "src_private_base", "src_private_limit"}
)  # fmt: skip
_FLOATS: Final = {16: "<e", 32: "<f", 64: "<d"}
_OMOD: Final = {"mul:2": 1, "mul:4": 2, "div:2": 3}


def _refused(text: str, why: str) -> EncodeError:
    return EncodeError("SX0525", f"{why} in {text.strip()!r}", Where(inst=text.strip()))


def parse(text: str) -> Inst:
    """One instruction.  A comment after ``//`` or ``;`` is ignored.

    Raises:
        EncodeError: SX0525, text that is not an instruction, or of a kind that is not read here.
    """
    line = " ".join(re.split(r"//|;", text)[0].split())
    first, *rest = line.split(" :: ")
    inst = _parsed(first, text)
    if rest:
        inst = replace(inst, y=_parsed(rest[0], text))
    for candidate in (inst, replace(inst, enc="e64")):
        try:
            if " ".join(format_inst(candidate).split()) == line:
                return candidate
        except (EncodeError, ValueError, IndexError, KeyError):
            continue
    raise _refused(text, "an operand or modifier that does not fit")


def parse_with_labels(text: str) -> Inst:
    """One instruction of a program, without comment: operands may be labels, and it may have a DPP
    control.

    Raises:
        EncodeError: SX0525 as :func:`parse`.
    """
    line = " ".join(text.split())
    plain, control = line, _DPP.search(line)
    if control is not None:
        name, _, rest = line[: control.start()].partition(" ")
        plain = f"{name.removesuffix('_dpp')} {rest}"
    first, *second = plain.split(" :: ")
    head, _, last = first.rpartition(", ")
    message = message_number(last)
    inst = _parsed(first if message is None else head, text, labels=True)
    if message is not None:
        inst = replace(inst, imm=message)
    if (halves := _HALVES.search(line)) is not None:  # a bit that no source has is as it is unsaid
        inst = replace(inst, op_sel_hi=inst.op_sel_hi | 7 & -1 << len(halves[1].split(",")))
    if second:
        inst = replace(inst, y=_parsed(second[0], text))
    if control is not None:
        inst = replace(inst, dpp=control[1])
    for candidate in (inst, replace(inst, enc="e64")):
        try:
            if " ".join(format_inst(candidate).split()) == line:
                return candidate
        except (EncodeError, ValueError, IndexError, KeyError):
            continue
    raise _refused(text, "an operand or modifier that does not fit")


def _parsed(line: str, text: str, *, labels: bool = False) -> Inst:
    name, _, operands = line.partition(" ")
    op = name if name in OPS else re.sub(r"_e(32|64)$", "", name)
    row = OPS.get(op)
    if row is None:
        raise _refused(text, f"no instruction {name}")
    changes: dict[str, int | bool] = {}
    body = f" {operands}"
    while (tail := _TAIL.search(body)) is not None:
        changes |= _modifier(tail[1])
        body = body[: tail.start()]
    inst = Inst(op)
    if row.kind in ("wait", "hint", "mode") or op.startswith("s_waitcnt"):
        return replace(inst, **_immediate(op, body.strip(), row, text))  # type: ignore[arg-type]
    args: list[Arg] = []
    signs = {"neg": 0, "abs": 0, "op_sel": 0}
    for i, part in enumerate(p.strip() for p in body.split(",") if p.strip()):
        operand = row.args[i] if i < len(row.args) else None
        if labels and part not in _SPECIALS and _LABEL.fullmatch(part) and not _TUPLE.match(part):
            args.append(LabelRef(part))
            continue
        args.append(_operand(part, operand, signs, text))
    scalar = "SMEM" not in row.forms and row.kind in ("salu", "branch")
    if scalar and len(args) > len(row.args) and isinstance(args[-1], I):
        changes["imm"] = args[-1].value
        args.pop()
    if "SMEM" in row.forms and len(args) == len(row.args) + 1 and isinstance(args[-1], I):
        changes["imm"] = args[-1].value
        args[-1] = Sp("null")
    for key, bits in signs.items():
        if bits:
            changes[key] = changes.get(key, 0) | bits
    return replace(inst, args=tuple(args), **changes)  # type: ignore[arg-type]


def _modifier(word: str) -> dict[str, int | bool]:
    name, _, value = word.partition(":")
    if word in _OMOD:
        return {"omod": _OMOD[word]}
    if not value:
        return {name: True}
    if name.startswith("offset"):
        return {"imm2" if name == "offset1" else "imm": int(value, 0)}
    bits = [int(b) for b in value[1:-1].split(",")]
    field = "neg" if name == "neg_lo" else name
    return {field: sum(b << i for i, b in enumerate(bits))}


def _immediate(op: str, body: str, row: OpInfo, text: str) -> dict[str, object]:
    """The arguments and simm16 of waits and changes of MODE."""
    if _NUMBER.fullmatch(body):
        return {"imm": int(body, 0)}
    if op == "s_waitcnt" and (found := _COUNTER.findall(body)):
        counts = {name.removesuffix("cnt"): int(n) for name, n in found}
        return {"imm": waitcnt_imm(**counts)}
    if op == "s_waitcnt_depctr" and (found := _DEPCTR.findall(body)):
        return {"imm": depctr_imm(**{name: int(n) for name, n in found})}
    register, _, number = body.partition(", ")
    if row.args and _NUMBER.fullmatch(number):
        return {"args": (_operand(register, None, {}, text),), "imm": int(number, 0)}
    if not body:
        return {}
    raise _refused(text, "an immediate that is not read")


def _operand(part: str, operand: Operand | None, signs: dict[str, int], text: str) -> Arg:
    """An operand; its signs and half are recorded by the index of its source."""
    source = -1
    if operand is not None:
        source = {"src0": 0, "src1": 1, "src2": 2, "vdst": 3}.get(operand.field, -1)
    if part.startswith("neg(") and part.endswith(")"):
        signs["neg"] |= 1 << max(source, 0)
        part = part[4:-1]
    elif part.startswith(("-|", "-v", "-s")):
        signs["neg"] |= 1 << max(source, 0)
        part = part[1:]
    if part.startswith("|") and part.endswith("|"):
        signs["abs"] |= 1 << max(source, 0)
        part = part[1:-1]
    found = _TUPLE.fullmatch(part)
    if found is not None:
        first = int(found[2] or found[3])
        n = 1 if found[2] else int(found[4]) - first + 1
        if found[5] == ".h":
            signs["op_sel"] |= 1 << max(source, 0)
        return V(first, n) if found[1] == "v" else S(first, n)
    if part in _SPECIALS:
        wide = operand is not None and operand.n == 2 and part.startswith("src_")
        return Sp("scc" if part == "src_scc" else part, 2 if wide else 1)
    return I(_constant(part, operand, text))


def _constant(part: str, operand: Operand | None, text: str) -> int:
    typ = operand.type if operand is not None else "b32"
    digits = re.sub(r"\D", "", typ)
    width = int(digits) if digits in ("16", "32", "64") else 32
    if part.startswith("lit(") and part.endswith(")"):
        part = part[4:-1]
    if _NUMBER.fullmatch(part):
        value = int(part, 0)
        if typ == "f64" and part.startswith("0x"):
            return value << 32
        return value if width == 64 or operand is None else value & 0xFFFFFFFF
    if part.startswith("0.15915494"):
        return {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}[width]
    if _FLOAT.fullmatch(part):
        layout = _FLOATS[width if typ.startswith(("f", "b", "i", "u", "pk")) else 32]
        return int.from_bytes(struct.pack(layout, float(part)), "little")
    raise _refused(text, f"{part!r} is not an operand")
