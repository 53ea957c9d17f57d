"""A picture as SVG: one file, no script, readable in light and dark themes and on paper.

Arcs differ by more than colour: a taken branch is a full line with a full head and a T, the
fall-through a thin line with an open head and an F, an unconditional edge a thick line; a back edge
is dashed.  Loops are shaded, deeper ones darker; a bar at a block's left side means that lanes may
have diverged, a double line above it that they reconverge.  After a run a block's head has its
execution count, is shaded by the logarithm of the count, and a bar at the right is as high.
"""

from __future__ import annotations

from html import escape
from math import log1p

from sassxlate.cfg.view.layout import LINE, MARGIN, PAD, WIDEST, Layout, Route, lay_out
from sassxlate.cfg.view.picture import Node, Picture, head

LIGHT = {
    "paper": "#ffffff", "ink": "#1c1c1c", "faint": "#595959", "block": "#fdfdfb", "rim": "#767676",
    "loop": "#dfe9f7", "lost": "#eeeeee", "diverge": "#b45f06", "taken": "#1b6e20",
    "fall": "#b3261e", "jump": "#2f4f9e", "case": "#6b4f00", "call": "#7a3aa8",
    "return": "#7a3aa8", "heat": "#c2410c", "warm": "#c2410c",
}  # fmt: skip
DARK = {
    "paper": "#16181c", "ink": "#e8e8e6", "faint": "#b0b0ae", "block": "#202329", "rim": "#8a8f98",
    "loop": "#26344d", "lost": "#2a2a2a", "diverge": "#f0a050", "taken": "#6fcf73",
    "fall": "#ff8a80", "jump": "#8fb0ff", "case": "#e0c060", "call": "#d0a0ff",
    "return": "#d0a0ff", "heat": "#ff9d66", "warm": "#b04a18",
}  # fmt: skip
_LETTERS = {"taken": "T", "fall": "F"}


def style() -> str:
    """The style rules of all drawings: colours as variables, light and dark."""

    def names(colours: dict[str, str]) -> str:
        return "".join(f"--{name}:{value};" for name, value in colours.items())

    kinds = "".join(
        f".{k}{{stroke:var(--{k})}}.{k}.m,.{k}.l{{fill:var(--{k});stroke:none}}"
        for k in ("taken", "fall", "jump", "case", "call", "return")
    )
    return (
        f":root{{{names(LIGHT)}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{names(DARK)}}}}}"
        "svg{background:var(--paper)}"
        "svg text{font:12px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:var(--ink);"
        "white-space:pre}"
        "svg .h{font-weight:bold;fill:var(--faint)}svg .o{fill:var(--faint)}"
        ".b rect.r{fill:var(--block);stroke:var(--rim)}.b.lost rect.r{fill:var(--lost)}"
        ".halo{fill:var(--loop);stroke:none;opacity:.75}"
        ".bar{fill:var(--diverge)}.join{stroke:var(--rim);fill:none}"
        ".heat{fill:var(--heat)}.warm{fill:var(--warm)}svg .ran{fill:var(--ink)}"
        ".e{fill:none;stroke-width:1.5;stroke-linejoin:round}.fall{stroke-width:1.1}"
        ".jump{stroke-width:2.1}.case{stroke-dasharray:1.5 2.5}.call,.return"
        "{stroke-dasharray:8 2 2 2}.back{stroke-dasharray:6 4}"
        f"{kinds}"
        ".fall.m,.return.m{fill:var(--paper);stroke:var(--fall)}"
        ".return.m{stroke:var(--return)}"
        "svg text.l{font-size:9px;font-weight:bold}"
    )


def markers() -> str:
    """Arrow heads: full ones, and open ones for the fall-through."""
    return "".join(
        f'<marker id="m-{k}" viewBox="-1 -1 10 10" refX="7" refY="4" markerWidth="8" '
        f'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path class="{k} m" d="M0 0L8 4L0 8z"/></marker>'
        for k in ("taken", "fall", "jump", "case", "call", "return")
    )


def shortened(text: str) -> str:
    """A line's text, cut to the width of a block."""
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def warmth(runs: int, most: int) -> float:
    """The opacity of the shading of a block's head: by the logarithm of its executions, and never
    so dark that its text is hard to read."""
    return 0.06 + 0.44 * log1p(runs) / log1p(most) if runs else 0.0


def hottest(picture: Picture) -> int:
    """The highest execution count of a block; 0 if nothing was counted."""
    return max((node.runs or 0 for node in picture.nodes), default=0)


def to_svg(picture: Picture, layout: Layout | None = None) -> str:
    """The drawing, with its name above it."""
    placed = layout or lay_out(picture)
    gaps, rows, height = placed.tops()
    title = f"{picture.shown}  {picture.target}"
    facts = picture.subtitle or f"{len(picture.nodes)} blocks, {len(picture.loops)} loops"
    facts += "".join(f"; {note}" for note in picture.notes)
    longest = min(max(len(title), len(facts)), 4 * WIDEST)
    wide = max(placed.width, 2 * MARGIN + 7.4 * longest, 420.0)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -48 {wide:.0f} {height + 58:.0f}" '
        f'width="{wide:.0f}" height="{height + 58:.0f}">',
        f"<title>{escape(_printable(title))}</title><style>{style()}</style>",
        f"<defs>{markers()}</defs>",
        f'<text x="{MARGIN:.0f}" y="-30">{escape(_printable(title[: 4 * WIDEST]))}</text>',
        f'<text class="o" x="{MARGIN:.0f}" y="-13">{escape(_printable(facts))}</text>',
    ]
    for node, box in zip(picture.nodes, placed.boxes, strict=True):
        y = rows[box.row]
        for depth in range(len(node.loops)):
            wider = 6.0 * (len(node.loops) - depth)
            out.append(_rect("halo", box.x - wider, y - 5, box.width + 2 * wider, box.height + 10))
    out += [_arc(route, gaps, rows, placed) for route in placed.routes]
    most = hottest(picture)
    for node, box in zip(picture.nodes, placed.boxes, strict=True):
        out.append(_block(node, box.x, rows[box.row], box.width, box.height, most))
    out.append("</svg>\n")
    return "\n".join(out)


def _printable(text: str) -> str:
    """The text without characters that XML cannot represent."""
    return "".join(c if c >= " " and c not in "\ufffe\uffff" else "\ufffd" for c in text)


def _rect(name: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    )


def _arc(route: Route, gaps: list[float], rows: list[float], placed: Layout) -> str:
    arc = route.arc
    source, target = placed.boxes[arc.src], placed.boxes[arc.dst]
    bottom = rows[source.row] + source.height
    points = [
        (route.points[0][0], bottom),
        *((x, gaps[g] + y) for x, g, y in route.points[1:-1]),
        (route.points[-1][0], rows[target.row]),
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    back = " back" if arc.back else ""
    line = f'<polyline class="e {arc.kind}{back}" points="{path}" marker-end="url(#m-{arc.kind})"/>'
    letter = _LETTERS.get(arc.kind)
    if letter is None:
        return line
    x, y = points[0]
    return line + f'<text class="l {arc.kind}" x="{x + 3:.1f}" y="{y + 9:.1f}">{letter}</text>'


def _block(node: Node, x: float, y: float, width: float, height: float, most: int) -> str:
    lost = "" if node.reachable else " lost"
    out = [f'<g class="b{lost}" id="b{node.index}">', _rect("r", x, y, width, height)]
    if node.divergent:
        out.append(_rect("bar", x, y, 4, height))
    if node.joins:
        out.append(f'<path class="join" d="M{x:.1f} {y - 3:.1f}h{width:.1f}"/>')
    if node.runs is not None and most:
        part = (height - 2) * node.runs / most
        if node.runs:
            band = _rect("warm", x + 0.5, y + 0.5, width - 1, LINE + PAD)
            out.append(band.replace("/>", f' fill-opacity="{warmth(node.runs, most):.2f}"/>'))
        out.append(_rect("heat", x + width - 5, y + height - 1 - part, 4, part))
    left = x + PAD + 2
    name = "h ran" if node.runs is not None and most else "h"
    text = escape(head(node))
    out.append(f'<text class="{name}" x="{left:.1f}" y="{y + PAD + 11:.1f}">{text}</text>')
    for n, line in enumerate(node.lines, 1):
        out.append(
            f'<text x="{left:.1f}" y="{y + PAD + 11 + LINE * n:.1f}"><tspan class="o">'
            f"{line.offset:04x}</tspan>  {escape(_printable(shortened(line.text)))}</text>"
        )
    out.append("</g>")
    return "".join(out)
