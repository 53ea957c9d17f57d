"""A picture as one HTML file: pan, zoom, search, fold, follow a register; it loads nothing.

The page's scripts and style are ``drawing.js``, ``graph.js`` and ``graph.css`` in this folder.
Coordinates come from :mod:`.layout`; the script only moves rows when blocks fold, and writes the
visible text.
"""

from __future__ import annotations

from html import escape

from sassxlate.cfg.pages.drawing import graph, part, safe, themes
from sassxlate.cfg.view.layout import Layout, lay_out
from sassxlate.cfg.view.picture import Picture
from sassxlate.cfg.view.svg import markers, style

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
        f"<title>{escape(title[:200])}</title><style>{style()}{themes()}"
        f"{part('graph.css')}</style></head>\n<body>"
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
        f'<script type="application/json" id="data">{safe(graph(picture, placed))}</script>\n'
        f"<script>{part('drawing.js')}{part('graph.js')}</script></body></html>\n"
    )


def _legend() -> str:
    return (
        "<p>Arcs: full line, T: branch taken; thin line, open head, F: fall-through; thick: "
        "the only way; dotted: one of several targets; dash and dot: calls; dashed: closes a loop. "
        "Shaded: loops. Bar at the left: lanes may have diverged. Line above: they reconverge. "
        "After a run: how often warps executed it, and its part of all executed instructions; the "
        "more often, the darker its head and the higher the bar at the right.</p>"
    )
