"""Test inputs of matrix instructions: whole warps, and numbers whose sums are hard cases.

Random patterns alone would make nearly every sum of sixteen products NaN.  So each wave has a
style: exponents of all sizes or of a few, zeros, denormals, few values with either sign (sums that
cancel), or some infinities and NaN among them; the addend has its own style.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import Instruction, Mem, Reg

Words = NDArray[np.uint32]
_INTEGERS = frozenset({"S4", "U4", "S8", "U8", "POPC", "MT88"})  # products of them, and moves
_STYLES = 9


def _floats(
    chance: np.random.Generator, shape: tuple[int, int], exponent: int, mantissa: int,
    styles: NDArray[np.int64], centre: NDArray[np.int64],
) -> NDArray[np.uint64]:  # fmt: skip
    """Patterns of a format; ``styles`` and ``centre``, a biased exponent, are (waves, 1)."""
    top = (1 << exponent) - 1
    raw = chance.integers(0, 1 << exponent + mantissa + 1, shape, dtype=np.uint64)
    fraction, sign = raw & (1 << mantissa) - 1, raw >> exponent + mantissa
    spread = np.array([top, top, 2, 6, 12, 40, 2, 12, 30])[styles]
    offset = chance.integers(-(1 << 20), 1 << 20, shape) % (2 * spread + 1) - spread
    field = np.clip(centre + offset, 0, top - 1)
    few = chance.integers(0, 1 << mantissa, (shape[0], 3), dtype=np.uint64)
    some = np.take_along_axis(few, chance.integers(0, 3, shape), axis=1)
    fraction = np.where(styles == 6, some, fraction)
    field = np.where(styles == 1, chance.integers(0, top, shape), field)
    odd = chance.random(shape)
    field = np.where((odd < 0.3) & (styles == 8), 0, field)
    fraction = np.where((odd < 0.2) & (styles == 8), 0, fraction)
    special = (odd < 0.01) & (styles == 7)
    field = np.where(special, top, field)
    fraction = np.where(special & (odd < 0.006), 0, fraction)
    made = sign << exponent + mantissa | field.astype(np.uint64) << mantissa | fraction
    return np.where(styles == 0, raw, made).astype(np.uint64)


_BYTES = {"E4M3": (8, 4, 3), "E5M2": (8, 5, 2)}


def _formats(ins: Instruction) -> list[tuple[int, int, int]]:
    """For A and for B: (bits of an element, of its exponent, of its mantissa)."""
    if ins.mnemonic == "QMMA":
        return [_BYTES[m] for m in ins.modifiers if m in _BYTES]
    if ins.mnemonic == "DMMA":
        return [(64, 11, 52)] * 2
    if ins.has("TF32"):
        return [(32, 8, 23)] * 2
    return [(16, 8, 7) if ins.has("BF16") else (16, 5, 10)] * 2


def _put(table: dict[int, Words], reg: Reg, values: list[NDArray[np.uint64]], width: int) -> None:
    """Elements in the registers of an operand, lowest first."""
    if reg.is_zero:
        return
    for i in range(reg.width):
        if width < 32:
            each = 32 // width
            word: NDArray[np.uint64] = values[each * i]
            for k in range(1, each):
                word = word | values[each * i + k] << np.uint64(width * k)
        else:
            word = values[i * 32 // width] >> np.uint64(32 * (i % (width // 32)))
        table[reg.index + i] = (word & 0xFFFFFFFF).astype(np.uint32)


def _rows(
    ins: Instruction, mem: Mem, chance: np.random.Generator, n: int, memory: tuple[int, int],
    general: dict[int, Words], uniform: dict[int, Words],
) -> None:  # fmt: skip
    """Row addresses: aligned, inside the wave's memory (its start, its size), without wrapping."""
    begin, size = memory
    first, rows = -(-max(mem.offset - begin, 0) // 16), size // 16
    at = chance.integers(first, rows, (n, 32))
    if ins.mnemonic == "STSM":  # which of two rows at one address wins is not defined
        at = first + np.argsort(chance.random((n, rows - first)), axis=1)[:, :32]
    rest = 16 * at + begin - mem.offset
    base = mem.base if mem.base is not None and not mem.base.is_zero else None
    if mem.ureg is not None and not mem.ureg.is_zero:
        add = rest.min(axis=1, keepdims=True) if base is not None else rest[:, :1]
        uniform[mem.ureg.index] = add.astype(np.uint32)
        rest = rest - add
    if base is not None:
        general[base.index] = rest.astype(np.uint32)


def fill(
    ins: Instruction, chance: np.random.Generator, n: int, memory: tuple[int, int],
    general: dict[int, Words], uniform: dict[int, Words],
) -> None:  # fmt: skip
    """Sources for ``n`` waves of a matrix instruction: numbers, or rows in shared memory;
    ``memory`` is its start and its size in bytes."""
    shape = (n, 32)
    mem = ins.get("mem")
    if isinstance(mem, Mem):
        _rows(ins, mem, chance, n, memory, general, uniform)
        return
    if _INTEGERS.intersection(ins.modifiers):
        return
    styles = chance.integers(0, _STYLES, (n, 1))
    formats = _formats(ins)
    centres: list[NDArray[np.int64]] = []
    total = np.zeros((n, 1), np.int64)  # the exponent of a typical product
    for _, exponent, _ in formats:
        bias = (1 << exponent - 1) - 1
        centres.append(chance.integers(max(1, bias // 2), bias + bias // 2, (n, 1)))
        total = total + centres[-1] - bias
    for role, (width, exponent, mantissa), centre in zip(
        ("Ra", "Rb"), formats, centres, strict=True
    ):
        reg = ins.get(role)
        if isinstance(reg, Reg):
            count = max(1, reg.width * 32 // width)
            made = [
                _floats(chance, shape, exponent, mantissa, styles, centre) for _ in range(count)
            ]
            _put(general, reg, made, width)
    reg = ins.get("Rc")
    if not isinstance(reg, Reg):
        return
    width, exponent, mantissa = formats[0]
    if ins.mnemonic != "DMMA":
        width, exponent, mantissa = (32, 8, 23) if ins.has("F32") else (16, 5, 10)
    mine = (1 << exponent - 1) - 1
    centre = total + mine + chance.integers(-14, 14, (n, 1))
    edge = chance.integers(0, 6, (n, 1))
    centre = np.where(edge == 0, chance.integers(0, 2 * mine, (n, 1)), centre)
    own = np.where(edge == 1, 8, np.where(edge == 2, 0, styles))
    count = max(1, reg.width * 32 // width)
    made = [_floats(chance, shape, exponent, mantissa, own, centre) for _ in range(count)]
    _put(general, reg, made, width)


__all__ = ["fill"]
