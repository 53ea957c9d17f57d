"""The sixteen programs' launches by both tiers of the emulated device: the same memory afterwards.

One thread runs the blocks of a launch, in the same order in both, so that sums by atomic operations
are the same, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sassxlate.lowering.emulate.options import Isa
from sassxlate.lowering.trace import recording
from sassxlate.lowering.trace.recording import Bytes, Recorded
from tests.lowering.emulate.baseline import ISAS
from tools.generate import programs

PROGRAMS = programs.load_programs()
Run = Callable[..., Any]
Build = Callable[..., Path]


def _digest(pieces: Mapping[int, Bytes]) -> str:
    made = hashlib.blake2b(digest_size=16)
    for base, data in sorted(pieces.items()):
        made.update(f"{base} {len(data)} ".encode())
        made.update(data.tobytes())
    return made.hexdigest()


def _line(launch: Recorded) -> str:
    """What a launch was asked, and what it made of the memory."""
    arguments = hashlib.blake2b(launch.kernarg, digest_size=16).hexdigest()
    asked = f"{launch.kernel} {launch.key} {launch.grid} {launch.block} {launch.shared} {arguments}"
    return f"{asked}: {_digest(launch.before)} {_digest(launch.after)} {launch.fault}"


def _launches(
    run_program: Run, program: Path, arch: int, isa: Isa, tier: str, folder: Path
) -> list[str]:
    (made := folder / tier).mkdir()
    outcome = run_program(
        program,
        PROGRAMS[program.name].sizes["small"],
        options=("--device", "emulator", "--tier", tier),
        environment={
            "SASSXLATE_RECORD": str(made), "SASSXLATE_THREADS": "1", "SASSXLATE_ISA": isa,
            "SASSXLATE_CC": f"{arch // 10}.{arch % 10}",
            "SASSXLATE_CACHE_DIR": str(folder / "cache"), "SASSXLATE_SERVICE_IDLE": "5",
        },
    )  # fmt: skip
    assert outcome.status == 0, outcome.output + outcome.errors
    # No kernel went another way than the tier's.
    assert bool(list((folder / "cache" / "host").rglob("*.sxh"))) == (tier == "llvm")
    return [_line(one) for path in made.glob("launches-*") for one in recording.read(path)]


def _same(run_program: Run, program: Path, arch: int, isa: Isa, folder: Path) -> None:
    copied, compiled = (
        _launches(run_program, program, arch, isa, tier, folder) for tier in ("baseline", "llvm")
    )
    assert copied
    assert copied == compiled


def test_kept_executable(run_program: Run, tmp_path: Path) -> None:
    _same(run_program, programs.PROGRAMS / "saxpy", 80, ISAS[0], tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(
    name: str, arch: int, isa: Isa, run_program: Run, build: Build, tmp_path: Path
) -> None:
    _same(run_program, build(name, [80, 90]), arch, isa, tmp_path)
