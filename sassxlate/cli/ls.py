"""``sassxlate ls``: what a fat binary holds."""

from __future__ import annotations

from typing import Any

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import arch_option, kernel_option, printing_options
from sassxlate.disasm.containers import Cubin, FatbinEntry, LoadedFile, Origin, parse_cubin
from sassxlate.disasm.inputs import (
    arch_name,
    has_ptx_alone,
    kernel_matches,
    parse_arch,
    read_input,
    require_device_code,
)
from sassxlate.disasm.listing.records import More, more_lines
from sassxlate.errors import ContainerError, SassxlateError
from sassxlate.output import print_json, table
from sassxlate.runtime_shim.ptx.machine_code import machine_code


@click.command(cls=Command, example="sassxlate ls ./saxpy")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@kernel_option
@arch_option
@click.option("--attributes", is_flag=True, help="Print every record of .nv.info, decoded.")
@click.option("--relocations", is_flag=True, help="Print every relocation, by section and offset.")
@printing_options()
@click.pass_context
def command(
    context: click.Context,
    files: tuple[str, ...],
    kernels: tuple[str, ...],
    arch: str | None,
    attributes: bool,
    relocations: bool,
    form: str,
) -> None:
    """List what fat binaries hold: entries with architecture, kind and size, and their kernels.

    FILE is an executable, a shared object, an object file, a static archive, a fatbin or a cubin;
    - is standard input.  Sizes are in bytes; shared includes the kilobyte that sm_90 and later
    reserve.
    """
    more = More(attributes, relocations)
    wanted = parse_arch(arch) if arch else None
    answers: list[dict[str, Any]] = []
    errors: list[SassxlateError] = []
    for path in files:
        try:
            answer = _describe(read_input(path), wanted, kernels, more, errors)
        except SassxlateError as error:
            errors.append(error)
            continue
        answers.append(answer)
        if form == "text":
            _print(answer)
    if form == "json":
        told = [{"code": e.code, "text": str(e)} for e in errors]
        print_json("ls", {"files": answers, "errors": told})
    for problem in errors:
        click.echo(f"sassxlate: {problem}", err=True)
    if errors:
        context.exit(2)


def _describe(
    loaded: LoadedFile,
    wanted: tuple[int, str] | None,
    patterns: tuple[str, ...],
    more: More,
    errors: list[SassxlateError],
) -> dict[str, Any]:
    """The file as a JSON value.  Raises ContainerError SX0110 if there is no device code."""
    require_device_code(loaded)
    if wanted and has_ptx_alone(loaded):
        loaded = machine_code(loaded, arch_name(*wanted))
    sections = {f.module: f.section for f in loaded.fatbins}
    entries: list[dict[str, Any]] = []
    for origin, entry in loaded.entries():
        if wanted and (entry.arch != wanted[0] or (wanted[1] and entry.variant != wanted[1])):
            continue
        row = _entry(origin, entry, sections[origin.module])
        if entry.kind == "elf":
            try:
                image = entry.payload
                row |= _cubin(parse_cubin(image), patterns)
                row |= more.of(image, loaded.path, errors)
            except ContainerError as error:
                message = f"{error.message} (in {origin})"
                errors.append(ContainerError(error.code, message, error.where).at(file=loaded.path))
                row["error"] = error.code
        entries.append(row)
    return {
        "path": loaded.path,
        "kind": loaded.kind,
        "modules": len(loaded.fatbins),
        "entries": entries,
    }


def _entry(origin: Origin, entry: FatbinEntry, section: str) -> dict[str, Any]:
    return {
        "module": origin.module,
        "entry": origin.entry,
        "offset": origin.offset,
        "member": origin.member,
        "section": section,
        "kind": entry.kind,
        "arch": arch_name(entry.arch, entry.variant),
        "compression": entry.compression,
        "size": entry.size,
        "stored": entry.stored,
        "name": entry.name,
    }


def _cubin(cubin: Cubin, patterns: tuple[str, ...]) -> dict[str, Any]:
    return {
        "abi": cubin.abi,
        "relocatable": cubin.relocatable,
        "globals": [
            {"name": g.name, "section": g.section, "offset": g.offset, "size": g.size}
            for g in cubin.globals
        ],
        "functions": [f.name for f in cubin.functions],
        "kernels": [
            {
                "name": k.name,
                "demangled": k.demangled,
                "code": len(k.code),
                "registers": k.registers,
                "shared": k.shared_size,
                "local": k.local_size,
                "constant": k.constant0_size + len(k.constant2),
                "barriers": k.barriers,
                "params": [[p.offset, p.size] for p in k.params],
                "param_base": k.param_base,
                "param_size": k.param_size,
                "max_threads": list(k.max_threads) if k.max_threads else None,
                "externs": list(k.externs),
            }
            for k in cubin.kernels
            if kernel_matches(k.name, k.demangled, patterns)
        ],
    }


def _print(answer: dict[str, Any]) -> None:
    entries: list[dict[str, Any]] = answer["entries"]
    modules = answer["modules"]
    count = f"{modules} module" + ("s" if modules != 1 else "")
    click.echo(f"{answer['path']}: {answer['kind']}, {count}")
    keys = ("module", "entry", "kind", "arch", "compression", "size", "stored")
    rows = [(*(e[key] for key in keys), _notes(e)) for e in entries]
    for line in table((*keys, "notes"), rows, "  "):
        click.echo(line)
    kinds = {e["kind"] for e in entries}
    if "ptx" in kinds and "elf" not in kinds:
        click.echo("  PTX and no SASS: --arch sm_80 lists what ptxas makes of it")
    for entry in entries:
        for line in more_lines(entry):
            click.echo(line)
        kernels: list[dict[str, Any]] = entry.get("kernels", [])
        if not kernels:
            continue
        click.echo(f"\n  module {entry['module']} entry {entry['entry']}, {entry['arch']}:")
        keys = ("registers", "shared", "local", "constant", "param_size", "code", "demangled")
        head = ("regs", "shared", "local", "const", "params", "code", "kernel")
        for line in table(head, [tuple(k[key] for key in keys) for k in kernels], "    "):
            click.echo(line)


def _notes(entry: dict[str, Any]) -> str:
    notes: list[str] = []
    if entry.get("relocatable"):
        notes.append("relocatable")
    if entry["section"] == "__nv_relfatbin":
        notes.append("not linked")
    if entry["member"]:
        notes.append(f"in {entry['member']}")
    if "error" in entry:
        notes.append(f"unreadable: {entry['error']}")
    if entry["name"]:
        notes.append(entry["name"])
    return ", ".join(notes)
