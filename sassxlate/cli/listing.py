"""``sassxlate listing``: SASS for disassemblers that cannot read it, and scripts that load it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import arch_option, kernel_option, printing_options
from sassxlate.disasm.containers import Function, Kernel
from sassxlate.disasm.inputs import (
    kernel_matches,
    matching_images,
    no_match,
    read_input,
    require_device_code,
)
from sassxlate.disasm.listing.cubin import Document
from sassxlate.disasm.listing.exchange import START, Code, Line, functions_of
from sassxlate.errors import EXIT_BAD_WORDS, SassxlateError
from sassxlate.output import print_json, print_lines
from sassxlate.runtime_shim.ptx.machine_code import machine_code

_SCRIPTS = {"ghidra": "ghidra_script.py", "binary-ninja": "binary_ninja_script.py"}
_PAGE = 0x10000  # cubins begin on multiples of it


@click.command(cls=Command, example="sassxlate listing ./saxpy --arch sm_80 -o saxpy.listing.json")
@click.argument("file", metavar="[FILE]", required=False)
@kernel_option
@arch_option
@click.option(
    "--script",
    type=click.Choice([*_SCRIPTS]),
    help="Print the script that loads listings into this program, instead of a listing.",
)
@printing_options()
@click.pass_context
def command(
    context: click.Context,
    file: str | None,
    kernels: tuple[str, ...],
    arch: str | None,
    script: str | None,
    form: str,
) -> None:
    """Print the SASS of a file as Ghidra and Binary Ninja can load it.

    As JSON: instructions with addresses, functions, blocks, labels, source lines, and which code
    refers to which.  Every function has an address of its own, in one address space for all
    architectures.  --script prints the script that such a program loads it with.

    A word that cannot be decoded is there with its error, and code of an architecture that is not
    known is left out with a message; then the exit status is 3.
    """
    if script is not None:
        if file is not None or kernels or arch:
            raise click.UsageError("--script prints a script: it takes no FILE, -k and --arch")
        name = _SCRIPTS[script]
        text = files("sassxlate.disasm.listing").joinpath(name).read_text("utf-8")
        if form == "json":
            print_json("listing-script", {"program": script, "file": name, "text": text})
        else:
            click.echo(text, nl=False)
        return
    if file is None:
        raise click.UsageError("Missing argument 'FILE' (or --script).")
    unknown: list[SassxlateError] = []
    found = [*_functions(file, kernels, arch, unknown)]
    if not found:
        raise unknown[0] if unknown else no_match(file, kernels, arch)
    for error in unknown:
        click.echo(f"sassxlate: {error}", err=True)
    if form == "json":
        print_json("listing", {"file": file, "functions": [_value(code) for code in found]})
    else:
        for code in found:
            print_lines(_lines(code))
    if unknown or any(line.error for code in found for line in code.lines):
        context.exit(EXIT_BAD_WORDS)


def _functions(
    file: str, kernels: tuple[str, ...], arch: str | None, unknown: list[SassxlateError]
) -> Iterator[Code]:
    """``unknown`` gets the error of each cubin of an architecture that is not known."""
    loaded = read_input(file)
    require_device_code(loaded)
    start = START
    for _, data, cubin in matching_images(machine_code(loaded, arch), kernels, arch):
        codes: list[Kernel | Function] = [*cubin.kernels, *cubin.functions]
        names = {code.name: code.demangled for code in codes}

        def chosen(name: str, names: dict[str, str] = names) -> bool:
            return kernel_matches(name, names.get(name, name), kernels)

        if not any(map(chosen, names)):
            continue
        try:
            some, end = functions_of(Document(data, None, cubin), start, chosen)
        except SassxlateError as error:
            if error.code != "SX0204":
                raise error.at(file=file) from None
            unknown.append(error.at(file=file, kernel=next(filter(chosen, names))))
            continue
        yield from some
        start = (end + _PAGE - 1) // _PAGE * _PAGE


def _lines(code: Code) -> Iterator[str]:
    names = dict(code.labels)
    starts = {address for address, _ in code.blocks}
    way: dict[int, list[str]] = {}
    for r in code.references:
        way.setdefault(r.source, []).append(f"{r.kind} {r.target:#x}")
    yield f"// {code.kind} {code.demangled}, {code.arch}: {code.size} bytes at {code.address:#x}"
    for line in code.lines:
        if line.address in starts:
            yield f"{names.get(line.address, f'{line.address:x}')}:"
        text = line.text or f"error {line.error}"
        to = f"  // {', '.join(way[line.address])}" if line.address in way else ""
        yield f"  {line.address:x}  {text}{to}"


def _value(code: Code) -> dict[str, object]:
    return {
        "name": code.name,
        "demangled": code.demangled,
        "kind": code.kind,
        "arch": code.arch,
        "address": code.address,
        "size": code.size,
        "blocks": [{"address": address, "size": size} for address, size in code.blocks],
        "labels": [{"address": address, "name": name} for address, name in code.labels],
        "instructions": [_instruction(line) for line in code.lines],
        "references": [
            {"from": r.source, "to": r.target, "kind": r.kind} for r in code.references
        ],
    }  # fmt: skip


def _instruction(line: Line) -> dict[str, object]:
    found: dict[str, object] = {"address": line.address, "word": f"{line.word:#034x}"}
    if line.error:
        found["error"] = line.error
    else:
        found |= {"text": line.text, "flow": line.flow, "conditional": line.conditional}
    if line.source:
        found["source"] = {"file": line.source[0], "line": line.source[1]}
    return found


__all__ = ["command"]
