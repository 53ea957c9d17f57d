"""The dataset as a trainer takes it: numbers of words in shards that need no parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sassxlate.errors import ModelError

from . import shards, tokenizer
from .dataset_files import read_split

EXAMPLES = 100_000  # of a shard


@dataclass(frozen=True, slots=True)
class Written:
    """A shard on disk."""

    path: Path
    examples: int
    bytes: int


def write_tokens(
    folder: Path,
    out: Path,
    split: str,
    most: int | None = None,
    told: Callable[[Written], None] = lambda _: None,
) -> list[Written]:
    """Writes a split's tokenised shards to ``out``; with ``most``, no more than so many bytes in
    all, the last shards left out: rows are in the order of hashes, so that what is there is a fair
    sample.  Raises ModelError SX1044 where the split has no rows.
    """
    out.mkdir(parents=True, exist_ok=True)
    vocabulary = shards.digest(tokenizer.vocabulary())
    written: list[Written] = []
    total = 0
    for number, rows in enumerate(_parts(read_split(folder, split))):
        path = out / f"{split}-{number:03d}.tokens"
        examples = [tokenizer.example(row["prompt"].split(), row["answer"].split()) for row in rows]
        size = shards.write(path, examples, vocabulary, {"split": split})
        if most is not None and total + size > most and written:
            path.unlink()
            break
        total += size
        written.append(Written(path, len(examples), size))
        told(written[-1])
    if not written:
        message = f"{folder} has no rows of {split}: finish building it, or choose by --split"
        raise ModelError("SX1044", message)
    return written


def _parts(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    part: list[dict[str, Any]] = []
    for row in rows:
        part.append(row)
        if len(part) == EXAMPLES:
            yield part
            part = []
    if part:
        yield part


__all__ = ["Written", "write_tokens"]
