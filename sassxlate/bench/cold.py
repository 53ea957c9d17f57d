"""The first use of a kernel: the baseline tier's speed, what building a kernel of stencils costs,
and runs with an empty cache beside warm ones."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from sassxlate.bench.emulator import LOOPS, LoopWave, turns_for
from sassxlate.bench.figures import Figure, seconds
from sassxlate.bench.translate import SUBJECTS, find
from sassxlate.errors import UsageError
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.emulate.options import Isa
from sassxlate.lowering.emulate.runner import BaselineKernel, LoadedPack
from sassxlate.lowering.emulate.stencils import known, pack
from sassxlate.lowering.pipeline import translate_code
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.service import client, prebuilt

RATE = 3e8  # wave instructions a second in the loop `alu`
BUILD_US = 10.0  # of CPU time, an RDNA3 instruction
MORE_S = 0.7  # a run with an empty cache, more than a warm one
_RUN_LIMIT_S = 120
_BUILDS = 50  # in one measured value, since one takes a tenth of a millisecond


def _alu(fixtures: Path, repeat: int, packs: list[LoadedPack], isa: Isa) -> Iterator[Figure]:
    """The loop `alu` by stencils, and how much faster the compiled one is."""
    code = (fixtures / "bench" / "alu.hsaco").read_bytes()
    (loop,) = (one for one in LOOPS if one.name == "alu")
    copied, compiled = LoopWave(loop, code, isa, packs), LoopWave(loop, code, isa)
    turns = turns_for(copied, 0.1)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(repeat):
        ours.append(turns * loop.turn / copied.run(turns))
        theirs.append(turns * loop.turn / compiled.run(turns))
        if copied.result() != compiled.result():
            raise UsageError("SX0817", "the loop alu's result differs between the tiers")
    yield Figure("alu, baseline: wave-instructions", "1/s", tuple(ours), "more", RATE)
    ratios = tuple(b / a for a, b in zip(ours, theirs, strict=True))
    yield Figure("alu: compiled / baseline", "x", ratios, "less")


def _builds(
    fixtures: Path, repeat: int, packs: list[LoadedPack], isa: Isa, target: Target
) -> Iterator[Figure]:
    """CPU time from a code object to a kernel of stencils that a wave can enter."""
    for subject in SUBJECTS:
        cubin, name = find(fixtures, subject)
        code = read(translate_code(cubin, name, target=target).code_object)
        kernel = code.kernel(name)
        kd = kernel.descriptor
        mode = kd.float_mode | kd.dx10_clamp << 8 | kd.ieee_mode << 9

        def build(text: bytes = code.text, entry: int = kernel.entry, mode: int = mode) -> int:
            built = BaselineKernel(packs, text, entry, mode)
            if built.entry is None and not built.missing:
                raise UsageError("SX0817", f"no code of stencils: {built.why}")
            if built.missing:
                packs.append(LoadedPack(pack.make(built.missing, isa, tables=False).data))
            return built.image.instructions

        build()
        count = build()
        values: list[float] = []
        for _ in range(repeat):
            start = time.process_time()
            for _ in range(_BUILDS):
                build()
            values.append((time.process_time() - start) / _BUILDS / count * 1e6)
        label = f"{subject.kernel}: to a first wave (CPU)"
        yield Figure(label, "us/instruction", tuple(values), "less", BUILD_US, f"{count}")


def _environment(place: Path, isa: Isa) -> dict[str, str]:
    (place / "run").mkdir(mode=0o700)
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith("SASSXLATE_")},
        "SASSXLATE_CACHE_DIR": str(place / "cache"),
        "XDG_RUNTIME_DIR": str(place / "run"),
        "SASSXLATE_SERVICE_IDLE": "60",
        "SASSXLATE_ISA": isa,
        "PYTHONPATH": client.import_root(),
    }


def _run(program: Path, tier: str, target: Target, environment: Mapping[str, str]) -> None:
    command = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator"]
    command += ["--tier", tier, "--target", target.name, "--", str(program)]
    done = subprocess.run(
        command, env=environment, capture_output=True, timeout=_RUN_LIMIT_S, check=False
    )
    if done.returncode or not done.stdout.rstrip().endswith(b"PASS"):
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise UsageError("SX0817", f"{program.name} did not pass: {said[-200:]}")


def _runs(program: Path, repeat: int, tier: str, target: Target, isa: Isa) -> Iterator[Figure]:
    """Wall times of runs with an empty cache and a service that starts, then with a warm one."""
    colds: list[float] = []
    warms: list[float] = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
            run = partial(_run, program, tier, target, _environment(Path(made), isa))
            try:
                colds.append(seconds(run))
                run()
                warms.append(seconds(run))
            finally:
                for socket in (Path(made) / "run").rglob("service-*.sock"):
                    client.call(socket, {"op": "stop"}, timeout=10)
    name = f"{program.name} ({tier}): run,"
    yield Figure(f"{name} cold", "s", tuple(colds))
    yield Figure(f"{name} warm", "s", tuple(warms))
    more = tuple(max(c - w, 1e-3) for c, w in zip(colds, warms, strict=True))
    limit = MORE_S if tier != "llvm" else None
    yield Figure(f"{name} cold less warm", "s", more, "less", limit, pack_note(isa))


def pack_note(isa: Isa) -> str:
    """What makes a cold run take seconds more in a clone whose sources changed since."""
    if prebuilt.read(paths.library_dir(), isa) is not None:
        return ""
    return (
        "each run makes the stencils first: the pack beside the libraries is missing or of other "
        "sources (pip install ., or runtime_shim/native/build.sh in a checkout, makes it)"
    )


def measure(
    fixtures: Path,
    repeat: int,
    isa: Isa,
    tier: str,
    programs: Path | None = None,
    target: Target = DEFAULT,
) -> list[Figure]:
    """The figures; runs are of the executables in `programs`, by default those of fixtures.

    Raises:
        UsageError: SX0817, a result is not as expected.
    """
    packs = [LoadedPack(pack.make(known.known_shapes(), isa).data)]
    figures = [*_alu(fixtures, repeat, packs, isa)]
    figures += _builds(fixtures, repeat, packs, isa, target)
    for program in sorted((programs or fixtures / "programs").iterdir()):
        if program.is_file() and os.access(program, os.X_OK) and not program.suffix:
            figures += _runs(program, repeat, tier, target, isa)
    return figures


__all__ = ["measure", "pack_note"]
