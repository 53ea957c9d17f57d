"""What all pages that draw graphs have: the graph as data, the colours, the scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from sassxlate.cfg.view.layout import CHAR, HEAD, LINE, PAD, WIDEST, Layout
from sassxlate.cfg.view.picture import Picture, head
from sassxlate.cfg.view.svg import DARK, LIGHT, hottest, warmth


def part(name: str) -> str:
    """A script or style of this folder."""
    return files("sassxlate.cfg.pages").joinpath(name).read_text("utf-8")


def colours() -> str:
    """The style rules that define the colours: the system's theme, or the chosen one."""
    both = (
        (":root", LIGHT, ""),
        ("@media screen and (prefers-color-scheme:dark){:root", DARK, "}"),
    )
    return _rules(both) + themes()


def themes() -> str:
    """The chosen theme overrides the system's; print is always light."""
    return _rules(
        (
            (":root[data-theme=light]", LIGHT, ""),
            (":root[data-theme=dark]", DARK, ""),
            ("@media print{:root[data-theme]", LIGHT, "}"),
        )
    )


def _rules(some: Iterable[tuple[str, Mapping[str, str], str]]) -> str:
    return "".join(
        f"{rule}{{{''.join(f'--{k}:{v};' for k, v in values.items())}}}{end}"
        for rule, values, end in some
    )


def safe(data: Any) -> str:
    """JSON that is safe inside a script element, whatever names it contains."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def graph(picture: Picture, placed: Layout) -> dict[str, Any]:
    """A graph with its layout, as ``drawing.js`` reads it."""
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
