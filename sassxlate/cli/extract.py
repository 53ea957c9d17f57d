"""``sassxlate extract``: the entries of a fat binary as files."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Generator
from pathlib import Path

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import arch_option, format_option, kernel_option
from sassxlate.disasm.containers import FatbinEntry, Origin, demangle, parse_cubin
from sassxlate.disasm.inputs import (
    arch_name,
    kernel_matches,
    parse_arch,
    read_input,
    require_device_code,
)
from sassxlate.errors import ContainerError, UsageError
from sassxlate.output import make_directory, print_json, write_whole

_SUFFIX = {"elf": "cubin", "ptx": "ptx", "ltoir": "ltoir", "other": "bin"}
_PTX_ENTRY = re.compile(rb"\.entry\s+([\w$.]+)")


@click.command(cls=Command, example="sassxlate extract ./saxpy --kind elf -o cubins")
@click.argument("file", metavar="FILE")
@click.option(
    "-o",
    "--output",
    default=".",
    metavar="DIR",
    show_default=True,
    help="Write to this folder; - is standard output, for one entry.",
)
@click.option(
    "--kind",
    type=click.Choice(["elf", "ptx", "all"]),
    default="all",
    show_default=True,
    help="Only machine code (elf) or PTX.",
)
@arch_option
@kernel_option
@format_option()
@click.pass_context
def command(
    context: click.Context,
    file: str,
    output: str,
    kind: str,
    arch: str | None,
    kernels: tuple[str, ...],
    form: str | None,
) -> None:
    """Write the entries of a fat binary, decompressed, as NAME.MODULE.ENTRY.ARCH.cubin or .ptx.

    With -k, those that hold a kernel of that name.  The paths written are printed.  Exit status 1:
    nothing matched.
    """
    if form == "json" and output == "-":
        raise UsageError("SX0812", "--format json and -o - both write to standard output")
    wanted = parse_arch(arch) if arch else None
    loaded = read_input(file)
    require_device_code(loaded)
    chosen = [
        (origin, entry)
        for origin, entry in loaded.entries()
        if (kind == "all" or entry.kind == kind)
        and (not wanted or (entry.arch == wanted[0] and wanted[1] in ("", entry.variant)))
        and _holds(origin, entry, kernels, loaded.path)
    ]
    if not chosen:
        click.echo("sassxlate: no entry of the file matches", err=True)
        context.exit(1)
    if output == "-":
        if len(chosen) != 1:
            raise UsageError("SX0812", f"{len(chosen)} entries match; only one can go to stdout")
        sys.stdout.buffer.write(_contents(*chosen[0], loaded.path))
        return
    stem = "stdin" if file == "-" else Path(file).name
    directory = Path(output)
    make_directory(directory)
    written: list[dict[str, str]] = []
    for origin, entry in chosen:
        arch_text = arch_name(entry.arch, entry.variant)
        name = f"{stem}.{origin.module}.{origin.entry}.{arch_text}.{_SUFFIX[entry.kind]}"
        write_whole(directory / name, _contents(origin, entry, loaded.path))
        written.append({"file": str(directory / name), "kind": entry.kind, "arch": arch_text})
        if form != "json":
            click.echo(directory / name)
    if form == "json":
        print_json("extract", {"from": file, "written": written})


def _contents(origin: Origin, entry: FatbinEntry, path: str) -> bytes:
    """The payload; PTX without the padding after its text."""
    with _in(origin, path):
        payload = entry.payload
    return payload.rstrip(b"\0") if entry.kind == "ptx" else payload


@contextlib.contextmanager
def _in(origin: Origin, path: str) -> Generator[None, None, None]:
    """Errors raised inside get the file and entry as their place."""
    try:
        yield
    except ContainerError as error:
        message = f"{error.message} (in {origin})"
        raise ContainerError(error.code, message, error.where).at(file=path) from None


def _holds(origin: Origin, entry: FatbinEntry, patterns: tuple[str, ...], path: str) -> bool:
    """Whether an entry has a requested kernel."""
    if not patterns:
        return True
    if entry.kind == "elf":
        with _in(origin, path):
            cubin = parse_cubin(entry.payload)
        return any(kernel_matches(k.name, k.demangled, patterns) for k in cubin.kernels)
    if entry.kind == "ptx":
        with _in(origin, path):
            text = entry.payload
        names = (m.decode("ascii", "replace") for m in _PTX_ENTRY.findall(text))
        return any(kernel_matches(name, demangle(name), patterns) for name in names)
    return False
