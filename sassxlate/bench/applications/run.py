"""Runs the scripts of applications on the emulated device, cold and warm, and judges them.

Each declaration gets a translation cache and a home directory of its own, empty before the first
run ("cold") and kept for the second ("warm"): what the application itself caches counts, too.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sassxlate.bench.applications import environment
from sassxlate.bench.applications.declaration import Declaration
from sassxlate.errors import SassxlateError
from sassxlate.lowering.target import DEFAULT
from sassxlate.runtime_shim import application, paths
from sassxlate.runtime_shim.cache.tag import cache_tag

Verdict = Literal["right", "wrong", "refused", "failed", "timed out"]
VERDICTS: tuple[Verdict, ...] = ("right", "wrong", "refused", "failed", "timed out")
_OUTPUT = 1_000_000  # bytes of a stream that are looked at: its end
_WRONG = re.compile(r"^wrong\b.*$", re.MULTILINE)
_SAID = re.compile(r"^sassxlate: (SX\d{4}): .*$", re.MULTILINE)
_END_S = 10.0  # for the service to end
_NVIDIA_GPU = Path("/dev/nvidiactl")  # NVIDIA's kernel driver makes it


@dataclass(frozen=True, slots=True)
class Result:
    """One run of a script; ``refused``: how many different requests, by code."""

    verdict: Verdict
    seconds: float
    reason: str = ""
    refused: tuple[tuple[str, int], ...] = ()
    kernels: int = 0  # different kernels that were used on the emulated device


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a declaration; ``warm`` is None where the cold run was not right."""

    name: str
    application: str
    version: str
    what: str
    tolerance: str
    cold: Result
    warm: Result | None
    elsewhere: tuple[tuple[str, Result], ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Right only if every run on the emulated device was."""
        return (self.warm or self.cold).verdict

    @property
    def reason(self) -> str:
        if self.warm is not None and self.warm.reason:
            return f"with a warm cache: {self.warm.reason}"
        return self.cold.reason

    @property
    def refused(self) -> tuple[tuple[str, int], ...]:
        """The larger count of the runs, by code."""
        most: dict[str, int] = {}
        for result in (self.cold, self.warm):
            for code, count in result.refused if result else ():
                most[code] = max(count, most.get(code, 0))
        return tuple(sorted(most.items()))


def measure(declaration: Declaration, python: Path, timeout: float) -> Outcome:
    """Runs the declaration's script: on the emulated device cold and warm, and where else it can.

    ``timeout`` is in seconds, for one run.
    """
    place = tempfile.TemporaryDirectory(prefix="sassxlate-app-", ignore_cleanup_errors=True)
    with place as made:
        scratch = Path(made)
        try:
            cold = _emulated(declaration, python, scratch, timeout)
            warm = None
            if cold.verdict == "right":
                warm = _emulated(declaration, python, scratch, timeout)
        finally:
            _end_service(scratch)
        elsewhere: list[tuple[str, Result]] = []
        for where in declaration.also:
            if where == "cpu" or _NVIDIA_GPU.exists():
                argument = "cpu" if where == "cpu" else "cuda"
                command = [str(python), str(declaration.script), argument]
                done = _execute(command, _settings(declaration, scratch), scratch, timeout)
                elsewhere.append((where, judge(declaration, done, None)))
    folders = (str(python.parent.parent), made, str(declaration.script.parent))
    return Outcome(
        declaration.name,
        declaration.application,
        declaration.version,
        declaration.what,
        declaration.tolerance,
        _plain(cold, folders),
        warm and _plain(warm, folders),
        tuple((where, _plain(result, folders)) for where, result in elsewhere),
    )


def measure_all(
    declarations: Sequence[Declaration], folder: Path, timeout: float | None, install_limit: float
) -> Iterator[tuple[Declaration, Outcome | SassxlateError]]:
    """One after the other; the error where the packages cannot be installed.

    ``timeout``: seconds for one run; None: the declaration's, or 600.
    """
    for declaration in declarations:
        try:
            python = environment.prepare(declaration, folder, install_limit)
        except SassxlateError as error:
            yield declaration, error.at(file=declaration.name)
            continue
        yield declaration, measure(declaration, python, timeout or declaration.timeout or 600.0)


@dataclass(frozen=True, slots=True)
class Done:
    """How a process ended, and the ends of its streams."""

    status: int  # as in a shell
    out: str
    err: str
    seconds: float
    timed_out: bool


def _settings(declaration: Declaration, scratch: Path) -> dict[str, str]:
    """The environment of a script: no Python settings of ours, a home of its own."""
    home = scratch / "home"
    home.mkdir(exist_ok=True, mode=0o700)
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    found = {
        k: v for k, v in os.environ.items() if k not in ours and not k.startswith("SASSXLATE_")
    }
    found["HOME"] = str(home)
    found["XDG_CACHE_HOME"] = str(home / ".cache")
    found["PYTHONUNBUFFERED"] = "1"
    return found | dict(declaration.environment)


def _emulated(declaration: Declaration, python: Path, scratch: Path, timeout: float) -> Result:
    record = scratch / "record"
    record.unlink(missing_ok=True)
    # sys.path by hand: PYTHONPATH would reach the application, and hide its modules with ours.
    start = (
        f"import sys; sys.path[:] = {sys.path!r}; sys.argv[0] = 'sassxlate'; "
        "import runpy; runpy.run_module('sassxlate', run_name='__main__', alter_sys=True)"
    )
    command = [sys.executable, "-c", start, "run", "--device", "emulator", "--keep-status"]
    command += ["--target", DEFAULT.name, "--", str(python), str(declaration.script), "cuda"]
    settings = _settings(declaration, scratch)
    settings["SASSXLATE_CACHE_DIR"] = str(_cache(scratch))
    settings["SASSXLATE_KEEP_REPORT"] = str(record)
    for name in ("SASSXLATE_LIB", "SASSXLATE_LIBLLVM"):  # where things are
        if name in os.environ:
            settings[name] = os.environ[name]
    done = _execute(command, settings, scratch, timeout)
    return judge(declaration, done, application.read_report(record))


def _cache(scratch: Path) -> Path:
    return scratch / "cache"


def _end_service(scratch: Path) -> None:
    """Ends the service of this cache and its workers, also one that only starts or that compiles
    for long: the cache goes away with the scratch folder."""
    cache = os.fsencode(_cache(scratch))
    end = time.monotonic() + _END_S
    while (found := _with_argument(cache)) and time.monotonic() < end:
        for process in found:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    with suppress(SassxlateError, OSError):
        paths.socket_path(cache_tag(DEFAULT.name), _cache(scratch)).unlink()


def _with_argument(argument: bytes) -> list[int]:
    """The processes that were started with this argument."""
    found: list[int] = []
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with suppress(OSError):
                if argument in Path(entry.path, "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def _execute(
    command: Sequence[str], settings: Mapping[str, str], scratch: Path, timeout: float
) -> Done:
    """Runs a command in a session of its own; at the limit, its whole process group is killed."""
    work = scratch / "work"
    work.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryFile(dir=scratch) as out,
        tempfile.TemporaryFile(dir=scratch) as err,
    ):
        start = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=work,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        timed_out = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            seconds = time.monotonic() - start
            # Also what a script that ended left running.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        texts: list[str] = []
        for stream in (out, err):
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _OUTPUT))
            texts.append(stream.read().decode("utf-8", "replace"))
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return Done(status, texts[0], texts[1], round(seconds, 2), timed_out)


def judge(declaration: Declaration, done: Done, report: application.RunReport | None) -> Result:
    """The verdict of a run; ``report`` is None for a run without our libraries."""
    counts = Counter(refusal.code for refusal in report.refusals) if report else Counter[str]()
    verdict, reason = _verdict(declaration, done, report)
    kernels = len(report.kernels) if report else 0
    return Result(verdict, done.seconds, reason, tuple(sorted(counts.items())), kernels)


def _verdict(
    declaration: Declaration, done: Done, report: application.RunReport | None
) -> tuple[Verdict, str]:
    # A wrong result comes first: no limit may hide it, and no refusal but that of a kernel, without
    # which the script compared what was in memory before.
    if wrong := _WRONG.search(done.out):
        if report is not None and report.lost:
            return "refused", f"{wrong[0].strip()}; before that {report.lost[0].line}"
        return "wrong", wrong[0].strip()
    missing = [p for p in declaration.prints if not re.search(p, done.out, re.MULTILINE)]
    if done.status == 0 and not done.timed_out and not missing:
        if report is not None and not report.kernels:
            return "failed", "no kernel ran on the emulated device"
        return "right", ""
    end = f"after {done.seconds:.0f} s" if done.timed_out else _last_line(done)
    if report is not None and report.refusals:
        # What the application said may have another cause than the refusal: both are shown.
        return "refused", f"{end}; before that {report.refusals[0].line}"
    if done.timed_out:
        return "timed out", end
    if done.status:
        said = list(_SAID.finditer(done.err))
        last = said[0][0] if said else end
        kind = f"signal {done.status - 128}" if done.status > 128 else f"status {done.status}"
        return "failed", f"{kind}: {last}"
    return "wrong", f"its output has no {missing[0]!r}"


def _plain(result: Result, folders: Sequence[str]) -> Result:
    """The reason without the folders of this machine: paths begin inside of them."""
    reason = result.reason
    for folder in folders:
        reason = reason.replace(f"{folder}/", "")
    return replace(result, reason=reason)


def _last_line(done: Done) -> str:
    lines = [line.strip() for line in (done.out + "\n" + done.err).splitlines()]
    own = (line for line in reversed(lines) if line and not line.startswith("sassxlate: "))
    return next(own, "nothing printed")


__all__ = ["VERDICTS", "Done", "Outcome", "Result", "Verdict", "judge", "measure", "measure_all"]
