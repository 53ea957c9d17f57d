"""Control flow and convergence, translated and run on the emulator against the contracts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.errors import LoweringError
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS, Contract
from tests.lowering.emulated import KERNELS, check, guarded, launch, load, patched, run
from tests.lowering.golden_case import Case, made_of

QUICK = ("lane_flags", "split_warp_sync", "group_votes", "barrier_reduce", "mutual_recursion")
LONG = (
    *("spin_before_work", "spin_backoff", "lock_in_function", "named_barriers", "exit_in_regions"),
    *("divergent_barrier", "function_pointers", "far_breaks", "vote_forms", "divergent_ballot"),
)


@pytest.mark.parametrize("name", QUICK)
def test_strict_mode(name: str) -> None:
    arch = 80 if len(name) % 2 else 90
    check(load(name, arch), name, seed=40, strict=True)


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("name", QUICK + LONG)
def test_strict_mode_all(name: str, arch: int) -> None:
    check(load(name, arch), name, seed=41, strict=True)


@pytest.mark.parametrize("name", ["spin_before_work", "lane_flags", "lock_in_function"])
def test_waves_give_way_at_every_turn(name: str) -> None:
    actual, expected, _ = run(load(name, 80), name, seed=42, fuel=1)
    assert CONTRACTS[name].differences(actual, expected) == []


# --- folding -------------------------------------------------------------------------------------


def test_whole_warp_code_has_no_points() -> None:
    for name in ("shuffle_forms", "uniform_loop", "warp_match"):
        assert translate_kernel(load(name, 90), name).report.waiting_points == 0


def test_plain_barriers_are_the_hardwares() -> None:
    done = translate_kernel(load("dynamic_shared", 80), "dynamic_shared")
    assert "s_barrier" in done.assembly
    assert "s_sleep" not in done.assembly
    assert done.launch.lds_static == done.kernel.shared_size


def test_named_barriers_poll_after_dynamic_shared_memory() -> None:
    done = translate_kernel(load("named_barriers", 80), "named_barriers")
    assert "s_sleep" in done.assembly
    assert done.launch.lds_static > done.kernel.shared_size


# --- guards --------------------------------------------------------------------------------------


@pytest.mark.parametrize("inverted", [False, True])
def test_guarded_bsync(inverted: bool) -> None:
    """Lanes excluded by BSYNC's guard do not wait; nothing in this kernel requires it."""

    def change(ins: Instruction) -> int | None:
        return guarded(ins.word, 0, inverted) if ins.mnemonic == "BSYNC" else None

    cubin = patched(load("divergent_if", 80), change)
    done = check(cubin, "divergent_if")
    ends = [block.last for block in done.cfg.blocks]
    assert any(i.mnemonic == "BSYNC" and i.text.startswith("@") for i in ends)


def test_warpsync_that_no_lane_runs() -> None:
    """The BSYNCs before it have already reconverged the lanes."""

    def change(ins: Instruction) -> int | None:
        return guarded(ins.word, 7, True) if ins.mnemonic == "WARPSYNC" else None

    check(patched(load("far_breaks", 90), change), "far_breaks")


def test_barrier_that_no_lane_reaches() -> None:
    def change(ins: Instruction) -> int | None:
        return guarded(ins.word, 7, True) if ins.mnemonic == "BAR" else None

    cubin = patched(load("dynamic_shared", 80), change)
    actual, _, _ = run(cubin, "dynamic_shared", seed=0)
    assert len(actual) == CONTRACTS["dynamic_shared"].out_words


def _sums(a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]) -> None:
    for first in range(0, grid * block, block):
        x, y = a[first : first + block], b[first : first + block]
        bits = [sum(word & 1 for word in x)]
        bits += [sum(word >> turn & 1 for word in x) for turn in range(n)]
        low = sum(word & 1 for word in y[:64])
        high = sum(word >> 1 & 1 for word in (*y[:32], *y[64:96]))
        for t in range(block):
            more = [low] * (t < 64) + [high] * (t // 32 in (0, 2))
            sums = 0
            for value in (*bits, *more):
                sums = sums * 5 + value & 0xFFFFFFFF
            out[first + t] = sums


@pytest.mark.parametrize("fuel", [10000, 1])
def test_sums_of_barriers_that_are_not_all_reductions(fuel: int, tmp_path: Path) -> None:
    contract = Contract("barrier_sums", _sums, 2, 128, 6, 256)
    path = _build("barrier_sums", 80, tmp_path, "-O3", folder_of_source=Path(__file__).parent)
    actual, _ = launch(parse_cubin(path.read_bytes()), contract, seed=0, fuel=fuel)
    assert contract.differences(actual, contract.expected(*contract.inputs(0))) == []


def test_reduction_with_number_and_count_in_a_register() -> None:
    text = "BAR.RED.POPC R14, R14, !P5 ;\nEXIT ;"
    made = made_of(
        Case(Path("case.sass"), {"arch": "75", "after": "coalesce_copies"}, "", text, "")
    )
    assert "s_bfe_u32" in made


# --- state of barriers ---------------------------------------------------------------------------


def _with_state(number: int) -> int:
    """BMOV of the recursive kernel reads this thread state instead of B6."""
    cubin = patched(
        load("calls", 80),
        lambda i: (
            i.word & ~(0xFF << 24) & ~(1 << 84) | number << 24
            if i.mnemonic == "BMOV" and "CLEAR" in i.modifiers
            else None
        ),
    )
    return translate_kernel(cubin, "calls").report.rdna_instructions


@pytest.mark.parametrize("number", [24, 26])
def test_state_that_is_known(number: int) -> None:
    assert _with_state(number) > 0


@pytest.mark.parametrize("number", [16, 21, 25, 27, 30])
def test_state_of_the_driver_is_refused(number: int) -> None:
    with pytest.raises(LoweringError) as caught:
        _with_state(number)
    assert caught.value.code == "SX0427"
    assert caught.value.where.offset is not None


@pytest.mark.parametrize("form", [0, 8])
def test_other_forms_of_b2r_are_refused(form: int) -> None:
    cubin = patched(
        load("barrier_reduce", 80),
        lambda i: i.word & ~(0xFF << 76) | form << 76 if i.mnemonic == "B2R" else None,
    )
    with pytest.raises(LoweringError) as caught:
        translate_kernel(cubin, "barrier_reduce")
    assert caught.value.code == "SX0426"


def test_result_of_and_as_a_number_is_refused() -> None:
    """The value of B2R for AND and OR in a register was never observed."""
    changed = False

    def change(ins: Instruction) -> int | None:
        nonlocal changed
        if ins.mnemonic != "B2R" or changed or "P" not in ins.text.split(",")[-1]:
            return None
        changed = True
        return ins.word & ~(0xFF << 16) | 9 << 16

    with pytest.raises(LoweringError) as caught:
        translate_kernel(patched(load("barrier_reduce", 80), change), "barrier_reduce")
    assert caught.value.code == "SX0426"


# --- other builds --------------------------------------------------------------------------------


def _sweep(*values: int | str) -> list[Any]:
    """Parameters for the long run only."""
    return [pytest.param(value, marks=pytest.mark.sweep) for value in values]


def _build(
    name: str, arch: int, folder: Path, *flags: str, folder_of_source: Path = KERNELS
) -> Path:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc here")
    out = folder / f"{name}.cubin"
    source = folder_of_source / f"{name}.cu"
    command = [nvcc, *flags, "-std=c++17", f"-I{KERNELS}", "-cubin", f"-arch=sm_{arch}"]
    subprocess.run([*command, str(source), "-o", str(out)], check=True, capture_output=True)
    return out


@pytest.mark.parametrize("arch", [90, *_sweep(80)])
@pytest.mark.parametrize("name", ["function_pointers", *_sweep("lock_in_function", "calls")])
def test_debug_builds(name: str, arch: int, tmp_path: Path) -> None:
    """Functions in sections of their own, called by absolute address; variables by relocations."""
    cubin = parse_cubin(_build(name, arch, tmp_path, "-G").read_bytes())
    assert cubin.functions
    check(cubin, name)


@pytest.mark.parametrize("arch", [80, *_sweep(90)])
@pytest.mark.parametrize("name", ["function_pointers", *_sweep("lock_in_function", "calls")])
def test_separate_compilation(name: str, arch: int, tmp_path: Path) -> None:
    nvlink = shutil.which("nvlink")
    if nvlink is None:
        pytest.skip("there is no nvlink here")
    part = _build(name, arch, tmp_path, "-O3", "-rdc=true")
    whole = tmp_path / "linked.cubin"
    command = [nvlink, f"-arch=sm_{arch}", str(part), "-o", str(whole)]
    subprocess.run(command, check=True, capture_output=True)
    check(parse_cubin(whole.read_bytes()), name)


def _rounds(a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]) -> None:
    xs = a[:n]
    for k in range(2 + (b[0] & 3)):
        xs = [(x * 3 + xs[(i * 7 + 3) % n] + k) & 0xFFFFFFFF for i, x in enumerate(xs)]
    out[:n] = xs


@pytest.mark.parametrize("arch", [80, *_sweep(75, 90, 120)])
def test_grid_synchronisation(arch: int, tmp_path: Path) -> None:
    contract = Contract("grid_sync", _rounds, 5, 64, 320, 320)
    path = _build("grid_sync", arch, tmp_path, "-O3", folder_of_source=Path(__file__).parent)
    cubin = parse_cubin(path.read_bytes())
    actual, done = launch(cubin, contract, seed=0, resident=True)
    assert contract.differences(actual, contract.expected(*contract.inputs(0))) == []
    assert done.kernel.grid_workspace is not None


@pytest.mark.parametrize("arch", [120, *_sweep(75, 100)])
def test_other_architectures(arch: int, tmp_path: Path) -> None:
    cubin = parse_cubin(_build("mutual_recursion", arch, tmp_path, "-O3").read_bytes())
    check(cubin, "mutual_recursion")
