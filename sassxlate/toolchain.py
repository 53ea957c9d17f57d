"""Finds the tools around sassxlate: compilers and disassemblers, on PATH or in PyPI's wheels.

None of them is needed to translate or run a program.  nvcc builds test programs;
the tests compare with nvdisasm, cuobjdump and clang.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_TIMEOUT = 30.0  # seconds for a tool to print its version


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that was found: how to call it, its version, and where it came from."""

    name: str
    command: tuple[str, ...]
    version: str
    origin: str  # the environment variable, "PATH" or the wheel


def _version(command: tuple[str, ...], pattern: str) -> str | None:
    """The version that ``command --version`` prints; None if it does not start or prints none."""
    try:
        done = subprocess.run(
            [*command, "--version"],
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    match = re.search(pattern, text)
    return match.group(1) if match and done.returncode == 0 else None


def _wheel(package: str, *inside: str) -> Path | None:
    """A file of an installed package, which is not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    for root in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(root, *inside)
        if path.is_file():
            return path
    return None


def _first(
    name: str, pattern: str, candidates: list[tuple[str, tuple[str, ...] | None]]
) -> Tool | None:
    for origin, command in candidates:
        if command:
            version = _version(command, pattern)
            if version:
                return Tool(name, command, version, origin)
    return None


def _environment(variable: str) -> tuple[str, ...] | None:
    value = os.environ.get(variable)
    return (value,) if value else None


def _on_path(*names: str) -> tuple[str, ...] | None:
    found = next((path for path in map(shutil.which, names) if path), None)
    return (found,) if found else None


def _nvcc_of_wheels() -> tuple[str, ...] | None:
    path = _wheel("nvidia", "cu13", "bin", "nvcc")
    if path is None:
        return None
    # The wheels' library directory is lib, where nvcc itself looks in lib64.
    return (str(path), f"-L{path.parent.parent / 'lib'}")


@cache
def nvcc() -> Tool | None:
    """NVIDIA's compiler: SASSXLATE_NVCC, PATH, or the wheel nvidia-cuda-nvcc."""
    return _first(
        "nvcc",
        r"release [\d.]+, V([\d.]+)",
        [
            ("SASSXLATE_NVCC", _environment("SASSXLATE_NVCC")),
            ("PATH", _on_path("nvcc")),
            ("wheel nvidia-cuda-nvcc", _nvcc_of_wheels()),
        ],
    )


def _binary_utility(name: str) -> Tool | None:
    variable = f"SASSXLATE_{name.upper()}"
    wheel = _wheel("triton", "backends", "nvidia", "bin", name)
    return _first(
        name,
        r"release [\d.]+, V([\d.]+)",
        [
            (variable, _environment(variable)),
            ("wheel triton", (str(wheel),) if wheel else None),
            ("PATH", _on_path(name)),
        ],
    )


@cache
def nvdisasm() -> Tool | None:
    """NVIDIA's disassembler: SASSXLATE_NVDISASM, the wheel triton, or PATH."""
    return _binary_utility("nvdisasm")


@cache
def cuobjdump() -> Tool | None:
    """NVIDIA's object dumper: SASSXLATE_CUOBJDUMP, the wheel triton, or PATH."""
    return _binary_utility("cuobjdump")


@cache
def clang() -> Tool | None:
    """A clang that supports RDNA3 (17 or newer): SASSXLATE_CLANG, the wheel ziglang, or PATH."""
    zig = (sys.executable, "-m", "ziglang", "cc") if _wheel("ziglang", "zig") else None
    found = _first(
        "clang",
        r"clang version ([\d.]+)",
        [
            ("SASSXLATE_CLANG", _environment("SASSXLATE_CLANG")),
            ("wheel ziglang", zig),
            ("PATH", _on_path("clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang")),
        ],
    )
    if found and int(found.version.partition(".")[0]) < 17:
        return None
    return found


def zig_library() -> Path | None:
    """The directory of the wheel ziglang that holds clang's own headers (in ``include``)."""
    found = _wheel("ziglang", "lib", "include", "stddef.h")
    return found.parents[1] if found else None


def device_library() -> Path | None:
    """AMD's mathematical functions for devices as bitcode: SASSXLATE_OCML or the wheel triton."""
    named = os.environ.get("SASSXLATE_OCML")
    return Path(named) if named else _wheel("triton", "backends", "amd", "lib", "ocml.bc")


@cache
def gxx() -> Tool | None:
    """The host's C++ compiler: CXX or PATH."""
    return _first(
        "g++",
        r"(\d+\.\d+(?:\.\d+)?)",
        [("CXX", _environment("CXX")), ("PATH", _on_path("g++", "c++"))],
    )


TOOLS: dict[str, Callable[[], Tool | None]] = {
    "g++": gxx,
    "nvcc": nvcc,
    "nvdisasm": nvdisasm,
    "cuobjdump": cuobjdump,
    "clang": clang,
}
