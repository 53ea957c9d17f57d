"""Directed roundings and saturating conversions, which other instructions stand in for."""

from __future__ import annotations

import math
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.rdna3 import OPS, branch_target, decode, encode
from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.disasm.rdna3.semantics.apply import lookup
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.numbers.modes import blind
from sassxlate.lowering.tier.numbers.stand_ins import STAND_INS, replaced
from sassxlate.lowering.tier.refusal import BACKEND, Refused
from sassxlate.lowering.tier.translate import by_tier

SOURCE = Path(__file__).with_name("stand_ins.cu")
TURNS, THREADS = 4, 256
Bits = NDArray[Any]


# --- the machine code ----------------------------------------------------------------------------

LERP = Inst("v_lerp_u8", (V(0), V(1), S(2), I(0x437C0000)))
ROUND_DOWN, NEAREST = (Inst("s_round_mode", (), imm=n) for n in (0b1010, 0))


def _code(*insts: Inst) -> bytes:
    return b"".join(encode(i) for i in insts)


def _texts(code: bytes) -> list[tuple[int, Inst]]:
    out: list[tuple[int, Inst]] = []
    at = 0
    while at < len(code):
        inst, size = decode(code, at)
        out.append((at, inst))
        at += size
    return out


@pytest.mark.parametrize(
    ("number", "value", "same"),
    [(10, 0xFFC00001, 0x7FFFFFFF), (10, 0x80000001, 0x80000001), (11, 0xFE013C00, 0x7FFF3C00)],
)
def test_the_nan_of_a_constant(number: int, value: int, same: int) -> None:
    """LLVM may find out only at the end that a number is always the same."""
    code = _code(Inst("v_sad_u8", (V(0), I(value), I(0), I(number))), Inst("s_endpgm"))
    (_, inst), *_ = _texts(replaced(code, ())[0])
    assert inst.op == "v_mov_b32"
    assert inst.args == (V(0), I(same))


@pytest.mark.parametrize(("number", "op"), [(10, "v_max3_f32"), (11, "v_pk_max_f16")])
def test_the_nan_of_a_register(number: int, op: str) -> None:
    code = _code(Inst("v_sad_u8", (V(0), V(3), I(0), I(number))), Inst("s_endpgm"))
    (_, inst), *_ = _texts(replaced(code, ())[0])
    assert inst.op == op
    assert V(3) in inst.args


def test_doubles() -> None:
    code = _code(
        Inst("v_qsad_pk_u16_u8", (V(0, 2), S(2, 2), I(13), V(4, 2))),
        Inst("v_mqsad_u32_u8", (V(0, 4), V(4, 2), I(20), V(8, 4))),
        Inst("s_endpgm"),
    )
    insts = [i for _, i in _texts(replaced(code, ())[0])]
    assert [(i.op, i.args, i.imm) for i in insts[:-1]] == [
        ("s_round_mode", (), 0b1010), ("v_add_f64", (V(0, 2), S(2, 2), V(4, 2)), 0),
        ("s_round_mode", (), 0), ("s_round_mode", (), 0b1111),
        ("v_fma_f64", (V(0, 2), V(4, 2), V(8, 2), V(10, 2)), 0), ("s_round_mode", (), 0),
    ]  # fmt: skip


def test_branches_and_lines_follow() -> None:
    end, other = Inst("s_endpgm"), Inst("v_rcp_f32", (V(9), V(9)))
    size = len(encode(LERP))
    forth = Inst("s_cbranch_vccz", (), imm=(2 * size + 8) // 4)
    back = Inst("s_branch", (), imm=-(2 * size + 8) // 4)
    code = _code(forth, LERP, other, LERP, back, end)
    new, lines = replaced(code, [(0, 1), (4, 2), (4 + size, 3), (8 + size, 4), (8 + 2 * size, 5)])
    insts = _texts(new)
    assert [i.op for _, i in insts] == [
        "s_cbranch_vccz", "s_round_mode", "v_fma_f32", "s_round_mode", "v_rcp_f32",
        "s_round_mode", "v_fma_f32", "s_round_mode", "s_branch", "s_endpgm",
    ]  # fmt: skip
    at = {n: place for n, (place, _) in enumerate(insts)}
    assert branch_target(insts[0][1], 0) == at[9]
    assert branch_target(insts[8][1], at[8]) == at[1]  # before its mode is set
    assert lines == ((0, 1), (at[1], 2), (at[4], 3), (at[5], 4), (at[8], 5))


def test_neighbours_share_a_mode_unless_code_comes_between_them() -> None:
    code = _code(LERP, LERP, Inst("s_endpgm"))
    assert [i.op for _, i in _texts(replaced(code, ())[0])] == [
        "s_round_mode", "v_fma_f32", "v_fma_f32", "s_round_mode", "s_endpgm"
    ]  # fmt: skip
    size = len(encode(LERP))
    into = Inst("s_branch", (), imm=size // 4)
    code = _code(into, LERP, LERP, Inst("s_endpgm"))
    insts = _texts(replaced(code, ())[0])
    assert [i.op for _, i in insts].count("s_round_mode") == 4
    target = branch_target(insts[0][1], 0)
    assert dict(insts)[target].op == "s_round_mode"
    assert dict(insts)[target].imm == 0b1010


ADD = Inst("v_sad_u8", (V(0), V(1), V(2), I(27)))
FMA = Inst("v_sad_u16", (V(0), V(1), V(2), V(3)))


@pytest.mark.parametrize(("flushes", "inside", "after"), [(False, 0xC, 0xF), (True, 0xF, 0xC)])
def test_the_mode_that_the_function_does_not_have(flushes: bool, inside: int, after: int) -> None:
    """It stays over what does the same in every mode."""
    code = _code(
        FMA, Inst("v_and_b32", (V(4), V(5), V(0))), ADD, Inst("v_rcp_f32", (V(9), V(9))), ADD,
        LERP, Inst("s_endpgm"),
    )  # fmt: skip
    insts = [(i.op, i.imm) for _, i in _texts(replaced(code, (), flushes=flushes)[0])]
    assert insts == [
        ("s_denorm_mode", inside), ("v_fma_f32", 0), ("v_and_b32", 0), ("v_add_f32", 0),
        ("s_denorm_mode", after), ("v_rcp_f32", 0),
        ("s_denorm_mode", inside), ("v_add_f32", 0), ("s_denorm_mode", after),
        ("s_round_mode", 0b1010), ("v_fma_f32", 0), ("s_round_mode", 0), ("s_endpgm", 0),
    ]  # fmt: skip


def test_what_does_the_same_in_every_mode() -> None:
    """Of the names that a table has, none of which the emulator asks for the mode."""
    kept = [name for name in OPS if blind(name)]
    assert len(kept) > 500
    computing = {name for name in kept if (row := lookup(name)) is not None and row.mode}
    assert computing == {"v_cmp_o_f32", "v_cmp_u_f32"}
    assert not [name for name in kept if "atomic" in name or "branch" in name]
    assert not blind("v_dual_mov_b32", "v_dual_add_f32")
    assert blind("v_dual_mov_b32", "v_dual_and_b32")


def test_code_without_them_is_the_same() -> None:
    code = _code(Inst("v_mov_b32", (V(0), V(1))), Inst("s_endpgm"))
    assert replaced(code, [(0, 7)]) == (code, ((0, 7),))


@pytest.mark.parametrize(
    "inst",
    [
        Inst("v_sad_u8", (V(0), V(1), V(2), V(3))),
        Inst("v_sad_u8", (V(0), V(1), V(2), I(64))),
        Inst("v_qsad_pk_u16_u8", (V(0, 2), V(2, 2), I(12), I(1))),  # a constant of another kind
        Inst("v_qsad_pk_u16_u8", (V(0, 2), V(2, 2), I(18), V(4, 2))),  # three sources
        Inst("v_mqsad_u32_u8", (V(0, 4), V(4, 2), I(12), V(8, 4))),  # two
    ],
)
def test_what_is_no_stand_in_is_refused(inst: Inst) -> None:
    with pytest.raises(Refused) as why:
        replaced(_code(inst, Inst("s_endpgm")), ())
    assert why.value.code == BACKEND


# --- what it computes ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cubin(tmp_path_factory: pytest.TempPathFactory) -> Cubin:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, no NVIDIA wheels")
    out = tmp_path_factory.mktemp("stand_ins") / "made.cubin"
    command = [*nvcc.command, "-arch=sm_80", "-cubin", "-o", str(out), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True)
    return parse_cubin(out.read_bytes())


def _floats(chance: Any, count: int, width: int) -> Bits:
    """Any bits; few bits set; exponents close to each other, to the ends, and to integers'."""
    kind: Any = np.uint32 if width == 32 else np.uint64
    size, top = (23, 255) if width == 32 else (52, 2047)
    bits: Bits = chance.integers(0, (1 << width) - 1, count, dtype=kind, endpoint=True)
    middle = top // 2
    ends = np.array([0, 1, 2, size, middle - 1, middle, middle + 7, middle + 30, middle + 31,
                     middle + 32, middle + 62, middle + 63, middle + 64, top - 2, top - 1,
                     top], kind)  # fmt: skip
    few = np.array([0, 1, 2, 3, (1 << size) - 1, (1 << size) - 2, 1 << (size - 1)], kind)
    picked: Bits = chance.choice(few, count)
    low: Bits = np.where(bits & kind(4), picked, bits & kind((1 << size) - 1))
    sign: Bits = bits >> kind(width - 1) << kind(width - 1)
    high: Bits = chance.choice(ends, count) << kind(size) | sign
    return np.where(bits & kind(3), high | low, bits).astype(kind)


def _directed(product: Bits, addend: Bits) -> list[Bits]:
    """product + addend, of binary64 that hold exact numbers, as binary32 rounded down, up and
    towards zero."""
    with np.errstate(all="ignore"):
        total = product + addend
        part = total - product
        rest = (product - (total - part)) + (addend - part)
        near = total.astype(np.float32)
        wide = near.astype(np.float64)
        above = (wide > total) | ((wide == total) & (rest < 0))
        below = (wide < total) | ((wide == total) & (rest > 0))
        least, most = np.float32(-np.inf), np.float32(np.inf)
        down = np.where(above, np.nextafter(near, least), near)
        up = np.where(below, np.nextafter(near, most), near)
    # An exact zero of numbers of both signs is -0 only if it is rounded down.
    zero = (total == 0) & (np.signbit(product) != np.signbit(addend))
    down = np.where(zero, np.float32(-0.0), down)
    negative = np.signbit(total)
    out = [down, up, np.where(negative, up, down)]
    out[2] = np.where(zero, np.float32(0), out[2])
    bits = [o.astype(np.float32).view(np.uint32) for o in out]
    return [np.where(np.isnan(total), np.uint32(0x7FFFFFFF), b) for b in bits]


def _run(cubin: Cubin, name: str, sides: list[Bits], words: int, count: int) -> Bits:
    made = by_tier(translate_kernel(cubin, name), DEFAULT)
    kept = {i.op for i in made.items if isinstance(i, Inst)}
    assert not kept & STAND_INS
    size = sum(s.nbytes for s in sides) + 4 * words * count
    device = EmulatedDevice((size + (1 << 16)) // 4096 * 4096)
    places = [device.alloc(s.tobytes()) for s in sides] + [device.alloc(4 * words * count)]
    grid = count // (TURNS * THREADS)
    given = struct.pack(f"<{len(places)}QI", *places, TURNS)
    segment = made.launch.kernarg(given, (THREADS, 1, 1), (grid, 1, 1), {}, 0)
    run_code_object(made.code_object, name, grid, THREADS, segment, device, CompileOptions())
    found = np.frombuffer(device.read(places[-1], 4 * words * count), np.uint32)
    return found.reshape(count, words)


def _compare_directed(cubin: Cubin, count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    bits = [_floats(chance, count, 32) for _ in range(3)]
    with np.errstate(all="ignore"):
        a, b, c = (s.view(np.float32).astype(np.float64) for s in bits)
        near = (-(a * b)).astype(np.float32)  # sums that cancel but for the last bits
        some = chance.random(count) < 0.3
        bits[2] = np.where(some, near.view(np.uint32) + chance.integers(-2, 3, count), bits[2])
        bits[2] = bits[2].astype(np.uint32)
        c = bits[2].view(np.float32).astype(np.float64)
        ones = np.full_like(a, -0.0)
        wanted = [*_directed(a * b, c), *_directed(a * b, ones), *_directed(a, b)]
    zero = (a == 0) | (b == 0)
    signed = (np.signbit(a) != np.signbit(b)).astype(np.uint32) << 31
    known = zero & ~np.isnan(a * b)
    for n in (3, 4, 5):
        wanted[n] = np.where(known, signed, wanted[n])
    got = _run(cubin, "directed", bits, 9, count)
    for n, column in enumerate(wanted):
        wrong = np.flatnonzero(got[:, n] != column)
        assert not wrong.size, (n, wrong.size, [hex(s[wrong[0]]) for s in bits],
                                hex(got[wrong[0], n]), hex(column[wrong[0]]))  # fmt: skip


def _compare_integers(cubin: Cubin, count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    single, double = _floats(chance, count, 32), _floats(chance, count, 64)
    wanted: list[Bits] = []
    with np.errstate(all="ignore"):
        a, b = single.view(np.float32).astype(np.float64), double.view(np.float64)
        for value, how, low, high, nan in (
            (a, np.trunc, -(1 << 31), (1 << 31) - 1, 0), (a, np.trunc, 0, (1 << 32) - 1, 0),
            (a, np.floor, -(1 << 31), (1 << 31) - 1, 0),
            (b, np.trunc, -(1 << 31), (1 << 31) - 1, 1 << 31),
            (b, np.trunc, 0, (1 << 32) - 1, 1 << 31),
            (b, np.ceil, -(1 << 31), (1 << 31) - 1, 1 << 31),
        ):  # fmt: skip
            whole = np.clip(how(value), low, high)
            whole = np.where(np.isnan(value), 0, whole).astype(np.int64)
            wanted.append(np.where(np.isnan(value), nan, whole).astype(np.uint32))
    got = _run(cubin, "integers", [single, double], 6, count)
    for n, column in enumerate(wanted):
        wrong = np.flatnonzero(got[:, n] != column)
        assert not wrong.size, (n, wrong.size, hex(single[wrong[0]]), hex(double[wrong[0]]),
                                hex(got[wrong[0], n]), hex(column[wrong[0]]))  # fmt: skip


def _compare_from_integers(cubin: Cubin, count: int, seed: int) -> None:
    """Also quotients and remainders, which nvcc's code finds by such a conversion."""
    chance = np.random.default_rng(seed)
    # As many bits as wanted, and one more or less than a number of few bits.
    words = chance.integers(0, 1 << 32, (2, count)) >> chance.integers(0, 32, (2, count))
    near = (words & ~0xFF) + chance.integers(-1, 2, (2, count))
    a, b = np.where(chance.random((2, count)) < 0.5, words, near).astype(np.uint32)
    got = _run(cubin, "from_integers", [a, b], 9, count)
    signed = a.view(np.int32).astype(np.float64)
    wanted: list[Bits] = []
    for value in (signed, b.astype(np.float64)):
        down, up, zero = _directed(value, np.full_like(value, -0.0))
        none = value == 0  # an integer has no -0
        wanted += [np.where(none, np.uint32(0), bits) for bits in (up, down, zero)]
    divisor = (b >> 9 | 1).astype(np.float64)
    wanted.append(np.trunc(signed / divisor).astype(np.int64).astype(np.uint32))
    wanted.append(a % (b | 1))
    wanted.append(np.trunc(signed / TURNS).astype(np.int64).astype(np.uint32))
    for n, column in enumerate(wanted):
        wrong = np.flatnonzero(got[:, n] != column)
        assert not wrong.size, (n, hex(a[wrong[0]]), hex(b[wrong[0]]), hex(got[wrong[0], n]))


def _compare_long_integers(cubin: Cubin, count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    single, double = _floats(chance, count, 32), _floats(chance, count, 64)
    got = _run(cubin, "long_integers", [single, double], 12, count).view(np.uint64)
    columns = (
        (single.view(np.float32), math.trunc, True), (single.view(np.float32), math.trunc, False),
        (single.view(np.float32), math.floor, True), (double.view(np.float64), math.trunc, True),
        (double.view(np.float64), math.trunc, False), (double.view(np.float64), math.ceil, True),
    )  # fmt: skip
    for n, (values, how, signed) in enumerate(columns):
        least, most = (-(1 << 63), (1 << 63) - 1) if signed else (0, (1 << 64) - 1)
        for value, word in zip(values.tolist(), got[:, n].tolist(), strict=True):
            if math.isnan(value):
                wanted = 1 << 63  # NVIDIA's, signed or not
            elif math.isinf(value):
                wanted = most if value > 0 else least
            else:
                wanted = min(max(how(value), least), most)
            assert word == wanted & ((1 << 64) - 1), (n, value, hex(word))


def test_roundings(cubin: Cubin) -> None:
    _compare_directed(cubin, 1 << 14, 1)


def test_conversions(cubin: Cubin) -> None:
    _compare_integers(cubin, 1 << 14, 1)


def test_conversions_to_64_bits(cubin: Cubin) -> None:
    _compare_long_integers(cubin, 1 << 13, 1)


def test_conversions_from_integers(cubin: Cubin) -> None:
    _compare_from_integers(cubin, 1 << 14, 1)


def test_the_reciprocal_of_a_computed_number_that_all_lanes_share(cubin: Cubin) -> None:
    """LLVM ended: "illegal VGPR to SGPR copy"."""
    count = TURNS * THREADS  # one workgroup, of which each lane writes one word
    a = np.arange(count, dtype=np.float32)
    length = np.array([16, 0.5], np.float32)
    got = _run(cubin, "clipped", [a.view(np.uint32), length.view(np.uint32)], 1, count)
    assert np.array_equal(got.reshape(-1)[:THREADS].view(np.float32), a[:THREADS] / 8)


@pytest.mark.sweep
def test_many_numbers(cubin: Cubin) -> None:
    for seed in range(16):
        _compare_directed(cubin, 1 << 20, seed)
        _compare_integers(cubin, 1 << 20, seed)
        _compare_long_integers(cubin, 1 << 16, seed)
        _compare_from_integers(cubin, 1 << 20, seed)
