"""Which questions a model was trained on: how long regions are, and whether they have macros."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from sassxlate.lowering.optimize.regions import LONGEST


@dataclass(frozen=True, slots=True)
class QuestionLimits:
    """``longest``: the most SASS instructions of a region, macros apart.  ``macros``: a region may
    have macros between the others (:mod:`sassxlate.lowering.region.macro`).  ``every``: training
    had all architectures, not only those up to sm_90."""

    longest: int = LONGEST
    macros: bool = False
    every: bool = False

    def to_json(self) -> dict[str, int | bool]:
        """As training data and models name them."""
        return asdict(self)


@runtime_checkable
class Limited(Protocol):
    """A model that says which questions it was trained on."""

    limits: QuestionLimits


def read_limits(about: Mapping[str, Any]) -> QuestionLimits:
    """From what a dataset's settings or a model's ``training.json`` say; the usual ones where they
    say nothing."""
    try:
        longest = int(about.get("longest", LONGEST))
        return QuestionLimits(longest, bool(about.get("macros")), bool(about.get("every")))
    except (TypeError, ValueError):
        return QuestionLimits()


def limits_of(folder: Path) -> QuestionLimits:
    """Those of a model's folder: its ``training.json``'s."""
    try:
        about = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        return read_limits(about.get("questions", {}))
    except (OSError, ValueError, AttributeError):
        return QuestionLimits()


def limits_of_model(model: object) -> QuestionLimits:
    """A model's; the usual ones for one that does not say."""
    return model.limits if isinstance(model, Limited) else QuestionLimits()


__all__ = ["QuestionLimits", "limits_of", "limits_of_model", "read_limits"]
