"""The template's records as a warp for the semantics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.instruction import Instruction, PredFile, RegFile, Special
from sassxlate.disasm.sass.semantics import NoSemantics
from sassxlate.disasm.sass.semantics.warp_state import (
    LANES,
    Addresses,
    Bytes,
    Mask,
    Space,
    Update,
    Words,
    in_order,
)
from sassxlate.disasm.sass.semantics.whole_warps import evaluate_warp, executing

from .template import CONSTANTS, REGION, RESULT, SHARED_BASE

WINDOW = 0x7FFF  # the high word of generic addresses of shared memory, in the model
# Where the model puts the stack of every lane, for R20 that the template adds to it.
STACK = 0x4000
_LANE = np.arange(LANES, dtype=np.uint32)
_BIT = np.uint32(1) << _LANE
_SPECIALS = {
    "SR_LANEID": _LANE, "SR_TID.X": _LANE, "SR_EQMASK": _BIT, "SR_LTMASK": _BIT - np.uint32(1),
    "SR_GEMASK": ~(_BIT - np.uint32(1)), "SR_LEMASK": _BIT | (_BIT - np.uint32(1)),
    "SR_GTMASK": ~(_BIT | (_BIT - np.uint32(1))), "SR_TID.Y": _LANE * np.uint32(0),
    "SR_TID.Z": _LANE * np.uint32(0),
}  # fmt: skip


class Warps:
    """(warp, 32) lanes at the word; ``memory`` is changed in place.  ``base``: where the warps'
    regions begin in the device's memory."""

    def __init__(
        self, records: Words, memory: Bytes, constants: Words, base: int, space: str
    ) -> None:
        self.records = records
        self.memory = memory
        self.base = base
        self.space = space
        self._constants = np.ascontiguousarray(constants).view(np.uint8)
        self.count = len(records)

    @property
    def active(self) -> Mask:
        return self.pred("P", 6)

    def _uniform(self, index: int) -> Words:
        word = {8: 21, 9: 22, 10: 12, 11: 13, 14: 18, 15: 19}[index]
        return self.records[:, :1, word]

    def reg(self, file: RegFile, index: int) -> Words:
        if file == "UR":
            return self._uniform(index)
        value = self.records[:, :, index - 4]
        if index == 20 and self.space == "local":
            value = value + np.uint32(STACK)
        if index == 21 and self.space == "window":
            value = np.full_like(value, WINDOW)
        return value

    def pred(self, file: PredFile, index: int) -> Mask:
        word = self.records[:, :, 20] if file == "P" else self.records[:, :1, 22]
        out: Mask = (word >> np.uint32(index) & 1).astype(np.bool_)
        return out

    def special(self, operand: Special) -> Words:
        if operand.name == "SR_CTAID.X":
            return np.arange(self.count, dtype=np.uint32)[:, None]
        if operand.name not in _SPECIALS:
            raise NoSemantics(operand.name)
        return np.broadcast_to(_SPECIALS[operand.name], (self.count, LANES))

    def constant(self, bank: int, offset: Words, size: int) -> Bytes:
        at = offset.astype(np.int64)[..., None] - CONSTANTS + np.arange(size)
        if bank or (at < 0).any() or (at >= len(self._constants)).any():
            raise NoSemantics("a constant that is not known")
        return self._constants[at]

    def _where(self, space: Space, address: Addresses, size: int) -> NDArray[np.int64]:
        """Places in ``memory``, which is flat here: (warp, lane, size)."""
        warp = np.arange(self.count, dtype=np.int64)[:, None]
        at = address.astype(np.int64)
        if space == "generic" and self.space == "window":
            space, at = "shared", at - (WINDOW << 32)
        if space == "shared":
            at = at - SHARED_BASE + REGION * warp
        elif space == "local":
            at = at - STACK + REGION // LANES * _LANE.astype(np.int64) + REGION * warp
        else:
            at = at - self.base
        return at[..., None] + np.arange(size)

    def in_shared(self, address: Addresses) -> Mask:
        return np.full(address.shape, self.space == "window")

    def load(self, space: Space, address: Addresses, size: int, mask: Mask) -> Bytes:
        at = self._where(space, address, size)
        return self.memory.reshape(-1)[np.where(mask[..., None], at, 0)]

    def store(self, space: Space, address: Addresses, data: Bytes, mask: Mask) -> None:
        at = self._where(space, address, size=data.shape[-1])
        self.memory.reshape(-1)[at[mask]] = data[mask]

    def update(
        self, space: Space, address: Addresses, size: int, mask: Mask, change: Update
    ) -> Bytes:
        apart = space == "shared" or self.space == "window"
        return in_order(self, space, address, size, mask, change, apart)


def untouched(records: Words) -> Words:
    """(warp, lane, 8) as the template leaves it after an instruction without effect."""
    out = np.zeros((len(records), LANES, RESULT), dtype=np.uint32)
    out[..., :4] = records[..., 12:16]
    out[..., 4] = records[..., 20] & np.uint32(0x7F)
    out[..., 5], out[..., 6] = records[:, :1, 12], records[:, :1, 13]
    out[..., 7] = records[:, :1, 22] & np.uint32(8)
    return out


def results(ins: Instruction, warps: Warps) -> Words:
    """(warp, lane, 8) as the template leaves it.  Raises NoSemantics, SemanticsFault."""
    out = untouched(warps.records)
    mask = executing(ins, warps)
    some = np.broadcast_to(mask.any(axis=1, keepdims=True), mask.shape)
    for ref, value in evaluate_warp(ins, warps).items():
        where = mask if ref.file in ("R", "P") else some
        if ref.file in ("R", "UR"):
            column = ref.index - 16 if ref.file == "R" else ref.index - 10 + 5
            out[..., column] = np.where(where, value, out[..., column])
        else:
            column, bit = (4 if ref.file == "P" else 7), np.uint32(1 << ref.index)
            new = out[..., column] & ~bit | value.astype(np.uint32) * bit
            out[..., column] = np.where(where, new, out[..., column])
    return out


def meant(word: int, arch: int, warps: Warps) -> Words:
    """The results by the semantics; updates ``warps.memory``."""
    ins = decode(word, 0, arch, strict=False)
    with np.errstate(over="ignore"):
        return results(ins, warps)
