"""``sassxlate doctor``: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import click

from sassxlate import toolchain
from sassxlate.runtime_shim import client, paths

from .. import __version__
from ..errors import SassxlateError
from ._files import format_option, print_json

State = Literal["ok", "missing", "optional"]  # optional: missing, and nothing here needs it

_LIBRARIES = (
    "libcuda.so.1",
    "libcudart.so.12",
    "libcudart.so.13",
    "libamdhip64.so",
    "libsassxlate_preload.so",
)
_GLIBC = (2, 28)
_TEST_EXTRA = "pip install '.[test]'"

# Runs apart: a broken driver may end the process that asks it.
_COUNT_DEVICES = """
import ctypes, json, sys
hip = ctypes.CDLL(sys.argv[1])
count, version = ctypes.c_int(0), ctypes.c_int(0)
status = hip.hipGetDeviceCount(ctypes.byref(count))
hip.hipRuntimeGetVersion(ctypes.byref(version))
print(json.dumps([status, count.value, version.value]))
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report; ``fix`` says how to get what is missing."""

    name: str
    state: State
    detail: str
    fix: str = ""


@click.command()
@format_option
@click.pass_context
def command(context: click.Context, output_format: str) -> None:
    """Say what is installed, what is missing and how to get it.

    Exit status 1 says that something is missing that running programs needs.
    """
    checks = [check() for check in CHECKS]
    if output_format == "json":
        print_json({"version": __version__, "checks": [asdict(c) for c in checks]})
    else:
        _print(checks)
    if any(c.state == "missing" for c in checks):
        context.exit(1)


def _print(checks: list[Check]) -> None:
    width = max(len(c.name) for c in checks)
    for c in checks:
        click.echo(f"{c.state:8}  {c.name:{width}}  {c.detail}")
        if c.state != "ok" and c.fix:
            click.echo(f"{'':8}  {'':{width}}  -> {c.fix}")


def _host() -> Check:
    libc, version = platform.libc_ver()
    detail = f"{platform.system()} {platform.machine()}, {libc or 'libc'} {version or 'unknown'}"
    parts = tuple(int(p) for p in version.split(".")[:2] if p.isdigit())
    good = (platform.system(), platform.machine()) == ("Linux", "x86_64") and libc == "glibc"
    if good and parts >= _GLIBC:
        return Check("host", "ok", detail)
    return Check("host", "missing", detail, "sassxlate runs on x86-64 Linux with glibc >= 2.28")


def _python() -> Check:
    return Check("Python", "ok", f"{platform.python_version()} ({sys.executable})")


def _native() -> Check:
    fix = "pip install . (with g++), or runtime_shim/native/build.sh in a checkout"
    try:
        directory = paths.library_dir()
    except SassxlateError as error:
        return Check("native libraries", "missing", error.message, fix)
    absent = [name for name in _LIBRARIES if not (directory / name).is_file()]
    if absent:
        detail = f"{directory} lacks {', '.join(absent)}"
        return Check("native libraries", "missing", detail, fix)
    return Check("native libraries", "ok", str(directory))


def _hip_candidates() -> list[Path]:
    """Where ROCm puts AMD's libamdhip64.so."""
    roots = [os.environ.get("ROCM_PATH"), os.environ.get("HIP_PATH"), "/opt/rocm"]
    found = [Path(root, "lib") for root in roots if root]
    found += [Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64")]
    names = ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5")
    return [directory / name for directory in found for name in names]


def _hip() -> Check:
    fix = "install AMD's ROCm for a gfx11 card; without it programs run on the emulated device"
    library = next((p for p in _hip_candidates() if p.is_file()), None)
    if library is None:
        return Check("AMD HIP", "optional", "libamdhip64.so of AMD is not installed", fix)
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _COUNT_DEVICES, str(library)],
            capture_output=True,
            timeout=60,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        status, count, version = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Check("AMD HIP", "optional", f"{library}: {type(error).__name__}", fix)
    if status or not count:
        return Check("AMD HIP", "optional", f"{library}: no device (HIP error {status})", fix)
    return Check("AMD HIP", "ok", f"{library}: version {version}, {count} device(s)")


def _tool(name: str, use: str, fix: str) -> Callable[[], Check]:
    def check() -> Check:
        found = toolchain.TOOLS[name]()
        if found is None:
            return Check(name, "optional", f"not found; {use}", fix)
        return Check(name, "ok", f"{found.version} ({found.origin}: {found.command[0]})")

    return check


def _package(name: str, module: str, use: str, fix: str = "") -> Callable[[], Check]:
    """A Python package; ``fix`` makes it optional and says which extra brings it."""

    def check() -> Check:
        if importlib.util.find_spec(module) is None:
            state: State = "optional" if fix else "missing"
            return Check(name, state, f"not installed; {use}", fix or "pip install .")
        return Check(name, "ok", f"{importlib.metadata.version(name)}: {use}")

    return check


def _llvm() -> Check:
    try:
        from llvmlite import binding
    except (ImportError, OSError) as error:
        return Check("llvmlite", "missing", str(error), "pip install .")
    version = ".".join(map(str, binding.llvm_version_info))
    return Check("llvmlite", "ok", f"LLVM {version}: compiles for the emulated device")


def _cache() -> Check:
    directory = paths.cache_dir()
    if paths.usable(directory):
        return Check("cache", "ok", f"{directory} is writable")
    fix = "set SASSXLATE_CACHE_DIR; until then each run translates anew"
    return Check("cache", "optional", f"{directory} cannot be written", fix)


def _service() -> Check:
    try:
        path = paths.socket_path()
    except (SassxlateError, OSError) as error:
        fix = "set XDG_RUNTIME_DIR or SASSXLATE_SOCKET"
        return Check("service", "missing", str(error), fix)
    if client.listening(path):
        return Check("service", "ok", f"listening at {path}")
    return Check("service", "ok", f"not running; it starts on demand at {path}")


CHECKS: tuple[Callable[[], Check], ...] = (
    _host,
    _python,
    _native,
    _llvm,
    _package("z3-solver", "z3", "proves rules and blocks"),
    _package("lief", "lief", "reads host programs"),
    _cache,
    _service,
    _hip,
    _tool("g++", "builds the native libraries", "install g++ with the system's package manager"),
    _tool("nvcc", "builds test programs", _TEST_EXTRA),
    _tool("nvdisasm", "the disassembler that the tests compare with", _TEST_EXTRA),
    _tool("cuobjdump", "the object dumper that the tests compare with", _TEST_EXTRA),
    _tool("clang", "the assembler that the tests compare with", _TEST_EXTRA),
    _package("tinygrad", "tinygrad", "AMD's pseudocode, for the tests", _TEST_EXTRA),
    _package("torch", "torch", "trains and runs the model", "pip install '.[llm]'"),
)
