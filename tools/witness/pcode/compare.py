"""The comparison: each lane of the emulator against AMD's description."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tools.witness.pcode import softfloat as sf

from .cases import EXEC, LANES, SCC, VCC, Case, Outcome, Vectors, scalars
from .described import description
from .language import views
from .machine import Wave, step

_APPROXIMATE = re.compile(r"v_(rcp|rsq|sqrt|exp|log|sin|cos)_")
# Units in the last place that AMD's manual allows (the descriptions of the opcodes).
ULPS = {"v_rcp_f64": 1 << 29, "v_rsq_f64": 1 << 29, "v_sqrt_f64": 1 << 29}


@dataclass(frozen=True, slots=True)
class Difference:
    """One lane: where, what went in, and the two results."""

    vector: int
    what: str
    inputs: tuple[int, ...]
    ours: int
    theirs: int


def result_width(op: str) -> int:
    """The width of a floating-point result, 0 of others; -16 of halves side by side."""
    if op.startswith("v_pk_"):
        return -16 if "f16" in op else 0
    if op in ("v_pack_b32_f16", "v_cvt_pk_rtz_f16_f32") or op.startswith("v_fma_mixhi"):
        return -16
    kinds = (k for k in views(description(op), "D0") if k[0] == "f")
    return next((int(k[1:]) for k in kinds), 0)


def same(op: str, width: int, ours: int, theirs: int) -> bool:
    """Equal; or both NaN; or within AMD's bounds of an approximation."""
    if ours == theirs:
        return True
    if width == 0:
        return False
    if width == -16:
        return all(_near(op, 16, ours >> at & 0xFFFF, theirs >> at & 0xFFFF) for at in (0, 16))
    mask = (1 << width) - 1
    return ours >> width == theirs >> width and _near(op, width, ours & mask, theirs & mask)


def _near(op: str, width: int, a: int, b: int) -> bool:
    f = sf.FORMATS[width]
    if a == b or (sf.is_nan(f, a) and sf.is_nan(f, b)):
        return True
    if not _APPROXIMATE.match(op) or sf.is_nan(f, a) or sf.is_nan(f, b):
        return False
    x, y = (-(v & ~f.sign) if v & f.sign else v for v in (a, b))
    return abs(x - y) <= ULPS.get(op, 1)


def compare(
    case: Case, vectors: Vectors, outcome: Outcome, waves: Iterable[int], *, read: bool = False
) -> list[Difference]:
    """The lanes of the given waves that differ; with ``read`` from the description as the manual's
    words complete it.  Raises `NotDescribed`."""
    form, op = case.form, case.form.op
    words = scalars(vectors)
    width = result_width(op)
    out: list[Difference] = []
    for w in waves:
        lanes = slice(w * LANES, (w + 1) * LANES)
        wave = Wave(
            scc=int(words[w, SCC]), exec=int(words[w, EXEC]),
            round32=form.round & 3, round16_64=form.round >> 2, denormals=form.denormals,
            completed=read,
        )  # fmt: skip
        wave.sgprs[106] = int(words[w, VCC])
        for r, group, word in case.vector_loads:
            wave.vgprs[r] = vectors[group, lanes, word].tolist()
        for r, group, word in case.scalar_loads:
            wave.sgprs[r] = int(words[w, 10 * group + word])
        given = {r: list(v) for r, v in wave.vgprs.items()}, dict(wave.sgprs)
        step(wave, case.inst)
        for lane in range(LANES):
            ours = _joined(outcome.vgprs[w * LANES + lane].tolist())
            theirs = _joined([wave.vgprs[r][lane] for r in case.vgprs])
            if not same(op, width, ours, theirs):
                inputs = tuple(v[lane] for v in given[0].values()) + tuple(given[1].values())
                out.append(Difference(w * LANES + lane, "D0", inputs, ours, theirs))
        got = outcome.sgprs[w].tolist()
        want = [wave.sgprs.get(r, 0) for r in case.sgprs]
        want += [wave.scc, wave.exec, wave.sgprs[106]]
        if got != want:
            inputs = tuple(v[0] for v in given[0].values()) + tuple(given[1].values())
            out.append(Difference(w * LANES, "SGPR", inputs, _joined(got), _joined(want)))
    return out


def _joined(words: list[int]) -> int:
    return sum(n << 32 * i for i, n in enumerate(words))
