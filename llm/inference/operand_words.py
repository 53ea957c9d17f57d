"""The words that may stand for an operand or a field of an instruction."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Final

from sassxlate.disasm.rdna3 import OPS, Operand, can_encode
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.tables.layout import layout
from sassxlate.disasm.rdna3.tables.operand_codes import inline_code
from sassxlate.llm.inference.number_tokens import ANY32, ANY64, word_id
from sassxlate.llm.inference.token_mask import Words
from sassxlate.llm.language.tokenizer import numbers, vocabulary
from sassxlate.lowering.region.numbers import SMALL, Bits, number, value_of
from sassxlate.lowering.region.operands import OperandShape, possible
from sassxlate.lowering.region.subset import BITS, SPECIALS

_FLOATS: Final = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "1/tau")
NO_WORDS: Final[Words] = frozenset()


def special_forms(name: str, operand: Operand) -> list[Sp]:
    wide = name.startswith("src_") and operand.n == 2
    if operand.cls == "off":
        return [Sp("off")] if name == "off" else []
    return [Sp(name, 2)] if wide else [Sp(name)]


def literal_among(shape: OperandShape, args: Sequence[Arg]) -> int | None:
    """The literal among operands."""
    for operand, arg in zip(shape.operands, args, strict=False):
        forced = operand.cls == "i"
        if isinstance(arg, I) and (forced or inline_code(arg.value, operand.type) is None):
            return arg.value
    return None


def literal_range(operand: Operand) -> tuple[int, int]:
    """The range of a literal of an operand."""
    if operand.n == 1:
        return ANY32
    if operand.type == "i64":
        return ANY32
    return ANY64 if operand.type == "f64" else (0, (1 << 32) - 1)


@lru_cache(maxsize=1 << 16)
def other_words(shape: OperandShape, args: tuple[Arg, ...]) -> Words:
    """The words that do not name registers of the block: special ones, and the first words of
    numbers."""
    operand = shape.operands[len(args)]
    write = "w" in operand.role
    out: set[int] = set()
    if operand.cls != "i":
        out |= {
            word_id(name)
            for name in SPECIALS
            if not (write and name == "exec_lo")
            and any(possible(shape, (*args, a)) for a in special_forms(name, operand))
        }
    if not write and operand.cls in ("src", "s", "vi", "i"):
        out |= _number_words(shape, args)
    return frozenset(out)


def _number_words(shape: OperandShape, args: tuple[Arg, ...]) -> frozenset[int]:
    operand = shape.operands[len(args)]
    wide = operand.n == 2
    mask = (1 << 64) - 1 if wide else 0xFFFFFFFF

    def fine(value: int) -> bool:
        made = value if wide else value & mask
        return possible(shape, (*args, I(made)))

    out: set[int] = set()
    if fine(1):
        out |= {word_id(f"#{n}") for n in SMALL if n}
    if fine(0):
        out.add(word_id("#0"))
    bits: Bits = 64 if wide else 32
    out |= {word_id(w) for w in _FLOATS if fine(value_of((w,), 0, bits)[0])}
    literal = literal_among(shape, args)
    if literal is not None:
        words = number(literal, bits)
        if words[0][0] in "xf" and fine(literal):
            out.add(word_id(words[0]))
        return frozenset(out)
    low, high = literal_range(operand)
    for head, most in (("x", 4), ("f", 4 if wide else 3)):
        for n in range(1, most + 1):
            sample = int.from_bytes(b"\x71\x34\x56\x78"[:n], "big")
            value = sample << 8 * (bits // 8 - n) if head == "f" else sample
            if low <= value <= high and fine(value) and _all_fit(operand, head):
                out.add(word_id(f"{head}{n}"))
    return frozenset(out)


def _all_fit(operand: Operand, head: str) -> bool:
    """Whether a number of this head is a literal of a wide operand, whatever its bytes."""
    if operand.n != 2:
        return True
    return (operand.type == "f64") == (head == "f")


def by_kind(args: tuple[Arg, ...]) -> tuple[Arg, ...]:
    """Registers reduced to their kind, so that the cache of encodings is small."""
    seen: list[S] = []
    out: list[Arg] = []
    for arg in args:
        match arg:
            case V():
                out.append(V(0, arg.n))
            case S():
                if arg not in seen:
                    seen.append(arg)
                out.append(S(arg.index % 4 + 16 * (1 + seen.index(arg)), arg.n))
            case _:
                out.append(arg)
    return tuple(out)


@cache
def field_bits(op: str) -> Mapping[str, int]:
    """The bits of each field that an instruction has, in its longest form."""
    row = OPS[op]
    fmt = row.formats[-1]
    if row.kind != "valu" or fmt in ("VOP1", "VOP2", "VOPC"):
        return {}
    lay = layout(op, fmt)
    packed = fmt == "VOP3P"
    return {
        "neg": lay.neg, "abs": lay.abs, "op_sel": lay.op_sel,
        "op_sel_hi": 7 if packed and lay.op_sel else 0,
        "neg_hi": lay.neg if packed and not lay.abs else 0,
        "omod": 3 if lay.omod else 0, "clamp": int(lay.clamp),
    }  # fmt: skip


@cache
def _field_words(op: str, name: str) -> Words:
    known = numbers()
    mask = field_bits(op).get(name, 0)
    usual = 7 if name == "op_sel_hi" else 0
    values = [n for n in range(BITS[name] + 1) if n & ~mask == 0 and n != usual] if mask else []
    return frozenset(known[f"{name}:{n}"] for n in values if f"{name}:{n}" in known)


def field_values(inst: Inst, name: str) -> Words:
    """The words of a field that may follow."""
    words = _field_words(inst.op, name)
    if not OPS[inst.op].mixed or not words:
        return words
    # The selected halves decide the meaning of a constant.
    made = ((w, int(vocabulary()[w].partition(":")[2])) for w in words)
    changed = ((w, dataclasses.replace(inst, **{name: n})) for w, n in made)  # type: ignore[arg-type]
    return frozenset(w for w, other in changed if can_encode(other) is None)
