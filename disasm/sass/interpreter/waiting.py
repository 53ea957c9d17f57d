"""The places where lanes wait for each other: convergence barriers, WARPSYNC, collective sections,
BAR."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import Instruction, Label
from sassxlate.disasm.sass.interpreter.resident_warps import (
    Group,
    Index,
    Mask,
    Masks,
    Resident,
    ballot,
    spread,
)
from sassxlate.disasm.sass.semantics.warp_state import LANES


class Wait(IntEnum):
    """The kind of barrier that a lane waits at."""

    NOTHING = 0
    BSYNC = 1
    WARPSYNC = 2
    COLLECTIVE = 3
    BAR = 4


class Waiting:
    """The waiting lanes: at what, where in the code, and for which lanes."""

    def __init__(self, state: Resident, classes: NDArray[np.int64]) -> None:
        shape = (state.warps, LANES)
        self.s = state
        self.kind = np.zeros(shape, np.int8)
        self.index = np.zeros(shape, np.int32)  # of the instruction
        self.mask = np.zeros(shape, np.uint32)  # mask of BSYNC and WARPSYNC
        self.number = np.zeros(shape, np.int32)  # number of the barrier; BSYNC's register
        self.need = np.zeros(shape, np.int32)  # threads that BAR waits for; 0: the whole block
        self.home = np.zeros(shape, np.int32)  # the end of the collective section
        self.since = np.zeros(shape, np.int64)
        self.arrived: dict[
            tuple[int, int], dict[int, int]
        ] = {}  # by (block, barrier): warp to lanes
        self.classes = classes
        self.any = False

    def put(
        self, act: Mask, kind: Wait, index: int, now: int, *, number: int | NDArray[np.int32] = 0,
        mask: NDArray[np.uint32] | int = 0, need: int | NDArray[np.int32] = 0,
    ) -> None:  # fmt: skip
        """The lanes of ``act`` (over all warps) begin to wait; values are scalars or over all."""
        self.any = True
        self.kind[act] = kind
        self.index[act] = index
        self.since[act] = now
        for array, value in ((self.number, number), (self.mask, mask), (self.need, need)):
            np.copyto(array, value, where=act, casting="unsafe")

    def free(self, lanes: Mask) -> list[tuple[int, Mask]]:
        """Stops the wait of these lanes: (instruction after which they continue, lanes)."""
        out: list[tuple[int, Mask]] = []
        for index in np.unique(self.index[lanes]).tolist():
            out.append((index + 1, lanes & (self.index == index)))
        self.kind[lanes] = Wait.NOTHING
        self.any = bool(self.kind.any())
        return out

    # --- inside a warp --------------------------------------------------------------------------

    def met(self, warps: Index, kind: Wait, without: NDArray[np.uint32] | None = None) -> Mask:
        """(all warps, 32): the lanes, in some warps, whose masks are complete.

        All lanes with one mask are released together, those of WARPSYNC if they wait at the same
        instruction.  ``without``: by warp, the lanes that may be missing.
        """
        out = np.zeros(self.kind.shape, np.bool_)
        waits = self.kind[warps] == kind
        busy = np.flatnonzero(waits.any(axis=1))
        if not len(busy):
            return out
        warps, waits = warps[busy], waits[busy]
        mask = self.mask[warps]
        live = ballot(self.s.live[warps])[:, None]
        if without is not None:
            live = live & ~without[warps][:, None]
        same = waits[:, :, None] & waits[:, None, :]
        other = (self.index if kind == Wait.WARPSYNC else self.number)[warps]
        same &= other[:, :, None] == other[:, None, :]
        same &= mask[:, :, None] == mask[:, None, :]
        flat = np.ascontiguousarray(same).reshape(-1, LANES)
        together = ballot(flat).reshape(len(warps), LANES)
        out[warps] = waits & (mask & live & ~together == 0)
        return out

    def held_up(self) -> Mask:
        """(all warps, 32): the lanes at a BSYNC whose missing lanes are all at a WARPSYNC."""
        others = ballot((self.kind == Wait.WARPSYNC) | (self.kind == Wait.COLLECTIVE))
        return self.met(np.flatnonzero(others != 0), Wait.BSYNC, others)

    # --- inside a block -------------------------------------------------------------------------

    def open_barriers(self, blocks: Sequence[int]) -> Mask:
        """The lanes at barriers of these blocks that all have reached; reductions are done."""
        out = np.zeros(self.kind.shape, np.bool_)
        each = self.s.each
        for block in blocks:
            own = slice(block * each, (block + 1) * each)
            at = self.kind[own] == Wait.BAR
            numbers = set(np.unique(self.number[own][at]).tolist())
            numbers |= {n for b, n in self.arrived if b == block}
            for number in sorted(numbers):
                here = at & (self.number[own] == number)
                if self._complete(block, number, here):
                    out[own] |= here
                    self.arrived.pop((block, number), None)
        return out

    def _complete(self, block: int, number: int, here: Mask) -> bool:
        each = self.s.each
        own = slice(block * each, (block + 1) * each)
        live = self.s.live[own]
        gone = self.arrived.get((block, number), {})
        needs = np.unique(self.need[own][here])
        need = int(needs.max()) if len(needs) else max(gone.values(), default=0) >> 32
        waiting, alive = ballot(here), ballot(live)
        # A warp counts once all of its live lanes have arrived, and then as 32 threads.
        whole = (waiting == alive) & (alive != 0)
        passed = np.zeros(each, np.int64)
        for warp, _ in gone.items():
            passed[warp] = gone[warp] & 0xFFFFFFFF
        if need == 0:
            return bool((whole | (alive == 0)).all()) and bool(here.any())
        count = int(np.count_nonzero(whole)) * LANES + int(passed.sum()) * LANES
        return count >= (need + LANES - 1) // LANES * LANES

    def arrive(self, block: int, number: int, warp: int, need: int) -> None:
        """BAR.ARV of a whole warp (numbered in its block): counts it without waiting."""
        record = self.arrived.setdefault((block, number), {})
        record[warp] = ((record.get(warp, 0) & 0xFFFFFFFF) + 1) | need << 32


def home_of(ins: Instruction) -> int:
    """The index of the instruction at which lanes of a collective section continue."""
    label = ins.get("target")
    return label.target // 16 if isinstance(label, Label) else -1


def section_classes(code: Sequence[Instruction | None]) -> NDArray[np.int64]:
    """For each instruction that opens a collective section, a number shared by those with the same
    instructions inside; -1 for others."""
    out = np.full(len(code), -1, np.int64)
    seen: dict[tuple[str, ...], int] = {}
    for index, ins in enumerate(code):
        if ins is None or ins.mnemonic != "WARPSYNC" or not ins.has("COLLECTIVE"):
            continue
        body: list[str] = [str(ins.has("ALL"))]
        for inner in code[index + 1 :]:
            if inner is None or inner.mnemonic == "ENDCOLLECTIVE":
                break
            if inner.mnemonic != "NOP":
                body.append(inner.text.replace(".reuse", ""))
        out[index] = seen.setdefault(tuple(body), len(seen))
    return out


__all__ = [
    "Group",
    "Index",
    "Masks",
    "Wait",
    "Waiting",
    "home_of",
    "section_classes",
    "spread",
]
