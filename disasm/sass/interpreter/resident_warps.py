"""The state of the resident warps, and the view of it that one instruction has.

Arrays are over (warps, 32 lanes); a block's warps follow one another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import Const, PredFile, RegFile, RegRef, Special
from sassxlate.disasm.sass.interpreter.launch import Launch
from sassxlate.disasm.sass.interpreter.memory import (
    LOCAL_WINDOW,
    SHARED_WINDOW,
    Bytes,
    Flat,
    GlobalMemory,
    Outside,
    Places,
    Rows,
)
from sassxlate.disasm.sass.semantics.arithmetic.multiprocessor import (
    NAME as SMID,
)
from sassxlate.disasm.sass.semantics.arithmetic.multiprocessor import (
    multiprocessor,
    reciprocal,
)
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.disasm.sass.semantics.warp_state import LANES, Space, Update
from sassxlate.domain.numpy_lanes import Vec, Vectors

Mask: TypeAlias = NDArray[np.bool_]
Masks: TypeAlias = NDArray[np.uint32]  # one word per warp; lane 0 is bit 0
Index: TypeAlias = NDArray[np.int64]

_LANE = np.arange(LANES, dtype=np.uint32)
_BIT = np.uint32(1) << _LANE


def ballot(lanes: Mask) -> Masks:
    """(warps, 32) truths as masks."""
    packed = np.packbits(lanes, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u4").reshape(-1)


def spread(masks: Masks) -> Mask:
    """Masks as (warps, 32) truths."""
    parts = np.ascontiguousarray(masks, "<u4").view(np.uint8).reshape(-1, 4)
    return np.unpackbits(parts, axis=1, bitorder="little").astype(np.bool_)


class Resident:
    """Registers, predicates, shared and local memory of ``blocks`` blocks from the launch's block
    ``first`` on."""

    def __init__(
        self, launch: Launch, device: GlobalMemory, first: int, blocks: int, rows: int
    ) -> None:
        self.launch = launch
        self.device = device
        self.first = first
        self.blocks = blocks
        self.each = (launch.threads + LANES - 1) // LANES  # warps per block
        self.warps = warps = blocks * self.each
        shape = (warps, LANES)
        self.r = np.zeros((rows, *shape), np.uint64)
        self.p = np.zeros((7, *shape), np.bool_)
        self.ur = np.zeros((256, warps, 1), np.uint64)
        self.up = np.zeros((7, warps, 1), np.bool_)
        self.b = np.zeros((16, *shape), np.uint32)  # convergence barriers, a mask per lane
        self.result = np.zeros(shape, np.uint64)  # result of the last reduction at a barrier
        self.shared = Rows(blocks, launch.shared)
        self.local = Rows(warps * LANES, launch.local)
        self.block_of = np.arange(warps) // self.each
        thread = np.arange(self.each * LANES)
        self.live: Mask = np.tile((thread < launch.threads).reshape(-1, LANES), (blocks, 1))
        self.specials = _specials(launch, first, blocks, self.each)
        self.clock = 0
        self.constants: dict[tuple[int, int], Vec] = {}  # words that were read
        self._banks: dict[int, tuple[Bytes, int]] = {
            n: (np.frombuffer(data.ljust(len(data) + 64, b"\0"), np.uint8), len(data))
            for n, data in launch.banks.items()
        }

    def bank(self, number: int) -> tuple[Bytes, int]:
        """A constant bank's bytes, padded at the end, and their number without the padding."""
        if number not in self._banks:
            raise NoSemantics(f"constant bank {number}, which the launch does not have,")
        return self._banks[number]


def _specials(launch: Launch, first: int, blocks: int, each: int) -> dict[str, NDArray[np.uint32]]:
    thread = np.arange(each * LANES).reshape(each, LANES)
    x, y, _ = launch.block
    own = {
        "SR_TID.X": thread % x,
        "SR_TID.Y": thread // x % y,
        "SR_TID.Z": thread // (x * y),
    }
    out = {n: np.tile(v.astype(np.uint32), (blocks, 1)) for n, v in own.items()}
    number = np.repeat(np.arange(first, first + blocks), each)[:, None]
    gx, gy, _ = launch.grid
    out["SR_CTAID.X"] = (number % gx).astype(np.uint32)
    out["SR_CTAID.Y"] = (number // gx % gy).astype(np.uint32)
    out["SR_CTAID.Z"] = (number // (gx * gy)).astype(np.uint32)
    d, parts = Vectors(), [out[f"SR_CTAID.{axis}"] for axis in "XYZ"]
    x_, y_, z_ = (Vec(part.astype(np.uint64), 32) for part in parts)
    width, height, count = (d.const(n, 32) for n in (gx, gy, launch.multiprocessors))
    inverse = d.const(reciprocal(launch.multiprocessors), 32)
    smid = multiprocessor(d, (x_, y_, z_), (width, height), count, inverse)
    out[SMID] = smid.v.astype(np.uint32)
    warps = blocks * each
    lane = np.broadcast_to(_LANE, (warps, LANES))
    below = (_BIT - np.uint32(1)).astype(np.uint32)
    for name, row in {
        "SR_EQMASK": _BIT, "SR_LTMASK": below, "SR_LEMASK": below | _BIT,
        "SR_GTMASK": ~(below | _BIT), "SR_GEMASK": ~below,
    }.items():  # fmt: skip
        out[name] = np.broadcast_to(row, (warps, LANES))
    out["SR_LANEID"] = lane
    for name, value in {
        "SRZ": 0, "SR_CgaCtaId": 0, "SR_CgaSize": 0, "SR_SWINLO": 0, "SR_LWINLO": 0,
        "SR_LMEMHIOFF": 0, "SR_SWINHI": SHARED_WINDOW, "SR_LWINHI": LOCAL_WINDOW,
    }.items():  # fmt: skip
        out[name] = np.full((warps, 1), value, np.uint32)
    return out


class Group:
    """Some lanes of some warps at one instruction: the ``Warp`` that the semantics see."""

    __slots__ = ("act", "at", "by", "op", "s")

    def __init__(self, s: Resident, rows: Index | None, act: Mask) -> None:
        """``act`` is over the warps of ``rows``, ascending; over all warps if that is None."""
        self.s = s
        if rows is not None and len(rows) == s.warps:
            rows = None
        self.at: Index | slice = slice(None) if rows is None else rows
        self.act = act
        self.by = -1  # the code offset of the running instruction
        self.op = ""  # the operation of an atomic that need not be applied lane by lane

    @classmethod
    def of(cls, s: Resident, lanes: Mask) -> Group:
        """From a truth for every resident lane."""
        rows = np.flatnonzero(lanes.any(axis=1))
        return cls(s, None, lanes) if len(rows) == s.warps else cls(s, rows, lanes[rows])

    def only(self, lanes: Mask) -> Group | None:
        """The group of those of its lanes; None if there are none."""
        some = lanes.any(axis=1)
        if some.all():
            return Group(self.s, None if isinstance(self.at, slice) else self.at, lanes)
        if not some.any():
            return None
        return Group(self.s, self.rows[some], lanes[some])

    def joined(self, other: Group) -> Group:
        return Group.of(self.s, self.everywhere(self.act) | other.everywhere(other.act))

    def everywhere(self, values: NDArray[Any]) -> NDArray[Any]:
        """(its warps, 32) values over all resident warps, zero elsewhere."""
        if isinstance(self.at, slice):
            return values.copy()
        out = np.zeros((self.s.warps, LANES), values.dtype)
        out[self.at] = values
        return out

    @property
    def active(self) -> Mask:
        return self.act

    @property
    def count(self) -> int:
        """The number of warps."""
        return len(self.act)

    @property
    def rows(self) -> Index:
        """The numbers of its warps."""
        return np.arange(self.s.warps) if isinstance(self.at, slice) else self.at

    # --- registers -----------------------------------------------------------------------------

    def reg(self, file: RegFile, index: int) -> NDArray[np.uint32]:
        source = self.s.r if file == "R" else self.s.ur
        out: NDArray[np.uint32] = source[index][self.at].astype(np.uint32)
        return out

    def wide(self, file: RegFile, index: int) -> NDArray[np.uint64]:
        """A register as the numbers of ``Vectors``."""
        source = self.s.r if file == "R" else self.s.ur
        out: NDArray[np.uint64] = source[index][self.at]
        return out

    def pred(self, file: PredFile, index: int) -> Mask:
        source = self.s.p if file == "P" else self.s.up
        out: Mask = source[index][self.at]
        return out

    def write(self, values: Mapping[RegRef, NDArray[Any]], lanes: Mask) -> None:
        """Writes an instruction's results, in the lanes that execute it."""
        s, at = self.s, self.at
        every = bool(lanes.all())
        for ref, value in values.items():
            if ref.file in ("R", "P"):
                target = s.r[ref.index] if ref.file == "R" else s.p[ref.index]
                if every:
                    target[at] = value
                elif isinstance(at, slice):
                    np.copyto(target, value, where=lanes, casting="unsafe")
                else:
                    target[at] = np.where(lanes, value, target[at])
                continue
            once = s.ur[ref.index] if ref.file == "UR" else s.up[ref.index]
            any_ = lanes.any(axis=1, keepdims=True)
            if value.shape[-1] == LANES:
                value = np.take_along_axis(value, np.argmax(lanes, axis=1)[:, None], 1)
            once[at] = np.where(any_, np.broadcast_to(value, (self.count, 1)), once[at])

    # --- values that are fetched ----------------------------------------------------------------

    def special(self, operand: Special) -> NDArray[np.uint32]:
        s = self.s
        name = operand.name
        if name.startswith(("SR_CLOCK", "SR_GLOBALTIMER")):
            high = name.endswith("HI")
            value = s.clock >> 32 if high else s.clock
            return np.full((self.count, 1), value & 0xFFFFFFFF, np.uint32)
        known = s.specials.get(name)
        if known is None:
            raise NoSemantics(f"special register {name}")
        return known[self.at]

    def constant(self, bank: int, offset: NDArray[np.uint32], size: int) -> Bytes:
        data, room = self.s.bank(bank)
        if offset.size == 1:
            at = int(offset.reshape(-1)[0])
            if at + size > room:
                raise NoSemantics(f"c[{bank:#x}][{at:#x}], past the bank's {room:#x} bytes,")
            return data[at : at + size].reshape(*offset.shape, size)
        # An inactive lane may have any index.
        where = np.where(offset.astype(np.int64) + size > room, 0, offset.astype(np.int64))
        return data[where[..., None] + np.arange(size)]

    # --- memory ---------------------------------------------------------------------------------

    def in_shared(self, address: NDArray[np.uint64]) -> Mask:
        """Which generic addresses are in shared memory."""
        out: Mask = address >> np.uint64(32) == np.uint64(SHARED_WINDOW)
        return out

    def _flat(self, mask: Mask) -> NDArray[np.intp]:
        return np.flatnonzero(np.broadcast_to(mask, self.act.shape))

    def _split(
        self, space: Space, address: NDArray[np.uint64], lanes: NDArray[np.intp]
    ) -> list[tuple[Space, NDArray[np.uint64], NDArray[np.intp]]]:
        """Generic addresses split by the memory that they address."""
        if space != "generic":
            return [(space, address, lanes)]
        high = address >> np.uint64(32)
        shared = high == np.uint64(SHARED_WINDOW)
        local = high == np.uint64(LOCAL_WINDOW)
        low = address & np.uint64(0xFFFFFFFF)
        parts: list[tuple[Space, NDArray[np.uint64], NDArray[np.intp]]] = []
        kinds: list[tuple[Space, Mask, NDArray[np.uint64]]] = [
            ("shared", shared, low), ("local", local, low), ("global", ~(shared | local), address),
        ]  # fmt: skip
        for kind, some, values in kinds:
            if some.any():
                parts.append((kind, values[some], lanes[some]))
        return parts

    def _places(
        self, space: Space, address: NDArray[np.uint64], lanes: NDArray[np.intp], size: int
    ) -> Places:
        try:
            if space == "global":
                return self.s.device.places(address, size)
            warp = self.rows[lanes >> 5]
            if space == "shared":
                return self.s.shared.places(self.s.block_of[warp], address, size)
            return self.s.local.places(warp * LANES + (lanes & 31), address, size)
        except Outside as error:
            lane = int(lanes[error.number])
            raise Missed(space, error.address, size, int(self.rows[lane >> 5]), lane & 31) from None

    def threads(self, lanes: NDArray[np.intp]) -> NDArray[np.int64]:
        """The numbers in the grid of lanes of the group, 32 per warp."""
        out: NDArray[np.int64] = self.rows[lanes >> 5] * LANES + (lanes & 31)
        return out + self.s.first * self.s.each * LANES

    def _memory(self, space: Space) -> GlobalMemory | Rows:
        if space == "global":
            return self.s.device
        return self.s.shared if space == "shared" else self.s.local

    def load(self, space: Space, address: NDArray[np.uint64], size: int, mask: Mask) -> Bytes:
        lanes = self._flat(mask)
        out = np.zeros((self.act.size, size), np.uint8)
        if len(lanes):
            for kind, where, some in self._split(space, address.reshape(-1)[lanes], lanes):
                out[some] = self._memory(kind).load(self._places(kind, where, some, size), size)
        return out.reshape(*self.act.shape, size)

    def store(self, space: Space, address: NDArray[np.uint64], data: Bytes, mask: Mask) -> None:
        size = data.shape[-1]
        lanes = self._flat(mask)
        if len(lanes):
            every = data.reshape(-1, size)
            for kind, where, some in self._split(space, address.reshape(-1)[lanes], lanes):
                at = self._places(kind, where, some, size)
                self._memory(kind).store(at, every[some], self.by, self.threads(some))

    def update(
        self, space: Space, address: NDArray[np.uint64], size: int, mask: Mask, change: Update
    ) -> Bytes:
        """Lanes at one address take turns by warp and lane number."""
        lanes = self._flat(mask)
        before = np.zeros((self.act.size, size), np.uint8)
        if len(lanes):
            for kind, where, some in self._split(space, address.reshape(-1)[lanes], lanes):
                at = self._places(kind, where, some, size)
                turns = _Turns(self._memory(kind), at, size, some, self)
                before[some] = turns.scanned(change, self.op) if self.op else turns.taken(change)
        return before.reshape(*self.act.shape, size)


class _Turns:
    """Atomic accesses of lanes, in order; ``lanes`` are indices into the group's lanes."""

    def __init__(
        self, memory: Flat, at: Places, size: int, lanes: NDArray[np.intp], group: Group
    ) -> None:
        self.memory, self.at, self.size, self.lanes, self.group = memory, at, size, lanes, group
        self.order = np.argsort(at, kind="stable")
        place = at[self.order]
        self.head = np.ones(len(at), np.bool_)  # in that order: whether first at its address
        self.head[1:] = place[1:] != place[:-1]

    def _change(self, change: Update, old: Bytes, which: NDArray[np.intp]) -> Bytes:
        return change(old, np.unravel_index(self.lanes[which], self.group.act.shape))

    def _store(self, which: NDArray[np.intp], data: Bytes) -> None:
        group = self.group
        self.memory.store(self.at[which], data, group.by, group.threads(self.lanes[which]))

    def scanned(self, change: Update, op: str) -> Bytes:
        """Sums of integers, XOR and exchanges: the value that a lane reads follows from the lanes
        before it."""
        kind = np.dtype(np.uint32 if self.size == 4 else np.uint64)
        order, head = self.order, self.head
        start: NDArray[Any] = self.memory.load(self.at[order], self.size)
        operand: NDArray[Any] = self._change(change, np.zeros_like(start), order)
        operand = np.ascontiguousarray(operand).view(kind)[:, 0]
        start = np.ascontiguousarray(start).view(kind)[:, 0]
        first = np.flatnonzero(head)
        runs = np.diff(np.append(first, len(order)))
        seen: NDArray[Any]
        if op == "EXCH":
            seen = np.where(head, start, np.roll(operand, 1))
            new = operand
        elif op == "XOR":
            ahead: NDArray[Any] = np.bitwise_xor.accumulate(operand) ^ operand
            seen = start ^ ahead ^ np.repeat(ahead[first], runs)
            new = seen ^ operand
        else:
            ahead = np.cumsum(operand, dtype=kind) - operand
            seen = start + ahead - np.repeat(ahead[first], runs)
            new = seen + operand
        last = np.append(first[1:], len(order)) - 1
        self._store(order[last], np.ascontiguousarray(new[last])[:, None].view(np.uint8))
        out = np.empty((len(order), self.size), np.uint8)
        out[order] = np.ascontiguousarray(seen)[:, None].view(np.uint8)
        return out

    def taken(self, change: Update) -> Bytes:
        """All remaining accesses of an address are tried at once: one that changes nothing needs no
        turn."""
        out = np.empty((len(self.at), self.size), np.uint8)
        left, head = self.order, self.head
        while len(left):
            old = self.memory.load(self.at[left], self.size)
            new = self._change(change, old, left)
            changed = (new != old).any(axis=1)
            group = np.cumsum(head) - 1
            # At each address, the first access that changes it, and those before it, are done.
            count = np.cumsum(changed)
            before = (count - changed) - (count - changed)[np.flatnonzero(head)][group]
            done = before == 0
            out[left[done]] = old[done]
            doer = done & changed
            self._store(left[doer], new[doer])
            left, group = left[~done], group[~done]
            head = np.ones(len(left), np.bool_)
            head[1:] = group[1:] != group[:-1]
        return out


class Missed(Exception):
    """An access of one lane to memory that does not exist."""

    def __init__(self, space: str, address: int, size: int, warp: int, lane: int) -> None:
        super().__init__(f"{size} bytes at {address:#x} of {space} memory")
        self.warp = warp
        self.lane = lane


class LaneEnv:
    """A group as the environment of per-lane semantics."""

    __slots__ = ("g",)

    def __init__(self, group: Group) -> None:
        self.g = group

    def reg(self, file: RegFile, index: int) -> Vec:
        return Vec(self.g.wide(file, index), 32)

    def pred(self, file: PredFile, index: int) -> Vec:
        return Vec(self.g.pred(file, index).astype(np.uint64), 1)

    def const(self, operand: Const, word: int) -> Vec:
        if operand.ur is not None:
            raise NoSemantics("bindless constant")
        at = operand.offset + 4 * word
        indexed = operand.index is not None and not operand.index.is_zero
        known = None if indexed else self.g.s.constants.get((operand.bank, at))
        if known is not None:
            return known
        offset = np.array([at & 0xFFFFFFFF], np.uint32)  # negative offsets are used with an index
        if operand.index is not None and indexed:
            offset = offset + self.g.reg(operand.index.file, operand.index.index)
        data = np.ascontiguousarray(self.g.constant(operand.bank, offset, 4)).view("<u4")
        value = Vec(data[..., 0].astype(np.uint64), 32)
        if not indexed:
            self.g.s.constants[operand.bank, at] = value
        return value

    def special(self, operand: Special) -> Vec:
        return Vec(self.g.special(operand).astype(np.uint64), 32)
