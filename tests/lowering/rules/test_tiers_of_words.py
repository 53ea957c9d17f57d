"""The emulated device's two tiers on the words measured on an H200: the same bits from both.

Single instructions on 512 vectors each, and words that reach other lanes or memory on 16 warps:
results, predicates, uniform registers and memory after the baseline's stencils and after LLVM's
host code of the same code object.  NaNs count: what a kernel stores is canonical in both.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from sassxlate.errors import DecodeError, LoweringError
from tests.lowering.emulate.baseline import run_stencils
from tools.silicon.warps.words import Word

from .silicon import Form, forms
from .test_silicon import emulated
from .test_warp_words import all_words, ran


def _form(form: Form) -> bool:
    return bool((emulated(form) == emulated(form, run=run_stencils)).all())


def _word(word: Word) -> bool:
    compiled, copied = ran(word), ran(word, run_stencils)
    return bool((compiled.real == copied.real).all() and (compiled.after == copied.after).all())


def _judge(chosen: Sequence[Form | Word]) -> Counter[str]:
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for one in chosen:
        try:
            same = _form(one) if isinstance(one, Form) else _word(one)
        except (LoweringError, DecodeError):
            counts["refused"] += 1
            continue
        counts["same" if same else "differ"] += 1
        wrong += [one.text] * (not same)
    print(dict(counts))
    assert not wrong, "\n".join(wrong)
    return counts


def test_some() -> None:
    """Others with each CI seed."""
    chance = random.Random(int(os.environ.get("SASSXLATE_TEST_SEED", "1")))
    chosen = [*chance.sample(forms(), 12), *chance.sample(all_words(), 6)]
    assert _judge(chosen)["same"] > 12


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(16))
def test_all(part: int) -> None:
    _judge([*forms()[part::16], *all_words()[part::16]])
