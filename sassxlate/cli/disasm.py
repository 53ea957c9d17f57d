"""``sassxlate disasm``: SASS as nvdisasm prints it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from sassxlate.disasm.containers import Cubin, Function, Kernel
from sassxlate.disasm.sass import decode_section
from sassxlate.disasm.sass.listing import labels, lines, next_label, records

from ..errors import DecodeError
from ._files import (
    arch_name,
    arch_option,
    format_option,
    kernel_matches,
    kernel_option,
    no_match,
    parse_arch,
    print_json,
    read_input,
    require_machine_code,
)

EXIT_BAD_WORDS = 3


@click.command()
@click.argument("file", metavar="FILE")
@kernel_option
@arch_option
@click.option("--encoding", is_flag=True, help="Print each word in hexadecimal as well.")
@click.option("--control", is_flag=True, help="Print waits, scoreboards and stall counts.")
@format_option
@click.pass_context
def command(
    context: click.Context,
    file: str,
    kernels: tuple[str, ...],
    arch: str | None,
    encoding: bool,
    control: bool,
    output_format: str,
) -> None:
    """Print the SASS of a fat binary, cubin or object file as nvdisasm does.

    A word that cannot be decoded prints its error in place, and the exit status is 3.  Branch
    targets print as labels, callees by their names; `-` is standard input.  As JSON each
    instruction has its registers read and written and its scheduling information.
    """
    as_json = output_format == "json"
    listed: list[dict[str, object]] = []
    wanted = parse_arch(arch) if arch else None
    found = bad = 0
    loaded = read_input(file)
    require_machine_code(loaded)
    for _, cubin in loaded.cubins():
        if wanted and (cubin.arch != wanted[0] or (wanted[1] and cubin.variant != wanted[1])):
            continue
        label = 0
        for code in _codes(cubin, kernels):
            found += 1
            try:
                section = decode_section(code.code, cubin.arch)
            except DecodeError as error:
                # An architecture that is not known: the file's others can still be read.
                bad += 1
                click.echo(f"sassxlate: {error.at(file=file, kernel=code.name)}", err=True)
                continue
            bad += len(section.errors)
            symbols = {0: code.name} | {s.value: s.name for s in code.callees}
            if as_json:
                listed.append(
                    {
                        "name": code.name,
                        "demangled": code.demangled,
                        "arch": arch_name(cubin.arch, cubin.variant),
                        "instructions": records(section, symbols, first_label=label),
                    }
                )
                label = max(label, next_label(labels(section, symbols, label).values()))
                continue
            click.echo(f"// {code.demangled} ({arch_name(cubin.arch, cubin.variant)})")
            click.echo(f".text.{code.name}:")
            for line in lines(
                section, symbols, first_label=label, encoding=encoding, control=control
            ):
                click.echo(line)
            click.echo("")
            label = max(label, next_label(labels(section, symbols, label).values()))
    if not found:
        raise no_match(file, kernels, arch)
    if as_json:
        print_json({"file": file, "kernels": listed})
    if bad:
        context.exit(EXIT_BAD_WORDS)


def _codes(cubin: Cubin, patterns: tuple[str, ...]) -> Iterator[Kernel | Function]:
    """The kernels, and the device functions that stand outside them, that are asked for."""
    codes: tuple[Kernel | Function, ...] = (*cubin.kernels, *cubin.functions)
    for code in codes:
        if kernel_matches(code.name, code.demangled, patterns):
            yield code
