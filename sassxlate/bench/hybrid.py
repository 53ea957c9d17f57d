"""The self-checking programs with another engine's code beside the rules': what it saves, and how
fast a model is asked."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sassxlate import toolchain
from sassxlate.bench.codegen import build as builds
from sassxlate.disasm.amdgpu_machines import RDNA3
from sassxlate.disasm.containers import load
from sassxlate.errors import SassxlateError, UsageError
from sassxlate.llm.language.limits import QuestionLimits, limits_of_model
from sassxlate.output import table
from sassxlate.runtime_shim.service import client
from sassxlate.runtime_shim.writer import Writer

if TYPE_CHECKING:
    from sassxlate.llm.inference.language_model import LanguageModel
    from sassxlate.lowering.engine.engine import Engine
    from sassxlate.lowering.engine.report import EngineReport
    from sassxlate.lowering.region.text import RegionText

SAVED, RATE = 0.03, 10.0  # targets: dynamic instructions saved, distinct blocks per second
_LIMIT_S = 300
_MOST_RATED = 96  # questions that the rate is measured on
BEGIN, END = "<!-- hybrid: begin -->", "<!-- hybrid: end -->"


@dataclass(frozen=True, slots=True)
class ProgramComparison:
    """A program: RDNA3 instructions that its waves executed, the rules' and with the model's; what
    the model was asked for (regions, of them distinct and new), and seconds of it."""

    program: str
    passed: bool
    why: str
    rules: int
    hybrid: int
    regions: int
    asked: int
    accepted: int
    new: int
    asking_s: float
    judging_s: float

    @property
    def ratio(self) -> float:
        return self.hybrid / self.rules if self.rules and self.passed else 1.0


@dataclass(frozen=True, slots=True)
class Rate:
    """Distinct questions of some length answered at once, one answer each, nothing remembered."""

    questions: int
    words: float  # of a question, in the median
    answered: float  # words of an answer, in the median
    seconds: float
    cores: int

    @property
    def a_second(self) -> float:
        return self.questions / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class HybridResult:
    """What was measured with an engine; ``model`` is its proposer's name."""

    engine: str
    model: str
    arch: int
    rows: tuple[ProgramComparison, ...]
    rate: Rate | None

    @property
    def mean(self) -> float:
        """The geometric mean of the ratios of dynamic instructions."""
        logs = [math.log(row.ratio) for row in self.rows]
        return math.exp(sum(logs) / len(logs)) if logs else 1.0

    @property
    def hit_rate(self) -> float:
        """The share of questions with a cached answer for their canonical form."""
        asked = sum(row.asked for row in self.rows)
        return 1 - sum(row.new for row in self.rows) / asked if asked else 0.0

    @property
    def asked_a_second(self) -> float:
        """Regions answered in a second of asking, with their parts, those that were remembered
        among them."""
        seconds = sum(row.asking_s for row in self.rows)
        return sum(row.asked for row in self.rows) / seconds if seconds else 0.0

    def missed(self) -> list[str]:
        """The missed targets, one line each."""
        out = [f"{row.program}: {row.why}" for row in self.rows if not row.passed]
        if self.mean > 1 - SAVED:
            out.append(f"{100 * (1 - self.mean):.2f} % of instructions saved, under {100 * SAVED}")
        if self.rate is not None and self.rate.a_second < RATE:
            out.append(f"{self.rate.a_second:.1f} distinct blocks per second, under {RATE}")
        return out

    def as_dict(self) -> dict[str, Any]:
        rate = None if self.rate is None else asdict(self.rate) | {"a_second": self.rate.a_second}
        rows = [asdict(row) | {"ratio": row.ratio} for row in self.rows]
        return {
            "bench": "hybrid", "engine": self.engine, "model": self.model,
            "arch": f"sm_{self.arch}", "programs": rows,
            "mean_ratio": self.mean, "hit_rate": self.hit_rate,
            "asked_a_second": self.asked_a_second, "rate": rate,
        }  # fmt: skip


@dataclass(slots=True)
class _Heard:
    """Passes questions on, and keeps them."""

    inner: LanguageModel
    heard: dict[str, RegionText] = field(default_factory=dict[str, "RegionText"])

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def limits(self) -> QuestionLimits:
        return limits_of_model(self.inner)

    def answers(
        self, questions: Sequence[RegionText], samples: int, vtemps: Sequence[int]
    ) -> list[list[tuple[str, ...]]]:
        self.heard |= {question.text: question for question in questions}
        return self.inner.answers(questions, samples, vtemps)


def executables(fixtures: Path, arch: int, pattern: str, folder: Path) -> Iterator[Path]:
    """The programs, built for one architecture.  UsageError SX0830 without nvcc."""
    nvcc = toolchain.nvcc()
    if nvcc is None:
        raise UsageError("SX0830", "not found: nvcc")
    for program in builds.programs(fixtures):
        if re.search(pattern, program.name):
            out = folder / program.name
            code = f"arch=compute_{arch},code=sm_{arch}"
            flags = ["-O3", "-std=c++17", *program.flags, "-gencode", code]
            builds.run([*nvcc.command, *flags, "-o", out, program.source])
            yield out


@dataclass(frozen=True, slots=True)
class _Ran:
    passed: bool
    why: str
    executed: int


def run(program: Path, cache: Path, arch: int, *options: str, target: str = RDNA3[0]) -> _Ran:
    """A program on the emulated device, a ``target``, with the code that a cache has for it."""
    with tempfile.TemporaryDirectory(prefix="sassxlate-hybrid-") as made:
        tally = Path(made, "instructions")
        environment = {
            **os.environ,
            "SASSXLATE_CACHE_DIR": str(cache),
            "SASSXLATE_INSTRUCTIONS": str(tally),
            "SASSXLATE_THREADS": "1",  # spinning and the order of atomics are then the same
            "SASSXLATE_CC": f"{arch // 10}.{arch % 10}",
            "SASSXLATE_SERVICE_IDLE": "5",
            "PYTHONPATH": client.import_root(),
        }
        command = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator"]
        command += ["--target", target]
        try:
            done = subprocess.run(
                [*command, *options, "--", str(program)],
                env=environment, capture_output=True, timeout=_LIMIT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return _Ran(False, f"no end after {_LIMIT_S} s", 0)
        executed = int.from_bytes(tally.read_bytes(), "little") if tally.exists() else 0
    passed = done.returncode == 0 and done.stdout.rstrip().endswith(b"PASS")
    said = (done.stdout + done.stderr).decode(errors="replace").strip()
    return _Ran(passed, "" if passed else " ".join(said.split())[-200:], executed)


def measured(
    program: Path, writer: Writer, caches: tuple[Path, Path], arch: int, strict: bool = False
) -> ProgramComparison:
    """A program by the rules, then with what a model writes: its kernels are translated before.

    Raises what translating raises, and UsageError SX0817 if the rules' code does not pass.
    """
    rules = run(program, caches[0], arch, "--engine", "rules", target=writer.target)
    if not rules.passed:
        raise UsageError("SX0817", f"{program.name} did not pass: {rules.why}")
    reports: list[EngineReport] = []
    kernels = [
        (cubin, kernel.name)
        for _, cubin in load(program).cubins()
        for kernel in (cubin.kernels if cubin.arch == arch else ())
    ]
    for cubin, name in writer.asked(kernels, lambda k: k, program.name):
        try:
            _, report = writer.translate(cubin, name)
        except SassxlateError as error:
            raise error.at(file=str(program), kernel=name) from None
        reports += [] if report is None else [report]
    hybrid = run(program, caches[1], arch, target=writer.target)
    if hybrid.passed and strict:
        held = run(program, caches[1], arch, "--strict", target=writer.target)
        hybrid = _Ran(held.passed, held.why, hybrid.executed)
    return ProgramComparison(
        program.name, hybrid.passed, hybrid.why, rules.executed, hybrid.executed,
        sum(len(r.blocks) for r in reports), sum(r.questions for r in reports),
        sum(r.accepted for r in reports), sum(r.distinct - r.remembered for r in reports),
        round(sum(r.asking_s for r in reports), 3), round(sum(r.judging_s for r in reports), 3),
    )  # fmt: skip


def measure(
    programs: Iterator[Path],
    engine: Engine,
    arch: int,
    folder: Path,
    *,
    strict: bool = False,
    rated: bool = True,
    target: str = RDNA3[0],
    told: Callable[[ProgramComparison], None] = lambda _: None,
) -> HybridResult:
    """All of it; ``engine`` must remember nothing yet.  Raises as :func:`measured` does."""
    from sassxlate.llm.engine.model import ModelProposer

    heard = None
    if isinstance(engine.proposer, ModelProposer):
        heard = engine.proposer.model = _Heard(engine.proposer.model)
    caches = folder / "rules", folder / "hybrid"
    for cache in caches:
        cache.mkdir(parents=True, exist_ok=True)
    writer = Writer(engine, keeps=(engine.name,), place=caches[1], target=target)
    rows: list[ProgramComparison] = []
    for program in programs:
        rows.append(measured(program, writer, caches, arch, strict))
        told(rows[-1])
    rate = None
    if rated and heard is not None and heard.heard:
        rate = rate_of(heard.inner, list(heard.heard.values()))
    return HybridResult(engine.name, engine.proposer.name, arch, tuple(rows), rate)


def rate_of(model: LanguageModel, questions: Sequence[RegionText]) -> Rate:
    """How fast a model answers questions of the median length: the middle of them by length."""
    ordered = sorted(questions, key=lambda q: (len(q.words), q.text))
    count = min(len(ordered), _MOST_RATED)
    first = (len(ordered) - count) // 2
    chosen = ordered[first : first + count]
    model.answers(chosen[:1], 1, [24])  # what is done once only
    started = time.perf_counter()
    answers = model.answers(chosen, 1, [24] * count)
    seconds = time.perf_counter() - started
    lengths = sorted(len(a[0]) for a in answers if a)
    return Rate(
        count, len(chosen[count // 2].words), lengths[len(lengths) // 2] if lengths else 0,
        seconds, len(os.sched_getaffinity(0)),
    )  # fmt: skip


_HEAD = ("program", "", "rules", "hybrid", "saved", "regions", "asked", "new", "taken")


def _cells(row: ProgramComparison) -> list[str]:
    return [
        row.program, "PASS" if row.passed else "FAIL", f"{row.rules:,}", f"{row.hybrid:,}",
        f"{100 * (1 - row.ratio):.1f} %", *map(str, (row.regions, row.asked, row.new)),
        str(row.accepted),
    ]  # fmt: skip


def summary(result: HybridResult) -> list[str]:
    """The figures over all programs, one per line."""
    rows = result.rows
    asked, new = sum(r.asked for r in rows), sum(r.new for r in rows)
    lines = [
        f"{sum(r.passed for r in rows)} of {len(rows)} programs pass;"
        f" {100 * (1 - result.mean):.2f} % of dynamic instructions saved (geometric mean)",
        f"{asked} regions asked, {new} of them new by canonical form: hit rate"
        f" {100 * result.hit_rate:.1f} %; {result.asked_a_second:.1f} answers per second with hits,"
        f" without the proofs ({sum(r.judging_s for r in rows):.1f} s)",
    ]
    rate = result.rate
    if rate is not None:
        lines.append(
            f"{rate.a_second:.1f} distinct blocks per second on {rate.cores} cores, nothing"
            f" remembered ({rate.questions} questions; medians: {rate.words:g} words per question,"
            f" {rate.answered:g} per answer)"
        )
    return lines


def text(result: HybridResult) -> list[str]:
    """For the terminal."""
    lines = table(_HEAD, [_cells(row) for row in result.rows])
    wrong = [f"{row.program}: {row.why}" for row in result.rows if not row.passed]
    head = f"engine {result.engine} ({result.model}), sm_{result.arch}"
    return [head, "", *lines, "", *summary(result), *wrong]


def markdown(result: HybridResult, machine: Mapping[str, Any]) -> list[str]:
    """For a document."""
    from sassxlate.bench.codegen.table import markdown_table

    said = summary(result)
    lines = [
        f"sm_{result.arch}; `{result.model}`; {machine['cpu']}, {machine['vectors']}, load"
        f" {machine['load']}.",
        "",
        *(f"* {line}" for line in said),
        "",
    ]
    head = ("program", "ends", "RDNA3 executed, rules", "hybrid", *_HEAD[4:])
    return lines + markdown_table(head, [_cells(row) for row in result.rows])
