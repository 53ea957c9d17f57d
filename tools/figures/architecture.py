"""The picture of docs/architecture.md: who may import whom, and the way of a kernel.

::

    python -m tools.figures.architecture > docs/pictures/architecture.svg

The layers are the contracts in ``pyproject.toml``, which import-linter checks against the sources;
the way of a kernel is written here, and each folder that it names must be there.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES, LOWERING = "packages", "lowering: the way of a kernel"

# (what is there, where the code is that makes it)
WAY = (
    ("executable, library, fat binary, cubin", ""),
    ("cubin: kernels, constants, relocations", "disasm/containers"),
    ("SASS instructions", "disasm/sass"),
    ("control-flow graph, liveness, uniformity", "cfg"),
    ("where each register is; where lanes wait", "lowering/regalloc, lowering/convergence"),
    ("RDNA3 instructions; copies merged", "lowering/select, lowering/rules"),
    ("cheaper regions, each proved (optional)", "llm/engine, lowering/optimize"),
    ("waits and hazards added, long branches", "lowering/passes"),
    ("gfx1100 code object", "disasm/rdna3, lowering/codeobject"),
    ("host code of the emulated device, or AMD's HIP", "lowering/emulate, runtime_shim/native"),
)
_STYLE = (
    "text{font:13px sans-serif;fill:#222}.title{font-weight:bold;font-size:15px}"
    ".code{font:12px monospace;fill:#14508c}.box{fill:#f4f6f8;stroke:#8896a4}"
    ".way{fill:#eef5ec;stroke:#7a9a70}.arrow{stroke:#555;fill:none;marker-end:url(#head)}"
)
_LEFT, _TOP, _ROW, _WIDE, _GAP = 20, 60, 46, 350, 40


def contract(name: str) -> list[str]:
    """The layers of one contract, the highest first; those side by side joined by ``|``."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers: list[str] = next(c["layers"] for c in contracts if c["name"] == name)
    return layers


def missing() -> list[str]:
    """Folders that the way of a kernel names and the tree lacks."""
    named = (folder for _, folders in WAY for folder in folders.split(", ") if folder)
    return [folder for folder in named if not (ROOT / folder).is_dir()]


def _box(kind: str, left: int, top: int, wide: int, lines: Iterable[tuple[str, str]]) -> list[str]:
    texts = list(lines)
    high = 12 + 17 * len(texts)
    out = [f'<rect class="{kind}" x="{left}" y="{top}" width="{wide}" height="{high}" rx="4"/>']
    for n, (style, text) in enumerate(texts):
        place = f'x="{left + 10}" y="{top + 20 + 17 * n}"'
        out.append(f'<text class="{style}" {place}>{escape(text)}</text>')
    return out


def _stack(title: str, layers: list[str], left: int, wide: int) -> list[str]:
    out = [f'<text class="title" x="{left}" y="{_TOP - 16}">{escape(title)}</text>']
    for n, layer in enumerate(layers):
        out += _box("box", left, _TOP + n * (_ROW - 12), wide, [("code", layer)])
    return out


def picture() -> str:
    """The whole picture as SVG."""
    stacks = _LEFT + _WIDE + _GAP
    body = [f'<text class="title" x="{_LEFT}" y="{_TOP - 16}">The way of a kernel</text>']
    step = _ROW + 18
    for n, (what, where) in enumerate(WAY):
        lines = [("", what), *([("code", where)] if where else [])]
        body += _box("way", _LEFT, _TOP + n * step, _WIDE, lines)
        if n:
            middle, end = _LEFT + _WIDE // 2, _TOP + n * step
            start = end - step + (29 if n == 1 else 46)
            body.append(f'<path class="arrow" d="M{middle} {start}V{end - 2}"/>')
    packages, lowering = contract(PACKAGES), contract(LOWERING)
    body += _stack("Packages", packages, stacks, 200)
    body += _stack("Inside lowering", lowering, stacks + 240, 200)
    rows = max(len(packages), len(lowering))
    note = _TOP + rows * (_ROW - 12) + 24
    for n, text in enumerate(
        ("A layer may import those below it, never one above;", "a | b: neither imports the other.")
    ):
        body.append(f'<text x="{stacks}" y="{note + 18 * n}">{text}</text>')
    wide, high = stacks + 240 + 200 + _LEFT, _TOP + len(WAY) * step + 10
    head = (
        '<marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0 0L8 4L0 8Z" fill="#555"/></marker>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
            f'width="{wide}" height="{high}" role="img">',
            "<title>The way of a kernel, and which layers may import which</title>",
            f"<style>{_STYLE}</style><defs>{head}</defs>",
            f'<rect width="{wide}" height="{high}" fill="#fff"/>',
            *body,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(picture())
