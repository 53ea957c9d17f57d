"""Runs of instructions in packs of active lanes: the same values, masks and faults as without."""

from __future__ import annotations

import random

import pytest

from sassxlate.cfg.rdna3_flow import discover
from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.lowering.emulate.wave.packs import runs as packed_runs
from tests.lowering.emulate.packed import (
    FULL,
    PLACES,
    ROWS,
    content_of,
    images,
    in_packs_of,
    indexed,
    load,
    run,
)

# v[2:3] and v[10:11]: the lanes' rows.  Pairs upwards and downwards, loads alone, and by indices.
_RUN = (
    load(4, 8),
    load(12, 0, 10),
    load(5, 12),
    Inst("v_cmp_gt_i32", (S(24), V(4), V(5))),
    Inst("s_add_u32", (S(22), S(22), S(23))),
    load(6, 4),
    load(13, 4, 10),
    load(7, 0),
    *indexed(14, 4),
    Inst("v_cndmask_b32", (V(15), V(4), V(5), S(24))),
    *indexed(16, 5),
    Inst("v_add_co_u32", (V(17), S(25), V(4), V(6))),
    Inst("v_add_co_ci_u32", (V(18), S(26), V(5), V(7), S(25))),
    Inst("s_xor_b32", (S(25), S(22), S(27))),
    Inst("v_cndmask_b32", (V(18), V(18), V(4), S(25))),
    Inst("v_cndmask_b32", (V(19), V(12), V(13), S(27))),
    load(20, 20, 10),
    Inst("v_fma_f32", (V(21), V(12), V(13), V(20))),
    Inst("v_add_nc_u32", (V(22), S(22), V(16))),
    Inst("v_mov_b32", (V(23), S(23))),
    Inst("v_add_co_u32", (V(2), S(31), V(2), I(4))),
    Inst("v_add_co_ci_u32", (V(3), S(30), V(3), I(0), S(31))),
    Inst("v_max3_f32", (V(24), I(0x7FFFFFFF), V(21), I(0x7FFFFFFF))),
)


def test_values_masks_and_faults_are_those_of_whole_waves() -> None:
    in_packs, whole = images(_RUN)
    rng = random.Random("packed")
    faults = 0
    for _ in range(80):
        content = content_of(rng)
        rows = [rng.randrange(0, ROWS - 24, 4) for _ in range(64)]
        for _ in range(rng.choice((0, 0, 0, 1, 2, 5))):
            rows[rng.randrange(64)] = rng.choice(PLACES)
        start = rng.choice((0, 0, 0, 0, 0, 4, 8, 2, -64))
        mask = rng.choice((FULL, 0xFF, 0x1FF, 0xFFFF0000, 1 << 31, 0, *(rng.getrandbits(32),) * 6))
        if rng.random() < 0.2:
            mask &= rng.getrandbits(32) & rng.getrandbits(32)
        bits = rng.getrandbits(32)
        expected = run(whole, content, rows, start, mask, bits)
        assert run(in_packs, content, rows, start, mask, bits) == expected
        faults += isinstance(expected, str)
    assert 15 < faults < 65


def test_the_first_fault_is_that_of_the_first_instruction() -> None:
    """Also where a lane of an earlier pack has one at a later instruction."""
    in_packs, whole = images(_RUN)
    content = bytes(ROWS)
    rows = [8 * lane for lane in range(64)]
    for early, late in ((30, 1), (9, 8), (17, 3)):
        # A lane's second row is for the second load, its first one for the first.
        wrong = [*rows]
        wrong[2 * early], wrong[2 * late + 1] = 1 << 40, 1 << 41
        expected = run(whole, content, wrong, 0, FULL, 0)
        assert isinstance(expected, str)
        assert f"lane {early}:" in expected
        assert run(in_packs, content, wrong, 0, FULL, 0) == expected


def _loop() -> tuple[Item, ...]:
    """Lanes end after up to three rounds, and keep what they have."""
    more = (
        Inst("v_cmp_ne_u32", (S(24), I(0), V(20))),
        Inst("s_and_b32", (Sp("exec_lo"), Sp("exec_lo"), S(24))),
    )
    loads = (load(registers, 4 * n) for n, registers in enumerate((5, 7, *range(12, 18))))
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
    assert in_packs_of(_loop()) == 1
    in_packs, whole = images(_loop())
    rng = random.Random("loop")
    for mask in (FULL, 0, 1 << 31, *(rng.getrandbits(32) for _ in range(8))):
        content = content_of(rng)
        rows = [rng.randrange(0, ROWS - 96, 4) for _ in range(64)]
        expected = run(whole, content, rows, 0, mask, 0)
        assert isinstance(expected, bytes)
        assert run(in_packs, content, rows, 0, mask, 0) == expected


def test_the_run_is_in_packs() -> None:
    """Otherwise the other tests have nothing to test."""
    assert in_packs_of(_RUN) == 1
    assert in_packs_of(_RUN[:8]) == 0


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
        load(7, 0, 2, glc=True),
    ],
    ids=lambda inst: f"{inst.op}{inst.dpp[:7]}",
)
def test_what_ends_a_run(between: Inst) -> None:
    loads = (load(4, 0), Inst("v_cmp_gt_i32", (S(24), V(4), V(5))))
    loads += tuple(load(12 + n, 8 * n) for n in range(6))
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
    assert in_packs_of(middle) == 0
    in_packs, whole = images(middle)
    rng = random.Random("number")
    rows = [rng.randrange(0, ROWS - 24, 4) for _ in range(64)]
    content, bits = content_of(rng), rng.getrandbits(32)
    expected = run(whole, content, rows, 0, FULL, bits)
    assert isinstance(expected, bytes)
    assert run(in_packs, content, rows, 0, FULL, bits) == expected


def test_what_is_kept() -> None:
    """Registers that a later block reads, also where it writes them first for fewer lanes."""
    loads = tuple(load(12 + n, 8 * n) for n in range(8))
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
    [[found]] = packed_runs.runs(flow, scattered).values()
    assert found.kept == 1 << 12 | 1 << 14


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
        *(load(12 + n, 4 * n) for n in range(10)),
        Inst("s_mov_b32", (Sp("exec_lo"), I(mask))),
        Inst("s_cbranch_scc1", (LabelRef("over"),)),
        *(() if by_number else (Inst("v_mov_b32", (V(12), I(5))),)),
        reader,
        Label("over"),
        Inst("v_mov_b32", (V(15), I(0))),
    )
    assert in_packs_of(middle) == 1
    in_packs, whole = images(middle)
    rng = random.Random("others")
    content = content_of(rng)
    rows = [rng.randrange(0, ROWS - 96, 4) for _ in range(64)]
    expected = run(whole, content, rows, 0, FULL, 0)
    assert isinstance(expected, bytes)
    assert run(in_packs, content, rows, 0, FULL, 0) == expected
