"""The right steps of a wrong answer are taken, and nothing else."""

from __future__ import annotations

import numpy as np

from sassxlate.disasm.rdna3.instruction import Inst, V
from sassxlate.llm.engine.model import model_engine
from sassxlate.lowering.engine.splice import spliced
from sassxlate.lowering.optimize.regions import rules_code
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.region.text import RegionText, read_code
from sassxlate.lowering.verify.steps.prover import Prover
from tests.llm.engine.test_hybrid_programs import Searched
from tests.llm.engines import Scripted, instructions, rules_words
from tests.llm.questions import questions
from tests.lowering import emulated


def spoilt(question: RegionText, rng: np.random.Generator) -> list[str]:
    """The search's answer, in which one instruction's code is missing."""
    ((words,),) = Searched().answers([question], 1, [24])
    parts = instructions(words)
    plain = [n for n, part in enumerate(parts) if part[0].startswith("v_")]
    if len(plain) > 1:
        del parts[plain[int(rng.integers(len(plain)))]]
    return [word for part in parts for word in part]


def test_steps_that_are_right_are_taken() -> None:
    engine = model_engine(Scripted("spoilt", spoilt))
    for name in ("byte_lanes", "double_math"):
        cubin = emulated.load(name, 90)
        for kernel in cubin.kernels:
            selected = translate_kernel(cubin, kernel.name).selected
            _, report = engine.rewrite(selected, kernel.name)
            some = [b for b in report.blocks if b.outcome == "accepted" and "steps" in b.detail]
            for block in some:
                assert block.verdict == "Proved"
                assert block.model_cost is not None
                assert block.model_cost < block.rules_cost
            if some:
                return
    raise AssertionError("nothing was taken in part")


def test_nothing_right_is_nothing() -> None:
    prover = Prover()
    for question in questions(90, 24)[:8]:
        block, regs = question.block, question.regs
        rules = rules_code(block, regs)
        wrong = tuple((Inst("v_not_b32", (V(1), V(1))),) for _ in block.instructions)
        assert spliced(block, regs, question.live_out, wrong, rules, prover) is None
        same = read_code(rules_words(question), question)
        assert spliced(block, regs, question.live_out, same, rules, prover) is None
        assert spliced(block, regs, question.live_out, same[1:], rules, prover) is None
