"""``sassxlate embed``: a program or library that carries its translation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import (
    device_arch_option,
    format_option,
    jobs_option,
    kernel_option,
)
from sassxlate.disasm.amdgpu_machines import RDNA3
from sassxlate.output import print_json

if TYPE_CHECKING:
    from sassxlate.runtime_shim.embed.carry import Embedded

EXIT_REFUSED = 3


@click.command(cls=Command, example="sassxlate embed ./saxpy -o saxpy.amd && ./saxpy.amd")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE", help="The file to write.",
)  # fmt: skip
@click.option("--library", is_flag=True, help="FILE is a shared object, not a program.")
@kernel_option
@device_arch_option
@click.option(
    "--libraries",
    default="beside",
    show_default=True,
    metavar="beside|installed|FOLDER",
    help="Where the result finds our libraries: in a folder sassxlate-libs beside it, which is "
    "written, where they are installed here, or in FOLDER, which may begin with $ORIGIN.",
)
@click.option(
    "--target",
    "targets",
    type=click.Choice(RDNA3),
    default=[RDNA3[0]],
    show_default=True,
    multiple=True,
    envvar="SASSXLATE_TARGET",
    help="The AMD processor that code is for; may repeat.",
)
@click.option(
    "--host",
    "isas",
    type=click.Choice(["avx512", "avx2", "none"]),
    multiple=True,
    default=["avx512", "avx2"],
    show_default=True,
    help="The processors that run the emulated device's code; none: for AMD cards alone.",
)
@jobs_option()
@format_option()
def command(
    file: Path,
    output: Path,
    library: bool,
    kernels: tuple[str, ...],
    arch: str | None,
    libraries: str,
    targets: tuple[str, ...],
    isas: tuple[str, ...],
    jobs: int,
    form: str | None,
) -> None:
    """Write FILE with the translation of its kernels in a segment of its own.

    The result runs as under `sassxlate run`, on an AMD card or the emulated device, but needs
    neither Python nor the translation service, and translates nothing.  A kernel that is refused
    is carried as a refusal.

    The exit status is 0, or 3 if some kernels are refused; the file is written then, too.
    """
    from sassxlate.cli.warm import Shown
    from sassxlate.runtime_shim import application
    from sassxlate.runtime_shim.embed.carry import embed
    from sassxlate.runtime_shim.embed.gather import ISAS

    if "none" in isas and len(set(isas)) > 1:
        raise click.BadParameter("none goes with no other word", param_hint="--host")
    shown = Shown()
    try:
        done = embed(
            file,
            output,
            is_library=library,
            libraries=libraries,
            targets=tuple(dict.fromkeys(targets)),
            isas=[isa for isa in ISAS if isa in isas],
            patterns=kernels,
            capability=application.capability(arch) if arch else "",
            width=jobs or None,
            told=shown.tell,
        )
    finally:
        shown.clear()
    for line in (*done.faults, *done.refused.values(), *done.remarks):
        click.echo(f"sassxlate: {line}", err=True)
    if form == "json":
        print_json("embed", {
            "file": str(output),
            "bytes": done.size,
            "kernels": done.kernels,
            "host": [isa for isa in isas if isa != "none"],
            "refused": [{"kernel": k, "line": v} for k, v in done.refused.items()],
            "faults": list(done.faults),
            "remarks": list(done.remarks),
            "needed": list(done.needed),
            "runpath": list(done.runpath),
        })  # fmt: skip
    else:
        click.echo(_text(output, done))
    if done.refused or done.faults:
        raise SystemExit(EXIT_REFUSED)


def _text(output: Path, done: Embedded) -> str:
    many = max(done.kernels.values(), default=0)
    refused = f", {len(done.refused)} refused" if done.refused else ""
    word = "kernel" if many == 1 else "kernels"
    targets = ", ".join(done.kernels)
    return f"{output}: {many} {word} for {targets}{refused}; libraries from {done.runpath[0]}"
