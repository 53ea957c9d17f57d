"""Answers to prompts in older forms: the proof covers the code of the real instructions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sassxlate.errors import EncodeError
from sassxlate.llm.language.prompt import question_words
from sassxlate.llm.language.question import read_question
from sassxlate.lowering.engine.gate import Gate
from sassxlate.lowering.optimize.regions import rules_code
from sassxlate.lowering.optimize.temporaries import used
from sassxlate.lowering.region.places import VTEMPS
from sassxlate.lowering.region.text import RegionText, answer_text, read_code
from sassxlate.lowering.verify.steps.legality import check_legality

QUESTIONS = {
    "compare": ("in v0 v1 v2 v3\nout p0", "ISETP .GE .S64 .AND v0 :2 v2 :2 Pu= p0"),
    "least": ("in v0 v1 v2 v3\nout v0 v1", "IMNMX .S64 v0 :2 v0 :2 v2 :2 Pq= ! T"),
    "largest": ("in v0 v1 v2 v3\nout v0 v1", "IMNMX .U64 v0 :2 v0 :2 v2 :2 Pp= ! T Pq= ! T"),
    "scalar sum": ("in u0 u1\nout u0 u1", "UIADD3 .64 u0 :2 u0 :2 #16 Z"),
    "guarded sum": ("in p0 v0 v1 v2 v3\nout v0 v1", "@ p0 IADD .64 v0 :2 v0 :2 v2 :2 Pp= ! T"),
    "wide zero": ("in u0 v0 v1\nout v0 v1", "UMOV u1 Z\nIADD .64 v0 :2 v0 :2 u0 :2 Pp= ! T"),
    "zeros": ("in\nout v0 v1", "MOV .64 v0 :2 Z #15"),
    "scalar product": ("in u1 v0\nout u0 v0", "UFMUL u0 u1 0.5\nFADD v0 v0 u0"),
    "inner product": ("in u1 v1\nout v0", "UFMUL u0 u1 0.5\nFADD v0 v1 u0"),
    "scalar least": ("in u0 u1\nout u0", "UVIMNMX .S32 u0 u0 u1"),
    "scalar compare": ("in u0\nout q0", "UFSETP .GEU .AND | u0 f2 b00 b80 Pu= q0"),
    "table": ("in v0\nout v0\nbank c[3] x2 b04 b18", "LDC v0 c[3] [ v0 #0 ]"),
    "size": ("in\nout v0", "LDC v0 c[0] [ Z x2 b03 b60 ]"),
    "four": ("in\nout u0 u1 u2 u3", "LDCU .128 u0 :4 c[0] [ Z x2 b03 b80 ]"),
}  # fmt: skip
LESS = "v_cmp_{}_u32 s19 v0 v1 ; v_cmp_{}_{}32 vcc_lo v2 v3 v_cmp_eq_u32 p0 v2 v3 "
CHOSEN = (
    "s_and_b32 s19 s19 p0 s_or_b32 p0 s19 vcc_lo ; v_cndmask_b32 v0 v1 v0 p0 ; "
    "v_cndmask_b32 v2 v3 v2 p0 ;"
)
SUM = ".pred p0 v_add_co_u32 v0 s19 v0 v1 {} v_add_co_ci_u32 v2 s19 v2 v3 p1 .endpred ;"
KEPT = "s_and_not1_b32 p1 p1 exec_lo s_or_b32 p1 p1 s19 ;"
ANSWERS = [
    ("compare", "; v_cmp_ge_i64 p0 v0 :2 v2 :2 ;", None),
    ("compare", "v_cmp_ge_u32 s19 v0 v1 ; v_cmp_eq_u32 s18 v2 v3 s_and_b32 s19 s19 s18 "
     "v_cmp_gt_i32 s18 v2 v3 s_or_b32 p0 s18 s19 ;", "accepted"),
    ("compare", "v_cmp_ge_u32 p0 v0 v1 ; ;", "refuted"),
    ("least", LESS.format("lt", "lt", "i") + CHOSEN, "accepted"),
    ("least", LESS.format("gt", "gt", "i") + CHOSEN, "refuted"),
    ("least", LESS.format("lt", "lt", "u") + CHOSEN, "refuted"),
    ("largest", LESS.format("gt", "gt", "u") + CHOSEN, "accepted"),
    ("largest", LESS.format("lt", "lt", "u") + CHOSEN, "refuted"),
    ("scalar sum", "s_add_u32 u0 u0 #16 ; s_addc_u32 u1 u1 #0 ;", "accepted"),
    ("scalar sum", "s_add_u32 u0 u0 #16 ; ;", "refuted"),
    # Bits of waiting lanes in a predicate that is not the block's do not matter.
    ("guarded sum", SUM.format(KEPT), "accepted"),
    ("guarded sum", SUM.format(KEPT).replace("p1 p1 s19", "p1 p1 vcc_lo"), "unknown"),
    ("wide zero", "; v_add_co_u32 v0 p0 v0 u1 ; v_add_co_ci_u32 v1 s19 v1 #0 p0 ;", "accepted"),
    ("zeros", "v_mov_b32 v0 #0 v_mov_b32 v1 #0 ;", "accepted"),
    ("zeros", "v_mov_b32 v0 #0 v_mov_b32 v1 #1 ;", "refuted"),
    # Results that are said in vector registers: copied if the block has them, in temporaries.
    ("scalar product", "v_mov_b32 v0 u0 ; v_mul_f32 v1 0.5 v0 ; v_add_f32 v2 v1 v2 ;", "accepted"),
    ("scalar product", "; v_mul_f32 v1 0.5 u0 ; v_add_f32 v2 v1 v2 ;", "accepted"),
    # A move that is left out although its result is read.
    ("scalar product", "; v_mul_f32 v1 0.5 v0 ; v_add_f32 v2 v1 v2 ;", "accepted"),
    ("scalar product", "; v_mul_f32 v1 2.0 u0 ; v_add_f32 v2 v1 v2 ;", "refuted"),
    ("inner product", "; v_mul_f32 v1 0.5 u0 ; v_add_f32 v2 v1 v3 ;", "accepted"),
    ("scalar least", "; ; v_min_i32 v2 u0 u1 ;", "accepted"),
    ("scalar least", "v_mov_b32 v0 u0 ; v_mov_b32 v1 u1 ; v_min_i32 v2 v0 v1 ;", "accepted"),
    ("scalar least", "v_mov_b32 v0 u0 ; v_mov_b32 v1 u1 ; v_max_i32 v2 v0 v1 ;", "refuted"),
    ("scalar compare", "; v_cmp_nlt_f32 q0 u0 f2 b00 b80 abs:1 ;", "accepted"),
    ("table", "s_load_b64 s0 :2 kern :2 null + x2 b02 ba8 global_load_b32 v0 v0 s0 :2 ;",
     "accepted"),
    ("table", "s_load_b64 s0 :2 kern :2 null + x2 b02 bb0 global_load_b32 v0 v0 s0 :2 ;",
     "accesses"),
    ("size", "s_load_b32 s0 kern :2 null v_mov_b32 v0 s0 ;", "accepted"),
    ("size", "s_load_b32 s0 kern :2 null + #4 v_mov_b32 v0 s0 ;", "accesses"),
    ("four", "s_mov_b64 u0 :2 c0 :2 ; s_mov_b64 u2 :2 c2 :2 ;", "accepted"),
    ("four", "s_mov_b64 u0 :2 c2 :2 ; s_mov_b64 u2 :2 c0 :2 ;", "refuted"),
]  # fmt: skip


def _question(name: str) -> RegionText:
    head, lines = QUESTIONS[name]
    ins, out, *rest = head.split("\n")
    text = "\n".join(("gfx1100", ins, out, *rest, "free t24 s20", lines))
    q = read_question(text, 120)
    return question_words(q.block, q.regs, q.live_out)


@pytest.mark.parametrize(("name", "answer", "outcome"), ANSWERS)
def test_answers_are_proved_of_the_real_instructions(
    name: str, answer: str, outcome: str | None
) -> None:
    q = _question(name)
    if outcome is None:
        with pytest.raises(EncodeError):
            read_code(answer.split(), q)
        return
    code = read_code(answer.split(), q)
    check_legality(code, q)
    assert used(code, q.regs.vtemp_base) <= VTEMPS
    rules = [item for group in rules_code(q.block, q.regs) for item in group]
    got = Gate(VTEMPS, cheaper=False).judge(q.block, q.regs, q.live_out, code, rules)
    assert got.reason == outcome, got.detail


def test_copies_to_uniform_registers_only_where_they_are_read() -> None:
    answer = "; v_mul_f32 v1 0.5 u0 ; v_add_f32 v2 v1 {} ;"
    outer = read_code(answer.format("v2").split(), _question("scalar product"))
    assert [i.op for i in outer[0]] == ["v_mul_f32", "v_readfirstlane_b32"]
    assert outer[0][1].uniform
    inner = read_code(answer.format("v3").split(), _question("inner product"))
    assert [i.op for i in inner[0]] == ["v_mul_f32"]


def test_places_without_an_older_one_are_not_said() -> None:
    q = _question("size")
    code = read_code("s_load_b32 s0 kern :2 null v_mov_b32 v0 s0 ;".split(), q)
    assert code[0][0].imm == 0x360
    assert answer_text(code, q).split() == "s_load_b32 s0 kern :2 null v_mov_b32 v0 s0 ;".split()
    elsewhere = [[replace(code[0][0], imm=0x210), code[0][1]]]  # where older kernels have others
    with pytest.raises(EncodeError):
        answer_text(elsewhere, q)
