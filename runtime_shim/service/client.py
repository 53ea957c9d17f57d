"""Calls the service from Python, and starts it.  The native libraries have their own client."""

from __future__ import annotations

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


def spawn(path: Path, cache: Path, target: str, record: str | None = None) -> None:
    """Start a service at ``path`` that translates for a target, in the background, apart from this
    process; does not wait.  It begins with an application's record (its key) if one is given.

    ServiceError SX0902 if no more processes can be started.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _KEEP or name.startswith(_KEEP_PREFIXES)
    }
    environment["SASSXLATE_TARGET"] = target
    environment["PYTHONPATH"] = import_root()
    command = [sys.executable, "-P", "-m", "sassxlate.runtime_shim.service"]
    command += ["--socket", str(path), "--cache", str(cache)]
    if record is not None:
        command += ["--prepare", record]
    try:
        with open(f"{path}.log", "ab") as log:
            # Forked twice, so that it need not be reaped.
            subprocess.run(
                [sys.executable, "-I", "-S", "-c", _DETACH, *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                check=True,
            )
    except (OSError, subprocess.CalledProcessError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"see {path}.log"
        raise ServiceError("SX0902", f"the service cannot be started: {reason}") from error


_DETACH = """\
import os, sys
if os.fork() == 0:
    os.execv(sys.argv[1], sys.argv[1:])
"""
