"""The output of constrained decoding assembles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate.disasm.rdna3 import OPS, RRef, assemble, can_encode, decode_program, writes
from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, V
from sassxlate.errors import EncodeError
from sassxlate.llm.inference.automaton import (
    AnswerAutomaton,
    accepts,
    draw,
    possible,
    sample,
    shapes,
)
from sassxlate.llm.language.tokenizer import EOS, decode, encode, numbers, vocabulary
from sassxlate.lowering.passes.hazards import insert_hazards
from sassxlate.lowering.passes.waitcnt import insert_waitcnt
from sassxlate.lowering.region.subset import guard, subset_operations
from sassxlate.lowering.region.text import RegionText, read_code
from sassxlate.lowering.verify.steps.legality import writable_registers
from tests.llm.engines import rules_words
from tests.llm.questions import questions

Logits = NDArray[np.float64]


def assembled(question: RegionText, ids: list[int]) -> list[Inst]:
    """An answer's instructions, encoded, decoded back, and within the block's registers."""
    code = read_code(decode(ids), question)
    items = list(chain.from_iterable(code))
    program = assemble(insert_hazards(insert_waitcnt(items)))
    assert decode_program(program.data) is not None
    mine = writable_registers(question)
    opened = False
    for inst in items:
        assert inst.op in OPS  # no invalid instruction
        assert can_encode(inst) is None  # no invalid operand, misaligned tuple, second literal
        assert not any(isinstance(a, LabelRef) for a in inst.args)  # no label, defined or not
        narrowed = guard(inst, question.regs)
        if narrowed is not None:  # the only directives, each where it is allowed
            assert opened != (narrowed[0] == ".pred")
            opened = narrowed[0] != ".endpred"
            continue
        for ref in writes(inst):
            assert ref.kind not in ("v", "s") or RRef(ref.kind, ref.number) in mine, inst
    assert not opened
    return items


def test_a_small_literal_is_one() -> None:
    """A byte that no inline constant has, beside two scalars."""
    shape = shapes("v_pk_mad_u16")[0]
    assert possible(shape, (V(3), S(10), S(24), I(0x12)))
    assert not possible(shape, (V(3), S(10), S(24), I(0x94)))
    automaton = AnswerAutomaton(questions()[0])
    for word in "v_pk_mad_u16 t0 s1 s2".split():
        automaton.advance(numbers()[word])
    assert numbers()["#18"] in automaton.allowed()
    assert numbers()["x1"] not in automaton.allowed()


def untrained(rng: np.random.Generator) -> Logits:
    """An untrained model's score of each word, always the same."""
    return rng.standard_normal(len(vocabulary())) * 2


def _always(logits: Logits, _: Sequence[int]) -> Logits:
    return logits


def run(count: int, seed: int, most: int) -> set[str]:
    rng = np.random.default_rng(seed)
    asked = questions()
    said: set[str] = set()
    for n in range(count):
        question = asked[int(rng.integers(len(asked)))]
        logits = untrained(rng)
        # An answer may end at once: that is legal, and tries nothing.
        logits[numbers()[";"]] -= 2
        model = partial(_always, logits) if n % 2 else None
        ids = sample(question, rng, int(rng.integers(24, most)), model)
        said |= {inst.op for inst in assembled(question, ids)}
    return said


def test_random_samples_assemble() -> None:
    assert len(run(60, 1, 120)) > 100


@pytest.mark.sweep
def test_ten_thousand_samples_assemble() -> None:
    said = run(10_000, 7, 120)
    assert len(said) > 0.95 * len([op for op in subset_operations() if shapes(op)])


def test_the_rules_answers_are_let_through() -> None:
    for question in questions():
        words = rules_words(question)
        ids = encode(words)
        assert accepts(question, ids, 32) == len(ids), " ".join(words)


@pytest.mark.parametrize(
    "words",
    [
        "v_frobnicate_f32",  # CASS's classes of errors: an invalid instruction
        ".text",  # a directive
        "v_add_f32 s0",  # an operand
        "s_load_b64 s1",  # a misaligned tuple
        "v_add_f32 t0 x2 b12 b34 x2 b13",  # a second literal
        "s_cbranch_scc0 L1",  # a label
        "v_mov_b32 v",  # a register that is not there
        ".endpred",  # a guard that is not open
        "v_mad_u64_u32 t0 :2 null t0",  # a result over its own source
        "global_load_b32 t0 t2 :2 off + x2 b7f",  # an offset beyond the field
    ],
)
def test_what_cannot_come(words: str) -> None:
    """Spelled out, the word in question is refused: it is not a word, or none that may come
    here."""
    question = questions()[0]
    automaton = AnswerAutomaton(question)
    *before, last = words.split()
    for word in before:
        number = numbers().get(word)
        if number is None:
            return
        if number not in automaton.allowed():
            pytest.fail(f"{word} should have been let through")
        automaton.take(number)
    number = numbers().get(last)
    assert number is None or number not in automaton.allowed()
    if number is not None:
        with pytest.raises(EncodeError, match="SX0547"):
            automaton.advance(number)


def test_few_temporaries() -> None:
    """With none, nothing is written but the block's own results; and there is always a way on."""
    rng = np.random.default_rng(5)
    for question in questions()[::9]:
        code = read_code(decode(sample(question, rng, 60, vtemps=0)), question)
        base = question.regs.vtemp_base
        written = {r.number for i in chain.from_iterable(code) for r in writes(i) if r.kind == "v"}
        assert not any(n >= base for n in written)


def test_the_end() -> None:
    automaton = AnswerAutomaton(questions()[0], 8)
    while not automaton.done:
        allowed = automaton.allowed()
        assert allowed
        automaton.take(min(allowed))
    assert automaton.allowed() == {EOS}


def test_draw() -> None:
    rng = np.random.default_rng(0)
    logits = np.array([0.0, 5.0, 1.0, 9.0])
    assert draw(logits, [0, 1, 2], rng, 0.0) == 1
    got = [draw(logits, [0, 2], rng, 1.0) for _ in range(400)]
    assert 0.6 < got.count(2) / 400 < 0.85
