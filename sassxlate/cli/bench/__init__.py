"""``sassxlate bench``: figures that anyone can repeat, with the machine they were taken on."""

from __future__ import annotations

import click

from sassxlate.cli.bench import (
    applications,
    beside,
    codegen,
    engines,
    figures,
    hybrid,
    peers,
    programs,
)
from sassxlate.cli.grammar import Group


@click.group(cls=Group)
def command() -> None:
    """Measure the emulator, translator, disassembler and code; run programs and applications."""


for _one in (
    figures.emulator,
    figures.translate,
    figures.cold,
    figures.disasm,
    peers.command,
    programs.command,
    applications.command,
    codegen.command,
    engines.command,
    beside.command,
    hybrid.command,
):
    command.add_command(_one)

__all__ = ["command"]
