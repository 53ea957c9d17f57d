"""Dwords of LDS in runs with gaps between them: what is expected of their places, and accesses that
are as expected, or just miss it."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping, Sequence

import pytest

from sassxlate.cfg.rdna3_flow import Flow, discover
from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.wave.access import patterned
from sassxlate.lowering.emulate.wave.addresses import lane_patterns, lane_strides

from .baseline import ISAS

_SIZE = 1024  # bytes of LDS, those of the last allocation
_WAIT = (Inst("s_waitcnt", (), 0), Inst("s_waitcnt_vscnt", (Sp("null"),), 0))


def _network(run: int) -> tuple[int, ...]:
    """Of a network that sorts: dwords in runs of ``run``, every second run."""
    return tuple(4 * (2 * i - (i & run - 1)) for i in range(32))


_PATTERNS = (*(_network(1 << n) for n in (0, 2, 4)), tuple(4 * (i + i // 5) for i in range(32)))


def _program() -> bytes:
    """LDS from a table; a load and a store at addresses and under a mask of the arguments; LDS to
    the table, and the registers."""
    move: list[Inst] = []
    for i in (0, 16):
        move += [Inst("global_load_b128", (V(4, 4), V(11), S(4, 2)), i), *_WAIT]
        move.append(Inst("ds_store_b128", (V(11), V(4, 4)), i))
    back: list[Inst] = []
    for i in (0, 16):
        back += [Inst("ds_load_b128", (V(4, 4), V(11)), i), *_WAIT]
        back.append(Inst("global_store_b128", (V(11), V(4, 4), S(4, 2)), i))
    return assemble([
        Inst("s_load_b64", (S(4, 2), S(0, 2)), 0),
        Inst("s_load_b64", (S(8, 2), S(0, 2)), 8),
        Inst("s_load_b32", (S(6), S(0, 2)), 16),
        Inst("v_lshlrev_b32", (V(9), I(2), V(0))),
        Inst("v_lshlrev_b32", (V(11), I(5), V(0))),
        *_WAIT,
        *move,
        Inst("global_load_b32", (V(2), V(9), S(8, 2)), 0),
        Inst("v_mov_b32", (V(3), I(7))),
        Inst("v_mov_b32", (V(12), V(9))),
        *_WAIT,
        Inst("s_mov_b32", (Sp("exec_lo"), S(6))),
        Inst("ds_load_b32", (V(3), V(2)), 0),
        Inst("ds_store_b32", (V(2), V(12)), 8),
        Inst("s_mov_b32", (Sp("exec_lo"), I(-1))),
        *_WAIT,
        Inst("global_store_b32", (V(9), V(3), S(8, 2)), 128),
        *back,
        *_WAIT,
        Inst("s_endpgm"),
    ]).data  # fmt: skip


def _run(image: LoadedImage, content: bytes, places: Sequence[int], mask: int) -> object:
    """Memory afterwards, or the fault."""
    device = EmulatedDevice(1 << 14)
    table, rows = device.alloc(_SIZE), device.alloc(256)
    device.write(table, content)
    device.write(rows, struct.pack("<32I", *(at & 0xFFFFFFFF for at in places)))
    try:
        run_image(
            image, Setup(lds_size=_SIZE), 1, 32, struct.pack("<QQI", table, rows, mask), device
        )
    except EmulatorError as error:
        return str(error)
    return device.read(table, _SIZE), device.read(rows, 256)


def _image(isa: Isa, pattern: tuple[int, ...] | None) -> LoadedImage:
    def given(flow: Flow, _strides: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
        steps = [step for block in flow.blocks.values() for step in block.steps]
        tested = [s.pc for s in steps if s.inst.op in ("ds_load_b32", "ds_store_b32")]
        return dict.fromkeys(tested, pattern) if pattern is not None else {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lane_patterns, "patterns", given)
        return LoadedImage(compile_kernel(_program(), 0, CompileOptions(isa=isa)))


def _places(rng: random.Random, pattern: Sequence[int]) -> list[int]:
    last = pattern[-1] + 4
    first = rng.choice(
        (0, _SIZE - last - 8, _SIZE - last - 4, _SIZE - last, -4, 2, rng.randrange(_SIZE))
    )
    places = [first + at for at in pattern]
    if rng.random() < 0.4:
        places[rng.choice((0, 1, 15, 16, 31))] += rng.choice((4, -4, 1, 1 << 31))
    return places


@pytest.mark.parametrize("isa", ISAS)
def test_accesses_are_those_of_single_lanes(isa: Isa) -> None:
    rng = random.Random(f"patterns {isa}")
    plain, faults, runs = _image(isa, None), 0, 0
    for pattern in _PATTERNS if isa == "avx512" else _PATTERNS[:1]:
        image = _image(isa, pattern)
        for _ in range(25):
            places, content = _places(rng, pattern), rng.randbytes(_SIZE)
            full = 0xFFFFFFFF
            mask = rng.choice(
                (full, full, 0xFFFF, 0xFFFF0000, 0xFFFFFFFE, 0, 1 << 31, rng.getrandbits(32))
            )
            expected = _run(plain, content, places, mask)
            assert _run(image, content, places, mask) == expected, (pattern, places, hex(mask))
            faults += isinstance(expected, str)
            runs += 1
    assert runs / 10 < faults < runs * 0.8


def test_which_patterns_have_a_form() -> None:
    for pattern in _PATTERNS:
        found = patterned.suitable(pattern)
        assert found is not None
        assert found.span == pattern[-1] + 4
        for half, places in enumerate(found.places):
            dwords = [found.starts[half] + place for place in places]
            assert dwords == [b // 4 for b in pattern[16 * half : 16 * half + 16]]
            assert all(0 <= place < 32 for place in places)
            assert 0 <= found.starts[half] <= found.span // 4 - 32
    side_by_side = tuple(range(0, 128, 4))
    for other in (
        side_by_side,
        side_by_side[::-1],
        (0, *side_by_side[:-1]),
        tuple(12 * i for i in range(32)),
        tuple(2 * i for i in range(32)),
        (4, *_network(4)[1:]),
    ):
        assert patterned.suitable(other) is None


def _expected(*items: Inst) -> list[tuple[int, ...]]:
    flow = discover(assemble([*items, Inst("s_endpgm")]).data, 0)
    return list(lane_patterns.patterns(flow, lane_strides.strides(flow)).values())


_NUMBER = Inst("v_and_b32", (V(1), I(0x3FF), V(0)))
_LOAD = Inst("ds_load_b32", (V(9), V(4)))


def _at(run: int) -> list[Inst]:
    return [
        _NUMBER,
        Inst("v_and_b32", (V(2), V(1), I(run - 1))),
        Inst("v_sub_nc_u32", (V(3), I(0), V(2))),
        Inst("v_lshl_add_u32", (V(3), V(1), I(1), V(3))),
        Inst("v_lshlrev_b32", (V(4), I(2), V(3))),
    ]


@pytest.mark.parametrize("run", [2, 8, 16])
def test_what_is_expected(run: int) -> None:
    assert _expected(*_at(run), _LOAD) == [_network(run)]
    # A scalar moves all lanes; a store has its address first.
    moved = Inst("v_add_nc_u32", (V(4), S(4), V(4)))
    assert _expected(*_at(run), moved, Inst("ds_store_b32", (V(4), V(1)), 8)) == [_network(run)]


def test_what_is_not_known() -> None:
    loaded = Inst("ds_load_b32", (V(4), V(1)))
    masked = Inst("v_and_b32", (V(4), I(0x7C), V(4)))
    assert _expected(*_at(4), loaded, _LOAD) == []
    # Of a sum with a scalar single bits are not known.
    moved = Inst("v_add_nc_u32", (V(4), S(4), V(4)))
    assert _expected(*_at(4), masked, _LOAD) != []
    assert _expected(*_at(4), moved, masked, _LOAD) == []


def test_ways_that_meet() -> None:
    skip = Inst("s_cbranch_scc1", (), 1)
    same, other = Inst("v_add_nc_u32", (V(4), I(8), V(4))), Inst("v_mov_b32", (V(4), V(1)))
    assert _expected(*_at(4), skip, same, _LOAD) == [_network(4)]
    assert _expected(*_at(4), skip, other, _LOAD) == []
