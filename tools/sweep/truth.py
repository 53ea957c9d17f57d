"""The kernels' output on an NVIDIA GPU: storing it, and comparing with it."""

from __future__ import annotations

import gzip
import json
import lzma
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .inputs import Words
from .kernel import SEED, THREADS, Kernel
from .plan import FLUSHES, TRUTHS, groups, shapes_of

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "sweep" / "sm_90"
VERDICTS = (
    "same", "nan64", "bound", "nan", "differ", "refused", "failed", "untold",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Result:
    """A kernel's digests, plain and with all NaNs made one; its words where they are kept."""

    digests: str
    canonical: str
    words: bytes = b""
    error: str = ""

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> Result:
        """From a line of the driver."""
        plain = str(line.get("d", ""))
        words = bytes.fromhex(str(line.get("w", "")))
        return cls(plain, str(line.get("c", plain)), words, str(line.get("e", "")))


@dataclass(frozen=True, slots=True)
class Truth:
    """``by_flags`` has a result for each kernel under ``O3``; under others where it is another."""

    sources: dict[str, int]
    by_flags: dict[str, dict[str, Result]] = field(repr=False)
    release: str = ""  # of the nvcc that made what the GPU ran

    def expected(self, kernel: Kernel, arch: int, flags: str, release: str = "") -> Result | None:
        """The result that the kernel must have, or None if none is known to be right.

        ``release`` is of the nvcc that compiled it here: another one may contract otherwise.
        """
        if kernel.holds == "code" and release != self.release:
            return None
        if self.sources.get(kernel.name) != kernel.source_crc:
            return None
        usual = self.by_flags["O3"].get(kernel.name)
        taken = self.by_flags.get(flags)
        mine = usual if taken is None else taken.get(kernel.name, usual)
        if mine is None or mine.error:
            return None
        if flags == "ftz" and arch == 90 and taken is not None:
            return mine
        if flags in FLUSHES:  # fast: divisions and functions are approximations, too
            return mine if kernel.holds == "exact" and taken is not None else None
        if arch == 90 and taken is not None:
            return mine
        if kernel.holds == "code":
            return None
        others = [self.by_flags[f] for f in self.by_flags if f not in ("O3", *FLUSHES)]
        moved = any(kernel.name in other for other in others)
        return None if moved else usual


def _floats(words: Words, kind: str) -> np.ndarray[Any, Any]:
    """The slots' values as doubles, a row per slot (doubles: a row each two)."""
    if kind == "d":
        pairs = words[0::2].astype(np.uint64) | words[1::2].astype(np.uint64) << np.uint64(32)
        return pairs.view(np.float64)
    return words.view(np.float32).astype(np.float64)


def within(kernel: Kernel, mine: bytes, truth: bytes) -> bool:
    """Whether an approximation is within its bound of the GPU's; NaNs and infinities are equal."""
    rows = len(kernel.slots)
    both = [np.frombuffer(w, np.uint32).reshape(rows, THREADS) for w in (mine, truth)]
    here, there = (_floats(w, kernel.slots[0]) for w in both)
    match = re.fullmatch(r"(ulp|abs|rel|mix)([\d.e+-]+)", kernel.bound)
    assert match, kernel.bound
    kind, size = match.group(1), match.group(2)
    # 2e-18 is two to the power of -18
    bound = float(size) if kind == "ulp" else math.ldexp(1.0, int(size.partition("e")[2]))
    finite = np.isfinite(here) & np.isfinite(there)
    odd = ~finite & ~((np.isnan(here) & np.isnan(there)) | (here == there))
    if odd.any():
        return False
    with np.errstate(all="ignore"):
        error = np.abs(here - there)[finite]
        size_ = np.abs(there)[finite]
        if kind == "ulp":
            wide = kernel.slots[0] == "d"
            least = np.maximum(size_, 2.0 ** (-1022 if wide else -126))
            unit = np.spacing(least if wide else least.astype(np.float32)).astype(np.float64)
            return bool((error <= bound * unit).all())
        scale = {"abs": 1.0, "rel": size_, "mix": np.maximum(size_, 1.0)}[kind]
        return bool((error <= bound * scale).all())


def _part(result: Result, at: int) -> str:
    return result.digests[at : at + 8]


def verdict(kernel: Kernel, expected: Result | None, got: Result, refused: bool) -> str:
    """One of VERDICTS.

    ``nan`` is equal but for NaNs' bits, ``nan64`` but for those of doubles that it wrote, which the
    translation does not promise of doubles that it only stores (`docs/verification.md`).
    ``untold`` has no truth.
    """
    if refused:
        return "refused"
    if got.error:
        return "failed"
    if expected is None:
        return "untold"
    if kernel.bound:
        if got.words == expected.words:
            return "same"
        return "bound" if within(kernel, got.words, expected.words) else "differ"
    if got.digests == expected.digests:
        return "same"
    if got.canonical != expected.canonical:
        return "differ"
    every = range(0, len(got.digests), 8)
    slots = [k for k in every if _part(got, k) != _part(expected, k)]
    return "nan64" if all(kernel.slots[k // 8] in "d-" for k in slots) else "nan"


# --- the fixture ---------------------------------------------------------------------------------


def keep(
    results: Path, about: Sequence[str], folder: Path = FOLDER, seed: int = SEED
) -> dict[str, int]:
    """Writes the fixture from what :mod:`.job` brought; gives how many lines each file has.

    Results of kernels that today's generators do not make are left out.
    """
    sources: dict[str, int] = json.loads((results / "sources.json").read_text())
    shapes = shapes_of(sources)
    mine = {k.name: k.source_crc for g in groups(seed, shapes) for k in g.kernels}
    taken: dict[str, dict[str, Result]] = {}
    for flags in TRUTHS:
        file = results / f"{flags}.jsonl.gz"
        if file.is_file():
            with gzip.open(file, "rt") as lines:
                read = [json.loads(line) for line in lines]
            results_ = ((str(line["k"]), Result.of(line)) for line in read)
            taken[flags] = {k: r for k, r in results_ if mine.get(k) == sources[k]}
    folder.mkdir(parents=True, exist_ok=True)
    usual = taken["O3"]
    counts: dict[str, int] = {}
    for flags, found in taken.items():
        lines_: list[str] = []
        for name in sorted(found):
            result = found[name]
            if flags == "O3" or result != usual.get(name):
                lines_.append(_line(name, sources[name], result))
        (folder / f"{flags}.txt").write_text("".join(lines_))
        counts[flags] = len(lines_)
    words = {
        f"{flags} {name}": r.words.hex()
        for flags, found in taken.items()
        for name, r in sorted(found.items())
        if r.words and (flags == "O3" or r != usual.get(name))
    }
    text = "".join(f"{key} {value}\n" for key, value in words.items())
    (folder / "words.xz").write_bytes(lzma.compress(text.encode(), preset=9))
    (folder / "README.md").write_text(_README.format(about="\n".join(about)))
    return counts


_README = """# What the sweep's kernels wrote on a real GPU

{about}

A file for each kind of flags (`tools/sweep/plan.py`), one line per kernel: its name, the CRC-32 of its
source, the CRC-32s of its slots, and, where they are others, those with all NaNs made one; `O3.txt`
has all kernels, the others those whose result is not `O3`'s.  `words.xz` has the results of
approximations themselves.  Written by `python -m tools.sweep keep` from what `tools/sweep/job.py`
brought.
"""


def _line(name: str, source: int, result: Result) -> str:
    if result.error:
        return f"{name} {source:08x} error {result.error}\n"
    canonical = f" {result.canonical}" if result.canonical != result.digests else ""
    return f"{name} {source:08x} {result.digests}{canonical}\n"


def load(folder: Path = FOLDER) -> Truth:
    """The kept truth.  Raises OSError where there is none."""
    text = lzma.decompress((folder / "words.xz").read_bytes()).decode()
    words = {key: bytes.fromhex(hexes) for key, _, hexes in (
        line.rpartition(" ") for line in text.splitlines()
    )}  # fmt: skip
    sources: dict[str, int] = {}
    by_flags: dict[str, dict[str, Result]] = {}
    for flags in TRUTHS:
        file = folder / f"{flags}.txt"
        if not file.is_file():
            continue
        found: dict[str, Result] = {}
        for line in file.read_text().splitlines():
            name, source, digests, *rest = line.split()
            sources[name] = int(source, 16)
            if digests == "error":
                found[name] = Result("", "", error=rest[0])
            else:
                found[name] = Result(
                    digests, rest[0] if rest else digests, words.get(f"{flags} {name}", b"")
                )
        by_flags[flags] = found
    match = re.search(r"nvcc (\d[\d.]*\d)", (folder / "README.md").read_text())
    return Truth(sources, by_flags, match.group(1) if match else "")
