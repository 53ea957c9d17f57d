"""Compares our code with clang's per kernel: instructions in the code, and instructions executed by
a launch."""

from __future__ import annotations

import math
import re
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sassxlate.bench.codegen import build as builds
from sassxlate.cfg.rdna3_flow import Flow
from sassxlate.disasm.containers import load
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.rdna3 import reads, writes
from sassxlate.errors import UsageError
from sassxlate.llm.engine.choose import TIER
from sassxlate.lowering.emulate import counts
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.lowering.tier.report import chosen
from sassxlate.lowering.trace import device_memory
from sassxlate.lowering.trace.recording import Recorded
from sassxlate.runtime_shim.replay import replay

TARGET, EXPLAIN = 1.8, 3.0  # limits of the dynamic ratio: the mean, and one kernel


@dataclass(frozen=True, slots=True)
class Side:
    """One compiler's code of a kernel; counts are by class."""

    static: Mapping[str, int]
    dynamic: Mapping[str, int]
    vgprs: int
    sgprs: int
    target: Target = DEFAULT

    @property
    def occupancy(self) -> int:
        """Waves that a SIMD holds by registers."""
        return self.target.waves_of_simd(self.vgprs)

    def total(self, *, dynamic: bool) -> int:
        """Instructions except hints, which cost no issue slot."""
        numbers = self.dynamic if dynamic else self.static
        return sum(n for name, n in numbers.items() if name != "hint")

    def as_dict(self) -> dict[str, Any]:
        return {
            "static": dict(self.static), "dynamic": dict(self.dynamic), "vgprs": self.vgprs,
            "sgprs": self.sgprs, "occupancy": self.occupancy,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelComparison:
    """A kernel of a program: ``different`` words of memory differed after clang's code."""

    program: str
    kernel: str
    launches: int
    waves: int
    sass: int
    ours: Side
    theirs: Side
    different: int
    refusal: str = ""  # why the tier that was asked for does not take it

    def ratio(self, *, dynamic: bool) -> float:
        return self.ours.total(dynamic=dynamic) / self.theirs.total(dynamic=dynamic)

    @property
    def name(self) -> str:
        return f"{self.program}: {self.kernel}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "program": self.program, "kernel": self.kernel, "launches": self.launches,
            "waves": self.waves, "sass": self.sass, "refusal": self.refusal,
            "ours": self.ours.as_dict(),
            "clang": self.theirs.as_dict(), "different": self.different,
            "dynamic_ratio": round(self.ratio(dynamic=True), 3),
            "static_ratio": round(self.ratio(dynamic=False), 3),
        }  # fmt: skip


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0.0


def side_of(flow: Flow, numbers: Sequence[int], target: Target) -> Side:
    """Counts instructions in the code; ``numbers`` are how often each block began."""
    done = counts.executed(flow, numbers)
    used = [
        r
        for block in flow.blocks.values()
        for step in block.steps
        for r in reads(step.inst) | writes(step.inst)
    ]
    most = {
        kind: 1 + max((r.number for r in used if r.kind == kind and r.number < end), default=-1)
        for kind, end in (
            ("v", target.vgprs),
            ("s", target.sgprs),
        )  # without vcc and what is above it
    }
    return Side(done.static, done.dynamic, most["v"], most["s"], target)


def short(name: str) -> str:
    """A demangled name without its parameters."""
    depth = 0
    for at, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and not depth:
            return name[:at].removeprefix("void ")
    return name.removeprefix("void ")


def _kernel(
    program: str,
    cubin: Cubin,
    name: str,
    theirs: bytes,
    launches: list[Recorded],
    memory: Any,
    target: Target,
    engine: str,
) -> KernelComparison:
    made, refusal = translate_kernel(cubin, name, target=target), ""
    if engine in TIER:
        made, said = chosen(made, target, engine)
        refusal = said.blocks[0].detail
    mine, other = replay.counted(made.code_object, name), replay.counted(theirs, name)
    info, different = made.launch, 0
    for launch in launches:
        wrong = replay.run(mine, launch, memory, launch.kernarg)
        if wrong:
            raise UsageError("SX0831", f"{program}: {name} left {wrong} other words than recorded")
        parameters = launch.kernarg[info.param_base : info.param_base + info.param_size]
        kernarg = replay.hip_kernarg(theirs, name, launch, parameters)
        held = replay.variables(cubin, info, launch)
        different += replay.run(other, launch, memory, kernarg, held)
    name = short(made.kernel.demangled)
    return KernelComparison(
        program, name, mine.launches, mine.waves, made.report.sass_instructions,
        side_of(mine.flow, mine.numbers, target), side_of(other.flow, other.numbers, target),
        different, refusal,
    )  # fmt: skip


def _program(
    tools: builds.Compilers,
    program: builds.BuiltProgram,
    fixtures: Path,
    folder: Path,
    target: Target,
    engine: str,
) -> list[KernelComparison]:
    path = builds.executable(tools, program, fixtures, folder / program.name)
    out = folder / f"{program.name}.hsaco"
    theirs = builds.code_object(tools, program, fixtures, out, target)
    launches = replay.recorded(path, folder, target.name)
    wanted = {launch.kernel for launch in launches}
    cubin = next(c for _, c in load(path).cubins() if wanted <= {k.name for k in c.kernels})
    memory = device_memory.Memory(launches)
    try:
        names = list(dict.fromkeys(launch.kernel for launch in launches))
        return [
            _kernel(
                program.name, cubin, name, theirs,
                [launch for launch in launches if launch.kernel == name], memory, target,
                engine,
            )
            for name in names
        ]  # fmt: skip
    finally:
        memory.close()


def measure(
    fixtures: Path,
    pattern: str = "",
    folder: Path | None = None,
    target: Target = DEFAULT,
    engine: str = "rules",
    sources: Path | None = None,
) -> list[KernelComparison]:
    """A row for each kernel that the programs launch, in the programs' order, for a target.
    ``engine`` writes our code: rules, llvm or best.  The programs are those of the fixtures, or the
    .cu files of the folder ``sources``.

    Raises:
        UsageError: SX0817, a program does not pass; SX0830, a compiler is missing or fails;
            SX0831, a launch could not be repeated.
    """
    tools = builds.compilers()
    rows: list[KernelComparison] = []
    programs = builds.of_folder(sources) if sources else builds.programs(fixtures)
    with tempfile.TemporaryDirectory(prefix="sassxlate-codegen-") as made:
        for program in programs:
            if re.search(pattern, program.name):
                rows += _program(tools, program, fixtures, folder or Path(made), target, engine)
    return rows


def versions(target: Target = DEFAULT) -> str:
    """The versions that the tables depend on besides this project."""
    tools = builds.compilers()
    return (
        f"nvcc {tools.nvcc.version} for sm_{builds.ARCH}, clang {tools.version} for {target.name}."
    )


def explained(fixtures: Path) -> dict[str, str]:
    """The reasons why kernels are over ``EXPLAIN``, by ``PROGRAM: KERNEL``."""
    return reasons_in(fixtures / "codegen" / "explained.toml")


def reasons_in(file: Path) -> dict[str, str]:
    """Reads texts by name."""
    rows = tomllib.loads(file.read_text())
    return {name: " ".join(text.split()) for name, text in rows.items()}


def mean(rows: Sequence[KernelComparison]) -> float:
    """The geometric mean of the ratios of dynamic instructions."""
    return geometric_mean([row.ratio(dynamic=True) for row in rows])


def missed(rows: Sequence[KernelComparison], reasons: Mapping[str, str]) -> list[str]:
    """The missed targets, one line each."""
    out: list[str] = []
    if mean(rows) > TARGET:
        out.append(f"geometric mean {mean(rows):.2f}, over {TARGET}")
    for row in rows:
        if row.ratio(dynamic=True) > EXPLAIN and row.name not in reasons:
            out.append(f"{row.name}: {row.ratio(dynamic=True):.2f} times, not explained")
    return out
