"""The differences between two graphs, as text in the shape of a unified diff, and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sassxlate.cfg.diff.align import AlignedLine, Alignment, BlockMatch, lines
from sassxlate.cfg.view.picture import Node, Picture

_CONTEXT = 2  # unchanged lines shown around changed ones


def same(left: Picture, right: Picture, found: Alignment) -> bool:
    """Whether the graphs are identical: blocks, their order, instructions and arcs."""
    if found.only_left or found.only_right:
        return False
    shape = [(a.src, a.dst, a.kind) for a in left.arcs] == [
        (a.src, a.dst, a.kind) for a in right.arcs
    ]
    return shape and all(
        p.left == p.right and _texts(left.nodes[p.left]) == _texts(right.nodes[p.right])
        for p in found.pairs
    )


def _texts(node: Node) -> list[str]:
    return [line.text for line in node.lines]


def status(left: Picture, right: Picture, pair: BlockMatch) -> str:
    """``same`` (identical text), ``renamed`` (registers, constants, addresses) or ``changed``."""
    if _texts(left.nodes[pair.left]) == _texts(right.nodes[pair.right]):
        return "same"
    return "renamed" if pair.alike == 1.0 else "changed"


def moved(found: Alignment) -> set[int]:
    """Left blocks whose partner is out of order: outside the longest chain of pairs whose order is
    the same in both graphs."""
    rights = [p.right for p in found.pairs]
    best: list[int] = []  # indices of the last of the best chain of each length
    before = [-1] * len(rights)
    for i, right in enumerate(rights):
        low, high = 0, len(best)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if rights[best[middle]] < right else (low, middle)
        before[i] = best[low - 1] if low else -1
        best[low : low + 1] = [i]
    kept: set[int] = set()
    at = best[-1] if best else -1
    while at >= 0:
        kept.add(at)
        at = before[at]
    return {p.left for i, p in enumerate(found.pairs) if i not in kept}


def to_text(left: Picture, right: Picture, found: Alignment, *, whole: bool = False) -> str:
    """Each pair that differs as a hunk, unpaired blocks in full, and the totals at the end.

    ``whole``: also show blocks that are the same or renamed.
    """
    out = [f"--- {left.name} {left.target}", f"+++ {right.name} {right.target}"]
    out += notes(left, right)
    away = moved(found)
    counts: dict[str, int] = {"same": 0, "renamed": 0, "changed": 0}
    for pair in found.pairs:
        a, b = left.nodes[pair.left], right.nodes[pair.right]
        kind = status(left, right, pair)
        counts[kind] += 1
        if kind != "changed" and not whole:
            continue
        note = f"  {kind} {pair.alike:.2f}" + ("  moved" if pair.left in away else "")
        out.append(f"@@ {a.name} {b.name} @@{note}")
        out += _hunk(a, b)
    out += [line for i in found.only_left for line in _alone(left.nodes[i], "-")]
    out += [line for i in found.only_right for line in _alone(right.nodes[i], "+")]
    out.append(
        f"{len(found.pairs)} pairs ({counts['same']} same, {counts['renamed']} renamed, "
        f"{counts['changed']} changed, {len(away)} moved), {len(found.only_left)} only left, "
        f"{len(found.only_right)} only right; alike {found.alike:.3f}"
    )
    return "\n".join(out) + "\n"


def notes(left: Picture, right: Picture) -> list[str]:
    """What each graph leaves out, by side."""
    sides = (("left", left), ("right", right))
    return [f"# {side}: {note}" for side, picture in sides for note in picture.notes]


def _hunk(a: Node, b: Node) -> Iterator[str]:
    rows = lines(a, b)
    near = {
        k
        for i, row in enumerate(rows)
        if not row.same
        for k in range(i - _CONTEXT, i + _CONTEXT + 1)
    }
    skipped = False
    for i, row in enumerate(rows):
        if near and i not in near:
            if not skipped:
                yield "  ..."
            skipped = True
            continue
        skipped = False
        yield _line(row, a, b)


def _line(row: AlignedLine, a: Node, b: Node) -> str:
    if row.left is None:
        assert row.right is not None
        return f"+ {b.lines[row.right].text}"
    if row.right is None:
        return f"- {a.lines[row.left].text}"
    x, y = a.lines[row.left].text, b.lines[row.right].text
    return f"  {x}" if x == y else f"~ {x}  ->  {y}"


def _alone(node: Node, sign: str) -> Iterator[str]:
    side = "left" if sign == "-" else "right"
    yield f"@@ {node.name} @@  only {side}"
    for line in node.lines:
        yield f"{sign} {line.text}"


def to_data(left: Picture, right: Picture, found: Alignment) -> dict[str, Any]:
    """For JSON: blocks by index, lines of changed pairs by number."""
    away = moved(found)
    pairs: list[dict[str, Any]] = []
    for p in found.pairs:
        kind = status(left, right, p)
        one: dict[str, Any] = {
            "left": p.left,
            "right": p.right,
            "status": kind,
            "alike": round(p.alike, 4),
            "moved": p.left in away,
        }
        if kind == "changed":
            rows = lines(left.nodes[p.left], right.nodes[p.right])
            one["lines"] = [[row.left, row.right] for row in rows]
        pairs.append(one)
    sides = (("left", left), ("right", right))
    return {
        **{
            side: {
                "name": x.name,
                "target": x.target,
                "blocks": len(x.nodes),
                "starts": [node.start for node in x.nodes],
                "notes": [*x.notes],
            }
            for side, x in sides
        },
        "same": same(left, right, found),
        "alike": round(found.alike, 4),
        "pairs": pairs,
        "only_left": list(found.only_left),
        "only_right": list(found.only_right),
    }
