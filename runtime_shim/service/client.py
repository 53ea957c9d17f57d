"""Calls the service from Python, and starts it.  The native libraries have their own client."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import sassxlate
from sassxlate.errors import ServiceError
from sassxlate.runtime_shim.service import wire

# The variables that the service inherits from its starter: an application's LD_PRELOAD, PYTHONPATH
# or CUDA settings must not affect it.
_KEEP = ("HOME", "PATH", "USER", "LOGNAME", "LANG", "TMPDIR", "TMP", "TEMP", "TZ")
_KEEP_PREFIXES = ("LC_", "XDG_", "SASSXLATE_")
DETACH = "--detach"  # the service forks, so that it need not be reaped: its last word


def import_root() -> str:
    """The directory to put on PYTHONPATH so that a fresh interpreter finds this package."""
    return str(Path(sassxlate.__file__).absolute().parent.parent)


def library_settings(path: Path, cache: Path, tag: str) -> dict[str, str]:
    """The variables by which our libraries find the cache, and the service at ``path``."""
    return {
        "SASSXLATE_CACHE_DIR": str(cache),
        "SASSXLATE_CACHE_TAG": tag,
        "SASSXLATE_SOCKET": str(path),
        "SASSXLATE_PYTHON": sys.executable,
        "SASSXLATE_PYTHONPATH": import_root(),
    }


def call(path: Path, request: dict[str, Any], timeout: float = 300.0) -> dict[str, Any]:
    """Send one request and wait for its answer; ServiceError SX0902 or SX0909 if there is none."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            connection.connect(str(path))
            connection.sendall(wire.encode(request))
            answer = wire.receive(connection)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise ServiceError("SX0902", f"no service listens at {path}") from error
    except OSError as error:
        raise ServiceError("SX0909", f"{path}: {error}") from error
    if answer is None:
        raise ServiceError("SX0909", f"{path}: the service closed the connection")
    return answer


def listening(path: Path) -> bool:
    """Whether a service takes connections at ``path``."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(path))
        except OSError:
            return False
    return True


def listen(path: Path) -> tuple[socket.socket, int] | None:
    """Bind the socket under its lock: (listener, lock); None if a service already serves it."""
    # Not "<path>.lock": the clients hold that one while they start the service.
    lock = os.open(f"{path}.serving", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        listener.bind(str(path))
        os.chmod(path, 0o600)
        listener.listen(128)
    except BlockingIOError:
        os.close(lock)
        return None
    except OSError:
        os.close(lock)
        raise
    return listener, lock


def spawn(path: Path, cache: Path, target: str, record: str | None = None) -> None:
    """Start a service at ``path`` that translates for a target, in the background, apart from this
    process.  It begins with an application's record (its key) if one is given.

    It listens when this returns, long before it answers: the socket is made here and inherited, so
    that an application that starts meanwhile waits for this service and starts no second one.

    ServiceError SX0902 if no more processes can be started, or the socket cannot be made.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _KEEP or name.startswith(_KEEP_PREFIXES)
    }
    environment["PYTHONPATH"] = import_root()
    command = [sys.executable, "-P", "-m", "sassxlate.runtime_shim.service"]
    command += ["--socket", str(path), "--cache", str(cache), "--target", target]
    if record is not None:
        command += ["--prepare", record]
    try:
        bound = listen(path)
        if bound is None:
            return  # another service listens
        listener, lock = bound
        inherited = listener.fileno(), lock
        try:
            with open(f"{path}.log", "ab") as log:
                subprocess.run(
                    [*command, "--inherited", *map(str, inherited), DETACH],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd="/",
                    start_new_session=True,
                    pass_fds=inherited,
                    check=True,
                )
        finally:
            listener.close()
            os.close(lock)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"see {path}.log"
        raise ServiceError("SX0902", f"the service cannot be started: {reason}") from error
