"""`sassxlate verify --text`: one block from texts, whoever wrote its RDNA3."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from sassxlate.errors import SassxlateError

from ._files import read_text
from ._verify_blocks import Settings


def verify_text(path: str, settings: Settings, as_json: bool) -> int:
    """Prints the verdict; the exit status, 1 where the block is refuted."""
    from sassxlate.lowering.verify import Proved, Refuted, verify
    from sassxlate.lowering.verify.shown import shown
    from sassxlate.lowering.verify.texts import block_of, read_texts

    try:
        block = block_of(read_texts(read_text(path)))
    except SassxlateError as error:
        raise error.at(file=path) from None
    verdict = verify(
        block, timeout_ms=settings.timeout_ms, vectors=settings.vectors, tested=True
    )
    if as_json:
        click.echo(json.dumps({"verdict": type(verdict).__name__, **asdict(verdict)}))
    elif isinstance(verdict, Proved):
        reading = f" (modulo {', '.join(verdict.modulo)})" if verdict.modulo else ""
        click.echo(f"proved{reading}")
    elif isinstance(verdict, Refuted):
        click.echo("refuted")
        for line in shown(block, verdict):
            click.echo(f"  {line}".rstrip())
    else:
        click.echo(f"unknown: {verdict.reason}")
    return 1 if isinstance(verdict, Refuted) else 0
