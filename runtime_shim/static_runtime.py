"""Which CUDA runtime a program or a library has, by the rules of libsassxlate_preload.

``runtime_shim/native/preload/preload.cpp`` decides when a file is loaded; this says it of a file
that is not.  The signatures are those of ``runtime_shim/signatures``, whose form
``tools/generate/cudart_signatures.py`` describes.
"""

from __future__ import annotations

import base64
import hashlib
import mmap
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from sassxlate.disasm.containers.elf import EM_X86_64, PT_LOAD, SHT_SYMTAB, STT_FUNC, Elf
from sassxlate.disasm.containers.host import ZIP, foreign
from sassxlate.errors import ContainerError, Where

State = Literal["known", "unknown", "none"]

_ANCHOR, _STEP = 32, 16  # bytes of an anchor; what its address is a multiple of
_CHUNK = 1 << 26  # bytes that are hashed at a time
_EXECUTABLE = 1  # PF_X
_MACHINES = {3: "i386", 40: "Arm", 183: "AArch64", 21: "ppc64", 22: "s390x", 243: "RISC-V"}
_MARKERS = (
    ((b"\0cudaLogsCurrent\0",), "13"),
    ((b"\0cudaGetDeviceProperties_v2\0",), "12"),
    ((b"\0cudaBindTexture\0", b"\0cudaStreamCopyAttributes\0"), "11"),  # 10 has the first alone
)
_INTERNAL = re.compile(rb"\0(?:libcudart_static_|__cudart\d)")  # the latter in 11


@dataclass(frozen=True, slots=True)
class Runtime:
    """The answer: whether `run` can put ours in place of the runtime, and a line that says it."""

    state: State
    text: str


@dataclass(frozen=True, slots=True)
class Signature:
    """One file of ``runtime_shim/signatures``."""

    release: str
    length: int
    anchor: int
    hash: int
    digest: str
    masks: tuple[tuple[int, int], ...]  # (start, end), sorted
    entries: tuple[tuple[int, str], ...]  # offsets and names of the public functions
    absent: tuple[str, ...]  # those of a neighbouring release that were not found in this one

    def same(self, block: memoryview) -> bool:
        """Whether the bytes that a linker leaves alone are those of the release."""
        data = bytearray(block)
        for start, end in self.masks:
            data[start:end] = bytes(end - start)
        return hashlib.blake2b(data, digest_size=32).hexdigest() == self.digest


def _masks(text: str) -> Iterator[tuple[int, int]]:
    """Pairs (bytes kept, bytes masked) of LEB128 numbers in base64, as ranges."""
    numbers: list[int] = []
    value = shift = 0
    for byte in base64.b64decode(text):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
    at = 0
    for kept, masked in zip(numbers[::2], numbers[1::2], strict=True):
        at += kept + masked
        yield at - masked, at


@cache
def signatures() -> tuple[Signature, ...]:
    """All known releases."""
    found: list[Signature] = []
    for path in sorted((Path(__file__).parent / "signatures").glob("*.sig")):
        lines = path.read_text("ascii").splitlines()
        rows = dict(
            line.split(" ", 1)
            for line in lines
            if not line.startswith(("#", "entry ", "quiet ", "absent ", "end"))
        )
        entries = (line.split() for line in lines if line.startswith("entry "))
        anchor, value = rows["anchor"].split()
        found.append(
            Signature(
                rows["release"],
                int(rows["length"], 16),
                int(anchor, 16),
                int(value, 16),
                rows["digest"],
                tuple(_masks(rows["mask"])),
                tuple((int(offset, 16), name) for _, offset, name in entries),
                tuple(line.split()[1] for line in lines if line.startswith("absent ")),
            )
        )
    return tuple(found)


def runtime_of(path: str | os.PathLike[str]) -> Runtime:
    """The runtime of an executable or a shared object.

    Raises:
        ContainerError: SX0101, the file cannot be read; SX0102, it is of another kind (a wheel);
        SX0105, it is for another machine; SX0103 to SX0107, it is no ELF file of 64
        bits or a damaged one.
    """
    place = Where(os.fspath(path))
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except OSError as error:
        why = error.strerror or str(error)
        raise ContainerError("SX0101", f"cannot read the file: {why}", place) from error
    if what := foreign(data[:8]):
        of_it = "; name a library in it" if what == ZIP else ""
        raise ContainerError("SX0102", f"{what}: no program or library for Linux{of_it}", place)
    try:
        return _runtime(Elf(memoryview(data)))
    except ContainerError as error:
        raise error.at(file=os.fspath(path)) from error


def _runtime(elf: Elf) -> Runtime:
    if elf.machine != EM_X86_64:
        name = _MACHINES.get(elf.machine, f"machine {elf.machine}")
        raise ContainerError(
            "SX0105", f"code for {name}, which does not run here (x86-64)", Where()
        )
    strings = b"".join(bytes(s.data) for s in elf.sections if s.name == ".dynstr")
    near = False
    for signature, same, _ in _anchors(elf):
        near = True
        if same:
            text = f"statically linked CUDA runtime {signature.release}: replaced"
            if signature.absent:
                count = len(signature.entries)
                text += f", {count} functions; not known (SX0766): {', '.join(signature.absent)}"
            return Runtime("known", text)
    names = b"".join(bytes(s.data) for s in elf.sections if s.name == ".strtab")
    if _INTERNAL.search(names):
        major = next((major for has, major in _MARKERS if all(m in names for m in has)), None)
        if major:
            text = f"statically linked CUDA runtime {major}.x, found by its symbols: replaced"
            return Runtime("known", text)
        near = True
    shared = re.search(rb"\0(libcudart\.so\.\d+)[.\d]*\0", strings)
    if shared:
        return Runtime("known", f"{shared[1].decode()}: replaced")
    loads = b"\0dlsym\0" in strings and b"\0dlopen\0" in strings
    device = any(s.name == ".nvFatBinSegment" for s in elf.sections)
    if loads and _defines_public(elf):  # none of the runtime's own functions: XLA's stubs
        return Runtime("none", "functions with the CUDA runtime's names, but no runtime")
    if near or (loads and device and b"\0__cudaRegisterFatBinary\0" not in strings):
        releases = ", ".join(s.release.split()[0] for s in signatures())
        text = f"statically linked CUDA runtime of an unknown release (known: {releases})"
        return Runtime("unknown", text)
    return Runtime("none", "no CUDA runtime of its own")


def _defines_public(elf: Elf) -> bool:
    """Whether a function of the file has the name of a public one of the runtime."""
    public = {name for signature in signatures() for _, name in signature.entries}
    return any(
        symbol.kind == STT_FUNC and symbol.value and symbol.name in public
        for table in elf.sections
        if table.type == SHT_SYMTAB
        for symbol in elf.symbols(table)
    )


def functions_of(elf: Elf) -> tuple[dict[int, str], tuple[range, ...]]:
    """The public functions of statically linked runtimes that are recognised, by their addresses;
    the addresses that the runtimes take up.

    Where the signature is unknown, the names of the runtime's own functions show where it is.
    """
    if elf.machine != EM_X86_64:
        return {}, ()
    names: dict[int, str] = {}
    ranges: list[range] = []
    for signature, same, address in _anchors(elf):
        if same:
            names |= {address + offset: name for offset, name in signature.entries}
            ranges.append(range(address, address + signature.length))
    if not ranges:
        own = [
            symbol.value
            for table in elf.sections
            if table.type == SHT_SYMTAB
            for symbol in elf.symbols(table)
            if symbol.kind == STT_FUNC and _INTERNAL.match(b"\0" + symbol.name.encode())
        ]
        ranges += [range(min(own), max(own) + 1)] if own else []
    return names, tuple(ranges)


def _anchors(elf: Elf) -> Iterator[tuple[Signature, bool, int]]:
    """Each place with a signature's anchor, whether the whole block is that release's, and the
    block's address."""
    wanted = np.array([s.hash for s in signatures()], np.uint64)
    for segment in elf.segments:
        if segment.type != PT_LOAD or not segment.flags & _EXECUTABLE:
            continue
        data = elf.slice(segment.offset, segment.filesz, "a segment")
        first = -segment.vaddr % _STEP
        for start in range(first, len(data) - _ANCHOR + 1, _CHUNK):
            end = min(len(data), start + _CHUNK + _ANCHOR - _STEP)
            hashes = _hashes(data[start : end - (end - start) % _STEP])
            for index in np.flatnonzero(np.isin(hashes, wanted)):
                for signature in signatures():
                    if signature.hash != int(hashes[index]):
                        continue
                    at = start + int(index) * _STEP - signature.anchor
                    fits = 0 <= at <= len(data) - signature.length
                    same = fits and signature.same(data[at : at + signature.length])
                    yield signature, same, segment.vaddr + at


def _hashes(data: memoryview) -> npt.NDArray[np.uint64]:
    """The hash of the 32 bytes at each multiple of 16 (tools/generate/cudart_signatures.py)."""
    words = np.frombuffer(data, "<u8").astype(np.uint64)
    count = max(0, len(words) // 2 - 1)
    value = np.zeros(count, np.uint64)
    for n in range(4):
        value = (value ^ words[n : n + 2 * count : 2]) * np.uint64(0x9E3779B97F4A7C15)
        value ^= value >> np.uint64(29)
    return value
