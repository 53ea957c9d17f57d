"""Runs every reading subcommand on damaged copies of files, in one process, and judges each end.

``python chain.py KIND FILE... --first N --count N [--commands ls,disasm]`` prints one JSON line:
how many runs ended how, and what was wrong, with the seed that shows it again.  KIND says what is
damaged: ``file`` (anything), ``fatbin`` (the containers of a host file), ``code`` (instructions).
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from click.testing import CliRunner, Result

from sassxlate.cli import cli
from sassxlate.disasm.containers import load

from .mutate import Span, mutated

TIME_LIMIT_S = 10.0  # of CPU time: a busy machine makes no fault
PATIENCE_S = 600.0  # of a case that waits for something
MEMORY_LIMIT = 2 << 30  # bytes of address space beyond what the process has when it starts
COMMANDS = ("ls", "extract", "disasm", "cfg", "translate")
# A code of ours, then the place: a file or a kernel's name, perhaps an offset.
_TYPED = re.compile(r"SX0\d{3}: \S")
# Exit statuses of the command line: done, a negative answer, bad input, unsupported.
_STATUSES = (0, 1, 2, 3)
_UNWRITTEN = (".partial", ".tmp")


class TooLongError(BaseException):
    """The time is over; no ``except Exception`` catches it."""


def _alarm(_number: int, _frame: FrameType | None) -> None:
    raise TooLongError


def handle_alarms() -> None:
    """For :func:`limited`: in this process, once."""
    signal.signal(signal.SIGPROF, _alarm)
    signal.signal(signal.SIGALRM, _alarm)


@contextmanager
def limited() -> Generator[None]:
    """Raises TooLongError in a block that takes more than the limits."""
    signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT_S)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def arguments(command: str, file: Path, out: Path) -> list[str]:
    """The command line of one subcommand on ``file``."""
    extra = {
        "ls": ["--format", "json"],
        "extract": ["-o", str(out / "extract")],
        "disasm": ["--encoding", "--control"],
        "cfg": ["-k", "*"],
        "translate": ["-o", str(out / "translate")],
    }
    return [command, str(file), *extra[command]]


def judge(result: Result, out: Path, file: Path) -> str | None:
    """What is wrong with the end of a command; None if nothing is."""
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        return f"{type(error).__name__}: {error}"
    if result.exit_code not in _STATUSES:
        return f"exit status {result.exit_code}"
    said = result.stderr + result.stdout
    if "Traceback" in said:
        return "a traceback"
    if result.exit_code >= 2 and not _TYPED.search(said):
        return f"exit status {result.exit_code} without a code and a place: {said[-200:]!r}"
    if result.exit_code == 2 and str(file) not in said:
        return f"the file is not named: {said[-200:]!r}"
    return _half_written(out)


def _half_written(out: Path) -> str | None:
    for path in out.rglob("*"):
        if path.name.startswith(".tmp-") or path.name.endswith(_UNWRITTEN):
            return f"{path.name} is left over"
        if path.suffix == ".hsaco" and not (
            path.read_bytes()[:4] == b"\x7fELF" and path.with_suffix(".launch").is_file()
        ):
            return f"{path.name} is not whole"
    report = out / "translate" / "report.json"
    if report.exists():
        try:
            json.loads(report.read_text())
        except ValueError:
            return "report.json is not whole"
    return None


def one(file: Path, out: Path, commands: Sequence[str]) -> tuple[list[str], list[str]]:
    """All commands on one damaged file: how each ended, and what was wrong."""
    ends: list[str] = []
    wrong: list[str] = []
    for command in commands:
        out.mkdir()
        started = time.process_time()
        try:
            with limited():
                result = CliRunner().invoke(cli, arguments(command, file, out))
                fault = judge(result, out, file)
                ends.append(f"{command} {result.exit_code}")
        except TooLongError:
            fault = f"no end within {TIME_LIMIT_S} s of CPU time"
        if fault is None and time.process_time() - started > TIME_LIMIT_S:
            fault = "too slow"
        if fault is not None:
            wrong.append(f"{command}: {fault}")
        shutil.rmtree(out)
    return ends, wrong


def fatbin_spans(file: Path) -> list[Span]:
    """The byte ranges of a host file's fatbins: their headers, entries and payloads."""
    spans: list[Span] = []
    for origin, entry in load(file).entries():
        # The entry's own header lies before its payload and says how long both are.
        spans.append((origin.offset, origin.offset + entry.stored))
    return spans


def code_spans(file: Path) -> list[Span]:
    """Where the instructions of a file's kernels lie, as far as they are not compressed."""
    data = file.read_bytes()
    spans: list[Span] = []
    for _, cubin in load(file).cubins(unlinked=True):
        for kernel in cubin.kernels:
            at = data.find(kernel.code)
            if at >= 0:
                spans.append((at, at + len(kernel.code)))
    return spans


SPANS: dict[str, Callable[[Path], list[Span]]] = {
    "file": lambda _file: [],
    "fatbin": fatbin_spans,
    "code": code_spans,
}


def limit_memory() -> None:
    """An allocation of a size that a damaged file names must fail here, as a MemoryError."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_LIMIT, used + MEMORY_LIMIT))


def check(
    originals: Sequence[Path],
    damage: str,
    seeds: range,
    commands: Sequence[str] = COMMANDS,
    keep: Path | None = None,
    say: Callable[[str], object] = lambda _text: None,
) -> dict[str, object]:
    """Damage the originals in turn, one seed each; the counts of ends, and all that was wrong."""
    handle_alarms()
    data = [path.read_bytes() for path in originals]
    spans = [SPANS[damage](path) for path in originals]
    ends: Counter[str] = Counter()
    faults: list[str] = []
    slowest = 0.0
    with tempfile.TemporaryDirectory(prefix="sassxlate-mutations-") as folder:
        for seed in seeds:
            number = seed % len(originals)
            file = Path(folder, f"mutant-{originals[number].name}")
            file.write_bytes(mutated(data[number], seed, spans[number]))
            started = time.perf_counter()
            now, wrong = one(file, Path(folder, "out"), commands)
            slowest = max(slowest, time.perf_counter() - started)
            ends.update(now)
            for text in wrong:
                faults.append(f"seed {seed} of {originals[number].name}: {text}")
                say(faults[-1])
                if keep is not None:
                    shutil.copyfile(file, keep / f"{seed}-{originals[number].name}")
            file.unlink()
    return {"ends": ends, "faults": faults, "slowest": round(slowest, 3)}


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("damage", choices=tuple(SPANS))
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--keep", type=Path, help="a directory for damaged files that show a fault")
    options = parser.parse_args()
    # Imported before memory is limited: libraries reserve address space of their own.
    import sassxlate.lowering.pipeline  # noqa: F401  # pyright: ignore[reportUnusedImport]

    limit_memory()
    answer = check(
        options.files,
        options.damage,
        range(options.first, options.first + options.count),
        options.commands.split(","),
        options.keep,
        lambda text: print(text, file=sys.stderr, flush=True),
    )
    answer["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
