"""Strict mode over the sixteen programs: every seed passes, and what is left out is found."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sassxlate.cfg.rdna3_flow import discover
from sassxlate.lowering.codeobject import source_map
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.emulate import strict_hazards
from sassxlate.runtime_shim.cache.store import SEAL_SIZE, seal
from tools.generate import programs

ROOT = Path(__file__).resolve().parents[2]


PROGRAMS = programs.load_programs()
CASES = [(name, size) for name, program in PROGRAMS.items() for size in program.sizes]
KEPT = sorted(path.name.split(".")[0] for path in programs.PROGRAMS.glob("*.provenance.toml"))
WAITS = ("s_waitcnt", "s_waitcnt_vscnt", "s_waitcnt_depctr")
NOP = 0xBF800000  # s_nop 0
MUTANTS = 6  # a kernel
Run = Callable[..., Any]
Build = Callable[..., Path]


def _strict(
    run: Run, executable: Path, name: str, size: str, seed: int, arch: int, **environment: str
) -> Any:
    return run(
        executable,
        PROGRAMS[name].sizes[size],
        options=["--strict", "--seed", str(seed)],
        environment={"SASSXLATE_CC": f"{arch // 10}.{arch % 10}", **environment},
    )


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(n, id=name, marks=[] if n // 4 % 2 == 0 else [pytest.mark.sweep])
        for n, name in enumerate(PROGRAMS)
    ],
)
def test_a_seed(number: int, run_program: Run, build: Build) -> None:
    """One architecture and one seed for each program, in turn; half of the programs are the
    sweep's, which has all seeds of all."""
    name, arch, seed = list(PROGRAMS)[number], (80, 90)[number % 2], 1 + number // 2 % 2
    executable = build(name, [80, 90])
    # Outputs in bits are of exact approximations; floats lie within their tolerance.
    _strict(run_program, executable, name, "small", seed, arch).check(name, "small", arch=None)


@pytest.mark.parametrize(
    ("number", "seed"),
    [
        pytest.param(n, seed, marks=[] if n % 2 == seed - 1 else [pytest.mark.sweep])
        for n in range(len(KEPT))
        for seed in (1, 2)
    ],
)
def test_kept_executables(number: int, seed: int, run_program: Run) -> None:
    name = KEPT[number]
    outcome = run_program(programs.PROGRAMS / name, options=["--strict", "--seed", str(seed)])
    outcome.check(name, "small", arch=None)


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize(("name", "size"), CASES)
def test_twenty_seeds(name: str, size: str, arch: int, run_program: Run, build: Build) -> None:
    executable = build(name, [80, 90])
    passed = 0
    for seed in range(20):
        _strict(run_program, executable, name, size, seed, arch).check(name, size, arch=None)
        passed += 1
    print(f"{name} sm_{arch} {size}: {passed} of 20 seeds passed")


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [75, 80, 86, 89, 90, 120])
@pytest.mark.parametrize("name", PROGRAMS)
def test_twenty_seeds_of_the_optimising_tier(
    name: str, arch: int, run_program: Run, build: Build
) -> None:
    """All seeds are run, and those that fail are named."""
    executable = build(name, [arch])
    failed: dict[int, str] = {}
    for seed in range(20):
        options = ["--engine", "llvm", "--strict", "--seed", str(seed)]
        done = run_program(executable, PROGRAMS[name].sizes["small"], options=options)
        try:
            done.check(name, "small", arch=None)
        except AssertionError:
            failed[seed] = done.errors.splitlines()[-1] if done.errors else done.output[-200:]
    print(f"{name} sm_{arch}: {20 - len(failed)} of 20 seeds passed by the optimising tier")
    assert not failed


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("name", PROGRAMS)
def test_left_out_waits(
    name: str, arch: int, run_program: Run, build: Build, tmp_path: Path
) -> None:
    """Waits are taken out of the cached code objects; the program fails where it gets there."""
    executable = build(name, [80, 90])

    def run() -> Any:
        cache = {"SASSXLATE_CACHE_DIR": str(tmp_path)}
        return _strict(run_program, executable, name, "small", 1, arch, **cache)

    assert run().status == 0
    counts: Counter[str] = Counter()
    for file in sorted(tmp_path.glob("kernel/*/*.hsaco")):
        kept = file.read_bytes()
        whole = kept[:-SEAL_SIZE]
        code = read(whole)
        start = whole.index(code.text)
        flow = discover(code.text, code.kernels[0].entry)
        steps = [s for b in flow.blocks.values() for s in b.steps if s.inst.op in WAITS]
        for step in random.Random(file.name).sample(steps, min(MUTANTS, len(steps))):
            mutant = bytearray(whole)
            struct.pack_into("<I", mutant, start + step.pc, NOP)
            file.write_bytes(seal(file.name, bytes(mutant)))
            entry, name_ = code.kernels[0].entry, code.kernels[0].name
            fences = source_map.offsets(source_map.find(whole), name_, "fence")
            found = strict_hazards.findings(discover(read(bytes(mutant)).text, entry), fences)
            outcome = run()
            places = {f"/*{f.pc - entry:04x}*/" for f in found}
            counts["waits"] += 1
            if outcome.status == 0:
                # Superfluous, or the program never gets to what needs it.
                counts["superfluous" if not found else "not reached"] += 1
                continue
            line = next(t for t in outcome.errors.splitlines() if "SX0667" in t)
            assert any(place in line for place in places), (line, found)
            counts["found"] += 1
            counts["of a SASS instruction"] += "from SASS" in line  # not of the kernel's set-up
        file.write_bytes(kept)
    print(f"{name} sm_{arch}: {dict(counts)}")
    assert counts["found"] > 0
    assert counts["of a SASS instruction"] > 0


def test_strict_is_the_emulated_devices(run_program: Run) -> None:
    for options in (["--strict", "--device", "hip"], ["--seed", "1"]):
        outcome = run_program(Path("/bin/true"), options=options)
        assert outcome.status == 2
        assert "SX0719" in outcome.errors
    largest = ["--strict", "--seed", str(2**63 - 1)]
    assert run_program(Path("/bin/true"), options=largest).status == 0
