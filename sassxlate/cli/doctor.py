"""``sassxlate doctor``: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal

import click

from sassxlate import __version__, compiled, toolchain
from sassxlate.cli.grammar import Command
from sassxlate.cli.options import printing_options, target_option
from sassxlate.errors import SassxlateError
from sassxlate.output import print_json
from sassxlate.runtime_shim import hip_blas, paths, rocm
from sassxlate.runtime_shim.application import (
    REPLACED,
    REPLACED_ON_CARDS,
    capability,
    host_blas,
)
from sassxlate.runtime_shim.hip_probe import find_hip
from sassxlate.runtime_shim.ptx.tools import Found, Name
from sassxlate.runtime_shim.service import client

State = Literal[
    "ok", "missing", "optional"
]  # optional: missing, and running programs does not need it

_LIBRARIES = (
    "libcuda.so.1",
    "libcudart.so.11.0",
    "libcudart.so.12",
    "libcudart.so.13",
    "libnvidia-ml.so.1",
    "libcuda.so",
    "libnvidia-ml.so",
    "libamdhip64.so",
    "libsassxlate_preload.so",
    "cufft/libcufft.so.11",
    "cufft/libcufft.so.12",
    "cufft/libcufftw.so.11",
    "cufft/libcufftw.so.12",
    "cublas/libcublas.so.12",
    "cublas/libcublas.so.13",
    "cublas/libcublasLt.so.12",
    "cublas/libcublasLt.so.13",
    "hipblas/libcublas.so.12",
    "hipblas/libcublas.so.13",
    "hipblas/libcublasLt.so.12",
    "hipblas/libcublasLt.so.13",
)
# Packages that running programs needs, and the modules that they provide.
_REQUIRED = {
    "click": "click",
    "lz4": "lz4",
    "networkx": "networkx",
    "numpy": "numpy",
    "zstandard": "zstandard",
}
_GLIBC = (2, 28)
_TEST_EXTRA = "pip install 'sassxlate[test]'"
_KFD = "/dev/kfd"  # the kernel driver of AMD's compute stack
_KERNEL = "early_exit"  # a kernel of the fixtures


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report; ``fix`` says how to get what is missing."""

    name: str
    state: State
    detail: str
    fix: str = ""


@click.command(cls=Command, example="sassxlate doctor ./saxpy")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@target_option
@printing_options()
@click.pass_context
def command(context: click.Context, files: tuple[str, ...], target: str, form: str) -> None:
    """Check what is installed, what is missing and how to get it; of executables and shared
    objects: which CUDA runtime they have, and whether `run` can replace it.

    Exit status 1: something is missing that running programs needs, or a FILE's runtime is unknown.
    """
    asked = [partial(_file, path) for path in files] or checks_for(target)
    checks = [check() for check in asked]
    if form == "json":
        print_json("doctor", {"version": __version__, "checks": [asdict(c) for c in checks]})
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


def _file(path: str) -> Check:
    """The CUDA runtime of a program or a library."""
    from sassxlate.runtime_shim.static_runtime import runtime_of

    try:
        found = runtime_of(path)
    except SassxlateError as error:
        return Check(path, "missing", str(error), f"sassxlate explain {error.code}")
    if found.state != "unknown":
        return Check(path, "ok", found.text)
    return Check(path, "missing", found.text, "sassxlate explain SX0761")


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
    fix = "pip install sassxlate; in a checkout, pip install . (with g++) or native/build.sh"
    try:
        directory = paths.library_dir()
    except SassxlateError as error:
        return Check("native libraries", "missing", error.message, fix)
    absent = [name for name in _LIBRARIES if not (directory / name).is_file()]
    if absent:
        detail = f"{directory} lacks {', '.join(absent)}"
        return Check("native libraries", "missing", detail, fix)
    return Check("native libraries", "ok", str(directory))


def _replaced() -> Check:
    """Which of NVIDIA's libraries `run` puts ours in place of."""
    words = ", ".join(REPLACED)
    cards = ", ".join(REPLACED_ON_CARDS)
    detail = f"{words} (on an AMD card {cards}, and cublas with hipBLAS): NVIDIA's own refuse here"
    if host_blas() is None:
        detail += "; this NumPy brings no OpenBLAS for cublas (SASSXLATE_BLAS names another)"
    return Check("replaced libraries", "ok", f"{detail} (run --replace LIST, or none)")


def _capability() -> Check:
    """What compute capability programs will find."""
    asked = os.environ.get("SASSXLATE_CC", "")
    if not asked:
        detail = (
            "the newest, up to 9.0 (with cuDNN 8.0), that a program and its libraries have code"
            " for; else 8.0"
        )
        return Check("capability", "ok", f"{detail} (run --arch SM, or SASSXLATE_CC)")
    try:
        return Check("capability", "ok", f"{capability(asked)} (SASSXLATE_CC)")
    except SassxlateError:
        detail = f"SASSXLATE_CC={asked} is not a compute capability"
        return Check("capability", "missing", detail, "set it to one such as 8.0, or unset it")


def _translator(target: str) -> Check:
    """Imports everything and translates and compiles one kernel, without the service."""
    begin = time.monotonic()
    try:
        from sassxlate.disasm.containers import load
        from sassxlate.lowering.emulate import compile_code_object
        from sassxlate.lowering.pipeline import translate_kernel
        from sassxlate.lowering.target import target_named
        from sassxlate.runtime_shim.selftest.selftest import data_folder

        cubin = data_folder() / "kernels" / "sm_80" / f"{_KERNEL}.cubin"
        for _, module in load(cubin).cubins():
            done = translate_kernel(module, _KERNEL, target=target_named(target).of_rules)
            compile_code_object(done.code_object, _KERNEL)
    except Exception as error:  # the user must see any failure
        detail = f"{type(error).__name__}: {error}"
        return Check("translator", "missing", detail, "install sassxlate again")
    seconds = time.monotonic() - begin
    return Check("translator", "ok", f"translates and compiles a kernel in {seconds:.1f} s")


def _compiled() -> Check:
    """Whether the translator's modules run as machine code."""
    name, slower = "compiled modules", "the translator takes twice as long from its sources"
    fix = "install Python's headers (Debian: python3-dev), then, in a clone, pip install ."
    match compiled.state():
        case "used":
            return Check(name, "ok", str(compiled.library()))
        case "pure":
            return Check(name, "optional", f"{compiled.PURE} is set; {slower}", "unset it")
        case "other sources":
            return Check(
                name,
                "optional",
                f"made of other sources, so not used; {slower}",
                "in a clone, pip install .",
            )
        case "absent":
            return Check(name, "optional", f"none for this Python; {slower}", fix)


def _stencils() -> Check:
    """Whether the baseline tier's first code is there, of these sources."""
    from sassxlate.lowering.emulate.options import host_isa
    from sassxlate.runtime_shim.service import prebuilt

    name = "stencils"
    try:
        folder, isa = paths.library_dir(), host_isa()
    except SassxlateError:
        return Check(name, "optional", "not looked for", "see what is missing above")
    if prebuilt.read(folder, isa) is not None:
        return Check(name, "ok", str(folder / prebuilt.name_of(isa)))
    slower = "none of these sources; a first run with an empty cache takes two seconds more"
    return Check(name, "optional", slower, "in a clone, pip install .")


def _hip(target: str) -> Check:
    fix = "install AMD's ROCm for the card; without it programs run on the emulated device"
    if not os.path.exists(_KFD):
        # Without the kernel driver, `run` does not look for a GPU.
        return Check(
            "AMD HIP", "optional", f"no AMD GPU ({_KFD} is absent){_found_hip(target)}", fix
        )
    if not os.access(_KFD, os.R_OK | os.W_OK):
        groups = "add this user to the groups render and video, and log in again"
        return Check("AMD HIP", "optional", f"{_KFD} is not this user's to open", groups)
    found = find_hip(target)
    if found.path is None:
        return Check("AMD HIP", "optional", found.reason, fix)
    some = f"; GPUs {found.visible} of it" if found.visible else ""
    return Check("AMD HIP", "ok", f"{found.path} takes {target} code{some}{_hip_blas(found.path)}")


def _rocm() -> Check:
    """AMD's userland for `run --emulated-card`, which needs no GPU."""
    try:
        found = rocm.find()
    except SassxlateError as error:
        fix = "in a checkout, python -m tools.rocm fetch; or install ROCm"
        return Check("ROCm", "optional", error.message, fix)
    blas = _hip_blas(str(found.hip))
    return Check("ROCm", "ok", f"{found.name}: {found.hip} (run --emulated-card){blas}")


def _hip_blas(hip: str) -> str:
    """Which hipBLAS carries cuBLAS out beside a HIP library."""
    found = hip_blas.find(hip)
    return f"; cublas by {found}" if found else "; no hipBLAS, so cublas is not replaced there"


def _found_hip(target: str) -> str:
    """The state of HIP on a machine without a card."""
    found = find_hip(target)
    return f"; {found.path or found.reason}"


def _tool(name: str, use: str, fix: str) -> Callable[[], Check]:
    def check() -> Check:
        found = toolchain.TOOLS[name]()
        if found is None:
            return Check(name, "optional", f"not found; {use}", fix)
        return Check(name, "ok", f"{found.version} ({found.origin}: {found.command[0]})")

    return check


def _compiles_ptx(name: Name, use: str) -> Callable[[], Check]:
    """A tool that programs with PTX need; also which ones are passed over."""

    def check() -> Check:
        found = Found(name, dict(os.environ))
        fix = "pip install nvidia-cuda-nvcc, or set CUDA_HOME"
        tool = next(iter(found), None)
        refused = "".join(f"; {r.path} is not used: {r.why}" for r in found.refused)
        if tool is None:
            return Check(name, "optional", f"not found; {use}{refused}", fix)
        return Check(name, "ok", f"{tool.version} ({tool.origin}: {tool.path}){refused}")

    return check


def _packages() -> Check:
    absent = [name for name, what in _REQUIRED.items() if importlib.util.find_spec(what) is None]
    if absent:
        return Check(
            "packages", "missing", f"not installed: {', '.join(absent)}", "pip install sassxlate"
        )
    return Check("packages", "ok", ", ".join(_REQUIRED))


def _package(name: str, module: str, use: str, fix: str) -> Callable[[], Check]:
    """A Python package that only tests need; ``fix`` says which extra brings it."""

    def check() -> Check:
        if importlib.util.find_spec(module) is None:
            return Check(name, "optional", f"not installed; {use}", fix)
        return Check(name, "ok", f"{importlib.metadata.version(name)}: {use}")

    return check


def _llvm() -> Check:
    try:
        from llvmlite import binding
    except (ImportError, OSError) as error:
        return Check("llvmlite", "missing", str(error), "pip install sassxlate")
    version = ".".join(map(str, binding.llvm_version_info))
    return Check("llvmlite", "ok", f"LLVM {version}: compiles for the emulated device")


def _cache() -> Check:
    directory = paths.cache_dir()
    error = paths.unusable(directory)
    if error is None:
        return Check("cache", "ok", f"{directory} is writable")
    fix = "set SASSXLATE_CACHE_DIR; until then another directory is used"
    return Check("cache", "optional", str(error), fix)


def _service() -> Check:
    try:
        path = paths.socket_path()
    except (SassxlateError, OSError) as error:
        fix = "set XDG_RUNTIME_DIR or SASSXLATE_SOCKET"
        return Check("service", "missing", str(error), fix)
    if client.listening(path):
        return Check("service", "ok", f"listening at {path}")
    return Check("service", "ok", f"not running; it starts on demand at {path}")


def _model() -> Check:
    """What writes blocks for `translate` by default."""
    from sassxlate.llm.engine import choose, models

    try:
        mode = choose.usual(None)
    except SassxlateError as error:
        return Check("model", "optional", error.message, "unset it")
    if mode == "rules":
        asked = os.environ.get(choose.ENGINE)
        fix = f"unset {choose.ENGINE}" if asked else "pip install 'sassxlate[verify]'"
        return Check("model", "optional", "`translate` uses the rules", fix)
    weights = f"; weights: {models.shipped() or 'named'}" if mode in ("model", "hybrid") else ""
    return Check("model", "ok", f"`translate` uses engine {mode}{weights}")


def checks_for(target: str) -> tuple[Callable[[], Check], ...]:
    """All checks, in the order of the report, for code for a target."""
    return (
        _host,
        _python,
        _packages,
        _native,
        _replaced,
        _capability,
        _llvm,
        partial(_translator, target),
        _compiled,
        _stencils,
        _cache,
        _service,
        _model,
        partial(_hip, target),
        _rocm,
        _compiles_ptx("ptxas", "compiles PTX that programs ship, or make when they run"),
        _compiles_ptx("nvlink", "links device code when programs run (cuLink...)"),
        _tool(
            "g++", "builds the native libraries", "install g++ with the system's package manager"
        ),
        _tool("nvcc", "builds test programs", _TEST_EXTRA),
        _tool("nvdisasm", "the disassembler that the tests compare with", _TEST_EXTRA),
        _tool("cuobjdump", "the object dumper that the tests compare with", _TEST_EXTRA),
        _tool("clang", "the assembler that the tests compare with", _TEST_EXTRA),
        _package("tinygrad", "tinygrad", "AMD's pseudocode, for the tests", _TEST_EXTRA),
        _package("lief", "lief", "the tests compare host programs with it", _TEST_EXTRA),
    )
