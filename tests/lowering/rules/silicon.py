"""Results of an H200 for single instructions: the data, and the definition of equality.

``fixtures/silicon/README.md`` describes the files and how they were made.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.semantics.arithmetic.error_bounds import near

FOLDER = Path(__file__).resolve().parents[3] / "fixtures" / "silicon" / "sm_90"
SLOT = 0x180  # of the template's code
VECTORS, THREADS = 512, 256  # threads per launch
CLASSES = ("words", "floats", "doubles", "halves")
Words = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Form:
    """One instruction word; ``kind`` is the class of its inputs."""

    number: int
    word: int
    kind: int
    text: str

    @property
    def parts(self) -> list[str]:
        return self.text.split()[0].split(".")


@cache
def forms() -> tuple[Form, ...]:
    lines = (FOLDER / "forms.txt").read_text().splitlines()[1:]
    split = [line.split(" ", 2) for line in lines]
    return tuple(
        Form(n, int(word, 16), CLASSES.index(kind), text)
        for n, (word, kind, text) in enumerate(split)
    )


@cache
def inputs() -> Words:
    """(class, vector, word): a, b, c, d as pairs, then the predicates."""
    raw = lzma.decompress((FOLDER / "inputs.xz").read_bytes())
    return np.frombuffer(raw, dtype="<u4").reshape(len(CLASSES), VECTORS, 10)


@cache
def measured() -> Words:
    """(form, vector, word): d as a pair and the predicates after the instruction."""
    raw = lzma.decompress((FOLDER / "results.xz").read_bytes())
    planes = np.frombuffer(raw, dtype=np.uint8).reshape(4, -1)
    changes = np.ascontiguousarray(planes.T).view("<u4").reshape(3, -1, VECTORS).transpose(1, 2, 0)
    before = inputs()[[form.kind for form in forms()]][:, :, 6:9]
    return changes ^ before


def _nan16(words: Words) -> NDArray[np.bool_]:
    return (np.ascontiguousarray(words).view("<u2").reshape(-1, 2) & 0x7FFF) > 0x7C00


def differing(form: Form, actual: Words, real: Words) -> NDArray[np.intp]:
    """The vectors whose results are not the same; payloads of NaNs are free.

    FCHK may select the slow path more often: that path is exact everywhere.
    """
    name, *rest = form.parts
    wrong = (actual != real).any(axis=1)
    others = (actual[:, 1:] == real[:, 1:]).all(axis=1)
    if name in ("HADD2", "HMUL2", "HFMA2", "HMNMX2", "F2FP", "F2F"):
        a16, r16 = (
            np.ascontiguousarray(w[:, 0]).view("<u2").reshape(-1, 2) for w in (actual, real)
        )
        same = (a16 == r16) | (_nan16(actual[:, 0]) & _nan16(real[:, 0]))
        wrong &= ~(same.all(axis=1) & others)
    if name in ("DADD", "DMUL", "DFMA") or "F64" in rest[:2]:
        a64, r64 = (np.ascontiguousarray(w[:, :2]).view("<f8")[:, 0] for w in (actual, real))
        wrong &= ~(np.isnan(a64) & np.isnan(r64) & (actual[:, 2] == real[:, 2]))
    if name == "FCHK":
        slow = np.uint32(8)
        wrong &= ((actual | slow) != (real | slow)).any(axis=1) | (real[:, 2] & ~actual[:, 2] != 0)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        a32, r32 = (
            np.ascontiguousarray(w[:, 0]).view("<f4").astype(np.float64) for w in (actual, real)
        )
    if name[0] == "F" or name in ("MUFU", "HADD2"):
        wrong &= ~(np.isnan(a32) & np.isnan(r32) & others)
    if name == "MUFU":
        close = near(rest, *(np.ascontiguousarray(w[:, 0]) for w in (actual, real)))
        wrong &= ~(close & others)
    return np.flatnonzero(wrong)
