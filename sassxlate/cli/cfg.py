"""`sassxlate cfg FILE -k NAME`: a kernel's control-flow graph, as text or as a picture."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from sassxlate.cfg.view.picture import Picture
from sassxlate.cli.grammar import Command
from sassxlate.cli.options import (
    arch_option,
    format_of,
    format_option,
    one_kernel_option,
    output_path_option,
)
from sassxlate.errors import UsageError, Where
from sassxlate.output import as_json, write_whole
from sassxlate.runtime_shim.ptx.machine_code import machine_code

_ONE = ("svg", "html", "graphml")  # one picture per file


def _drawings() -> Mapping[str, Callable[[Picture], str]]:
    from sassxlate.cfg.pages.graph import to_html
    from sassxlate.cfg.view.exchange import to_graphml
    from sassxlate.cfg.view.svg import to_svg
    from sassxlate.cfg.view.text import to_dot, to_text

    return {"text": to_text, "dot": to_dot, "svg": to_svg, "html": to_html,
            "graphml": to_graphml}  # fmt: skip


@click.command(
    cls=Command,
    short_help="A kernel's control-flow graph",
    example="sassxlate cfg ./saxpy -k '*saxpy*' --arch sm_80 -o saxpy.svg",
)
@click.argument("file", metavar="FILE")
@one_kernel_option
@arch_option
@format_option("dot", "svg", "html", "graphml", by_suffix=True)
@output_path_option
@click.option(
    "--counts",
    metavar="RUN.json",
    help="Show execution counts of blocks, from a file that `sassxlate trace --counts` wrote.",
)
@click.option("--run", is_flag=True, help="Run FILE with ARGS and show execution counts of blocks.")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(
    context: click.Context,
    file: str,
    kernel: str,
    arch: str | None,
    form: str | None,
    output: Path | None,
    counts: str | None,
    run: bool,
    args: tuple[str, ...],
) -> None:
    """Print or draw blocks, edges with their kind, loops and divergence; the text also has
    dominators, liveness and uniformity.

    FILE holds SASS (an executable, a library, a cubin) or RDNA3 code (a code object, a HIP
    program).  svg is a picture, html a page to pan and zoom in one self-contained file,
    graphml for Gephi, yEd and NetworkX.

    A word that is not an instruction is drawn as data, and no edge leaves it; then, and if
    control flow cannot be followed, the exit status is 3.
    """
    from sassxlate.cfg.view.dump import to_text
    from sassxlate.cfg.view.text import to_data
    from sassxlate.lowering.report.graphs import graphs

    del form
    kind = format_of(context)
    if args and not run:
        raise UsageError("SX0836", "arguments for a program need --run")
    if run and counts is not None:
        raise UsageError(
            "SX0836",
            "--run counts executions and --counts reads a file of counts: give one of them",
        )
    chosen = [*graphs(file, (kernel,), arch, machine_code)]
    if run or counts is not None:
        from sassxlate.runtime_shim.replay import block_counts

        found = block_counts.read(counts) if counts is not None else block_counts.of_program(
            file, args, arch
        )  # fmt: skip
        chosen = block_counts.with_counts(chosen, found, file, every=arch is not None)
    if kind == "json":
        listed = [to_data(g.picture) for g in chosen]
        text = as_json("cfg", {"file": file, "kernels": listed}, 1) + "\n"
    elif kind in _ONE:
        if len(chosen) > 1:
            names = ", ".join(sorted({f"{g.picture.name} {g.picture.target}" for g in chosen}))
            message = f"{kind} draws one kernel, {len(chosen)} match: {names[:400]}"
            raise UsageError("SX0828", message, Where(file))
        text = _drawings()[kind](chosen[0].picture)
    else:
        plain = _drawings()[kind]
        text = "\n".join(
            to_text(g.cfg, _heads(g.picture))
            if g.cfg is not None and kind == "text"
            else plain(g.picture)
            for g in chosen
        )
    data = text.encode("utf-8", "replace")  # names may hold invalid characters
    if output is None:
        click.echo(data.decode(), nl=False)
    else:
        write_whole(output, data)
    problems = [g.problem for g in chosen if g.problem]
    for problem in problems:
        click.echo(f"sassxlate: {problem}", err=True)
    if problems:
        sys.exit(3)


def _heads(picture: Picture) -> Mapping[int, str]:
    """Execution counts of blocks, by their start."""
    found = {n.start: (n.runs, n.note) for n in picture.nodes if n.runs is not None or n.note}
    return {
        start: ", ".join(([] if runs is None else [f"ran {runs:,}"]) + ([note] if note else []))
        for start, (runs, note) in found.items()
    }
