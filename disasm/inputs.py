"""Shared by the subcommands that read fat binaries: inputs, filters, and plain output."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from sassxlate.disasm.containers import (
    Cubin,
    LoadedFile,
    Origin,
    demangle,
    load,
    load_bytes,
    read_file,
)
from sassxlate.disasm.containers.code_object import is_code_object
from sassxlate.errors import ContainerError, UsageError, Where


def read_bytes(path: str) -> bytes:
    """All of a file, or of standard input for ``-``.  ContainerError SX0101."""
    if path != "-":
        return read_file(path)
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ContainerError("SX0101", f"cannot read the file: {reason}", Where(_STDIN)) from None


def shown_name(path: str) -> str:
    """The file's name for messages."""
    return _STDIN if path == "-" else path


def read_text(path: str) -> str:
    """A text file, or standard input for ``-``; bytes that are not UTF-8 are kept, because
    comments may hold them.  ContainerError SX0101."""
    return read_bytes(path).decode("utf-8", "surrogateescape")


_HEAD = 24  # bytes that distinguish a code object from other files
_STDIN = "<stdin>"


def read_input(path: str) -> LoadedFile:
    """The file, or standard input for ``-``."""
    return load_bytes(read_bytes(path), _STDIN) if path == "-" else load(path)


def read_code_object(path: str) -> bytes | None:
    """The bytes of an AMDGPU ELF file or offload bundle; None if the file is something else."""
    if path == "-":
        peek = getattr(sys.stdin.buffer, "peek", None)
        if peek is None or not is_code_object(bytes(peek(_HEAD))[:_HEAD]):
            return None
        return sys.stdin.buffer.read()
    try:
        with open(path, "rb") as stream:
            head = stream.read(_HEAD)
            return head + stream.read() if is_code_object(head) else None
    except OSError:
        return None  # the next reader reports the reason


def read_hip_program(path: str) -> bytes | None:
    """The bytes of a host program or library with HIP device code; None if it has none."""
    try:
        data = read_file(path)
    except ContainerError:
        return None  # the next reader reports the reason
    return data if b".hip_fatbin\0" in data else None


def require_device_code(loaded: LoadedFile) -> None:
    """Raises ContainerError SX0110 if the file has no device code."""
    if not loaded.fatbins:
        raise ContainerError("SX0110", "the file holds no device code", Where(loaded.path))


def require_machine_code(loaded: LoadedFile, arch: str | None = None) -> LoadedFile:
    """The file itself.  Raises ContainerError SX0110, or UsageError SX0818 if it has no SASS.

    ``arch`` is for what takes this function's place: it may compile PTX.
    """
    del arch
    require_device_code(loaded)
    entries = [entry for _, entry in loaded.entries()]
    if not any(entry.kind == "elf" for entry in entries):
        kinds = sorted({f"{e.kind} {arch_name(e.arch, e.variant)}" for e in entries})
        what = ", ".join(kinds) or "empty"
        raise UsageError("SX0818", f"the file holds no SASS ({what})", Where(loaded.path))
    return loaded


def has_ptx_alone(loaded: LoadedFile) -> bool:
    """Whether there is PTX and no machine code."""
    kinds = {entry.kind for _, entry in loaded.entries()}
    return "ptx" in kinds and "elf" not in kinds


CodeOf: TypeAlias = Callable[[LoadedFile, str | None], LoadedFile]
"""A file, with machine code, for an architecture that is asked for."""


def no_match(path: str, kernels: Sequence[str], arch: str | None) -> UsageError:
    """The error for a filter that matches nothing."""
    what = f"no kernel matches {' '.join(k or repr(k) for k in kernels)}" if kernels else ""
    if arch:
        what = f"{what or 'the file holds no kernel'} for {arch}"
    return UsageError("SX0802", what or "the file holds no kernel", Where(shown_name(path)))


def parse_arch(text: str) -> tuple[int, str]:
    """``sm_90a``, ``compute_90a``, ``90a`` -> (90, "a").  Raises UsageError SX0811."""
    bare = text.removeprefix("sm_").removeprefix("compute_")
    number = bare.rstrip("af")
    if not number.isdecimal() or len(bare) - len(number) > 1:
        raise UsageError("SX0811", f"{text!r} names no architecture; write it like sm_80")
    return int(number), bare[len(number) :]


def arch_name(arch: int, variant: str = "") -> str:
    """(90, "a") -> ``sm_90a``."""
    return f"sm_{arch}{variant}"


def matching_images(
    loaded: LoadedFile, kernels: Sequence[str], arch: str | None
) -> Iterator[tuple[Origin, bytes, Cubin]]:
    """The cubins for an architecture (of a variant where it has a letter: sm_90 is sm_90a, too)
    that have a function whose name matches; others are not read.  Raises ContainerError, and
    UsageError SX0811."""
    wanted = parse_arch(arch) if arch else None

    def named(mangled: str) -> bool:
        return kernel_matches(mangled, demangle(mangled), kernels)

    number = wanted[0] if wanted else None
    for origin, image, cubin in loaded.images(arch=number, named=named if kernels else None):
        if wanted is None or (
            cubin.arch == wanted[0] and (not wanted[1] or wanted[1] == cubin.variant)
        ):
            yield origin, image, cubin


def kernel_matches(mangled: str, demangled: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern matches: the mangled or demangled name, its part before "(", or a glob of
    these."""
    if not patterns:
        return True
    names = (mangled, demangled, demangled.partition("(")[0])
    return any(
        name == pattern or fnmatch.fnmatchcase(name, pattern)
        for pattern in patterns
        for name in names
    )
