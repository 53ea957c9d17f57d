"""`sassxlate translate FILE -o DIR`: assembly, code objects and a report for every kernel."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import (
    arch_option,
    engine_options,
    format_option,
    jobs_option,
    kernel_option,
    matrix_option,
    report_options,
    target_option,
)
from sassxlate.cli.translating import Chosen, Terms, translate
from sassxlate.disasm.amdgpu_machines import RDNA3, spelled
from sassxlate.disasm.containers import LoadedFile
from sassxlate.disasm.inputs import (
    kernel_matches,
    matching_images,
    no_match,
    read_input,
)
from sassxlate.errors import LoweringError
from sassxlate.lowering.codeobject.debug_lines import CubinLines
from sassxlate.lowering.report.pages import begin
from sassxlate.notes import quiet
from sassxlate.output import document, make_directory, write_whole
from sassxlate.runtime_shim.ptx.machine_code import machine_code
from sassxlate.runtime_shim.writer import UNIT, writer


def stem_of(name: str, arch: int, where: tuple[int, int], taken: set[str]) -> str:
    """A file name for a kernel: readable, bounded, not hidden, and not yet in ``taken``, to which
    it is added; ``where`` is module and entry."""
    stem = _stem(name, arch)
    if stem in taken:
        stem += ".{}.{}".format(*where)
    if stem in taken:  # names of one entry that differ in characters which are replaced
        stem += "." + hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).hexdigest()
    same = stem
    number = 1
    while stem in taken:
        number += 1
        stem = f"{same}.{number}"
    taken.add(stem)
    return stem


def _stem(name: str, arch: int) -> str:
    plain = re.sub(r"^\.|[^A-Za-z0-9_.-]", "_", name)
    if len(plain) > 100:
        plain = plain[:80] + "." + hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    return f"{plain}.sm_{arch}"


def _chosen(loaded: LoadedFile, kernels: tuple[str, ...], arch: str | None) -> Iterator[Chosen]:
    """The requested kernels with the stems of their files, which are distinct."""
    from sassxlate.lowering.abi.link import function_addresses  # which needs NumPy

    stems: set[str] = set()
    for where, data, cubin in matching_images(loaded, kernels, arch):
        lines = CubinLines(bytes(data), function_addresses(cubin))
        for kernel in cubin.kernels:
            if kernel_matches(kernel.name, kernel.demangled, kernels):
                stem = stem_of(kernel.name, cubin.arch, (where.module, where.entry), stems)
                yield Chosen(stem, where, cubin, kernel, lines)


@click.command(
    cls=Command,
    short_help="SASS to RDNA3: assembly, code objects, a report",
    example="sassxlate translate ./saxpy --arch sm_80 -o translated",
)
@click.argument("file", metavar="FILE")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="DIR", help="Write to this folder."
)
@kernel_option
@arch_option
@jobs_option()
@format_option()
@click.option("--verify", is_flag=True, help="Prove each block as `sassxlate verify blocks` does.")
@target_option
@matrix_option
@click.option(
    "--dump-after",
    "dumped",
    metavar="PASS",
    multiple=True,
    help="Print what a pass makes of each kernel; may be repeated; all: of every pass.",
)
@engine_options
@report_options
def command(
    file: str,
    output: Path | None,
    kernels: tuple[str, ...],
    arch: str | None,
    jobs: int,
    form: str | None,
    verify: bool,
    target: str,
    matrix: str,
    dumped: tuple[str, ...],
    engine: str | None,
    model: str | None,
    samples: int,
    report: Path | None,
    report_format: str | None,
) -> None:
    """Translate every kernel of FILE to RDNA3, for the processor that --target names.

    Writes NAME.sm_XX.s (each line names its SASS), NAME.sm_XX.hsaco (with the CUDA source lines
    if FILE has them: nvcc -lineinfo), NAME.sm_XX.launch and report.json.  A kernel that cannot be
    translated is named with its error code; the others are still written, and the exit status is 3.

    With --verify a kernel with a block that is refuted is not written, and the exit status is 1;
    the report counts the blocks by verdict.  A kernel that --engine llvm or best gave to LLVM has
    none.

    --engine search, the default where the extra `verify` is installed, takes code from a search for
    a block if it is proved and costs less than the rules'; report.json has each block's writer,
    verdict and both costs.  The code between blocks is shortened with a proof, too.  --engine
    hybrid does the same with a model's code, and --engine FILE.py:NAME with that of a proposer of
    your own (docs/how-to/replace-the-model.md), which leaves code between blocks as it is.
    Programs that `sassxlate run` runs later use that code.  --engine rules is fastest.

    -j N translates N kernels at a time, and writes the same files.  A model answers in N processes,
    and its kernels, like those of a proposer of your own, are translated one after the other.

    --matrix fast gives HMMA of halves and bfloat16 to v_wmma: a tenth of the instructions, but not
    NVIDIA's bits (docs/errata.md).

    --dump-after prints the value of a pass, such as insert_waitcnt, instead of the summary: as
    assembly with labels from `select` on, before that as text.  With it -o may be left out.

    --report writes a page (or JSON): each kernel's SASS beside its RDNA3, which rule
    wrote what, registers and occupancy, verdicts, refused kernels and the reasons.  With it, -o may
    be left out.
    """
    as_json = form == "json"
    if verify:
        from sassxlate.cli.verdicts import require_solver

        require_solver()
    if output is None and report is None and not dumped:
        raise click.UsageError("Missing option '-o' / '--output' (or '--report', '--dump-after').")
    if as_json and dumped:
        raise click.UsageError("--format json and --dump-after both write to stdout.")
    if target not in RDNA3 and (verify or report is not None or dumped):
        text = "--verify, --report and --dump-after read RDNA3's code"
        raise LoweringError("SX0465", f"{target}: {text}")
    shown = _passes(dumped)
    wanted = spelled(target, matrix)
    pages = (
        None if report is None else begin(report, report_format, "translate", file, wanted, verify)
    )

    engines = writer(engine, model, samples, wanted, jobs)
    loaded = machine_code(read_input(file), arch)
    entries: list[dict[str, Any]] = []
    refused = 0
    total: Counter[str] = Counter()
    terms = Terms(file, engines, verify, shown, pages, output is not None)
    for made in translate(terms, _chosen(loaded, kernels, arch), jobs):
        if output is not None:
            make_directory(output)
            for suffix, content in made.files.items():
                write_whole(output / f"{made.stem}{suffix}", content)
        if pages is not None:
            pages.report.give(made.pages)
        refused += made.refused
        total += made.verdicts
        entries.append(made.entry)
    if pages is not None:
        pages.write()
    if not entries:
        raise no_match(file, kernels, arch)
    value: dict[str, Any] = {"file": file, "target": target, "matrix": matrix}
    value |= {"kernels": entries, "refused": refused}
    data = document("translate", value)
    if output is not None:
        write_whole(output / "report.json", (json.dumps(data, indent=1) + "\n").encode())
    if as_json:
        click.echo(json.dumps(data))
    elif not dumped:
        from sassxlate.lowering.rules.warp.matrix_fast import FAST

        for entry in entries:
            name = entry["demangled"] or entry["kernel"]
            if "report" in entry:
                r = entry["report"]
                click.echo(
                    f"{entry['arch']:7} {r['sass_instructions']:6} SASS"
                    f" -> {r['rdna_instructions']:6} RDNA3"
                    f"  {r['vgprs']:3} VGPRs  {r['waiting_points']:3} points  {name}"
                )
                if r["comes_apart"]:
                    click.echo(
                        "        SX0773: recursion: lanes that an NVIDIA GPU may run apart stay"
                        " together"
                    )
                if r["left_out"]:
                    click.echo(
                        f"        SX0663: a call through a pointer traps: {r['left_out']} functions"
                        " are left out"
                    )
                if FAST in dict(r["rules"]):
                    click.echo("        --matrix fast: HMMA by v_wmma, not NVIDIA's roundings")
                if "engine" in entry:
                    said = entry["engine"]
                    click.echo(
                        f"        {said['accepted']} of {len(said['blocks'])} blocks by"
                        f" {said['model']} ({said['asked']} asked);"
                        f" cost {-said['saved'] / UNIT:+g} cycles{_not_taken(said['outcomes'])}"
                    )
                    if said["edges"]:
                        click.echo(f"        {said['edges']} instructions fewer between blocks")
            else:
                click.echo(f"{entry['arch']:7} refused {entry['refused']['code']}  {name}")
    if verify:
        from sassxlate.cli.verdicts import counted

        if not (as_json and quiet()):
            click.echo(f"blocks: {counted(total)}", err=as_json)
    if total["Refuted"]:
        raise SystemExit(1)
    if refused:
        raise SystemExit(3)


def _not_taken(outcomes: Mapping[str, int]) -> str:
    """How many blocks keep the rules' code, by reason."""
    others = [f"{n} {name}" for name, n in outcomes.items() if name != "accepted"]
    return f"; the rules' elsewhere: {', '.join(others)}" if others else ""


def _passes(asked: tuple[str, ...]) -> frozenset[str]:
    """The passes to show.  Raises BadParameter for an unknown name."""
    if not asked:
        return frozenset()
    from sassxlate.lowering.pipeline import ENGINE, PASSES

    names = [*(p.name for p in PASSES), ENGINE]
    for name in asked:
        if name not in names and name != "all":
            known = ", ".join(names)
            text = f"no pass {name!r}. The passes are: {known}; or all."
            raise click.BadParameter(text, param_hint="'--dump-after'")
    return frozenset(names if "all" in asked else asked)
