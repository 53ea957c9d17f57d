"""Forms of later architectures restated as older ones: the questions, and their answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass import decode
from sassxlate.errors import EncodeError, SassxlateError
from sassxlate.llm.evaluation.corpus import block_key
from sassxlate.llm.language.older_forms.restate import restated, too_long
from sassxlate.llm.language.prompt import question_words
from sassxlate.llm.language.question import read_question
from sassxlate.lowering.engine.gate import Gate
from sassxlate.lowering.optimize.regions import LONGEST, cut_regions, rules_code
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.region.text import RegionText, answer_text, read_code, region_text
from tests.lowering import emulated

HEAD = "gfx1100\nin v1 v2\nout u0 u1 v0 v1 v2\nfree t24 s20\n"
SUM = f"""{HEAD}LDCU .64 u0 :2 c[0] [ Z x2 b03 b58 ]
LDC v0 c[0] [ Z x2 b03 b80 ]
IADD .64 v1 :2 v1 :2 u0 :2 Pp= ! T"""
SAID = """gfx1100
in v1 v2 c0 c1
out u0 u1 v0 v1 v2
free t24 s20
ULDC .64 u0 :2 c0 :2
LDC v0 c[0] [ Z x2 b02 b10 ]
IADD3 v1 v1 u0 Z Pu= p0
IADD3 .X v2 v2 u1 Z Pp= p0"""


def _asked(text: str) -> RegionText:
    q = read_question(text, 120)
    return question_words(q.block, q.regs, q.live_out)


def _outcome(q: RegionText, answer: str) -> str:
    code = read_code(answer.split(), q)
    rules = [item for group in rules_code(q.block, q.regs) for item in group]
    return Gate(24, cheaper=False).judge(q.block, q.regs, q.live_out, code, rules).reason


def test_said_in_older_forms() -> None:
    assert _asked(SUM).text == SAID
    old = read_question(SAID, 90)
    assert question_words(old.block, old.regs, old.live_out).text == old.text


MOVED = "s_mov_b64 u0 :2 c0 :2 ; s_load_b32 s0 kern :2 null + x2 b02 b10 v_mov_b32 v0 s0 ;"
ADDED = "v_add_co_u32 v1 p0 v1 u0 ; v_add_co_ci_u32 v2 s19 v2 u1 p0 ;"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (f"{MOVED} {ADDED}", "accepted"),
        # A lent name may itself be read.
        (f"{MOVED} {ADDED}".replace("v1 u0", "v1 c0").replace("v2 u1", "v2 c1"), "accepted"),
        (f"{MOVED} {ADDED}".replace("c0 :2", "c2 :2"), None),
        (f"{MOVED} {ADDED}".replace("v0 s0", "v0 c1"), "refuted"),
        (f"{MOVED} {ADDED}".replace("b02 b10", "b02 b14"), "accesses"),
        (f"{MOVED} {ADDED}".replace("v2 u1 p0", "v2 u1 vcc_lo"), "refuted"),
        (f"{MOVED} {ADDED}".replace("v2 u1 p0", "v2 u0 p0"), "refuted"),
    ],
)
def test_answers_are_proved_of_the_real_instructions(answer: str, outcome: str | None) -> None:
    q = _asked(SUM)
    if outcome is None:
        with pytest.raises(EncodeError):
            read_code(answer.split(), q)
    else:
        assert _outcome(q, answer) == outcome


def test_a_move_of_a_constant_is_its_load() -> None:
    q = _asked(SUM)
    code = read_code(f"{MOVED} {ADDED}".split(), q)
    assert [[i.op for i in group] for group in code] == [
        ["s_load_b64"], ["s_load_b32", "v_mov_b32"], ["v_add_co_u32", "v_add_co_ci_u32"],
    ]  # fmt: skip
    assert [code[0][0].imm, code[1][0].imm] == [0x358, 0x380]
    with pytest.raises(EncodeError):  # a group for each line
        read_code(f"{MOVED} {ADDED.replace(';', '', 1)}".split(), q)


@pytest.mark.parametrize(
    ("into", "out", "line", "said"),
    [
        ("u0 u1", "v0 v1", "MOV .64 v0 :2 u0 :2 #15", ["MOV v0 u0 #15", "MOV v1 u1 #15"]),
        ("", "v0 v1", "MOV .64 v0 :2 Z #15", ["CS2R v0 :2 SRZ"]),
        ("", "v0", "HFMA2 v0 - Z Z #12", ["HFMA2 .MMA v0 - Z Z #12"]),
        ("v1 v2", "v0", "VIMNMX .S32 v0 v1 v2", ["VIMNMX v0 v1 v2"]),
        ("v0 v1", "v0 v1", "IADD .64 v0 :2 v0 :2 #-4 Pp= ! T",
         ["IADD3 v0 v0 #-4 Z Pu= p0", "IADD3 .X v1 v1 #-1 Z Pp= p0"]),
        ("v2 v3 v4 v5", "v0 v1", "IADD .64 v0 :2 v2 :2 - v4 :2 Pp= ! T",
         ["IADD3 v0 v1 - v2 Z Pu= p0", "IADD3 .X v3 v4 ~ v5 Z Pp= p0"]),
        ("u0 u1", "u0 u1", "UIADD3 .64 u0 :2 u0 :2 #16 Z",
         ["UIADD3 u0 u0 #16 Z Pu= q0", "UIADD3 .X u1 Z u1 Z Pp= q0"]),
        ("v0 v1 v2 v3", "p0", "ISETP .GE .S64 .AND v0 :2 v2 :2 Pu= p0",
         ["ISETP .GE .U32 .AND v0 v1 Pu= p0", "ISETP .GE .AND .EX v2 v3 Pu= p0 Pq= p0"]),
        ("p0 v0 v1", "p0", "ISETP .LT .U64 .OR v0 :2 #5 Pu= p0 Pp= ! p0",
         ["ISETP .LT .U32 .AND v0 #5 Pu= p0",
          "ISETP .LT .U32 .OR .EX v1 Z Pu= p1 Pp= ! p1 Pq= p0"]),
        ("v0 v1 v2 v3", "v0 v1", "IMNMX .U64 v0 :2 v0 :2 v2 :2 Pq= ! T",
         ["ISETP .LT .U32 .AND v0 v1 Pu= p0", "ISETP .LT .U32 .AND .EX v2 v3 Pu= p0 Pq= p0",
          "SEL v0 v0 v1 Pp= p0", "SEL v2 v2 v3 Pp= p0"]),
        ("", "p0", "PLOP3 .LUT Pu= p0 x1 b80 #8", ["PLOP3 .LUT Pu= p0 x1 b80 #0"]),
        ("u1", "u0", "UFMUL u0 u1 0.5",
         ["IMAD .U32 v0 Z Z u0", "FMUL v1 v0 0.5"]),
        ("u1 u2", "u0", "UVIMNMX .S32 u0 u1 u2",
         ["IMAD .U32 v0 Z Z u0", "IMAD .U32 v1 Z Z u1", "VIMNMX v2 v0 v1"]),
        ("u1", "u0", "UFLO .U32 u0 u1", ["UFLO .U32 u0 u1"]),
    ],
)  # fmt: skip
def test_forms(into: str, out: str, line: str, said: list[str]) -> None:
    q = _asked(f"gfx1100\n{f'in {into}'.rstrip()}\nout {out}\nfree t24 s20\n{line}")
    assert [" ".join(words) for words in q.lines[4:]] == said


def test_the_same_lines_of_other_instructions_are_another_block() -> None:
    """They have the same question, but a proof of one does not count for the other."""
    wide = _asked("gfx1100\nin v0 v1\nout v0 v1\nfree t24 s20\nIADD .64 v0 :2 v0 :2 #-4 Pp= ! T")
    halves = _asked(wide.text)
    assert halves.text == wide.text
    assert block_key(halves) != block_key(wide)


def test_kernels_of_sm_120() -> None:
    """Every region is asked for in known words, or exactly; its code is read back."""
    count = changed = read = 0
    for path in sorted((emulated.KERNELS / "sm_120").glob("*.cubin"))[:12]:
        cubin = parse_cubin(path.read_bytes())
        for kernel in cubin.kernels:
            try:
                selected = translate_kernel(cubin, kernel.name).selected
            except SassxlateError:
                continue
            for piece in selected.pieces:
                for region in cut_regions(
                    piece.block, selected.regs, piece.live_out, too_long=too_long
                ):
                    if region.macro:
                        continue
                    exact = region_text(region.block, selected.regs, region.live_out)
                    q = question_words(region.block, selected.regs, region.live_out)
                    count += 1
                    if q.text == exact.text:
                        continue
                    changed += 1
                    assert len(q.parts) == len(region.block.instructions)
                    assert q.groups == len(q.lines) - len([w for w in q.lines if w[0] in HEADERS])
                    assert q.known is not None
                    if q.known.words:
                        continue
                    try:
                        answer = answer_text(region.code, q)
                    except EncodeError:  # of a pair whose halves are restated separately
                        continue
                    code = read_code(answer.split(), q)
                    read += 1
                    if not q.known.copies and not q.known.masks:
                        assert list(map(len, code)) == list(map(len, region.code))
    assert changed > count // 10
    assert read > changed // 4


HEADERS = ("gfx1100", "in", "out", "keep", "free", "bank")


def test_what_is_long_in_older_forms_is_cut() -> None:
    lines = "\n".join(f"MOV .64 v{n} :2 v{n} :2 #15" for n in range(0, 16, 2))
    lines = "\n".join((lines, lines, lines))
    names = " ".join(f"v{n}" for n in range(16))
    q = read_question(f"gfx1100\nin {names}\nout {names}\nfree t24 s20\n{lines}", 120)
    parts = cut_regions(q.block, q.regs, q.live_out, too_long=too_long)
    each = LONGEST // 2  # two lines say one
    assert [len(part.block.instructions) for part in parts] == [each] * (24 // each)
    said = [question_words(part.block, q.regs, part.live_out) for part in parts]
    assert {one.groups for one in said} == {2 * each}


def test_forms_without_what_the_others_have() -> None:
    q = read_question(SUM, 120)
    ins = decode(0x000FE2000E810A3876137380FF1979AC, 0, 120)  # LDCU.64.TEXUNPACK
    block = replace(q.block, instructions=(ins,))
    assert restated(block, q.regs) is None
