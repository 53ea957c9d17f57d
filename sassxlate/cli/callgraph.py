"""``sassxlate callgraph``: which functions call which, with stack sizes."""

from __future__ import annotations

from dataclasses import asdict

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import arch_option, kernel_option, printing_options
from sassxlate.disasm.containers import Function, Kernel
from sassxlate.disasm.inputs import (
    arch_name,
    kernel_matches,
    no_match,
    parse_arch,
    read_bytes,
    read_input,
    shown_name,
)
from sassxlate.disasm.listing.call_graph import CallGraph, Edge, Node, call_graph
from sassxlate.disasm.listing.image import Image
from sassxlate.errors import EXIT_BAD_WORDS, SassxlateError, UsageError
from sassxlate.output import print_json
from sassxlate.runtime_shim.ptx.machine_code import machine_code


@click.command(cls=Command, example="sassxlate callgraph ./saxpy --arch sm_80 -o calls.dot")
@click.argument("file", metavar="FILE")
@click.option(
    "--host",
    is_flag=True,
    help="Of the host program (x86-64): which of its functions launch which kernels.",
)
@kernel_option
@arch_option
@printing_options("dot", "svg", "graphml")
@click.pass_context
def command(
    context: click.Context,
    file: str,
    host: bool,
    kernels: tuple[str, ...],
    arch: str | None,
    form: str,
) -> None:
    """Print the call graph of each cubin of a file; with -k, what those kernels reach.

    Direct calls and those through relocations are exact; a call through a register has an edge to
    each function that it may reach.  Recursion is marked; sizes are in bytes per lane.  Code of an
    architecture that is not known is left out with a message, and the exit status is 3.

    With --host: which host functions launch which kernels, found through the calls that register
    kernels and launch them, in stripped programs, too; calls through pointers that the code does
    not show are listed as unknown.  svg is a picture of it, graphml for Gephi, yEd and NetworkX.
    """
    if form in ("svg", "graphml") and not host:
        raise UsageError("SX0890", f"--format {form} draws the host program: --host")
    if host:
        if arch:
            raise UsageError("SX0890", "--host and --arch do not go together")
        _host(file, kernels, form)
        return
    wanted = parse_arch(arch) if arch else None
    loaded = machine_code(read_input(file), arch)
    graphs: list[tuple[str, CallGraph]] = []
    unknown: list[SassxlateError] = []
    for origin, data, cubin in loaded.images():
        if wanted and (cubin.arch != wanted[0] or wanted[1] not in ("", cubin.variant)):
            continue
        if not cubin.kernels and not cubin.functions:
            continue
        try:
            graph = call_graph(Image(data, cubin))
        except SassxlateError as error:
            if error.code != "SX0204":
                raise error.at(file=file) from None
            codes: list[Kernel | Function] = [*cubin.kernels, *cubin.functions]
            unknown.append(error.at(file=file, kernel=codes[0].name))
            continue
        if kernels:
            named = [n for n in graph.nodes if kernel_matches(n.name, n.demangled, kernels)]
            if not named:
                continue
            graph = graph.called_from([n.name for n in named])
        graphs.append((f"{origin}, {arch_name(cubin.arch, cubin.variant)}", graph))
    if not graphs:
        raise unknown[0] if unknown else no_match(file, kernels, arch)
    for problem in unknown:
        click.echo(f"sassxlate: {problem}", err=True)
    if form == "json":
        cubins = [{"place": place, **asdict(graph)} for place, graph in graphs]
        print_json("callgraph", {"file": file, "cubins": cubins})
    else:
        draw = _text if form == "text" else _dot
        click.echo("\n".join(draw(place, graph) for place, graph in graphs), nl=False)
    if unknown:
        context.exit(EXIT_BAD_WORDS)


def _host(file: str, patterns: tuple[str, ...], form: str) -> None:
    """The launches of the host program."""
    from sassxlate.disasm.containers.elf import Elf
    from sassxlate.disasm.host_code import host_graph, show
    from sassxlate.runtime_shim.static_runtime import functions_of

    try:
        elf = Elf(read_bytes(file))
        graph = host_graph(elf, *functions_of(elf))
    except SassxlateError as error:
        raise error.at(file=shown_name(file)) from None
    if patterns:
        stubs = [
            stub
            for stub, kernel in graph.kernels.items()
            if kernel_matches(kernel.name, kernel.demangled, patterns)
        ]
        if not stubs:
            raise no_match(file, patterns, None)
        graph = graph.of_kernels(stubs)
    if form == "json":
        print_json("callgraph-host", {"file": file, **show.value(graph)})
    elif form in ("svg", "graphml"):
        from sassxlate.cfg.view import exchange, launches, svg

        draw = svg.to_svg if form == "svg" else exchange.to_graphml
        click.echo(draw(launches.picture(file, graph)), nl=False)
    else:
        click.echo(show.text(file, graph) if form == "text" else show.dot(file, graph), nl=False)


def _text(place: str, graph: CallGraph) -> str:
    lines = [f"// {place}"]
    for node in graph.nodes:
        lines.append(_title(node))
        lines += (_call(e) for e in graph.edges if e.caller == node.name)
    return "\n".join(lines) + "\n"


def _title(node: Node) -> str:
    parts: list[str] = [node.kind]
    sizes = (("registers", node.registers), ("frame", node.frame), ("stack", node.stack))
    parts += (f"{key} {value}" for key, value in sizes if value is not None)
    parts += (
        word
        for word, true in (
            ("recursive", node.recursive),
            ("address taken", node.address_taken),
            ("calls pointers", node.calls_pointers),
        )
        if true
    )
    return f"{node.demangled}: {', '.join(parts)}"


def _call(edge: Edge) -> str:
    places = " ".join(f"/*{offset:04x}*/" for offset in edge.offsets)
    return f"    {edge.kind:<9} {edge.callee} {places}".rstrip()


def _dot(place: str, graph: CallGraph) -> str:
    lines = ["digraph calls {", f"  label={_quoted(place)};", "  node [shape=box];"]
    for node in graph.nodes:
        sizes = [f"frame {node.frame}"] if node.frame is not None else []
        sizes += [f"stack {node.stack}"] if node.stack is not None else []
        label = "\\n".join(_escaped(text) for text in (node.demangled, " ".join(sizes)) if text)
        style = {"kernel": "bold", "external": "dashed"}.get(node.kind, "solid")
        color = ", color=red" if node.recursive else ""
        lines.append(f'  {_quoted(node.name)} [label="{label}", style={style}{color}];')
    for edge in graph.edges:
        style = " [style=dashed]" if edge.kind == "indirect" else ""
        lines.append(f"  {_quoted(edge.caller)} -> {_quoted(edge.callee)}{style};")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
