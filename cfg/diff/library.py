"""The differences between all kernels of two files: a table, sorted by difference, and data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sassxlate.cfg.diff.align import Alignment, align
from sassxlate.cfg.diff.align_all import align_all
from sassxlate.cfg.diff.kernels import KernelShape, match_kernels
from sassxlate.cfg.diff.text import moved, same, status, to_data
from sassxlate.cfg.view.picture import Picture


@dataclass(frozen=True, slots=True)
class KernelDifference:
    """Two kernels that belong together.  ``counts``: blocks by how they differ (``same``,
    ``renamed``, ``changed``, ``moved``, ``only left``, ``only right``)."""

    left: Picture
    right: Picture
    by: Literal["name", "structure"]
    found: Alignment
    equal: bool
    counts: Counter[str]


@dataclass(frozen=True, slots=True)
class LibraryDifference:
    """All kernels of two files: pairs, the least alike first, and the kernels of one side alone."""

    pairs: tuple[KernelDifference, ...]
    only_left: tuple[Picture, ...]
    only_right: tuple[Picture, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.only_left and not self.only_right and all(p.equal for p in self.pairs)

    def summary(self) -> str:
        """The numbers of pairs and of kernels of one side, as a line."""
        by = Counter(p.by for p in self.pairs)
        equal = sum(p.equal for p in self.pairs)
        return (
            f"{len(self.pairs)} pairs of kernels ({by['name']} by name, {by['structure']} by "
            f"structure; {equal} equal), {len(self.only_left)} only left, "
            f"{len(self.only_right)} only right"
        )


def compare(
    left: Sequence[KernelShape], right: Sequence[KernelShape], jobs: int = 1
) -> LibraryDifference:
    """Pairs the kernels, and the blocks of each pair.  ``jobs`` as of
    :func:`.align_all.align_all`, and its errors."""
    matches = match_kernels(left, right, jobs=jobs)
    pictures = [(left[m.left].picture, right[m.right].picture) for m in matches]
    pairs = [
        _difference(*both, match.by, found)
        for both, match, found in zip(pictures, matches, align_all(pictures, jobs), strict=True)
    ]
    pairs.sort(key=lambda p: (p.equal, p.found.alike, p.left.name))
    ours, theirs = {m.left for m in matches}, {m.right for m in matches}
    return LibraryDifference(
        tuple(pairs),
        tuple(k.picture for i, k in enumerate(left) if i not in ours),
        tuple(k.picture for j, k in enumerate(right) if j not in theirs),
    )


def difference(left: KernelShape, right: KernelShape) -> LibraryDifference:
    """That of two kernels, whatever their names are."""
    both = left.picture, right.picture
    return LibraryDifference((_difference(*both, "name", align(*both)),), (), ())


def _difference(
    left: Picture, right: Picture, by: Literal["name", "structure"], found: Alignment
) -> KernelDifference:
    counts = Counter(status(left, right, p) for p in found.pairs)
    counts["moved"] = len(moved(found))
    counts["only left"], counts["only right"] = len(found.only_left), len(found.only_right)
    return KernelDifference(left, right, by, found, same(left, right, found), counts)


def said(pair: KernelDifference) -> str:
    """How the blocks of a pair differ, in a few words."""
    if pair.equal:
        return "equal"
    names = ("renamed", "changed", "moved", "only left", "only right")
    return ", ".join(f"{pair.counts[n]} {n}" for n in names if pair.counts[n]) or "other arcs"


def to_table(found: LibraryDifference) -> str:
    """A line for each pair, the least alike first; then the kernels of one side; the totals last.

    A pair by structure has both names.
    """
    out = [f"{'alike':>6}  {'blocks':>11}  kernel, and how its blocks differ"]
    for pair in found.pairs:
        blocks = f"{len(pair.left.nodes)} {len(pair.right.nodes)}"
        out.append(f"{pair.found.alike:6.3f}  {blocks:>11}  {pair.left.shown}: {said(pair)}")
        if pair.by == "structure":
            out.append(f"{'':21}by structure: {pair.right.shown}")
    for side, some in (("left", found.only_left), ("right", found.only_right)):
        out += [f"{'-':>6}  {len(p.nodes):>11}  {p.shown}: only {side}" for p in some]
    return "\n".join([*out, found.summary()]) + "\n"


def library_data(found: LibraryDifference) -> dict[str, Any]:
    """For JSON: the pairs as :func:`to_data` has them, with what they were found by."""
    return {
        "kernels": [{**to_data(p.left, p.right, p.found), "matched": p.by} for p in found.pairs],
        **{
            name: [{"name": p.name, "target": p.target, "blocks": len(p.nodes)} for p in some]
            for name, some in (("only_left", found.only_left), ("only_right", found.only_right))
        },
    }


__all__ = [
    "KernelDifference",
    "LibraryDifference",
    "compare",
    "difference",
    "library_data",
    "said",
    "to_table",
]
