"""The answers of a measured model, block by block, and the file that stores them.

A results file has a line of JSON that identifies the run, then one for each finished block and
one for the times of each batch; an interrupted run appends to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sassxlate.errors import ModelError, Where
from sassxlate.llm.evaluation.corpus import Key

FORMAT = 3

Outcome: TypeAlias = Literal["Proved", "Refuted", "Unknown", "refused", "long"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one answer.  ``outcome`` is the verifier's verdict; ``refused`` if the gate
    rejected it first, with the ``reason`` (:class:`~.gate.Judgement`); ``long`` if the model does
    not take a question of that length.  ``temps`` are the vector temporaries that it uses;
    ``drawn`` its number, 0 for the likeliest; ``parts`` the number of parts in which the block was
    asked for (:mod:`.parts`)."""

    outcome: Outcome
    reason: str = ""
    detail: str = ""
    cost: int | None = None
    temps: int = 0
    modulo: str = ""
    drawn: int = 0
    text: str = ""
    parts: int = 1

    @property
    def proved(self) -> bool:
        return self.outcome == "Proved"


@dataclass(frozen=True, slots=True)
class BlockResult:
    """A finished block.  ``first`` is the likeliest answer; ``best`` the proved one, as a whole, in
    parts or of further answers, or ``first`` if none is.  ``answers`` is the number of answers that
    contain an instruction of it, ``rules_proved`` whether the rules' own code is proved (tried only
    if no answer is), ``seconds`` the processor time of proving the first answer.  ``search`` is the
    cost of what `--engine search` takes for the block, the rules' code if nothing is cheaper, and
    ``search_s`` the search's processor time, proofs included."""

    arch: int
    key: str
    first: Answer
    best: Answer
    answers: int
    rules_proved: bool | None
    seconds: float
    search: int | None = None
    search_s: float = 0.0


@dataclass(slots=True)
class Batch:
    """Wall-clock seconds of one batch: ``questions`` asked and their answers proved at one
    sample, then parts and further answers.  ``median``: all questions were of the median length.
    ``asking_cpu_s`` and ``further_cpu_s`` are processor seconds: of asking at one sample, and of
    all that comes after the first answer's proof."""

    questions: int
    judged: int
    asking_s: float
    proving_s: float
    further: int = 0
    further_asking_s: float = 0.0
    further_proving_s: float = 0.0
    median: bool = False
    words: int = 0  # of answers, at one sample
    asking_cpu_s: float = 0.0
    further_cpu_s: float = 0.0


@dataclass(slots=True)
class EvaluationRun:
    """The results so far."""

    results: dict[Key, BlockResult] = field(default_factory=dict["Key", BlockResult])
    batches: list[Batch] = field(default_factory=list[Batch])
    left: int = 0  # unfinished blocks
    load: float = 0.0


@dataclass(slots=True)
class Results:
    """Writes lines as they come; with None, nothing is stored."""

    path: Path | None

    def read(self, whose: Mapping[str, object], run: EvaluationRun) -> None:
        """Reads the results of an earlier run.  ModelError SX1051 for another run's file."""
        if self.path is None:
            return
        head = {"sassxlate-eval": FORMAT, **whose}
        try:
            text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError("SX1051", f"cannot be read: {error}", Where(str(self.path))) from None
        whole = text[: text.rfind("\n") + 1]
        if not whole:
            self._write(json.dumps(head), "w")
            return
        if whole != text:  # a line cut off while it was written
            with self.path.open("w", encoding="utf-8") as stream:
                stream.write(whole)
        lines = whole.splitlines()
        try:
            told = json.loads(lines[0])
            if told != head:
                raise ModelError("SX1051", _differs(told, head), Where(str(self.path)))
            for line in lines[1:]:
                row = json.loads(line)
                if "batch" in row:
                    run.batches.append(Batch(**row["batch"]))
                else:
                    result = _result(row)
                    run.results[result.arch, result.key] = result
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            text = f"no results of this command: {error!r}"
            raise ModelError("SX1051", text, Where(str(self.path))) from None

    def add(self, results: Iterable[BlockResult], batch: Batch) -> None:
        if self.path is not None:
            lines = [json.dumps(asdict(r)) for r in results]
            self._write("\n".join([*lines, json.dumps({"batch": asdict(batch)})]), "a")

    def _write(self, text: str, mode: str) -> None:
        assert self.path is not None
        try:
            with self.path.open(mode, encoding="utf-8") as stream:
                stream.write(text + "\n")
        except OSError as error:
            text = f"cannot be written: {error.strerror}"
            raise ModelError("SX1051", text, Where(str(self.path))) from None


def _differs(told: Mapping[str, object], mine: Mapping[str, object]) -> str:
    for key in mine:
        if told.get(key) != mine[key]:
            return f"of another run: {key} is {told.get(key)!r}, here {mine[key]!r}"
    return "of another run"


def _result(row: dict[str, Any]) -> BlockResult:
    first, best = Answer(**row.pop("first")), Answer(**row.pop("best"))
    return BlockResult(first=first, best=best, **row)


__all__ = ["Answer", "Batch", "BlockResult", "EvaluationRun", "Outcome", "Results"]
