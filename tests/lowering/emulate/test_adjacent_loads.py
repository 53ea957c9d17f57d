"""Neighbouring dwords of lanes that are far apart are loaded together: nothing else changes."""

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
from sassxlate.lowering.emulate.wave.addresses import adjacent_loads
from sassxlate.lowering.emulate.wave.addresses.adjacent_loads import Mate

from .baseline import ISAS

_WAIT = Inst("s_waitcnt", (), 0)
_SIZE = 1 << 16


def _load(dst: int, offset: int, address: int = 2, glc: bool = False) -> Inst:
    return Inst("global_load_b32", (V(dst), V(address, 2), Sp("off")), offset, glc=glc)


def _program(between: Sequence[Inst] = ()) -> bytes:
    """v4 to v7: the dwords at offsets 4, 8, 0 and -4 of the lanes' addresses; v12 other ones'."""
    return assemble([
        Inst("s_load_b64", (S(4, 2), S(0, 2)), 0),
        Inst("s_load_b64", (S(8, 2), S(0, 2)), 8),
        Inst("s_load_b32", (S(6), S(0, 2)), 16),
        _WAIT,
        Inst("v_lshlrev_b32", (V(9), I(4), V(0))),
        Inst("global_load_b64", (V(2, 2), V(9), S(4, 2)), 0),
        Inst("global_load_b64", (V(10, 2), V(9), S(4, 2)), 8),
        _WAIT,
        Inst("s_mov_b32", (Sp("exec_lo"), S(6))),
        _load(4, 4),
        _load(12, 0, 10),
        _load(5, 8),
        _load(6, 0),
        *between,
        _load(7, -4),
        _WAIT,
        Inst("v_add_nc_u32", (V(7), V(7), V(12))),
        Inst("s_mov_b32", (Sp("exec_lo"), I(-1))),
        Inst("global_store_b128", (V(9), V(4, 4), S(8, 2)), 0),
        _WAIT,
        Inst("s_endpgm"),
    ]).data  # fmt: skip


def _run(
    image: LoadedImage, content: bytes, places: Sequence[tuple[int, int]], mask: int
) -> object:
    """What the lanes loaded, or the fault."""
    device = EmulatedDevice(_SIZE)
    table, out = device.alloc(512), device.alloc(512)
    memory = device.base + _SIZE - len(content)  # the device's last bytes
    device.write(memory, content)
    rows = ((memory + a) % (1 << 64) for row in places for a in row)
    device.write(table, struct.pack("<64Q", *rows))
    try:
        run_image(image, Setup(), 1, 32, struct.pack("<QQI", table, out, mask), device)
    except EmulatorError as error:
        return str(error)
    return device.read(out, 512)


def _none(_flow: Flow, _strides: Mapping[int, int]) -> dict[int, Mate]:
    return {}


@pytest.mark.parametrize("isa", ISAS)
def test_values_and_faults_are_those_of_single_loads(isa: Isa) -> None:
    rng = random.Random(f"adjacent {isa}")
    options = CompileOptions(isa=isa)
    together = LoadedImage(compile_kernel(_program(), 0, options))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adjacent_loads, "mates", _none)
        alone = LoadedImage(compile_kernel(_program(), 0, options))
    size, faults = 4096, 0
    for _ in range(60):
        room = range(8, size - 8, 4)
        places = [(rng.choice(room), rng.choice(room)) for _ in range(32)]
        for _ in range(rng.choice((0, 0, 1, 3))):  # some of the dwords are at the end, or beyond
            bad = rng.choice((size - 8, size - 4, size, size - 6, 1 << 40, -(1 << 62)))
            at = rng.randrange(32)
            places[at] = (bad, places[at][1]) if rng.random() < 0.7 else (places[at][0], bad)
        mask = rng.choice((0xFFFFFFFF, 0xFFFFFFFF, 0xFFFF0000, 1, 1 << 31, 0, rng.getrandbits(32)))
        content = rng.randbytes(size)
        expected = _run(alone, content, places, mask)
        assert _run(together, content, places, mask) == expected
        faults += isinstance(expected, str)
    assert 10 < faults < 50


def _mates(*items: Inst) -> dict[int, Mate]:
    flow = discover(assemble([*items, Inst("s_endpgm")]).data, 0)
    steps = [s for block in flow.blocks.values() for s in block.steps]
    found = adjacent_loads.mates(flow, {s.pc: -1 for s in steps})
    order = {s.pc: n for n, s in enumerate(steps)}
    return {order[pc]: Mate(order[mate.pc], mate.above) for pc, mate in found.items()}


def test_which_loads_go_together() -> None:
    assert _mates(_load(4, 0), _load(5, 4)) == {0: Mate(1, True)}
    assert _mates(_load(4, 0), _load(5, -4)) == {0: Mate(1, False)}
    assert _mates(*(_load(4 + i, 4 * i) for i in range(4))) == {0: Mate(1, True), 2: Mate(3, True)}
    assert _mates(_load(4, 0), _load(12, 0, 10), _load(5, 4), _load(13, 4, 10)) == {
        0: Mate(2, True),
        1: Mate(3, True),
    }
    assert _mates(_load(4, 0), _load(5, 8)) == {}
    assert _mates(_load(4, 0), _load(5, 4, 10)) == {}


@pytest.mark.parametrize(
    "between",
    [
        Inst("v_mov_b32", (V(3), I(0))),
        Inst("s_mov_b32", (Sp("exec_lo"), I(1))),
        Inst("global_store_b32", (V(8, 2), V(7), Sp("off"))),
        Inst("ds_store_b32", (V(8), V(7))),
        Inst("global_atomic_add_u32", (V(8, 2), V(7), Sp("off"))),
        Inst("s_barrier"),
        Inst("buffer_gl0_inv"),
        _load(7, 0, 8, glc=True),
        _load(2, 0, 8),
    ],
    ids=lambda inst: inst.op,
)
def test_what_stands_between(between: Inst) -> None:
    assert _mates(_load(4, 0), between, _load(5, 4)) == {}


def test_a_load_over_its_own_address_has_no_mate() -> None:
    assert _mates(_load(2, 0), _load(5, 4)) == {}


def test_lanes_side_by_side_need_no_mates() -> None:
    flow = discover(assemble([_load(4, 0), _load(5, 4), Inst("s_endpgm")]).data, 0)
    steps = [s for block in flow.blocks.values() for s in block.steps]
    for stride in (0, 4):
        assert adjacent_loads.mates(flow, {s.pc: stride for s in steps}) == {}
    assert adjacent_loads.mates(flow, {}) == {}


def _spans(*items: Inst) -> dict[int, tuple[int, int, int]]:
    """By the number of a pair's earlier load: its span's first load, where the span begins from it,
    and the span's dwords."""
    flow = discover(assemble([*items, Inst("s_endpgm")]).data, 0)
    steps = [s for block in flow.blocks.values() for s in block.steps]
    order = {s.pc: n for n, s in enumerate(steps)}
    found = adjacent_loads.mates(flow, {s.pc: -1 for s in steps})
    return {order[pc]: (order[m.first], m.low, m.dwords) for pc, m in found.items()}


def test_what_one_check_is_for() -> None:
    assert _spans(_load(4, 8), _load(5, 4)) == {0: (0, -4, 2)}
    far = (_load(4, 0), _load(6, 40), _load(7, 36), _load(5, 4))
    assert _spans(*far) == {0: (0, 0, 11), 1: (0, -40, 11)}
    assert _spans(*far[:3], _load(12, 0, 10), far[3], _load(13, 4, 10)) == {
        0: (0, 0, 11),
        1: (0, -40, 11),
        3: (3, 0, 2),
    }
    pairs = (_load(4, 0), _load(5, 4)), (_load(6, 12), _load(7, 16))
    for between in (
        Inst("v_mov_b32", (V(3), I(0))),
        Inst("s_mov_b32", (Sp("exec_lo"), I(1))),
        Inst("s_barrier"),
    ):
        assert _spans(*pairs[0], between, *pairs[1]) == {0: (0, 0, 2), 3: (3, 0, 2)}
