"""LLVM as the judge of RDNA3: an assembler (clang of the ziglang wheel) and, where a libLLVM with
the AMDGPU target is found, its disassembler through the C API.

``SASSXLATE_LIBLLVM`` names the library; otherwise the system's and the Rust toolchain's are tried.
"""

from __future__ import annotations

import ctypes
import io
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from sassxlate import toolchain
from sassxlate.disasm.amdgpu_machines import RDNA3

ROOT = Path(__file__).resolve().parents[3]


_TRIPLE = b"amdgcn-amd-amdhsa"
CPU = RDNA3[0]


def assemble_object(source: str, *, link: bool = False, cpu: str = CPU) -> tuple[bytes | None, str]:
    """(object file or None, messages) of an assembly source for a processor."""
    tool = toolchain.clang()
    if tool is None:
        return None, "no clang"
    with TemporaryDirectory() as folder:
        path, out = Path(folder, "a.s"), Path(folder, "a.o")
        path.write_text(source, encoding="utf-8")
        zig = tool.command[-1] == "cc"  # which writes gfx11-generic with an underscore
        name = cpu.replace("-", "_") if zig else cpu
        target = ["-target", "amdgcn-amdhsa-none", f"-mcpu={name}"]
        done = subprocess.run(
            [*tool.command, *target, "-c", str(path), "-o", str(out)],
            capture_output=True,
            check=False,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        return out.read_bytes() if done.returncode == 0 else None, done.stderr


def link_object(data: bytes) -> tuple[bytes | None, str]:
    """(code object or None, messages): LLVM's linker on an object file."""
    tool = toolchain.clang()
    if tool is None:
        return None, "no clang"
    zig = tool.command[-1] == "cc"
    command = [*tool.command[:-1], "ld.lld"] if zig else ["ld.lld"]
    with TemporaryDirectory() as folder:
        path, out = Path(folder, "a.o"), Path(folder, "a.hsaco")
        path.write_bytes(data)
        done = subprocess.run(
            [*command, "-shared", str(path), "-o", str(out)],
            capture_output=True,
            check=False,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        return out.read_bytes() if done.returncode == 0 else None, done.stderr


def compile_hip(source: Path, level: int, version: int = 6) -> tuple[bytes | None, str]:
    """(relocatable code object or None, messages) of a HIP file, without headers or libraries.

    ``level`` is that of optimisation, 0 to 3; ``version`` the code object's, 4 to 6.
    """
    tool = toolchain.clang()
    if tool is None:
        return None, "no clang"
    zig = tool.command[-1] == "cc"  # which takes no HIP; the clang inside it does
    command = [*tool.command[:-1], "clang"] if zig else list(tool.command)
    target = ["-triple", "amdgcn-amd-amdhsa", "-aux-triple", "x86_64-unknown-linux-gnu"]
    target.append(f"-mcode-object-version={version}")
    device = ["-target-cpu", CPU, "-x", "hip", "-fcuda-is-device", "-emit-obj"]
    with TemporaryDirectory() as folder:
        out = Path(folder, "a.o")
        done = subprocess.run(
            [*command, "-cc1", *target, *device, f"-O{level}", "-o", str(out), str(source)],
            capture_output=True,
            check=False,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        return out.read_bytes() if done.returncode == 0 else None, done.stderr


def section(data: bytes, name: str) -> bytes:
    """One section of an object file."""
    found = ELFFile(io.BytesIO(data)).get_section_by_name(name)
    assert found is not None
    return bytes(found.data())


def assemble_lines(lines: Sequence[str]) -> tuple[list[bytes | None], dict[int, str]]:
    """(machine code or None, messages by line) of instructions, one per line.

    Every instruction is preceded by a label, whose place in the symbol table delimits it.
    """
    errors: dict[int, str] = {}
    for _ in range(4):  # the assembler stops at some number of errors
        body = [f"L{i}: {line}" for i, line in enumerate(lines) if i not in errors]
        data, messages = assemble_object("\n".join([*body, f"L{len(lines)}:"]) + "\n")
        if data is not None:
            return _split(data, len(lines)), errors
        kept = [i for i in range(len(lines)) if i not in errors]
        found = re.findall(r":(\d+):\d+: error: (.*)", messages)
        assert found, messages
        errors |= {kept[int(number) - 1]: text for number, text in found}
    raise AssertionError("too many errors: " + str(list(errors.items())[:3]))


def _split(data: bytes, count: int) -> list[bytes | None]:
    elf = ELFFile(io.BytesIO(data))
    code = section(data, ".text")
    places: dict[int, int] = {}
    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    for symbol in table.iter_symbols():
        if re.fullmatch(r"L\d+", symbol.name):
            places[int(symbol.name[1:])] = symbol["st_value"]
    order = sorted(places)
    out: list[bytes | None] = [None] * count
    for here, after in pairwise(order):
        out[here] = code[places[here] : places[after]]
    return out


def _libraries() -> list[str]:
    named = os.environ.get("SASSXLATE_LIBLLVM")
    rust = Path.home() / ".rustup" / "toolchains"
    found = sorted(str(p) for p in rust.glob("*/lib/libLLVM*.so*"))
    return ([named] if named else []) + found


@cache
def disassembler(cpu: str = CPU) -> Callable[[bytes], tuple[int, str]] | None:
    """A function from bytes to (size, text), for a processor; size 0 if LLVM has no such
    instruction."""
    found = _load(cpu)
    return found[1] if found else None


def library() -> str:
    """The path of the libLLVM that disassembles; empty if there is none."""
    found = _load(CPU)
    return found[0] if found else ""


def library_version() -> tuple[int, int, int]:
    """The version that libLLVM reports."""
    numbers = [ctypes.c_uint() for _ in range(3)]
    ctypes.CDLL(library()).LLVMGetVersion(*(ctypes.byref(n) for n in numbers))
    return numbers[0].value, numbers[1].value, numbers[2].value


@cache
def _load(cpu: str) -> tuple[str, Callable[[bytes], tuple[int, str]]] | None:
    for path in _libraries():
        try:
            lib = ctypes.CDLL(path)
            for part in ("TargetInfo", "Target", "TargetMC", "Disassembler"):
                getattr(lib, f"LLVMInitializeAMDGPU{part}")()
            create = lib.LLVMCreateDisasmCPUFeatures
        except (OSError, AttributeError):
            continue
        create.restype = ctypes.c_void_p
        create.argtypes = (
            [ctypes.c_char_p] * 3 + [ctypes.c_void_p, ctypes.c_int] + [ctypes.c_void_p] * 2
        )
        run = lib.LLVMDisasmInstruction
        run.restype = ctypes.c_size_t
        run.argtypes = [
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_uint64,
            ctypes.c_uint64,
            ctypes.c_char_p,
            ctypes.c_size_t,
        ]
        context = create(_TRIPLE, cpu.encode(), b"+wavefrontsize32", None, 0, None, None)
        if not context:
            continue
        return path, _disassembler(run, context)
    return None


def _disassembler(run: Callable[..., int], context: int) -> Callable[[bytes], tuple[int, str]]:
    buffer = ctypes.create_string_buffer(1024)

    def disassemble(code: bytes) -> tuple[int, str]:
        size = run(context, code, len(code), 0, buffer, 1024)
        return size, buffer.value.decode().strip().replace("\t", " ") if size else ""

    return disassemble
