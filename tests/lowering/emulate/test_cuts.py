"""Straight-line code too long for LLVM in one piece is cut, and computes the same."""

from __future__ import annotations

import random

import pytest

from sassxlate.cfg import rdna3_flow
from sassxlate.disasm.rdna3 import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.lowering.emulate import compiler
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

VCC = Sp("vcc_lo")
# In each round of four: a vector register, the carry, a scalar register and SCC cross the cuts.
_TURN = (
    Inst("v_add_co_ci_u32", (V(1), VCC, V(1), V(0), VCC)),
    Inst("s_addc_u32", (S(4), S(4), S(4))),
    Inst("v_xor_b32", (V(1), S(4), V(1))),
    Inst("v_alignbit_b32", (V(1), V(1), V(1), I(31))),
)
_TURNS = 300
_END = (
    Inst("s_load_b64", (S(0, 2), S(0, 2)), 0),
    Inst("v_lshlrev_b32", (V(2), I(2), V(0))),
    Inst("global_store_b32", (V(2), V(1), S(0, 2))),
    Inst("s_endpgm", ()),
)


def _expected(lane: int) -> int:
    mask, value, carry, scalar, scc = 0xFFFFFFFF, 0, 0, 3, 0
    for _ in range(_TURNS):
        value += lane + carry
        carry, value = value >> 32, value & mask
        scalar = 2 * scalar + scc
        scc, scalar = scalar >> 32, scalar & mask
        value ^= scalar
        value = (value << 1 | value >> 31) & mask
    return value


@pytest.mark.parametrize("sinks", [0, 6000])
def test_long_block(sinks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start = (
        Inst("s_mov_b32", (S(4), I(3))),
        Inst("s_mov_b32", (VCC, I(0))),
        Inst("v_mov_b32", (V(1), I(0))),
        Inst("s_cmp_lg_u32", (S(4), I(3))),
    )
    code = assemble((*start, *_TURN * _TURNS, *_END)).data
    blocks = rdna3_flow.discover(code, 0)
    assert (len(blocks.cuts), len(blocks.blocks)) == (2, 3)
    assert max(len(block.steps) for block in blocks.blocks.values()) == rdna3_flow.LONGEST
    monkeypatch.setattr(compiler, "_SINKS", sinks)
    image = compile_kernel(code, 0, CompileOptions())
    device = EmulatedDevice()
    at = device.alloc(32 * 4)
    run_image(LoadedImage(image), Setup(), 1, 32, at.to_bytes(8, "little"), device)
    got = [int.from_bytes(device.read(at + 4 * i, 4), "little") for i in range(32)]
    assert got == [_expected(lane) for lane in range(32)]


def _loads(turns: int) -> bytes:
    """Long straight code with loads, whose values live on."""
    rng = random.Random(7)
    items = [
        Inst("s_load_b64", (S(0, 2), S(0, 2)), 0),
        Inst("v_lshlrev_b32", (V(2), I(2), V(0))),
    ]
    for _ in range(turns):
        a, b, c = (rng.randrange(3, 60) for _ in range(3))
        items.append(Inst("global_load_b32", (V(a), V(2), S(0, 2)), 4 * rng.randrange(100)))
        items += (Inst("v_xor_b32", (V(b), V(rng.randrange(3, 60)), V(c))) for _ in range(8))
    return assemble((*items, *_END[2:])).data


def test_straight_code_is_not_searched_for_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no loop repeats it, the allocator's search costs more than linear time and makes more
    code."""
    straight = _loads(120)
    sizes: list[int] = []
    for longest in (1000, 2000):
        monkeypatch.setattr(compiler, "_LONG", longest)
        sizes.append(compile_kernel(straight, 0, CompileOptions()).code_size)
    assert sizes[0] < 0.95 * sizes[1]
