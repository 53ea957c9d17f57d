"""Positions of a picture's blocks and arcs: layers by longest path, columns by a spanning tree,
a separate track for each arc.

The method is the one that Cutter describes and Compiler Explorer follows, written afresh: blocks
are never reordered, so the two sides of a branch stay on theirs; nothing is random, so a picture is
always the same.  Subtrees are pushed together along their outlines (Reingold and Tilford,
1981).  Everything except sorting and the search for a free column is linear.

Heights are symbolic, a row and an offset: a page may fold blocks and move the rows
together without a new layout.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeVar

from sassxlate.cfg.view.picture import Arc, Node, Picture, head

CHAR, LINE, PAD = 7.25, 15.0, 7.0  # size of a block's text and its padding, in pixels
LANE, MARGIN = 9.0, 10.0  # between arcs, and around the picture
HEAD = 1  # header lines above a block's instructions
WIDEST = 110  # maximum characters per line


@dataclass(frozen=True, slots=True)
class Box:
    """A block's position; its top is the top of its row."""

    row: int
    x: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Route:
    """An arc's path: down from its source's bottom at ``points[0]``, to its target's top.

    Each point except the first and the last is (x, gap, offset): gap ``g`` is the space above row
    ``g``, the offset counts from its top.  Only x counts in the first and the last.
    """

    arc: Arc
    points: tuple[tuple[float, int, float], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """``gaps[g]`` is the height of the space above row ``g``; there is one more gap than rows."""

    width: float
    boxes: tuple[Box, ...]
    routes: tuple[Route, ...]
    gaps: tuple[float, ...]

    def tops(self) -> tuple[list[float], list[float], float]:
        """(top of each gap, top of each row, height of all)."""
        heights = [0.0] * (len(self.gaps) - 1)
        for box in self.boxes:
            heights[box.row] = max(heights[box.row], box.height)
        y = 0.0
        gaps: list[float] = []
        rows: list[float] = []
        for g, gap in enumerate(self.gaps):
            gaps.append(y)
            y += gap
            if g < len(heights):
                rows.append(y)
                y += heights[g]
        return gaps, rows, y


def _widest(node: Node) -> int:
    """Characters of a block's longest line; its head is in bold."""
    return max(
        [14, min(len(head(node)), WIDEST) + 1, *(min(len(t.text), WIDEST) + 6 for t in node.lines)]
    )


def lay_out(picture: Picture) -> Layout:
    """The layout of a picture; it is empty if the picture has no blocks."""
    if not picture.nodes:
        return Layout(0.0, (), (), (0.0,))
    topo, back = _order(picture)
    rows, kids = _rows(picture, topo, back)
    columns = _columns(kids, rows)
    return _Placing(picture, rows, columns).layout()


def _order(picture: Picture) -> tuple[list[int], set[tuple[int, int]]]:
    """Reverse postorder, and the arcs removed to get it."""
    arcs = picture.successors()
    state = [0] * len(picture.nodes)
    post: list[int] = []
    back: set[tuple[int, int]] = set()
    for root in range(len(picture.nodes)):
        if state[root]:
            continue
        state[root] = 1
        # The last successor first: reverse postorder then puts the first one first.
        stack = [(root, iter(arcs[root][::-1]))]
        while stack:
            node, rest = stack[-1]
            for arc in rest:
                if state[arc.dst] == 1:
                    back.add((node, arc.dst))
                elif not state[arc.dst]:
                    state[arc.dst] = 1
                    stack.append((arc.dst, iter(arcs[arc.dst][::-1])))
                    break
            else:
                state[node] = 2
                post.append(node)
                stack.pop()
    return post[::-1], back


def _rows(
    picture: Picture, topo: Sequence[int], back: set[tuple[int, int]]
) -> tuple[list[int], list[list[int]]]:
    """Each node's row, by longest path, and its children in a spanning tree."""
    arcs = picture.successors()
    rows = [0] * len(picture.nodes)
    for node in topo:
        for arc in arcs[node]:
            if (node, arc.dst) not in back:
                rows[arc.dst] = max(rows[arc.dst], rows[node] + 1)
    kids: list[list[int]] = [[] for _ in rows]
    owned = {0}
    for node in topo:
        for arc in arcs[node]:
            near = rows[arc.dst] == rows[node] + 1 and (node, arc.dst) not in back
            if near and arc.dst not in owned:
                kids[node].append(arc.dst)
                owned.add(arc.dst)
    return rows, kids


@dataclass(slots=True)
class _Outline:
    """A subtree's columns by row, the deepest first; stored values are relative to ``by``."""

    left: list[int]
    right: list[int]
    by: int


def _columns(kids: Sequence[Sequence[int]], rows: Sequence[int]) -> list[int]:
    """Each node's column; a node is two columns wide, so it can be centred over two children."""
    n = len(kids)
    parent = [-1] * n
    for node, some in enumerate(kids):
        for kid in some:
            parent[kid] = node
    roots = [i for i in range(n) if parent[i] < 0]
    order: list[int] = []
    work = roots[::-1]
    while work:
        node = work.pop()
        order.append(node)
        work += kids[node][::-1]
    shift = [0] * n  # of a subtree, relative to its parent
    own = [0] * n  # of the node, relative to its subtree
    outlines: dict[int, _Outline] = {}
    for node in reversed(order):
        together = _together(kids[node], own, shift, outlines)
        if together is None:
            outlines[node] = _Outline([0], [2], 0)
            continue
        some = kids[node]
        first, last = own[some[0]] + shift[some[0]], own[some[-1]] + shift[some[-1]]
        own[node] = (first + last) // 2
        together.left.append(own[node] - together.by)
        together.right.append(own[node] + 2 - together.by)
        outlines[node] = together
    _together(roots, own, shift, outlines)
    at = [0] * n
    for node in order:
        at[node] = shift[node] + (at[parent[node]] if parent[node] >= 0 else 0)
    columns = [at[i] + own[i] for i in range(n)]
    least = min(columns)
    return [c - least for c in columns]


def _together(
    some: Sequence[int], own: Sequence[int], shift: list[int], outlines: dict[int, _Outline]
) -> _Outline | None:
    """Puts subtrees side by side, as close as their outlines allow; returns the joint outline."""
    whole: _Outline | None = None
    for node in some:
        new = outlines.pop(node)
        if whole is None:
            whole = new
            continue
        common = min(len(whole.right), len(new.left))
        a, b = whole.right[len(whole.right) - common :], new.left[len(new.left) - common :]
        move = max((r + whole.by) - (x + new.by) for r, x in zip(a, b, strict=True))
        shift[node] = move
        new.by += move
        if len(new.left) > len(whole.left):  # keep the deeper one, overwrite the rest
            n = len(whole.left)
            new.left[-n:] = [x + whole.by - new.by for x in whole.left]
            whole = new
        else:
            n = len(new.right)
            whole.right[-n:] = [x + new.by - whole.by for x in new.right]
    return whole


class _Placing:
    """Turns rows and columns into coordinates."""

    def __init__(self, picture: Picture, rows: Sequence[int], columns: Sequence[int]) -> None:
        self.picture, self.rows, self.columns = picture, rows, columns
        self.count = max(columns) + 2
        # Column gap c is left of column c; a block straddles the gap at its middle.
        self.closed: dict[int, list[int]] = defaultdict(list)
        for row, column in zip(rows, columns, strict=True):
            insort(self.closed[column + 1], row)
        self.sizes = [
            (
                2 * PAD + CHAR * _widest(node),
                2 * PAD + LINE * (HEAD + len(node.lines)),
            )
            for node in picture.nodes
        ]

    def _spans(self, arc: Arc) -> tuple[int, int]:
        """The rows that an arc passes: the first, and one past the last."""
        a, b = self.rows[arc.src] + 1, self.rows[arc.dst]
        return min(a, b), max(a, b)

    def _free(self, gap: int, first: int, end: int) -> bool:
        rows = self.closed.get(gap, ())
        at = bisect_left(rows, first)
        return at == len(rows) or rows[at] >= end

    def _gap(self, arc: Arc) -> int:
        """The column gap for an arc: free over its whole height, with the smallest detour."""
        first, end = self._spans(arc)
        s, t = self.columns[arc.src] + 1, self.columns[arc.dst] + 1
        low, high = min(s, t), max(s, t)
        middle = [g for g in range(low, high + 1) if self._free(g, first, end)]
        if middle:
            return min(middle, key=lambda g: abs(g - t))
        for away in range(1, self.count + 2):
            for g in (low - away, high + away):
                if 0 <= g <= self.count and self._free(g, first, end):
                    return g
        raise AssertionError("the outermost gaps are always free")

    def layout(self) -> Layout:
        near = {a for a in self.picture.arcs if self.rows[a.dst] == self.rows[a.src] + 1}
        gap_of = {a: self._gap(a) for a in self.picture.arcs if a not in near}
        lanes, lane_count = _tracks(
            [(gap, *self._spans(a), a) for a, gap in gap_of.items()], self.count + 1
        )
        gap_x, boxes, width = self._across(lane_count)
        lane_x = {a: gap_x[g] + LANE * (lanes[a] + 1) for a, g in gap_of.items()}
        ports = self._ports(boxes, lane_x)
        return self._routes(boxes, near, lane_x, ports, width)

    def _across(self, lanes: Sequence[int]) -> tuple[list[float], list[Box], float]:
        widths = [0.0] * self.count
        for column, (width, _) in zip(self.columns, self.sizes, strict=True):
            middle = LANE * (lanes[column + 1] + 1)
            for c in (column, column + 1):
                widths[c] = max(widths[c], (width - middle) / 2)
        x = MARGIN
        gap_x: list[float] = []
        column_x: list[float] = []
        for c in range(self.count + 1):
            gap_x.append(x)
            x += LANE * (lanes[c] + 1)
            if c < self.count:
                column_x.append(x)
                x += widths[c]
        boxes: list[Box] = []
        for row, column, (width, height) in zip(self.rows, self.columns, self.sizes, strict=True):
            left, right = column_x[column], column_x[column + 1] + widths[column + 1]
            boxes.append(Box(row, (left + right - width) / 2, width, height))
        return gap_x, boxes, x + MARGIN

    def _ports(
        self, boxes: Sequence[Box], lane_x: Mapping[Arc, float]
    ) -> dict[Arc, tuple[float, float]]:
        """Where each arc leaves its source and enters its target, ordered by the other end."""
        outs: dict[int, list[Arc]] = defaultdict(list)
        ins: dict[int, list[Arc]] = defaultdict(list)
        for arc in self.picture.arcs:
            outs[arc.src].append(arc)
            ins[arc.dst].append(arc)

        def middle(node: int) -> float:
            return boxes[node].x + boxes[node].width / 2

        def spread(node: int, n: int, of: int) -> float:
            return boxes[node].x + boxes[node].width * (n + 1) / (of + 1)

        begin: dict[Arc, float] = {}
        end: dict[Arc, float] = {}
        for node, some in outs.items():
            some.sort(key=lambda a: (lane_x.get(a, middle(a.dst)), a.dst))
            begin |= {a: spread(node, n, len(some)) for n, a in enumerate(some)}
        for node, some in ins.items():
            some.sort(key=lambda a: (lane_x.get(a, middle(a.src)), a.src))
            end |= {a: spread(node, n, len(some)) for n, a in enumerate(some)}
        return {a: (begin[a], end[a]) for a in self.picture.arcs}

    def _routes(
        self,
        boxes: Sequence[Box],
        near: set[Arc],
        lane_x: Mapping[Arc, float],
        ports: Mapping[Arc, tuple[float, float]],
        width: float,
    ) -> Layout:
        pieces: list[tuple[int, float, float, tuple[Arc, int]]] = []
        for arc in self.picture.arcs:
            (x0, x1), out, into = ports[arc], self.rows[arc.src] + 1, self.rows[arc.dst]
            if arc in near:
                pieces.append((out, min(x0, x1), max(x0, x1), (arc, 0)))
                continue
            lane = lane_x[arc]
            pieces.append((out, min(x0, lane), max(x0, lane), (arc, 0)))
            pieces.append((into, min(x1, lane), max(x1, lane), (arc, 1)))
        tracks, counts = _tracks(pieces, max(self.rows) + 2)
        routes: list[Route] = []
        for arc in self.picture.arcs:
            (x0, x1), out, into = ports[arc], self.rows[arc.src] + 1, self.rows[arc.dst]
            ya = LANE * (tracks[arc, 0] + 1)
            if arc in near:
                inner = [(x0, out, ya), (x1, out, ya)]
            else:
                yb = LANE * (tracks[arc, 1] + 1)
                lane = lane_x[arc]
                inner = [(x0, out, ya), (lane, out, ya), (lane, into, yb), (x1, into, yb)]
            routes.append(Route(arc, ((x0, out, 0.0), *inner, (x1, into, 0.0))))
        gaps = tuple(LANE * (c + 2) for c in counts)
        return Layout(width, tuple(boxes), tuple(routes), gaps)


K = TypeVar("K", bound=Hashable)


def _tracks(
    pieces: Sequence[tuple[int, float, float, K]], spaces: int
) -> tuple[dict[K, int], list[int]]:
    """Assigns pieces (space, first, last, key) to tracks in each space, so that no two meet; and
    the number of tracks per space."""
    counts = [0] * spaces
    out: dict[K, int] = {}
    busy: dict[int, list[tuple[float, int]]] = defaultdict(list)  # (last, track)
    free: dict[int, list[int]] = defaultdict(list)
    for space, first, last, key in sorted(pieces, key=lambda p: (p[0], p[1], -p[2])):
        while busy[space] and busy[space][0][0] < first:
            heappush(free[space], heappop(busy[space])[1])
        if free[space]:
            track = heappop(free[space])
        else:
            track = counts[space]
            counts[space] += 1
        heappush(busy[space], (last, track))
        out[key] = track
    return out, counts
