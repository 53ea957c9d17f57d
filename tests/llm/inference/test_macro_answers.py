"""A model's answers to questions with macros: each macro's word where the question has it, once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.errors import EncodeError, ModelError
from sassxlate.llm.engine.model import ModelProposer, model_engine
from sassxlate.llm.engine.models import shipped
from sassxlate.llm.inference.automaton import AnswerAutomaton, accepts, sample
from sassxlate.llm.inference.block_model import BlockModel, check_vocabulary
from sassxlate.llm.inference.qwen2 import SIZES, random_weights, save
from sassxlate.llm.language import tokenizer
from sassxlate.llm.language.limits import QuestionLimits, limits_of
from sassxlate.llm.language.prompt import question_words
from sassxlate.lowering.engine.seam import Question
from sassxlate.lowering.optimize.regions import CutRegion
from sassxlate.lowering.region.macro import MACRO, misplaced
from sassxlate.lowering.region.text import code_words, read_code
from tests.llm.engines import Scripted, rules_words
from tests.lowering.engine.macros import REGS, judged, region
from tests.lowering.engine.test_gate import hybrid

OLD, NEW = tokenizer.VERSIONS
LIMITS = QuestionLimits(24, macros=True)
TWO = region(
    "IADD3 R4, R1, R2, RZ; SHFL.BFLY PT, R5, R4, 0x1, 0x1f; IADD3 R6, R5, R4, RZ; "
    "@P0 SHFL.UP PT, R7, R6, 0x2, RZ; IADD3 R8, R7, R6, RZ",
    ("R7", "R8"),
)  # fmt: skip
RIGHT = [" ".join(words) for words in code_words(TWO.code, TWO.asked)] if TWO.asked else []


def answer(*lines: str) -> str:
    return "\n".join(lines)


def accepted(text: str) -> int:
    """How many words of an answer the grammar lets through, and how many it has."""
    assert TWO.asked is not None
    ids = tokenizer.encode(text.split())
    return len(ids) - accepts(TWO.asked, ids)


def test_the_rules_answer_is_let_through_and_proved() -> None:
    assert RIGHT[1] == f"{MACRO} ;"
    assert RIGHT[3].split()[0] == ".pred"
    assert accepted(answer(*RIGHT)) == 0
    assert judged(TWO, answer(*RIGHT)).accepted


FIRST, SHUFFLE, SUM, GUARDED, LAST = RIGHT
WRONG = {
    "left out": (FIRST, ";", SUM, GUARDED, LAST),
    "guarded one left out": (FIRST, SHUFFLE, SUM, ".pred p0 .endpred ;", LAST),
    "twice": (FIRST, f"{MACRO} {MACRO} ;", SUM, GUARDED, LAST),
    "twice, guarded": (FIRST, SHUFFLE, SUM, f".pred p0 {MACRO} {MACRO} .endpred ;", LAST),
    "earlier": (MACRO + " " + FIRST, ";", SUM, GUARDED, LAST),
    "later": (FIRST, ";", MACRO + " " + SUM, GUARDED, LAST),
    "both at once": (FIRST, f"{MACRO} .pred p0 {MACRO} .endpred ;", SUM, ";", LAST),
    "elsewhere, too": (FIRST, SHUFFLE, MACRO + " " + SUM, GUARDED, LAST),
    "lines reordered": (SHUFFLE, FIRST, SUM, GUARDED, LAST),
    "other code before it": (FIRST, f"v_mov_b32 v1 v0 {MACRO} ;", SUM, GUARDED, LAST),
    "other code after it": (FIRST, f"{MACRO} v_mov_b32 v1 v0 ;", SUM, GUARDED, LAST),
    "other code in its guard": (
        FIRST, SHUFFLE, SUM, GUARDED.replace(MACRO, f"v_mov_b32 t0 v1 {MACRO}"), LAST,
    ),
    "code in its place": (FIRST, "v_mov_b32 v1 v0 ;", SUM, GUARDED, LAST),
}  # fmt: skip


@pytest.mark.parametrize("lines", WRONG.values(), ids=WRONG.keys())
def test_other_answers_are_refused_by_the_grammar_and_by_the_gate(lines: tuple[str, ...]) -> None:
    assert accepted(answer(*lines)) > 0
    try:
        reason: str = judged(TWO, answer(*lines)).reason
    except EncodeError as error:
        reason = error.code
    assert reason in ("malformed", "SX0543")


def test_a_shuffle_by_other_lanes_is_let_through_and_not_proved() -> None:
    """The grammar leaves guards to the proof."""
    for wrong in (f"{MACRO} ;", f".pred ! p0 {MACRO} .endpred ;"):
        text = answer(FIRST, SHUFFLE, SUM, wrong, LAST)
        assert accepted(text) == 0
        assert not judged(TWO, text).accepted


@pytest.mark.parametrize("most", [1, 30, 200])
def test_random_answers_have_each_macro_once(most: int) -> None:
    assert TWO.asked is not None
    block = TWO.block
    rng = np.random.default_rng(most)
    scores = rng.standard_normal(len(tokenizer.vocabulary()))
    scores[tokenizer.numbers()[";"]] -= 1
    for n in range(12):
        ids = sample(TWO.asked, rng, most, (lambda _: scores) if n % 2 else None)
        code = read_code(tokenizer.decode(ids), TWO.asked)
        assert misplaced(code, block.instructions, block.macros, REGS) is None
    state = AnswerAutomaton(TWO.asked)
    assert tokenizer.numbers()[MACRO] not in state.allowed()


def asked(part: CutRegion) -> Question:
    assert part.asked is not None
    rules = tuple(tuple(i for i in group if isinstance(i, Inst)) for group in part.code)
    return Question(part.block, REGS, part.live_out, rules, part.asked)


class Knows(Scripted):
    """A model whose words include macros."""

    limits = LIMITS


def test_only_a_model_with_words_for_macros_is_asked() -> None:
    for model, why in ((Knows("m", lambda q, _: rules_words(q)), "none"),
                       (Scripted("m", lambda q, _: rules_words(q)), "unsaid")):  # fmt: skip
        made = ModelProposer(model).propose(asked(TWO))
        assert bool(made.candidates) == bool(model.asked) == (why == "none")
        assert made.why == why


def test_a_question_with_macros_keeps_its_architecture_s_forms() -> None:
    assert TWO.asked is not None
    block = replace(TWO.block, around=replace(TWO.block.around, arch=120))
    made = question_words(block, REGS, TWO.live_out)
    assert made.known is None
    assert made.text == TWO.asked.text


def test_answers_in_a_kernel_pass_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a model writes over a region with macros is taken where it is proved; its engine says
    in its identity which questions it asks."""
    plain = Scripted("m", lambda q, _: ";".split() * q.groups)
    model = Knows("m", lambda q, _: rules_words(q))
    engine = model_engine(model, "model")
    assert engine.macros
    assert engine.longest == 24
    assert engine.identity == "model m samples 1 of 24 macros"
    assert model_engine(plain).identity == "hybrid m samples 1"
    made, report = hybrid(monkeypatch, "group_votes", engine)
    assert any("rules' code" in name for row in report.blocks for name in row.modulo)
    assert not any(isinstance(i, Inst) and i.op == MACRO for i in made.items)


# --- vocabularies --------------------------------------------------------------------------------


def test_words_are_only_added() -> None:
    words = tokenizer.vocabulary()
    assert len(words) == NEW
    assert tokenizer.digest_of_size(OLD) == "3b6a808a3685df8b52288e0fae6076da"
    assert tokenizer.size_of(tokenizer.digest_of_size(OLD)) == OLD
    assert tokenizer.size_of(tokenizer.digest(words)) == NEW
    assert tokenizer.size_of("another") is None
    assert MACRO not in words[:OLD]
    said = [MACRO, ".clobbers", "v0", "UTMALDG"]
    short = tokenizer.encode(said, OLD)
    assert max(short) < OLD
    assert tokenizer.decode(short) == said
    assert len(tokenizer.encode(said)) == len(said)


def test_the_shipped_weights_keep_their_words() -> None:
    folder = shipped()
    assert folder is not None
    check_vocabulary(folder)
    assert limits_of(folder) == QuestionLimits()
    assert json.loads((folder / "config.json").read_text())["vocab_size"] == OLD


@pytest.mark.parametrize("size", [OLD, NEW])
def test_a_model_answers_in_its_own_words(size: int, tmp_path: Path) -> None:
    config = replace(SIZES["tiny"], vocab=size)
    save(tmp_path, config, random_weights(config, 3))
    about = {"vocabulary": tokenizer.digest_of_size(size)}
    if size == NEW:
        about["questions"] = LIMITS.to_json()  # type: ignore[assignment]
    (tmp_path / "training.json").write_text(json.dumps(about))
    model = BlockModel(tmp_path, workers=1)
    assert model.limits == (LIMITS if size == NEW else QuestionLimits())
    part = TWO if size == NEW else region("IADD3 R4, R1, R2, RZ; IADD3 R5, R4, R1, RZ", ("R5",))
    assert part.asked is not None
    for words in model.answers([part.asked], 2, [24])[0]:
        code = read_code(words, part.asked)
        assert misplaced(code, part.block.instructions, part.block.macros, REGS) is None
    (tmp_path / "training.json").write_text(json.dumps({"vocabulary": "another"}))
    with pytest.raises(ModelError, match="SX1005"):
        BlockModel(tmp_path)
