"""What answers questions in words, whichever way it is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from sassxlate.lowering.region.text import RegionText, Words


@runtime_checkable
class ProgressListener(Protocol):
    """A model that says how far it is: so many of so many answers."""

    told: Callable[[int, int], None]


class LanguageModel(Protocol):
    """A model of the block language.  ``name`` says which, and is part of what is remembered: equal
    names give equal answers."""

    @property
    def name(self) -> str: ...

    def answers(
        self, questions: Sequence[RegionText], samples: int, vtemps: Sequence[int]
    ) -> list[list[Words]]:
        """For each question up to ``samples`` answers, the likeliest first; none where it is too
        long.  ``vtemps`` is how many vector temporaries each may use."""
        ...


__all__ = ["LanguageModel", "ProgressListener", "Words"]
