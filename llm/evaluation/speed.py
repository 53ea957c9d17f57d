"""Measures how fast a model answers on this CPU, and whether NumPy's answers are the same::

    python -m sassxlate.llm.evaluation.speed MODEL SOURCES... --blocks 256 --rounds 2

SOURCES are cubins, executables and folders of them.  The questions are the distinct blocks nearest
to the median length (``--sample``: of all lengths, drawn by a seed), one sample each, nothing
remembered, by the machine code and by NumPy in turn, so that other load on the machine slows both.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sassxlate.errors import SassxlateError
from sassxlate.llm.evaluation.corpus import Choice, EvaluationBlock, collect
from sassxlate.llm.inference.block_model import BlockModel, Words

_OPTIONS = (
    ("blocks", 256, "distinct blocks at most"),
    ("processes", 0, "processes; 0: one per core"),
    ("rounds", 1, "times that each is asked"),
)


def chosen(blocks: Sequence[EvaluationBlock], count: int, sample: bool) -> list[EvaluationBlock]:
    """The given number of distinct questions: those nearest to the median length, or of all
    lengths."""
    found = {block.question.text: block for block in blocks}
    rows = sorted(found.values(), key=lambda b: (b.tokens, b.key))
    if sample:
        return random.Random(0).sample(rows, min(count, len(rows)))
    middle = rows[len(rows) // 2].tokens
    return sorted(rows, key=lambda b: (abs(b.tokens - middle), b.key))[:count]


def _seconds() -> float:
    """Processor seconds, children included."""
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(sum(resource.getrusage(who)[:2]) for who in both)


def measured(
    model: BlockModel, blocks: Sequence[EvaluationBlock]
) -> tuple[dict[str, Any], list[Words]]:
    """The rates of one round, and the answers."""
    clock, spent = time.perf_counter(), _seconds()
    answers = model.answers([b.question for b in blocks], 1, [b.vtemps for b in blocks])
    clock, spent = time.perf_counter() - clock, _seconds() - spent
    words = sum(b.tokens for b in blocks) + sum(len(a) + 1 for mine in answers for a in mine)
    figures = {
        "by": "numpy" if model.fast is None else model.fast.kind,
        "blocks_s": round(len(blocks) / clock, 1),
        "blocks_cpu_s": round(len(blocks) / spent, 1),
        "words_cpu_s": round(words / spent),
        "load": round(os.getloadavg()[0], 1),
    }
    return figures, [mine[0] if mine else () for mine in answers]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of ``python -m sassxlate.llm.evaluation.speed``."""
    parser = argparse.ArgumentParser(
        prog="python -m sassxlate.llm.evaluation.speed",
        description="Distinct blocks a second, by machine code and by NumPy in turn.",
    )
    parser.add_argument("model", type=Path, help="a model's folder")
    parser.add_argument("sources", type=Path, nargs="+", help="cubins, executables, folders")
    parser.add_argument("--sample", action="store_true", help="blocks of all lengths")
    for name, value, what in _OPTIONS:
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{what} (%(default)s)")
    a = parser.parse_args(arguments)
    if a.blocks < 1 or a.rounds < 1 or a.processes < 0:
        parser.error("--blocks and --rounds are at least 1, --processes at least 0")
    try:
        blocks = chosen(list(collect(a.sources, Choice()).blocks.values()), a.blocks, a.sample)
        models = [BlockModel(a.model, workers=a.processes or None) for _ in range(2)]
        models[1].fast = None
        if models[0].fast is None:  # otherwise it is compiled before the clock starts
            print("sassxlate: no machine code for this CPU or this model", file=sys.stderr)
        made: list[list[Words]] = [[], []]
        for _ in range(a.rounds):
            for n, model in enumerate(models):
                figures, made[n] = measured(model, blocks)
                print(json.dumps(figures), flush=True)
    except SassxlateError as error:
        print(f"sassxlate: {error}", file=sys.stderr)
        return 2
    lengths = sorted(b.tokens for b in blocks)
    same = sum(x == y for x, y in zip(*made, strict=True))
    print(json.dumps({"blocks": len(blocks), "median": lengths[len(lengths) // 2], "same": same}))
    return 0


__all__ = ["chosen", "main", "measured"]


if __name__ == "__main__":
    raise SystemExit(main())
