"""Rules whose code reaches other lanes or memory, tried on whole waves.

A kernel is written around a rule's code: it fills the registers, predicates and shared memory from
a record of random values, sets EXEC to random lanes, and stores all of them behind it.  It runs on
the emulated device, one wave a record; the SASS side is the meaning over 32 lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.rdna3 import assemble
from sassxlate.disasm.rdna3.ir import I, Inst, Item, S, Sp, V
from sassxlate.disasm.sass.ir import (
    Const,
    Instruction,
    Mem,
    PredFile,
    Reg,
    RegFile,
    RegRef,
    Special,
)
from sassxlate.disasm.sass.meaning.atomic import element
from sassxlate.disasm.sass.meaning.rows import NoMeaning
from sassxlate.disasm.sass.meaning.state import Fault, Update, in_order
from sassxlate.disasm.sass.meaning.whole import evaluate_warp, executing, has_meaning
from sassxlate.lowering.allocate import RegisterMap
from sassxlate.lowering.emulate.abi import SHARED_APERTURE_HI
from sassxlate.lowering.emulate.runner import Device, Setup, run_code
from sassxlate.lowering.pipeline import PASSES

from .rules_block import Surroundings, selected
from .rules_compare import Different, Mask, Words, first_difference, float_kind
from .rules_matrix import WHOLE, fill

LANES = 32
MEMORY = 1024  # bytes of global and of shared memory a wave
_PER_LANE = MEMORY // 4 // LANES
_IN, _OUT, _GLOBAL = 0x880, 0x888, 0x890  # of pointers in the kernarg segment
_KERNARG = 0x900
_AT, _DATA = V(254), V(253)
_SOURCE, _TARGET, _TEMP = S(28, 2), S(30, 2), S(32)
_ALL = I(0xFFFFFFFF)
EXEC = Sp("exec_lo")
_CORNERS = np.array(
    [0, 1, 2, 3, 4, 5, 31, 32, 0x1F, 0x1C03, 0x181F, 0x1000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
     0xFFFFFFFE, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00000001, 0x80000001],
    dtype=np.uint32,
)  # fmt: skip


@dataclass(slots=True)
class _Waves:
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
    shift: int  # where shared memory's bytes begin
    constants: NDArray[np.uint8] = field(
        default_factory=lambda: np.zeros(_KERNARG, dtype=np.uint8)
    )

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
                raise NoMeaning(operand.name)

    def constant(self, bank: int, offset: Words, size: int) -> NDArray[np.uint8]:
        if bank:
            raise NoMeaning("a constant bank")
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
            raise NoMeaning("local memory")
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
            raise NoMeaning("local memory")
        size = data.shape[-1]
        n = len(mask)
        shared: Mask = np.ones((n, LANES), dtype=np.bool_)
        inside: NDArray[np.int64] = (address.astype(np.int64) - self.shift) % MEMORY
        place: NDArray[np.int64] = inside[..., None] + np.arange(size, dtype=np.int64)
        if space != "shared":
            shared, place, _ = self._where(address, size)
        for lane in range(LANES):  # the last one wins, as on the emulated device
            for where, kind in ((self.shared, True), (self.memory, False)):
                some = np.flatnonzero(mask[:, lane] & (shared[:, lane] == kind))
                if len(some):
                    where[some[:, None], place[some, lane]] = data[some, lane]

    def update(
        self, space: str, address: NDArray[np.uint64], size: int, mask: Mask, change: Update
    ) -> NDArray[np.uint8]:
        return in_order(self, space, address, size, mask, change, apart=True)  # type: ignore[arg-type]


def _values(chance: np.random.Generator, shape: tuple[int, ...]) -> Words:
    """Words: uniform, corners, few different ones in a wave."""
    raw = chance.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32)
    kind = chance.random((shape[0], 1))
    few = chance.choice(_CORNERS, (shape[0], 4))
    pick = np.take_along_axis(few, chance.integers(0, 4, shape), axis=1)
    some = np.where(chance.random(shape) < 0.4, chance.choice(_CORNERS, shape), raw)
    return np.where(kind < 0.3, pick, np.where(kind < 0.8, some, raw)).astype(np.uint32)


def _inputs(ins: Instruction, together: bool, n: int, seed: int, base: int) -> _Waves:
    chance = np.random.default_rng([seed, ins.word & 0xFFFFFFFF, ins.word >> 64 & 0xFFFFFFFF])
    density = chance.random((n, 1)) * 1.2
    live = chance.random((n, LANES)) < np.maximum(density, 0.1)
    live[np.arange(n), chance.integers(0, LANES, n)] = True
    active = live.copy()
    if not together:
        active &= chance.random((n, LANES)) < 0.7
        active[~active.any(axis=1)] = live[~active.any(axis=1)]
    regs = _map(ins, together)
    waves = _Waves(
        active,
        live,
        {i: _values(chance, (n, LANES)) for i in regs.r},
        {i: _values(chance, (n, 1)) for i in (*regs.ur, *regs.ur_lanes)},
        {i: chance.random((n, LANES)) < chance.choice([0.0, 0.1, 0.5, 0.9, 1.0], (n, 1))
         for i in range(7)},
        {i: chance.random((n, 1)) < 0.5 for i in range(7)},
        chance.integers(0, 256, (n, MEMORY), dtype=np.uint8),
        chance.integers(0, 256, (n, MEMORY), dtype=np.uint8),
        base, _shift(ins),
    )  # fmt: skip
    waves.constants[:_IN] = chance.integers(0, 256, _IN, dtype=np.uint8)
    if ins.mnemonic in WHOLE:
        _whole(ins, waves, chance)
    else:
        _addresses(ins, waves, chance, base)
    for data in (waves.shared, waves.memory):  # words that an exchange compares with
        words = data.view("<u4")
        words[:] = np.where(chance.random(words.shape) < 0.5, chance.choice(_CORNERS, words.shape),
                            words)  # fmt: skip
    if ins.mnemonic in ("SYNCS", "ARRIVES") or ins.has("ARRIVE"):
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


def _whole(ins: Instruction, waves: _Waves, chance: np.random.Generator) -> None:
    """All lanes execute; sources that the instruction is hard for."""
    n = len(waves.active)
    waves.live[:] = waves.active[:] = True
    guard = ins.guard
    if guard.index != 7:
        table = waves.predicates if guard.file == "P" else waves.uniform_predicates
        table[guard.index][:] = not guard.inv
    fill(ins, chance, n, MEMORY, waves.general, waves.uniform)


def _map(ins: Instruction, together: bool) -> RegisterMap:
    from .rules_block import registers

    return registers(ins, "together" if together else "apart")


def _shift(ins: Instruction) -> int:
    """Offsets into shared memory do not wrap: it begins where the offset of the instruction is."""
    mem = ins.get("dst") or ins.get("mem")
    shared = ins.mnemonic in _SHARED or "dst" in ins.operands
    if not shared or not isinstance(mem, Mem):
        return 0
    if mem.offset >= 0xF000:
        raise NoMeaning("an offset beyond shared memory")
    return max(mem.offset, 0) & ~15


_VECTORS = frozenset({"F16x8", "BF16x8", "F32x4"})  # 16 bytes an atomic access
_SHARED = ("LDS", "STS", "ATOMS", "LDL", "STL", "SYNCS", "ARRIVES")


def _addresses(ins: Instruction, waves: _Waves, chance: np.random.Generator, base: int) -> None:
    """Registers of a memory operand, so that it names few words of the wave's own memory."""
    n = len(waves.active)
    for operand in ins.operands.values():
        index = operand.index if isinstance(operand, Const) else None
        if isinstance(operand, Const) and operand.bank:
            raise NoMeaning("a constant bank besides 0")
        if isinstance(operand, Const) and index is not None and not index.is_zero:
            most = _IN - 16 - operand.offset  # one that stays inside the segment
            if operand.offset < 0 or most <= 0:
                raise NoMeaning("an offset beyond the constants")
            at = chance.integers(0, most // 8, (n, LANES)) * 8
            _set(waves.general if index.file == "R" else waves.uniform, index, at)
    to, source = ins.get("dst"), ins.get("mem")
    bases = [m.base for m in (to, source) if isinstance(m, Mem) and m.base is not None]
    if len(bases) == 2 and bases[0].index - bases[1].index in (0, 1):
        raise NoMeaning("one register for two addresses")
    for role, mem in (("dst", to), ("mem", source)):
        if isinstance(mem, Mem):
            _address(ins, mem, role == "dst" or ins.mnemonic in _SHARED, waves, chance, base)


def _address(
    ins: Instruction, mem: Mem, in_shared: bool, waves: _Waves, chance: np.random.Generator,
    base: int,
) -> None:  # fmt: skip
    """As _addresses, of one operand."""
    n = len(waves.active)
    if in_shared and mem.offset < 0 and all(r is None or r.is_zero for r in (mem.base, mem.ureg)):
        raise NoMeaning("an address below 0")
    size = max(16, element(ins.modifiers).size) if "128" in ins.modifiers else 8
    if _VECTORS.intersection(ins.modifiers):
        size = 16
    if ins.mnemonic in ("CCTL", "CCTLL"):
        size = 4
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
        generic = ins.mnemonic in ("LD", "ST", "ATOM", "QSPC")
        where = where + np.where(generic & (chance.random((n, 1)) < 0.4), shared, mine)
    where = where - mem.offset
    if not in_shared:
        if reg is not None and reg.width == 1:
            if uniform is None or uniform.width == 1:
                raise NoMeaning("a global address of 32 bits")
            _set(waves.uniform, uniform, where[:, :1] - at[:, :1])
            _set(waves.general, reg, at)
            return
        if reg is None and (uniform is None or uniform.width == 1):
            raise NoMeaning("a global address of 32 bits")
    if uniform is not None and reg is not None:
        add = np.broadcast_to(chance.integers(0, 64, (n, 1)) * 4 * size, (n, 1))
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


# --- the kernel ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which register each row of 32 words of a record is for; scalars are in all its lanes."""

    vector: tuple[tuple[RegRef, int], ...]
    scalar: tuple[tuple[RegRef, int], ...]  # UR: the value; P, UP: a mask of lanes

    @property
    def rows(self) -> int:
        """EXEC, the live lanes, registers."""
        return 2 + len(self.vector) + len(self.scalar)


def _layout(regs: RegisterMap) -> _Layout:
    vector = [(RegRef("R", i), v) for i, v in regs.r.items()]
    vector += [(RegRef("UR", i), v) for i, v in regs.ur_lanes.items()]
    scalar = [(RegRef("UR", i), s) for i, s in regs.ur.items()]
    scalar += [(RegRef("P", i), s.index) for i, s in regs.p.items()]
    scalar += [(RegRef("UP", i), s.index) for i, s in regs.up.items()]
    return _Layout(tuple(vector), tuple(scalar))


def _wait() -> Inst:
    return Inst("s_waitcnt", (), imm=0)


def _program(ins: Instruction, surroundings: Surroundings) -> tuple[bytes, _Layout]:
    state = selected(ins, surroundings)
    regs = state.regs
    lay = _layout(regs)
    record = lay.rows * LANES * 4 + MEMORY
    items: list[Item] = [
        Inst("s_load_b64", (_SOURCE, S(0, 2), Sp("null")), imm=_IN),
        Inst("s_load_b64", (_TARGET, S(0, 2), Sp("null")), imm=_OUT),
        _wait(),
        Inst("s_mul_i32", (_TEMP, S(13), I(record))),
        Inst("s_mul_hi_u32", (S(33), S(13), I(record))),
    ]
    for pair in (_SOURCE, _TARGET):
        low, high = S(pair.index), S(pair.index + 1)
        items += [Inst("s_add_u32", (low, low, _TEMP)), Inst("s_addc_u32", (high, high, S(33)))]
    items += [
        Inst("v_mov_b32", (regs.tid, V(0))),
        Inst("v_lshlrev_b32", (_AT, I(2), V(0))),
    ]
    items += _fill(lay, regs, _shift(ins))
    items += state.items
    items += _spill(lay, _shift(ins))
    for _, run in PASSES:
        items = run(items)
    return assemble(items).data, lay


def _fill(lay: _Layout, regs: RegisterMap, shift: int) -> Iterator[Item]:
    """Shared memory, registers, EXEC."""
    first = lay.rows * LANES * 4
    for i in range(_PER_LANE):
        yield from _load(first + 4 * LANES * i)
        yield Inst("ds_store_b32", (_AT, _DATA), imm=4 * LANES * i + shift)
    for n, (_, index) in enumerate(lay.scalar):
        yield Inst("s_load_b32", (S(index), _SOURCE, Sp("null")), imm=128 * (2 + n))
    yield Inst("s_load_b32", (regs.live, _SOURCE, Sp("null")), imm=128)
    for (bank, offset), place in regs.consts.items():
        assert bank == 0
        yield Inst("s_load_b32", (place, S(0, 2), Sp("null")), imm=offset)
    for n, (_, index) in enumerate(lay.vector):
        yield from _load(128 * (2 + len(lay.scalar) + n))
        yield Inst("v_mov_b32", (V(index), _DATA))
    yield Inst("s_load_b32", (S(34), _SOURCE, Sp("null")), imm=0)
    yield _wait()
    yield Inst("s_mov_b32", (EXEC, S(34)))


def _load(at: int) -> Iterator[Item]:
    yield Inst("s_mov_b32", (S(34), I(at & ~0xFFF)))
    yield Inst("v_add_nc_u32", (V(252), S(34), _AT))
    yield Inst("global_load_b32", (_DATA, V(252), _SOURCE), imm=at & 0xFFF)
    yield _wait()


def _store(at: int) -> Iterator[Item]:
    yield Inst("s_mov_b32", (S(34), I(at & ~0xFFF)))
    yield Inst("v_add_nc_u32", (V(252), S(34), _AT))
    yield Inst("global_store_b32", (V(252), _DATA, _TARGET), imm=at & 0xFFF)


def _spill(lay: _Layout, shift: int) -> Iterator[Item]:
    """What the rule left, to the other record."""
    yield _wait()
    yield Inst("s_waitcnt_vscnt", (Sp("null"),), imm=0)
    yield Inst("s_mov_b32", (S(35), EXEC))
    yield Inst("s_mov_b32", (EXEC, _ALL))
    for n, index in [(0, 35), *((2 + n, i) for n, (_, i) in enumerate(lay.scalar))]:
        yield Inst("v_mov_b32", (_DATA, S(index)))
        yield from _store(128 * n)
    for n, (_, index) in enumerate(lay.vector):
        yield Inst("v_mov_b32", (_DATA, V(index)))
        yield from _store(128 * (2 + len(lay.scalar) + n))
    for i in range(_PER_LANE):
        yield Inst("ds_load_b32", (_DATA, _AT), imm=4 * LANES * i + shift)
        yield _wait()
        yield from _store(lay.rows * LANES * 4 + 4 * LANES * i)
    yield Inst("s_endpgm", ())


_BITS = np.uint32(1) << np.arange(LANES, dtype=np.uint32)


def _mask(bits: Mask) -> Words:
    wide = np.broadcast_to(bits, (len(bits), LANES)) * _BITS
    return np.asarray(wide.sum(-1, dtype=np.uint32))[:, None]


def _value(waves: _Waves, ref: RegRef) -> Words:
    if ref.file == "R" or ref.file == "UR":
        return waves.reg(ref.file, ref.index)
    return _mask(waves.pred("P" if ref.file == "P" else "UP", ref.index))


def tried(
    ins: Instruction, surroundings: Surroundings, waves: int, seed: int = 1
) -> Different | None:
    """Runs both sides on ``waves`` random waves: the first place where they differ, if any.

    Raises NoMeaning, LoweringError where the rule refuses, EmulatorError where a wave stops.
    """
    together = surroundings == "together"
    if not has_meaning(ins.mnemonic):
        raise NoMeaning(ins.mnemonic)
    if ins.mnemonic in ("LDL", "STL"):
        raise NoMeaning("local memory, which these waves have none of")
    code, lay = _program(ins, surroundings)
    record = lay.rows * LANES + MEMORY // 4
    device = Device(3 * waves * max(4 * record, MEMORY) + (1 << 20))
    base = device.alloc(waves * MEMORY, 4096)
    state = _inputs(ins, together, waves, seed, base)
    before = np.zeros((waves, record), dtype=np.uint32)
    rows = before[:, : lay.rows * LANES].reshape(waves, lay.rows, LANES)
    rows[:, 0], rows[:, 1] = _mask(state.active), _mask(state.live)
    for n, (ref, _) in enumerate((*lay.scalar, *lay.vector)):
        rows[:, 2 + n] = _value(state, ref)
    before[:, lay.rows * LANES :] = state.shared.view("<u4")
    source, target = device.alloc(before.nbytes), device.alloc(before.nbytes)
    device.write(source, before.tobytes())
    device.write(base, state.memory.tobytes())
    segment = bytearray(state.constants.tobytes())
    for offset, pointer in ((_IN, source), (_OUT, target), (_GLOBAL, base)):
        segment[offset : offset + 8] = pointer.to_bytes(8, "little")
    state.constants[:] = np.frombuffer(bytes(segment), dtype=np.uint8)
    setup = Setup(kernarg_sgpr=0, wg_sgpr=(13, 14, 15), lds_size=MEMORY + _shift(ins))
    run_code(code, waves, LANES, bytes(segment), device, setup)
    after = np.frombuffer(device.read(target, before.nbytes), dtype=np.uint32)
    after = after.reshape(waves, record)
    memory = np.frombuffer(device.read(base, waves * MEMORY), dtype=np.uint32)
    mask = executing(ins, state)
    written = evaluate_warp(ins, state)
    want = {ref: _value(state, ref) for ref, _ in (*lay.scalar, *lay.vector)}
    return _compare(ins, state, lay, want, written, mask, after, memory.reshape(waves, -1))


def _compare(
    ins: Instruction, state: _Waves, lay: _Layout, old: Mapping[RegRef, Words],
    written: Mapping[RegRef, NDArray[Any]], mask: Mask, after: Words, memory: Words,
) -> Different | None:  # fmt: skip
    n = len(mask)
    rows = after[:, : lay.rows * LANES].reshape(n, lay.rows, LANES)
    pairs = [("EXEC", np.broadcast_to(_mask(state.active), (n, LANES)), rows[:, 0])]
    some = mask.any(axis=1, keepdims=True)
    seen = _mask(state.active)
    for at, (ref, _) in enumerate((*lay.scalar, *lay.vector)):
        value = old[ref]
        got = rows[:, 2 + at]
        if ref in written:
            new = written[ref]
            if ref.file == "R":
                value = np.where(mask, new, value)
            elif ref.file == "UR":
                value = np.where(some, new, value)
            elif ref.file == "P":
                value = (value & ~_mask(mask)) | _mask(np.broadcast_to(new, mask.shape) & mask)
            else:
                value = np.where(some, _mask(new), value)
        value = np.broadcast_to(value, (n, LANES))
        if ref.file == "UR":  # only active lanes ask for a uniform register
            value, got = (np.where(state.active, v, 0) for v in (value, got))
        if ref.file == "UP" or (ref.file == "P" and ref in written):
            value, got = (v & seen for v in (value, got))
        pairs.append((f"{ref.file}{ref.index}", value, got))
    pairs.append(("shared memory", state.shared.view("<u4"), after[:, lay.rows * LANES :]))
    pairs.append(("global memory", state.memory.view("<u4"), memory))
    return first_difference(pairs, written, float_kind(ins))


__all__ = ["Different", "Fault", "tried"]
