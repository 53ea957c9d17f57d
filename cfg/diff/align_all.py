"""The blocks of many pairs of graphs, paired in several processes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sassxlate.cfg.diff.align import Alignment, align
from sassxlate.cfg.view.picture import Picture
from sassxlate.errors import UsageError
from sassxlate.processes import processes_for

Pair: TypeAlias = tuple[Picture, Picture]

_PART = 4096  # instructions for which another process pays


@dataclass(slots=True)
class _Shared:
    """What forked processes inherit: only a pair's number is sent to them."""

    pairs: Sequence[Pair] = ()


_shared = _Shared()


def align_all(pairs: Sequence[Pair], jobs: int = 1) -> list[Alignment]:
    """The alignment of each pair; ``jobs`` processes, 0: one per core if there is enough to do.

    Raises:
        UsageError: SX0888, the process that aligned a pair died, again when it was alone.
    """
    size = sum(len(node.lines) for left, _ in pairs for node in left.nodes)
    many = processes_for(jobs, len(pairs), size, _PART)
    if many == 1:
        return [align(left, right) for left, right in pairs]
    from sassxlate.executors import Begin, Place, in_order

    lost = UsageError("SX0888", "the process that compared two kernels died")
    begin = Begin(_take, (pairs,))
    work = in_order(Place(many), _numbered, range(len(pairs)), lost=lost, begin=begin)
    with contextlib.closing(work):
        return list(work)


def _take(pairs: Sequence[Pair]) -> None:
    _shared.pairs = pairs


def _numbered(number: int) -> Alignment:
    return align(*_shared.pairs[number])


__all__ = ["align_all"]
