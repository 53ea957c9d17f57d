"""The curves of a training run as a picture: one SVG, without scripts, light and dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, TOP, GAP = 420, 260, 58, 46, 70
_LIGHT = (
    "--paper:#ffffff;--ink:#1c1c1c;--faint:#595959;--grid:#dddddd;"
    "--a:#2f4f9e;--b:#b3261e;--c:#1b6e20;"
)
_DARK = (
    "--paper:#16181c;--ink:#e8e8e6;--faint:#b0b0ae;--grid:#33373e;"
    "--a:#8fb0ff;--b:#ff8a80;--c:#6fcf73;"
)
_STYLE = (
    f":root{{{_LIGHT}}}@media screen and (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    "svg{background:var(--paper)}"
    "text{font:12px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:var(--ink)}"
    ".f{fill:var(--faint)}.g{stroke:var(--grid)}polyline{fill:none;stroke-width:1.8}"
    ".a{stroke:var(--a)}.b{stroke:var(--b);stroke-dasharray:6 3}.c{stroke:var(--c);"
    "stroke-dasharray:2 3}circle.a{fill:var(--a)}circle.b{fill:var(--b)}circle.c{fill:var(--c)}"
)
# A panel: title, whether in percent, and its curves: key, name, class.
_PANELS = (
    ("loss (nats a token)", False,
     (("loss", "training", "a"), ("held_loss", "held out", "b"))),
    ("held out answers", True,
     (("whole", "right throughout", "a"), ("right", "tokens right", "b"),
      ("proved", "proved", "c"))),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Curve:
    name: str
    style: str
    points: tuple[tuple[float, float], ...]


def curves(rows: Sequence[Mapping[str, Any]]) -> str:
    """The picture of a log's rows: loss on the left, acceptance on the right, over steps."""
    parts: list[str] = []
    for n, (title, percent, keys) in enumerate(_PANELS):
        found = [_Curve(name, style, _points(rows, key)) for key, name, style in keys]
        x = LEFT + n * (WIDTH + GAP)
        parts.append(_panel(x, title, percent, [c for c in found if c.points]))
    width = LEFT + 2 * WIDTH + GAP + 30
    height = TOP + HEIGHT + 64
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img"><title>Training curves</title>'
        f"<style>{_STYLE}</style>{''.join(parts)}</svg>\n"
    )


def _points(rows: Sequence[Mapping[str, Any]], key: str) -> tuple[tuple[float, float], ...]:
    out: list[tuple[float, float]] = []
    for row in rows:
        step, value = row.get("step"), row.get(key)
        if not isinstance(step, int | float) or not isinstance(value, int | float):
            continue
        if math.isfinite(step) and math.isfinite(value):
            out.append((float(step), float(value)))
    return tuple(sorted(out))


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers, about five."""
    raw = (high - low) / 5 or 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= raw)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _panel(x: float, title: str, percent: bool, found: Sequence[_Curve]) -> str:
    points = [p for c in found for p in c.points]
    right = max((p[0] for p in points), default=1.0) or 1.0
    top = 1.0 if percent else max((p[1] for p in points), default=1.0) * 1.05 or 1.0

    def place(p: tuple[float, float]) -> tuple[float, float]:
        return x + p[0] / right * WIDTH, TOP + HEIGHT - p[1] / top * HEIGHT

    out = [f'<text x="{x}" y="{TOP - 24}" font-weight="bold">{escape(title)}</text>']
    for value in _ticks(0.0, top):
        y = place((0, value))[1]
        label = f"{100 * value:g} %" if percent else f"{value:g}"
        out.append(f'<line class="g" x1="{x}" y1="{y:.1f}" x2="{x + WIDTH}" y2="{y:.1f}"/>')
        out.append(f'<text class="f" x="{x - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for value in _ticks(0.0, right):
        at = place((value, 0))[0]
        label = f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
        y = TOP + HEIGHT + 18
        out.append(f'<text class="f" x="{at:.1f}" y="{y}" text-anchor="middle">{label}</text>')
    out.append(
        f'<text class="f" x="{x + WIDTH}" y="{TOP + HEIGHT + 34}" text-anchor="end">steps</text>'
    )
    at = x
    for curve in found:
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in map(place, curve.points))
        out.append(f'<polyline class="{curve.style}" points="{line}"/>')
        if len(curve.points) == 1:
            a, b = place(curve.points[0])
            out.append(f'<circle class="{curve.style}" cx="{a:.1f}" cy="{b:.1f}" r="3"/>')
        y = TOP - 8
        name = (
            f"{curve.name} {100 * curve.points[-1][1]:.1f} %"
            if percent
            else (f"{curve.name} {curve.points[-1][1]:.3f}")
        )
        out.append(f'<polyline class="{curve.style}" points="{at},{y - 4} {at + 22},{y - 4}"/>')
        out.append(f'<text x="{at + 27}" y="{y}">{escape(name)}</text>')
        at += 40 + 7.4 * len(name)
    return "".join(out)


__all__ = ["curves"]
