"""Two graphs side by side as one HTML file: pairs of blocks are joined, both sides move together,
and a pair's instructions are below; of several kernels an overview comes first.

The page's scripts are ``drawing.js`` and ``pairs.js`` in this folder, its styles ``graph.css`` and
``pairs.css``.  What makes two blocks a pair is known to the callers: :mod:`.diff` has the likeness
of code, :mod:`.side_by_side` the translator's map.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, TypeAlias

from sassxlate.cfg.pages.drawing import graph, part, safe, themes
from sassxlate.cfg.pages.report import pack
from sassxlate.cfg.view.layout import lay_out
from sassxlate.cfg.view.picture import Picture
from sassxlate.cfg.view.svg import markers, style

# (block, line) of the left and of the right side, None: no line there; and what is said of them.
Row: TypeAlias = tuple[tuple[int, int] | None, tuple[int, int] | None, str]


@dataclass(frozen=True, slots=True)
class Group:
    """Blocks that belong together.  ``head`` says how, ``status`` is its colour in ``pairs.css``.

    Without ``rows`` the lines of both sides are paired one by one.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    status: str
    head: str
    differs: bool
    moved: bool = False
    rows: tuple[Row, ...] | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """Two graphs and what belongs together.

    ``notes`` are what the head of each block says besides, left and right; ``exact``: lines belong
    together by a map, they do not differ.
    """

    left: Picture
    right: Picture
    title: str
    facts: str
    groups: tuple[Group, ...]
    notes: tuple[Sequence[str], Sequence[str]]
    exact: bool = False


@dataclass(frozen=True, slots=True)
class OverviewRow:
    """A kernel of the overview: its cells' texts, its likeness from 0 to 1 (None: it is on one side
    only), and its page, or why there is none."""

    cells: tuple[str, ...]
    alike: float | None
    page: Joined | None
    why: str = ""


_KEYS = (
    ("n p", "the next difference, the one before"),
    ("arrows", "to the next block, back, to its neighbours; in the overview: to the next kernel"),
    ("Enter", "to the block's partner on the other side; in the overview: open the kernel"),
    ("Tab", "to the other side, to the instructions below (arrows scroll them)"),
    ("space", "scroll the pair's instructions"),
    ("l", "all instructions as a listing, and back; a there: open or fold all"),
    ("o", "the overview, if there is one"),
    ("/", "search; Enter or N: the next"),
    ("+ - 0", "larger, smaller, all of it"),
    ("Shift and arrows", "move both graphs (also: drag)"),
    ("s", "both sides move together, or each by itself"),
    ("Home End", "the first block, the last"),
    ("t", "light or dark"),
)
_BUTTONS = (
    ("overview", "kernels", "the overview (o)"),
    ("last", "↑", "previous difference (p)"),
    ("next", "↓", "next difference (n)"),
    ("out", "&minus;", "smaller (-)"),
    ("in", "+", "larger (+)"),
    ("fit", "fit", "all of it (0)"),
    ("sync", "together", "both sides move together, or each by itself (s)"),
    ("listing", "listing", "all instructions, and back (l)"),
    ("all", "all", "open or fold unchanged blocks (a)"),
    ("theme", "theme", "light or dark (t)"),
    ("help", "?", "keys (?)"),
)
_LEGEND = (
    ("same", "= same"), ("renamed", "~ renamed"), ("changed", "≠ changed"),
    ("gone", "- only left"), ("new", "+ only right"), ("moved", "↕ moved"),
)  # fmt: skip
_EXACT = (
    ("map", "translated"), ("gone", "- without code"), ("new", "+ added by the translator"),
)  # fmt: skip


def one_page(joined: Joined, extra: str = "") -> str:
    """The page of two graphs; ``extra`` is HTML for its help."""
    data = f'<script type="application/json" id="k0">{safe(_data(joined))}</script>\n'
    return _page(joined.title, joined, data, "", "[]", extra)


def overview(
    title: str, facts: str, heads: Sequence[str], rows: Iterable[OverviewRow], room: int
) -> str:
    """The page of several kernels, in the order of ``rows``.

    Their graphs are packed in the page, up to ``room`` bytes together; the rows of further ones say
    that there was no room.
    """
    parts: list[str] = []
    body: list[str] = []
    whys: list[dict[str, str]] = []
    used = 0
    for number, row in enumerate(rows):
        why = row.why
        if row.page is not None:
            packed = pack(_data(row.page))
            if used + len(packed) <= room:
                used += len(packed)
                parts.append(f'<script type="text/plain" id="k{number}">{packed}</script>\n')
            else:
                why = "no room for its graphs in this page: diff it alone with -k"
        body.append(_row(number, row))
        whys.append({"why": why or "no graphs"})
    table = (
        f'<p class="faint">{escape(facts)}</p><table><thead><tr><th>likeness</th>'
        + "".join(f"<th>{escape(h)}</th>" for h in heads)
        + f"</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )
    return _page(title, None, "".join(parts), table, safe(whys), "")


def _row(number: int, row: OverviewRow) -> str:
    if row.alike is None:
        bar = '<td class="alike">-</td>'
    else:
        bar = (
            f'<td class="alike"><span class="bar"><i style="width:{100 * row.alike:.0f}%"></i>'
            f"</span>{row.alike:.3f}</td>"
        )
    cells = "".join(f"<td>{escape(_printable(c))}</td>" for c in row.cells)
    return f'<tr tabindex="0" data-k="{number}">{bar}{cells}</tr>'


def _page(
    title: str, joined: Joined | None, data: str, table: str, kernels: str, extra: str
) -> str:
    keys = "".join(f"<tr><td><kbd>{k}</kbd><td>{escape(text)}" for k, text in _KEYS)
    buttons = "".join(
        f'<button data-do="{do}" title="{escape(text)}">{shown}</button>'
        for do, shown, text in _BUTTONS
        if table or do != "overview"
    )
    legend = "".join(
        f'<span class="chip s-{name}">{text}</span>'
        for name, text in (_EXACT if joined is not None and joined.exact else _LEGEND)
    )
    panes = "".join(
        f'<div class="pane"><h2 class="who" id="who{n}"></h2><svg id="{name}" tabindex="0" '
        f'role="application" aria-label="{name} control flow graph; press ? for keys">'
        f"{f'<defs>{markers()}</defs>' if not n else ''}</svg></div>"
        for n, name in enumerate(("left", "right"))
    )
    shown = escape(_printable(title))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width">'
        f"<title>{shown[:200]}</title><style>{style()}{themes()}{part('graph.css')}"
        f"{part('pairs.css')}</style></head>\n<body>"
        f'<header><h1 id="title">{shown}</h1><span id="facts" class="facts">'
        f"{escape(joined.facts if joined else '')}</span>"
        f'<span class="legend">{legend}</span>'
        '<input id="find" type="search" placeholder="search (/)" aria-label="search">'
        f'<span id="count" role="status"></span><span class="tools">{buttons}</span></header>\n'
        f'<main id="overview" hidden>{table}</main><main id="listing" hidden></main>'
        f'<div id="graphs">{panes}<svg id="links" aria-hidden="true"></svg></div>\n'
        '<div id="pair" tabindex="0" role="region" aria-label="instructions of the pair" hidden>'
        '</div><div id="said" role="status" aria-live="polite">? shows the keys</div>'
        f'<dialog id="help"><table>{keys}</table>{extra}'
        '<form method="dialog"><button autofocus>close</button></form></dialog>\n'
        "<noscript>This page draws with a script. Without one: sassxlate diff --format text."
        "</noscript>\n"
        f'<script type="application/json" id="kernels">{kernels}</script>\n{data}'
        f"<script>{part('drawing.js')}{part('pairs.js')}</script></body></html>\n"
    )


def _data(joined: Joined) -> dict[str, Any]:
    """A pair of graphs as ``pairs.js`` reads it."""
    sides: list[dict[str, Any]] = []
    for picture, notes in zip((joined.left, joined.right), joined.notes, strict=True):
        nodes = tuple(
            replace(node, note=f"{node.note}  {note}".strip()) if note else node
            for node, note in zip(picture.nodes, notes, strict=True)
        )
        drawn = replace(picture, nodes=nodes)
        sides.append(graph(drawn, lay_out(drawn)))
    kinds = [["alone"] * len(p.nodes) for p in (joined.left, joined.right)]
    for group in joined.groups:
        for side, some in enumerate((group.left, group.right)):
            for block in some:
                kinds[side][block] = group.status + (" moved" if group.moved else "")
    return {
        "title": joined.title,
        "facts": joined.facts,
        "who": [f"{p.shown} {p.target}" for p in (joined.left, joined.right)],
        "exact": joined.exact,
        "sides": sides,
        "kinds": kinds,
        "groups": [*map(_group, joined.groups)],
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "l": group.left, "r": group.right, "s": group.status, "h": group.head,
        "d": int(group.differs), "m": int(group.moved), "rows": group.rows,
    }  # fmt: skip


def _printable(text: str) -> str:
    """Text for HTML, without characters that HTML does not allow."""
    return "".join(c if c >= " " else "\ufffd" for c in text)


__all__ = ["Group", "Joined", "OverviewRow", "Row", "one_page", "overview"]
