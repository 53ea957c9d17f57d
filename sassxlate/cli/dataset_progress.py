"""What `sassxlate dataset` shows while it works."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from sassxlate.errors import ModelError, SassxlateError
from sassxlate.notes import shows_progress

if TYPE_CHECKING:
    from sassxlate.llm.dataset.build import Progress
    from sassxlate.llm.dataset.generate.generate import Made
    from sassxlate.llm.dataset.improve import Progress as Round


class Shown:
    """A progress line on the terminal, and errors as they come."""

    def __init__(self, total: int = 0) -> None:
        self.started = time.monotonic()
        self.last = 0.0
        self.count, self.total = 0, total
        self.visible = False

    def _line(self, text: str) -> None:
        now = time.monotonic()
        if shows_progress() and now - self.last > 0.2:
            self.last, self.visible = now, True
            click.echo(f"\r{text}\x1b[K", err=True, nl=False)

    def clear(self) -> None:
        if self.visible:
            self.visible = False
            click.echo("\r\x1b[K", err=True, nl=False)

    def build(self, p: Progress) -> None:
        rate = p.rows / max(1e-9, time.monotonic() - self.started)
        self._line(f"{p.done} of {p.units} units, {p.rows} new pairs, {rate:.0f}/s")

    def improved(self, p: Round) -> None:
        share = p.saved / max(1, p.before)
        self._line(
            f"{p.done} of {p.questions} questions, {p.done / max(1e-9, p.seconds):.0f}/s, "
            f"{p.counts['accepted']} answers improved, {share:.1%} of cost saved"
        )

    def failed(self, error: SassxlateError) -> None:
        self.clear()
        click.echo(f"sassxlate: {error}", err=True)

    def generated(self, made: Made) -> None:
        self.count += 1
        if made.error is not None:
            self.failed(ModelError(made.error.code, f"{made.name}: {made.error.message}"))
        self._line(f"{self.count} of {self.total} programs")
