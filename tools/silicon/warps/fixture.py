"""The fixture of a measurement: every word with its digest, some words with their results.

``fixtures/silicon/sm_90/warps.xz``: a line per word, ``word space class digest text``, a dash for
what is empty, a plus before words whose results are kept.  ``warps.npz``: those results, by line.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .template import CUBIN
from .words import Word

LINES, RESULTS = CUBIN.with_name("warps.xz"), CUBIN.with_name("warps.npz")
SEED = 1
_STEP = 19  # of the words whose results are kept


@dataclass(frozen=True, slots=True)
class Measured:
    """``kept``: its results are in the second file, under ``number``."""

    number: int
    word: Word
    digest: str
    kept: bool


def write(verdicts: Path, arrays: Path, *, more: bool = False) -> int:
    """From the files of a run; the number of words.  ``more``: beside the words that are there."""
    rows = [json.loads(line) for line in verdicts.read_text().splitlines()]
    lines: list[str] = []
    out: dict[str, NDArray[Any]] = {}
    known: set[tuple[str, str, str]] = set()
    if more:
        lines = lzma.decompress(LINES.read_bytes()).decode().splitlines()
        known = {tuple(line[1:].split(" ", 3)[:3]) for line in lines}  # type: ignore[misc]
        with np.load(RESULTS) as data:
            out = dict(data.items())
    with np.load(arrays) as data:
        for row in rows:
            kind = row["kind"].replace(" ", "_")
            name, key = str(row["n"]), (row["word"], row["space"] or "-", kind)
            if row["verdict"] != "equal" or key in known:
                continue
            keep = len(lines) % _STEP == 0 and name in data
            for tail in ("", ".at", ".byte") if keep else ():
                if name + tail in data:
                    out[f"{len(lines)}{tail}"] = data[name + tail]
            parts = (*key, row.get("digest") or "-", row["text"])
            lines.append(("+" if keep else " ") + " ".join(parts))
    LINES.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9))
    np.savez_compressed(RESULTS, **out)  # type: ignore[arg-type]
    return len(lines)


@cache
def measured() -> tuple[Measured, ...]:
    """All words of the fixture."""
    out: list[Measured] = []
    for number, line in enumerate(lzma.decompress(LINES.read_bytes()).decode().splitlines()):
        word, space, kind, digest, text = line[1:].split(" ", 4)
        made = Word(int(word, 16), space.replace("-", ""), kind.replace("_", " "), text)
        out.append(Measured(number, made, digest.replace("-", ""), line[0] == "+"))
    return tuple(out)
