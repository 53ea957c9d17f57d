"""Which words of constant bank 0 an instruction may name: a search of bytes, beside its meaning."""

from __future__ import annotations

import random

import pytest

from sassxlate.lowering.abi.link import GRID_WORKSPACE, names_word

WORDS = sorted({word for pair in GRID_WORKSPACE.values() for word in pair})


def _meant(code: bytes, offset: int) -> bool:
    whole = [code[at : at + 16] for at in range(0, len(code) & ~15, 16)]
    words = [int.from_bytes(word, "little") for word in whole]
    return any(w >> 38 & 0x1FFFFF == offset or w >> 37 & 0x3FFFFF == offset for w in words)


@pytest.mark.parametrize("offset", WORDS)
def test_the_search_finds_what_is_meant(offset: int) -> None:
    draw = random.Random(offset)
    found = 0
    for _ in range(300):
        code = bytearray(draw.randbytes(draw.choice((0, 16, 16, 48, 56))))
        if code and draw.random() < 0.9:  # a word that is right or nearly so, also out of place
            at, low = draw.randrange(0, len(code), draw.choice((4, 16))), draw.choice((37, 38))
            changed = draw.choice((0, 0, 1 << draw.randrange(30)))
            near = draw.getrandbits(5) | (offset ^ changed) << low | draw.getrandbits(5) << 59
            code[at : at + 8] = near.to_bytes(12, "little")[:8]
        assert names_word(bytes(code), offset) == _meant(bytes(code), offset)
        found += _meant(bytes(code), offset)
    assert 50 < found < 250
