"""A module as the driver library reads it: kernels, variables, section images, relocations.

One item per line, fields separated by a space, the name last because it may contain anything but a
newline::

    sassxlate-module 2
    arch 90
    section 0 SIZE FILE NAME             FILE is "-" for zeros, otherwise a file beside the manifest
    reloc SECTION OFFSET KIND TARGET ADDEND      stores the address of section TARGET + ADDEND
    unresolved SECTION OFFSET SIZE SYMBOL        not defined here: filled with a faulting address
    global SECTION OFFSET SIZE NAME
    managed SECTION OFFSET SIZE NAME             the same, of a __managed__ variable
    kernel KEY REGS SHARED LOCAL CONST THREADS BANK2 NAME   BANK2: its section's number, or -1
    param OFFSET SIZE                    of the kernel above, in order
    fits THREADS                         of that kernel's blocks, if that is fewer than its
    registers allow on an NVIDIA GPU: told without its translation
    nocode CUDA_ERROR LINE               nothing of this image can run here
    made KEY SIZE TIME PATH              PTX: the module is KEY, made by the ptxas at PATH; it is
    asked for again if that file has not this size and time (nanoseconds) any more
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sassxlate.disasm.containers.values import Cubin, Fatbin, FatbinEntry, Kernel, Reloc
from sassxlate.errors import ContainerError
from sassxlate.lowering.abi.link import BANK4, address_words, bank4_size, function_addresses
from sassxlate.runtime_shim.cache.store import key_of
from sassxlate.runtime_shim.ptx.tools import Tool

MAGIC = "sassxlate-module 2"
CUDA_ERROR_INVALID_IMAGE = 200
CUDA_ERROR_NO_BINARY_FOR_GPU = 209

# R_CUDA_* of data sections, from the numbers that `readelf` prints for nvcc's output
# (CUDA 13.0, sm_75 to sm_120): the stored part of the symbol's address.
_ABS64 = 2
_DESCRIPTOR64 = 35  # a function's address (libcudadevrt's tables of functions)
_RELOC_KINDS = {1: "abs32lo", 2: "abs64", 3: "abs32lo", 4: "abs64", _DESCRIPTOR64: "abs64"}

# The kilobyte of each block's shared memory that the hardware reserves (sm_90 and later); CUDA does
# not count it among a kernel's static shared memory.
_RESERVED_SHARED = 1024
_RESERVED_SINCE = 90


@dataclass(frozen=True, slots=True)
class Manifest:
    """The text, and the files that it names: suffix after ``<key>.`` to bytes."""

    text: str
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])


def choose(fatbin: Fatbin, capability: int, supported: frozenset[int]) -> FatbinEntry | None:
    """The entry to run on a device of ``capability`` (90 for 9.0); None if none can be translated.

    The device's own architecture first; otherwise the newest before it, which such a device is
    meant to run; otherwise the oldest after it.
    """
    usable = [e for e in fatbin.entries if e.kind == "elf" and e.arch in supported]
    older = [e for e in usable if e.arch <= capability]
    if older:
        best = max(e.arch for e in older)
    elif usable:
        best = min(e.arch for e in usable)
    else:
        return None
    same = [e for e in usable if e.arch == best]
    # A plain entry before one with an architecture letter: it requires less.
    return min(same, key=lambda e: e.variant != "")


def made_by(key: str, tool: Tool) -> Manifest:
    """The manifest of PTX: the module that ``tool`` made of it."""
    text = f"{MAGIC}\nmade {key} {tool.size} {tool.modified_ns} {_name(tool.path)}\n"
    return Manifest(text)


def no_code(fatbin: Fatbin) -> Manifest:
    """The manifest of a container without anything to translate."""
    kinds = ", ".join(sorted({f"{e.kind} sm_{e.arch}{e.variant}" for e in fatbin.entries}))
    return refuse(
        CUDA_ERROR_NO_BINARY_FOR_GPU,
        "SX0708",
        f"no SASS that can be translated ({kinds or 'empty'})",
    )


def refuse(cuda_error: int, code: str, text: str) -> Manifest:
    """The manifest of an image that cannot be used at all."""
    return Manifest(f"{MAGIC}\nnocode {cuda_error} {code}: {' '.join(text.split())}\n")


def write(key: str, cubin: Cubin, fits: Mapping[str, int] | None = None) -> Manifest:
    """The manifest of ``cubin`` under the module key ``key``.  ``fits``: threads of the
    largest block, of kernels for which that is fewer than on an NVIDIA GPU."""
    if cubin.relocatable:
        return refuse(
            CUDA_ERROR_NO_BINARY_FOR_GPU, "SX0710", "relocatable device code that was not linked"
        )
    sizes = {name: size for name, size in cubin.section_sizes.items() if _is_data(name)}
    words = address_words(cubin)
    if bank4 := bank4_size(cubin):
        sizes[BANK4] = bank4
    images: list[tuple[str, int, bytes]] = [
        (name, size, _with_functions(cubin, name, size)) for name, size in sorted(sizes.items())
    ]
    bank2: dict[str, int] = {}
    for kernel in cubin.kernels:
        if kernel.constant2:
            bank2[kernel.name] = len(images)
            images.append((f".nv.constant2.{kernel.name}", len(kernel.constant2), kernel.constant2))
    numbers = {name: n for n, (name, _, _) in enumerate(images)}
    lines = [MAGIC, f"arch {cubin.arch}"]
    files: dict[str, bytes] = {}
    for number, (name, size, data) in enumerate(images):
        file = "-"
        if data.strip(b"\0"):
            suffix = f"s{number}"
            files[suffix] = data
            file = f"{key}.{suffix}"
        lines.append(f"section {number} {size} {file} {_name(name)}")
    code = function_addresses(cubin)
    for reloc in cubin.relocs:
        if reloc.section in numbers and reloc.symbol not in code:
            if reloc.offset + 4 > images[numbers[reloc.section]][1]:
                raise ContainerError(
                    "SX0711", f"a relocation at {reloc.section}+{reloc.offset:#x}, outside of it"
                )
            lines.append(_reloc(cubin, reloc, numbers))
    for (symbol, addend), offset in words.items():
        word = Reloc(BANK4, offset, _ABS64, symbol, addend)
        lines.append(_reloc(cubin, word, numbers))
    for item in cubin.globals:
        if item.section in numbers:
            number = numbers[item.section]
            if item.offset + item.size > images[number][1]:
                raise ContainerError(
                    "SX0711", f"the variable {item.name} lies outside its section {item.section}"
                )
            kind = "managed" if item.managed else "global"
            lines.append(f"{kind} {number} {item.offset} {item.size} {_name(item.name)}")
    for kernel in cubin.kernels:
        lines += _kernel(kernel, bank2.get(kernel.name, -1))
        if fits and kernel.name in fits:
            lines.append(f"fits {fits[kernel.name]}")
    return Manifest("\n".join(lines) + "\n", files)


def _with_functions(cubin: Cubin, section: str, size: int) -> bytes:
    """A section's bytes, with the addresses of functions that have their own sections."""
    data = bytearray(cubin.sections.get(section, b""))
    places = function_addresses(cubin)
    for reloc in cubin.relocs:
        if reloc.section == section and reloc.symbol in places:
            if reloc.type not in (_ABS64, _DESCRIPTOR64) or reloc.offset + 8 > len(data):
                raise ContainerError(
                    "SX0711", f"relocation type {reloc.type} of {section}+{reloc.offset:#x}"
                )
            value = places[reloc.symbol] + reloc.addend
            data[reloc.offset : reloc.offset + 8] = value.to_bytes(8, "little")
    return bytes(data).ljust(size, b"\0") if data else b""


def _is_data(section: str) -> bool:
    return (
        section in (".nv.constant3", ".nv.constant4")
        or section == ".nv.global"
        or section.startswith(".nv.global.")
    )


def _kernel(kernel: Kernel, bank2: int) -> list[str]:
    shared = kernel.shared_size
    if kernel.arch >= _RESERVED_SINCE and shared >= _RESERVED_SHARED:
        shared -= _RESERVED_SHARED
    threads = 1024
    if kernel.max_threads is not None:
        x, y, z = kernel.max_threads
        threads = min(threads, x * y * z)
    head = (
        f"kernel {key_of(kernel.name.encode())} {kernel.registers} {shared} {kernel.local_size} "
        f"{kernel.constant0_size} {threads} {bank2} {_name(kernel.name)}"
    )
    params = sorted(kernel.params, key=lambda p: p.index)
    return [head, *(f"param {p.offset} {p.size}" for p in params)]


def _reloc(cubin: Cubin, reloc: Reloc, numbers: dict[str, int]) -> str:
    place = f"{numbers[reloc.section]} {reloc.offset}"
    kind = _RELOC_KINDS.get(reloc.type)
    if kind is None:
        raise ContainerError(
            "SX0711", f"relocation type {reloc.type} of {reloc.section}+{reloc.offset:#x}"
        )
    symbol = next((s for s in cubin.symbols if s.name == reloc.symbol), None)
    if symbol is None or symbol.section not in numbers:
        # Functions of the driver (vprintf, malloc) and code addresses: kernels that use them are
        # the translator's concern; data that holds them must not look like a valid address.
        return f"unresolved {place} {8 if kind == 'abs64' else 4} {_name(reloc.symbol)}"
    return f"reloc {place} {kind} {numbers[symbol.section]} {symbol.value + reloc.addend}"


def _name(name: str) -> str:
    if "\n" in name or "\r" in name:
        raise ContainerError("SX0711", f"a line break in the name {name!r}")
    return name
