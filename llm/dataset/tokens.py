"""The dataset in the form that a trainer reads: token numbers in shards that need no parquet."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sassxlate.errors import ModelError
from sassxlate.executors import Place, in_order
from sassxlate.llm.dataset import shards
from sassxlate.llm.dataset.files import digest_of, read_shard, settings_of, split_shards
from sassxlate.llm.language import tokenizer
from sassxlate.llm.language.limits import read_limits


@dataclass(frozen=True, slots=True)
class Written:
    """A shard on disk."""

    path: Path
    examples: int
    bytes: int


_Job: TypeAlias = "tuple[Path, Path, dict[str, Any]]"  # the dataset's shard, the tokens', about


def write_tokens(
    folder: Path,
    out: Path,
    split: str,
    most: int | None = None,
    told: Callable[[Written], None] = lambda _: None,
    jobs: int = 1,
) -> list[Written]:
    """Writes a split's tokenised shards to ``out``, one for each of the dataset's, with ``jobs``
    processes; with ``most``, at most that many bytes in total, leaving out the last shards: rows
    are in the order of hashes, so this is a fair sample.  Later shards of a former, longer call
    are removed.

    Raises ModelError SX1044 if the split has no rows, SX1041 if a process dies.
    """
    out.mkdir(parents=True, exist_ok=True)
    limits = read_limits(settings_of(folder))
    about = {"split": split, "dataset": digest_of(folder), "questions": limits.to_json()}
    made: list[_Job] = [
        (path, out / f"{split}-{number:03d}.tokens", about)
        for number, path in enumerate(split_shards(folder, split))
    ]
    written: list[Written] = []
    total = 0
    lost = ModelError("SX1041", "a process that wrote tokens died: fewer (-j)?")
    place = Place(max(1, min(jobs, len(made))))
    # More may be written than is taken: the rest is removed below, once the processes have ended.
    with contextlib.closing(in_order(place, _write, made, lost=lost)) as coming:
        for one in coming:
            if most is not None and total + one.bytes > most and written:
                break
            total += one.bytes
            written.append(one)
            told(one)
    if not written:
        message = f"{folder} has no rows of {split}: finish building it, or choose by --split"
        raise ModelError("SX1044", message)
    kept = {one.path for one in written}
    for old in {*out.glob(f"{split}-[0-9]*.tokens"), *out.glob(f"{split}-*.tokens.*.tmp")} - kept:
        old.unlink()
    return written


def _write(job: _Job) -> Written:
    source, path, about = job
    columns = ("prompt", "answer", "said", "asked", "asked_answer")
    examples = [
        tokenizer.example(question.split(), answer.split())
        for question, answer in map(_asked, read_shard(source, columns))
        if question
    ]
    vocabulary = tokenizer.digest(tokenizer.vocabulary())
    size = shards.write(path, examples, vocabulary, about)
    return Written(path, len(examples), size)


def _asked(row: Mapping[str, str | None]) -> tuple[str, str]:
    """A row's question and answer as a model is asked it; empty if that answer has no words."""
    if row.get("said"):
        return row.get("asked") or "", row.get("asked_answer") or ""
    return row["prompt"] or "", row["answer"] or ""


__all__ = ["Written", "write_tokens"]
