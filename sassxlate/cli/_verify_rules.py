"""`sassxlate verify --rules`: every lowering rule, for all forms of its instructions."""

from __future__ import annotations

import functools
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from sassxlate.errors import UsageError

from ._files import parse_arch

if TYPE_CHECKING:
    from sassxlate.lowering.verify.rules import Finding, Settings

VECTORS = 1 << 20  # of a form that the solver cannot decide


def rules_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds ``--rules`` and what belongs to it; without it the command is as before."""

    @functools.wraps(command)
    def wrapped(context: click.Context, **options: Any) -> None:
        own = {name: options.pop(name) for name in ("rules", "combinations", "words")}
        file = options["file"]
        if not own["rules"]:
            if file is None:
                raise click.UsageError("Missing argument 'FILE'.", context)
            command(**options)
            return
        patterns = [*([] if file is None else [file]), *options["args"]]
        given = context.get_parameter_source("vectors") != ParameterSource.DEFAULT
        from .verify import require_solver

        require_solver()
        from sassxlate.lowering.verify.rules import Settings

        settings = Settings(
            _arch(options["arch"]),
            own["combinations"],
            own["words"],
            options["seed"] or 1,
            int(options["timeout"] * 1000),
            options["vectors"] if given else VECTORS,
        )
        status = verify_rules(
            patterns, settings, options["jobs"], options["as_json"], options["verbose"]
        )
        context.exit(status)

    passed: Callable[..., None] = click.pass_context(cast("Any", wrapped))
    out = click.option(
        "--combinations",
        type=click.IntRange(0),
        default=24,
        show_default=True,
        help="Of --rules: random words of each form, besides every modifier and sign by itself.",
    )(passed)
    out = click.option(
        "--words",
        type=click.IntRange(0),
        default=0,
        help="Of --rules: words of each row of the encoding tables, at most; 0: all.",
    )(out)
    return click.option(
        "--rules", is_flag=True, help="All lowering rules, or those that FILE and ARGS name."
    )(out)


def _arch(text: str | None) -> int:
    return parse_arch(text)[0] if text else 90


def verify_rules(
    patterns: Sequence[str], settings: Settings, jobs: int, as_json: bool, verbose: bool
) -> int:
    """Prints a table of rules and what is not proved; 1 where one was refuted."""
    from sassxlate.lowering.verify.rules import chosen, each, table

    from ._verify_blocks import cores

    todo = chosen(patterns, settings)
    if not todo:
        raise UsageError("SX0803", f"no rule is named {', '.join(patterns)}")
    found: list[Finding] = []
    with click.progressbar(
        length=1000 * len(todo), label="forms", file=sys.stderr, hidden=as_json
    ) as bar:

        def told(part: float) -> None:
            bar.update(round(1000 * part))

        for some in each(patterns, settings, jobs or cores(), told):
            found += some
            if as_json:
                for finding in some:
                    click.echo(json.dumps({"arch": f"sm_{settings.arch}", **asdict(finding)}))
                sys.stdout.flush()
    if not as_json:
        _print(found, table(found), verbose)
    return int(any(f.status == "refuted" for f in found))


def _print(
    found: Sequence[Finding], counts: Mapping[str, Mapping[Any, int]], verbose: bool
) -> None:
    from sassxlate.lowering.verify.rules import STATUSES

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
        if finding.status in ("refuted", "unknown") or (verbose and finding.status != "proved"):
            key = (finding.rule, finding.status, finding.detail)
            if not shown[key] or verbose:
                text = f"{finding.text} ({finding.surroundings})"
                click.echo(f"{finding.status}: {finding.rule}: {text}: {finding.detail}")
            shown[key] += 1
