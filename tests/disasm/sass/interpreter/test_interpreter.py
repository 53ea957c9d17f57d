"""The reference interpreter: kernels against their contracts, short cuts against the meanings."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass.interpreter import Launch, Order, ScheduleOptions, run
from sassxlate.disasm.sass.interpreter.lane_domain import Lanes
from sassxlate.domain.interface import FTZ, IEEE, Fp, Round, exponent_bits, mantissa_bits
from sassxlate.domain.numpy_lanes import Vec, Vectors
from sassxlate.errors import InterpretError
from sassxlate.lowering.trace.compare_memory import both_nan
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS
from tests.disasm.sass.interpreter import generated_cuda, launches

SLOW = frozenset("lane_flags spin_before_work spin_backoff lock_in_function".split())
QUICK = sorted(set(CONTRACTS) - SLOW)


def _check(name: str, arch: int, seed: int, order: Order) -> None:
    prepared, contract = launches.of_contract(name, arch, seed)
    actual = prepared.interpreted(ScheduleOptions(order, limit=3_000_000))
    assert contract.differences(actual, contract.expected(*contract.inputs(seed))) == []


@pytest.mark.parametrize("name", QUICK)
def test_kernel(name: str) -> None:
    _check(name, 90, 0, Order.TOGETHER)


@pytest.mark.parametrize("name", ["shared_atomics", "jump_table", "warp_match"])
def test_kernel_of_a_later_architecture(name: str) -> None:
    _check(name, 120, 0, Order.TOGETHER)


@pytest.mark.sweep
@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("arch", [80, 90, 120])
@pytest.mark.parametrize("name", CONTRACTS)
def test_kernel_in_every_order(name: str, arch: int, order: Order) -> None:
    for seed in range(2):
        _check(name, arch, seed, order)


# --- random control flow -------------------------------------------------------------------------


def _agree(seed: int, arch: int) -> None:
    prepared = launches.of_seed(seed, arch)
    expected = prepared.interpreted()
    for order in (Order.WARPS, Order.REVERSED):
        other = prepared.interpreted(ScheduleOptions(order, limit=3_000_000))
        assert np.flatnonzero(other != expected).tolist() == [], order
    assert np.flatnonzero(prepared.translated() != expected).tolist() == []


@pytest.mark.parametrize(("seed", "arch"), [(2, 90), (7, 80)])
def test_random_control_flow(seed: int, arch: int) -> None:
    _agree(seed, arch)


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("seed", range(100))
def test_more_random_control_flow(seed: int, arch: int) -> None:
    _agree(seed, arch)


# --- random CUDA ---------------------------------------------------------------------------------


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("seed", range(12))
def test_random_cuda(seed: int, arch: int, tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    source, made = tmp_path / "fuzz.cu", tmp_path / "fuzz.cubin"
    source.write_text(generated_cuda.source(seed, 3))
    flags = ["-O3", "-std=c++17", f"-arch=sm_{arch}", "-cubin"]
    subprocess.run([nvcc, *flags, source, "-o", made], check=True, capture_output=True)
    cubin = parse_cubin(made.read_bytes())
    rng = np.random.default_rng(seed)
    threads = 3 * 96
    words = [rng.integers(0, 1 << 32, threads, dtype=np.uint32) for _ in range(2)]
    words[0] >>= rng.choice(np.array([0, 0, 5, 20, 28], np.uint32), threads)
    out = np.full(threads * generated_cuda.WORDS, 7, np.uint32)
    for kernel in cubin.kernels:
        prepared = launches.Prepared(
            cubin, kernel.name, (3, 1, 1), (96, 1, 1), (words[0], words[1], out), threads
        )
        ours, theirs = prepared.interpreted(), prepared.translated()
        different = np.flatnonzero(ours != theirs)
        wrong = different[~both_nan(ours, theirs, different)]
        assert wrong.tolist() == [], kernel.name


# --- what goes wrong -----------------------------------------------------------------------------

_EXIT = "EXIT ;"


def _launch(text: str, block: int = 32) -> Launch:
    code = launches.assembled(text, 90)
    return Launch("k", 90, code, (1, 1, 1), (block, 1, 1), {0: bytes(0x400)}, shared=64)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("SX0212", f"LDG.E R4, [RZ+0x10] ;\n{_EXIT}"),
        ("SX0212", f"LDS R4, [0x40] ;\n{_EXIT}"),
        ("SX0213", f"LDS R4, [0x2] ;\n{_EXIT}"),
        ("SX0211", f"S2R R4, SR_SMEMSZ ;\n{_EXIT}"),
        ("SX0214", f"S2R R4, SR_LANEID ;\nISETP.EQ.AND P0, PT, R4, RZ, PT ;\n@P0 BRA `(.L) ;\n"
                   f"WARPSYNC.ALL ;\n{_EXIT}\n.L:\nBAR.SYNC 0x0 ;\n{_EXIT}"),
        ("SX0214", f"S2R R4, SR_LANEID ;\nISETP.EQ.AND P0, PT, R4, RZ, PT ;\n@P0 BRA `(.L) ;\n"
                   f"WARPSYNC.ALL ;\n{_EXIT}\n.L:\nWARPSYNC.ALL ;\n{_EXIT}"),  # as an H200
        ("SX0215", ".L:\nBRA `(.L) ;"),
        ("SX0216", f"BPT.TRAP 0x1 ;\n{_EXIT}"),
        ("SX0217", "NOP ;"),
    ],
)  # fmt: skip
def test_error(code: str, text: str) -> None:
    with pytest.raises(InterpretError) as raised:
        run(
            _launch(text.replace("[RZ+0x10]", "desc[UR4][RZ.64+0x10]")),
            ScheduleOptions(limit=10_000),
        )
    assert raised.value.code == code, raised.value
    assert raised.value.where.kernel == "k"
    assert raised.value.where.offset is not None


@pytest.mark.parametrize(
    "text", ["UBLKPF.L2 [UR4], UR8", "UTMACMDFLUSH", "USETMAXREG.DEALLOC.CTAPOOL 0x28",
             "NANOSLEEP 0x20", "CCTLL.PF1 [R2]"],
)  # fmt: skip
def test_what_leaves_nothing_to_see(text: str) -> None:
    """Prefetches, the order of copies (done at once) and registers that a warp gives back."""
    run(_launch(f"{text} ;\nEXIT ;"))


def test_shape_that_cannot_be() -> None:
    with pytest.raises(InterpretError, match="SX0218"):
        run(replace(_launch(_EXIT), block=(2048, 1, 1)))


# --- short cuts ----------------------------------------------------------------------------------


def _numbers(rng: np.random.Generator, count: int, w: int, normal: bool) -> Vec:
    """Patterns of floats: any, moderate ones, few bits of mantissa, and the corners."""
    m, e = mantissa_bits(w), exponent_bits(w)
    raw = rng.integers(0, 1 << 64, count, dtype=np.uint64) >> np.uint64(64 - w)
    middle = np.uint64((1 << (e - 1)) - 21) + rng.integers(0, 40, count).astype(np.uint64)
    moderate = raw & np.uint64((1 << m) - 1 | 1 << (w - 1)) | middle << np.uint64(m)
    raw = np.where(rng.random(count) < 0.6, moderate, raw)
    raw = np.where(rng.random(count) < 0.4, raw & ~np.uint64((1 << (m - 6)) - 1), raw)
    top = ((1 << e) - 1) << m
    corners = np.array([0, 1 << (w - 1), 1, top, top | 1 << (m - 1), 1 << m], np.uint64)
    raw = np.where(rng.random(count) < 0.05, rng.choice(corners, count), raw)
    if normal:  # short cuts are taken where nothing can be flushed
        zero = raw >> np.uint64(m) & np.uint64((1 << e) - 1) == 0
        raw = np.where(zero, np.uint64(1 << (w - 2)), raw)
    return Vec(raw, w)


@pytest.mark.parametrize("normal", [False, True])
@pytest.mark.parametrize("w", [32, 64])
def test_short_cuts_are_what_the_meanings_say(w: int, normal: bool) -> None:
    rng = np.random.default_rng([w, normal])
    quick, slow = Lanes(), Vectors()
    for fp in (IEEE, FTZ, Fp(Round.UP), Fp(Round.DOWN, True, True), Fp(flush_out=True)):
        a, b, c = (_numbers(rng, 3000, w, normal) for _ in range(3))
        assert np.array_equal(quick.fadd(a, b, fp).v, slow.fadd(a, b, fp).v), fp
        assert np.array_equal(quick.fmul(a, b, fp).v, slow.fmul(a, b, fp).v), fp
        assert np.array_equal(quick.ffma(a, b, c, fp).v, slow.ffma(a, b, c, fp).v), fp
