"""Tokenised training data in files that NumPy and the standard library read.

A shard is the line ``sassxlate-tokens 1``, a line of JSON (counts, the vocabulary's digest, the
writer's description), and one LZMA stream of three arrays: the length of each example (uint16), the
length of its question (uint16), and all tokens one after the other (uint16, the high bytes after
the low bytes, which packs better).
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassxlate.errors import ModelError, Where

MAGIC = b"sassxlate-tokens 1\n"
LONGEST = 0xFFFF
_MOST = 1 << 33  # bytes of a shard's arrays


@dataclass(frozen=True, slots=True)
class Shard:
    """Examples: ``tokens[starts[i]:starts[i + 1]]``, of which the first ``questions[i]`` are the
    question.

    ``about`` is the writer's description; ``vocabulary`` the digest of the words.
    """

    tokens: NDArray[np.uint16]
    starts: NDArray[np.int64]
    questions: NDArray[np.int64]
    vocabulary: str
    about: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.questions)

    def example(self, i: int) -> NDArray[np.uint16]:
        """All tokens of an example."""
        return self.tokens[self.starts[i] : self.starts[i + 1]]


def write(
    path: Path,
    examples: Iterable[tuple[Sequence[int], int]],
    vocabulary: str,
    about: Mapping[str, Any] | None = None,
    preset: int = 6,
) -> int:
    """Writes examples (tokens, length of the question); returns the size of the file in bytes.

    ``preset`` is LZMA's, 9 is smallest and slow.  ModelError SX1009 for one of over 65,535 tokens.
    """
    lengths: list[int] = []
    questions: list[int] = []
    parts: list[NDArray[np.uint16]] = []
    for tokens, question in examples:
        if not 0 <= question <= len(tokens) <= LONGEST:
            raise ModelError("SX1009", f"an example of {len(tokens)} tokens", Where(str(path)))
        lengths.append(len(tokens))
        questions.append(question)
        parts.append(np.asarray(tokens, np.uint16))
    flat = np.concatenate(parts) if parts else np.zeros(0, np.uint16)
    head = {
        "examples": len(lengths), "tokens": len(flat), "vocabulary": vocabulary,
        "about": dict(about or {}),
    }  # fmt: skip
    body = np.asarray(lengths, "<u2").tobytes() + np.asarray(questions, "<u2").tobytes()
    body += (flat & 0xFF).astype(np.uint8).tobytes() + (flat >> 8).astype(np.uint8).tobytes()
    data = MAGIC + json.dumps(head).encode() + b"\n" + lzma.compress(body, preset=preset)
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    beside.write_bytes(data)
    beside.replace(path)
    return len(data)


def read(path: Path) -> Shard:
    """A shard.  ModelError SX1001 if it cannot be read, SX1009 if it is not one."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError("SX1001", error.strerror or "cannot be read", Where(str(path))) from error
    end = data.find(b"\n", len(MAGIC))
    if not data.startswith(MAGIC) or end < 0:
        raise ModelError("SX1009", "no tokenised shard", Where(str(path)))
    try:
        head: dict[str, Any] = json.loads(data[len(MAGIC) : end])
        n, m, words = int(head["examples"]), int(head["tokens"]), str(head["vocabulary"])
        if n < 0 or m < 0 or 4 * n + 2 * m > _MOST:
            raise ValueError("counts")
        opened = lzma.LZMADecompressor()
        body = opened.decompress(data[end + 1 :], max_length=4 * n + 2 * m + 1)
    except (ValueError, KeyError, TypeError, lzma.LZMAError) as error:
        raise ModelError("SX1009", f"a damaged shard: {error!r}", Where(str(path))) from None
    if len(body) != 4 * n + 2 * m or not opened.eof:
        raise ModelError("SX1009", "a shard that is cut off", Where(str(path)))
    lengths = np.frombuffer(body, "<u2", n).astype(np.int64)
    questions = np.frombuffer(body, "<u2", n, 2 * n).astype(np.int64)
    low = np.frombuffer(body, np.uint8, m, 4 * n).astype(np.uint16)
    high = np.frombuffer(body, np.uint8, m, 4 * n + m).astype(np.uint16)
    if int(lengths.sum()) != m or bool((questions > lengths).any()):
        raise ModelError("SX1009", "lengths that do not add up", Where(str(path)))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    tokens = (low | high << 8).astype(np.uint16)
    return Shard(tokens, starts, questions, words, head.get("about", {}))


def joined(shards: Sequence[Shard]) -> Shard:
    """Several shards joined into one.  ModelError SX1005 if their vocabularies differ."""
    if len({s.vocabulary for s in shards}) != 1:
        raise ModelError("SX1005", "shards of different vocabularies, or none")
    if len(shards) == 1:
        return shards[0]
    ends = np.cumsum([0, *(len(s.tokens) for s in shards)])
    starts = [s.starts[:-1] + at for s, at in zip(shards, ends, strict=False)]
    return Shard(
        np.concatenate([s.tokens for s in shards]),
        np.concatenate([*starts, ends[-1:]]),
        np.concatenate([s.questions for s in shards]),
        shards[0].vocabulary,
        {"joined": [dict(s.about) for s in shards]},
    )


def questions(shard: Shard) -> list[dict[str, Any]]:
    """The limits of questions that a shard, or several joined ones, were written with; distinct,
    empty for one that does not say."""
    every = [about for about in shard.about.get("joined", [shard.about])]
    out: list[dict[str, Any]] = []
    for about in every:
        said = dict(about.get("questions") or {})
        if said not in out:
            out.append(said)
    return out


def datasets(shard: Shard) -> list[str]:
    """The digests of the datasets that a shard, or several joined ones, were written from."""
    every = [shard.about, *shard.about.get("joined", [])]
    return sorted({str(about["dataset"]) for about in every if about.get("dataset")})
