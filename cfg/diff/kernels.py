"""Finds the kernels of two files that are the same code: by name, and without one by structure.

1. Kernels with the same name are a pair; then those whose names differ in nothing but the hashes
   and versions that compilers and libraries write into them.
2. The others are as alike as the fingerprints of all their instructions (cosine; features that few
   kernels have weigh more), as the shape of their graphs, and as what is declared of them: layout
   of the parameters, static shared memory, launch bounds.
3. The most alike are taken first.  Where several candidates are nearly as alike, the alignment of
   their blocks decides.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from sassxlate.cfg.diff.align_all import align_all
from sassxlate.cfg.diff.fingerprint import fingerprint, normal_form
from sassxlate.cfg.view.picture import Picture

Scores = npt.NDArray[np.float32]

_BUCKETS = 1 << 13  # of features: a collision costs little
_CODE, _SHAPE, _DECLARED = 0.7, 0.1, 0.2  # weights of a score's parts
_LEAST = 0.4  # least score of a pair
_NEAR = 0.03  # candidates so much below the best are compared block by block
_FEW = 6  # candidates of a kernel
_BLOCKS = 1500  # larger kernels are not compared block by block for this
_HASH = re.compile(r"[0-9a-f]{8,}|(?:CUB|THRUST|CCCL)_\d+(?:_SM_[\d_]+)?|_V_\d+|__\d+::")


@dataclass(frozen=True, slots=True)
class KernelShape:
    """A kernel to be found again.  ``declared`` is what its launch depends on and compilers keep:
    any values, compared one by one; None is not known."""

    picture: Picture
    declared: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelMatch:
    """Two kernels by index; ``by`` says what they were found by."""

    left: int
    right: int
    by: Literal["name", "structure"]


def match_kernels(
    left: Sequence[KernelShape],
    right: Sequence[KernelShape],
    *,
    names: bool = True,
    jobs: int = 1,
) -> list[KernelMatch]:
    """The pairs, in the order of the left side.  Without ``names`` by structure alone.  ``jobs`` as
    of :func:`.align_all.align_all`."""
    found: dict[int, KernelMatch] = {}
    if names:
        for key in (_whole, _without_hashes):
            done = {m.right for m in found.values()}
            theirs = _unique((key(k.picture.name), j) for j, k in enumerate(right) if j not in done)
            ours = _unique((key(k.picture.name), i) for i, k in enumerate(left) if i not in found)
            for name, i in ours.items():
                if name in theirs:
                    found[i] = KernelMatch(i, theirs[name], "name")
    done = {m.right for m in found.values()}
    rest = [i for i in range(len(left)) if i not in found]
    others = [j for j in range(len(right)) if j not in done]
    for i, j in by_structure([left[i] for i in rest], [right[j] for j in others], jobs):
        found[rest[i]] = KernelMatch(rest[i], others[j], "structure")
    return [found[i] for i in sorted(found)]


def _whole(name: str) -> str:
    return name


def _without_hashes(name: str) -> str:
    return _HASH.sub("#", name)


def _unique(some: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Names that only one kernel has."""
    places: dict[str, list[int]] = defaultdict(list)
    for name, place in some:
        places[name].append(place)
    return {name: found[0] for name, found in places.items() if len(found) == 1}


def by_structure(
    left: Sequence[KernelShape], right: Sequence[KernelShape], jobs: int = 1
) -> list[tuple[int, int]]:
    """The pairs by structure alone: names are not looked at.  ``jobs`` as of
    :func:`match_kernels`."""
    if not left or not right:
        return []
    score = _scores(left, right)
    _refine(left, right, score, jobs)
    pairs: list[tuple[int, int]] = []
    free_left, free_right = set(range(len(left))), set(range(len(right)))
    for at in np.argsort(-score, axis=None, kind="stable"):
        i, j = divmod(int(at), len(right))
        if score[i, j] < _LEAST or not free_left or not free_right:
            break
        if i in free_left and j in free_right:
            free_left.remove(i)
            free_right.remove(j)
            pairs.append((i, j))
    return sorted(pairs)


def _scores(left: Sequence[KernelShape], right: Sequence[KernelShape]) -> Scores:
    n = len(left)
    both = [*left, *right]
    words = _vectors([_words(k.picture) for k in both])
    score = _CODE * (words[:n] @ words[n:].T)
    sizes = np.array([_sizes(k.picture) for k in both], np.float32)
    far = np.abs(np.log1p(sizes[:n, None, :]) - np.log1p(sizes[None, n:, :])).mean(axis=2)
    score += _SHAPE * np.exp(-2 * far)
    for i, ours in enumerate(left):
        score[i] += [_DECLARED * _declared(ours, theirs) for theirs in right]
    return score.astype(np.float32)


def _declared(a: KernelShape, b: KernelShape) -> float:
    known = [
        x == y
        for x, y in zip(a.declared, b.declared, strict=False)
        if x is not None and y is not None
    ]
    return sum(known) / len(known) if known else 0.5


def _sizes(picture: Picture) -> tuple[int, int, int, int]:
    lines = sum(len(node.lines) for node in picture.nodes)
    return len(picture.nodes), len(picture.arcs), len(picture.loops), lines


def _words(picture: Picture) -> Counter[int]:
    """The features of all instructions, of each and of two that follow each other."""
    bag: Counter[int] = Counter()
    for node in picture.nodes:
        last = ""
        for line in node.lines:
            for word, _ in fingerprint(line.text):
                bag[_bucket(word)] += 1
            this = normal_form(line.text)
            bag[_bucket(f"{last}|{this}")] += 1
            last = this
    return bag


def _bucket(word: str) -> int:
    return zlib.crc32(word.encode()) % _BUCKETS


def _vectors(bags: Sequence[Counter[int]]) -> Scores:
    out = np.zeros((len(bags), _BUCKETS), np.float32)
    for i, bag in enumerate(bags):
        out[i, list(bag)] = np.log1p(list(bag.values()))
    seen = (out > 0).sum(axis=0)
    out *= np.log(1 + len(bags) / np.maximum(seen, 1)).astype(np.float32)
    length = np.linalg.norm(out, axis=1, keepdims=True)
    out /= np.where(length > 0, length, 1)
    return out


def _refine(
    left: Sequence[KernelShape], right: Sequence[KernelShape], score: Scores, jobs: int
) -> None:
    """Where candidates are close to each other, how well blocks align is added to their score."""
    close = {*_close(score), *((i, j) for j, i in _close(np.ascontiguousarray(score.T)))}
    pairs: list[tuple[Picture, Picture]] = []
    places: list[tuple[int, int]] = []
    for i, j in sorted(close):
        a, b = left[i].picture, right[j].picture
        if max(len(a.nodes), len(b.nodes)) <= _BLOCKS:
            pairs.append((a, b))
            places.append((i, j))
    for (i, j), found in zip(places, align_all(pairs, jobs), strict=True):
        score[i, j] += _NEAR * (2 * found.alike - 1)


def _close(score: Scores) -> Iterator[tuple[int, int]]:
    """Candidates of rows whose best is not alone."""
    few = min(_FEW, score.shape[1])
    for i, row in enumerate(score):
        best = float(row.max())
        some = [int(j) for j in np.argpartition(-row, few - 1)[:few] if row[j] >= best - _NEAR]
        if best >= _LEAST and len(some) > 1:
            yield from ((i, j) for j in some)


__all__ = ["KernelMatch", "KernelShape", "by_structure", "match_kernels"]
