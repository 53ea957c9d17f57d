"""The kernel's arguments as parameters of LLVM's function, and constants of the code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sassxlate.disasm.containers.values import Reloc
from sassxlate.lowering.tier.lane import literals
from sassxlate.lowering.tier.module import parameters
from sassxlate.lowering.tier.refusal import Refused
from tests.lowering.emulated import load


def test_each_word_is_at_its_offset() -> None:
    given = parameters({(8, 64), (0, 32), (20, 32)}, 32)
    assert given == (
        "i32 %arg32.0, [1 x i32] %gap.4, i64 %arg64.8, [1 x i32] %gap.16, i32 %arg32.20, "
        "[2 x i32] %gap.24"
    )
    assert parameters((), 0) == ""


@pytest.mark.parametrize("read", [{(0, 64), (4, 32)}, {(4, 64)}, {(32, 32)}, {(6, 32)}])
def test_words_that_overlap_or_are_outside_are_refused(read: set[tuple[int, int]]) -> None:
    with pytest.raises(Refused):
        parameters(read, 32)


def test_constants_of_the_code_are_known_unless_they_are_relocated() -> None:
    kernel = replace(load("divergent_if", 80).kernels[0], constant2=bytes(range(8)), relocs=())
    assert literals(kernel) == bytes(range(8))
    moved = Reloc(f".nv.constant2.{kernel.name}", 0, 1, "symbol", 0)
    assert literals(replace(kernel, relocs=(moved,))) == b""
    other = replace(moved, section=".nv.constant3")
    assert literals(replace(kernel, relocs=(other,))) == bytes(range(8))
