"""Warp-wide operations and memory accesses against an H200: shuffles, votes, loads, atomics,
copies, barriers and matrix products, every measured word to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.semantics import NoSemantics
from sassxlate.disasm.sass.semantics.memory.atomic import before_all
from sassxlate.disasm.sass.semantics.warp_state import SemanticsFault, as_bytes, as_words
from tools.silicon.warps import fixture
from tools.silicon.warps.inputs import constants, made
from tools.silicon.warps.kept import SHOWN, WARPS, digest
from tools.silicon.warps.measure import access_size
from tools.silicon.warps.state import Warps, meant, untouched

_BASE = 0x7F0000000000  # where the device's memory lies in the model


def _left(found: fixture.Measured) -> tuple[str, str]:
    """The digest by the meaning, and how the kept results differ from it."""
    word = found.word
    ins = decode(word.word, 0, 90, strict=False)
    size = access_size(ins)
    records, memory = made(ins, word.kind, word.space, WARPS, _BASE, size, fixture.SEED)
    warps = Warps(records, memory.copy(), constants(fixture.SEED), _BASE, word.space)
    results = meant(word.word, 90, warps)
    shown = ""
    if found.kept and not word.kind.startswith("collide") and "CAST" not in word.text:
        with np.load(fixture.RESULTS) as data:
            real = data[str(found.number)] ^ untouched(records[list(SHOWN)])
        bad = np.argwhere((real != results[list(SHOWN)]).any(axis=-1))
        for w, lane in bad[:1]:
            ours = results[SHOWN[w], lane]
            shown = f"warp {SHOWN[w]} lane {lane}: {real[w, lane].tolist()}, ours {ours.tolist()}"
    return digest(word, results, warps.memory), shown


def _check(words: list[fixture.Measured]) -> None:
    wrong: list[str] = []
    for found in words:
        if found.word.kind.partition(" ")[0] == "misaligned":
            with pytest.raises(SemanticsFault):
                _left(found)
            continue
        try:
            ours, shown = _left(found)
        except NoSemantics as reason:
            wrong.append(f"{found.word.text}: {reason}")
            continue
        if ours != found.digest or shown:
            wrong.append(f"{found.word.text} ({found.word.kind}): {shown}")
    assert not wrong, "\n".join(wrong)


def test_some_measured_words() -> None:
    _check([m for m in fixture.measured() if m.kept or m.number % 7 == 0])


@pytest.mark.sweep
def test_all_measured_words() -> None:
    _check(list(fixture.measured()))


def test_a_counting_increment_gives_what_was_before_all() -> None:
    """ATOMS.POPC.INC: lanes of a warp that share a word get one value, also beyond 2**32; two warps
    that take turns get two (an H100: docs/errata.md)."""
    where = np.array([[0, 4] * 16, [0] * 32], dtype=np.uint64)
    done = np.ones((2, 32), dtype=np.bool_)
    done[0, 2] = False
    seen = np.zeros((2, 32), dtype=np.uint32)
    seen[0, [n for n in range(0, 32, 2) if n != 2]] = (np.arange(15) + 0xFFFFFFFE) & 0xFFFFFFFF
    seen[0, 1::2] = np.arange(16) + 7
    seen[1] = np.arange(32) + 13  # after the first warp's fifteen
    got = as_words(before_all(as_bytes(seen[..., None]), where, done))[..., 0]
    assert set(got[0, ::2][done[0, ::2]].tolist()) == {0xFFFFFFFE}
    assert set(got[0, 1::2].tolist()) == {7}
    assert set(got[1].tolist()) == {13}
