"""Measures how fast the GPU sampler answers."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sassxlate.errors import SassxlateError
from sassxlate.llm.inference.torch_sampler import TorchSampler


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of ``python -m sassxlate.llm.inference.torch_sampler``."""
    from sassxlate.llm.dataset import shards

    parser = argparse.ArgumentParser(prog="python -m sassxlate.llm.inference.torch_sampler")
    parser.add_argument("model", type=Path)
    parser.add_argument("shard", type=Path, help="tokens of `sassxlate dataset tokens`")
    parser.add_argument("--device", default="auto")
    for name, value in (("questions", 4096), ("samples", 8), ("slots", 0), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    a = parser.parse_args(arguments)
    try:
        shard = shards.read(a.shard)
        begun = time.monotonic()
        sampler = TorchSampler(a.model, a.device, a.seed, a.slots)
        count = min(a.questions, len(shard))
        rows = [shard.example(i).tolist() for i in range(count)]
        asked = [row[: int(shard.questions[i])] for i, row in enumerate(rows)]
        known = [tuple(row[int(shard.questions[i]) :]) for i, row in enumerate(rows)]
        started = time.monotonic()
        answers = tokens = first = any_ = 0
        most = [24 + len(k) * 3 // 2 for k in known]
        for n, found in sampler.answers(asked, a.samples, most):
            answers += len(found)
            tokens += sum(map(len, found))
            first += found[:1] == [known[n]]
            any_ += known[n] in found
    except SassxlateError as error:
        print(f"sassxlate: {error}", file=sys.stderr)
        return 2
    seconds = time.monotonic() - started
    figures = {
        "device": sampler.device, "questions": count, "samples": a.samples, "answers": answers,
        "answers_s": round(answers / seconds, 1), "tokens_s": round(tokens / seconds),
        "loading_s": round(started - begun, 1), "seconds": round(seconds, 1),
        "first_known": first / max(1, count), "any_known": any_ / max(1, count),
    }  # fmt: skip
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
