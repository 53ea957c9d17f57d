"""The results of an H200, as stored in ``fixtures/silicon/sm_90/convergence``.

``kernels.txt`` has a line per kernel: its verdict (steady, unsteady, hung, failed), the digest of
its events, whether the interpreter's Order.SILICON leaves them (explained, open), and its name.
``written.txt`` has the events of those that ask one question each.  ``calls.txt`` has the same of
the CUDA kernels of ``tests/disasm/sass/interpreter/generated_calls.py``, by seed: the digest is of
the words they
wrote; equal where Order.WARPS leaves them, too, and apart where not.

What the model leaves open is kept whole: ``open.xz`` has the events of those kernels, and
``open_calls.npz`` the words of the CUDA ones with the order in which each warp wrote them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassxlate.errors import InterpretError
from tools.silicon.convergence import kernels

from .events import Event, digest, read, shown

FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "silicon" / "sm_90" / "convergence"
ABOUT = "# an H200 (driver 580.159.04, 2026-11-23); tools/silicon/convergence\n"


@dataclass(frozen=True, slots=True)
class Kept:
    name: str
    verdict: str
    digest: str
    explained: bool


def kept() -> dict[str, Kept]:
    out: dict[str, Kept] = {}
    for line in (FOLDER / "kernels.txt").read_text().splitlines():
        if not line.startswith("#"):
            verdict, left, known, name = line.split(maxsplit=3)
            out[name] = Kept(name, verdict, left, known == "explained")
    return out


def calls() -> dict[int, Kept]:
    """By seed."""
    out: dict[int, Kept] = {}
    for line in (FOLDER / "calls.txt").read_text().splitlines():
        if not line.startswith("#"):
            verdict, left, known, _, seed = line.split()
            out[int(seed)] = Kept(seed, verdict, left, known == "explained")
    return out


def written() -> dict[str, tuple[Event, ...]]:
    """By name: the events of the kernels that ask one question each."""
    return _events((FOLDER / "written.txt").read_text().splitlines())


def open_logs() -> dict[str, tuple[Event, ...]]:
    """By name: the events of the kernels that Order.SILICON leaves otherwise (an H100's)."""
    return _events(lzma.decompress((FOLDER / "open.xz").read_bytes()).decode().splitlines())


def open_calls() -> dict[int, tuple[NDArray[np.uint32], NDArray[np.uint16]]]:
    """By seed: the words of the CUDA kernels that Order.SILICON leaves otherwise, a row per
    thread, and when each was written: a number per warp and time, from 1 (0: not written; all
    are 0 where the kernel with clocks wrote other words)."""
    with np.load(FOLDER / "open_calls.npz") as data:
        words = {int(n.split()[1]): data[n] for n in data.files if n.startswith("words ")}
        return {
            seed: (w, data[f"order {seed}"] if f"order {seed}" in data.files else np.zeros_like(w))
            for seed, w in words.items()
        }


def _events(lines: Iterable[str]) -> dict[str, tuple[Event, ...]]:
    out: dict[str, list[str]] = {}
    at: list[str] = []
    for line in lines:
        if line.startswith("= "):
            at = out.setdefault(line[2:], [])
        elif not line.startswith("#"):
            at.append(line)
    return {name: read(texts) for name, texts in out.items()}


def words_digest(out: NDArray[np.uint32]) -> str:
    return hashlib.blake2b(np.ascontiguousarray(out).tobytes(), digest_size=8).hexdigest()


def explained(name: str, verdict: str, left: str) -> bool:
    """Whether the interpreter in Order.SILICON does what the H200 did."""
    try:
        log = kernels.kernel(name).interpreted()
    except InterpretError as error:
        return (verdict, error.code) in (("hung", "SX0214"), ("failed", "SX0219"))
    return verdict == "steady" and log is not None and digest(log) == left


def _logs(paths: Sequence[Path]) -> Iterator[tuple[str, str, tuple[Event, ...] | None]]:
    """(name, verdict, events) of what ``driver.py`` wrote; a later file completes an earlier."""
    found: dict[str, tuple[str, tuple[Event, ...] | None]] = {}
    for path in paths:
        with gzip.open(path, "rt") as lines:
            for text in lines:
                line = json.loads(text)
                if line["verdict"] != "late" and not line["name"].startswith("cuda"):
                    log = [_event(e) for e in line.get("log", ())]
                    whole = all(e is not None for e in log)
                    events = tuple(e for e in log if e is not None) if whole else None
                    found[line["name"]] = line["verdict"], events
    for name, (verdict, events) in found.items():
        yield name, verdict, events


def _event(e: Sequence[Any]) -> Event | None:
    """None where lanes were counted that did not run together: a lane's room overflowed."""
    number, vote, lanes, barriers, value = e[:5]
    if vote != lanes or isinstance(barriers, dict):
        return None
    if isinstance(value, dict):
        of_lanes: dict[str, int] = value  # pyright: ignore[reportUnknownVariableType]
        value = tuple((int(n), v) for n, v in of_lanes.items())
    return number, vote, tuple(barriers), value


def keep(paths: Sequence[Path]) -> dict[str, list[int]]:
    """Writes the three files of kernels; gives how many of each kind were steady and explained."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines, texts, left_open = [ABOUT], [ABOUT], [ABOUT]
    count: dict[str, list[int]] = {}
    for name, verdict, log in sorted(_logs(paths), key=lambda x: x[0]):
        if log is None:
            continue
        left = digest(log) if verdict == "steady" else "-"
        known = explained(name, verdict, left)
        lines.append(f"{verdict} {left} {'explained' if known else 'open'} {name}\n")
        numbers = count.setdefault(name.split()[0], [0, 0])
        numbers[0] += 1
        numbers[1] += known
        if name.startswith("written ") and verdict == "steady":
            texts += [f"= {name}\n", *(f"{text}\n" for text in shown(log))]
        if verdict == "steady" and not known:
            left_open += [f"= {name}\n", *(f"{text}\n" for text in shown(log))]
    (FOLDER / "kernels.txt").write_text("".join(lines))
    (FOLDER / "written.txt").write_text("".join(texts))
    (FOLDER / "open.xz").write_bytes(lzma.compress("".join(left_open).encode(), preset=9))
    return count
