"""The differences between two kernels' graphs as a page: which blocks are a pair, and how the two
differ."""

from __future__ import annotations

from collections.abc import Iterator

from sassxlate.cfg.diff.align import Alignment, BlockMatch, lines
from sassxlate.cfg.diff.library import LibraryDifference, said
from sassxlate.cfg.diff.text import moved, notes, same, status
from sassxlate.cfg.pages.pairs import Group, Joined, OverviewRow, one_page, overview
from sassxlate.cfg.view.picture import Node, Picture

_ROOM = 24 << 20  # bytes of the packed graphs of a page
_SIGNS = {"same": "=", "renamed": "~", "changed": "≠"}


def to_html(left: Picture, right: Picture, found: Alignment) -> str:
    """The whole page."""
    return one_page(joined(left, right, found))


def library_to_html(found: LibraryDifference, left: str, right: str) -> str:
    """The page of all kernels of two files, whose names are ``left`` and ``right``."""
    heads = ("kernel", "found by", "blocks", "instructions", "how its blocks differ")
    return overview(f"{left} / {right}", found.summary(), heads, _overview(found), _ROOM)


def _overview(found: LibraryDifference) -> Iterator[OverviewRow]:
    for pair in found.pairs:
        a, b = pair.left, pair.right
        name = a.shown if pair.by == "name" else f"{a.shown}  /  {b.shown}"
        cells = (name, pair.by, _both(len(a.nodes), len(b.nodes)), _both(_lines(a), _lines(b)))
        page = joined(a, b, pair.found)
        yield OverviewRow((*cells, said(pair)), pair.found.alike, page)
    for side, some in (("left", found.only_left), ("right", found.only_right)):
        for one in some:
            numbers = str(len(one.nodes)), str(_lines(one))
            row = (one.shown, "-", *numbers, f"only {side}")
            yield OverviewRow(row, None, None, f"this kernel is only on the {side} side")


def _lines(picture: Picture) -> int:
    return sum(len(node.lines) for node in picture.nodes)


def _both(left: int, right: int) -> str:
    return str(left) if left == right else f"{left} / {right}"


def joined(left: Picture, right: Picture, found: Alignment) -> Joined:
    """Both graphs with their pairs of blocks, in the order of the left side."""
    away = moved(found)
    groups = tuple(_group(left, right, one, away) for one in _order(found))
    said = ([""] * len(left.nodes), [""] * len(right.nodes))
    for group in groups:
        note = _note(group)
        for side, some in enumerate((group.left, group.right)):
            for block in some:
                said[side][block] = note
    kinds = [status(left, right, p) for p in found.pairs]
    facts = (
        f"{len(found.pairs)} pairs: {kinds.count('same')} same, {kinds.count('renamed')} renamed, "
        f"{kinds.count('changed')} changed; {len(away)} moved; {len(found.only_left)} only left, "
        f"{len(found.only_right)} only right; alike {found.alike:.3f}"
    )
    verdict = "nothing differs" if same(left, right, found) else facts
    title = f"{left.shown} {left.target} / {right.shown} {right.target}"
    return Joined(left, right, title, "; ".join([verdict, *notes(left, right)]), groups, said)


def _note(group: Group) -> str:
    if group.status in ("gone", "new"):
        return "- only left" if group.status == "gone" else "+ only right"
    alike = group.head.split("  ")[2].rpartition(" ")[2]
    said = f"{_SIGNS[group.status]} {group.status}"
    said += f" {alike}" if group.status == "changed" else ""
    return said + ("  ↕ moved" if group.moved else "")


def _order(found: Alignment) -> Iterator[BlockMatch | tuple[int | None, int | None]]:
    """Pairs and single blocks: the left side in its order; an unpaired block of the right side
    follows the partner of the block before it."""
    by_left = {p.left: p for p in found.pairs}
    by_right = {p.right: p for p in found.pairs}
    alone = set(found.only_right)
    after: dict[int, list[int]] = {}
    first: list[int] = []
    last: int | None = None
    for right in sorted({*alone, *by_right}):
        if right in by_right:
            last = by_right[right].left
        elif last is None:
            first.append(right)
        else:
            after.setdefault(last, []).append(right)
    for right in first:
        yield None, right
    for left in sorted({*found.only_left, *by_left}):
        yield by_left.get(left, (left, None))
        for right in after.get(left, ()):
            yield None, right


def _group(
    left: Picture, right: Picture, one: BlockMatch | tuple[int | None, int | None], away: set[int]
) -> Group:
    if isinstance(one, BlockMatch):
        a, b = left.nodes[one.left], right.nodes[one.right]
        kind, gone = status(left, right, one), one.left in away
        head = f"{a.name}  {b.name}  {kind} {one.alike:.2f}" + ("  moved" if gone else "")
        rows = _rows(one, a, b) if kind == "changed" else None
        return Group((one.left,), (one.right,), kind, head, kind == "changed", gone, rows)
    at, other = one
    if at is not None:
        return Group((at,), (), "gone", f"{left.nodes[at].name}  only left", True)
    assert other is not None
    return Group((), (other,), "new", f"{right.nodes[other].name}  only right", True)


def _rows(
    one: BlockMatch, a: Node, b: Node
) -> tuple[tuple[tuple[int, int] | None, tuple[int, int] | None, str], ...]:
    return tuple(
        (
            None if row.left is None else (one.left, row.left),
            None if row.right is None else (one.right, row.right),
            "",
        )
        for row in lines(a, b)
    )


__all__ = ["joined", "library_to_html", "to_html"]
