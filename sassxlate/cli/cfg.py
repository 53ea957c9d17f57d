"""`sassxlate cfg FILE -k NAME`: a kernel's control-flow graph as text or as Graphviz dot."""

from __future__ import annotations

from pathlib import Path

import click

from sassxlate.errors import SassxlateError

from ._files import (
    kernel_matches,
    no_match,
    parse_arch,
    read_input,
    require_machine_code,
    write_whole,
)


@click.command(short_help="A kernel's control-flow graph")
@click.argument("file", metavar="FILE")
@click.option("-k", "--kernel", required=True, help="Name, demangled name or glob.")
@click.option("--arch", help="Only this architecture, e.g. sm_80.")
@click.option("--format", "form", type=click.Choice(["text", "dot"]), default="text")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Instead of stdout.")
def command(file: str, kernel: str, arch: str | None, form: str, output: Path | None) -> None:
    """Prints blocks, edges with their kind, dominators, loops, liveness and uniformity."""
    from sassxlate.cfg.draw import to_dot, to_text
    from sassxlate.lowering.link import joined
    from sassxlate.lowering.pipeline import kernel_cfg

    wanted = parse_arch(arch) if arch else None
    out: list[str] = []
    loaded = read_input(file)
    require_machine_code(loaded)
    for _, cubin in loaded.cubins():
        if wanted and (cubin.arch != wanted[0] or wanted[1] not in ("", cubin.variant)):
            continue
        for k in cubin.kernels:
            if kernel_matches(k.name, k.demangled, (kernel,)):
                try:
                    graph = kernel_cfg(joined(k, cubin))
                except SassxlateError as error:
                    raise error.at(file=file, kernel=k.name) from None
                out.append(to_text(graph) if form == "text" else to_dot(graph))
    if not out:
        raise no_match(file, (kernel,), arch)
    text = "\n".join(out)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_whole(output, text.encode())
