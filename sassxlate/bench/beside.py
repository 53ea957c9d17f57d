"""Programs by two installations of sassxlate, in turn: what a warm run takes.

Each side has a cache and a service of its own, so both begin with nothing.  A program runs until a
run has left the cache's host code as it was, with the service at rest after each run; then its code
is what later runs have, too.  The measured runs take turns, and the least of each side counts:
other load makes a run longer, never shorter.
"""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sassxlate.bench.figures import Figure
from sassxlate.bench.programs.find import BenchProgram
from sassxlate.errors import UsageError
from sassxlate.runtime_shim.service import client

MOST = 1.03  # of the other's processor time, each program
_WARM = 2, 6  # runs before the measured ones: at least, at most
_REST_S, _BUSY_TICKS = 0.4, 2  # a service that takes no more ticks in such a time is at rest
_LIMIT_S = 600.0  # of waiting for that
_UNSET = ("SASSXLATE_CACHE_DIR", "SASSXLATE_SOCKET", "XDG_CACHE_HOME", "PYTHONPATH")


@dataclass(frozen=True, slots=True)
class Side:
    """One installation: its command, and the folder of its cache and socket."""

    name: str
    command: tuple[str, ...]
    place: Path
    import_root: str = ""  # of modules, where the command does not know it

    @property
    def cache(self) -> Path:
        return self.place / "cache"

    def environment(self) -> dict[str, str]:
        """The variables of a run; the service inherits them."""
        kept = {name: value for name, value in os.environ.items() if name not in _UNSET}
        own = {"SASSXLATE_CACHE_DIR": str(self.cache), "XDG_RUNTIME_DIR": str(self.place)}
        own |= {"PYTHONPATH": self.import_root} if self.import_root else {}
        return {"SASSXLATE_SERVICE_IDLE": "60", **kept, **own}


@dataclass(frozen=True, slots=True)
class Taken:
    """One run: seconds of processor time, of the program and what it waited for, and of wall time;
    the exit status as in a shell, 124 at the limit."""

    cpu: float
    wall: float
    status: int = 0


@dataclass(frozen=True, slots=True)
class Compared:
    """One program: the least of each side, ours first, or the reason why it is not rated."""

    name: str
    cpu: tuple[float, float] = (0.0, 0.0)
    wall: tuple[float, float] = (0.0, 0.0)
    failed: str = ""


def run(side: Side, program: BenchProgram, limit_s: float) -> Taken:
    """One run of the program by an installation, on the emulated device."""
    app = str(program.path.absolute())
    words = [*side.command, "run", "--device", "emulator", "--", app, *program.args]
    start = time.monotonic()
    process = subprocess.Popen(
        words, cwd=program.path.parent, env=side.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    late = threading.Event()

    def stop() -> None:
        late.set()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(limit_s, stop)
    timer.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        stop()
        raise
    finally:
        timer.cancel()
    wall = time.monotonic() - start
    code = os.waitstatus_to_exitcode(status)
    process.returncode = code
    shown = 124 if late.is_set() else code if code >= 0 else 128 - code
    return Taken(used.ru_utime + used.ru_stime, wall, shown)


def ticks(side: Side) -> int:
    """The processor time of the processes that have the side's cache: its service."""
    mark = f"SASSXLATE_CACHE_DIR={side.cache}".encode()
    found = 0
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        with suppress(OSError, IndexError, ValueError):
            if mark not in Path(entry.path, "environ").read_bytes().split(b"\0"):
                continue
            text = Path(entry.path, "stat").read_text(errors="replace")
            fields = text[text.rindex(")") + 2 :].split()
            found += int(fields[11]) + int(fields[12])
    return found


def wait_for_rest(side: Side) -> None:
    """Returns when the side's service does nothing, at the latest after ten minutes."""
    end = time.monotonic() + _LIMIT_S
    before = ticks(side)
    while time.monotonic() < end:
        time.sleep(_REST_S)
        now = ticks(side)
        if now - before <= _BUSY_TICKS:
            return
        before = now


def _host_code(side: Side) -> frozenset[str]:
    return frozenset(str(path) for path in (side.cache / "host").glob("*/*.sxh"))


Run = Callable[[Side, BenchProgram, float], Taken]
Rest = Callable[[Side], None]


def _warmed(side: Side, program: BenchProgram, limit_s: float, run: Run, rest: Rest) -> str:
    """Runs it until its code is what later runs have; why it fails, or nothing."""
    least, most = _WARM
    for number in range(1, most + 1):
        before = _host_code(side)
        # Compiling is not what is limited: a first run may wait for all of it.
        taken = run(side, program, _LIMIT_S if number == 1 else limit_s)
        if taken.status:
            return f"{side.name}: exit status {taken.status}"
        rest(side)
        if number >= least and _host_code(side) == before:
            break
    return ""


def compare(
    program: BenchProgram,
    sides: tuple[Side, Side],
    repeat: int,
    limit_s: float,
    run: Run,
    rest: Rest,
) -> Compared:
    """``repeat`` warm runs by each side, in turn; who begins changes from turn to turn."""
    for side in sides:
        if failed := _warmed(side, program, limit_s, run, rest):
            return Compared(program.name, failed=failed)
    taken: dict[str, list[Taken]] = {side.name: [] for side in sides}
    for turn in range(repeat):
        for side in sides if turn % 2 else reversed(sides):
            one = run(side, program, limit_s)
            if one.status:
                return Compared(program.name, failed=f"{side.name}: exit status {one.status}")
            taken[side.name].append(one)
    ours, other = (taken[side.name] for side in sides)
    return Compared(
        program.name,
        (min(t.cpu for t in ours), min(t.cpu for t in other)),
        (min(t.wall for t in ours), min(t.wall for t in other)),
    )


def compare_all(
    programs: Sequence[BenchProgram], other: Path, repeat: int, limit_s: float, pattern: str = ""
) -> Iterator[Compared]:
    """Each program as it is done.

    Raises:
        UsageError: SX0817, no program, or ``other`` cannot be run.
    """
    wanted = [program for program in programs if re.search(pattern, program.name)]
    command = other.absolute()
    if not wanted:
        raise UsageError("SX0817", "no program has such a name")
    if not (command.is_file() and os.access(command, os.X_OK)):
        raise UsageError("SX0817", f"{other} is not a command")
    with tempfile.TemporaryDirectory(prefix="sassxlate-beside-") as made:
        places = [Path(made, name) for name in ("a", "b")]  # sockets have short paths only
        for place in places:
            place.mkdir(mode=0o700)
        ours = (sys.executable, "-P", "-m", "sassxlate")
        sides = (
            Side("ours", ours, places[0], client.import_root()),
            Side("the other", (str(command),), places[1]),
        )
        for program in wanted:
            yield compare(program, sides, repeat, limit_s, run, wait_for_rest)


def figures(compared: Sequence[Compared]) -> list[Figure]:
    """Ours in the other's, of each program that both ran: processor and wall time; and their
    geometric means.

    Raises:
        UsageError: SX0817, there is none.
    """
    rated = [one for one in compared if not one.failed]
    if not rated:
        raise UsageError("SX0817", "no program ran by both installations")
    found: list[Figure] = []
    for one in rated:
        note = f"{one.cpu[0]:.3g} and {one.cpu[1]:.3g} s"
        cpu, wall = (t[0] / max(t[1], 1e-9) for t in (one.cpu, one.wall))
        found.append(Figure(f"{one.name}: ours / the other (CPU)", "x", (cpu,), "less", MOST, note))
        note = f"{one.wall[0]:.3g} and {one.wall[1]:.3g} s"
        found.append(Figure(f"{one.name}: ours / the other (wall)", "x", (wall,), note=note))
    for kind, pick in (("CPU", found[::2]), ("wall", found[1::2])):
        mean = math.exp(sum(math.log(max(f.median, 1e-9)) for f in pick) / len(pick))
        found.append(Figure(f"geometric mean of the {len(pick)} ({kind})", "x", (mean,)))
    return found


__all__ = ["MOST", "Compared", "Side", "Taken", "compare", "compare_all", "figures", "run", "ticks"]
