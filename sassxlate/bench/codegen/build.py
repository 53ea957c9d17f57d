"""For `sassxlate bench codegen`: the self-checking programs by nvcc, and their kernels by clang."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sassxlate import toolchain
from sassxlate.disasm.amdgpu_machines import gfx_version
from sassxlate.errors import UsageError
from sassxlate.lowering.target import Target, target_named

ARCH = 80  # architecture of the executables whose code we translate
# As hipcc compiles, with floating-point atomics as single instructions, as nvcc's are.
FLAGS = (
    "-x", "hip", "--offload-device-only",
    "--no-gpu-bundle-output", "-nogpulib", "-nogpuinc", "-O3", "-std=c++17", "-fms-extensions",
    "-mcode-object-version=5", "-munsafe-fp-atomics", "-Wno-linker-warnings",
)  # fmt: skip
# The values in ROCm's oclc_*.bc for the target and for the parts of -ffast-math, none of which is
# enabled.
_CONTROLS = {
    "finite_only_opt": "i8 0", "unsafe_math_opt": "i8 0", "daz_opt": "i8 0",
    "correctly_rounded_sqrt32": "i8 1", "wavefrontsize64": "i8 0", "ABI_version": "i32 500",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """A self-checking program and the compilers' flags for it."""

    name: str
    source: Path
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compilers:
    """The two compilers, and the other files that clang needs."""

    nvcc: toolchain.Tool
    clang: tuple[str, ...]
    version: str  # clang's
    linker: tuple[str, ...]
    library: Path  # ocml.bc


def programs(fixtures: Path) -> list[BuiltProgram]:
    """The rows of programs.toml, in its order."""
    folder = fixtures / "programs" / "src"
    rows = tomllib.loads((folder / "programs.toml").read_text())["program"]
    return [
        BuiltProgram(name, folder / row["source"], tuple(row.get("flags", ())))
        for name, row in rows.items()
    ]


def of_folder(folder: Path) -> list[BuiltProgram]:
    """A program of each .cu file of a folder, by name.  UsageError SX0831 if there is none."""
    found = [BuiltProgram(path.stem, path, ()) for path in sorted(folder.glob("*.cu"))]
    if not found:
        raise UsageError("SX0831", f"no .cu file in {folder}")
    return found


def compilers() -> Compilers:
    """Both compilers.

    Raises:
        UsageError: SX0830, one of them or the device library is missing.
    """
    nvcc, clang = toolchain.nvcc(), toolchain.clang()
    library = toolchain.device_library()
    if nvcc is None or clang is None or library is None:
        missing = [
            name
            for name, found in (("nvcc", nvcc), ("clang", clang), ("ocml.bc", library))
            if found is None
        ]
        raise UsageError("SX0830", f"not found: {', '.join(missing)}")
    zig = toolchain.zig_library()
    if clang.command[-1] == "cc" and zig is not None:
        start = (sys.executable, "-m", "ziglang")
        command = (*start, "clang", "-resource-dir", str(zig))
        return Compilers(nvcc, command, clang.version, (*start, "ld.lld"), library)
    return Compilers(nvcc, clang.command, clang.version, ("ld.lld",), library)


def run(command: Sequence[str | Path]) -> None:
    """Runs a compiler.  UsageError SX0830 if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join((done.stdout + done.stderr).split())
        raise UsageError("SX0830", f"{Path(command[0]).name} {command[-1]}: {said[-300:]}")


def executable(tools: Compilers, program: BuiltProgram, fixtures: Path, out: Path) -> Path:
    """Builds the program for sm_80, with only SASS."""
    code = f"arch=compute_{ARCH},code=sm_{ARCH}"
    include = f"-I{fixtures / 'programs' / 'src'}"
    flags = ["-O3", "-std=c++17", include, *program.flags, "-gencode", code]
    run([*tools.nvcc.command, *flags, "-o", out, program.source])
    return out


def isa_version(target: Target) -> int:
    """The target's number in the device library, which names its file oclc_isa_version_1100.bc."""
    major, rest = divmod(gfx_version(target.cpu), 10000)
    return major * 1000 + rest


def _controls(folder: Path, target: Target) -> Path:
    """The control variables of the device library, as bitcode."""
    import llvmlite.binding as llvm

    path = folder / f"controls.{target.name}.bc"
    if not path.exists():
        lines = ['target triple = "amdgcn-amd-amdhsa"\n']
        lines += [
            f"@__oclc_{name} = linkonce_odr hidden local_unnamed_addr addrspace(4) constant {v}\n"
            for name, v in {**_CONTROLS, "ISA_version": f"i32 {isa_version(target)}"}.items()
        ]
        module: Any = llvm.parse_assembly("".join(lines))
        path.write_bytes(module.as_bitcode())
    return path


def code_object(
    tools: Compilers, program: BuiltProgram, fixtures: Path, out: Path, target: Target
) -> bytes:
    """The same source's kernels for a target, by clang."""
    linked: list[str | Path] = []
    for bitcode in (tools.library, _controls(out.parent, target)):
        linked += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", bitcode]
    # nvcc's spelling; its other options do not concern the device.
    own = ["-ffp-contract=off"] if "-fmad=false" in program.flags else []
    text, plain = out.with_suffix(".s"), out.with_suffix(".o")
    include = [f"-I{fixtures / 'codegen'}", f"-I{fixtures / 'programs' / 'src'}"]
    version = target_named(target.cpu).code_object_version
    machine = [f"--offload-arch={target.cpu}", f"-mcode-object-version={version}"]
    flags = [*FLAGS, *machine, *own]
    run([*tools.clang, *flags, *linked, *include, "-S", "-o", text, program.source])
    machine = ["--target=amdgcn-amd-amdhsa", f"-mcpu={target.cpu}"]
    run([*tools.clang, *machine, "-c", "-o", plain, text])
    run([*tools.linker, "-shared", plain, "-o", out])
    return out.read_bytes()
