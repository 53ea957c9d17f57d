"""`sassxlate diff A B`: the differences between two kernels' control-flow graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sassxlate.disasm.inputs import (
    kernel_matches,
    matching_images,
    no_match,
    read_input,
)
from sassxlate.errors import SassxlateError
from sassxlate.runtime_shim.ptx.machine_code import machine_code

if TYPE_CHECKING:
    from sassxlate.cfg.diff.library import LibraryDifference
    from sassxlate.cfg.view.side_by_side import Beside
    from sassxlate.disasm.containers import Cubin, Kernel

import sys
from pathlib import Path

import click
from click.core import ParameterSource

from sassxlate.cli.grammar import Command
from sassxlate.cli.kernel_names import KernelName
from sassxlate.cli.options import (
    arch_option,
    format_of,
    format_option,
    jobs_option,
    output_path_option,
    target_option,
)
from sassxlate.disasm.inputs import read_code_object
from sassxlate.errors import UsageError, Where
from sassxlate.notes import verbose
from sassxlate.output import as_json, write_whole


@click.command(
    cls=Command,
    short_help="Show the differences between two kernels",
    example="sassxlate diff old new -k '*saxpy*' -o difference.html",
)
@click.argument("left", metavar="A")
@click.argument("right", metavar="[B]", required=False)
@click.option(
    "--against",
    type=click.Choice(["rdna3"]),
    help="Compare A with its own translation, made now, instead of with B.",
)
@target_option
@click.option(
    "-k", "--kernel", default="*", type=KernelName(), metavar="NAME",
    help="Kernel name (mangled, demangled or a glob), in both files.",
)  # fmt: skip
@click.option(
    "--kernel-b", type=KernelName(), metavar="NAME",
    help="The kernel of B, if it has another name.",
)  # fmt: skip
@arch_option
@click.option(
    "--arch-b", metavar="SM", help="Only this architecture of B (default: A's, if B has it)."
)
@jobs_option()
@format_option("html", by_suffix=True)
@click.option(
    "--whole",
    is_flag=True,
    help="In text, also print equal blocks, and of several kernels all blocks after the table "
    "(SASS beside its RDNA3 is always complete).",
)
@output_path_option
@click.pass_context
def command(
    context: click.Context,
    left: str,
    right: str | None,
    against: str | None,
    kernel: str,
    kernel_b: str | None,
    arch: str | None,
    arch_b: str | None,
    jobs: int,
    form: str | None,
    whole: bool,
    output: Path | None,
    target: str,
) -> None:
    """Pair the blocks of A's and B's kernels and show the differences: between two architectures,
    compilers or versions of SASS, or between two code objects.

    Without -k all kernels of both files are compared: pairs are found by name, then by the
    structure of their code, and printed as a table, the least alike first.  As html this is an
    overview, in which each pair's graphs open side by side.

    Registers may have different names, blocks a different order, constants different values: such a
    pair is called renamed.  The exit status is 0 if nothing differs at all, otherwise 1.

    With --against rdna3, or if B is the code object that A was translated to, show which RDNA3
    instructions implement which SASS instruction, and what the translator added: by the
    translation's source map, not by similarity.  The exit status is then 0.
    """
    del form
    kind = format_of(context)
    if (right is None) == (against is None):
        raise UsageError("SX0840", "give B or --against rdna3")
    if right is None and (kernel_b or arch_b):
        option = "--kernel-b" if kernel_b else "--arch-b"
        raise UsageError("SX0840", f"{option} selects in B, and --against rdna3 has no B")
    named = context.get_parameter_source("target") == ParameterSource.COMMANDLINE
    if right is not None and named:
        raise UsageError("SX0840", "--target is the processor that --against rdna3 translates for")
    exact = _exact(left, right)
    if exact is not None:
        if kernel_b:
            raise UsageError("SX0840", "a kernel and its translation have one name: no --kernel-b")
        mine = _of_sass(exact[0] == right, arch, arch_b)
        text, refused = shown(*exact, kernel, mine, kind, target)
        _write(output, text)
        sys.exit(3 if refused else 0)
    assert right is not None
    found = _compared(left, right, (kernel, kernel_b or kernel), (arch, arch_b), jobs)
    _write(output, _text(found, (left, right), kind, whole=whole))
    sys.exit(0 if found.equal else 1)


def _text(found: LibraryDifference, files: tuple[str, str], kind: str, *, whole: bool) -> str:
    """The differences of one pair of kernels in full, of several as a table."""
    from sassxlate.cfg.diff.library import library_data, to_table
    from sassxlate.cfg.diff.text import to_text
    from sassxlate.cfg.pages.diff import library_to_html, to_html

    if kind == "json":
        return as_json("diff", library_data(found), 1) + "\n"
    several = len(found.pairs) != 1 or found.only_left or found.only_right
    if kind == "html":
        one = found.pairs[0]
        if several:
            return library_to_html(found, *files)
        return to_html(one.left, one.right, one.found)
    full = [to_text(p.left, p.right, p.found, whole=whole) for p in found.pairs]
    if not several:
        return full[0]
    return "\n".join([to_table(found), *(full if whole or verbose() else ())])


def _write(output: Path | None, text: str) -> None:
    data = text.encode("utf-8", "replace")
    if output is None:
        click.echo(data.decode(), nl=False)
    else:
        write_whole(output, data)


def _exact(left: str, right: str | None) -> tuple[str, str | None] | None:
    """(SASS, code object or None: still to be made) if one is the other's translation; otherwise
    None."""
    if right is None:
        return left, None
    if "-" in (left, right):
        return None
    sides = [read_code_object(left) is not None, read_code_object(right) is not None]
    if sides == [False, True]:
        return left, right
    return (right, left) if sides == [True, False] else None


def _of_sass(is_b: bool, arch: str | None, arch_b: str | None) -> str | None:
    """The architecture that is asked for of SASS, which is A or B; the other is its translation."""
    from sassxlate.disasm.amdgpu_machines import RDNA3, RDNA3_TEXT

    mine, other, option = (arch_b, arch, "--arch") if is_b else (arch, arch_b, "--arch-b")
    if other is None or other in RDNA3:
        return mine
    if is_b and mine is None:
        return other
    raise UsageError("SX0840", f"{option} {other}: this side is a code object for {RDNA3_TEXT}")


def _compared(
    left: str,
    right: str,
    kernels: tuple[str, str],
    archs: tuple[str | None, str | None],
    jobs: int,
) -> LibraryDifference:
    """The kernels that are selected, in pairs: if each side has one, these two."""
    from sassxlate.cfg.diff.library import compare, difference
    from sassxlate.lowering.report.graphs import subjects
    from sassxlate.lowering.report.shapes import shapes

    arch, arch_b = archs
    ours = [*subjects(left, (kernels[0],), arch, machine_code)]
    try:
        theirs = [*subjects(right, (kernels[1],), arch_b or arch, machine_code)]
    except UsageError as error:
        if error.code != "SX0802" or arch_b or not arch:
            raise
        # B has only other kernels.
        theirs = [*subjects(right, (kernels[1],), None, machine_code)]
    every = shapes([*ours, *theirs], jobs)
    for problem in (one.problem for one in every if one.problem):
        click.echo(f"sassxlate: {problem}", err=True)
    both = [one.shape for one in every]
    a, b = both[: len(ours)], both[len(ours) :]
    for file, some in ((left, a), (right, b)):
        names = [k.picture.name for k in some]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            message = f"several architectures have {', '.join(twice)[:200]}: give --arch, --arch-b"
            raise UsageError("SX0828", message, Where(file))
    if len(a) == len(b) == 1:
        return difference(a[0], b[0])
    found = compare(a, b, jobs)
    if not found.pairs:
        message = "no kernel of A is like a kernel of B, by name or structure"
        raise UsageError("SX0802", message, Where(right))
    return found


def shown(
    file: str, code_object: str | None, kernel: str, arch: str | None, kind: str, target: str
) -> tuple[str, int]:
    """Text, JSON or HTML of the requested kernels, and how many were refused.

    ``code_object`` is the file with the translation; if None, FILE is translated now, for
    ``target``.  A kernel that is refused is reported on stderr, unless it is the only one.
    """
    found: list[Beside] = []
    refused: list[SassxlateError] = []
    data = None if code_object is None else read_code_object(code_object)
    assert code_object is None or data is not None
    pairs = list(_kernels(file, kernel, arch))
    if data is None:
        for cubin, one in pairs:
            try:
                found.append(_translated(cubin, one, target, graphs=kind == "html"))
            except SassxlateError as error:
                refused.append(error.at(file=file, kernel=one.name))
    else:
        assert code_object is not None
        found = _held(code_object, data, pairs, graphs=kind == "html")
    if refused and not found and len(refused) == 1:
        raise refused[0]
    for each in refused:
        click.echo(str(each), err=True)
    return _written(file, found, kind), len(refused)


def _written(file: str, found: list[Beside], kind: str) -> str:
    from sassxlate.cfg.pages.side_by_side import to_html
    from sassxlate.cfg.view.side_by_side import to_data, to_text

    if kind == "json":
        kernels = [to_data(one) for one in found]
        return as_json("diff-translation", {"kernels": kernels}, 1) + "\n"
    if kind != "html":
        return "\n".join(map(to_text, found))
    if len(found) != 1:
        names = ", ".join(f"{one.name} {one.target}" for one in found) or "none"
        message = f"html shows one kernel, {len(found)} match: {names[:400]}"
        raise UsageError("SX0828", message, Where(file))
    return to_html(found[0])


def _kernels(file: str, kernel: str, arch: str | None) -> Iterator[tuple[Cubin, Kernel]]:
    loaded = machine_code(read_input(file), arch)
    some = False
    for _, _, cubin in matching_images(loaded, (kernel,), arch):
        for k in cubin.kernels:
            if kernel_matches(k.name, k.demangled, (kernel,)):
                some = True
                yield cubin, k
    if not some:
        raise no_match(file, () if kernel == "*" else (kernel,), arch)


def _translated(cubin: Cubin, kernel: Kernel, target: str, *, graphs: bool) -> Beside:
    from sassxlate.lowering.report.side_by_side import side_by_side
    from sassxlate.lowering.target import target_named

    return side_by_side(cubin, kernel, target=target_named(target), graphs=graphs)


def _held(
    file: str, data: bytes, pairs: list[tuple[Cubin, Kernel]], *, graphs: bool
) -> list[Beside]:
    """The kernels that the code object has.  Of several with one name (one per architecture), those
    that its source map fits; if it fits none, the error gives the reason for the first."""
    from sassxlate.lowering.codeobject.code_object import read
    from sassxlate.lowering.report.side_by_side import of_code_object

    try:
        names = {k.name for k in read(data).kernels}
    except SassxlateError as error:
        raise error.at(file=file) from None
    mine = [(cubin, k) for cubin, k in pairs if k.name in names]
    if not mine:
        raise UsageError("SX0802", "no kernel of A has the name of a kernel of B", Where(file))
    found: list[Beside] = []
    errors: dict[str, SassxlateError] = {}
    for cubin, k in mine:
        try:
            found.append(of_code_object(cubin, k, data, graphs=graphs))
        except SassxlateError as error:
            errors.setdefault(k.name, error.at(file=file, kernel=k.name))
    for name, first in errors.items():
        if not any(one.name == name for one in found):
            raise first
    return found
