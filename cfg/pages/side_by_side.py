"""SASS and its RDNA3 side by side as one HTML file, in the shape of :mod:`.diff_page`: parts in
code order, instructions that the translator added marked and named."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from sassxlate.cfg.pages.diff import colours, script, styles
from sassxlate.cfg.view.side_by_side import Beside, Code, Part, SideBySideRow, head, said

_STYLE = (
    ".add{background:var(--new)}.none{color:var(--faint);font-style:italic}"
    "td .k{float:right;color:var(--faint)}dl{margin:.4em .7em;display:grid;"
    "grid-template-columns:max-content 1fr;gap:.1em 1em}dt{font-weight:bold}dd{margin:0}"
    "td>div{padding:0 .2em}"
)


def to_html(found: Beside) -> str:
    """The whole page."""
    parts = "\n".join(_part(part) for part in found.parts)
    kinds = "".join(f"<dt>{escape(k)}</dt><dd>{escape(text)}</dd>" for k, text in found.kinds)
    legend = f"<details><summary>what the translator added</summary><dl>{kinds}</dl></details>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(found.shown[:100])}: {found.target}, {found.other}</title>"
        f"<style>{colours()}{styles()}{_STYLE}</style></head>\n<body><header><h1>"
        f"<b>{escape(found.shown)}</b> {found.target} / {found.other}"
        f'</h1><span class="faint">{escape(said(found))}; {escape(found.source)}</span>'
        '<span><button data-do="last" title="previous block with added code (p)">↑</button> '
        '<button data-do="next" title="next block with added code (n)">↓</button> '
        '<button data-do="all" title="open or fold all blocks (a)">all</button> '
        '<button data-do="theme" title="light or dark (t)">theme</button></span>'
        f'<span id="count" role="status"></span></header>\n<main>{legend}\n{parts}</main>\n'
        f"<script>{script()}</script></body></html>\n"
    )


def _part(part: Part) -> str:
    mark = " data-differs" if any(c.added for c in part.codes()) else ""
    rows = "".join(_rows(part))
    return (
        f"<details{mark} open><summary>{escape(head(part))}</summary>"
        f"<table>{rows}</table></details>"
    )


def _rows(part: Part) -> Iterator[str]:
    for row in part.rows:
        yield f"<tr><td>{_left(row)}</td><td>{''.join(map(_code, row.code))}{_why(row)}</td></tr>"


def _left(row: SideBySideRow) -> str:
    if row.line is None:
        return ""
    rule = f'<span class="k">{escape(row.rule)}</span>' if row.rule else ""
    return f'{rule}<span class="o">{row.line.offset:04x}</span>  {plain(row.line.text)}'


def _why(row: SideBySideRow) -> str:
    return f'<div class="none">{escape(row.why)}</div>' if row.why else ""


def _code(code: Code) -> str:
    name = ' class="add"' if code.added else ""
    kind = f'<span class="k">{escape(code.added)}</span>' if code.added else ""
    return f'<div{name}>{kind}<span class="o">{code.offset:04x}</span>  {plain(code.text)}</div>'


def plain(text: str) -> str:
    """Text for HTML, without characters that HTML does not allow."""
    return escape("".join(c if c >= " " else "\ufffd" for c in text))
