"""The settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """``row`` is the tokens per row, ``batch`` the rows per step; ``question`` the weight of a
    question's tokens in the loss (an answer's is 1)."""

    size: str = "small"
    row: int = 1024
    batch: int = 64
    epochs: float = 0.0  # 0: EPOCHS, or as many as ``minutes`` or ``steps`` allow
    steps: int = 0  # 0: by the epochs
    minutes: float = 0.0  # 0: no limit; with a limit, the schedule follows the clock
    rate: float = 1e-3
    warmup: float = 0.02
    decay: float = 0.1
    clip: float = 1.0
    question: float = 0.1
    seed: int = 0
    every: int = 200  # steps between evaluations and checkpoints
    held_out: int = 2048  # most examples of an evaluation
    vocabulary: int = 0  # words; 0: the language's file
    compile: bool = False
    start: str = ""  # a checkpoint with the initial weights (expert iteration)
