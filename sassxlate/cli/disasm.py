"""``sassxlate disasm``: SASS as nvdisasm prints it, RDNA3 as llvm-objdump does; host code."""

from __future__ import annotations

from collections.abc import Iterator

import click

from sassxlate.cli.disassembling import Chosen, Terms, listed
from sassxlate.cli.grammar import Command
from sassxlate.cli.options import arch_option, jobs_option, kernel_option, printing_options
from sassxlate.disasm.containers import Function, Kernel, LoadedFile
from sassxlate.disasm.inputs import (
    kernel_matches,
    matching_images,
    no_match,
    read_bytes,
    read_code_object,
    read_hip_program,
    read_input,
    shown_name,
)
from sassxlate.disasm.listing.source_lines import Mode
from sassxlate.errors import (
    EXIT_BAD_WORDS,
    EXIT_NEGATIVE,
    SassxlateError,
    UsageError,
    Where,
)
from sassxlate.output import print_json, print_lines
from sassxlate.runtime_shim.ptx.machine_code import machine_code


@click.command(cls=Command, example="sassxlate disasm ./saxpy -k '*saxpy*' --arch sm_80")
@click.argument("file", metavar="FILE")
@kernel_option
@arch_option
@jobs_option()
@click.option(
    "--host",
    is_flag=True,
    help="Print the host program's x86-64 code, with the names of what it refers to and the "
    "kernels that it launches; -k chooses functions, also a kernel's stub by the kernel's name.",
)
@click.option("--encoding", is_flag=True, help="Print each word in hexadecimal as well.")
@click.option("--control", is_flag=True, help="Print waits, scoreboards and stall counts.")
@click.option("--descriptors", is_flag=True, help="Print RDNA3 kernel descriptors as well.")
@click.option(
    "--source", "source", flag_value="inline", help="Print source lines, and inlining call sites."
)
@click.option(
    "--source-line", "source", flag_value="line", help="Print source lines without call sites."
)
@click.option("--source-ptx", "source", flag_value="ptx", help="Print lines of the PTX source.")
@click.option(
    "--find",
    "wanted_opcodes",
    multiple=True,
    metavar="OPCODE",
    help="Print only instructions with this opcode (DFMA, 'STL*', '*.F64*'), by function, with "
    "their source lines; may repeat.  Exit status 1: there are none.",
)
@click.option(
    "--count",
    "counting",
    is_flag=True,
    help="Print how often each opcode occurs in each function, the most frequent first; with "
    "--find, only the opcodes that match.",
)
@click.option(
    "--live",
    is_flag=True,
    help="Print each kernel's reachable instructions with the registers that are live before them.",
)
@printing_options()
@click.pass_context
def command(
    context: click.Context,
    file: str,
    kernels: tuple[str, ...],
    arch: str | None,
    host: bool,
    encoding: bool,
    control: bool,
    source: Mode | None,
    descriptors: bool,
    wanted_opcodes: tuple[str, ...],
    counting: bool,
    live: bool,
    jobs: int,
    form: str,
) -> None:
    """Print the SASS of a fat binary, cubin, object file or archive as nvdisasm -c does.

    In a file with several cubins, each is headed by a comment that names it.  A word that
    cannot be decoded prints its error in place, and the exit status is 3.  Branch targets print as
    labels and relocated operands as symbols; `-` is standard input.  As JSON each instruction has
    its registers read and written and its scheduling information.

    Code objects for RDNA3 (linked, relocatable, in offload bundles or HIP programs) print as
    llvm-objdump does; with --encoding the lines are those of llvm-objdump -dr.

    -j N reads N cubins at a time, and prints the same.

    With --host: the functions of the x86-64 program or library itself; one that has no name is
    `sub_ADDRESS`.
    """
    as_json = form == "json"
    if host:
        if arch or live or wanted_opcodes or counting or control or source or descriptors:
            raise click.UsageError("--host goes with -k and --encoding only")
        _print_host(file, kernels, encoding=encoding, as_json=as_json)
        return
    if live:
        if wanted_opcodes or counting or encoding or control or source or descriptors:
            raise click.UsageError("--live does not go with other options of the listing")
        _print_live(context, file, kernels, arch, as_json=as_json)
        return
    if (wanted_opcodes or counting) and (encoding or control or source or descriptors):
        option = "--count" if counting else "--find"
        raise click.UsageError(f"{option} does not go with options of the whole listing")
    code_object = read_code_object(file)
    loaded = None if code_object is not None else read_input(file)
    if loaded is not None and not loaded.fatbins:
        code_object = read_hip_program(file)
    if loaded is None or code_object is not None:
        assert code_object is not None
        if wanted_opcodes or counting:
            raise click.UsageError(f"--find and --count read SASS, and {file} holds RDNA3 code")
        from sassxlate.disasm.listing.code_object_file import list_code_objects

        if list_code_objects(
            file, code_object, kernels, arch, encoding=encoding, control=control,
            source=source is not None, descriptors=descriptors, as_json=as_json,
        ):  # fmt: skip
            context.exit(EXIT_BAD_WORDS)
        return
    rows: list[dict[str, object]] = []
    found = bad = matches = 0
    loaded = machine_code(loaded, arch)
    terms = Terms(
        file, loaded.kind != "cubin", encoding, control, source, wanted_opcodes, counting, as_json
    )
    for one in listed(terms, _chosen(loaded, kernels, arch), jobs, print_lines):
        found += 1
        bad += one.bad
        matches += one.matches
        rows += one.rows
        if one.unknown is not None:  # the file's other cubins can still be read
            click.echo(f"sassxlate: {one.unknown}", err=True)
        if one.error is not None:
            raise one.error
    if not found:
        raise no_match(file, kernels, arch)
    if as_json:
        schema = "disasm-count" if counting else "disasm"
        print_json(schema, {"file": file, "kernels": rows})
    if bad:
        context.exit(EXIT_BAD_WORDS)
    if wanted_opcodes and not matches:
        context.exit(EXIT_NEGATIVE)


def _chosen(loaded: LoadedFile, kernels: tuple[str, ...], arch: str | None) -> Iterator[Chosen]:
    """The cubins with functions that are asked for."""
    for origin, data, cubin in matching_images(loaded, kernels, arch):
        codes: list[Kernel | Function] = [*cubin.kernels, *cubin.functions]
        names = {code.name: code.demangled for code in codes}
        chosen = {n: plain for n, plain in names.items() if kernel_matches(n, plain, kernels)}
        if chosen:
            yield Chosen(origin, data, cubin, chosen)


def _print_host(file: str, patterns: tuple[str, ...], *, encoding: bool, as_json: bool) -> None:
    from sassxlate.disasm.containers.elf import Elf
    from sassxlate.disasm.host_code import host_graph
    from sassxlate.disasm.host_code.listing import host_functions, to_lines, value
    from sassxlate.runtime_shim.static_runtime import functions_of

    listed: list[dict[str, object]] = []
    found = False
    try:
        elf = Elf(read_bytes(file))
        for function in host_functions(elf, host_graph(elf, *functions_of(elf)), patterns):
            found = True
            if as_json:
                listed.append(value(function))
            else:
                print_lines(to_lines(function, encoding=encoding))
    except SassxlateError as error:
        raise error.at(file=shown_name(file)) from None
    if not found:
        text = f"no function matches {' '.join(patterns)}" if patterns else "there is no function"
        raise UsageError("SX0802", text, Where(shown_name(file)))
    if as_json:
        print_json("disasm-host", {"file": file, "functions": listed})


def _print_live(
    context: click.Context, file: str, kernels: tuple[str, ...], arch: str | None, *, as_json: bool
) -> None:
    from sassxlate.cfg.view import live
    from sassxlate.lowering.report.graphs import graphs

    listed: list[dict[str, object]] = []
    problems: list[SassxlateError] = []
    for graph in graphs(file, kernels, arch, machine_code):
        if graph.problem is not None:
            problems.append(graph.problem)
        elif graph.cfg is None:
            raise click.UsageError(f"--live lists SASS, and {file} holds RDNA3 code")
        elif as_json:
            name, plain = graph.picture.name, graph.picture.shown
            row: dict[str, object] = {"name": name, "demangled": plain}
            row |= {"arch": graph.picture.target, "instructions": live.to_records(graph.cfg)}
            listed.append(row)
        else:
            print_lines(live.to_text(graph.cfg, graph.picture.shown).splitlines())
    if as_json:
        print_json("disasm", {"file": file, "kernels": listed})
    for problem in problems:
        click.echo(f"sassxlate: {problem}", err=True)
    if problems:
        context.exit(EXIT_BAD_WORDS)
