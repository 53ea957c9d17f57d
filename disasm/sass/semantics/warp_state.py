"""Warps as the semantics of warp-wide instructions see them: arrays over 32 lanes.

Every array has 32 lanes as its last dimension, and any number of warps before it; per-warp state
(uniform registers) has a last dimension of 1.  A reader implements :class:`Warp`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import (
    Const,
    Instruction,
    Pred,
    PredFile,
    Reg,
    RegFile,
    RegRef,
    Special,
)
from sassxlate.disasm.sass.semantics.rows import Env, NoSemantics, View
from sassxlate.domain.numpy_lanes import Vec, Vectors

LANES = 32
Words: TypeAlias = NDArray[np.uint32]
Addresses: TypeAlias = NDArray[np.uint64]
Bytes: TypeAlias = NDArray[np.uint8]
Mask: TypeAlias = NDArray[np.bool_]
Space: TypeAlias = Literal["global", "generic", "shared", "local"]
# (old bytes, (lane, size)), (the lanes, as an index) -> new bytes
Update: TypeAlias = "Callable[[Bytes, tuple[NDArray[np.intp], ...]], Bytes]"
Written: TypeAlias = "dict[RegRef, NDArray[Any]]"


class SemanticsFault(Exception):
    """The instruction traps: an address that is not aligned."""


class Warp(Protocol):
    """Registers, predicates and memory of one warp, or of several at the same instruction."""

    @property
    def active(self) -> Mask:
        """The lanes that are at this instruction; its guard is not yet applied.  (..., 32)"""
        ...

    def reg(self, file: RegFile, index: int) -> Words:
        """R: (..., 32), of inactive lanes too; UR: (..., 1).  RZ is never requested."""
        ...

    def pred(self, file: PredFile, index: int) -> Mask:
        """P: (..., 32); UP: (..., 1).  PT is never requested."""
        ...

    def special(self, operand: Special) -> Words:
        """(..., 32) or (..., 1)."""
        ...

    def constant(self, bank: int, offset: Words, size: int) -> Bytes:
        """``size`` bytes at each offset: the shape of ``offset`` and (size,)."""
        ...

    def load(self, space: Space, address: Addresses, size: int, mask: Mask) -> Bytes:
        """(..., 32, size); aligned; results of lanes outside the mask do not matter."""
        ...

    def store(self, space: Space, address: Addresses, data: Bytes, mask: Mask) -> None:
        """``data`` is (..., 32, size).  Which of two lanes at one address wins is not defined."""
        ...

    def update(
        self, space: Space, address: Addresses, size: int, mask: Mask, change: Update
    ) -> Bytes:
        """Atomically, for each lane of the mask in some order; the bytes before, (..., 32, size).

        :func:`in_order` does it by ``load`` and ``store``.
        """
        ...


@runtime_checkable
class Windows(Protocol):
    """A warp that can test which generic addresses are in shared memory; without this protocol,
    none are."""

    def in_shared(self, address: Addresses) -> Mask:
        """(..., 32)"""
        ...


def in_order(
    warp: Warp, space: Space, address: Addresses, size: int, mask: Mask, change: Update,
    apart: bool = False,
) -> Bytes:  # fmt: skip
    """``Warp.update`` by loads and stores: lanes at one address take turns by lane number.

    ``apart``: each warp has its own memory.
    """
    place = address
    if apart:
        numbers = np.arange(mask.size // LANES, dtype=np.uint64).reshape(*mask.shape[:-1], 1)
        place = address + (numbers << np.uint64(40))
    before = np.zeros((*address.shape, size), dtype=np.uint8)
    left = mask.copy()
    while left.any():
        flat = np.flatnonzero(left)
        _, first = np.unique(place.reshape(-1)[flat], return_index=True)
        turn = np.zeros(left.size, dtype=np.bool_)
        turn[flat[first]] = True
        now = turn.reshape(left.shape)
        where = np.nonzero(now)
        old = warp.load(space, address, size, now)
        before[where] = old[where]
        new = old.copy()
        new[where] = change(old[where], where)
        warp.store(space, address, new, now)
        left &= ~now
    return before


class _Env:
    """A warp as the environment of semantics over NumPy lanes."""

    def __init__(self, warp: Warp) -> None:
        self.warp = warp

    def reg(self, file: RegFile, index: int) -> Vec:
        return Vec(self.warp.reg(file, index).astype(np.uint64), 32)

    def pred(self, file: PredFile, index: int) -> Vec:
        return Vec(self.warp.pred(file, index).astype(np.uint64), 1)

    def const(self, operand: Const, word: int) -> Vec:
        data = constant_bytes(self.warp, operand, 4, 4 * word)
        return Vec(as_words(data)[..., 0].astype(np.uint64), 32)

    def special(self, operand: Special) -> Vec:
        return Vec(self.warp.special(operand).astype(np.uint64), 32)


def warp_env(warp: Warp) -> Env[Vec]:
    """The environment of per-lane semantics."""
    return _Env(warp)


def as_words(data: Bytes) -> Words:
    """(..., size) bytes as (..., size / 4) words."""
    words: Words = np.ascontiguousarray(data).view("<u4")
    return words


def as_bytes(words: NDArray[Any]) -> Bytes:
    """(..., n) words as (..., 4 n) bytes."""
    data: Bytes = np.ascontiguousarray(words, dtype="<u4").view(np.uint8)
    return data


def constant_bytes(warp: Warp, operand: Const, size: int, more: int = 0) -> Bytes:
    """The bytes of a constant operand, at ``more`` bytes beyond its address."""
    if operand.ur is not None:
        raise NoSemantics("bindless constant")
    index = operand.index
    if index is None or index.is_zero:
        offset = np.array([operand.place + more], dtype=np.uint32)
    else:
        start = np.array([operand.offset + more & 0xFFFFFFFF], dtype=np.uint32)
        offset = start + warp.reg(index.file, index.index)
    return warp.constant(operand.bank, offset, size)


class WarpView(View[Vec]):
    """One instruction in a warp; ``mask``: the lanes that execute it, (..., 32)."""

    def __init__(self, ins: Instruction, warp: Warp) -> None:
        super().__init__(Vectors(), ins, _Env(warp))
        self.warp = warp
        self.mask = executing(ins, warp)

    def lanes(self, role: str, width: int = 32) -> NDArray[np.uint64]:
        """A source without signs, for each lane: (..., 32)."""
        return np.broadcast_to(self.bits(role, width).v, self.mask.shape)

    def truth(self, role: str) -> Mask:
        """A source predicate, for each lane."""
        return np.broadcast_to(self.pred(role).true, self.mask.shape)

    def words(self, role: str) -> NDArray[np.uint32]:
        """All registers of a source: (..., 32, count).  RZ is zeros."""
        reg = self.operand(role)
        if not isinstance(reg, Reg):
            raise NoSemantics(f"{role} is not a register")
        shape = self.mask.shape
        if reg.is_zero:
            return np.zeros((*shape, reg.width), dtype=np.uint32)
        columns = [self.warp.reg(reg.file, reg.index + i) for i in range(reg.width)]
        return np.stack([np.broadcast_to(c, shape) for c in columns], axis=-1)

    @property
    def leader(self) -> NDArray[np.intp]:
        """The first lane that executes: (..., 1)."""
        first: NDArray[np.intp] = np.argmax(self.mask, axis=-1)[..., None]
        return first


Fn: TypeAlias = "Callable[[WarpView], Mapping[str, NDArray[Any]]]"


@dataclass(frozen=True, slots=True)
class WarpMeaning:
    """``fn`` does the instruction's memory accesses and returns its destinations by role.

    Registers are (..., 32), those of uniform ones (..., 1); a destination of several registers has
    them as an additional dimension.  Predicates are bool.  ``ignored`` are modifiers that change
    nothing here (cache policies), ``mods`` those that ``fn`` handles.
    """

    mnemonic: str
    fn: Fn
    mods: frozenset[str]


def executing(ins: Instruction, warp: Warp) -> Mask:
    """The active lanes for which the guard holds."""
    guard = ins.guard
    if guard.index == 7:
        return warp.active & (not guard.inv)
    return warp.active & (warp.pred(guard.file, guard.index) ^ guard.inv)


def placed(ins: Instruction, results: Mapping[str, NDArray[Any]]) -> Written:
    """Results by role as registers and predicates; those for RZ, PT and absent operands are
    dropped."""
    out: Written = {}
    for role, value in results.items():
        target = ins.get(role)
        if isinstance(target, Pred):
            if target.index != 7:
                out[RegRef(target.file, target.index)] = value
        elif isinstance(target, Reg) and not target.is_zero:
            several = value if target.width > 1 else value[..., None]
            if several.shape[-1] != target.width:
                raise NoSemantics(f"{several.shape[-1]} registers for {target.width}")
            for i in range(target.width):
                out[RegRef(target.file, target.index + i)] = several[..., i]
    return out
