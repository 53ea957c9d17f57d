"""The kept cubins of ``fixtures/kernels`` on the emulated device, against their contracts.

Needs no nvcc: the cubins are launched through the driver API by a small C++ program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS

ROOT = Path(__file__).resolve().parents[2]

KERNELS = ROOT / "fixtures" / "kernels"
Run = Callable[..., Any]


@pytest.fixture(scope="session")
def runner(gxx: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that launches kernels."""
    path = tmp_path_factory.mktemp("runner") / "kernel_runner"
    gxx("-O1", "-std=c++17", Path(__file__).parent / "kernel_runner.cpp", "-o", path, "-ldl")
    return path


def _check(name: str, arch: int, seeds: range, runner: Path, run: Run, folder: Path) -> None:
    contract = CONTRACTS[name]
    cubin = KERNELS / f"sm_{arch}" / f"{name}.cubin"
    lines: list[str] = []
    for seed in seeds:
        files = [folder / f"{seed}.{part}" for part in ("a", "b", "out")]
        for words, file in zip(contract.inputs(seed), files[:2], strict=True):
            words.tofile(file)
        numbers = (contract.grid, contract.block, contract.shared_bytes)
        numbers += (contract.n, contract.start, contract.out_words)
        lines.append(" ".join(map(str, (cubin, name, *numbers, *files))))
    outcome = run(
        runner, stdin="\n".join(lines), environment={"SASSXLATE_CC": str(arch)}, time_limit=60.0
    )
    assert outcome.status == 0, f"{outcome.output}\n{outcome.errors}"
    for seed in seeds:
        actual = np.fromfile(folder / f"{seed}.out", dtype=np.uint32)
        expected = contract.expected(*contract.inputs(seed))
        wrong = contract.differences(actual, expected)
        shown = [f"{i}: {actual[i]:#010x}, not {expected[i]:#010x}" for i in wrong[:8]]
        assert not wrong, f"seed {seed}: {len(wrong)} words differ: {shown}"


def test_every_kernel_has_a_contract() -> None:
    assert {path.stem for path in KERNELS.glob("*.cu")} == set(CONTRACTS)


def test_contracts_see_differences() -> None:
    for contract in CONTRACTS.values():
        expected = contract.expected(*contract.inputs(0))
        assert contract.differences(expected, expected) == []
        changed = np.where(expected == contract.start, expected, expected ^ 1)
        assert contract.differences(changed, expected), contract.name
        untouched = np.full_like(expected, contract.start)
        assert contract.differences(untouched, expected), contract.name


@pytest.mark.parametrize("arch", [80, 90, 120])
@pytest.mark.parametrize("name", CONTRACTS)
def test_kernel(name: str, arch: int, runner: Path, run_program: Run, tmp_path: Path) -> None:
    _check(name, arch, range(2), runner, run_program, tmp_path)


@pytest.mark.parametrize("arch", [80, 90, 120])
@pytest.mark.parametrize("name", CONTRACTS)
def test_kernel_strict(
    name: str, arch: int, runner: Path, run_program: Run, tmp_path: Path
) -> None:
    for seed in (1, 2):
        run = functools.partial(run_program, options=["--strict", "--seed", str(seed)])
        _check(name, arch, range(seed, seed + 1), runner, run, tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90, 120])
@pytest.mark.parametrize("name", CONTRACTS)
def test_kernel_seeds(name: str, arch: int, runner: Path, run_program: Run, tmp_path: Path) -> None:
    _check(name, arch, range(2, 30), runner, run_program, tmp_path)
