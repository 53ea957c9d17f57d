"""The machine code of an input: the file's own, or what ptxas makes of its PTX."""

from __future__ import annotations

import click

from sassxlate.disasm.containers import LoadedFile


def machine_code(loaded: LoadedFile, arch: str | None) -> LoadedFile:
    """The file, with machine code; a line on standard error says if ptxas made it.

    Raises:
        SassxlateError: SX0110, SX0818, there is none; SX0741 to SX0747, ptxas makes none.
    """
    if any(entry.kind == "elf" for _, entry in loaded.entries()):
        return loaded
    from sassxlate.runtime_shim.ptx.files import with_machine_code

    made, said = with_machine_code(loaded, arch)
    if said:
        click.echo(f"sassxlate: {said}", err=True)
    return made


__all__ = ["machine_code"]
