"""Virtual environments of applications: one per set of packages, made by pip, kept."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sassxlate.bench.applications.declaration import Declaration
from sassxlate.errors import UsageError
from sassxlate.output import make_directory, write_whole

_MARK = "sassxlate-packages.json"  # written when everything is installed
_TAIL = 4000  # characters of pip's output that are looked at
_OFFLINE = re.compile(
    r"NewConnectionError|NameResolutionError|Temporary failure in name resolution|"
    r"Network is unreachable|ConnectTimeoutError|ProxyError|No route to host|Connection refused"
)
_FIND_VERSION_S = 30.0


def prepare(declaration: Declaration, folder: Path, limit: float) -> Path:
    """The Python that has the declaration's packages; they are installed below ``folder`` unless
    they are there.

    Raises:
        UsageError: SX0844 no such Python, SX0845 pip fails, SX0846 no network, SX0847 pip takes
            longer than ``limit`` seconds, SX0813 the folder cannot be written.
    """
    base = interpreter(declaration.python)
    if not declaration.packages:
        return base
    place = folder / directory_name(declaration)
    python = place / "bin" / "python"
    make_directory(folder)
    with _alone(folder / f".{place.name}.lock"):
        if _ready(place, declaration):
            return python
        _say(f"{declaration.name}: installing {' '.join(declaration.packages)} in {place}")
        if not python.exists():
            shutil.rmtree(place, ignore_errors=True)
            _do([str(base), "-m", "venv", str(place)], declaration, limit)
        pip = [str(python), "-m", "pip", "install", "--no-input", *declaration.packages]
        _do(pip, declaration, limit)
        write_whole(place / _MARK, json.dumps(sorted(declaration.packages)).encode())
    return python


def directory_name(declaration: Declaration) -> str:
    """The environment's folder: declarations with the same packages and Python share it."""
    key = "\n".join([declaration.python, *sorted(declaration.packages)])
    digest = hashlib.blake2b(key.encode(), digest_size=6).hexdigest()
    name = re.split(r"[=\[]", declaration.packages[0])[0].lower()
    return f"{name}-py{declaration.python}-{digest}"


def interpreter(version: str) -> Path:
    """The Python of this version (3.11): this one, or one on PATH; UsageError SX0844."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable)
    found = shutil.which(f"python{version}")
    if found is not None:
        with suppress(OSError, subprocess.TimeoutExpired):
            told = subprocess.run(
                [found, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_FIND_VERSION_S,
                check=False,
            )
            if told.stdout.strip() == version:
                return Path(found)
    raise UsageError("SX0844", f"no working python{version} on PATH")


def _ready(place: Path, declaration: Declaration) -> bool:
    try:
        kept: object = json.loads((place / _MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return kept == sorted(declaration.packages) and (place / "bin" / "python").exists()


@contextmanager
def _alone(file: Path) -> Generator[None, None, None]:
    """While another process installs the same packages, this one waits."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError("SX0813", f"{file}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _do(command: Sequence[str], declaration: Declaration, limit: float) -> None:
    """Runs pip (or venv), its output passed to stderr as it comes."""
    settings = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    settings["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    try:
        process = subprocess.Popen(
            command,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise UsageError("SX0845", f"{command[0]}: {error.strerror}") from None
    late = threading.Event()

    def stop() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(limit, stop)
    timer.daemon = True
    timer.start()
    said = ""
    try:
        assert process.stdout is not None
        for line in process.stdout:
            text = line.decode("utf-8", "replace")
            said = (said + text)[-_TAIL:]
            sys.stderr.write(text)
            sys.stderr.flush()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    finally:
        timer.cancel()
        _kill(process)
        status = process.wait()
    what = " ".join(declaration.packages)
    if late.is_set():
        raise UsageError("SX0847", f"{what}: not installed after {limit:g} s")
    if status:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        text = f"{what}: {errors[-1] if errors else f'status {status}'}"
        raise UsageError("SX0846" if _OFFLINE.search(said) else "SX0845", text)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and all that it started: they are a group of their own.  It must not be
    reaped yet: until then the group's number cannot belong to anything else."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


__all__ = ["directory_name", "interpreter", "prepare"]
