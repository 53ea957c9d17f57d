"""Training on several GPUs of one machine: one process each, without ``torchrun``
(:mod:`.distributed`)."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import IO, Any, TypeAlias

import sassxlate
from sassxlate.errors import ModelError
from sassxlate.llm.training.settings import TrainingSettings
from sassxlate.processes import die_with_parent, idle_threads_sleep

EXIT_REFUSED = 2  # status of a process that has reported its error
Stream: TypeAlias = "int | IO[bytes]"
_GRACE_S = 5.0  # seconds for the others to report their errors
_KEPT = 200  # lines


def gpus() -> int:
    """The number of GPUs that torch can use; 0 without torch."""
    idle_threads_sleep()
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return 0
    # GPUs with a driver that is too old for torch are counted, too.
    return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0


def arguments(
    paths: Sequence[Path],
    output: Path,
    settings: TrainingSettings,
    held: Sequence[Path],
    device: str,
) -> list[str]:
    """The arguments of ``python -m sassxlate.llm.training.train`` for the same training."""
    out = [*map(str, paths), "--output", str(output), "--device", device]
    if held:
        out += ["--held", *map(str, held)]
    for field in fields(settings):
        value = getattr(settings, field.name)
        name = "--weights" if field.name == "start" else f"--{field.name.replace('_', '-')}"
        if isinstance(value, bool):
            out += [name] * value
        elif value != field.default:
            out.append(f"{name}={value}")
    return out


def together(arguments: Sequence[str], count: int) -> dict[str, Any] | None:
    """Runs ``python -m sassxlate.llm.training.train`` with these :func:`arguments` in ``count``
    processes; returns the first one's figures, or None if it has refused the arguments and reported
    the reason.  Its output goes to stderr.

    If one fails, all end.  Raises ModelError SX1010 with the output of the first one that failed.
    """
    port = _free_port()
    command = [sys.executable, "-P", "-m", "sassxlate.llm.training.train", *arguments]
    running: list[subprocess.Popen[bytes]] = []
    shown: list[str] = []  # lines of the first process
    with tempfile.TemporaryDirectory(prefix="sassxlate-train-") as folder:
        told = [Path(folder, f"err{n}") for n in range(count)]
        figures = Path(folder, "out0")
        try:
            for n in range(count):
                with figures.open("wb") if n == 0 else told[n].open("wb") as file:
                    streams = (file, subprocess.PIPE) if n == 0 else (subprocess.DEVNULL, file)
                    running.append(_start(command, n, count, port, *streams))
            copying = threading.Thread(target=_copy, args=(running[0].stderr, shown), daemon=True)
            copying.start()
            order = _wait(running)
        finally:
            for one in running:
                _end(one)
        copying.join(_GRACE_S)
        if not order:
            return _figures(figures.read_text("utf-8", "replace"))
        first = order[0]
        status = running[first].returncode
        lines = shown if first == 0 else told[first].read_text("utf-8", "replace").splitlines()
    if status == EXIT_REFUSED and (first == 0 or _said(lines) in shown):
        return None
    how = f"by signal {-status}" if status < 0 else f"with status {status}"
    raise ModelError("SX1010", f"process {first} of {count} ended {how}: {_said(lines)[:300]}")


def _start(
    command: Sequence[str], n: int, count: int, port: int, out: Stream, err: Stream
) -> subprocess.Popen[bytes]:
    numbers = {"RANK": n, "LOCAL_RANK": n, "WORLD_SIZE": count, "MASTER_PORT": port}
    # Import this package, whatever is in the working directory.
    paths = [str(Path(sassxlate.__file__ or ".").resolve().parents[1])]
    paths += filter(None, [os.environ.get("PYTHONPATH")])
    here = {"OMP_NUM_THREADS": "1", **os.environ, "MASTER_ADDR": "127.0.0.1"}
    here["PYTHONPATH"] = os.pathsep.join(paths)
    return subprocess.Popen(
        command,
        env=here | {name: str(number) for name, number in numbers.items()},
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )


def _copy(stream: IO[bytes] | None, shown: list[str]) -> None:
    """Prints a process's lines, and keeps the last ones."""
    for line in stream or ():
        text = line.decode("utf-8", "replace")
        sys.stderr.write(text)
        sys.stderr.flush()
        shown.append(text.rstrip("\n"))
        del shown[:-_KEPT]


def _said(lines: Sequence[str]) -> str:
    """The last error line of a process: libraries print more after it."""
    mine = [line for line in lines if line.startswith("sassxlate: ")]
    errors = [line for line in lines if "Error" in line]
    return next(iter((mine or errors or [*lines])[-1:]), "it said nothing").strip()


def _figures(text: str) -> dict[str, Any]:
    """The last line that is a JSON object: NCCL prints other lines."""
    found = next((line for line in reversed(text.splitlines()) if line.startswith("{")), None)
    if found is None:
        raise ModelError("SX1010", "the first process ended without figures")
    return dict(json.loads(found))


def _wait(running: Sequence[subprocess.Popen[bytes]]) -> list[int]:
    """Waits for all, or until shortly after the first failure; returns the failed ones in order."""
    failed: list[int] = []
    since = 0.0
    while True:
        codes = [one.poll() for one in running]
        new = [n for n, code in enumerate(codes) if code and n not in failed]
        if new and not failed:
            since = time.monotonic()
        failed += new
        if None not in codes or (failed and time.monotonic() - since > _GRACE_S):
            return failed
        time.sleep(0.05)


def _end(one: subprocess.Popen[bytes]) -> None:
    """Ends a process and its children."""
    for how, patience in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)):
        if one.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(patience)


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


__all__ = ["arguments", "gpus", "together"]
