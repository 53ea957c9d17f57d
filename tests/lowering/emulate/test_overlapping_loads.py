"""Loads of several dwords by lanes 4 bytes apart, as LLVM joins those of neighbouring elements."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.options import CompileOptions, Isa

from .baseline import each_with_an_isa
from .test_access_patterns import FULL, SHAPES, SIZE, SPACES, Access, Runner, expected

_NAMES = ["load_b64", "load_b96", "load_b128"]
_BYTES = (8, 12, 16)


def _runner(space: str, shape: str, isa: Isa, names: list[str]) -> Runner:
    options = CompileOptions(isa=isa, align="unaligned")
    return Runner(space, names, options, shape, dict.fromkeys(range(len(names)), 4))


def _places(rng: random.Random, size: int) -> list[int]:
    """One run, or one of each half, up to the memory's end; at any byte, or one lane elsewhere."""
    room = SIZE - size - 4 * 31
    first, second = (rng.choice((0, room, rng.randrange(room // 4) * 4)) for _ in (0, 1))
    if rng.random() < 0.5:
        out = [first + 4 * i for i in range(32)]
    else:
        out = [(first if i < 16 else second) + 4 * (i % 16) for i in range(32)]
    if rng.random() < 0.2 and max(out) < room:
        out = [place + rng.randrange(1, 4) for place in out[:1]] + out[1:]
    elif rng.random() < 0.3:
        out[rng.choice((0, 1, 15, 16, 31))] = rng.randrange(room)
    return out


@pytest.mark.parametrize(
    ("space", "shape", "isa"), each_with_an_isa(itertools.product(SPACES, SHAPES))
)
def test_each_lane_has_its_own_and_its_neighbours_dwords(space: str, shape: str, isa: Isa) -> None:
    rng = random.Random(f"{space} {shape}")
    runner = _runner(space, shape, isa, _NAMES)
    for _ in range(30):
        masks = [
            rng.choice((FULL, FULL, 0x7FFFFFFF, 0xFFFE, 0, rng.getrandbits(32))) for _ in _NAMES
        ]
        accesses = [
            Access(name, mask, tuple(_places(rng, size)))
            for name, mask, size in zip(_NAMES, masks, _BYTES, strict=True)
        ]
        content = rng.randbytes(SIZE)
        _, got, before = runner.run(content, accesses, rng.randbytes(512 * len(_NAMES)))
        memory, table = bytearray(content), bytearray(before)
        expected(memory, table, accesses)
        assert got == table, accesses


@pytest.mark.parametrize(("space", "isa"), each_with_an_isa((s,) for s in SPACES))
@pytest.mark.parametrize("size", [8, 16])
def test_a_lane_that_reaches_out_of_memory_is_named(space: str, size: int, isa: Isa) -> None:
    """The last of them, by its last dword alone."""
    runner = _runner(space, "line", isa, [f"load_b{8 * size}"])
    for lanes_out in (0, 1, 2, 31):
        start = SIZE - size - 4 * (31 - lanes_out)
        places = tuple(start + 4 * i for i in range(32))
        run = (bytes(SIZE), [Access(f"load_b{8 * size}", FULL, places)], bytes(512))
        if not lanes_out:
            runner.run(*run)
            continue
        with pytest.raises(EmulatorError) as caught:
            runner.run(*run)
        found = re.search(r"fault .* lane (\d+):", str(caught.value))
        assert found is not None
        assert int(found[1]) == 32 - lanes_out
