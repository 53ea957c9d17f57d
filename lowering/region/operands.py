"""The operands and numbers that an instruction takes, from the encoder, cached by their kinds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from sassxlate.disasm.rdna3 import OPS, Operand, OpInfo, can_encode
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.lowering.region.numbers import SMALL

_OFFSET: Final = Operand("soffset", "r", "sd", 1, "b32")
_OFF: Final = Operand("off", "r", "off", 1, "b32")


# --- shapes ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class OperandShape:
    """One order of a mnemonic's operands.  There is one object for each (:func:`shapes` caches
    them), because they are compared very often."""

    op: str
    operands: tuple[Operand, ...]
    glc: bool = False


def _replaced(operands: Sequence[Operand], name: str, new: Operand) -> tuple[Operand, ...]:
    return tuple(new if o.field == name else o for o in operands)


@cache
def shapes(op: str) -> tuple[OperandShape, ...]:
    """The operand orders of a mnemonic that have an encoding."""
    return tuple(s for s in _ways(op) if _completed(s, ()) is not None)


@cache
def counts(op: str) -> frozenset[int]:
    """The possible numbers of operands of a mnemonic."""
    return frozenset(len(s.operands) for s in _ways(op))


def _ways(op: str) -> list[OperandShape]:
    row = OPS[op]
    if "SMEM" in row.forms:
        return [OperandShape(op, (*row.args, _OFFSET))]
    if row.kind in ("flat", "global", "scratch"):
        return list(_flat(row))
    return [OperandShape(op, row.args)]


def _flat(row: OpInfo) -> Iterator[OperandShape]:
    for glc in (False, True) if row.atomic else (False,):
        operands = row.args[1:] if row.atomic and not glc else row.args
        if row.kind == "flat":
            yield OperandShape(row.op, operands, glc)
            continue
        off = _replaced(operands, "saddr", _OFF)
        addr = Operand("addr", "r", "v", 1, "b32")
        if row.kind == "global":
            yield OperandShape(row.op, off, glc)
            yield OperandShape(row.op, _replaced(operands, "addr", addr), glc)
            continue
        for both in (operands, off):
            yield OperandShape(row.op, _replaced(both, "addr", addr), glc)
            yield OperandShape(row.op, _replaced(both, "addr", _OFF), glc)


@cache
def _fillers(operand: Operand) -> tuple[Arg, ...]:
    """Fillers that are always valid for an operand; the cheapest for the constant bus first."""
    n = operand.n
    found: list[Arg] = []
    if operand.cls == "off":
        return (Sp("off"),)
    if operand.cls in ("v", "src", "vi"):
        found.append(V(250 - n, n))
    if operand.cls == "i":
        found.append(I(0x12345678))
    if operand.cls in ("s", "sd", "sx"):
        found += [Sp("vcc_lo") if n == 1 else Sp("vcc") if n == 2 else S(96, n), S(96, n)]
    return tuple(found)


def _completed(shape: OperandShape, args: tuple[Arg, ...]) -> Inst | None:
    """The instruction with fillers for the missing operands; None if none has an encoding."""
    rest = shape.operands[len(args) :]
    same = tuple(a for a in args if isinstance(a, S | Sp))

    def fill(made: tuple[Arg, ...], left: Sequence[Operand]) -> Inst | None:
        if not left:
            inst = Inst(shape.op, made, glc=shape.glc)
            return inst if can_encode(inst) is None else None
        for arg in (*_fillers(left[0]), *(a for a in same if left[0].cls in ("s", "src"))):
            got = fill((*made, arg), left[1:])
            if got is not None:
                return got
        return None

    return fill(args, rest)


def _kind(arg: Arg, seen: list[S | Sp]) -> tuple[object, ...]:
    """The property of an operand that its encoding depends on."""
    match arg:
        case V():
            return ("v", arg.n)
        case S():
            if arg not in seen:
                seen.append(arg)
            return ("s", arg.n, arg.index % 4, seen.index(arg))
        case Sp():
            return ("sp", arg.name, arg.n)
        case I():
            value = arg.value - (1 << 32) if arg.value >> 31 == 1 else arg.value
            return ("i", 1 if value in SMALL and value else arg.value)
        case _:
            return ("other",)


@lru_cache(maxsize=1 << 18)
def _judged(shape: OperandShape, kinds: tuple[tuple[object, ...], ...]) -> dict[str, bool]:
    del shape, kinds
    return {}


def possible(shape: OperandShape, args: tuple[Arg, ...]) -> bool:
    """Whether operands with this prefix have an encoding, whatever the registers."""
    seen: list[S | Sp] = []
    verdict = _judged(shape, tuple(_kind(a, seen) for a in args))
    if "ok" not in verdict:
        verdict["ok"] = _completed(shape, args) is not None
    return verdict["ok"]


_RANGES: Final = (
    (-0x100000, 0xFFFFF), (0, 0xFFFFF), (-0x8000, 0xFFFF), (0, 0xFFFF), (-0x1000, 0xFFF),
    (0, 0xFFF), (0, 0xFF), (0, 15), (0, 7),
)  # fmt: skip


@lru_cache(maxsize=1 << 12)
def offset_range(inst: Inst, field: str) -> tuple[int, int] | None:
    """The widest known range of an offset or immediate; None if there is none."""
    for low, high in _RANGES:
        ends = (dataclasses.replace(inst, **{field: n}) for n in (low, high))  # type: ignore[arg-type]
        if all(can_encode(end) is None for end in ends):
            return low, high
    return None


__all__ = ["OperandShape", "counts", "offset_range", "possible", "shapes"]  # fmt: skip
