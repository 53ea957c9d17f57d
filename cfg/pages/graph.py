"""A picture as one HTML file: pan, zoom, search, fold, follow a register; it loads nothing.

The page's script and style are ``graph.js`` and ``graph.css`` in this folder.  Coordinates come
from :mod:`.layout`; the script only moves rows when blocks fold, and writes the visible text.
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import Any

from sassxlate.cfg.view.layout import CHAR, HEAD, LINE, PAD, WIDEST, Layout, lay_out
from sassxlate.cfg.view.picture import Picture, head
from sassxlate.cfg.view.svg import DARK, LIGHT, hottest, markers, style, warmth

_KEYS = (
    ("arrows", "to the next block, back, to its neighbours"),
    ("j k", "a line down, a line up"),
    ("r", "follow the next register of the line"),
    ("Enter", "fold or unfold the block (also a double click)"),
    ("c", "fold or unfold straight chains"),
    ("/ n N", "search; next, previous"),
    ("+ - 0", "larger, smaller, all of it"),
    ("Shift and arrows", "move the picture (also: drag)"),
    ("Home End", "the first block, the last"),
    ("t", "light or dark"),
    ("Esc", "stop following a register"),
)


def to_html(picture: Picture, layout: Layout | None = None) -> str:
    """The whole page."""
    placed = layout or lay_out(picture)
    title = f"{picture.shown} {picture.target}"
    facts = f"{picture.target}, {len(picture.nodes)} blocks, {len(picture.loops)} loops"
    facts += "".join(f"; {note}" for note in picture.notes)
    keys = "".join(f"<tr><td><kbd>{k}</kbd><td>{escape(said)}" for k, said in _KEYS)
    buttons = "".join(
        f'<button data-do="{do}" title="{escape(said)}">{text}</button>'
        for do, text, said in (
            ("out", "&minus;", "smaller (-)"),
            ("in", "+", "larger (+)"),
            ("fit", "fit", "all of it (0)"),
            ("chains", "chains", "fold or unfold straight chains (c)"),
            ("theme", "theme", "light or dark (t)"),
            ("help", "?", "keys (?)"),
        )
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title[:200])}</title><style>{style()}{_themes()}"
        f"{_part('graph.css')}</style></head>\n<body>"
        f'<header><h1>{escape(picture.shown)}</h1><span class="facts">{escape(facts)}</span>'
        '<input id="find" type="search" placeholder="search (/)" aria-label="search">'
        '<span id="count" role="status"></span><button data-do="last" title="previous (N)" '
        'aria-label="previous">↑</button><button data-do="next" title="next (n)" '
        f'aria-label="next">↓</button>{buttons}</header>\n'
        f'<svg id="graph" tabindex="0" role="application" aria-label="control flow graph; '
        f'press ? for keys"><defs>{markers()}</defs></svg>\n'
        '<div id="said" role="status" aria-live="polite">? shows the keys</div>'
        f'<dialog id="help"><table>{keys}</table>{_legend()}'
        '<form method="dialog"><button autofocus>close</button></form></dialog>\n'
        "<noscript>This page draws with a script. Without one: "
        "sassxlate cfg --format svg.</noscript>\n"
        f'<script type="application/json" id="data">{_safe(_data(picture, placed))}</script>\n'
        f"<script>{_part('graph.js')}</script></body></html>\n"
    )


def _legend() -> str:
    return (
        "<p>Arcs: full line, T: branch taken; thin line, open head, F: fall-through; thick: "
        "the only way; dotted: one of several targets; dash and dot: calls; dashed: closes a loop. "
        "Shaded: loops. Bar at the left: lanes may have diverged. Line above: they reconverge. "
        "After a run: how often warps executed it, and its part of all executed instructions; the "
        "more often, the darker its head and the higher the bar at the right.</p>"
    )


def _part(name: str) -> str:
    return files("sassxlate.cfg.pages").joinpath(name).read_text("utf-8")


def _themes() -> str:
    """The chosen theme overrides the system's; print is always light."""
    return "".join(
        f"{rule}{{{''.join(f'--{k}:{v};' for k, v in colours.items())}}}{end}"
        for rule, colours, end in (
            (":root[data-theme=light]", LIGHT, ""),
            (":root[data-theme=dark]", DARK, ""),
            ("@media print{:root[data-theme]", LIGHT, "}"),
        )
    )


def _safe(data: Any) -> str:
    """JSON that is safe inside a script element, whatever names it contains."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(picture: Picture, placed: Layout) -> dict[str, Any]:
    most = hottest(picture)
    nodes = [
        {
            "n": node.name, "h": head(node), "r": box.row, "x": round(box.x, 1),
            "w": round(box.width, 1), "d": int(node.divergent), "j": node.joins, "lp": node.loops,
            "lost": int(not node.reachable), "heat": (node.runs or 0) / most if most else 0,
            "warm": round(warmth(node.runs, most), 2) if most and node.runs is not None else -1,
            "L": [(t.offset, t.text, t.writes, t.reads) for t in node.lines],
        }
        for node, box in zip(picture.nodes, placed.boxes, strict=True)
    ]  # fmt: skip
    arcs = [
        {
            "s": r.arc.src, "t": r.arc.dst, "k": r.arc.kind, "b": int(r.arc.back),
            "p": [(round(x, 1), gap, round(y, 1)) for x, gap, y in r.points],
        }
        for r in placed.routes
    ]  # fmt: skip
    text = {"char": CHAR, "line": LINE, "pad": PAD, "head": HEAD, "widest": WIDEST}
    return {
        "width": round(placed.width, 1), "gaps": placed.gaps, "nodes": nodes, "arcs": arcs,
        "text": text,
    }  # fmt: skip
