"""Both sides of a block on numbers: counterexamples replayed, and edge-biased random inputs."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.domain.interface import Approximation
from sassxlate.domain.numpy_lanes import Vec, Vectors
from sassxlate.lowering.verify.block.block import BlockPair
from sassxlate.lowering.verify.block.relation import run
from sassxlate.lowering.verify.block.trusted_instructions import Cut
from sassxlate.lowering.verify.rdna3.wait_counters import waits
from sassxlate.lowering.verify.verdict import Refuted, Undecided

_EDGES = np.array(
    [0, 1, 2, 31, 32, 63, 64, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF,
     0x80000000, 0xFFFFFFFF, 0x3F800000, 0xBF800000, 0x3F000000, 0x7F800000, 0xFF800000,
     0x7FC00000, 0x7F7FFFFF, 0x00800000, 0x007FFFFF, 0x4B000000, 0x4F000000, 0x5F000000,
     0x7FF00000, 0xFFF00000, 0x7FF80000, 0x3FF00000, 0xC0000000, 0x41E00000, 0x43E00000,
     0x3C003C00, 0x7C007C00, 0xFC007E00, 0x00010001, 0x7BFF7BFF, 0x3C000000, 0x00100000],
    dtype=np.uint64,
)  # fmt: skip


OTHERS = "other"  # prefix of the names of other lanes' values
Free: TypeAlias = Callable[[str, int], Vec]
Values: TypeAlias = "NDArray[np.uint64]"
Close: TypeAlias = "Callable[[Values, Values], NDArray[np.bool_]]"


class Numbers(Vectors):
    """NaN have no payloads: the payloads of the hardware are not compared.

    ``near``: approximations are compared within bounds.
    """

    def __init__(self, *, near: bool = False) -> None:
        self.payloads = False
        self.near = near

    def approx(self, fn: Approximation, a: Vec) -> Vec:
        # SASS has this function; ours is built from others, within a bound.
        if fn == "tanh" and not self.near:
            raise Undecided("tanh is approximated differently")
        return super().approx(fn, a)


def _random(name: str, width: int, lanes: int, seed: int) -> Vec:
    """Values for a name: corners, few bits, halves of floats, uniform bits."""
    chance = np.random.default_rng([seed, zlib.crc32(name.encode())])
    raw = chance.integers(0, 1 << 32, lanes, dtype=np.uint64)
    if width == 32:
        kind = chance.random(lanes)
        raw = np.where(kind < 0.3, chance.choice(_EDGES, lanes), raw)
        small = raw >> chance.integers(0, 32, lanes, dtype=np.uint64)
        raw = np.where((kind > 0.3) & (kind < 0.5), small, raw)
        near_one = raw & np.uint64(0x80FFFFFF) | np.uint64(0x3F000000)
        raw = np.where((kind > 0.5) & (kind < 0.7), near_one, raw)
    return Vec(raw & np.uint64((1 << width) - 1), width)


def differential(
    block: BlockPair, lanes: int, seed: int = 1, *, active: bool = True, close: Close | None = None
) -> Refuted | None:
    """The first random input on which the sides differ, if any.  Raises Undecided.

    ``close`` decides which values of a general register count as equal.
    """
    done = waits([*chain.from_iterable(block.rdna), *block.tail]).done
    return Replay(block, done, {}, active, close).random(lanes, seed)


def edge_biased(bits: Values) -> Vec:
    """Words of uniform bits (64 of them): corners, few bits, floats near one, uniform bits."""
    raw, kind = bits & np.uint64(0xFFFFFFFF), bits >> np.uint64(32) & np.uint64(7)
    raw = np.where(kind < 2, _EDGES[(bits >> np.uint64(40)) % np.uint64(_EDGES.size)], raw)
    raw = np.where(kind == 2, raw >> (bits >> np.uint64(40) & np.uint64(31)), raw)
    near_one = raw & np.uint64(0x80FFFFFF) | np.uint64(0x3F000000)
    return Vec(np.where((kind == 3) | (kind == 4), near_one, raw), 32)


@dataclass(frozen=True, slots=True)
class Replay:
    """One case of the question (an active or an inactive lane) on numbers."""

    block: BlockPair
    done: frozenset[int]
    cuts: Mapping[int, Cut]
    active: bool
    close: Close | None = None

    def random(self, lanes: int, seed: int = 1) -> Refuted | None:
        """The first random input on which the sides differ, if any.  Raises Undecided."""
        memory: dict[str, Vec] = {}

        def free(name: str, width: int) -> Vec:
            if name not in memory:
                memory[name] = _random(name, width, lanes, seed)
            return memory[name]

        found = self._compare(free, memory, lanes)
        return None if found is None else self.of(found.inputs) or found

    def of(self, inputs: Mapping[str, int]) -> Refuted | None:
        """The difference that these inputs show, if any: with the lane alone in the wave, or else
        with the other lanes' values from the inputs."""
        alone = {n: v for n, v in inputs.items() if not n.startswith(OTHERS)}
        found = self._one(alone)
        return found if found is not None or len(alone) == len(inputs) else self._one(inputs)

    def _one(self, inputs: Mapping[str, int]) -> Refuted | None:
        memory: dict[str, Vec] = {}

        def free(name: str, width: int) -> Vec:
            if name not in memory:
                value = inputs.get(name, 0) & ((1 << width) - 1)
                memory[name] = Vec(np.array([value], dtype=np.uint64), width)
            return memory[name]

        return self._compare(free, memory, 1)

    def _compare(self, free: Free, memory: Mapping[str, Vec], lanes: int) -> Refuted | None:
        outcome = run(
            self.block,
            Numbers(near=self.close is not None),
            free,
            active=self.active,
            done=self.done,
            cuts=self.cuts,
        )
        for pair in outcome.pairs:
            a, b = (np.broadcast_to(v.v, (lanes,)) for v in (pair.sass, pair.rdna))
            differ = a != b
            if self.close is not None and pair.name.startswith("R"):
                mine, ours = pair.values or (pair.sass, pair.rdna)
                close = self.close(*(np.broadcast_to(v.v, (lanes,)) for v in (mine, ours)))
                differ &= ~close
            wrong = np.flatnonzero(differ)
            if wrong.size:
                at = int(wrong[0])
                inputs = {
                    name: int(np.broadcast_to(v.v, (lanes,))[at]) for name, v in memory.items()
                }
                inputs = {n: v for n, v in inputs.items() if v or not n.startswith(OTHERS)}
                inputs["active"] = int(self.active)
                return Refuted(inputs, pair.name, int(a[at]), int(b[at]))
        return None
