"""Runs of instructions in packs of active lanes: the same values, masks and faults as without."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Mapping, Sequence

import pytest

from sassxlate.cfg.rdna3_flow import Flow, discover
from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.compiler import ATTRIBUTES, compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, host_isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.wave.packs import runs as packed_runs
from sassxlate.lowering.emulate.wave.packs.runs import Run
from sassxlate.lowering.emulate.wave.wave import build

_WAIT = Inst("s_waitcnt", (), 0)
_SIZE, _ROWS = 1 << 16, 4096
_FULL = 0xFFFFFFFF


def _load(dst: int, offset: int, address: int = 2, glc: bool = False) -> Inst:
    return Inst("global_load_b32", (V(dst), V(address, 2), Sp("off")), offset, glc=glc)


def _indexed(dst: int, index: int) -> tuple[Inst, Inst]:
    """A dword of the table at s[20:21], by the index in a register."""
    return (
        Inst("v_mad_i64_i32", (V(28, 2), S(30), V(index), I(4), S(20, 2))),
        _load(dst, 0, 28),
    )


# v[2:3] and v[10:11]: the lanes' rows.  Pairs upwards and downwards, loads alone, and by indices.
_RUN = (
    _load(4, 8),
    _load(12, 0, 10),
    _load(5, 12),
    Inst("v_cmp_gt_i32", (S(24), V(4), V(5))),
    Inst("s_add_u32", (S(22), S(22), S(23))),
    _load(6, 4),
    _load(13, 4, 10),
    _load(7, 0),
    *_indexed(14, 4),
    Inst("v_cndmask_b32", (V(15), V(4), V(5), S(24))),
    *_indexed(16, 5),
    Inst("v_add_co_u32", (V(17), S(25), V(4), V(6))),
    Inst("v_add_co_ci_u32", (V(18), S(26), V(5), V(7), S(25))),
    Inst("s_xor_b32", (S(25), S(22), S(27))),
    Inst("v_cndmask_b32", (V(18), V(18), V(4), S(25))),
    Inst("v_cndmask_b32", (V(19), V(12), V(13), S(27))),
    _load(20, 20, 10),
    Inst("v_fma_f32", (V(21), V(12), V(13), V(20))),
    Inst("v_add_nc_u32", (V(22), S(22), V(16))),
    Inst("v_mov_b32", (V(23), S(23))),
    Inst("v_add_co_u32", (V(2), S(31), V(2), I(4))),
    Inst("v_add_co_ci_u32", (V(3), S(30), V(3), I(0), S(31))),
    Inst("v_max3_f32", (V(24), I(0x7FFFFFFF), V(21), I(0x7FFFFFFF))),
)
_OUT = (4, 5, 7, 14, 15, 16, 17, 18, 19, 21, 22, 23, 2, 24)
_MASKS = (24, 25, 26, 22)


def _program(middle: Sequence[Item]) -> bytes:
    return assemble([
        Inst("s_load_b256", (S(16, 8), S(0, 2)), 0),  # rows, out, table, and two numbers
        Inst("s_load_b64", (S(6, 2), S(0, 2)), 32),
        _WAIT,
        Inst("s_mov_b32", (S(27), S(7))),
        Inst("v_lshlrev_b32", (V(9), I(4), V(0))),
        Inst("global_load_b64", (V(2, 2), V(9), S(16, 2)), 0),
        Inst("global_load_b64", (V(10, 2), V(9), S(16, 2)), 8),
        *(Inst("v_mov_b32", (V(register), I(register))) for register in (4, 5, 7, *range(12, 25))),
        _WAIT,
        Inst("s_mov_b32", (Sp("exec_lo"), S(6))),
        *middle,
        _WAIT,
        Inst("s_mov_b32", (Sp("exec_lo"), I(-1))),
        Inst("v_lshlrev_b32", (V(9), I(2), V(0))),
        *(
            Inst("global_store_b32", (V(9), V(register), S(18, 2)), 128 * n)
            for n, register in enumerate(_OUT)
        ),
        *(
            step
            for n, register in enumerate(_MASKS)
            for step in (
                Inst("v_mov_b32", (V(8), S(register))),
                Inst("global_store_b32", (V(9), V(8), S(18, 2)), 128 * (n + len(_OUT))),
            )
        ),
        _WAIT,
        Inst("s_endpgm"),
    ]).data  # fmt: skip


def _run(
    image: LoadedImage, content: bytes, rows: Sequence[int], start: int, mask: int, bits: int
) -> object:
    """What the lanes have, or the fault."""
    device = EmulatedDevice(_SIZE)
    table, out = device.alloc(512), device.alloc(128 * (len(_OUT) + len(_MASKS)))
    memory = device.base + _SIZE - len(content)  # the device's last bytes
    device.write(memory, content)
    device.write(table, struct.pack("<64Q", *((memory + at) % (1 << 64) for at in rows)))
    given = struct.pack("<QQQIIII", table, out, memory + start, bits ^ 5, 7, mask, bits)
    try:
        run_image(image, Setup(), 1, 32, given, device)
    except EmulatorError as error:
        return str(error)
    return device.read(out, 128 * (len(_OUT) + len(_MASKS)))


def _none(_flow: Flow, _strides: Mapping[int, int]) -> dict[int, list[Run]]:
    return {}


def _images(middle: Sequence[Item]) -> tuple[LoadedImage, LoadedImage]:
    """In packs, and without."""
    if host_isa() != "avx512":
        pytest.skip("packs are for AVX-512")
    code = _program(middle)
    in_packs = LoadedImage(compile_kernel(code, 0, CompileOptions()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_runs, "runs", _none)
        return in_packs, LoadedImage(compile_kernel(code, 0, CompileOptions()))


def _in_packs(middle: Sequence[Item]) -> int:
    flow = discover(_program(middle), 0)
    text = build(flow, CompileOptions(), "avx512", ATTRIBUTES["avx512"])[0].text()
    return len(re.findall(r"^loop\.p\d+:", text, re.MULTILINE))


def _content(rng: random.Random) -> bytes:
    """Dwords that are indices of the rows' and of one another."""
    return struct.pack(
        f"<{_ROWS // 4}i", *(rng.randrange(_ROWS // 4 - 8) for _ in range(_ROWS // 4))
    )


_PLACES = (
    0,
    4,
    _ROWS - 24,
    _ROWS - 20,
    _ROWS - 16,
    _ROWS - 8,
    _ROWS,
    _ROWS - 6,
    1 << 40,
    -(1 << 62),
)


def test_values_masks_and_faults_are_those_of_whole_waves() -> None:
    in_packs, whole = _images(_RUN)
    rng = random.Random("packed")
    faults = 0
    for _ in range(80):
        content = _content(rng)
        rows = [rng.randrange(0, _ROWS - 24, 4) for _ in range(64)]
        for _ in range(rng.choice((0, 0, 0, 1, 2, 5))):
            rows[rng.randrange(64)] = rng.choice(_PLACES)
        start = rng.choice((0, 0, 0, 0, 0, 4, 8, 2, -64))
        mask = rng.choice((_FULL, 0xFF, 0x1FF, 0xFFFF0000, 1 << 31, 0, *(rng.getrandbits(32),) * 6))
        if rng.random() < 0.2:
            mask &= rng.getrandbits(32) & rng.getrandbits(32)
        bits = rng.getrandbits(32)
        expected = _run(whole, content, rows, start, mask, bits)
        assert _run(in_packs, content, rows, start, mask, bits) == expected
        faults += isinstance(expected, str)
    assert 15 < faults < 65


def test_the_first_fault_is_that_of_the_first_instruction() -> None:
    """Also where a lane of an earlier pack has one at a later instruction."""
    in_packs, whole = _images(_RUN)
    content = bytes(_ROWS)
    rows = [8 * lane for lane in range(64)]
    for early, late in ((30, 1), (9, 8), (17, 3)):
        # A lane's second row is for the second load, its first one for the first.
        wrong = [*rows]
        wrong[2 * early], wrong[2 * late + 1] = 1 << 40, 1 << 41
        expected = _run(whole, content, wrong, 0, _FULL, 0)
        assert isinstance(expected, str)
        assert f"lane {early}:" in expected
        assert _run(in_packs, content, wrong, 0, _FULL, 0) == expected


def _loop() -> tuple[Item, ...]:
    """Lanes end after up to three rounds, and keep what they have."""
    more = (
        Inst("v_cmp_ne_u32", (S(24), I(0), V(20))),
        Inst("s_and_b32", (Sp("exec_lo"), Sp("exec_lo"), S(24))),
    )
    loads = (_load(registers, 4 * n) for n, registers in enumerate((5, 7, *range(12, 18))))
    return (
        Inst("v_and_b32", (V(20), I(3), V(0))),
        *more,
        Inst("s_cbranch_execz", (LabelRef("over"),)),
        Label("again"),
        *loads,
        Inst("v_add_nc_u32", (V(4), V(4), V(17))),
        Inst("v_xor_b32", (V(18), V(16), V(5))),
        Inst("v_add_nc_u32", (V(20), I(-1), V(20))),
        Inst("v_add_co_u32", (V(2), S(31), V(2), I(32))),
        Inst("v_add_co_ci_u32", (V(3), S(30), V(3), I(0), S(31))),
        *more,
        Inst("s_cbranch_execnz", (LabelRef("again"),)),
        Label("over"),
    )


def test_lanes_that_have_ended_keep_their_values() -> None:
    assert _in_packs(_loop()) == 1
    in_packs, whole = _images(_loop())
    rng = random.Random("loop")
    for mask in (_FULL, 0, 1 << 31, *(rng.getrandbits(32) for _ in range(8))):
        content = _content(rng)
        rows = [rng.randrange(0, _ROWS - 96, 4) for _ in range(64)]
        expected = _run(whole, content, rows, 0, mask, 0)
        assert isinstance(expected, bytes)
        assert _run(in_packs, content, rows, 0, mask, 0) == expected


def test_the_run_is_in_packs() -> None:
    """Otherwise the other tests have nothing to test."""
    assert _in_packs(_RUN) == 1
    assert _in_packs(_RUN[:8]) == 0


@pytest.mark.parametrize(
    "between",
    [
        Inst("global_store_b32", (V(2, 2), V(4), Sp("off"))),
        Inst("global_atomic_add_u32", (V(2, 2), V(4), Sp("off"))),
        Inst("s_barrier"),
        Inst("s_mov_b32", (Sp("exec_lo"), S(24))),
        Inst("v_cmpx_gt_i32", (V(4), V(5))),
        Inst("v_readfirstlane_b32", (S(8), V(4))),
        Inst("v_writelane_b32", (V(4), S(8), I(3))),
        Inst("ds_bpermute_b32", (V(4), V(5), V(6))),
        Inst("v_mov_b32", (V(4), V(5)), dpp="row_shr:1 row_mask:0xf bank_mask:0xf"),
        Inst("s_and_b32", (S(8), S(24), S(25))),  # the mask of a comparison of the run's
        _load(7, 0, 2, glc=True),
    ],
    ids=lambda inst: f"{inst.op}{inst.dpp[:7]}",
)
def test_what_ends_a_run(between: Inst) -> None:
    loads = (_load(4, 0), Inst("v_cmp_gt_i32", (S(24), V(4), V(5))))
    loads += tuple(_load(12 + n, 8 * n) for n in range(6))
    steps = discover(assemble([*loads, between, *loads, Inst("s_endpgm")]).data, 0)
    scattered = {step.pc: -1 for block in steps.blocks.values() for step in block.steps}
    assert packed_runs.runs(steps, scattered) == {}
    plain = discover(assemble([*loads, *loads, Inst("s_endpgm")]).data, 0)
    scattered = {step.pc: -1 for block in plain.blocks.values() for step in block.steps}
    assert [
        [(r.first, r.end) for r in one] for one in packed_runs.runs(plain, scattered).values()
    ] == [[(0, 2 * len(loads))]]


def test_a_mask_that_is_read_as_a_number() -> None:
    """What no pack has is found while a run is emitted: nothing of it may stay."""
    mask = Inst("v_mov_b32", (V(23), S(24)))
    middle = (*_RUN[:6], mask, *_RUN[6:])
    assert _in_packs(middle) == 0
    in_packs, whole = _images(middle)
    rng = random.Random("number")
    rows = [rng.randrange(0, _ROWS - 24, 4) for _ in range(64)]
    content, bits = _content(rng), rng.getrandbits(32)
    expected = _run(whole, content, rows, 0, _FULL, bits)
    assert isinstance(expected, bytes)
    assert _run(in_packs, content, rows, 0, _FULL, bits) == expected


def test_what_is_kept() -> None:
    """Registers that a later block reads, also where it writes them first for fewer lanes."""
    loads = tuple(_load(12 + n, 8 * n) for n in range(8))
    rest = (
        Inst("v_mov_b32", (V(12), I(0))),
        Inst("v_mov_b32", (V(13), I(0))),
        Inst("global_store_b32", (V(2, 2), V(13), Sp("off"))),
        Inst("s_mov_b32", (Sp("exec_lo"), I(-1))),
        Inst("global_store_b32", (V(2, 2), V(12), Sp("off"))),
        Inst("global_store_b32", (V(2, 2), V(14), Sp("off"))),
        Inst("s_endpgm"),
    )
    code = (*loads, Inst("s_cbranch_execz", (LabelRef("next"),)), Label("next"), *rest)
    flow = discover(assemble([*code]).data, 0)
    scattered = {step.pc: -1 for block in flow.blocks.values() for step in block.steps}
    [[run]] = packed_runs.runs(flow, scattered).values()
    assert run.kept == 1 << 12 | 1 << 14


_DPP = "row_mask:0xf bank_mask:0xf"
_READERS = (
    (0xFF, Inst("v_readlane_b32", (S(24), V(12), I(31)))),
    (0xFF, Inst("v_permlanex16_b32", (V(5), V(12), I(0), I(0)), op_sel=1)),
    (0xFF, Inst("v_mov_b32", (V(5), V(12)), dpp=f"row_ror:8 {_DPP} fi:1")),
    (0, Inst("v_readfirstlane_b32", (S(24), V(12)))),
    (0xFF, Inst("v_movrels_b32", (V(5), V(11)))),
)


@pytest.mark.parametrize(
    ("mask", "reader"), _READERS, ids=[inst.op + inst.dpp[:7] for _, inst in _READERS]
)
def test_what_later_blocks_read_of_other_lanes(mask: int, reader: Inst) -> None:
    """A block that writes a register for its lanes may still read what the run left in others."""
    by_number = reader.op == "v_movrels_b32"  # v12, which no operand names
    middle = (
        Inst("s_mov_b32", (Sp("m0"), I(1))),
        *(_load(12 + n, 4 * n) for n in range(10)),
        Inst("s_mov_b32", (Sp("exec_lo"), I(mask))),
        Inst("s_cbranch_scc1", (LabelRef("over"),)),
        *(() if by_number else (Inst("v_mov_b32", (V(12), I(5))),)),
        reader,
        Label("over"),
        Inst("v_mov_b32", (V(15), I(0))),
    )
    assert _in_packs(middle) == 1
    in_packs, whole = _images(middle)
    rng = random.Random("others")
    content = _content(rng)
    rows = [rng.randrange(0, _ROWS - 96, 4) for _ in range(64)]
    expected = _run(whole, content, rows, 0, _FULL, 0)
    assert isinstance(expected, bytes)
    assert _run(in_packs, content, rows, 0, _FULL, 0) == expected
