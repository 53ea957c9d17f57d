"""The driver's functions on whole waves: every mixture of functions and lanes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from sassxlate.disasm.rdna3.instruction import Item, Label
from sassxlate.lowering.rules.control.hostcall import charge_of

from .host_waves import LANES, Words, check, run

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="needs a C++ compiler"
)
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
ALL = ("vprintf", "__assertfail", "malloc", "free")


def _shapes(random: np.random.Generator, waves: int) -> Words:
    """Lanes that run: none, one, all, halves, every other one, all but one, random."""
    fixed = [0, 0xFFFFFFFF, 0xFFFF, 0xFFFF0000, 0x55555555, 0xAAAAAAAA]
    fixed += [1 << n for n in (0, 1, 15, 16, 30, 31)] + [0xFFFFFFFF ^ 1 << n for n in (0, 17, 31)]
    rest = random.integers(0, 1 << 32, max(0, waves - len(fixed)))
    sparse = rest & random.integers(0, 1 << 32, len(rest))
    some = np.where(random.random(len(rest)) < 0.5, rest, sparse)
    masks = np.array([*fixed, *some.tolist()][:waves], dtype=np.uint32)
    return np.repeat(masks[:, None], LANES, 1)


def _functions(random: np.random.Generator, waves: int, number: int) -> Words:
    """Which function a lane calls: one for all, two in turn, any."""
    called = random.integers(0, number, (waves, LANES))
    lanes = np.arange(LANES)
    for wave in range(waves):
        kind = random.integers(4)
        if kind == 0:
            called[wave] = random.integers(number)
        elif kind == 1:
            called[wave] = np.where(lanes % 2, *random.integers(0, number, 2))
        elif kind == 2:
            called[wave] = np.where(lanes < random.integers(33), *random.integers(0, number, 2))
    return called.astype(np.uint32)


@pytest.mark.parametrize("routine", [False, True], ids=["inline", "called"])
def test_every_mixture_over_four_lanes(routine: bool) -> None:
    """Each of four lanes calls any of the functions or does not run: all 625 waves."""
    waves = 5**4
    choice = np.array([[n // 5**lane % 5 for lane in range(4)] for n in range(waves)])
    called = np.zeros((waves, LANES), dtype=np.uint32)
    called[:, [0, 1, 16, 31]] = np.minimum(choice, 3)
    mask = ((choice < 4) * np.array([1, 2, 1 << 16, 1 << 31])).sum(1)
    masks = np.repeat(mask.astype(np.uint32)[:, None], LANES, 1)
    check(run(ALL, masks, called, 1, routine=routine), ALL, called)


@pytest.mark.parametrize(
    "names",
    [
        ALL,
        ("vprintf", "__assertfail"),
        ("vprintf", "malloc"),
        ("malloc", "free"),
        *((name,) for name in ALL),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("routine", [False, True], ids=["inline", "called"])
def test_random_lanes(names: tuple[str, ...], routine: bool) -> None:
    random = np.random.default_rng(len("".join(names)) + 100 * routine)
    masks, called = _shapes(random, 96), _functions(random, 96, len(names))
    check(run(names, masks, called, 2 + routine, routine=routine), names, called)


@pytest.mark.parametrize("routine", [False, True], ids=["inline", "called"])
def test_every_mask_over_eight_lanes(routine: bool) -> None:
    """printf with formats and strings of each lane's own, for all 256 masks."""
    lanes = (0, 1, 2, 7, 15, 16, 30, 31)
    sets = [sum(1 << lane for i, lane in enumerate(lanes) if n >> i & 1) for n in range(256)]
    masks = np.repeat(np.array(sets, dtype=np.uint32)[:, None], LANES, 1)
    called = np.zeros((256, LANES), dtype=np.uint32)
    check(run(("vprintf",), masks, called, 5, routine=routine, ring=1 << 22), ("vprintf",), called)


def test_a_full_queue_and_a_full_heap() -> None:
    """Requests that do not fit are lost, or null; the others are not."""
    random = np.random.default_rng(7)
    masks, called = _shapes(random, 64), _functions(random, 64, 4)
    ran = run(ALL, masks, called, 3, ring=1 << 13, room=1 << 17)
    check(ran, ALL, called)
    assert ran.queues["vprintf"].lost
    assert ran.queues["__assertfail"].lost


@pytest.mark.parametrize("spare", [0, 159, 160, 10_000, 50_000])
@pytest.mark.parametrize("names", [ALL, ("malloc",), ("malloc", "free")], ids=" ".join)
def test_what_is_held_stays_within_the_limit(names: tuple[str, ...], spare: int) -> None:
    """Waves request more than is left: each lane gets a block or null, and all are accounted
    for."""
    random = np.random.default_rng(spare)
    masks, called = _shapes(random, 48), _functions(random, 48, len(names))
    ran = run(names, masks, called, 5, spare=spare)
    check(ran, names, called)
    if names == ("malloc",):  # nothing smaller than the smallest charge is left
        assert ran.heap.limit - ran.heap.charged < 160


def test_a_size_that_does_not_fit_takes_nothing_from_its_neighbours() -> None:
    """Not even for a moment: the other lanes of the wave request exactly what is left."""
    masks = np.full((1, LANES), 0xFFFFFFFF, dtype=np.uint32)
    called = np.zeros((1, LANES), dtype=np.uint32)
    asks = np.where(np.arange(LANES) % 2, 1600, 1 << 20).astype(np.uint32)[None]
    ran = run(("malloc",), masks, called, 1, spare=16 * charge_of(1600), asks=asks)
    check(ran, ("malloc",), called)
    assert (ran.after[0, 2] != 0).tolist() == [lane % 2 == 1 for lane in range(LANES)]
    assert ran.heap.charged == ran.heap.limit


def test_a_charge_without_a_block_goes_back() -> None:
    """The limit has room, the reserve does not."""
    masks = np.full((2, LANES), 0xFFFFFFFF, dtype=np.uint32)
    called = np.zeros((2, LANES), dtype=np.uint32)
    asks = np.full((2, LANES), 5000, dtype=np.uint32)
    ran = run(("malloc",), masks, called, 1, room=1 << 17, asks=asks)
    check(ran, ("malloc",), called)
    got = int((ran.after[:, 2] != 0).sum())
    assert 0 < got < 16
    assert ran.heap.charged - ran.was.charged == got * charge_of(5000)


def test_what_does_not_fit_at_the_end_leaves_it_to_smaller_blocks() -> None:
    masks = np.full((1, LANES), 0xFFFFFFFF, dtype=np.uint32)
    called = np.zeros((1, LANES), dtype=np.uint32)
    asks = np.where(np.arange(LANES) % 2, 2000, 1 << 17).astype(np.uint32)[None]
    ran = run(("malloc",), masks, called, 1, room=1 << 17, asks=asks)
    check(ran, ("malloc",), called)
    assert (ran.after[0, 2] != 0).tolist() == [lane % 2 == 1 for lane in range(LANES)]


def test_the_charges_give_the_numbers_of_blocks_of_an_h200() -> None:
    """malloc until null, 75 sizes in six heaps: never fewer blocks, and hardly more."""
    text = (FIXTURES / "silicon" / "sm_90" / "driver" / "heap.txt").read_text()
    rows = [tuple(map(int, re.findall(r"\d+", line)[:3])) for line in text.splitlines()]
    assert len(rows) == 439
    more = [limit // charge_of(size) - measured for limit, size, measured in rows]
    assert min(more) == 0
    assert more.count(0) >= 370
    assert all(n <= max(1, row[2] // 50) for n, row in zip(more, rows, strict=True))


def test_the_lanes_of_one_function_are_not_all_that_call() -> None:
    """A former bug: EXEC stayed with the lanes of the first function when the next is compared."""

    def narrowed(items: Sequence[Item]) -> Sequence[Item]:
        kept: list[Item] = []
        skipped = False
        for n, item in enumerate(items):
            if not skipped or n == len(items) - 1:
                kept.append(item)
            skipped = isinstance(item, Label) and item.name.startswith("Lother")
        return kept

    random = np.random.default_rng(1)
    masks, called = _shapes(random, 32), _functions(random, 32, 4)
    ran = run(ALL, masks, called, 2, rewrite=narrowed)
    with pytest.raises(AssertionError):
        check(ran, ALL, called)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(40))
def test_many_waves(seed: int) -> None:
    random = np.random.default_rng(seed)
    names = tuple(random.permutation(ALL)[: random.integers(1, 5)].tolist())
    masks, called = _shapes(random, 512), _functions(random, 512, len(names))
    check(run(names, masks, called, seed, ring=1 << 24, room=1 << 22), names, called)
