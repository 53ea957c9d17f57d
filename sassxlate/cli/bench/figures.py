"""``sassxlate bench emulator``, ``translate``, ``cold``, ``disasm``: times on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from sassxlate.bench.figures import fixtures, isa_of
from sassxlate.cli.bench.options import (
    check_option,
    end,
    fixtures_option,
    isa_option,
    repeat_option,
    tier_option,
)
from sassxlate.cli.grammar import Command
from sassxlate.cli.options import printing_options, target_option
from sassxlate.lowering.target import target_named


@click.command("emulator", cls=Command, example="sassxlate bench emulator --repeat 3")
@click.option(
    "--call",
    type=click.FloatRange(0.0001, 10),
    default=0.2,
    show_default=True,
    help="Target duration of one call of a loop, in seconds.",
)
@isa_option
@fixtures_option
@check_option
@repeat_option()
@printing_options()
def emulator(form: str, repeat: int, check: bool, isa: str, given: str | None, call: float) -> None:
    """RDNA3 instructions per second on one core, in the loops of fixtures/bench."""
    from sassxlate.bench import emulator as _bench_emulator

    figures = _bench_emulator.measure(fixtures(given), repeat, isa_of(isa), call)
    end("emulator", figures, form, check)


@click.command("translate", cls=Command, example="sassxlate bench translate --repeat 3")
@target_option
@isa_option
@fixtures_option
@check_option
@repeat_option()
@printing_options()
def translate(
    form: str, repeat: int, check: bool, isa: str, given: str | None, target: str
) -> None:
    """Time from SASS to a code object, from there to host code, and of a run with a warm cache."""
    from sassxlate.bench import translate as _bench_translate

    figures = _bench_translate.measure(fixtures(given), repeat, isa_of(isa), target_named(target))
    end("translate", figures, form, check)


@click.command("cold", cls=Command, example="sassxlate bench cold --repeat 3")
@tier_option("auto")
@click.option(
    "--programs",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="DIR",
    help="Run the executables of this folder, which print PASS, not those of fixtures.",
)
@target_option
@isa_option
@fixtures_option
@check_option
@repeat_option()
@printing_options()
def cold(
    form: str,
    repeat: int,
    check: bool,
    isa: str,
    given: str | None,
    tier: str,
    programs: Path | None,
    target: str,
) -> None:
    """The first use of a kernel: the baseline tier's speed, building kernels, cold runs."""
    from sassxlate.bench import cold as _bench_cold

    figures = _bench_cold.measure(
        fixtures(given), repeat, isa_of(isa), tier, programs, target_named(target)
    )
    end("cold", figures, form, check)


@click.command("disasm", cls=Command, example="sassxlate bench disasm ./saxpy --repeat 1")
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=400_000,
    show_default=True,
    help="Take no further cubin after this many instructions.",
)
@check_option
@repeat_option(3)
@printing_options()
def disasm(files: tuple[str, ...], limit: int, check: bool, repeat: int, form: str) -> None:
    """Time decoding and printing SASS, and nvdisasm (if found) on the same cubins.

    FILES are cubins, executables and libraries.  Times are CPU time of one thread.
    """
    from sassxlate.bench import disasm as _bench_disasm

    figures = _bench_disasm.measure(files, repeat, limit)
    end("disasm", figures, form, check)


__all__ = ["cold", "disasm", "emulator", "translate"]
