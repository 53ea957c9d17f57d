"""A block and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sassxlate.lowering.verify import Verdict


@dataclass(frozen=True, slots=True)
class ProofSettings:
    """How hard to try."""

    timeout_ms: int = 10_000
    vectors: int = 4096


@dataclass(frozen=True, slots=True)
class Judged:
    """A block of a kernel, and the result of its proof."""

    index: int
    start: int
    instructions: int
    verdict: Verdict
    ms: float  # processor time
    cached: bool
    shown: tuple[str, ...] = ()  # the counterexample in both languages
