"""Loads, stores and matrix loads: addresses, widths, results.

:func:`shape` and :func:`place` are over any domain; the rest is over warps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import Const, Instruction, Mem, Reg, RegFile
from sassxlate.disasm.sass.semantics.memory.wide import chosen
from sassxlate.disasm.sass.semantics.rows import NoSemantics, View
from sassxlate.disasm.sass.semantics.warp_state import (
    LANES,
    Addresses,
    Bytes,
    Fn,
    Mask,
    SemanticsFault,
    Space,
    WarpMeaning,
    WarpView,
    Words,
    as_bytes,
    as_words,
    constant_bytes,
)
from sassxlate.domain.interface import Domain

T = TypeVar("T")
Results: TypeAlias = "Mapping[str, NDArray[Any]]"

# Cache policy, prefetch, order and scope: they change no value within one thread.
POLICY = (
    "E EF EL LU EU NA U LTC64B LTC128B LTC256B PRIVATE CONSTANT CTA SM GPU SYS VC STRONG MMIO "
    "ORDERED EFL2 ENL2 ELL2"
)
_SIZES = {
    "U8": (1, False), "S8": (1, True), "U16": (2, False), "S16": (2, True),
    "64": (8, False), "128": (16, False), "256": (32, False),
}  # fmt: skip
SPACES: Mapping[str, tuple[Space, bool]] = {
    "LDG": ("global", False), "STG": ("global", True), "LD": ("generic", False),
    "ST": ("generic", True), "LDS": ("shared", False), "STS": ("shared", True),
    "LDL": ("local", False), "STL": ("local", True),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AccessShape:
    """One access of a lane: ``size`` bytes; loads of 1 and 2 bytes are extended."""

    space: Space
    store: bool
    size: int
    signed: bool


def size_of(ins: Instruction) -> tuple[int, bool]:
    """Bytes of a load or store, of constants too, and whether they are extended with their sign."""
    return next((_SIZES[m] for m in ins.modifiers if m in _SIZES), (4, False))


def shape(ins: Instruction) -> AccessShape:
    """The access of LDG, STG, LD, ST, LDS, STS, LDL and STL."""
    space, store = SPACES[ins.mnemonic]
    return AccessShape(space, store, *size_of(ins))


def _part(d: Domain[T], get: Callable[[RegFile, int], T], reg: Reg | None, width: int) -> T:
    if reg is None or reg.is_zero:
        return d.const(0, width)
    low = get(reg.file, reg.index)
    if width == 32:
        return low
    if reg.width == 1:
        return d.zext(low, 64)
    return d.concat(get(reg.file, reg.index + 1), low)


def place(d: Domain[T], mem: Mem, get: Callable[[RegFile, int], T], width: int) -> T:
    """The address of an operand, ``width`` bits: 32 in shared and local memory, otherwise 64, to
    which 32-bit registers are zero-extended.  ``get`` reads registers."""
    base = _part(d, get, mem.base, width)
    if mem.scale != 1:
        base = d.shl(base, d.const(mem.scale.bit_length() - 1, width))
    total = d.add(base, _part(d, get, mem.ureg, width))
    return d.add(total, d.const(mem.offset, width))


def address(d: Domain[T], x: View[T], role: str = "mem", width: int = 64) -> T:
    """The address of a role's operand."""
    mem = x.operand(role)
    if not isinstance(mem, Mem):
        raise NoSemantics(f"{role} is not an address")
    return place(d, mem, x.env.reg, width)


# --- over warps --------------------------------------------------------------------------------


def width_of(space: Space) -> int:
    """Bits of an address."""
    return 64 if space in ("global", "generic") else 32


def places(x: WarpView, space: Space, size: int, mask: Mask) -> Addresses:
    """The address of each lane.  Raises SemanticsFault if one in the mask is not aligned."""
    where = np.broadcast_to(address(x.d, x, width=width_of(space)).v, x.mask.shape)
    if ((where & np.uint64(size - 1)) != 0)[mask].any():
        raise SemanticsFault(f"an address of {x.ins.mnemonic} is not aligned to {size} bytes")
    return where


def extended(data: Bytes, signed: bool) -> Words:
    """(..., size) loaded bytes as registers: (...) of one, (..., n) of several."""
    size = data.shape[-1]
    if size < 4:
        kind = {(1, False): "u1", (1, True): "i1", (2, False): "<u2", (2, True): "<i2"}
        part = np.ascontiguousarray(data).view(kind[size, signed])[..., 0]
        out: Words = part.astype(np.int32 if signed else np.uint32).view(np.uint32)
        return out
    words = as_words(data)
    return words[..., 0] if size == 4 else words


def load(x: WarpView) -> Results:
    """If Pp does not hold, nothing is read and Rd becomes zero; Pu never holds."""
    what = shape(x.ins)
    told = x.mask if x.absent("Pp") else x.mask & x.truth("Pp")
    where = places(x, what.space, what.size, told)
    data = x.warp.load(what.space, where, what.size, told)
    data = np.where(told[..., None], data, np.uint8(0))
    words = extended(data, what.signed)
    if what.size == 32:
        out: dict[str, NDArray[Any]] = {}
        for role, those in zip(("Rd", "Rd2"), chosen(x.ins), strict=True):
            some = words[..., list(those)]
            out[role] = some[..., 0] if len(those) == 1 else some
        return {role: some for role, some in out.items() if some.size}
    return {"Rd": words, "Pu": np.zeros_like(told)}


def store(x: WarpView) -> Results:
    what = shape(x.ins)
    data = as_bytes(x.words("Rb"))[..., : what.size]
    if what.size == 32:
        chosen(x.ins)
        data = np.concatenate([as_bytes(x.words(role)) for role in ("Rb", "Rb2")], axis=-1)
    x.warp.store(what.space, places(x, what.space, what.size, x.mask), data, x.mask)
    return {}


def ldgsts(x: WarpView) -> Results:
    """From global to shared memory, as if at once; zeros if Pp does not hold, .ZFILL or not.

    With .ZFILL the address need not be aligned: its low bits count the last bytes that are
    zeros instead, and the others come from the aligned address below it.
    """
    size = int(x.one_of(("64", "128"), "32")) // 8
    told = x.mask if x.absent("Pp") else x.mask & x.truth("Pp")
    to = np.broadcast_to(address(x.d, x, "dst", 32).v, x.mask.shape)
    low = np.uint64(size - 1)
    if ((to & low) != 0)[x.mask].any():
        raise SemanticsFault(f"a target of {x.ins.mnemonic} is not aligned to {size} bytes")
    if x.has("ZFILL"):
        where = np.broadcast_to(address(x.d, x).v, x.mask.shape)
        filled = where & low
        where = where - filled
    else:
        where = places(x, "global", size, told)
        filled = np.zeros_like(where)
    data = x.warp.load("global", where, size, told)
    copied = np.arange(size, dtype=np.uint64) + filled[..., None] < np.uint64(size)
    x.warp.store("shared", to, np.where(told[..., None] & copied, data, np.uint8(0)), x.mask)
    return {}


def ldc(x: WarpView) -> Results:
    source = x.operand("src")
    if not isinstance(source, Const):
        raise NoSemantics("this kind of constant operand")
    size, signed = size_of(x.ins)
    value = extended(constant_bytes(x.warp, source, size), signed)
    reg = x.operand("Rd")
    once = isinstance(reg, Reg) and reg.file == "UR"
    lanes = (*x.mask.shape[:-1], 1 if once else LANES)
    tail = value.shape[-1:] if size > 4 else ()
    return {"Rd": np.broadcast_to(value, (*lanes, *tail))}


# --- matrices in shared memory -----------------------------------------------------------------


def _rows(x: WarpView, count: int) -> Addresses:
    """The address of each row: (..., count, 8); lane 8 m + r has that of row r of matrix m."""
    where = np.broadcast_to(address(x.d, x, width=32).v, x.mask.shape)[..., : 8 * count]
    if ((where & np.uint64(15)) != 0)[x.mask[..., : 8 * count]].any():
        raise SemanticsFault(f"a row of {x.ins.mnemonic} is not aligned to 16 bytes")
    if not x.mask.all():
        raise NoSemantics(f"{x.ins.mnemonic} with inactive lanes")
    return where.reshape(*where.shape[:-1], count, 8)


def _count(x: WarpView) -> int:
    return int(x.one_of(("2", "4"), "1"))


def _transposed(x: WarpView) -> bool:
    if not x.has("M88", "MT88") or not x.has("16"):
        raise NoSemantics(f"this shape of {x.ins.mnemonic}")
    return x.has("MT88")


def ldsm(x: WarpView) -> Results:
    """8 x 8 halves each: lane 4 r + c gets row r's elements 2 c and 2 c + 1 (.MT88: column r's)."""
    count = _count(x)
    rows = _rows(x, count)
    lead = rows.shape[:-2]
    padded = np.zeros((*lead, LANES), dtype=np.uint64)
    padded[..., : 8 * count] = rows.reshape(*lead, 8 * count)
    mask = np.broadcast_to(np.arange(LANES) < 8 * count, padded.shape)
    data = x.warp.load("shared", padded, 16, mask)[..., : 8 * count, :]
    halves = np.ascontiguousarray(data).view("<u2").reshape(*lead, count, 8, 8)
    if _transposed(x):
        halves = np.swapaxes(halves, -1, -2)
    words = as_words(np.ascontiguousarray(halves).view(np.uint8)).reshape(*lead, count, LANES)
    return {"Rd": words[..., 0, :] if count == 1 else np.moveaxis(words, -2, -1)}


def stsm(x: WarpView) -> Results:
    """The reverse of LDSM."""
    count = _count(x)
    rows = _rows(x, count)
    lead = rows.shape[:-2]
    words = np.ascontiguousarray(np.moveaxis(x.words("Rb"), -1, -2))  # (..., count, 32)
    halves = words.view("<u2").reshape(*lead, count, 8, 8)
    if _transposed(x):
        halves = np.swapaxes(halves, -1, -2)
    data = np.zeros((*lead, LANES, 16), dtype=np.uint8)
    packed = np.ascontiguousarray(halves).view(np.uint8)
    data[..., : 8 * count, :] = packed.reshape(*lead, 8 * count, 16)
    padded = np.zeros((*lead, LANES), dtype=np.uint64)
    padded[..., : 8 * count] = rows.reshape(*lead, 8 * count)
    mask = np.broadcast_to(np.arange(LANES) < 8 * count, padded.shape)
    x.warp.store("shared", padded, data, mask)
    return {}


def movm(x: WarpView) -> Results:
    """.MT88: the 8 x 8 halves of a warp, transposed."""
    if not x.has("MT88"):
        raise NoSemantics("this shape of MOVM")
    if not x.mask.all():
        raise NoSemantics("MOVM with inactive lanes")
    value = np.ascontiguousarray(x.lanes("Ra").astype("<u4"))
    halves = np.swapaxes(value.view("<u2").reshape(*value.shape[:-1], 8, 8), -1, -2)
    return {"Rd": np.ascontiguousarray(halves).view("<u4").reshape(value.shape)}


def _row(mnemonic: str, fn: Fn, mods: str) -> WarpMeaning:
    return WarpMeaning(mnemonic, fn, frozenset(mods.split()))


def rows() -> list[WarpMeaning]:
    wide = POLICY + " U8 S8 U16 S16 64 128 256"
    return [
        *(_row(m, store if stores else load, wide) for m, (_, stores) in SPACES.items()),
        *(_row(m, ldc, "U8 S8 U16 S16 64 128") for m in ("LDC", "ULDC", "LDCU")),
        _row("LDGSTS", ldgsts, POLICY + " BYPASS 64 128 ZFILL"),
        _row("LDSM", ldsm, "16 M88 MT88 2 4"),
        _row("STSM", stsm, "16 M88 MT88 2 4"),
        _row("MOVM", movm, "16 MT88"),
    ]
