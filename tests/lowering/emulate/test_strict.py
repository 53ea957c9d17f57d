"""Strict mode: early uses are found, awaited ones are not, registers and results vary."""

from __future__ import annotations

import math
import random
import shutil
import struct
from fractions import Fraction

import pytest

from sassxlate.cfg import rdna3_flow
from sassxlate.disasm.rdna3 import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, S, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.codeobject import source_map
from sassxlate.lowering.emulate import strict_hazards
from sassxlate.lowering.emulate.options import CompileOptions, Isa, host_isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object

from .baseline import each_with_an_isa
from .strict_programs import (
    DEFINED,
    KERNEL,
    RULES,
    SOUND,
    UNDEFINED,
    VALU_DONE,
    Rule,
    Undefined,
    code_object,
    load,
    offset_of,
    store,
    store_at,
    wait,
    wide_sum,
)

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="no C++ compiler for the runner"
)


def run(body: tuple[Item, ...], *, checked: bool, data: bytes = bytes(4096), seed: int = 0,
        isa: Isa | None = None) -> bytes:  # fmt: skip
    """The buffer after a launch of 64 lanes."""
    device = EmulatedDevice(1 << 16)
    buffer = device.alloc(data)
    run_code_object(
        code_object(body)[0], KERNEL, 1, 64, struct.pack("<Q", buffer), device,
        CompileOptions(strict=checked, isa=isa, opt=0), strict_seed=seed,
    )  # fmt: skip
    return device.read(buffer, len(data))


@needs_compiler
@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_a_broken_rule_is_found(rule: Rule) -> None:
    run(rule.body, checked=True)
    run(rule.broken, checked=False)
    with pytest.raises(EmulatorError) as caught:
        run(rule.broken, checked=True)
    assert caught.value.where.offset == offset_of(rule.broken, rule.at)
    assert caught.value.where.kernel == KERNEL
    assert rule.text in caught.value.message
    assert "strict fault in workgroup 0, wave 0, lane 0" in caught.value.message


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_a_finding_names_its_source(rule: Rule) -> None:
    found = strict_hazards.findings(
        rdna3_flow.discover(assemble([*rule.broken, Inst("s_endpgm")]).data, 0)
    )
    assert {f.check for f in found} == {rule.check}
    assert strict_hazards.describe(found[0].code(0)) == str(found[0])


@pytest.mark.parametrize("name", SOUND)
def test_what_is_sound_is_not_blamed(name: str) -> None:
    code = assemble([*SOUND[name], Inst("s_endpgm")]).data
    assert strict_hazards.findings(rdna3_flow.discover(code, 0)) == []


def test_matrix_multiplies_and_wide_multiply_adds() -> None:
    first = Inst("v_wmma_f32_16x16x16_f16", (V(0, 8), V(8, 8), V(16, 8), V(0, 8)))
    again = Inst("v_wmma_f32_16x16x16_f16", (V(24, 8), V(4, 8), V(16, 8), V(24, 8)))
    mad = Inst("v_mad_u64_u32", (V(0, 2), S(4), V(1), V(4), V(6, 2)))
    for body, checks in (
        ([first, again], [strict_hazards.Check.MATRIX]),
        ([first, Inst("v_nop"), again], []),
        ([mad], [strict_hazards.Check.MAD]),
    ):
        program = assemble([*body, Inst("s_endpgm")])
        found = strict_hazards.findings(rdna3_flow.discover(program.data, 0))
        assert [f.check for f in found] == checks


def test_the_first_active_lane_is_named() -> None:
    from sassxlate.disasm.rdna3.instruction import Sp

    body = (Inst("s_mov_b32", (Sp("exec_lo"), I(0xFF00))), load(2), store(2))
    with pytest.raises(EmulatorError, match="lane 8: v2 is used"):
        run(body, checked=True)


@needs_compiler
@pytest.mark.parametrize(
    ("case", "isa"),
    each_with_an_isa(((case,) for case in UNDEFINED), ("avx2", None)),
    ids=lambda value: getattr(value, "name", value),
)
def test_what_is_undefined_decides_nothing(case: Undefined, isa: Isa | None) -> None:
    run((case.definition, *case.body), checked=True, isa=isa)
    text = f"lane {case.lane}: an undefined value in {case.what} decides"
    with pytest.raises(EmulatorError, match=text):
        run(case.body, checked=True, isa=isa)


@needs_compiler
def test_an_overwritten_half_of_an_addend_is_lost() -> None:
    """v22 holds the high half of the addend, and gets the low half of the result."""
    sum_ = (*(Inst("v_mov_b32", (V(n), I(n - 20))) for n in (21, 22)), wide_sum(22))
    assert struct.unpack("<I", run((*sum_, store(22)), checked=True)[:4]) == (1,)
    assert struct.unpack("<I", run((*sum_, store(23)), checked=True)[:4]) != (2,)
    with pytest.raises(EmulatorError, match="an undefined value in v23 decides"):
        run((*sum_, store_at(23)), checked=True)


@needs_compiler
@pytest.mark.parametrize("name", DEFINED)
def test_what_is_undefined_may_be_about(name: str) -> None:
    for seed in (1, 2):
        run(DEFINED[name], checked=True, seed=seed)


# --- registers ---------------------------------------------------------------------------------


@needs_compiler
def test_registers_begin_with_rubbish_of_the_seed() -> None:
    body = (store(21), store(22, 256), Inst("v_mov_b32", (V(6), S(77))), store(6, 512))
    seen = {seed: run(body, checked=True, seed=seed) for seed in (1, 2)}
    assert run(body, checked=True, seed=1) == seen[1]
    assert seen[1] != seen[2]
    words = struct.unpack("<32I", seen[1][:128])
    assert len(set(words)) == 32
    assert 0 not in words
    assert run(body, checked=False)[:256] == bytes(256)


# --- approximations ----------------------------------------------------------------------------

FUNCTIONS = ("rcp", "rsq", "sqrt", "exp", "log", "sin", "cos")


def _true(function: str, x: float) -> float:
    """The function in binary64, accurate enough for binary32's ulps."""
    if function == "rcp":
        return 1 / x
    if function == "rsq":
        return 1 / math.sqrt(x)
    if function == "exp":
        return float(2.0**x)
    if function == "log":
        return math.log2(x)
    if function == "sqrt":
        return math.sqrt(x)
    turn = 2 * math.pi * x
    return math.sin(turn) if function == "sin" else math.cos(turn)


def _approximate(function: str, width: int, data: bytes, seed: int, isa: Isa) -> bytes:
    """The function's results for 64 lanes of arguments (for 16 bits: one in a dword)."""
    n = 2 if width == 64 else 1
    body: list[Item] = [load(10 + i, 256 * i) for i in range(n)]
    body += [wait(vm=0), Inst(f"v_{function}_f{width}", (V(20, n), V(10, n)))]
    body += [VALU_DONE, *(store(20 + i, 1024 + 256 * i) for i in range(n))]
    out = run(tuple(body), checked=True, data=data + bytes(4096 - len(data)), seed=seed, isa=isa)
    return out[1024 : 1024 + 256 * n]


@needs_compiler
@pytest.mark.parametrize("function", FUNCTIONS)
def test_binary32_errs_by_less_than_an_ulp(function: str) -> None:
    rng = random.Random(function)
    data = struct.pack("<64f", *(rng.uniform(0.01, 0.49) for _ in range(64)))
    arguments = struct.unpack("<64f", data)
    seen: set[bytes] = set()
    for seed in (1, 2, 3):
        raw = _approximate(function, 32, data, seed, host_isa())
        seen.add(raw)
        for x, y in zip(arguments, struct.unpack("<64f", raw), strict=True):
            true = _true(function, x)
            bits = struct.unpack("<I", struct.pack("<f", abs(y)))[0]
            ulp = Fraction(2) ** (max(bits >> 23, 1) - 150)
            assert abs(Fraction(y) - Fraction(true)) < ulp * Fraction(100001, 100000), (x, y, seed)
    assert len(seen) == 3


@needs_compiler
def test_binary64_errs_by_at_most_2_to_the_29_ulps() -> None:
    rng = random.Random(64)
    for function in ("rcp", "rsq", "sqrt"):
        arguments = [rng.uniform(0.01, 100) for _ in range(64)]
        words = [struct.unpack("<2I", struct.pack("<d", x)) for x in arguments]
        data = struct.pack("<64I64I", *(w[0] for w in words), *(w[1] for w in words))
        far = 0.0
        for seed in (1, 2):
            raw = struct.unpack("<128I", _approximate(function, 64, data, seed, host_isa()))
            for i, x in enumerate(arguments):
                (y,) = struct.unpack("<d", struct.pack("<2I", raw[i], raw[64 + i]))
                far = max(far, abs(y - _true(function, x)) / math.ulp(y))
        assert 2**26 < far < 2**29 + 2


@needs_compiler
def test_binary16_errs_only_near_the_middle_of_two_numbers() -> None:
    arguments = [struct.unpack("<e", struct.pack("<H", 0x3800 + 37 * i))[0] for i in range(64)]
    data = b"".join(struct.pack("<eH", x, 0) for x in arguments)
    for seed in (1, 2):
        raw = _approximate("rcp", 16, data, seed, host_isa())
        for i, x in enumerate(arguments):
            (y,) = struct.unpack_from("<e", raw, 4 * i)
            ulp = Fraction(2) ** (math.frexp(y)[1] - 11)
            assert abs(Fraction(y) - 1 / Fraction(x)) <= ulp * Fraction(51, 100)


@needs_compiler
@pytest.mark.parametrize(
    ("function", "pairs"),
    [
        ("rcp", [(0x3F800000, 0x3F800000), (0xC0000000, 0xBF000000), (0, 0x7F800000),
                 (0x80000000, 0xFF800000), (0x7F800000, 0), (0xFF800000, 0x80000000)]),
        ("rsq", [(0x40800000, 0x3F000000), (0, 0x7F800000), (0x7F800000, 0)]),
        ("sqrt", [(0x40800000, 0x40000000), (0, 0), (0x80000000, 0x80000000),
                  (0x7F800000, 0x7F800000)]),
        ("exp", [(0, 0x3F800000), (0x80000000, 0x3F800000), (0x3F800000, 0x40000000),
                 (0xFF800000, 0), (0x7F800000, 0x7F800000)]),
        ("log", [(0x3F800000, 0), (0x40000000, 0x3F800000), (0, 0xFF800000),
                 (0x7F800000, 0x7F800000)]),
        ("sin", [(0, 0), (0x3E800000, 0x3F800000), (0xBE800000, 0xBF800000)]),
        ("cos", [(0, 0x3F800000), (0x3F000000, 0xBF800000)]),
    ],
)  # fmt: skip
def test_special_cases_stay_exact(function: str, pairs: list[tuple[int, int]]) -> None:
    for seed in range(1, 9):
        data = struct.pack("<64I", *(pairs[i % len(pairs)][0] for i in range(64)))
        raw = struct.unpack("<64I", _approximate(function, 32, data, seed, host_isa()))
        assert raw == tuple(pairs[i % len(pairs)][1] for i in range(64))
    nans = struct.unpack("<64f", _approximate(function, 32, b"\0\0\xc0\x7f" * 64, 5, host_isa()))
    assert all(map(math.isnan, nans))


@needs_compiler
def test_what_is_taken_for_uniform_is() -> None:
    first = Inst("v_readfirstlane_b32", (S(20), V(5)))
    for value, wrong in ((V(1), True), (S(2), False)):
        body = (Inst("v_mov_b32", (V(5), value)), first)
        at = offset_of(body, 1)
        data = code_object(body, uniform=(at,))[0]
        assert source_map.offsets(source_map.find(data), KERNEL, "uniform") == {at}
        device = EmulatedDevice(1 << 16)
        buffer = struct.pack("<Q", device.alloc(4096))
        run_code_object(data, KERNEL, 1, 64, buffer, device, CompileOptions(strict=False))
        if not wrong:
            run_code_object(data, KERNEL, 1, 64, buffer, device, CompileOptions(strict=True))
            continue
        with pytest.raises(EmulatorError, match="lane 1: v5 is assumed equal") as caught:
            run_code_object(data, KERNEL, 1, 64, buffer, device, CompileOptions(strict=True))
        assert caught.value.where.offset == at
