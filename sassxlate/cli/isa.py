"""``sassxlate isa``: reference pages of the instruction set, one per mnemonic."""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import format_option
from sassxlate.disasm.inputs import arch_name, parse_arch
from sassxlate.disasm.sass import reference
from sassxlate.disasm.sass.codec.decode import generation_of
from sassxlate.errors import UsageError
from sassxlate.output import make_directory, print_json, print_lines, write_whole

_LAYOUT = "layout"  # the page about the layout common to all instructions


@click.command(cls=Command, example="sassxlate isa IADD3 --arch sm_80")
@click.argument("names", nargs=-1, metavar="[MNEMONIC...]")
@click.option("--arch", metavar="SM", help="Only the forms of this architecture, like sm_80.")
@click.option(
    "-o", "--output", "folder", metavar="DIR", help="Write all pages to this folder as Markdown."
)
@format_option()
def command(names: tuple[str, ...], arch: str | None, folder: str | None, form: str | None) -> None:
    """Print the pages of SASS instructions: forms, bits, operands, modifiers, examples.

    Without a mnemonic, list them all.  `layout` is the page about the layout common to all
    instructions and about how to read the other pages.
    """
    number = None if arch is None else parse_arch(arch)[0]
    generation = None if number is None else generation_of(number)
    found = [_page(name, generation, number) for name in names]
    if folder is not None:
        _write(Path(folder), generation)
    elif form == "json":
        every = names or tuple(reference.mnemonics())
        listed = [{"name": n.upper(), "page": _page(n, generation, number)} for n in names]
        print_json("isa", {"mnemonics": [n.upper() for n in every], "pages": listed})
    elif found:
        print_lines("\n".join(found).splitlines())
    else:
        print_lines(reference.listing(generation).splitlines())


def _page(name: str, generation: int | None, arch: int | None) -> str:
    if name.lower() == _LAYOUT:
        return reference.layout_page()
    known = reference.mnemonics()
    mnemonic = name.upper().partition(".")[0]
    if mnemonic not in known:
        near = difflib.get_close_matches(mnemonic, known, n=3, cutoff=0.6)
        hint = f"; do you mean {' or '.join(near)}?" if near else ""
        raise UsageError("SX0838", f"{name!r} is not a SASS instruction{hint}")
    text = reference.page(mnemonic, generation)
    if not text and arch is not None:
        where = reference.architectures(mnemonic)
        raise UsageError(
            "SX0838", f"{mnemonic} does not exist on {arch_name(arch)}; it exists on {where}"
        )
    return text


def _write(folder: Path, generation: int | None) -> None:
    pages = reference.all_pages(generation)
    make_directory(folder)
    for name, text in pages.items():
        write_whole(folder / name, text.encode())
    click.echo(f"{len(pages)} pages in {folder}")
