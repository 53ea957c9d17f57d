"""``sassxlate asm``: SASS text to machine code."""

from __future__ import annotations

from pathlib import Path

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import format_option, output_path_option
from sassxlate.disasm.inputs import arch_name, parse_arch, read_text
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.errors import DecodeError, UsageError, Where
from sassxlate.output import print_json, write_whole


@click.command(cls=Command, example="sassxlate asm kernel.sass --arch sm_80 -o kernel.bin")
@click.argument("file", metavar="FILE")
@click.option("--arch", required=True, metavar="SM", help="The architecture, like sm_80.")
@output_path_option
@click.option("--section", metavar="NAME", help="The section to write, if there are several.")
@format_option()
def command(
    file: str, arch: str, output: Path | None, section: str | None, form: str | None
) -> None:
    """Assemble SASS as `sassxlate disasm --control` or nvdisasm prints it.

    Prints each word in hexadecimal, or writes the bytes of one section with `-o`.  Labels and
    scheduling information are read; without scheduling information, no stalls or barriers are set.
    `-` is standard input.
    """
    number = parse_arch(arch)[0]
    try:
        sections = assemble_listing(read_text(file).splitlines(keepends=True), number)
    except DecodeError as error:
        raise error.at(file=file) from None
    if section is not None:
        if section not in sections:
            raise UsageError("SX0802", f"no section {section!r}", Where(file))
        sections = {section: sections[section]}
    if output is not None:
        if len(sections) != 1:
            names = ", ".join(sections)
            text = f"name one section with --section: {names}"
            raise UsageError("SX0802", text, Where(file))
        (code,) = sections.values()
        write_whole(output, code)
        return
    if form == "json":
        listed = [{"name": name, "code": code.hex()} for name, code in sections.items()]
        print_json("asm", {"file": file, "arch": arch_name(number), "sections": listed})
        return
    for name, code in sections.items():
        if name:
            click.echo(f".text.{name}:")
        for at in range(0, len(code), 16):
            click.echo(f"{int.from_bytes(code[at : at + 16], 'little'):#034x}")
