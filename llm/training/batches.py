"""Batches for a trainer: examples packed into rows, rows in batches, some held out."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sassxlate.llm.dataset.shards import Shard

if TYPE_CHECKING:
    from sassxlate.llm.training.settings import TrainingSettings

PAD_TARGET = -100
PACKED = 16_384  # examples packed into rows at once: a million at once take seconds
AHEAD = 12  # batches prepared ahead
HELD_OUT = 64  # one in this many, unless shards are given for that


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of packed examples, all (rows, length); ``weights`` are those of the targets."""

    tokens: NDArray[np.int64]
    places: NDArray[np.int64]
    documents: NDArray[np.int64]
    targets: NDArray[np.int64]
    weights: NDArray[np.float32]

    @property
    def count(self) -> int:
        """Tokens that are not padding."""
        return int((self.documents >= 0).sum())


def pack(shard: Shard, order: Sequence[int], row: int) -> list[list[int]]:
    """Rows of examples, each as full as the next examples in order allow; examples that are too
    long are left out.

    A row is open until it is nearly full; an example goes into the fullest row that has room.
    """
    rows: list[list[int]] = []
    opened: list[tuple[int, list[int]]] = []  # free tokens, members
    lengths = np.diff(shard.starts)
    for i in order:
        need = int(lengths[i])
        if need > row:
            continue
        best = -1
        for k, (room, _) in enumerate(opened):
            if need <= room and (best < 0 or room < opened[best][0]):
                best = k
        if best < 0:
            opened.append((row - need, [i]))
            best = len(opened) - 1
        else:
            room, members = opened[best]
            members.append(i)
            opened[best] = (room - need, members)
        if opened[best][0] < 24 or len(opened) > 16:
            full = min(range(len(opened)), key=lambda k: opened[k][0])
            rows.append(opened.pop(full)[1])
    return rows + [members for _, members in opened]


def batch_of(shard: Shard, rows: Sequence[Sequence[int]], row: int, question: float) -> Batch:
    """The arrays of some rows."""
    shape = (len(rows), row)
    tokens, places = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    documents = np.full(shape, -1, np.int64)
    targets = np.full(shape, PAD_TARGET, np.int64)
    weights = np.zeros(shape, np.float32)
    for r, members in enumerate(rows):
        at = 0
        for n, i in enumerate(members):
            example = shard.example(i).astype(np.int64)
            end, asked = at + len(example), int(shard.questions[i])
            tokens[r, at:end] = example
            places[r, at:end] = np.arange(len(example))
            documents[r, at:end] = n
            targets[r, at : end - 1] = example[1:]
            weights[r, at : end - 1] = question
            weights[r, at + max(asked - 1, 0) : end - 1] = 1.0
            at = end
    return Batch(tokens, places, documents, targets, weights)


def batches(
    shard: Shard,
    chosen: NDArray[np.int64],
    s: TrainingSettings,
    begun: int,
    part: tuple[int, int] = (0, 1),
) -> Iterator[Batch]:
    """Endless batches, the same ones for the same seed and the step at which they are ``begun``.
    Resuming reseeds instead of replaying skipped batches, which would take minutes, and there may
    be more examples by now.  ``part`` (k, n) is the share of the k-th of n processes: each n-th
    example, and as many of a step's rows as the others."""
    epoch = 0
    size = s.batch // part[1]
    while True:
        rng = np.random.default_rng((s.seed, begun, epoch))
        every = rng.permutation(chosen)[part[0] :: part[1]]
        for first in range(0, max(len(every), 1), PACKED):
            rows = pack(shard, [int(i) for i in every[first : first + PACKED]], s.row)
            order = rng.permutation(len(rows))
            # A step has fewer rows only if there are never more.
            for at in range(0, max(len(rows) - size + 1, int(not first)), size):
                mine = [rows[int(i)] for i in order[at : at + size]]
                yield batch_of(shard, mine, s.row, s.question)
        epoch += 1


def ahead(made: Iterator[Batch]) -> Iterator[Batch]:
    """The same batches, prepared while earlier ones are in use."""
    with ThreadPoolExecutor(1) as worker:
        coming = deque(worker.submit(next, made) for _ in range(AHEAD))
        while True:
            batch = coming.popleft().result()
            coming.append(worker.submit(next, made))
            yield batch


def split(shard: Shard, one_in: int = HELD_OUT) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training examples and held-out ones, by a hash of the question."""
    out = np.zeros(len(shard), bool)
    for i in range(len(shard)):
        question = shard.example(i)[: shard.questions[i]].tobytes()
        out[i] = zlib.crc32(question) % one_in == 0
    if out.all() or not out.any():
        out[:] = False
        out[: max(1, len(shard) // one_in)] = True
    every = np.arange(len(shard))
    return every[~out] if not out.all() else every, every[out]


__all__ = ["Batch", "ahead", "batch_of", "batches", "pack", "split"]
