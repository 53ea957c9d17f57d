"""Draws the curve of docs/model.md: known answers over steps, by size and data.

    python -m tools.figures.model_curve > docs/pictures/model.curve.svg

The figures are those of docs/pictures/model.curve.json, which were measured once: the picture is
drawn from them, and the table of docs/model.md has the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
FIGURES: Final = ROOT / "docs" / "pictures" / "model.curve.json"
WIDTH, HEIGHT, LEFT, TOP = 620, 300, 62, 58
MOST_STEPS, MOST_SHARE = 6000, 100
_LIGHT = (
    "--paper:#ffffff;--ink:#1c1c1c;--faint:#595959;--grid:#dddddd;"
    "--a:#2f4f9e;--b:#1b6e20;--c:#b3261e;--d:#8a5a00;"
)
_DARK = (
    "--paper:#16181c;--ink:#e8e8e6;--faint:#b0b0ae;--grid:#33373e;"
    "--a:#8fb0ff;--b:#6fcf73;--c:#ff8a80;--d:#e0b060;"
)
_STYLE = (
    f":root{{{_LIGHT}}}@media screen and (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    "svg{background:var(--paper)}"
    "text{font:12px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:var(--ink)}"
    ".f{fill:var(--faint)}.g{stroke:var(--grid)}polyline{fill:none;stroke-width:2}"
    + "".join(f".{n}{{stroke:var(--{n})}}.{n}p{{fill:var(--{n})}}" for n in "abcd")
)


@dataclass(frozen=True, slots=True)
class Run:
    """One training: its points are steps and the share of known answers, in percent."""

    parameters: int
    pairs: int
    points: tuple[tuple[int, float], ...]

    @property
    def name(self) -> str:
        return f"{self.parameters / 1e6:.1f} million, {self.pairs:,} pairs"


def runs(figures: Mapping[str, Any]) -> tuple[Run, ...]:
    """The trainings of the file.  ValueError for a point outside the picture."""
    out: list[Run] = []
    for row in figures["runs"]:
        points = tuple((int(step), float(share)) for step, share in row["points"])
        if any(not 0 <= s <= MOST_STEPS or not 0 <= p <= MOST_SHARE for s, p in points):
            raise ValueError(f"a point outside the picture: {points}")
        out.append(Run(int(row["parameters"]), int(row["pairs"]), points))
    return tuple(out)


def picture(figures: Mapping[str, Any]) -> str:
    """The SVG: one line for each training, its points, and its last share in words."""
    found = runs(figures)
    title = str(figures["title"])
    width, height = LEFT + WIDTH + 24, TOP + HEIGHT + 44 + 18 * len(found)
    body = "".join((*_grid(), *_lines(found)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img"><title>{escape(title)}</title>'
        f'<style>{_STYLE}</style><text x="{LEFT}" y="24" font-weight="bold">{escape(title)}</text>'
        f'<text class="f" x="{LEFT}" y="42">{escape(str(figures["measured"]))}</text>{body}</svg>\n'
    )


def _place(step: float, share: float) -> tuple[float, float]:
    return LEFT + step / MOST_STEPS * WIDTH, TOP + HEIGHT - share / MOST_SHARE * HEIGHT


def _grid() -> Iterator[str]:
    for share in range(0, MOST_SHARE + 1, 20):
        x, y = _place(0, share)
        yield f'<line class="g" x1="{x}" y1="{y:.1f}" x2="{x + WIDTH}" y2="{y:.1f}"/>'
        yield f'<text class="f" x="{x - 6}" y="{y + 4:.1f}" text-anchor="end">{share} %</text>'
    for step in range(0, MOST_STEPS + 1, 1000):
        x, y = _place(step, 0)
        yield f'<text class="f" x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{step:,}</text>'


def _lines(found: Sequence[Run]) -> Iterator[str]:
    for n, run in enumerate(found):
        style = "abcd"[n % 4]
        places = [_place(*point) for point in run.points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline class="{style}" points="{line}"/>'
        for x, y in places:
            yield f'<circle class="{style}p" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
        y = TOP + HEIGHT + 44 + 18 * n
        last = f"{run.name}: {run.points[-1][1]} % after {run.points[-1][0]:,} steps"
        yield f'<polyline class="{style}" points="{LEFT},{y - 4} {LEFT + 22},{y - 4}"/>'
        yield f'<text x="{LEFT + 30}" y="{y}">{escape(last)}</text>'


def main() -> None:
    sys.stdout.write(picture(json.loads(FIGURES.read_text())))


if __name__ == "__main__":
    main()
