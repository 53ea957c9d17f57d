"""Finds ``ptxas`` and ``nvlink``: SASSXLATE_PTXAS, PATH, CUDA_HOME, CUDA_PATH, NVIDIA's wheel
nvidia-cuda-nvcc, Triton's wheel.

A tool that others could have written, or that does not say its release, is not used.
"""

from __future__ import annotations

import errno
import importlib
import importlib.util
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from sassxlate.errors import ShimError
from sassxlate.runtime_shim.ptx.process import run

Name: TypeAlias = Literal["ptxas", "nvlink"]
# The variables that decide what is found; an application's are sent to the service.
# APPLICATION: the folder of its program, which may be a virtual environment's.
VARIABLES = (
    "PATH", "CUDA_HOME", "CUDA_PATH", "SASSXLATE_PTXAS", "SASSXLATE_NVLINK", "APPLICATION",
)  # fmt: skip
STANDARD = "/usr/local/cuda"  # where NVIDIA's installers put a toolkit
_PACKAGE = "pip install nvidia-cuda-nvcc"
_VERSION_LIMIT_S = 10.0
_RELEASE = re.compile(r"release (\d+)\.(\d+), V([\d.]+)")
# In NVIDIA's wheels and Triton's, below site-packages.
_IN_WHEELS: tuple[tuple[str, str], ...] = (
    ("wheel nvidia-cuda-nvcc", "nvidia/cu[0-9]*/bin"),
    ("wheel nvidia-cuda-nvcc-cu12", "nvidia/cuda_nvcc/bin"),
    ("wheel triton", "triton/backends/nvidia/bin"),
)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that can be used.  ``identity`` is all that it says of its version."""

    name: Name
    path: str
    origin: str
    release: tuple[int, int]
    version: str
    identity: str
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A tool that was found and is not used, with the reason."""

    name: Name
    path: str
    origin: str
    why: str


class Found:
    """What there is of a tool, in the order of preference; looked at as far as it is needed."""

    def __init__(self, name: Name, environment: Mapping[str, str]) -> None:
        self.name: Name = name
        self.refused: list[Refused] = []
        self._tools: list[Tool] = []
        self._more = _each(name, environment)

    def __iter__(self) -> Iterator[Tool]:
        """The tools that can be used; those before them that cannot are in ``refused``."""
        yield from self._tools
        for found in self._more:
            if isinstance(found, Refused):
                self.refused.append(found)
            else:
                self._tools.append(found)
                yield found

    def need(self) -> Tool:
        """The first.

        Raises:
            ShimError: SX0741 (ptxas) or SX0749 (nvlink) if there is none; SX0747 if all that were
            found are refused.
        """
        for tool in self:
            return tool
        if self.refused:
            first = self.refused[0]
            raise ShimError("SX0747", f"{first.path} is not used: {first.why}")
        code, what = (
            ("SX0741", "PTX needs NVIDIA's ptxas")
            if self.name == "ptxas"
            else ("SX0749", "linking device code needs NVIDIA's nvlink")
        )
        raise ShimError(code, f"{what}, and none was found: {_PACKAGE}, or set CUDA_HOME")


def _each(name: Name, environment: Mapping[str, str]) -> Iterator[Tool | Refused]:
    own = environment.get(f"SASSXLATE_{name.upper()}")
    places = [(f"SASSXLATE_{name.upper()}", own)] if own else _places(name, environment)
    seen: set[str] = set()
    for origin, path in places:
        real = os.path.realpath(path)
        if real in seen or not (own or os.path.lexists(path)):
            continue
        seen.add(real)
        yield _look(name, origin, path)


def _places(name: Name, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    folders = [f for f in environment.get("PATH", "").split(os.pathsep) if os.path.isabs(f)]
    for folder in folders:
        yield "PATH", f"{folder}/{name}"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if root := environment.get(variable):
            yield variable, f"{root}/bin/{name}"
    # The application's packages, those of this Python, of the virtual environments on PATH.
    sites = _sites_of(environment.get("APPLICATION", ""))
    sites += _own_sites()
    for folder in folders:
        sites += _sites_of(folder)
    for origin, inside in _IN_WHEELS:
        names = [f"{name}-blackwell", name] if origin == "wheel triton" else [name]
        for site in sites:
            for bin_folder in sorted(site.glob(inside), reverse=True):
                for file in names:
                    yield origin, f"{bin_folder}/{file}"
    yield STANDARD, f"{STANDARD}/bin/{name}"


def _sites_of(folder: str) -> list[Path]:
    """The folders of packages of the environment whose programs are in ``folder``."""
    if not os.path.isabs(folder):
        return []
    return sorted(Path(folder).parent.glob("lib/python3*/site-packages"), reverse=True)


def _own_sites() -> Iterator[Path]:
    importlib.invalidate_caches()  # a wheel may have come since this process started
    for package in ("nvidia", "triton"):
        try:
            spec = importlib.util.find_spec(package)
        except (ImportError, ValueError):
            continue
        for root in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(root).parent


def _look(name: Name, origin: str, path: str) -> Tool | Refused:
    try:
        status = os.stat(path)
        if (why := _unsafe(path, status)) is not None:
            return Refused(name, path, origin, why)
        size, modified = status.st_size, status.st_mtime_ns
        said = _said(path, size, modified)
    except OSError as error:
        return Refused(name, path, origin, (error.strerror or "it cannot be run").lower())
    match = _RELEASE.search(said)
    if match is None:
        return Refused(name, path, origin, "its --version names no release")
    release = int(match[1]), int(match[2])
    return Tool(name, path, origin, release, match[3], said, size, modified)


def _unsafe(path: str, status: os.stat_result) -> str | None:
    """Why a file is not run; OSError if it cannot be looked at."""
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if not os.access(path, os.X_OK):
        return "it is not executable"
    if status.st_mode & stat.S_IWOTH:
        return f"any user can write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    for folder in (*Path(os.path.realpath(path)).parents, *Path(os.path.abspath(path)).parents):
        above = os.stat(folder)
        if not above.st_mode & stat.S_IWOTH:
            continue
        mode = f"mode {stat.S_IMODE(above.st_mode):04o}"
        if not above.st_mode & stat.S_ISVTX:
            return f"any user can write to {folder} ({mode})"
        # As in /tmp: an entry is its owner's.
        if not _owners_below(folder, path) <= {0, os.geteuid()}:
            return f"another user owns a file in {folder} ({mode})"
    return None


def _owners_below(folder: Path, path: str) -> set[int]:
    """The owners of the entries of ``folder`` on the way to ``path``, links followed or not."""
    ways = (Path(os.path.realpath(path)), Path(os.path.abspath(path)))
    below = [way.relative_to(folder).parts[0] for way in ways if way.is_relative_to(folder)]
    return {os.lstat(folder / name).st_uid for name in below}


@lru_cache(maxsize=64)
def _said(path: str, size: int, modified_ns: int) -> str:
    """What ``--version`` prints; the file's size and time make a changed one another.

    OSError, which is not remembered, if it does not answer.
    """
    del size, modified_ns
    with tempfile.TemporaryDirectory(prefix="sassxlate-") as folder:
        ran = run([path, "--version"], Path(folder), _VERSION_LIMIT_S)
    if ran.timed_out:
        raise OSError(errno.ETIMEDOUT, f"--version gave no answer within {_VERSION_LIMIT_S:g} s")
    if ran.status:
        raise OSError(errno.ENOEXEC, f"--version ended with status {ran.status}")
    return ran.output


__all__ = ["VARIABLES", "Found", "Name", "Refused", "Tool"]
