"""A measured model by block length, as a picture: one SVG, without scripts, light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from sassxlate.llm.evaluation.figures import lengths

WIDTH, HEIGHT, LEFT, TOP, GAP = 440, 240, 62, 84, 66
_LIGHT = (
    "--paper:#ffffff;--ink:#1c1c1c;--faint:#595959;--grid:#dddddd;"
    "--a:#2f4f9e;--b:#8fa7dd;--c:#1b6e20;--d:#b0b0ae;--e:#b3261e;"
)
_DARK = (
    "--paper:#16181c;--ink:#e8e8e6;--faint:#b0b0ae;--grid:#33373e;"
    "--a:#8fb0ff;--b:#44598f;--c:#6fcf73;--d:#6d7178;--e:#ff8a80;"
)
_STYLE = (
    f":root{{{_LIGHT}}}@media screen and (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    "svg{background:var(--paper)}"
    "text{font:12px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:var(--ink)}"
    ".f{fill:var(--faint)}.g{stroke:var(--grid)}"
    + "".join(f".{n}{{fill:var(--{n})}}" for n in "abcde")
)
Bar = tuple[str, str, float]  # class, label, share


def picture(figures: Mapping[str, Any]) -> str:
    """Draws the figures of :func:`.figures.figures`: a row of panels per architecture, on the left
    the proved share, on the right the share cheaper than the rules' code, over SASS
    instructions."""
    names = [n for n in figures["blocks"] if n != "all"]
    samples = int(figures["samples"])
    out: list[str] = []
    step = TOP + HEIGHT + 40
    for n, name in enumerate(names):
        rows = lengths(figures["blocks"][name])
        y = n * step + TOP
        left = f"{name}: blocks Proved, by SASS instructions"
        out.append(_panel(LEFT, y, left, rows, _proved(samples), False))
        right = f"{name}: cost of what is Proved, and its mean"
        out.append(_panel(LEFT + WIDTH + GAP, y, right, rows, _costs(), True))
    width, height = LEFT + 2 * WIDTH + GAP + 24, max(1, len(names)) * step + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img"><title>Evaluation by block length</title>'
        f"<style>{_STYLE}</style>{''.join(out)}</svg>\n"
    )


class _Kind:
    """The bars of a bucket and their names."""

    def __init__(self, names: Sequence[tuple[str, str]], bars: Any) -> None:
        self.names, self.bars = names, bars


def _proved(samples: int) -> _Kind:
    def bars(row: Mapping[str, Any]) -> list[Bar]:
        first, best = row["first"]["share"] or 0.0, row["best"]["share"] or 0.0
        return [("a", "1 sample", first), ("b", f"{samples} samples", best - first)]

    names = [("a", "at 1 sample")]
    if samples > 1:
        names.append(("b", f"further at {samples}"))
    return _Kind(names, bars)


def _costs() -> _Kind:
    names = [("c", "cheaper"), ("d", "equal"), ("e", "dearer")]

    def bars(row: Mapping[str, Any]) -> list[Bar]:
        best = row["best"]
        return [(c, n, best[n] / max(1, best["Proved"])) for c, n in names]

    return _Kind([(c, f"{n} than the rules'" if n != "equal" else n) for c, n in names], bars)


def _panel(
    x: float, y: float, title: str, rows: Sequence[tuple[str, Mapping[str, Any]]], kind: _Kind,
    costs: bool,
) -> str:  # fmt: skip
    out = [f'<text x="{x}" y="{y - 44}" font-weight="bold">{escape(title)}</text>']
    at = x
    for style, name in kind.names:
        out.append(f'<rect class="{style}" x="{at}" y="{y - 33}" width="12" height="12"/>')
        out.append(f'<text x="{at + 17}" y="{y - 23}">{escape(name)}</text>')
        at += 32 + 7.4 * len(name)
    for percent in (0, 25, 50, 75, 100):
        at_y = y + HEIGHT * (1 - percent / 100)
        out.append(f'<line class="g" x1="{x}" y1="{at_y}" x2="{x + WIDTH}" y2="{at_y}"/>')
        out.append(
            f'<text class="f" x="{x - 6}" y="{at_y + 4}" text-anchor="end">{percent} %</text>'
        )
    slot = WIDTH / max(1, len(rows))
    for n, (name, row) in enumerate(rows):
        left, wide = x + n * slot + slot * 0.16, slot * 0.68
        top = y + HEIGHT
        for style, what, share in kind.bars(row):
            tall = HEIGHT * share
            top -= tall
            if tall > 0:
                out.append(
                    f'<rect class="{style}" x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" '
                    f'height="{tall:.1f}"><title>{escape(what)}: {100 * share:.1f} %</title></rect>'
                )
        middle = left + wide / 2
        best = row["best"]
        ratio = best["mean_ratio"]
        value = (
            (f"{ratio:.2f}" if ratio is not None else "")
            if costs
            else (f"{100 * (best['share'] or 0):.1f}")
        )
        out.append(f'<text x="{middle:.1f}" y="{top - 5:.1f}" text-anchor="middle">{value}</text>')
        y_name, y_count = y + HEIGHT + 16, y + HEIGHT + 31
        out.append(f'<text x="{middle:.1f}" y="{y_name}" text-anchor="middle">{name}</text>')
        count = best["Proved"] if costs else row["distinct"]
        out.append(
            f'<text class="f" x="{middle:.1f}" y="{y_count}" text-anchor="middle">{count}</text>'
        )
    return "".join(out)


__all__ = ["picture"]
