"""The machine code of many files: how often each distinct word occurs, by architecture.

Executables, libraries, objects, cubins, wheels, and folders of these are read.  Equal sections
are kept once and counted as often as they occur.
"""

from __future__ import annotations

import collections
import hashlib
import re
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.containers import Function, Kernel, LoadedFile, load
from sassxlate.disasm.sass.tables.spec import GENERATION_OF
from sassxlate.errors import SassxlateError

ROOT = Path(__file__).resolve().parents[2]


Target: TypeAlias = tuple[int, str]  # (90, "a")
Halves: TypeAlias = "NDArray[np.uint64]"  # shape (words, 2): low and high half of each word
Counts: TypeAlias = "NDArray[np.int64]"
_LIBRARY = re.compile(r"\.(so[.\d]*|a|o|cubin|fatbin)$")
_NO_DEVICE_CODE = ("SX0101", "SX0102")


@dataclass(slots=True)
class Corpus:
    """The code in files.

    ``sections`` are the distinct ones with their occurrences; ``instructions`` and ``programs``
    count all of them for each file (or wheel, or folder given); ``errors`` are files that hold
    device code which cannot be read.
    """

    sections: dict[Target, dict[bytes, tuple[bytes, int]]] = field(
        default_factory=lambda: collections.defaultdict(dict)
    )
    instructions: dict[str, collections.Counter[Target]] = field(
        default_factory=lambda: collections.defaultdict(collections.Counter)
    )
    files: collections.Counter[str] = field(default_factory=lambda: collections.Counter[str]())
    errors: list[str] = field(default_factory=list[str])

    def add(self, group: str, target: Target, code: bytes) -> None:
        """Count one section."""
        self.instructions[group][target] += len(code) // 16
        if target[0] in GENERATION_OF:
            known = self.sections[target]
            key = hashlib.sha256(code).digest()
            known[key] = code, known.get(key, (code, 0))[1] + 1

    def words(self, target: Target) -> tuple[Halves, Counts]:
        """The distinct words of an architecture and how often each occurs."""
        found = self.sections[target].values()
        every = np.frombuffer(b"".join(code for code, _ in found), dtype="<u8").reshape(-1, 2)
        weights = np.repeat(
            np.array([count for _, count in found], dtype=np.int64),
            np.array([len(code) // 16 for code, _ in found], dtype=np.int64),
        )
        return _distinct(every, weights)


def _distinct(every: Halves, weights: Counts) -> tuple[Halves, Counts]:
    order = np.lexsort((every[:, 0], every[:, 1]))
    every, weights = every[order], weights[order]
    first = np.ones(len(every), dtype=bool)
    first[1:] = (every[1:] != every[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    return every[starts], np.add.reduceat(weights, starts) if len(starts) else weights


def integers(halves: Halves) -> list[int]:
    """The words as numbers."""
    return [low | high << 64 for low, high in halves.tolist()]


def name(target: Target) -> str:
    """(90, "a") -> ``sm_90a``."""
    return f"sm_{target[0]}{target[1]}"


def read(paths: Sequence[Path]) -> Corpus:
    """The code of files, wheels and folders; each argument is a group of its own."""
    out = Corpus()
    for path in paths:
        for file, loaded in opened([path], out.errors):
            out.files[path.name] += 1
            try:
                for _, cubin in loaded.cubins():
                    codes: list[Kernel | Function] = [*cubin.kernels, *cubin.functions]
                    for code in codes:
                        out.add(path.name, (cubin.arch, cubin.variant), code.code)
            except SassxlateError as error:
                out.errors.append(f"{file}: {error}")
    return out


def opened(
    paths: Iterable[Path], errors: list[str] | None = None
) -> Iterator[tuple[str, LoadedFile]]:
    """The files that hold device code, with their names; ``errors`` takes those of bad ones."""
    for file, where in _files(paths):
        try:
            loaded = load(where)
        except SassxlateError as error:
            if errors is not None and error.code not in _NO_DEVICE_CODE:
                errors.append(f"{file}: {error}")
            continue
        if loaded.fatbins:
            yield file, loaded


def _files(paths: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Names and places of the files that may hold code."""
    for path in paths:
        if path.is_dir():
            yield from _files(sorted(p for p in path.rglob("*") if p.is_file()))
        elif path.suffix != ".whl":
            yield str(path), path
        else:
            with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as folder:
                for entry in wheel.namelist():
                    if _LIBRARY.search(entry):
                        place = Path(wheel.extract(entry, folder))
                        yield f"{path.name}:{entry}", place
                        place.unlink()
