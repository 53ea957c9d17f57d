"""Arguments to operand codes, with all checks that do not depend on the encoding."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.tables.layout import Slot
from sassxlate.disasm.rdna3.tables.opcodes import Operand, OpInfo
from sassxlate.disasm.rdna3.tables.operand_codes import (
    ALIASES,
    LITERAL,
    NULL,
    SGPRS,
    inline_code,
    literal_word,
)
from sassxlate.errors import EncodeError

LIT: Final = 1 << 40  # a code with this bit is a literal: the word is in bits 0-31
_HALVES: Final = frozenset({"vcc_hi", "exec_hi", "m0"})


def operand_code(arg: Arg, operand: Operand, forced: bool = False) -> int:
    """The source code of an argument (see operand.py), or LIT and a literal word."""
    if isinstance(arg, V):
        return _vector_code(arg, operand)
    if isinstance(arg, S):
        return _scalar_code(arg, operand)
    if isinstance(arg, Sp):
        return _special_code(arg, operand)
    if isinstance(arg, I):
        return _constant_code(arg.value, operand, forced)
    raise EncodeError("SX0510", f"the label {getattr(arg, 'name', arg)!r} is not resolved")


def _vector_code(arg: V, operand: Operand) -> int:
    if operand.cls not in ("v", "src", "vi"):
        raise EncodeError("SX0502", f"{operand.field} cannot be a VGPR")
    if arg.n != operand.n:
        raise EncodeError("SX0502", f"{operand.field} takes {operand.n} VGPRs, not {arg.n}")
    if not 0 <= arg.index <= 256 - arg.n:
        raise EncodeError("SX0503", f"v{arg.index} does not exist ({arg.n} registers)")
    return 256 + arg.index


def _scalar_code(arg: S, operand: Operand) -> int:
    index, n = arg.index, arg.n
    if operand.cls not in ("s", "sd", "sx", "src"):
        raise EncodeError("SX0502", f"{operand.field} cannot be an SGPR")
    if n != operand.n:
        raise EncodeError("SX0502", f"{operand.field} takes {operand.n} SGPRs, not {n}")
    if not 0 <= index <= SGPRS - n:
        raise EncodeError("SX0503", f"s{index} does not exist (s0 to s105, {n} registers)")
    if n > 1 and index % min(n, 4):
        step = min(n, 4)
        raise EncodeError(
            "SX0503", f"s[{index}:{index + n - 1}] must start at a multiple of {step}"
        )
    return index


def _special_code(arg: Sp, operand: Operand) -> int:
    name, n = arg.name, operand.n
    code = ALIASES.get(name)
    if code is None:
        raise EncodeError("SX0502", f"no special register {name!r}")
    if operand.cls not in ("s", "sd", "sx", "src") or (code > 127 and operand.cls in ("sd", "sx")):
        raise EncodeError("SX0502", f"{operand.field} cannot be {name}")
    if operand.cls == "sx" and name == "m0":
        raise EncodeError("SX0502", f"{operand.field} cannot be m0")
    if code == NULL or (name in ("vcc", "exec") and n == 2):
        return code
    if arg.n != n and not (n == 2 and arg.n == 1 and code > 127):
        raise EncodeError("SX0502", f"{operand.field} is {n * 32} bits, {name} is {arg.n * 32}")
    if (n > 1 and name in _HALVES) or (n > 2 and not name.startswith("ttmp")):
        raise EncodeError("SX0502", f"{operand.field} is {n * 32} bits")
    if name.startswith("ttmp") and ((code - 108) % min(n, 4) or code + n > NULL):
        raise EncodeError("SX0503", f"{name} cannot start a tuple of {n}")
    return code


def _constant_code(value: int, operand: Operand, forced: bool) -> int:
    if operand.cls not in ("s", "src", "vi"):
        raise EncodeError("SX0502", f"{operand.field} cannot be a constant")
    code = None if forced else inline_code(value, operand.type)
    if code is not None:
        return code
    word = literal_word(value, operand.type)
    if word is None:
        raise EncodeError("SX0505", f"{value:#x} is not a constant of type {operand.type}")
    if operand.cls == "vi" or operand.type == "lane":
        raise EncodeError("SX0505", f"{operand.field} cannot be a literal")
    return LIT | word


def mixed(row: OpInfo, inst: Inst) -> tuple[Operand, ...]:
    """The operands of v_fma_mix*, whose sources are f16 if op_sel_hi is set, otherwise f32."""
    return tuple(
        replace(a, type="f16" if inst.op_sel_hi >> i - 1 & 1 else "f32") if i else a
        for i, a in enumerate(row.args)
    )


def codes_of(inst: Inst, row: OpInfo, args: tuple[Arg, ...] | None = None) -> list[int]:
    """The code of every operand of the row, in order (``args`` replaces ``inst.args``)."""
    given = inst.args if args is None else args
    if len(given) != len(row.args):
        raise EncodeError("SX0502", f"takes {len(row.args)} operands, not {len(given)}")
    enc = inst.enc
    out: list[int] = []
    operands = mixed(row, inst) if row.mixed else row.args
    for i, operand in enumerate(operands):
        arg = given[i]
        if operand.cls != "i":
            out.append(operand_code(arg, operand, enc != "" and f"lit{i}" in enc))
            continue
        word = literal_word(arg.value, operand.type) if isinstance(arg, I) else None
        if word is None:
            raise EncodeError("SX0505", f"the operand must be a literal of type {operand.type}")
        out.append(LIT | word)
    return out


def literal_of(enc: str) -> int:
    """The literal word that ``Inst.enc`` keeps (see encode)."""
    return next(int(t[5:], 16) for t in enc.split() if t.startswith("word:"))


def one_literal(codes: list[int]) -> int | None:
    """The literal word of an instruction, None without one; two different ones are an error."""
    word = None
    for code in codes:
        if code >= LIT:
            if word is not None and word != code & 0xFFFFFFFF:
                raise EncodeError("SX0505", "two different literals")
            word = code & 0xFFFFFFFF
    return word


def place(raw: int, slots: tuple[Slot, ...], codes: list[int]) -> int:
    """Put the operands' codes into their fields."""
    for slot in slots:
        code = codes[slot.arg]
        value = LITERAL if code >= LIT else code - slot.bias
        raw |= (value >> slot.step) << slot.lo
    return raw


def signed_field(value: int, bits: int, what: str) -> int:
    """A two's complement field; SX0508 if the value does not fit."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise EncodeError("SX0508", f"{what} {value} does not fit in {bits} bits signed")
    return value & (1 << bits) - 1


def unsigned_field(value: int, bits: int, what: str) -> int:
    """An unsigned field; SX0508 if the value does not fit."""
    if not 0 <= value < 1 << bits:
        raise EncodeError("SX0508", f"{what} {value} does not fit in {bits} bits unsigned")
    return value
