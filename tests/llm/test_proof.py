"""What a kept proof is of: not only the text, where numbers and names may mean one thing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sassxlate.disasm.rdna3.ir import S
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.encode import assemble
from sassxlate.llm.prompt import Prompt, prompt, read_answer
from sassxlate.llm.proof import Prover
from sassxlate.llm.question import read_question
from sassxlate.lowering.verify import Proved, Verdict


def _asked(text: str, sass: str, consts: dict[tuple[int, int], str]) -> Prompt:
    """A question, with other SASS of the same text."""
    q = read_question(text, 90)
    block = replace(q.block, instructions=(decode(assemble(sass, 90), 0, 90),))
    places = {at: S(q.names.place[name].index) for at, name in consts.items()}
    regs = replace(q.regs, consts=places)
    made = prompt(block, regs, q.live_out)
    assert made.text == text
    return made


def _verdict(prover: Prover, q: Prompt, answer: str) -> Verdict:
    code = read_answer(answer.split(), q)
    return prover.stretch(q.block, q.regs, q.live_out, code)


LOAD = "gfx1100\nin c0\nout v0\nfree t24 s20\nMOV v0 c0 #15"


@pytest.mark.parametrize("kept", [True, False])
def test_a_constant_may_be_loaded_only_from_where_it_is(kept: bool) -> None:
    answer = "s_load_b32 s0 kern :2 null + x2 b02 b10 v_mov_b32 v0 s0 ;"
    prover = Prover()
    for at in (0x210, 0x318):
        q = _asked(LOAD, f"MOV R0, c[0x0][{at:#x}]", {(0, at): "c0"})
        if not kept:
            prover = Prover()
        assert isinstance(_verdict(prover, q, answer), Proved) == (at == 0x210)
    # What loads nothing has one proof.
    for at in (0x210, 0x318):
        q = _asked(LOAD, f"MOV R0, c[0x0][{at:#x}]", {(0, at): "c0"})
        assert isinstance(_verdict(prover, q, "v_mov_b32 v0 c0 ;"), Proved)
    assert prover.solved == (3 if kept else 2)
