"""A block that is not proved as a whole is asked for in parts: in the engine, and when models are
measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from sassxlate.errors import ModelError
from sassxlate.llm.engine.model import model_engine
from sassxlate.llm.evaluation.corpus import Choice, Corpus, EvaluationBlock, collect
from sassxlate.llm.evaluation.parts import parts_of
from sassxlate.llm.evaluation.results import Answer
from sassxlate.llm.evaluation.run import EvaluationSettings, measure
from sassxlate.llm.language.older_forms.restate import too_long
from sassxlate.lowering.engine.parts import no_guard, parts
from sassxlate.lowering.optimize.regions import LONGEST, CutRegion, cut_regions
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.region.text import RegionText
from tests.llm import engines
from tests.llm.engine.test_hybrid_programs import Searched
from tests.llm.engines import Scripted
from tests.llm.questions import KERNELS
from tests.lowering import emulated
from tests.lowering.engine.test_gate import KERNELS as GATED
from tests.lowering.engine.test_gate import hybrid

SHORT = 3  # instructions
NAMES = ("byte_lanes", "double_math", "spin_lock")
SOURCES = [KERNELS / f"sm_{arch}" / f"{name}.cubin" for arch in (80, 90) for name in NAMES]


def short(question: RegionText, rng: np.random.Generator) -> list[str]:
    """The rules' answer to short questions, nonsense to others."""
    if len(question.block.instructions) <= SHORT:
        return engines.rules_words(question)
    return engines.rubbish(question, rng)


def short_search(question: RegionText, rng: np.random.Generator) -> list[str]:
    """The search's answer to short questions, nonsense to others."""
    if len(question.block.instructions) <= SHORT:
        return list(Searched().answers([question], 1, [24])[0][0])
    return engines.rubbish(question, rng)


def leaves(block: EvaluationBlock) -> list[EvaluationBlock]:
    """The parts that cannot be split."""
    cut = parts_of(block)
    return [block] if not cut else [leaf for part in cut for leaf in leaves(part)]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return collect([*SOURCES, KERNELS.parent / "programs" / "reduction"], Choice())


def test_parts_are_the_whole(corpus: Corpus) -> None:
    cut = 0
    for block in corpus.blocks.values():
        here = block.question
        part = CutRegion(here.block, here.live_out, block.rules)
        found = parts(part, here.regs)
        if not found:
            may = no_guard(part)
            sass = len(here.block.instructions)
            assert not any(may(n) for n in range(1, sass))
            continue
        cut += 1
        assert 2 <= len(found) <= 3
        assert tuple(i for p in found for i in p.block.instructions) == here.block.instructions
        assert found[-1].live_out == here.live_out
        # What a later one reads and an earlier one writes is live between them.
        for n in range(1, len(found)):
            written = frozenset[object]().union(
                *(i.writes for p in found[:n] for i in p.block.instructions)
            )
            read = frozenset[object]()
            for ins in reversed([i for p in found[n:] for i in p.block.instructions]):
                read = (read - (ins.writes if ins.guard.is_true else frozenset())) | ins.reads
            assert read & written <= found[n - 1].live_out
        if all(i.guard.is_true for i in here.block.instructions):
            assert tuple(group for p in found for group in p.code) == block.rules
    assert cut > 20


def test_no_cut_inside_a_guard(corpus: Corpus) -> None:
    seen = False
    for block in corpus.blocks.values():
        here = block.question
        guards = [i.guard for i in here.block.instructions]
        n = 0
        for part in parts(CutRegion(here.block, here.live_out, block.rules), here.regs)[:-1]:
            n += len(part.block.instructions)
            assert guards[n - 1].is_true or guards[n].is_true
            seen = seen or not all(g.is_true for g in guards)
    assert seen


def test_parts_are_measured(corpus: Corpus) -> None:
    corpus = replace(corpus, blocks=dict(sorted(corpus.blocks.items())[::2]))
    run = measure(corpus, Scripted("short", short), EvaluationSettings(8))
    long = {k for k, b in corpus.blocks.items() if b.sass > SHORT}
    assert long
    for key, result in run.results.items():
        block = corpus.blocks[key]
        assert result.first.proved == (key not in long)
        if key not in long:
            assert result.best == result.first
            continue
        if not result.best.proved:  # one guard over all of it
            assert max(part.sass for part in leaves(block)) > SHORT
            continue
        assert 2 <= result.best.parts <= block.sass
        assert result.best.cost == pytest.approx(block.cost, rel=0.25)
        assert 2 <= result.answers <= 8
    assert sum(r.best.proved for r in run.results.values()) > 0.9 * len(run.results)


@pytest.mark.parametrize("samples", [2, 3, 8])
def test_no_instruction_is_in_more_answers_than_asked_for(corpus: Corpus, samples: int) -> None:
    """Counted of what is judged: of each block and of all of its parts down to each instruction."""
    judged: dict[str, set[str]] = {}

    def different(question: RegionText, rng: np.random.Generator) -> list[str]:
        words = [str(rng.integers(1 << 30)), *engines.rubbish(question, rng)]
        judged.setdefault(question.text, set()).add(" ".join(words))
        return words

    def most(block: EvaluationBlock) -> int:
        mine = len(judged.get(block.question.text, ()))
        return mine + max((most(part) for part in parts_of(block)), default=0)

    def texts(block: EvaluationBlock) -> list[str]:
        return [block.question.text, *(t for part in parts_of(block) for t in texts(part))]

    # One at a time, without equal parts: a part may be asked as another, too.
    several = [
        (key, block)
        for key, block in sorted(corpus.blocks.items())
        if 1 < len(set(texts(block))) == len(texts(block))
    ][:6]
    assert len(several) == 6
    for key, block in several:
        judged.clear()
        one = replace(corpus, blocks={key: block})
        run = measure(one, Scripted("different", different), EvaluationSettings(samples))
        (result,) = run.results.values()
        assert not result.best.proved
        assert result.rules_proved
        assert result.answers == most(block) == samples


def test_an_answer_in_parts_says_so() -> None:
    from sassxlate.llm.evaluation.parts import together

    made = together(
        [Answer("Proved", cost=3, temps=2, modulo="a; b"), Answer("Proved", cost=4, modulo="b")]
    )
    assert made.proved
    assert (made.cost, made.temps, made.modulo, made.parts) == (7, 2, "a; b", 2)


@pytest.mark.parametrize("kernels", [GATED[:1], pytest.param(GATED[1:], marks=pytest.mark.sweep)])
def test_hybrid_takes_parts(monkeypatch: pytest.MonkeyPatch, kernels: Sequence[str]) -> None:
    taken = 0
    for kernel in kernels:
        selected = translate_kernel(emulated.load(kernel, 90), kernel).selected
        whole = {
            part.block.start: len(part.block.instructions)
            for piece in selected.pieces
            for part in cut_regions(piece.block, selected.regs, piece.live_out, too_long=too_long)
        }
        engine = model_engine(Scripted("short", short_search))
        _, report = hybrid(monkeypatch, kernel, engine)
        assert report.questions >= report.distinct > 0
        assert report.further > 0
        assert report.remembered == 0
        for row in report.blocks:
            assert row.instructions <= LONGEST
            if row.outcome == "accepted":
                assert row.instructions <= SHORT
                assert row.model_cost is not None
                assert row.model_cost < row.rules_cost
                taken += whole.get(row.start) != row.instructions
    assert taken > 0


def test_model_mode_takes_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = model_engine(Scripted("short", short), mode="model")
    done = 0
    for kernel in GATED:
        try:
            _, report = hybrid(monkeypatch, kernel, engine)
        except ModelError:  # one guard over more instructions
            continue
        assert report.asked == report.accepted > 0
        assert max(r.instructions for r in report.blocks if r.outcome == "accepted") <= SHORT
        done += 1
    assert done > 0
