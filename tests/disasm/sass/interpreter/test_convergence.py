"""The lanes of a warp on an H200 (``tools/silicon/convergence``): which lanes run together and the
values of the convergence barriers, against the interpreter in Order.SILICON; divergent recursion in
all orders and translated."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass.interpreter import ORDERS_OF_WARPS, Order, ScheduleOptions
from sassxlate.disasm.sass.interpreter.splits import Splits
from sassxlate.errors import InterpretError
from sassxlate.lowering.pipeline import translate_kernel
from tools.silicon.convergence import calls, kept
from tools.silicon.convergence.events import digest
from tools.silicon.convergence.kernels import kernel

KEPT = kept.kept()
WRITTEN = kept.written()
CALLS = kept.calls()
# docs/errata.md says what each shows of the hardware.
QUICK = [
    "words", "behind", "others_mask", "part_of_mask", "armed_not_cleared", "cleared_under",
    "broken_late", "order_few", "order_many", "order_four", "order_table", "call_early_return",
    "warpsync_halves", "warpsync_in_region", "section_in_region", "exit_under", "call_two_free",
]  # fmt: skip
DRAWN = ["tame 1", "breaks 19", "calls 30", "recursion 7", "recursion 9", "saves 13", "wild 5"]


@pytest.mark.parametrize("name", QUICK)
def test_one_question(name: str) -> None:
    assert kernel(f"written {name}").interpreted() == WRITTEN[f"written {name}"]


@pytest.mark.parametrize("name", DRAWN)
def test_drawn(name: str) -> None:
    log = kernel(name).interpreted()
    assert log is not None
    assert digest(log) == KEPT[name].digest


@pytest.mark.parametrize("name", ["warpsync_two_places_full", "warpsync_own_missing"])
def test_what_an_h200_does_not_end(name: str) -> None:
    """The first hangs there, the second is an illegal instruction (715)."""
    code = {"hung": "SX0214", "failed": "SX0219"}[KEPT[f"written {name}"].verdict]
    with pytest.raises(InterpretError) as raised:
        kernel(f"written {name}").interpreted()
    assert raised.value.code == code


@pytest.mark.sweep
@pytest.mark.parametrize("kind", sorted({name.split()[0] for name in KEPT}))
def test_every_kernel(kind: str) -> None:
    """Kernels that the model leaves open are listed: one more or one fewer is detected."""
    for name, what in KEPT.items():
        if name.split()[0] == kind:
            assert kept.explained(name, what.verdict, what.digest) == what.explained, name


def test_why_recursion_comes_apart() -> None:
    """Lanes of two levels wait at one BSYNC, at place 9.  Those of the outer level (0 to 2) are not
    in the inner level's barrier mask, so they pass it together with the inner ones (3 to 6)."""
    outer, inner = 0b0000111, 0b1111000
    s = Splits(outer | inner)
    s.put_beside(outer, 9)
    s.go(inner, 1)
    s.barriers[7] = inner  # armed again: what it was is in a register
    s.part(0b0011000, 9, 0b1100000, 2)
    s.part(0b0100000, 5, 0b1000000, 2)
    s.sync(7, 0b1000000, 0b1000000, 9)
    assert s.choose()
    assert s.running is not None
    assert (s.running.mask, s.running.place) == (0b0100000, 5)
    s.sync(7, 0b0100000, 0b0100000, 9)
    assert s.choose()
    assert s.running is not None
    assert (s.running.mask, s.running.place) == (outer | inner, 9)
    s.sync(7, outer | inner, outer | inner, 9)
    after = s.running
    assert (after.mask, after.place) == (outer | inner, 10)


# --- CUDA ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [3, 16, 30])
def test_divergent_recursion_as_on_silicon(seed: int) -> None:
    """An H200's lanes come back apart; another order brings them together."""
    out = calls.prepared(seed).interpreted(ScheduleOptions(Order.SILICON, limit=calls.LIMIT))
    assert kept.words_digest(out) == CALLS[seed].digest
    assert calls.interpreted(seed, Order.WARPS) != CALLS[seed].digest


@pytest.mark.parametrize("seed", [3, 5])
def test_divergent_recursion_is_together(seed: int) -> None:
    """Operations across lanes that name the lanes that are there: all orders and the translation
    agree, also where an H200 does not."""
    launch = calls.prepared(seed)
    expected = launch.interpreted()
    for order in ORDERS_OF_WARPS:
        other = launch.interpreted(ScheduleOptions(order, limit=calls.LIMIT))
        assert np.flatnonzero(other != expected).tolist() == [], order
    assert np.flatnonzero(launch.translated() != expected).tolist() == []


def test_what_is_open_is_kept_whole() -> None:
    """Of each kernel that the model leaves open, what an H100 did is what the H200 did: the events,
    or the words with the order in which a warp wrote them."""
    logs = kept.open_logs()
    assert all(digest(log) == KEPT[name].digest for name, log in logs.items())
    left = {n for n, k in KEPT.items() if (k.verdict, k.explained) == ("steady", False)}
    hints = ("hints", "deeper", "wilder")
    unlike = {n for n in left - set(logs) if n.split()[0] not in hints}
    assert all(name.endswith(("_yield", "_sleep")) for name in unlike), unlike
    assert set(logs) <= left
    words = kept.open_calls()
    for seed, (written, order) in words.items():
        assert not CALLS[seed].explained
        out = np.stack([written, np.zeros_like(written)], axis=1)
        assert kept.words_digest(out) == CALLS[seed].digest, seed
        assert not order.any() or (order.astype(bool) | (written == 0)).all()
    assert len(words) == 22


def test_the_order_of_words() -> None:
    """Clocks that wrap, and words that were not written."""
    out = np.zeros((128, 2, 64), np.uint32)
    out[:, 1, 0] = 0xFFFFFFF0
    out[7, 1, 1] = 3
    out[9, 1, 1] = 2
    order = calls.order_of(out)
    assert (order[:, 0] == 1).all()
    assert (order[9, 1], order[7, 1], order[8, 1]) == (2, 3, 0)


NOT_NAMED = {2, 122}  # their code has no BMOV; an H200 does what CUDA defines


@pytest.mark.sweep
def test_all_that_come_apart_are_said() -> None:
    """Each of the 67 kernels whose words on an H200 are not those of CUDA's definition, explained
    by the model or not, is among those that the report names; nvcc builds them."""
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    rows = (line.split() for line in (calls.FOLDER / "calls.txt").read_text().splitlines() if line)
    apart = {int(row[4]) for row in rows if row[0] != "#" and row[3] == "apart"}
    assert len(apart) == 67
    named = {
        seed
        for seed in CALLS
        if translate_kernel(calls.prepared(seed).cubin, f"calls{seed}").report.comes_apart
    }
    assert not apart - named
    assert set(CALLS) - named == NOT_NAMED


def test_what_comes_apart_is_said() -> None:
    """The report has a note on recursion that saves its barriers."""
    assert translate_kernel(calls.prepared(3).cubin, "calls3").report.comes_apart
    plain = parse_cubin((calls.FOLDER.parents[2] / "kernels/sm_90/warp_match.cubin").read_bytes())
    assert not translate_kernel(plain, "warp_match").report.comes_apart


@pytest.mark.sweep
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("seed", sorted(CALLS))
def test_every_call(seed: int) -> None:
    known = CALLS[seed]
    found = calls.interpreted(seed, Order.SILICON)
    hung = (known.verdict, found) == ("hung", "SX0214")
    assert (hung or found == known.digest) == known.explained


@pytest.mark.sweep
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("seed", range(1, calls.SEEDS, 2))
def test_defined_calls_on_every_architecture(seed: int) -> None:
    """Operations that name their lanes have the same results on every architecture, except for
    activemask."""
    first = calls.prepared(seed).interpreted()
    for arch in (75, 80, 90, 120):
        launch = calls.prepared(seed, arch)
        assert np.flatnonzero(launch.interpreted() != first).tolist() == [], arch
        assert np.flatnonzero(launch.translated() != first).tolist() == [], arch
