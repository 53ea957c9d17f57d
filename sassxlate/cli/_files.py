"""What the subcommands that read fat binaries share: inputs, filters, and plain output."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import click

from sassxlate.disasm.containers import LoadedFile, load, load_bytes, read_file
from sassxlate.disasm.containers.code_object import is_code_object

from ..errors import ContainerError, UsageError, Where

_F = TypeVar("_F", bound=Callable[..., Any])

SCHEMA = 1  # of every JSON answer
_HEAD = 24  # bytes that tell a code object from other files
_LINES = 1024  # printed at a time
_SURROGATES = re.compile("[\ud800-\udfff]")


def read_input(path: str) -> LoadedFile:
    """The file, or standard input for ``-``."""
    if path == "-":
        try:
            data = sys.stdin.buffer.read()
        except OSError as error:
            reason = error.strerror or str(error)
            raise ContainerError(
                "SX0101", f"cannot read the file: {reason}", Where("<stdin>")
            ) from None
        return load_bytes(data, "<stdin>")
    return load(path)


def read_code_object(path: str) -> bytes | None:
    """The bytes of an AMDGPU ELF file or offload bundle; None where the file is something else."""
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
        return None  # whoever reads it next says why


def read_hip_program(path: str) -> bytes | None:
    """The bytes of a host program or library with HIP device code; None where it has none."""
    try:
        data = read_file(path)
    except ContainerError:
        return None  # whoever reads it next says why
    return data if b".hip_fatbin\0" in data else None


def read_text(path: str) -> str:
    """A text file, or standard input for ``-``; bytes that are no UTF-8 stay as they are, for
    comments may hold them.  ContainerError SX0101."""
    if path != "-":
        data = read_file(path)
    else:
        try:
            data = sys.stdin.buffer.read()
        except OSError as error:
            reason = error.strerror or str(error)
            raise ContainerError(
                "SX0101", f"cannot read the file: {reason}", Where("<stdin>")
            ) from None
    return data.decode("utf-8", "surrogateescape")


def require_device_code(loaded: LoadedFile) -> None:
    """Raises ContainerError SX0110 where the file has no device code."""
    if not loaded.fatbins:
        raise ContainerError("SX0110", "the file holds no device code", Where(loaded.path))


def require_machine_code(loaded: LoadedFile) -> None:
    """Raises ContainerError SX0110, or UsageError SX0818 where all the device code is PTX."""
    require_device_code(loaded)
    entries = [entry for _, entry in loaded.entries()]
    if not any(entry.kind == "elf" for entry in entries):
        kinds = sorted({f"{e.kind} {arch_name(e.arch, e.variant)}" for e in entries})
        what = ", ".join(kinds) or "empty"
        raise UsageError("SX0818", f"the file holds no SASS ({what})", Where(loaded.path))


def no_match(path: str, kernels: Sequence[str], arch: str | None) -> UsageError:
    """The error that says what was asked for and not found."""
    asked = " ".join((*kernels, arch or "")).strip()
    text = f"no kernel matches {asked}" if asked else "the file holds no kernel"
    return UsageError("SX0802", text, Where(path))


def make_directory(path: Path) -> None:
    """The directory and those above it; UsageError SX0813 where that is refused."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritten(error, path) from None


def write_whole(path: Path, data: bytes) -> None:
    """The whole file or nothing, with the permissions that the umask gives.

    What is no regular file (a device, a pipe) is written as it is.
    Raises UsageError SX0813.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(path, data)
    except OSError as error:
        raise _unwritten(error, path) from None


def _replace(path: Path, data: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=".sassxlate-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _unwritten(error: OSError, path: Path) -> UsageError:
    return UsageError("SX0813", f"cannot write: {error.strerror or error}", Where(str(path)))


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


def kernel_matches(mangled: str, demangled: str, patterns: Sequence[str]) -> bool:
    """Whether a name is asked for: mangled, demangled, its part before "(", or a glob of these."""
    if not patterns:
        return True
    names = (mangled, demangled, demangled.partition("(")[0])
    return any(
        name == pattern or fnmatch.fnmatchcase(name, pattern)
        for pattern in patterns
        for name in names
    )


def kernel_option(function: _F) -> _F:
    """``-k/--kernel``, which may repeat."""
    return click.option(
        "-k",
        "--kernel",
        "kernels",
        multiple=True,
        metavar="NAME",
        help="Only kernels of this name: mangled, demangled or a glob; may repeat.",
    )(function)


def arch_option(function: _F) -> _F:
    """``--arch``, the source architecture."""
    return click.option("--arch", metavar="SM", help="Only this source architecture, like sm_80.")(
        function
    )


def format_option(function: _F) -> _F:
    """``--output-format text|json`` with ``--json`` as its short form."""
    function = click.option(
        "--json", "output_format", flag_value="json", help="Short for --output-format json."
    )(function)
    return click.option(
        "--output-format",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="How to print the answer.",
    )(function)


def print_lines(lines: Iterable[str]) -> None:
    """Lines on stdout, many at a time."""
    rest = iter(lines)
    while some := list(islice(rest, _LINES)):
        click.echo("\n".join(some))


def print_json(value: dict[str, Any]) -> None:
    """One JSON document on stdout, its schema number first."""
    text = json.dumps({"schema": SCHEMA, **value}, indent=2, ensure_ascii=False)
    # Of a path that is no UTF-8: Python's own reader takes it back, and any other takes the rest.
    click.echo(_SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], indent: str = "") -> list[str]:
    """Lines of a table; columns of numbers are flushed right, the last column is not padded."""
    cells = [[str(c) for c in row] for row in rows]
    numeric = [
        bool(cells) and all(row[i].lstrip("-").isdigit() or row[i] in ("", "-") for row in cells)
        for i in range(len(head))
    ]
    widths = [max([len(head[i]), *(len(row[i]) for row in cells)]) for i in range(len(head))]
    lines: list[str] = []
    for row in [list(head), *cells]:
        parts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append((indent + "  ".join(parts)).rstrip())
    return lines
