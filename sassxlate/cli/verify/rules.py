"""``sassxlate verify rules``: the lowering rules, for all forms of their instructions."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import (
    cluster_option,
    jobs_option,
    printing_options,
    target_option,
)
from sassxlate.cli.verdicts import require_solver
from sassxlate.disasm.inputs import parse_arch
from sassxlate.errors import EXIT_NEGATIVE, UsageError
from sassxlate.lowering.target import target_named
from sassxlate.notes import quiet, verbose
from sassxlate.output import print_json_line
from sassxlate.processes import cores

if TYPE_CHECKING:
    from sassxlate.lowering.verify.rules.verify import Finding

VECTORS = 1 << 20  # random vectors for a form that the solver cannot decide


@click.command("rules", cls=Command, example="sassxlate verify rules IADD3 'mufu*' --words 8")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option("--arch", metavar="SM", default="sm_90", show_default=True, help="The architecture.")
@click.option(
    "--combinations",
    type=click.IntRange(0),
    default=24,
    show_default=True,
    help="Random words of each form, besides one for each modifier and sign.",
)
@click.option(
    "--words",
    type=click.IntRange(0),
    default=0,
    help="Most words of each row of the encoding tables; 0: all.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the random words.")
@click.option(
    "--timeout", type=float, default=10.0, show_default=True,
    help="Time limit of the solver per form, in seconds.",
)  # fmt: skip
@click.option(
    "--vectors", type=int, default=VECTORS, show_default=True,
    help="Random inputs to try if the solver cannot decide.",
)  # fmt: skip
@jobs_option()
@cluster_option
@target_option
@printing_options()
@click.pass_context
def command(
    context: click.Context,
    patterns: tuple[str, ...],
    arch: str,
    combinations: int,
    words: int,
    seed: int,
    timeout: float,
    vectors: int,
    jobs: int,
    cluster: str | None,
    target: str,
    form: str,
) -> None:
    """Prove each lowering rule for the forms of its instructions: words of every form from the
    encoding tables, their immediates for all values at once.

    PATTERN is a mnemonic, a rule's name or a glob; without one, all rules are verified.  With -v
    every form that is not proved is listed.  As JSON each form is a line, as soon as it is decided.

    The exit status is 1 if a form is refuted.
    """
    require_solver()
    from sassxlate.executors import Place
    from sassxlate.lowering.verify.rules.verify import RuleCheckSettings, chosen, each, table
    from sassxlate.runtime_shim.cache.verdicts import verdict_tag

    settings = RuleCheckSettings(
        parse_arch(arch)[0],
        combinations,
        words,
        seed,
        int(timeout * 1000),
        vectors,
        target_named(target),
    )
    todo = chosen(patterns, settings)
    if not todo:
        raise UsageError("SX0803", f"no rule is named {', '.join(patterns)}")
    as_json = form == "json"
    found: list[Finding] = []
    hidden = as_json or quiet()
    with click.progressbar(
        length=1000 * len(todo), label="forms", file=sys.stderr, hidden=hidden
    ) as bar:

        def told(part: float) -> None:
            bar.update(round(1000 * part))

        place = Place(jobs or cores(), cluster, verdict_tag)
        for some in each(patterns, settings, place, told):
            found += some
            if as_json:
                for finding in some:
                    value = {"arch": f"sm_{settings.arch}", **asdict(finding)}
                    print_json_line("verify-rules", value)
                sys.stdout.flush()
    if not as_json:
        _print(found, table(found))
    if any(f.status == "refuted" for f in found):
        context.exit(EXIT_NEGATIVE)


def _print(found: Sequence[Finding], counts: Mapping[str, Mapping[Any, int]]) -> None:
    """A table of rules, and those not proved."""
    from sassxlate.lowering.verify.rules.verify import STATUSES

    click.echo(f"{'rule':16}" + "".join(f"{name:>9}" for name in STATUSES))
    total: Counter[str] = Counter()
    for rule, row in sorted(counts.items()):
        total.update(row)
        click.echo(f"{rule:16}" + "".join(f"{row[name] or '-':>9}" for name in STATUSES))
    click.echo(f"{'all':16}" + "".join(f"{total[name]:>9}" for name in STATUSES))
    several = Counter(f.immediates for f in found if f.immediates and f.status == "proved")
    if several:
        whole = several.pop("all", 0)
        click.echo(f"immediates: {whole} words for all values, {sum(several.values())} for some")
    shown: Counter[tuple[str, str, str]] = Counter()
    for finding in found:
        if finding.status in ("refuted", "unknown") or (verbose() and finding.status != "proved"):
            key = (finding.rule, finding.status, finding.detail)
            if not shown[key] or verbose():
                text = f"{finding.text} ({finding.surroundings})"
                click.echo(f"{finding.status}: {finding.rule}: {text}: {finding.detail}")
            shown[key] += 1


__all__ = ["command"]
