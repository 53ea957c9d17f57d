"""When a text model has said enough."""

from __future__ import annotations

import pytest

from sassxlate.llm.inference.text_answer import inside, is_over
from sassxlate.lowering.optimize.regions import rules_code
from sassxlate.lowering.region.text import answer_text
from tests.llm.questions import questions


def test_an_answer_is_over_where_it_has_code_for_every_instruction() -> None:
    """Not before, wherever the text is cut."""
    for asked in sorted(questions(), key=lambda q: len(q.words))[4:40:6]:
        code = answer_text(rules_code(asked.block, asked.regs), asked)
        for before in ("", "Here it is:\n```asm\n"):
            text = f"{before}{code}\n"
            for n in range(len(text)):
                assert is_over(text[:n], asked, prose=True) is False or n >= len(text) - 2
            assert before == "" or is_over(text, asked, prose=True)
            assert is_over(text, asked, prose=False)
            assert inside(text).split() == code.split()


@pytest.mark.parametrize(
    ("text", "prose", "over"),
    [
        ("I will translate this block ", True, False),
        ("I will translate this block ", False, True),
        ("```" + "x" * 40, True, True),
        ("```asm", True, False),
        ("``` v_mov_b32", True, False),
        ("```\n", True, False),
        ("```\nMOV R1, R2 ", True, True),
        ("```\nMOV", True, False),  # there may be more of the word
        ("```\n" + "v" * 40, True, True),
        ("```\nv_mov_b32 ", True, False),
        ("```\nv_mov_b32 v99 ;", True, False),
        ("```\nv_mov_b32 v99 ; ", True, True),
        ("```\n```", True, True),
        ("v_mov_b32 ", False, False),
    ],
)
def test_text_that_is_no_answer_is_over(text: str, prose: bool, over: bool) -> None:
    asked = next(q for q in questions() if q.groups > 2)
    assert is_over(text, asked, prose) is over
