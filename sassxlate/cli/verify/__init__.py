"""``sassxlate verify``: proofs and comparisons of translations; one module a subcommand."""

from __future__ import annotations

import click

from sassxlate.cli.grammar import Group
from sassxlate.cli.verify import blocks, kernels, launches, rules, text


class _Verify(Group):
    """Says which command a file needs that stands where the command's name must."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            text = f"{error.message}  Of a file: sassxlate verify blocks FILE."
            raise click.UsageError(text, ctx) from None


@click.group(cls=_Verify)
def command() -> None:
    """Prove translations, or find where they are wrong: the blocks or whole kernels of a file, the
    lowering rules, a program's launches, or one block as text.

    The exit status is 1 if something was refuted or differs.
    """


for _module in (blocks, kernels, rules, launches, text):
    command.add_command(_module.command)

__all__ = ["command"]
