"""Random waves for one instruction: registers, predicates and memory that are hard cases for it.

A wave has memory of its own, global and shared, and addresses refer to few words of it.  The
semantics read the state, as :class:`~sassxlate.disasm.sass.semantics.warp_state.Warp` describes,
and the same state goes into the records of the kernel that runs the rule's code (:mod:`.warps`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import (
    Const,
    Instruction,
    Mem,
    PredFile,
    Reg,
    RegFile,
    Special,
)
from sassxlate.disasm.sass.semantics.memory.atomic import element
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.disasm.sass.semantics.warp_state import Update, in_order
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.emulate.image.abi import SHARED_APERTURE_HI
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.target import LANES
from sassxlate.lowering.verify.rules.compare import Mask, Words
from sassxlate.lowering.verify.rules.matrix_inputs import fill

MEMORY = 1024  # bytes per wave of global and of shared memory
POINTERS, _KERNARG = 0x880, 0x900  # offsets in the constants; pointers follow the random words
_CORNERS = np.array(
    [0, 1, 2, 3, 4, 5, 31, 32, 0x1F, 0x1C03, 0x181F, 0x1000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
     0xFFFFFFFE, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x80000001],
    dtype=np.uint32,
)  # fmt: skip


def _shapes() -> Mask:
    """Sets of active lanes, in shapes that hand-written code could mistake for others: all, the
    first, the last, one in the middle, all but one, halves, every other one."""
    bits = [0xFFFFFFFF, 0xFFFF, 0xFFFF0000, 0x55555555, 0xAAAAAAAA]
    for n in (0, 1, 15, 16, 31):
        bits += [1 << n, 0xFFFFFFFF ^ 1 << n]
    return np.array([[word >> lane & 1 == 1 for lane in range(LANES)] for word in bits])


@dataclass(slots=True)
class Waves:
    """``Warp``: n waves at one instruction, with memory of their own."""

    active: Mask
    live: Mask
    general: dict[int, Words]
    uniform: dict[int, Words]
    predicates: dict[int, Mask]
    uniform_predicates: dict[int, Mask]
    shared: NDArray[np.uint8]  # (n, MEMORY)
    memory: NDArray[np.uint8]
    base: int  # device address of the first wave's global memory
    shift: int  # offset of the first byte of shared memory
    constants: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(_KERNARG, dtype=np.uint8))

    def reg(self, file: RegFile, index: int) -> Words:
        return (self.general if file == "R" else self.uniform)[index]

    def pred(self, file: PredFile, index: int) -> Mask:
        return (self.predicates if file == "P" else self.uniform_predicates)[index]

    def special(self, operand: Special) -> Words:
        n = len(self.active)
        lane = np.broadcast_to(np.arange(LANES, dtype=np.uint32), (n, LANES))
        bit = np.uint32(1) << lane
        match operand.name:
            case "SR_LANEID" | "SR_TID.X" | "SR_TID":
                return lane
            case "SR_TID.Y" | "SR_TID.Z" | "SR_CTAID.Y" | "SR_CTAID.Z" | "SRZ" | "SR_CgaCtaId":
                return np.zeros((n, LANES), dtype=np.uint32)
            case "SR_CTAID.X":
                return np.broadcast_to(np.arange(n, dtype=np.uint32)[:, None], (n, LANES))
            case "SR_EQMASK":
                return bit
            case "SR_LTMASK":
                return bit - np.uint32(1)
            case "SR_LEMASK":
                return bit | bit - np.uint32(1)
            case "SR_GEMASK":
                return ~(bit - np.uint32(1))
            case "SR_GTMASK":
                return ~(bit | bit - np.uint32(1))
            case _:
                raise NoSemantics(operand.name)

    def constant(self, bank: int, offset: Words, size: int) -> NDArray[np.uint8]:
        if bank:
            raise NoSemantics("a constant bank")
        at = offset.astype(np.int64)[..., None] + np.arange(size)
        data: NDArray[np.uint8] = self.constants[np.minimum(at, _KERNARG - 1)]
        return data

    def _where(self, address: NDArray[np.uint64], size: int) -> tuple[Any, Any, Any]:
        n = len(self.active)
        wave = np.arange(n, dtype=np.int64)[:, None, None]
        at = address.astype(np.int64)
        shared = at >> 32 == SHARED_APERTURE_HI
        mine = self.base + MEMORY * wave[..., 0]
        offset = np.where(shared, at & 0xFFFFFFFF, at - mine)
        inside = (offset >= 0) & (offset <= MEMORY - size)
        return shared, np.where(inside, offset, 0)[..., None] + np.arange(size), wave

    def load(
        self, space: str, address: NDArray[np.uint64], size: int, mask: Mask
    ) -> NDArray[np.uint8]:
        if space == "local":
            raise NoSemantics("local memory")
        if space == "shared":
            at = ((address.astype(np.int64) - self.shift) % MEMORY)[..., None] + np.arange(size)
            wave = np.arange(len(at))[:, None, None]
            mine: NDArray[np.uint8] = self.shared[wave, np.minimum(at, MEMORY - 1)]
            return mine
        shared, at, wave = self._where(address, size)
        both = np.where(shared[..., None], self.shared[wave, at], self.memory[wave, at])
        got: NDArray[np.uint8] = both.astype(np.uint8)
        return got

    def store(
        self, space: str, address: NDArray[np.uint64], data: NDArray[np.uint8], mask: Mask
    ) -> None:
        if space == "local":
            raise NoSemantics("local memory")
        size = data.shape[-1]
        n = len(mask)
        shared: Mask = np.ones((n, LANES), dtype=np.bool_)
        inside: NDArray[np.int64] = (address.astype(np.int64) - self.shift) % MEMORY
        place: NDArray[np.int64] = inside[..., None] + np.arange(size, dtype=np.int64)
        if space != "shared":
            shared, place, _ = self._where(address, size)
        for lane in range(LANES):  # the last lane wins, as on the emulated device
            for where, kind in ((self.shared, True), (self.memory, False)):
                some = np.flatnonzero(mask[:, lane] & (shared[:, lane] == kind))
                if len(some):
                    where[some[:, None], place[some, lane]] = data[some, lane]

    def update(
        self, space: str, address: NDArray[np.uint64], size: int, mask: Mask, change: Update
    ) -> NDArray[np.uint8]:
        return in_order(self, space, address, size, mask, change, apart=True)  # type: ignore[arg-type]


def _values(chance: np.random.Generator, shape: tuple[int, ...]) -> Words:
    """Words: uniform, corner cases, few distinct ones in a wave."""
    raw = chance.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32)
    kind = chance.random((shape[0], 1))
    few = chance.choice(_CORNERS, (shape[0], 4))
    pick = np.take_along_axis(few, chance.integers(0, 4, shape), axis=1)
    some = np.where(chance.random(shape) < 0.4, chance.choice(_CORNERS, shape), raw)
    return np.where(kind < 0.3, pick, np.where(kind < 0.8, some, raw)).astype(np.uint32)


def inputs(ins: Instruction, together: bool, n: int, seed: int, base: int) -> Waves:
    chance = np.random.default_rng([seed, ins.word & 0xFFFFFFFF, ins.word >> 64 & 0xFFFFFFFF])
    density = chance.random((n, 1)) * 1.2
    live = chance.random((n, LANES)) < np.maximum(density, 0.1)
    live[np.arange(n), chance.integers(0, LANES, n)] = True
    active = live.copy()
    if not together:
        active &= chance.random((n, LANES)) < 0.7
        active[~active.any(axis=1)] = live[~active.any(axis=1)]
    shapes = _shapes()[: n // 2]
    active[: len(shapes)] = shapes
    live[: len(shapes)] = shapes | (not together)
    regs = _map(ins, together)
    waves = Waves(
        active,
        live,
        {i: _values(chance, (n, LANES)) for i in regs.r},
        {i: _values(chance, (n, 1)) for i in (*regs.ur, *regs.ur_lanes)},
        {i: chance.random((n, LANES)) < chance.choice([0.0, 0.1, 0.5, 0.9, 1.0], (n, 1))
         for i in range(7)},
        {i: chance.random((n, 1)) < 0.5 for i in range(7)},
        chance.integers(0, 256, (n, MEMORY), dtype=np.uint8),
        chance.integers(0, 256, (n, MEMORY), dtype=np.uint8),
        base, shift_of(ins),
    )  # fmt: skip
    waves.constants[:POINTERS] = chance.integers(0, 256, POINTERS, dtype=np.uint8)
    t = traits(ins)
    if t.lanes == "whole":
        _whole(ins, waves, chance)
    elif t.reaches(("bulk",)):
        _bulk(ins, waves, chance, base)
    else:
        _addresses(ins, waves, chance, base)
    for data in (waves.shared, waves.memory):  # words that an exchange compares with
        words = data.view("<u4")
        words[:] = np.where(chance.random(words.shape) < 0.5, chance.choice(_CORNERS, words.shape),
                            words)  # fmt: skip
    if t.reaches(("arrival", "bulk")) or ins.has("ARRIVE"):
        waves.shared[:] = _barriers(ins.arch, chance, n)
    return waves


def _barriers(arch: int, chance: np.random.Generator, n: int) -> NDArray[np.uint8]:
    """Words of arrival barriers that few arrivals (or bytes) complete."""
    shape = (n, MEMORY // 8)

    def few(most: int, bits: int) -> NDArray[np.int64]:
        small = chance.integers(0, most, shape)
        some = np.where(chance.random(shape) < 0.9, small, small << 7).astype(np.int64)
        return -some & np.int64((1 << bits) - 1)

    phase = chance.integers(0, 2, shape) << 63
    if arch < 90:
        words = few(9, 30) | few(33, 31) << 32 | phase
    else:
        bytes_ = np.where(chance.random(shape) < 0.5, 0, few(9, 21))
        words = few(9, 20) << 1 | bytes_ << 21 | few(33, 20) << 43 | phase
        words |= chance.integers(0, 2, shape) | chance.integers(0, 2, shape) << 42
    raw = chance.integers(0, 1 << 63, shape)
    words = np.where(chance.random(shape) < 0.1, raw, words)
    return np.ascontiguousarray(words, dtype="<i8").view(np.uint8)


def _whole(ins: Instruction, waves: Waves, chance: np.random.Generator) -> None:
    """All lanes execute; sources that are hard cases for the instruction."""
    n = len(waves.active)
    waves.live[:] = waves.active[:] = True
    guard = ins.guard
    if guard.index != 7:
        table = waves.predicates if guard.file == "P" else waves.uniform_predicates
        table[guard.index][:] = not guard.inv
    fill(ins, chance, n, (waves.shift, MEMORY), waves.general, waves.uniform)


def _bulk(ins: Instruction, waves: Waves, chance: np.random.Generator, base: int) -> None:
    """A copy of up to 832 bytes, of which a wave moves 512 at once, and a barrier outside it."""
    to, source, size = (ins.get(role) for role in ("dst", "src", "size"))
    if not (isinstance(to, Reg) and isinstance(source, Reg) and isinstance(size, Reg)):
        raise NoSemantics("this form of UBLKCP")
    named = [to.index, to.index + 1, source.index, source.index + 1, size.index]
    if len({*named}) < len(named) or any(reg.is_zero for reg in (to, source, size)):
        raise NoSemantics("one register for two operands, or none")
    n = len(waves.active)
    units = chance.integers(0, 53, (n, 1))
    last = MEMORY // 16 - 11 - units  # barriers are in the last 160 bytes
    inside, outside = (16 * (chance.integers(0, 1 << 20, (n, 1)) % (last + 1)) for _ in range(2))
    barrier = MEMORY - 160 + 8 * chance.integers(0, 20, (n, 1))
    far = outside + base + MEMORY * np.arange(n, dtype=np.int64)[:, None]
    near = (inside | barrier << 32) if ins.modifiers[:2] == ("S", "G") else inside
    pair = (near, far) if ins.modifiers[:2] == ("S", "G") else (far, near)
    for reg, value in ((to, pair[0]), (source, pair[1]), (size, units)):
        _set(waves.uniform, reg, value.astype(np.int64))


def _map(ins: Instruction, together: bool) -> RegisterMap:
    from sassxlate.lowering.verify.rules.one_instruction import registers

    return registers(ins, "together" if together else "apart")


def shift_of(ins: Instruction) -> int:
    """Offsets into shared memory do not wrap: it begins at the instruction's offset."""
    mem = ins.get("dst") or ins.get("mem")
    shared = _in_shared(ins) or "dst" in ins.operands
    if not shared or not isinstance(mem, Mem):
        return 0
    if mem.offset >= 0xF000:
        raise NoSemantics("an offset beyond shared memory")
    return max(mem.offset, 0) & ~15


_VECTORS = frozenset({"F16x8", "BF16x8", "F32x4"})  # 16 bytes per atomic access


def _in_shared(ins: Instruction) -> bool:
    m = traits(ins).memory
    return m is not None and m.space in ("shared", "local")


def _addresses(ins: Instruction, waves: Waves, chance: np.random.Generator, base: int) -> None:
    """Registers of a memory operand, so that it addresses few words of the wave's memory."""
    n = len(waves.active)
    for operand in ins.operands.values():
        index = operand.index if isinstance(operand, Const) else None
        if isinstance(operand, Const) and operand.bank:
            raise NoSemantics("a constant bank other than 0")
        if isinstance(operand, Const) and index is not None and not index.is_zero:
            most = POINTERS - 16 - operand.offset  # keeps the access inside the segment
            if operand.offset < 0 or most <= 0:
                raise NoSemantics("an offset beyond the constants")
            at = chance.integers(0, most // 8, (n, LANES)) * 8
            _set(waves.general if index.file == "R" else waves.uniform, index, at)
    to, source = ins.get("dst"), ins.get("mem")
    bases = [m.base for m in (to, source) if isinstance(m, Mem) and m.base is not None]
    if len(bases) == 2 and bases[0].index - bases[1].index in (0, 1):
        raise NoSemantics("one register for two addresses")
    for role, mem in (("dst", to), ("mem", source)):
        if isinstance(mem, Mem):
            _address(ins, mem, role == "dst" or _in_shared(ins), waves, chance, base)


def _address(
    ins: Instruction, mem: Mem, in_shared: bool, waves: Waves, chance: np.random.Generator,
    base: int,
) -> None:  # fmt: skip
    """Like _addresses, for one operand."""
    n = len(waves.active)
    if in_shared and mem.offset < 0 and all(r is None or r.is_zero for r in (mem.base, mem.ureg)):
        raise NoSemantics("an address below 0")
    size = max(16, element(ins.modifiers).size) if "128" in ins.modifiers else 8
    if _VECTORS.intersection(ins.modifiers):
        size = 16
    if ins.mnemonic in ("CCTL", "CCTLL"):
        size = 4
    if mem.scale != 1:
        size = max(size, mem.scale)
    first = max(mem.offset, 0) - waves.shift if in_shared else 0  # addresses do not wrap there
    span = np.where(chance.random((n, 1)) < 0.6, 4, (MEMORY - first) // size - 3)
    at = (chance.integers(0, 1 << 20, (n, LANES)) % span + 1 + first // size) * size
    reg = mem.base if mem.base is not None and not mem.base.is_zero else None
    uniform = mem.ureg if mem.ureg is not None and not mem.ureg.is_zero else None
    if reg is None:
        at[:] = at[:, :1]
    where = at.astype(np.int64) + (waves.shift if in_shared else 0)
    if not in_shared:
        mine = base + MEMORY * np.arange(n, dtype=np.int64)[:, None]
        shared = np.int64(SHARED_APERTURE_HI << 32)
        # The rule of RED treats addresses as global.
        generic = traits(ins).reaches(("load", "store", "atomic", "query"), "generic")
        where = where + np.where(generic & (chance.random((n, 1)) < 0.4), shared, mine)
    where = where - mem.offset
    if not in_shared:
        if reg is not None and reg.width == 1:
            if uniform is None or uniform.width == 1:
                raise NoSemantics("a global address of 32 bits")
            _set(waves.uniform, uniform, where[:, :1] - at[:, :1])
            _set(waves.general, reg, at)
            return
        if reg is None and (uniform is None or uniform.width == 1):
            raise NoSemantics("a global address of 32 bits")
    if uniform is not None and reg is not None:
        add = chance.integers(0, 64, (n, 1)) * 4 * size
        add = add + (where[:, :1] - add) % mem.scale  # the same in all lanes
        _set(waves.uniform, uniform, add.astype(np.int64))
        where = where - add
    elif uniform is not None:
        _set(waves.uniform, uniform, where[:, :1])
    if reg is not None:
        if mem.scale != 1:
            where = np.where(where % mem.scale == 0, where // mem.scale, 0)
        _set(waves.general, reg, where)


def _set(table: dict[int, Words], reg: Reg, value: NDArray[np.int64]) -> None:
    for i in range(reg.width):
        table[reg.index + i] = (value >> 32 * i & 0xFFFFFFFF).astype(np.uint32)


__all__ = ["MEMORY", "POINTERS", "Waves", "inputs", "shift_of"]
