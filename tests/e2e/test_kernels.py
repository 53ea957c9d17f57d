"""The kept cubins of ``fixtures/kernels`` on the emulated device, against their contracts.

Needs no nvcc: the cubins are launched through the driver API by a small C++ program.
"""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS

ROOT = Path(__file__).resolve().parents[2]

KERNELS = ROOT / "fixtures" / "kernels"
ARCHS = (80, 90, 120)
Run = Callable[..., Any]
Launch = Callable[..., Any]


@pytest.fixture(scope="session")
def runner(gxx: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that launches kernels."""
    path = tmp_path_factory.mktemp("runner") / "kernel_runner"
    gxx("-O1", "-std=c++17", Path(__file__).parent / "kernel_runner.cpp", "-o", path, "-ldl")
    return path


def _launch(
    folder: Path, names: Sequence[str], arch: int, seeds: Sequence[int], run: Launch
) -> Any:
    """Launches kernels one after another in one process; inputs and outputs lie in ``folder``."""
    lines: list[str] = []
    for name in names:
        contract = CONTRACTS[name]
        cubin = KERNELS / f"sm_{arch}" / f"{name}.cubin"
        for seed in seeds:
            files = [folder / f"{name}.{seed}.{part}" for part in ("a", "b", "out")]
            for words, file in zip(contract.inputs(seed), files[:2], strict=True):
                words.tofile(file)
            numbers = (contract.grid, contract.block, contract.shared_bytes)
            numbers += (contract.n, contract.start, contract.out_words)
            lines.append(" ".join(map(str, (cubin, name, *numbers, *files))))
    return run(stdin="\n".join(lines), environment={"SASSXLATE_CC": str(arch)})


def _compare(folder: Path, name: str, seeds: Sequence[int]) -> None:
    contract = CONTRACTS[name]
    for seed in seeds:
        actual = np.fromfile(folder / f"{name}.{seed}.out", dtype=np.uint32)
        expected = contract.expected(*contract.inputs(seed))
        wrong = contract.differences(actual, expected)
        shown = [f"{i}: {actual[i]:#010x}, not {expected[i]:#010x}" for i in wrong[:8]]
        assert not wrong, f"seed {seed}: {len(wrong)} words differ: {shown}"


@dataclass(frozen=True, slots=True)
class Launcher:
    """Runs kernels: all of a kind in one process, and where that fails, each in one of its own, so
    that the test of the kernel that is at fault fails alone."""

    runner: Path
    run: Run
    folder: Path
    done: dict[tuple[object, ...], Path | None] = field(
        default_factory=dict[tuple[object, ...], Path | None]
    )

    def check(self, name: str, arch: int, seeds: Sequence[int], strict_seed: int = 0) -> None:
        """Compares what a kernel wrote with its contract."""
        key = (arch, tuple(seeds), strict_seed)
        if key not in self.done:
            self.done[key] = self._all_of_a_kind(arch, seeds, strict_seed)
        folder = self.done[key]
        if folder is None or name not in _together(arch, strict_seed):
            folder = self.alone(name, arch, seeds, strict_seed)
        _compare(folder, name, seeds)

    def alone(self, name: str, arch: int, seeds: Sequence[int], strict_seed: int = 0) -> Path:
        """The folder of what one kernel wrote, launched in a process of its own."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        outcome = _launch(folder, [name], arch, seeds, self._how(strict_seed, 120.0))
        assert outcome.status == 0, f"{outcome.output}\n{outcome.errors}"
        return folder

    def _all_of_a_kind(self, arch: int, seeds: Sequence[int], strict_seed: int) -> Path | None:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        names = _together(arch, strict_seed)
        try:
            outcome = _launch(folder, names, arch, seeds, self._how(strict_seed, 600.0))
        except subprocess.TimeoutExpired:
            return None
        return folder if outcome.status == 0 else None

    def _how(self, strict_seed: int, time_limit: float) -> Launch:
        options = ["--strict", "--seed", str(strict_seed)] if strict_seed else []
        return functools.partial(self.run, self.runner, options=options, time_limit=time_limit)


@pytest.fixture(scope="module")
def launcher(runner: Path, run_program: Run, tmp_path_factory: pytest.TempPathFactory) -> Launcher:
    """Launches the kernels of a kind at the first test that needs one."""
    return Launcher(runner, run_program, tmp_path_factory.mktemp("launched"))


def _turn(name: str) -> tuple[int, int, int]:
    """Of a kernel, in turn: the architecture without options, that of strict mode, and the seed of
    strict mode.  The sweep has all the others."""
    number = list(CONTRACTS).index(name)
    return ARCHS[(number + 1) % 3], ARCHS[number % 3], 1 + number // 3 % 2


def _together(arch: int, strict_seed: int) -> list[str]:
    """The kernels that one process launches."""
    kind = (arch, strict_seed)
    turns = {name: _turn(name) for name in CONTRACTS}
    return [n for n, (plain, strict, seed) in turns.items() if kind in ((plain, 0), (strict, seed))]


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


@pytest.mark.parametrize("name", CONTRACTS)
def test_kernel(name: str, launcher: Launcher) -> None:
    launcher.check(name, _turn(name)[0], range(2))


@pytest.mark.parametrize("name", CONTRACTS)
def test_kernel_strict(name: str, launcher: Launcher) -> None:
    _, arch, seed = _turn(name)
    launcher.check(name, arch, [seed], strict_seed=seed)


@pytest.mark.parametrize("strict_seed", [0, 1])
def test_a_kernel_alone(strict_seed: int, launcher: Launcher) -> None:
    """As where a process with several kernels fails."""
    _compare(launcher.alone("calls", 90, [3], strict_seed), "calls", [3])


@pytest.mark.sweep
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", CONTRACTS)
def test_kernel_strict_everywhere(name: str, arch: int, launcher: Launcher) -> None:
    for seed in (1, 2):
        _compare(launcher.alone(name, arch, [seed], seed), name, [seed])


@pytest.mark.sweep
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", CONTRACTS)
def test_kernel_seeds(name: str, arch: int, launcher: Launcher) -> None:
    seeds = range(30)
    _compare(launcher.alone(name, arch, seeds), name, seeds)
