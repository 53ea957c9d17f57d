"""What a training is given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How to train.  ``row`` is tokens a row, ``batch`` rows a step; ``question`` the weight of a
    question's tokens in the loss (an answer's is 1)."""

    size: str = "small"
    row: int = 1024
    batch: int = 64
    epochs: float = 0.0  # 0: EPOCHS, or as many as ``minutes`` or ``steps`` allow
    steps: int = 0  # 0: as the epochs say
    minutes: float = 0.0  # 0: no limit; the schedule follows the clock where there is one
    rate: float = 1e-3
    warmup: float = 0.02
    decay: float = 0.1
    clip: float = 1.0
    question: float = 0.1
    seed: int = 0
    every: int = 200  # steps between evaluations and checkpoints
    held_out: int = 2048  # examples of an evaluation at most
    vocabulary: int = 0  # words; 0: the language's file
    compile: bool = False
    start: str = ""  # a checkpoint whose weights to begin with (expert iteration)
