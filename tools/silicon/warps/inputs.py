"""Edge-biased records and memory, by class of word.  The same numbers everywhere: no library's
generator is asked."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import Instruction, Mem
from sassxlate.disasm.sass.semantics.warp_state import LANES, Bytes, Words

from .template import CONSTANTS, RECORD, REGION, SHARED_BASE

_INTEGERS = (
    0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000,
    0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0x00010000, 0x8000FFFF,
)  # fmt: skip
_HALVES = (
    0, 0x8000, 0x3C00, 0xBC00, 0x3800, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x7BFF,
    0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7D00, 0x3C01, 0x1000, 0x0800,
)  # fmt: skip
_BRAINS = (
    0, 0x8000, 0x3F80, 0xBF80, 0x3F00, 0x0001, 0x8001, 0x007F, 0x807F, 0x0080, 0x8080, 0x7F7F,
    0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7FA0, 0x3F81, 0x1000, 0x0100,
)  # fmt: skip
_SINGLES = (
    0, 0x80000000, 0x3F800000, 0xBF800000, 0x3F000000, 1, 0x80000001, 0x007FFFFF, 0x807FFFFF,
    0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
    0xFFC00001, 0x7FA00000, 0x3F800001, 0x33800000, 0x4B000001,
)  # fmt: skip
_DOUBLES = tuple(
    h << 32 | low
    for h, low in (
        (0, 0), (1 << 31, 0), (0x3FF00000, 0), (0xBFF00000, 0), (0, 1), (0x000FFFFF, 0xFFFFFFFF),
        (0x00100000, 0), (0x80100000, 0), (0x7FEFFFFF, 0xFFFFFFFF), (0x7FF00000, 0),
        (0xFFF00000, 0), (0x7FF80000, 0), (0xFFF80001, 5), (0x7FF40000, 0), (0x3FF00000, 1),
        (0x3CA00000, 0), (0x43300000, 1),
    )
)  # fmt: skip
_U = np.uint64


def hashed(seed: int, *shape: int) -> NDArray[np.uint64]:
    """SplitMix64 of 0, 1, 2 ..."""
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=_U) * _U(0x9E3779B97F4A7C15) + _U(
            seed * 0xD1B54A32D192ED03 & (1 << 64) - 1
        )
        z = (z ^ (z >> _U(30))) * _U(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> _U(27))) * _U(0x94D049BB133111EB)
    return (z ^ (z >> _U(31))).reshape(shape)


class _Stream:
    """Numbers in order: each call has a seed of its own."""

    def __init__(self, seed: int) -> None:
        self.seed = seed * 1000

    def bits(self, *shape: int) -> NDArray[np.uint64]:
        self.seed += 1
        return hashed(self.seed, *shape)

    def below(self, limit: int, *shape: int) -> NDArray[np.int64]:
        return (self.bits(*shape) % _U(limit)).astype(np.int64)

    def among(self, values: tuple[int, ...], *shape: int) -> NDArray[np.uint64]:
        return np.array(values, dtype=_U)[self.below(len(values), *shape)]

    def chance(self, percent: int, *shape: int) -> NDArray[np.bool_]:
        return self.below(100, *shape) < percent


def _patterns(s: _Stream, kind: str, *shape: int) -> Words:
    """32-bit words of values of a kind, half of them edges; the last dimension is even."""
    if kind in ("F16", "BF16"):
        edges = _HALVES if kind == "F16" else _BRAINS
        size = (*shape, 2)
        near = s.bits(*size) & _U(0x83FF) | _U(0x3800)
        value = np.where(s.chance(50, *size), s.among(edges, *size),
                         np.where(s.chance(50, *size), s.bits(*size) & _U(0xFFFF), near),
                         )  # fmt: skip
        return (value[..., 0] | value[..., 1] << _U(16)).astype(np.uint32)
    if kind == "F32":
        near = s.bits(*shape) & _U(0x80FFFFFF) | _U(0x3F000000)
        rest = np.where(s.chance(50, *shape), s.bits(*shape) & _U(0xFFFFFFFF), near)
        return np.where(s.chance(50, *shape), s.among(_SINGLES, *shape), rest).astype(np.uint32)
    if kind == "F64":
        half = (*shape[:-1], shape[-1] // 2)
        near = s.bits(*half) & _U(0x801FFFFFFFFFFFFF) | _U(0x3FE0000000000000)
        rest = np.where(s.chance(50, *half), s.bits(*half), near)
        value = np.where(s.chance(50, *half), s.among(_DOUBLES, *half), rest)
        return np.ascontiguousarray(value).view(np.uint32)
    value = np.where(s.chance(40, *shape), s.bits(*shape), s.among(_INTEGERS, *shape))
    few = np.arange(shape[0]) % 4 == 0  # equal ones are likely
    small = s.bits(*shape) & _U(1)
    return np.where(few.reshape(-1, *[1] * (len(shape) - 1)), small, value).astype(np.uint32)


# --- elements of matrices ----------------------------------------------------------------------

# (bits, exponent bits, mantissa bits, places of the value in its word)
_FORMATS = {"f16": (16, 5, 10), "bf16": (16, 8, 7), "tf32": (32, 8, 23), "f32": (32, 8, 23),
            "f64": (64, 11, 52)}  # fmt: skip
_SPREADS = (3, 40, 0, 30, 4, 12, 14, 6)


def _elements(s: _Stream, kind: str, warps: int, words: int, lift: int = 0) -> Words:
    """(warp, lane, word): eight sorts of values, by the warp's number."""
    if kind == "int":
        value = s.bits(warps, LANES, words)
        tight = s.among((0x7F, 0x80, 0xFF, 0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF), warps,
                        LANES, words)  # fmt: skip
        edge = (np.arange(warps) % 4 == 1)[:, None, None]
        out = np.where(edge, tight, value)
        ones = (np.arange(warps) % 4 == 2)[:, None, None]
        return np.where(ones & (value & _U(0xFF00) != 0), value | _U(0x7F7F7F7F), out).astype(
            np.uint32
        )
    width, e, m = _FORMATS[kind]
    count = words * 32 // width
    shape = (warps, LANES, count)
    bias = (1 << (e - 1)) - 1
    sort = (np.arange(warps) % 8)[:, None, None]
    spread = np.minimum(np.array(_SPREADS)[sort], bias - 1)
    raw = s.bits(*shape)
    exponent = bias + (s.bits(*shape) % (2 * spread + 1).astype(_U)).astype(np.int64) - spread
    exponent = exponent + np.where(sort == 5, lift, 0)
    exponent = np.where((sort == 6) & s.chance(40, *shape), 0, exponent)
    exponent = np.clip(exponent, 0, 2 * bias)
    sign = raw >> _U(63)
    sign = np.where(sort == 4, s.bits(warps, 1, 1) & _U(1), sign)
    mantissa = raw & _U((1 << m) - 1)
    value = sign << _U(width - 1) | exponent.astype(_U) << _U(m) | mantissa
    value = np.where(sort == 2, raw & _U((1 << width) - 1), value)
    value = np.where((sort == 3) & s.chance(60, *shape), sign << _U(width - 1), value)
    edges = {"f16": _HALVES, "bf16": _BRAINS, "f64": _DOUBLES}.get(kind, _SINGLES)
    value = np.where((sort == 7) & s.chance(25, *shape), s.among(edges, *shape), value)
    value = np.where(
        (sort == 7) & s.chance(40, *shape), sign << _U(width - 1) | _U(bias << m), value
    )
    if width == 64:
        return np.ascontiguousarray(value).view(np.uint32)
    if width == 32:
        return value.astype(np.uint32)
    return (value[..., 0::2] | value[..., 1::2] << _U(16)).astype(np.uint32)


# --- records -----------------------------------------------------------------------------------


def _active(s: _Stream, warps: int) -> NDArray[np.bool_]:
    sort = (np.arange(warps) // 4 % 4)[:, None]
    lanes = np.arange(LANES)
    one = lanes == s.below(LANES, warps, 1)
    return np.where(sort < 2, True, np.where(sort == 2, s.chance(50, warps, LANES), one))


def _lanes(s: _Stream, records: Words) -> None:
    """Values that are the same in a warp, few, or any; steps and clamps of shuffles."""
    warps = len(records)
    sort = (np.arange(warps) % 4)[:, None, None]
    few = np.take_along_axis(s.among(_INTEGERS, warps, 3, 4), s.below(3, warps, LANES, 1), 1)
    same = s.among(_INTEGERS, warps, 1, 4)
    values = np.where(sort == 0, s.bits(warps, LANES, 4), np.where(sort == 1, few, same))
    values = np.where((sort == 3) & s.chance(3, warps, LANES, 4), s.bits(warps, LANES, 4), values)
    records[..., 0:4] = values.astype(np.uint32)
    steps = np.where(s.chance(70, warps, LANES, 4), s.bits(warps, LANES, 4) & _U(31),
                     s.bits(warps, LANES, 4))  # fmt: skip
    records[..., 4:8] = np.where(sort == 2, steps[:, :1], steps).astype(np.uint32)
    clamp = s.among((0, 31, 15, 7, 3, 1, 30), warps, LANES, 4)
    segment = s.among((0, 0x10, 0x18, 0x1C, 0x1E, 0x1F, 5), warps, LANES, 4)
    usual = clamp | segment << _U(8)
    control = np.where(s.chance(60, warps, LANES, 4), usual, s.bits(warps, LANES, 4))
    records[..., 8:12] = np.where(sort == 2, control[:, :1], control).astype(np.uint32)


def _places(s: _Stream, kind: str, warps: int, size: int) -> NDArray[np.int64]:
    """A lane's place in its warp's region: anywhere for loads, otherwise in its own part."""
    own = np.arange(LANES) * (REGION // LANES)
    if kind == "load":
        return s.below((REGION - 128) // size, warps, LANES) * size + 64 // size * size
    if kind == "rows":
        return s.below((REGION - 256) // 16, warps, LANES) * 16 + 128
    if kind == "collide":
        return 64 + s.below(8, warps, LANES) * 16
    part = REGION // LANES
    return own + s.below((part - 96) // size, warps, LANES) * size + 48


def _addresses(s: _Stream, ins: Instruction, kind: str, records: Words, space: str, base: int,
               size: int) -> None:  # fmt: skip
    mem = ins.get("mem")
    if not isinstance(mem, Mem):
        return
    warps = len(records)
    step = max(size, mem.scale)
    place = _places(s, kind, warps, step)
    if space == "local":
        place = s.below((REGION // LANES - 96) // step, warps, LANES) * step + 48
    region = REGION * np.arange(warps, dtype=np.int64)[:, None]
    alone = mem.base is None or mem.base.is_zero
    near = space in ("shared", "local", "window", "barrier")
    if alone and (kind != "collide" or near):  # all lanes at one place
        place = np.broadcast_to(place[:, :1], place.shape)
    first = SHARED_BASE if space in ("shared", "window", "barrier") else 0
    target = place + first
    if not near:
        target = target + base + region
    uniform = s.below(4, warps, 1) * 16
    if mem.ureg is None:
        uniform = uniform * 0
    elif alone:
        uniform = target[:, :1] - mem.offset
    elif not near and mem.base is not None and mem.base.width == 1:
        uniform = base + region - 4096
    records[..., 18] = (uniform & 0xFFFFFFFF).astype(np.uint32)
    records[..., 19] = (uniform >> 32 & 0xFFFFFFFF).astype(np.uint32)
    if isinstance(ins.get("dst"), Mem):  # a copy: to the lane's own part of shared memory
        own = SHARED_BASE + np.arange(LANES) * (REGION // LANES)
        to = own + s.below(3, warps, LANES) * 16 + 32
        records[..., 22] = to.astype(np.uint32)
    if kind == "fill":  # inactive lanes and those without Pp, too
        target = target + s.below(size, warps, LANES)
    # The scaled part alone is a multiple of the scale.
    left = (target - uniform - mem.offset) // mem.scale
    records[..., 16] = (left & 0xFFFFFFFF).astype(np.uint32)
    records[..., 17] = (left >> 32 & 0xFFFFFFFF).astype(np.uint32)


def _barriers(s: _Stream, *shape: int) -> NDArray[np.uint64]:
    """States of barriers in shared memory that no arrival of up to two spoils."""
    expected = s.below(5, *shape) + 2
    pending = s.below(1 << 20, *shape) % expected + 1
    bytes_ = np.where(s.chance(50, *shape), 0, s.below(4, *shape) * 16)
    bytes_ = np.where(s.chance(10, *shape), s.below(1 << 19, *shape), bytes_) & 0x1FFFFF
    expected, pending = -expected & 0xFFFFF, -pending & 0xFFFFF
    bytes_ = -bytes_ & 0x1FFFFF
    return (
        expected.astype(_U) << _U(1) | bytes_.astype(_U) << _U(21)
        | pending.astype(_U) << _U(43) | (s.bits(*shape) & _U(1)) << _U(63)
    )  # fmt: skip


@lru_cache(maxsize=2)
def _filled(kind: str, warps: int, seed: int) -> tuple[Words, Bytes, NDArray[np.bool_]]:
    """Records without addresses, memory, the lanes that execute the word."""
    s = _Stream(seed)
    records = s.bits(warps, LANES, RECORD).astype(np.uint32)
    memory = s.bits(warps, REGION // 8).view(np.uint8).reshape(warps, REGION)
    active = _active(s, warps)
    first, _, more = kind.partition(" ")
    if first == "lanes":
        _lanes(s, records)
    elif first in ("update", "swap", "collide"):
        records[..., :16] = _patterns(s, more, warps, LANES, 16)
        image = _patterns(s, more, warps, LANES, REGION // LANES // 4)
        memory = np.ascontiguousarray(image).view(np.uint8).reshape(warps, REGION)
    elif first == "barrier":
        image = _barriers(s, warps, REGION // 8)
        memory = np.ascontiguousarray(image).view(np.uint8).reshape(warps, REGION)
        records[..., 4] = s.among((1, 2, 16, 32), warps, LANES)
        if more == "count":
            records[..., 4] = 1
        if more == "phase":
            records[..., 4] = s.bits(warps, LANES).astype(np.uint32)
    elif first == "matrix":
        ab, c = more.split()
        records[..., 0:4] = _elements(s, ab, warps, 4)
        records[..., 4:8] = _elements(s, ab, warps, 4)
        records[..., 8:12] = _elements(s, c, warps, 4, lift=12)
    elif first == "constant":
        records[..., 16] = CONSTANTS + s.below(0x3F0 // 8, warps, LANES) * 8
        records[..., 17] = s.below(0x3C0 // 8, warps, LANES) * 8
        records[..., 18] = (s.below(0x3C0 // 8, warps, 1) * 8).astype(np.uint32)
    if first in ("matrix", "whole", "rows"):
        active = np.ones_like(active)
    return records, memory, active


def made(ins: Instruction, kind: str, space: str, warps: int, base: int, size: int,
         seed: int) -> tuple[Words, Bytes]:  # fmt: skip
    """(records, memory) for a word; ``size``: of its access in bytes, to which it is aligned."""
    plain, memory, active = _filled(kind, warps, seed)
    records, active = plain.copy(), active.copy()
    s = _Stream(seed + 500)
    first = kind.partition(" ")[0]
    _addresses(s, ins, first, records, space, base, size)
    if first == "misaligned":
        active[:, 3] = True
        records[:, 3, 22 if kind == "misaligned to" else 16] += np.uint32(size // 2)
    if first in ("load", "store", "update", "swap"):  # where inactive lanes point does not matter
        wild = s.bits(warps, LANES, 2).astype(np.uint32)
        records[..., 16:18] = np.where(active[..., None], records[..., 16:18], wild)
    if first == "same":  # what all lanes store to one place
        records[..., 4:8] = records[:, :1, 4:8]
    records[..., 20] = records[..., 20] & np.uint32(0x3F) | active.astype(np.uint32) << np.uint32(6)
    return records, memory


def constants(seed: int) -> Words:
    """The 1 KiB of constants."""
    return hashed(seed + 7, 128).view(np.uint32)
