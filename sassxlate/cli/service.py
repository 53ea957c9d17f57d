"""``sassxlate service``: what the translation service does, and ending it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sassxlate.cli.grammar import Group
from sassxlate.cli.options import printing_options
from sassxlate.errors import ServiceError
from sassxlate.output import print_json, print_lines
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.service import client

EXIT_NONE = 1
_PATIENCE_S = 10.0


@click.group(cls=Group)
def command() -> None:
    """Show what the translation service does, or end it.

    There is one for each cache and version of the translator; it starts with the first kernel
    that is missing in the cache and ends when it was idle for ten minutes.
    """


def _sockets() -> list[Path]:
    """The sockets of this user's services."""
    own = paths.socket_path()
    return sorted({*own.parent.glob("service*.sock"), *([own] if own.exists() else [])})


def _answers(op: str) -> list[tuple[Path, dict[str, Any]]]:
    found: list[tuple[Path, dict[str, Any]]] = []
    for path in _sockets():
        try:
            answer = client.call(path, {"op": op}, timeout=_PATIENCE_S)
        except ServiceError as error:
            if error.code != "SX0902":  # no service any more
                click.echo(f"sassxlate: {error}", err=True)
            continue
        if not answer["ok"]:
            click.echo(f"sassxlate: {path}: {answer['line']}", err=True)
            continue
        found.append((path, answer))
    return found


@command.command(example="sassxlate service status")
@printing_options()
def status(form: str) -> None:
    """Print what runs, what is stopped or queued, who waits for it and for how long.

    For each job: its urgency (wait: an application stands still; better: code for a kernel that
    runs already; prepare: kernels of earlier runs; guess: neighbours of a kernel that was asked
    for), the tier that it makes code for, processor time and memory.  The exit status is 1 if no
    service runs.
    """
    from sassxlate.runtime_shim.service.status import text

    found = _answers("status")
    if form == "json":
        services = [
            {"socket": str(path), **{k: v for k, v in answer.items() if k != "ok"}}
            for path, answer in found
        ]
        print_json("service-status", {"services": services})
    else:
        print_lines([line for _, one in found for line in text(one)] or ["no service runs"])
    if not found:
        raise SystemExit(EXIT_NONE)


@command.command(example="sassxlate service stop")
@printing_options()
def stop(form: str) -> None:
    """End the services when what applications wait for is done."""
    sockets = [str(path) for path, _ in _answers("stop")]
    if form == "json":
        print_json("service-stop", {"stopped": sockets})
        return
    for path in sockets:
        click.echo(f"{path}: ends")
