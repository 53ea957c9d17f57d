"""Every executable of a folder on the emulated device, or on AMD's HIP library over the emulated
card, and what came of each.

A program runs in a process and session of its own, in its own directory, with limits of time and
memory.  It passes when it launched a kernel, none was refused, it ended as it should, found no
fault itself and, where a GPU's output of the same run is known, printed the same.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sassxlate.bench.programs.compare import difference
from sassxlate.bench.programs.find import BenchProgram, Truth, add_run
from sassxlate.disasm.amdgpu_machines import RDNA3
from sassxlate.executors import Place, work_through
from sassxlate.runtime_shim import rocm
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.service import client

Verdict = Literal[
    "pass", "wrong", "crash", "timeout", "memory", "refused", "unsupported call", "no kernel"
]
VERDICTS: tuple[Verdict, ...] = (
    "pass",
    "wrong",
    "crash",
    "timeout",
    "memory",
    "refused",
    "unsupported call",
    "no kernel",
)
_OUTPUT = 200_000  # characters of a stream that are looked at
_POLL_S = 0.2
_SAID = re.compile(r"^sassxlate: (?:  )?(SX\d{4}): (.*)$", re.MULTILINE)
_NOT_THERE = ("SX0712", "SX0717", "SX0718", "SX0751", "SX0752")
_NOTES = ("SX0907", "SX0713")  # reported, but not due to the program
_FAILED = re.compile(r"\bFAIL(?:ED|URE)?\b|\bFAIL!|verify = FAIL")
_LAUNCH = re.compile(r"^(?:cuLaunch(?:Kernel|CooperativeKernel)\w*|cuGraphLaunch\w*) 0(?: |$)")
_CALL = re.compile(r"^(\w+) (\d+)(?: |$)")
_HARMLESS = {0, 4, 600}  # success, the end of the process, not ready


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """The outcome of one program; ``first`` is the first instruction or call that failed."""

    name: str
    arch: str
    domain: str
    args: str
    verdict: Verdict
    reason: str = ""
    first: str = ""
    seconds: float = 0.0
    cpu: float = 0.0  # seconds of the program and its threads, translation not counted
    launches: int = 0
    instructions: int = 0  # RDNA3 instructions executed by the waves of finished launches
    key: str = ""
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one program: seconds, and bytes of memory of its processes."""

    seconds: float
    memory: int


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """The result of a process."""

    status: int  # as in a shell
    out: str
    err: str
    seconds: float = 0.0
    cpu: float = 0.0
    calls: tuple[tuple[str, int], ...] = ()
    launches: int = 0
    instructions: int = 0
    stopped: Literal["", "timeout", "memory"] = ""


class Bench:
    """Runs programs and stores their outcomes in ``results`` (a file of JSON lines).

    ``emulated_card``: on AMD's HIP library.  ``outputs``: a file to which what they print is
    added (`find.add_run`); every program runs anew.

    Raises:
        ShimError: SX0874, there is no ROCm for the emulated card.
    """

    def __init__(
        self,
        results: Path,
        limits: Limits,
        truth: Mapping[str, Truth],
        stale: bool,
        target: str = RDNA3[0],
        emulated_card: bool = False,
        outputs: Path | None = None,
    ) -> None:
        self.limits, self.truth, self.target = limits, truth, target
        self.emulated_card, self._outputs = emulated_card, outputs
        self._rocm = f"ROCm {rocm.find().name} " if emulated_card else ""
        self.tag = cache_tag(target)
        self._results = results
        self.known = {
            key: outcome
            for key, outcome in _read_results(results).items()
            if (stale or outcome.tag == self.tag) and outputs is None
        }

    def _key(self, program: BenchProgram) -> str:
        return self._rocm + program.key

    def forget(self, verdicts: str) -> None:
        """Drop the stored outcomes with these verdicts (comma-separated, or all)."""
        names = {name.strip() for name in verdicts.split(",")}
        for key, outcome in list(self.known.items()):
            if "all" in names or outcome.verdict in names:
                del self.known[key]

    def run(self, programs: Sequence[BenchProgram], place: Place) -> Iterator[ProgramOutcome]:
        """Outcomes as they come; stored ones first.  Ctrl-C stops running programs.  A cluster's
        workers find the programs under the same paths.

        Raises:
            UsageError: the cluster cannot be used.
        """
        todo = [program for program in programs if self._key(program) not in self.known]
        for program in programs:
            if self._key(program) in self.known:
                yield self.known[self._key(program)]
        one = partial(
            execute, limits=self.limits, target=self.target, emulated_card=self.emulated_card
        )
        for done in work_through(place, one, todo):
            run = done.result or ProgramRun(137, "", "every process that ran it was killed")
            yield self._kept(done.job, run)

    def _kept(self, program: BenchProgram, run: ProgramRun) -> ProgramOutcome:
        truth = self.truth.get(f"{program.name} {shlex.join(program.args)}")
        outcome = replace(judge(program, run, truth, self.tag), key=self._key(program))
        with open(self._results, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(outcome)) + "\n")
        if self._outputs is not None:
            add_run(self._outputs, program, (run.status, run.out, run.err))
        return outcome


def _read_results(file: Path) -> dict[str, ProgramOutcome]:
    found: dict[str, ProgramOutcome] = {}
    with suppress(FileNotFoundError):
        for line in file.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError, TypeError):
                outcome = ProgramOutcome(**json.loads(line))
                found[outcome.key] = outcome
    return found


def execute(
    program: BenchProgram, limits: Limits, target: str, emulated_card: bool = False
) -> ProgramRun:
    """Run it on a target to its end or to a limit."""
    with tempfile.TemporaryDirectory(prefix="sassxlate-program-") as scratch:
        trace = Path(scratch, "trace")
        command = [
            sys.executable,
            "-m",
            "sassxlate",
            "run",
            *(("--emulated-card",) if emulated_card else ("--device", "emulator")),
            "--target",
            target,
            "--keep-status",
        ]
        command += ["--trace", str(trace), "--", f"./{program.path.name}", *program.args]
        tally = Path(scratch, "instructions")
        env = {
            **os.environ,
            "PYTHONPATH": client.import_root(),
            "SASSXLATE_INSTRUCTIONS": str(tally),
        }
        env.setdefault("SASSXLATE_CC", _capability(program.arch))
        if program.multiprocessors:
            env["SASSXLATE_MULTIPROCESSORS"] = str(program.multiprocessors)
        start = time.monotonic()
        with open(f"{scratch}/out", "w+b") as out, open(f"{scratch}/err", "w+b") as err:
            process = subprocess.Popen(
                command,
                cwd=program.path.parent,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            stopped, cpu = _watch(process, limits)
            seconds = time.monotonic() - start
            printed, said = _head(out), _head(err)
        status = process.returncode if process.returncode >= 0 else 128 - process.returncode
        calls, launches = _read_trace(trace)
        executed = int.from_bytes(tally.read_bytes(), "little") if tally.exists() else 0
        return ProgramRun(
            status,
            printed,
            said,
            round(seconds, 2),
            round(cpu, 2),
            calls,
            launches,
            executed,
            stopped,
        )


def _capability(arch: str) -> str:
    """The compute capability for a program of only this architecture: 8.0 for sm_80; 9.0 if it is
    unknown."""
    number = re.fullmatch(r"sm_(\d+)(\d)", arch)
    return f"{number[1]}.{number[2]}" if number else "9.0"


def _watch(
    process: subprocess.Popen[bytes], limits: Limits
) -> tuple[Literal["", "timeout", "memory"], float]:
    deadline = time.monotonic() + limits.seconds
    why: Literal["", "timeout", "memory"] = ""
    cpu = 0.0
    try:
        while process.poll() is None:
            memory, used = _usage(process.pid)
            cpu = max(cpu, used)
            if memory > limits.memory:
                why = "memory"
            elif time.monotonic() > deadline:
                why = "timeout"
            if why:
                break
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return why, cpu


def _usage(session: int) -> tuple[int, float]:
    """Bytes resident and CPU seconds of the processes of a session."""
    memory, ticks = 0, 0
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        with suppress(OSError, IndexError, ValueError):
            text = Path(entry.path, "stat").read_text(errors="replace")
            fields = text[text.rindex(")") + 2 :].split()
            if int(fields[3]) == session:
                memory += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
                ticks += int(fields[11]) + int(fields[12])
    return memory, ticks / os.sysconf("SC_CLK_TCK")


def _head(stream: Any) -> str:
    stream.seek(0)
    return str(stream.read(_OUTPUT).decode("utf-8", "replace"))


def _read_trace(directory: Path) -> tuple[tuple[tuple[str, int], ...], int]:
    """Calls of the driver that failed, once each in the order of their first time; launches."""
    failed: dict[tuple[str, int], None] = {}
    launches = 0
    with suppress(OSError):
        for file in sorted(directory.iterdir()):
            for line in file.read_text(errors="replace").splitlines():
                if _LAUNCH.match(line):
                    launches += 1
                elif (call := _CALL.match(line)) and int(call[2]) not in _HARMLESS:
                    failed[call[1], int(call[2])] = None
    return tuple(failed), launches


def judge(program: BenchProgram, run: ProgramRun, truth: Truth | None, tag: str) -> ProgramOutcome:
    """The verdict of a run."""
    verdict, reason, first = _verdict(program, run, truth)
    return ProgramOutcome(
        program.name,
        program.arch,
        program.domain,
        shlex.join(program.args),
        verdict,
        reason,
        first,
        run.seconds,
        run.cpu,
        run.launches,
        run.instructions,
        key=program.key,
        tag=tag,
    )


def _verdict(
    program: BenchProgram, run: ProgramRun, truth: Truth | None
) -> tuple[Verdict, str, str]:
    said = [(code, text) for code, text in _SAID.findall(run.err) if code not in _NOTES]
    refused = [f"{code}: {text}" for code, text in said if code not in _NOT_THERE]
    missing = [text for code, text in said if code in _NOT_THERE]
    call = missing[0].split(" ")[0] if missing else _first_call(run)
    if refused:
        return "refused", refused[0], _instruction(refused[0])
    if run.stopped:
        limit = "time" if run.stopped == "timeout" else "memory"
        return run.stopped, f"the limit of {limit} was reached", ""
    if run.launches == 0:
        if missing:
            return "unsupported call", missing[0], call
        return "no kernel", _last_line(run), call
    fault = _fault(program, run, truth)
    if not fault:
        return "pass", "", ""
    if missing:
        return "unsupported call", missing[0], call
    if run.status > 128 and (truth is None or truth.status % 256 != run.status % 256):
        return "crash", f"signal {run.status - 128}: {_last_line(run)}", call
    return "wrong", fault, call


def _fault(program: BenchProgram, run: ProgramRun, truth: Truth | None) -> str:
    """Why the program's own check or the comparison fails; empty if they do not."""
    expected = truth.status % 256 if truth else 0
    if run.status % 256 != expected:
        return f"exit status {run.status}, not {expected}: {_last_line(run)}"
    if not (truth and any(_FAILED.search(text) for text in truth.out)) and (
        failed := _FAILED.search(run.out)
    ):
        return f"its own check: {_line_of(run.out, failed.start())!r}"
    if program.proof and not re.search(program.proof, run.out + run.err, re.MULTILINE):
        return f"its output has no {program.proof!r}: {_last_line(run)}"
    if truth:
        open_ = program.ignore
        differs = difference(run.out, truth.out, open_) or difference(run.err, truth.err, open_)
        if differs:
            return f"output differs: {differs}"
    return ""


def _first_call(run: ProgramRun) -> str:
    return f"{run.calls[0][0]} {run.calls[0][1]}" if run.calls else ""


def _instruction(line: str) -> str:
    """The SASS in a refusal: `TEXT`, or the text after its address."""
    found = re.search(r"`([^`]+)`", line) or re.search(r"/\*[0-9a-f]+\*/: ([^:]+)", line)
    return found[1].strip() if found else ""


def _last_line(run: ProgramRun) -> str:
    lines = [line for line in (run.out + "\n" + run.err).splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "nothing printed"


def _line_of(text: str, at: int) -> str:
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return text[begin : end if end >= 0 else len(text)].strip()[:200]


@dataclass(slots=True)
class Counts:
    """The number of programs of an architecture by verdict."""

    arch: str
    total: int = 0
    by_verdict: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, outcome: ProgramOutcome) -> None:
        self.total += 1
        self.by_verdict[outcome.verdict] = self.by_verdict.get(outcome.verdict, 0) + 1

    @property
    def passed(self) -> int:
        return self.by_verdict.get("pass", 0)


def count(outcomes: Iterable[ProgramOutcome]) -> list[Counts]:
    """The counts by architecture."""
    found: dict[str, Counts] = {}
    for outcome in outcomes:
        found.setdefault(outcome.arch, Counts(outcome.arch)).add(outcome)
    return [found[arch] for arch in sorted(found)]
