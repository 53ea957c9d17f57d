"""`sassxlate diff A B`: what differs between two kernels' control-flow graphs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from sassxlate.cfg.picture import Picture
from sassxlate.errors import UsageError, Where

from ._files import SCHEMA, read_code_object, write_whole


@click.command(short_help="What differs between two kernels")
@click.argument("left", metavar="A")
@click.argument("right", metavar="[B]", required=False)
@click.option(
    "--against",
    type=click.Choice(["rdna3"]),
    help="Instead of B: A's own translation, made now.",
)
@click.option("-k", "--kernel", default="*", help="Name, demangled name or glob, in both files.")
@click.option("--kernel-b", help="Of B, where it has another name.")
@click.option("--arch", help="Only this architecture of A, e.g. sm_80.")
@click.option("--arch-b", help="Of B; without: as of A where B has it.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "html"]),
    help="Without: by the name of the output, else text.",
)
@click.option(
    "--whole",
    is_flag=True,
    help="As text, also blocks that are the same (SASS and its RDNA3 are always whole).",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Instead of stdout.")
def command(
    left: str,
    right: str | None,
    against: str | None,
    kernel: str,
    kernel_b: str | None,
    arch: str | None,
    arch_b: str | None,
    form: str | None,
    whole: bool,
    output: Path | None,
) -> None:
    """Pairs the blocks of A's and B's kernels, and shows what differs in them: two architectures,
    compilers or versions of SASS, or two code objects.

    Registers may have other names, blocks another order, constants other values: a pair like that
    is called renamed.  The exit status is 0 where nothing differs at all, else 1.

    With --against rdna3, or where B is the code object that A was translated to, shows which RDNA3
    instructions stand for which SASS instruction, and what the translator added: by its own map,
    not by likeness.  The exit status is then 0.
    """
    from sassxlate.cfg.align import align
    from sassxlate.cfg.diff_page import to_html
    from sassxlate.cfg.diff_text import same, to_data, to_text

    suffix = output.suffix.lower() if output else ""
    kind = form or {".json": "json", ".html": "html"}.get(suffix, "text")
    if (right is None) == (against is None):
        raise UsageError("SX0840", "compare with B, or with --against rdna3")
    if right is None and (kernel_b or arch_b):
        option = "--kernel-b" if kernel_b else "--arch-b"
        raise UsageError("SX0840", f"{option} is about B, and with --against rdna3 there is none")
    exact = _exact(left, right)
    if exact is not None:
        from ._against import shown

        if kernel_b:
            raise UsageError("SX0840", "a kernel and its translation have one name: no --kernel-b")
        text, refused = shown(*exact, kernel, _of_sass(exact[0] == right, arch, arch_b), kind)
        _write(output, text)
        sys.exit(3 if refused else 0)
    assert right is not None
    sides = _sides(left, right, (kernel, kernel_b or kernel), (arch, arch_b))
    out: list[str] = []
    data: list[dict[str, object]] = []
    equal = True
    if kind == "html" and len(sides) > 1:
        names = ", ".join(a.name for a, _ in sides)
        message = f"html shows one kernel, {len(sides)} match: {names[:400]}"
        raise UsageError("SX0828", message, Where(left))
    for a, b in sides:
        found = align(a, b)
        equal &= same(a, b, found)
        if kind == "json":
            data.append(to_data(a, b, found))
        elif kind == "html":
            out.append(to_html(a, b, found))
        else:
            out.append(to_text(a, b, found, whole=whole))
    if kind == "json":
        out = [json.dumps({"schema": SCHEMA, "kernels": data}, indent=1) + "\n"]
    _write(output, "\n".join(out))
    sys.exit(0 if equal else 1)


def _write(output: Path | None, text: str) -> None:
    data = text.encode("utf-8", "replace")
    if output is None:
        click.echo(data.decode(), nl=False)
    else:
        write_whole(output, data)


def _exact(left: str, right: str | None) -> tuple[str, str | None] | None:
    """(SASS, code object or None: to be made) where one is the other's translation; else None."""
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
    from ._code_objects import TARGET

    mine, other, option = (arch_b, arch, "--arch") if is_b else (arch, arch_b, "--arch-b")
    if other is None or other == TARGET:
        return mine
    if is_b and mine is None:
        return other
    raise UsageError("SX0840", f"{option} {other}: this side is a code object for {TARGET}")


def _sides(
    left: str, right: str, kernels: tuple[str, str], archs: tuple[str | None, str | None]
) -> list[tuple[Picture, Picture]]:
    """The kernels to compare: those with the same name, or the only one of each side."""
    from ._pictures import graphs

    arch, arch_b = archs
    graphs_of = [[*graphs(left, (kernels[0],), arch)]]
    try:
        graphs_of.append([*graphs(right, (kernels[1],), arch_b or arch)])
    except UsageError as error:
        if error.code != "SX0802" or arch_b or not arch:
            raise
        graphs_of.append([*graphs(right, (kernels[1],), None)])  # B has others only
    for problem in (g.problem for some in graphs_of for g in some if g.problem):
        click.echo(f"sassxlate: {problem}", err=True)
    a, b = ([g.picture for g in some] for some in graphs_of)
    for file, some in ((left, a), (right, b)):
        names = [p.name for p in some]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            message = f"several architectures have {', '.join(twice)[:200]}: give --arch, --arch-b"
            raise UsageError("SX0828", message, Where(file))
    if len(a) == len(b) == 1:
        return [(a[0], b[0])]
    others = {p.name: p for p in b}
    pairs = [(p, others[p.name]) for p in a if p.name in others]
    if not pairs:
        raise UsageError("SX0802", "no kernel of A has a namesake in B", Where(right))
    return pairs
