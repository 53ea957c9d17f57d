"""Kernels that ask one question each (``questions.txt``); see :mod:`.listing`.

The upper half of the warp (lanes 16 to 31) is where P0 holds, its odd lanes where P1 does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_HALF = ["LOP3.LUT R6, R0, 0x10, RZ, 0xc0, !PT", "ISETP.NE.AND P0, PT, R6, RZ, PT"]
_ODD = ["LOP3.LUT R6, R0, 0x1, RZ, 0xc0, !PT", "ISETP.NE.AND P1, PT, R6, RZ, PT"]
_SECOND = ["LOP3.LUT R6, R0, 0x2, RZ, 0xc0, !PT", "ISETP.NE.AND P2, PT, R6, RZ, PT"]
_HINTS = {"": [], "_yield": ["YIELD"], "_sleep": ["NANOSLEEP 0x64"],
          "_load": ["LDG.E R30, desc[UR6][R14.64]", "IADD3 R31, R30, 0x1, RZ"]}  # fmt: skip
_SPIN = ["ULDC.64 UR8, c[0x0][0x218]", "MOV R4, UR8", "MOV R5, UR9"]


def _questions() -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    at: list[str] = []
    for line in Path(__file__).with_name("questions.txt").read_text().splitlines():
        if line.startswith("= "):
            at = out.setdefault(line[2:], [])
        elif not line.startswith("#"):
            at.append(line)
    return out


def kernels() -> Iterator[tuple[str, list[str]]]:
    """(name, lines for :func:`.listing.expanded`)."""
    for name, body in _questions().items():
        start = [*_HALF, *_ODD, *_SECOND, *(_SPIN if name.startswith("spin") else ())]
        if "HINT" not in body:
            yield name, [*start, *body]
            continue
        for suffix, hint in _HINTS.items():
            made: list[str] = []
            for line in body:
                made += hint if line == "HINT" else [line]
            yield name + suffix, [*start, *made]
