"""Answers may name any temporaries; a kernel has few."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sassxlate.disasm.rdna3.instruction import I, Inst, V
from sassxlate.errors import EncodeError
from sassxlate.llm.inference.automaton import sample
from sassxlate.llm.language.tokenizer import decode
from sassxlate.lowering.optimize.temporaries import packed, room, used
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.region.places import VTEMPS
from sassxlate.lowering.region.text import read_code
from tests.llm.questions import KERNELS, questions

BASE = 10


def add(to: int, a: int, b: int) -> Inst:
    return Inst("v_add_nc_u32", (V(to), V(a), V(b)))


def test_they_take_the_lowest_numbers() -> None:
    wide = Inst("v_mad_u64_u32", (V(30, 2), V(1), V(2), V(3)))
    code = ((add(32, 1, 2), add(33, 32, 1)), (add(4, 33, 33), add(28, 1, 1)), (add(5, 28, 4),))
    made = packed(code, BASE)
    assert made == (
        (add(10, 1, 2), add(11, 10, 1)), (add(4, 11, 11), add(10, 1, 1)), (add(5, 10, 4),),
    )  # fmt: skip
    assert (used(code, BASE), used(made, BASE)) == (24, 2)
    both = packed(((wide, add(33, 30, 31), add(5, 33, 31)),), BASE)
    assert both == (
        (replace(wide, args=(V(10, 2), *wide.args[1:])), add(12, 10, 11), add(5, 12, 11)),
    )


def test_what_is_no_temporary_stays() -> None:
    across = Inst("v_lshlrev_b64", (V(9, 2), I(1), V(30, 2)))
    beyond = add(5, BASE + VTEMPS, 20)
    for code in (((across,),), ((beyond,),), ((add(5, 9, 1),),)):
        assert packed(code, BASE) == code


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.sweep)])
def test_what_is_read_is_what_was_written(step: int) -> None:
    """Each read finds the write that it found before, in noise."""
    rng = np.random.default_rng(3)
    for question in questions(90, 16)[::step]:
        base = question.regs.vtemp_base
        try:
            code = read_code(decode(sample(question, rng, 200)), question)
        except EncodeError:
            continue
        made = packed(code, base)
        before, after = ([i for g in c for i in g] for c in (code, made))
        last: tuple[dict[int, int], dict[int, int]] = {}, {}
        for n, (a, b) in enumerate(zip(before, after, strict=True)):
            assert replace(a, args=()) == replace(b, args=())
            for x, y in zip(a.args, b.args, strict=True):
                if not isinstance(x, V) or not isinstance(y, V):
                    assert x == y
                    continue
                for k in range(x.n):
                    here, there = x.index + k, y.index + k
                    if here < base:
                        assert here == there
                    elif here in last[0]:
                        # Nobody else took the register meanwhile.
                        assert last[1][there] == last[0][here]
                    last[0][here] = last[1][there] = n
        assert packed(made, base) == made


def test_room_is_what_is_allotted_anyway() -> None:
    from sassxlate.disasm.containers.cubin import parse_cubin
    from sassxlate.lowering.target import GFX1100

    for path in sorted((KERNELS / "sm_90").glob("*.cubin"))[::9]:
        cubin = parse_cubin(path.read_bytes())
        for kernel in cubin.kernels:
            selected = translate_kernel(cubin, kernel.name).selected
            most = selected.regs.vtemp_base + room(selected)
            assert GFX1100.most_threads(max(most, selected.vgprs)) == GFX1100.most_threads(
                selected.vgprs
            )
