"""``sassxlate completion SHELL``: the script that completes commands, options and kernel names."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from sassxlate.cli.grammar import Command

_SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command, example="sassxlate completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete commands, options, files and, after -k, the names
    of the kernels in the file that the command line names.

    zsh: append it to ~/.zshrc.  fish: write it to ~/.config/fish/completions/sassxlate.fish.
    """
    found = get_completion_class(shell)
    assert found is not None
    maker = found(context.find_root().command, {}, "sassxlate", "_SASSXLATE_COMPLETE")
    # Not bash's own `source`, which starts a bash to ask for its version.
    click.echo(ShellComplete.source(maker))


__all__ = ["command"]
