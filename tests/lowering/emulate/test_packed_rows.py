"""Rows of dwords in packs, and tables by them: random runs, with packs and without."""

from __future__ import annotations

import random
import re
import struct

import llvmlite.binding as llvm
import pytest

from sassxlate.cfg.rdna3_flow import discover
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, S, V
from sassxlate.lowering.emulate.compiler import ATTRIBUTES
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.wave.wave import build
from tests.lowering.emulate.packed import (
    FULL,
    PLACES,
    ROWS,
    content_of,
    images,
    in_packs_of,
    indexed,
    load,
    program,
    run,
)

_WORDS = (4, 5, 7, *range(14, 20), 21, 22, 23)  # of those that are compared afterwards
_FACTOR = 32
_BEFORE = -ROWS  # an index of a dword of the device before the table
_WILD = (ROWS // 4, _BEFORE, 1 << 29, 1 << 31, (1 << 31) - 1)  # the others are of none


def _looked_up(rng: random.Random, dst: int, index: int) -> tuple[Inst, Inst]:
    """The same as `indexed`, by a register that has 4, and from some dwords beyond the table."""
    if rng.random() < 0.5:
        return indexed(dst, index)
    mad = Inst("v_mad_i64_i32", (V(28, 2), S(30), V(index), V(_FACTOR), S(20, 2)))
    return mad, load(dst, rng.choice((0, 4, -4)), 28)


def _rows(rng: random.Random, address: int, low: int) -> list[Inst]:
    """Loads of all dwords of a row, some or all of which are indices of a table."""
    dwords = rng.choice((4, 5, 8, 12, 16, 16))
    order = list(range(dwords))
    rng.shuffle(order)
    out = [load(40 + n, low + 4 * n, address) for n in order]
    if rng.random() < 0.2:
        del out[rng.randrange(len(out))]
    for n in order if rng.random() < 0.7 else order[: rng.randrange(dwords)]:
        out += _looked_up(rng, 60 + n, 40 + n)
    for n in range(dwords):
        word = rng.choice(_WORDS)
        out.append(Inst("v_xor_b32", (V(word), V(word), V(rng.choice((40, 60)) + n))))
    return out


def _between(rng: random.Random) -> list[Inst]:
    a, b, c = (rng.choice(_WORDS) for _ in range(3))
    mask = rng.choice((24, 25, 26))
    address = rng.choice((2, 10))
    return rng.choice([
        [Inst("v_cmp_gt_i32", (S(mask), V(a), V(b)))],
        [Inst("v_cndmask_b32", (V(a), V(b), V(c), S(rng.choice((mask, 27)))))],
        [Inst("v_add_nc_u32", (V(a), V(b), V(c)))],
        [Inst("v_add_nc_u32", (V(a), V(0), S(22)))],
        [Inst("v_mov_b32", (V(a), V(_FACTOR)))],
        [Inst("v_cmp_eq_u32", (S(mask), I(4), V(_FACTOR)))],
        [Inst("s_add_u32", (S(22), S(22), S(23)))],
        [
            Inst("v_add_co_u32", (V(address), S(31), V(address), I(rng.choice((4, 16, 64))))),
            Inst("v_add_co_ci_u32", (V(address + 1), S(30), V(address + 1), I(0), S(31))),
        ],
        # By what has been loaded: addresses that no wave has.
        [Inst("v_mad_i64_i32", (V(10, 2), S(30), V(40), I(4), S(20, 2)))],
    ])  # fmt: skip


def _random_run(rng: random.Random) -> list[Item]:
    factor = (
        Inst("v_lshrrev_b32", (V(_FACTOR), I(5), V(0))),
        Inst("v_or_b32", (V(_FACTOR), I(4), V(_FACTOR))),
    )
    if rng.random() < 0.2:
        factor = (*factor, Inst("v_cndmask_b32", (V(_FACTOR), V(_FACTOR), I(8), S(27))))
    out: list[Item] = [*factor]
    for _ in range(rng.randrange(1, 4)):
        out += _rows(rng, rng.choice((2, 10)), rng.choice((0, 0, 4, 8)))
        for _ in range(rng.randrange(4)):
            out += _between(rng)
    # More loads than other instructions, or it is no run.
    return [*out, *(load(60 + n, 8 * n, 2) for n in range(4))]


def _with(content: bytes, dwords: dict[int, int]) -> bytes:
    out = bytearray(content)
    for at, dword in dwords.items():
        struct.pack_into("<I", out, 4 * at, dword % (1 << 32))
    return bytes(out)


def _text(middle: list[Item]) -> str:
    flow = discover(program(middle), 0)
    return build(flow, CompileOptions(), "avx512", ATTRIBUTES["avx512"])[0].text()


def _same(seed: int, times: int) -> tuple[int, int]:
    """How many of so many waves had a fault, if all are the same with packs and without."""
    rng = random.Random(f"rows {seed}")
    middle = _random_run(rng)
    if not in_packs_of(middle):
        return 0, 0
    llvm.parse_assembly(_text(middle)).verify()
    in_packs, whole = images(middle)
    faults = 0
    for _ in range(times):
        content = content_of(rng)
        if rng.random() < 0.2:
            content = _with(content, {rng.randrange(ROWS // 4): rng.choice(_WILD)})
        rows = [rng.randrange(0, ROWS - 400, 4) for _ in range(64)]
        for _ in range(rng.choice((0, 0, 0, 1, 3))):
            rows[rng.randrange(64)] = rng.choice(PLACES)
        start = rng.choice((0, 0, 0, 64, 4, 2, -64))
        mask = rng.choice((FULL, FULL, 0xFF, 0x1FF, 1 << 31, 0, *(rng.getrandbits(32),) * 4))
        bits = rng.getrandbits(32)
        expected = run(whole, content, rows, start, mask, bits)
        assert run(in_packs, content, rows, start, mask, bits) == expected, (seed, middle)
        faults += isinstance(expected, str)
    return faults, times


@pytest.mark.parametrize("seed", range(4))
def test_random_runs(seed: int) -> None:
    _same(seed, 40)


@pytest.mark.sweep
def test_many_random_runs() -> None:
    faults = done = 0
    for seed in range(4, 400):
        some, of = _same(seed, 40)
        faults, done = faults + some, done + of
    assert done > 8000
    assert 0.1 < faults / done < 0.9


@pytest.mark.parametrize("dwords", [4, 8, 16])
def test_rows_and_tables_by_them(dwords: int) -> None:
    """That each form is used, and right where no lane has a fault."""
    loads = [load(40 + n, 4 * n) for n in range(dwords)] + [load(30, 72 + 8 * n) for n in range(5)]
    tables = [inst for n in range(dwords) for inst in indexed(60 + n, 40 + n)]
    sums = [Inst("v_add_nc_u32", (V(4), V(4), V(60 + n))) for n in range(dwords)]
    sums += [Inst("v_xor_b32", (V(5), V(5), V(40 + n))) for n in range(dwords)]
    for left_out in (0, 1):
        middle: list[Item] = [*loads, *tables[2 * left_out :], *sums]
        text = _text(middle)
        assert len(re.findall(rf"= load <{dwords} x i32>, ptr %p\d+\.f\d+, align 4\n", text)) == 8
        wide = len(re.findall(r"call <16 x i32> @llvm.masked.gather", text))
        assert wide == (0 if left_out else dwords // 2)
        in_packs, whole = images(middle)
        rng = random.Random("tables")
        for mask in (FULL, 0x5555AAAA, 1 << 31, 0):
            content = content_of(rng)
            rows = [rng.randrange(0, ROWS - 400, 4) for _ in range(64)]
            for lane in (lane for lane in range(32) if not mask >> lane & 1):
                rows[2 * lane] = 1 << 40  # an idle lane has anything
            expected = run(whole, content, rows, 0, mask, 0)
            assert isinstance(expected, bytes)
            assert run(in_packs, content, rows, 0, mask, 0) == expected
            # One lane's last index is of no dword, or of one before the table.
            lane = (mask & -mask).bit_length() - 1
            for wild in _WILD if mask else ():
                wrong = _with(content, {rows[2 * lane] // 4 + dwords - 1: wild})
                expected = run(whole, wrong, rows, 0, mask, 0)
                assert run(in_packs, wrong, rows, 0, mask, 0) == expected
                assert isinstance(expected, str) == (wild != _BEFORE)


def test_each_run_reads_its_part_of_the_next_rows_ahead() -> None:
    """By the line, once for each span of rows; rows far from each other are as right."""
    run_ = [load(40 + n, 4 * n) for n in range(16)] + [load(60 + n, 4 * n, 10) for n in range(8)]
    run_ += [Inst("v_xor_b32", (V(4), V(40 + n), V(60 + n))) for n in range(8)]
    for runs, lines in ((1, 8), (2, 6), (3, 4)):
        middle: list[Item] = [one for _ in range(runs) for one in (*run_, Inst("s_barrier"))]
        text = _text(middle)
        found = re.findall(r"call void @llvm\.prefetch\.p0\(ptr %p(\d+)\.f", text)
        assert sorted(found.count(loop) for loop in set(found)) == [2 * lines] * runs
        parts = {256 * number // runs for number in range(runs)} - {0}
        assert parts <= {int(part) for part in re.findall(r"= mul i64 %x\d+, (\d+)", text)}
    in_packs, whole = images(run_)
    rng = random.Random("ahead")
    content = content_of(rng)
    for apart in (0, 4, 64, 1 << 20):
        rows = [(lane * apart) % (ROWS - 400) & ~3 for lane in range(64)]
        expected = run(whole, content, rows, 0, FULL, 0)
        assert isinstance(expected, bytes)
        assert run(in_packs, content, rows, 0, FULL, 0) == expected


def test_a_factor_that_is_supposed_to_be_4() -> None:
    """What else is made of it is right where it is not, too."""
    factor: list[Item] = [
        Inst("v_mov_b32", (V(_FACTOR), I(4))),
        Inst("v_cndmask_b32", (V(_FACTOR), V(_FACTOR), I(8), S(27))),
    ]
    middle: list[Item] = [
        *factor,
        *(load(40 + n, 4 * n) for n in range(8)),
        *(
            inst
            for n in range(8)
            for inst in (
                Inst("v_mad_i64_i32", (V(28, 2), S(30), V(40 + n), V(_FACTOR), S(20, 2))),
                load(60 + n, 0, 28),
            )
        ),
        *(Inst("v_xor_b32", (V(4), V(4), V(60 + n))) for n in range(8)),
        Inst("v_cmp_eq_u32", (S(24), I(4), V(_FACTOR))),
        Inst("v_cndmask_b32", (V(5), V(40), V(_FACTOR), S(24))),
        Inst("v_mov_b32", (V(7), V(_FACTOR))),
        Inst("v_add_nc_u32", (V(14), S(22), V(_FACTOR))),
        load(15, 64),
    ]
    text = _text(middle)
    assert len(re.findall(r"call <16 x i32> @llvm.masked.gather", text)) == 4
    assert "store volatile <8 x i32>" in text  # the lanes' order, for the careful form
    in_packs, whole = images(middle)
    rng = random.Random("factor")
    content = struct.pack(f"<{ROWS // 4}i", *(rng.randrange(ROWS // 8) for _ in range(ROWS // 4)))
    rows = [rng.randrange(0, ROWS - 400, 4) for _ in range(64)]
    for mask in (FULL, 0x5555AAAA, 1 << 31, 0):
        for bits in (0, 1, 1 << 31, mask, ~mask & FULL, rng.getrandbits(32)):
            expected = run(whole, content, rows, 0, mask, bits)
            assert isinstance(expected, bytes)
            assert run(in_packs, content, rows, 0, mask, bits) == expected


def test_rows_by_addresses_that_packs_make() -> None:
    """Rows that are outside are not loaded, whatever there is."""
    middle: list[Item] = [
        *(load(40 + n, 4 * n) for n in range(4)),
        Inst("v_mad_i64_i32", (V(10, 2), S(30), V(41), I(4), S(20, 2))),
        *(load(50 + n, 4 * n, 10) for n in range(8)),
        *(Inst("v_xor_b32", (V(4), V(4), V(50 + n))) for n in range(8)),
    ]
    assert len(re.findall(r"= load <8 x i32>, ptr %p\d+\.f\d+, align 4\n", _text(middle))) == 8
    in_packs, whole = images(middle)
    rng = random.Random("addresses")
    for wild in (5, ROWS // 4 - 4, *_WILD):
        rows = [rng.randrange(0, ROWS - 400, 4) for _ in range(64)]
        content = _with(content_of(rng), {rows[18] // 4 + 1: wild})
        for mask in (FULL, 1 << 9):
            expected = run(whole, content, rows, 0, mask, 0)
            assert run(in_packs, content, rows, 0, mask, 0) == expected
            assert isinstance(expected, str) == (wild not in (5, _BEFORE))


def test_rows_by_a_scalar_that_packs_make() -> None:
    """A wave has no such address: what a comparison of the run writes is in its packs."""
    head: list[Item] = [
        *(load(40 + n, 4 * n) for n in range(8)),
        Inst("s_mov_b64", (S(24, 2), S(20, 2))),
        Inst("v_lshlrev_b32", (V(9), I(5), V(0))),
    ]
    tail: list[Item] = [
        Inst("global_load_b32", (V(50 + n), V(9), S(24, 2)), 4 * n) for n in range(4)
    ]
    tail += [Inst("v_xor_b32", (V(4), V(4), V(50 + n))) for n in range(4)]
    for compared in ([], [Inst("v_cmp_gt_u32", (S(24), I(5), V(40)))]):
        middle = [*head, *compared, *tail]
        assert in_packs_of(middle) == (not compared)
        in_packs, whole = images(middle)
        rng = random.Random("scalars")
        content, rows = content_of(rng), [rng.randrange(0, ROWS - 400, 4) for _ in range(64)]
        expected = run(whole, content, rows, 0, FULL, 0)
        assert run(in_packs, content, rows, 0, FULL, 0) == expected
        assert isinstance(expected, str) == bool(compared)
