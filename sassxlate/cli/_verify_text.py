"""`sassxlate verify --text`: one block from texts, whoever wrote its RDNA3."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from sassxlate.errors import ContainerError, SassxlateError, Where

from ._verify_blocks import Settings


def _text(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "it is no text"
    raise ContainerError("SX0101", f"cannot read the file: {reason}", Where(path)) from None


def verify_text(path: str, settings: Settings, as_json: bool) -> int:
    """Prints the verdict; the exit status, 1 where the block is refuted."""
    from sassxlate.lowering.verify import Proved, Refuted, verify
    from sassxlate.lowering.verify.shown import shown
    from sassxlate.lowering.verify.texts import block_of, read_texts

    try:
        block = block_of(read_texts(_text(path)))
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
