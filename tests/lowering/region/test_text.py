"""The language of blocks: canonical prompts, and answers that round-trip exactly."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.rdna3 import encode as machine_code
from sassxlate.disasm.rdna3.instruction import Inst, S, V
from sassxlate.errors import EncodeError
from sassxlate.llm.language import tokenizer
from sassxlate.llm.language.older_forms.restate import too_long
from sassxlate.lowering.optimize.regions import LONGEST, CutRegion, cut_regions
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.numbers import NUMBER_WORDS, Bits, number, value_of
from sassxlate.lowering.region.text import code_words, read_code, region_text
from sassxlate.lowering.verify.steps.legality import check_legality

KERNELS = Path(__file__).resolve().parents[3] / "fixtures" / "kernels"
CUBINS = [
    "sm_80/carry_chains", "sm_80/local_array", "sm_80/jump_table", "sm_80/double_math",
    "sm_90/carry_chains", "sm_90/global_atomics", "sm_120/half_pairs", "sm_120/calls",
]  # fmt: skip


@cache
def found(name: str) -> tuple[tuple[CutRegion, RegisterMap], ...]:
    cubin = parse_cubin((KERNELS / f"{name}.cubin").read_bytes())
    out: list[tuple[CutRegion, RegisterMap]] = []
    for kernel in cubin.kernels:
        selected = translate_kernel(cubin, kernel.name).selected
        for piece in selected.pieces:
            parts = cut_regions(piece.block, selected.regs, piece.live_out, too_long=too_long)
            assert [i for p in parts for i in p.block.instructions] == list(
                piece.block.instructions
            )
            out += ((p, selected.regs) for p in parts)
    return tuple(out)


def asked() -> Iterator[tuple[CutRegion, RegisterMap]]:
    for name in CUBINS:
        yield from ((s, r) for s, r in found(name) if not s.macro)


def test_rules_answers_come_back_to_the_bit() -> None:
    count = 0
    for region, regs in asked():
        assert 0 < len(region.block.instructions) <= LONGEST
        question = region_text(region.block, regs, region.live_out)
        lines = code_words(region.code, question)
        words = [w for line in lines for w in line]
        ids, n = tokenizer.example(question.words, words)
        assert tokenizer.decode(ids[:n]) == list(question.words)
        assert tokenizer.decode(ids[n:]) == words
        back = read_code(words, question)
        check_legality(back, question)
        for mine, theirs in zip(back, region.code, strict=True):
            for a, b in zip(mine, theirs, strict=True):
                assert isinstance(b, Inst)
                assert machine_code(a) == machine_code(b)
                assert a.uniform == b.uniform
        count += 1
    assert count > 60


def _moved(regs: RegisterMap, rng: random.Random) -> RegisterMap:
    """The same kernel with its registers elsewhere; groups of four stay together."""
    quads = sorted({i // 4 for i in regs.r.values()})
    others = rng.sample(range(40), len(quads))
    move = dict(zip(quads, others, strict=True))
    masks = [S(i) for i in rng.sample(range(90, 104), len(regs.p))]
    return replace(
        regs,
        r={i: 4 * move[v // 4] + v % 4 for i, v in regs.r.items()},
        ur_lanes={i: v + 200 for i, v in regs.ur_lanes.items()},
        p=dict(zip(regs.p, masks, strict=True)),
        tid=V(199),
        vtemp_base=220,
    )


def test_other_registers_are_the_same_question_and_answer() -> None:
    rng = random.Random(7)
    for region, regs in asked():
        other = _moved(regs, rng)
        question = region_text(region.block, regs, region.live_out)
        moved = region_text(region.block, other, region.live_out)
        assert question.text == moved.text
        words = [w for line in code_words(region.code, question) for w in line]
        there = read_code(words, moved)
        assert code_words(there, moved) == code_words(region.code, question)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("v_mov_b32 v0", "SX0544"),
        ("v_mov_b32 t0 ;", "SX0544"),
        ("v_mov_b32 t0 #0 #1 ;", "SX0544"),
        ("v_readfirstlane_b32 ;", "SX0544"),
        ("global_load_b32 t0 t2 :2 ;", "SX0544"),
        ("s_and_not1_b32 s0 s0 ;", "SX0544"),
        ("s_endpgm ;", "SX0543"),
        ("v_mov_b32 v99 #0 ;", "SX0543"),
        ("v_mov_b32 t0 x9 ;", "SX0543"),
        ("v_mov_b32 t0 x2 b01 ;", "SX0540"),
        (".else p0 ;", "SX0543"),
    ],
)
def test_nonsense_is_refused(words: str, code: str) -> None:
    region, regs = next((s, r) for s, r in asked() if len(s.block.instructions) == 1)
    question = region_text(region.block, regs, region.live_out)
    with pytest.raises(EncodeError) as caught:
        check_legality(read_code(words.split(), question), question)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "words",
    [
        "v_mov_b32 tid #0 ;",  # the kernel's own
        "s_mov_b32 c0 #0 ;",  # a constant
        "s_mov_b32 exec_lo #0 ;",
        ".endpred ;",
        "v_add_nc_u32 t0 s0 s1 ; ",  # fine by itself, see below
    ],
)
def test_what_an_answer_may_not_do(words: str) -> None:
    region, regs = next(
        (s, r) for s, r in asked() if "c0" in region_text(s.block, r, s.live_out).lines[1]
    )
    question = region_text(region.block, regs, region.live_out)
    rest = [";"] * (len(region.block.instructions) - 1)
    code = read_code([*words.split(), *rest], question)
    if "t0" in words:
        check_legality(code, question)
        return
    with pytest.raises(EncodeError) as caught:
        check_legality(code, question)
    assert caught.value.code == "SX0546"


@given(st.integers(0, 2**64 - 1), st.sampled_from([32, 64]))
def test_any_number_can_be_said(value: int, bits: int) -> None:
    wide: Bits = 64 if bits == 64 else 32
    words = number(value, wide)
    assert set(words) <= set(NUMBER_WORDS)
    back, end = value_of(words, 0, wide)
    assert end == len(words)
    assert (back - value) % 2**bits == 0


@settings(max_examples=200)
@given(st.lists(st.text(min_size=1).filter(lambda w: not any(map(str.isspace, w)))))
def test_any_word_can_be_said(words: list[str]) -> None:
    assert tokenizer.decode(tokenizer.encode(words)) == words


def test_the_vocabulary_is_a_set_of_words() -> None:
    words = tokenizer.vocabulary()
    assert len(set(words)) == len(words) < 4096
    assert words[:4] == ("<pad>", "<bos>", "<answer>", "<eos>")
