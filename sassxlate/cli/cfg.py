"""`sassxlate cfg FILE -k NAME`: a kernel's control-flow graph as text or as Graphviz dot."""

from __future__ import annotations

from pathlib import Path

import click

from sassxlate.errors import UsageError


@click.command(short_help="A kernel's control-flow graph")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-k", "--kernel", required=True, help="Name, demangled name or glob.")
@click.option("--arch", help="Only this architecture, e.g. sm_80.")
@click.option("--format", "form", type=click.Choice(["text", "dot"]), default="text")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Instead of stdout.")
def command(file: Path, kernel: str, arch: str | None, form: str, output: Path | None) -> None:
    """Prints blocks, edges with their kind, dominators, loops, liveness and uniformity."""
    from sassxlate.cfg.draw import to_dot, to_text
    from sassxlate.cli.translate import wanted
    from sassxlate.disasm.containers import load
    from sassxlate.lowering.pipeline import kernel_cfg

    out: list[str] = []
    for _, cubin in load(file).cubins():
        if arch and arch != f"sm_{cubin.arch}{cubin.variant}":
            continue
        for k in cubin.kernels:
            if wanted(k.name, k.demangled, (kernel,)):
                graph = kernel_cfg(k)
                out.append(to_text(graph) if form == "text" else to_dot(graph))
    if not out:
        raise UsageError("SX0802", f"no kernel matches {kernel!r} in {file}")
    text = "\n".join(out)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text)
