"""The differences between two graphs as one HTML file: both sides next to each other on one page
that scrolls as a whole, pairs in the order of the left side."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib.resources import files

from sassxlate.cfg.diff.align import Alignment, BlockMatch, lines
from sassxlate.cfg.diff.text import moved, notes, same, status
from sassxlate.cfg.view.picture import Line, Node, Picture
from sassxlate.cfg.view.svg import DARK, LIGHT


def to_html(left: Picture, right: Picture, found: Alignment) -> str:
    """The whole page."""
    away = moved(found)
    parts = [_part(left, right, one, away) for one in _order(found)]
    kinds = [status(left, right, p) for p in found.pairs]
    facts = (
        f"{len(found.pairs)} pairs: {kinds.count('same')} same, {kinds.count('renamed')} renamed, "
        f"{kinds.count('changed')} changed; {len(away)} moved; {len(found.only_left)} only left, "
        f"{len(found.only_right)} only right; alike {found.alike:.3f}"
    )
    verdict = "nothing differs" if same(left, right, found) else facts
    verdict = "; ".join([verdict, *notes(left, right)])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(left.shown[:100])}: {left.target}, {right.target}</title>"
        f"<style>{colours()}{styles()}</style></head>\n<body><header><h1>"
        f"<b>{escape(left.shown)}</b> {left.target} / <b>{escape(right.shown)}</b> {right.target}"
        f'</h1><span class="faint">{escape(verdict)}</span>'
        '<span><button data-do="last" title="previous difference (p)">↑</button> '
        '<button data-do="next" title="next difference (n)">↓</button> '
        '<button data-do="all" title="open or fold unchanged blocks (a)">all</button> '
        '<button data-do="theme" title="light or dark (t)">theme</button></span>'
        '<span id="count" role="status"></span></header>\n<main>'
        + "\n".join(parts)
        + f"</main>\n<script>{script()}</script></body></html>\n"
    )


def colours() -> str:
    """The style rules that define the colours: the system's theme, or the chosen one."""
    return "".join(
        f"{rule}{{{''.join(f'--{k}:{v};' for k, v in values.items())}}}{end}"
        for rule, values, end in (
            (":root", LIGHT, ""),
            ("@media screen and (prefers-color-scheme:dark){:root", DARK, "}"),
            (":root[data-theme=light]", LIGHT, ""),
            (":root[data-theme=dark]", DARK, ""),
            ("@media print{:root[data-theme]", LIGHT, "}"),
        )
    )


def styles() -> str:
    """The other style rules of the page."""
    return _file("diff.css")


def script() -> str:
    """The script: moves between differences, folds blocks, switches the theme."""
    return _file("diff.js")


def _file(name: str) -> str:
    return files("sassxlate.cfg.pages").joinpath(name).read_text("utf-8")


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


def _part(
    left: Picture, right: Picture, one: BlockMatch | tuple[int | None, int | None], away: set[int]
) -> str:
    if isinstance(one, BlockMatch):
        a, b = left.nodes[one.left], right.nodes[one.right]
        kind = status(left, right, one)
        said = f"{kind} {one.alike:.2f}" + ("  moved" if one.left in away else "")
        head = f'{a.name}  {b.name}  <span class="faint">{said}</span>'
        differs = kind == "changed"
        rows = "".join(_rows(a, b))
        mark = " data-differs open" if differs else ""
        return f"<details{mark}><summary>{head}</summary><table>{rows}</table></details>"
    at, other = one
    if at is not None:
        node, side, name = left.nodes[at], "left", "gone"
    else:
        assert other is not None
        node, side, name = right.nodes[other], "right", "new"
    cells = [f'<td class="{name}">{_text(line)}</td>' for line in node.lines]
    rows = "".join(
        f"<tr>{c}<td></td></tr>" if side == "left" else f"<tr><td></td>{c}</tr>" for c in cells
    )
    return (
        f'<section data-differs><h2 tabindex="0">{node.name}  <span class="faint">only {side}'
        f"</span></h2><table>{rows}</table></section>"
    )


def _rows(a: Node, b: Node) -> Iterator[str]:
    for row in lines(a, b):
        x = a.lines[row.left] if row.left is not None else None
        y = b.lines[row.right] if row.right is not None else None
        if x is not None and y is not None:
            name = "" if x.text == y.text else ' class="ren"'
            yield f"<tr><td{name}>{_text(x)}</td><td{name}>{_text(y)}</td></tr>"
        elif x is not None:
            yield f'<tr><td class="gone">- {_text(x)}</td><td></td></tr>'
        elif y is not None:
            yield f'<tr><td></td><td class="new">+ {_text(y)}</td></tr>'


def _text(line: Line) -> str:
    text = "".join(c if c >= " " else "\ufffd" for c in line.text)
    return f'<span class="o">{line.offset:04x}</span>  {escape(text)}'
