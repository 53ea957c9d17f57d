"""A kernel's SASS and the RDNA3 code that it became, as two graphs: which blocks a block became, by
the translator's map, and which code was added."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from sassxlate.cfg.pages.pairs import Group, Joined, Row, one_page
from sassxlate.cfg.view.picture import Picture
from sassxlate.cfg.view.side_by_side import Beside, Part, head, said


def to_html(found: Beside) -> str:
    """The whole page.  ``found`` has both graphs."""
    assert found.graphs is not None
    kinds = "".join(f"<dt>{escape(k)}</dt><dd>{escape(text)}</dd>" for k, text in found.kinds)
    legend = f"<p>Added by the translator:</p><dl>{kinds}</dl>" if kinds else ""
    return one_page(joined(found, *found.graphs), legend)


def joined(found: Beside, left: Picture, right: Picture) -> Joined:
    """Both graphs; a block of the SASS belongs to the blocks that have code of its part."""
    ours, theirs = _places(left), _places(right)
    by_start = {node.start: node.index for node in left.nodes}
    groups = tuple(_group(part, by_start, ours, theirs) for part in found.parts)
    notes = ([""] * len(left.nodes), [""] * len(right.nodes))
    for group in groups:
        for block in group.left:
            code = ", ".join(right.nodes[i].name for i in group.right[:6])
            more = " ..." if len(group.right) > 6 else ""
            notes[0][block] = f"→ {code}{more}" if code else "- without code"
        for block in group.right:
            source = ", ".join(left.nodes[i].name for i in group.left) or group.head.split("  ")[0]
            notes[1][block] = f"{notes[1][block]}, {source}" if notes[1][block] else f"← {source}"
    title = f"{found.shown} {found.target} / {found.other}"
    facts = "; ".join([f"{said(found)}; {found.source}", *left.notes, *right.notes])
    return Joined(left, right, title, facts, groups, notes, exact=True)


def _places(picture: Picture) -> dict[int, tuple[int, int]]:
    """Of each instruction's offset: its block, and its number there."""
    return {
        line.offset: (node.index, n) for node in picture.nodes for n, line in enumerate(node.lines)
    }


def _group(
    part: Part,
    by_start: dict[int, int],
    ours: dict[int, tuple[int, int]],
    theirs: dict[int, tuple[int, int]],
) -> Group:
    rows = tuple(_rows(part, ours, theirs))
    left = () if part.start is None or part.start not in by_start else (by_start[part.start],)
    right = tuple(dict.fromkeys(b[0] for _, b, _ in rows if b is not None))
    status = "new" if not left else "map" if right else "gone"
    added = any(code.added for code in part.codes())
    return Group(left, right, status, head(part), added, rows=rows)


def _rows(
    part: Part, ours: dict[int, tuple[int, int]], theirs: dict[int, tuple[int, int]]
) -> Iterator[Row]:
    """One for each RDNA3 instruction, and for each SASS instruction without one."""
    for row in part.rows:
        left = None if row.line is None else ours.get(row.line.offset)
        if left is not None and not any(not c.added for c in row.code):
            yield left, None, row.why
            left = None
        for code in row.code:
            right = theirs.get(code.offset)
            yield (None if code.added else left), right, code.added or (row.rule if left else "")
            if not code.added:
                left = None
        if left is not None and not row.code:
            yield left, None, row.why


__all__ = ["joined", "to_html"]
