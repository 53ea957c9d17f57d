"""The model as a proposer: questions and answers in words, asked many at once, remembered."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from sassxlate.errors import EncodeError, SassxlateError
from sassxlate.llm.inference.language_model import LanguageModel, ProgressListener
from sassxlate.llm.language.limits import limits_of_model
from sassxlate.llm.language.older_forms.restate import too_long
from sassxlate.llm.language.prompt import question_words
from sassxlate.lowering.engine.engine import Engine
from sassxlate.lowering.engine.memo import Memo, Words, key_of
from sassxlate.lowering.engine.seam import Candidate, Proposals, Question, Unreadable
from sassxlate.lowering.optimize.regions import LONGEST
from sassxlate.lowering.region.text import RegionText, read_code
from sassxlate.lowering.verify.steps.prover import Prover


@dataclass(slots=True)
class ModelProposer:
    """What a model answers, as code.  ``samples``: up to so many candidates for a region."""

    model: LanguageModel
    samples: int = 1
    memo: Memo = field(default_factory=Memo)
    _fresh: dict[str, float] = field(default_factory=dict[str, float])  # asked ahead: its seconds

    @property
    def name(self) -> str:
        return self.model.name

    def ahead(self, questions: Sequence[Question], told: Callable[[int, int], None]) -> None:
        """Asks for all that is not known, each canonical form once."""
        new: dict[str, tuple[RegionText, int]] = {}
        for question in questions:
            text = self._said(question)
            if text is not None:
                key = self._key(text, question)
                if key not in new and self.memo.find(key) is None:
                    new[key] = text, len(question.temporaries)
        if not new:
            return
        started = time.perf_counter()
        if isinstance(self.model, ProgressListener):
            self.model.told = told
        made = self.model.answers(
            [text for text, _ in new.values()], self.samples, [limit for _, limit in new.values()]
        )
        seconds = time.perf_counter() - started
        for key, answers in zip(new, made, strict=True):
            self.memo.keep(key, answers)
            self._fresh[key] = seconds / len(new)

    def propose(self, question: Question) -> Proposals:
        """The model's answers, read.  Raises ModelError as the model does."""
        text = self._said(question)
        if text is None:
            return Proposals(why="unsaid")
        key = self._key(text, question)
        answers = self.memo.find(key)
        if answers is None:
            self.ahead([question], lambda _, __: None)
            answers = self.memo.find(key) or []
        seconds = self._fresh.pop(key, None)
        return Proposals(
            tuple(_read(words, text) for words in answers),
            why="none" if answers else "long",
            key=key,
            remembered=seconds is None,
            seconds=seconds or 0.0,
        )

    def _key(self, text: RegionText, question: Question) -> str:
        return key_of(self.name, text.text, self.samples, len(question.temporaries))

    def _said(self, question: Question) -> RegionText | None:
        """As the model is asked it; None where that cannot be said: no words are for macros, or too
        many names."""
        if question.region.macros and not limits_of_model(self.model).macros:
            return None
        try:
            return question_words(question.region, question.regs, question.live_out, question.text)
        except EncodeError:
            return None


def _read(words: Words, text: RegionText) -> Candidate:
    try:
        return read_code(words, text)
    except SassxlateError as error:
        return Unreadable(str(error))


def model_engine(
    model: LanguageModel,
    mode: str = "hybrid",
    samples: int = 1,
    memo: Memo | None = None,
    prover: Prover | None = None,
) -> Engine:
    """An engine of a model: ``hybrid`` takes its code where it is cheaper, ``model`` all of it."""
    memo = memo or Memo()
    proposer = ModelProposer(model, samples, memo)
    key, prover = f"samples {samples}", prover or Prover()
    cheaper = mode != "model"
    limits = limits_of_model(model)
    if limits.longest != LONGEST:
        key += f" of {limits.longest}"
    key += " macros" if limits.macros else ""
    return Engine(
        proposer, mode, cheaper, key, partial(too_long, longest=limits.longest),
        longest=limits.longest, prover=prover, edges=cheaper, macros=limits.macros, memo=memo,
    )  # fmt: skip


__all__ = ["ModelProposer", "model_engine"]
