"""Answers that were made to deceive the verifier: right as one lane sees it, wrong for the wave, or
right on one device.  Each adds to a kernel's own code something that looks like nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from sassxlate.cfg.liveness import live_before
from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.llm.language.older_forms.restate import too_long
from sassxlate.llm.language.question import read_question
from sassxlate.lowering.emulate.image.abi import PRIVATE_APERTURE_HI
from sassxlate.lowering.engine.gate import Gate
from sassxlate.lowering.optimize.regions import CutRegion, cut_regions, rules_code
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.text import read_code
from sassxlate.lowering.region.uniform import with_uniform
from sassxlate.lowering.target import GFX1100
from tests.lowering import emulated

EXEC = Sp("exec_lo")
Code = list[list[Inst]]


@cache
def parts() -> tuple[tuple[CutRegion, RegisterMap], ...]:
    selected = translate_kernel(emulated.load("arrive_barriers", 90), "arrive_barriers").selected
    return tuple(
        (part, selected.regs)
        for piece in selected.pieces
        for part in cut_regions(piece.block, selected.regs, piece.live_out, too_long=too_long)
        if not part.macro
    )


def attacks(name: str, part: CutRegion, regs: RegisterMap) -> Iterator[Code]:
    """The region's code with the addition, where it has what that takes."""
    t = [V(regs.vtemp_base + 16 + i) for i in range(3)]
    s = [S(i) for i in sorted(regs.stemps)[-4:]]
    code = [[i for i in group if isinstance(i, Inst)] for group in part.code]
    written = [ref for ins in part.block.instructions for ref in ins.writes]
    kept = [ref for ref in written if ref in part.live_out and ref.index in regs.r]
    results = [V(regs.r[ref.index]) for ref in kept if ref.file == "R"]
    copies = [ref for ref in written if ref.file == "UR" and ref.index in regs.ur_lanes]
    if not results:
        return
    r = results[-1]

    def after_rules(*more: Inst) -> Code:
        return [*code[:-1], [*code[-1], *more]]

    if name == "half":  # the low half is each lane's own
        yield after_rules(
            Inst("v_mov_b32", (t[0], r)),
            Inst("v_mov_b16", (t[0], I(0)), op_sel=8),
            Inst("v_readfirstlane_b32", (s[0], t[0])),
            Inst("v_mov_b32", (t[1], I(0xFFFF))),
            Inst("v_bfi_b32", (r, t[1], s[0], r)),
        )
    elif name == "aperture":  # another device has it elsewhere
        pair = S(s[0].index & ~1, 2)
        yield after_rules(
            Inst("s_mov_b64", (pair, Sp("src_private_base", 2))),
            Inst("v_add_nc_u32", (r, S(pair.index + 1), r)),
            Inst("v_mov_b32", (t[0], I(PRIVATE_APERTURE_HI))),
            Inst("v_sub_nc_u32", (r, r, t[0])),
        )
    elif name == "window":  # that word of the kernarg segment is never filled
        pair = S(s[0].index & ~1, 2)
        at = part.block.around.layout.local_window + 4
        yield after_rules(
            Inst("s_load_b32", (s[2], S(GFX1100.kernarg.index, 2), Sp("null")), imm=at),
            Inst("s_mov_b64", (pair, Sp("src_private_base", 2))),
            Inst("v_add_nc_u32", (r, s[2], r)),
            Inst("v_sub_nc_u32", (r, r, S(pair.index + 1))),
        )
    elif name == "beyond":  # nothing need be mapped there
        for at in (-4, 1 << 19):
            yield after_rules(
                Inst("s_load_b32", (s[2], S(GFX1100.kernarg.index, 2), Sp("null")), imm=at)
            )
    elif name == "saved" and copies:  # EXEC is not what it was, though it comes from save_exec
        copy = V(regs.ur_lanes[copies[-1].index])
        yield after_rules(
            Inst("v_mov_b32", (t[1], copy)),
            Inst("s_mov_b32", (s[0], EXEC)),
            Inst("s_and_b32", (regs.save_exec, EXEC, regs.p[min(regs.p)])),
            Inst("s_mov_b32", (EXEC, regs.save_exec)),
            Inst("v_mov_b32", (copy, I(0))),
            Inst("s_mov_b32", (EXEC, s[0])),
            Inst("v_readfirstlane_b32", (s[1], copy)),
            Inst("v_add_nc_u32", (r, s[1], r)),
            Inst("v_sub_nc_u32", (r, r, copy)),
            Inst("v_mov_b32", (copy, t[1])),
        )
    elif name == "number":  # bits of a number are not one for all lanes
        yield after_rules(
            Inst("v_mov_b32", (t[0], I(5))),
            Inst("v_readfirstlane_b32", (s[0], t[0])),
            Inst("v_cndmask_b32", (t[1], I(0), I(1), s[0])),
            Inst("v_readfirstlane_b32", (s[1], t[1])),
            Inst("v_add_nc_u32", (r, s[1], r)),
            Inst("v_sub_nc_u32", (r, r, t[1])),
        )
    elif name.startswith("lanes"):  # a number is not a mask: which bit is whose is not known
        number = Inst("s_mov_b32", (s[0], I(1)))
        back = Inst("v_sub_nc_u32", (r, r, I(1)))
        if name == "lanes of a choice":
            choice = Inst("v_cndmask_b32", (t[0], I(0), I(1), s[0]))
            yield after_rules(number, choice, Inst("v_add_nc_u32", (r, t[0], r)), back)
        elif name == "lanes of a comparison":  # of a mask with a number that means one lane
            mask = regs.p[min(regs.p)]
            yield after_rules(
                Inst("s_cmp_eq_u32", (mask, I(1))),
                Inst("s_cselect_b32", (s[0], I(-1), I(0))),
                Inst("s_and_not1_b32", (s[0], s[0], mask)),
                Inst("v_cndmask_b32", (r, r, I(7), s[0])),
            )
        elif name == "lanes of a carry":
            yield after_rules(number, Inst("v_add_co_ci_u32", (r, s[1], r, I(0), s[0])), back)
        else:
            yield after_rules(
                number,
                Inst("s_and_saveexec_b32", (regs.save_exec, s[0])),
                Inst("v_add_nc_u32", (r, I(1), r)),
                Inst("s_mov_b32", (EXEC, regs.save_exec)),
                back,
            )
    elif name == "guard":  # what some lanes wrote, the others do not have
        yield after_rules(
            Inst("v_mov_b32", (t[0], I(1))),
            Inst("s_and_saveexec_b32", (regs.save_exec, regs.p[min(regs.p)])),
            Inst("v_mov_b32", (t[0], I(2))),
            Inst("s_mov_b32", (EXEC, regs.save_exec)),
            Inst("v_readfirstlane_b32", (s[1], t[0])),
            Inst("v_add_nc_u32", (r, s[1], r)),
            Inst("v_sub_nc_u32", (r, r, t[0])),
        )
    elif name == "leak":  # lanes that the guard leaves out see what the others read
        yield after_rules(
            Inst("v_cmp_eq_u32", (s[3], I(3), r)),
            Inst("v_mov_b32", (t[0], r)),
            Inst("s_and_saveexec_b32", (regs.save_exec, s[3])),
            Inst("v_mov_b32", (t[0], I(5))),
            Inst("v_readfirstlane_b32", (s[0], t[0])),
            Inst("s_mov_b32", (EXEC, regs.save_exec)),
            Inst("v_add_nc_u32", (r, s[0], r)),
            Inst("v_sub_nc_u32", (r, r, t[0])),
        )
    elif name == "inverted":  # EXEC is not restored but turned round
        yield after_rules(
            Inst("v_mov_b32", (t[0], I(1))),
            Inst("s_and_saveexec_b32", (regs.save_exec, regs.p[min(regs.p)])),
            Inst("s_not_b32", (EXEC, regs.save_exec)),
            Inst("v_mov_b32", (t[0], I(2))),
            Inst("s_mov_b32", (EXEC, regs.save_exec)),
            Inst("v_readfirstlane_b32", (s[1], t[0])),
            Inst("v_add_nc_u32", (r, s[1], r)),
            Inst("v_sub_nc_u32", (r, r, t[0])),
        )
    elif name == "stale":  # a dead value need not be the same in all lanes
        live = frozenset[RegRef]()
        for ins in reversed(part.block.instructions):
            live = live_before(ins, live)
        for ref in copies:
            copy = V(regs.ur_lanes[ref.index])
            if ref not in live:
                made = after_rules(Inst("v_add_nc_u32", (r, t[0], r)))
                first = [
                    Inst("v_readfirstlane_b32", (s[0], copy)),
                    Inst("v_sub_nc_u32", (t[0], s[0], copy)),
                ]
                yield [[*first, *made[0]], *made[1:]]


ATTACKS = (
    "half", "aperture", "window", "saved", "number", "guard", "leak", "inverted", "stale",
    "lanes of a choice", "lanes of a carry", "lanes of a guard", "lanes of a comparison", "beyond",
)  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_an_answer_that_deceives(name: str) -> None:
    found = ((part, regs, code) for part, regs in parts() for code in attacks(name, part, regs))
    part, regs, code = next(found)
    rules = [item for group in part.code for item in group]
    got = Gate(24, cheaper=False).judge(part.block, regs, part.live_out, code, rules)
    if name == "beyond":
        assert got.reason == "accesses", got
    else:
        assert got.reason in ("refuted", "unknown"), got


SUM = ("v1 v2 v4 v5", "v0 v3", "IADD3 v0 v1 v2 Z Pu= p0", "IADD3 .X v3 v4 v5 Z Pp= p0")
CHOICE = ("p0 v1 v2", "v0", "SEL v0 v1 v2 Pp= p0")
FUNNEL = ("v1 v2 v3", "v0", "SHF .R .W .U32 v0 v1 v2 v3")
TOLD = ("v0 v1 v2", "u0 v0 v3", "R2UR u0 v0", "IADD3 v0 v1 v2 Z", "IADD3 v3 v1 v2 Z")
TWICE = (
    "v0 v1 v2", "u0 u1 v0 v3", "R2UR u0 v0", "R2UR u1 v0", "IADD3 v0 v1 v2 Z", "IADD3 v3 v1 v2 Z",
)  # fmt: skip
FORMER = ("v1", "u0 v0 v1", "MOV v0 v1 #15", "MOV v1 #5 #15", "R2UR u0 v1")
STALE = ("u0 v0 v1", "q0 v0", "IADD3 v0 v0 v1 Z", "UISETP .GE .AND u0 #5 Pu= q0")
THERE = ("q0 u1 u2 v0 v1", "u0 v0", "IADD3 v0 v0 v1 Z", "USEL u0 u1 u2 Pp= q0")
ALIKE = (
    "s_and_b32 s1 q0 exec_lo s_cmp_lg_u32 s1 #0 s_cselect_b32 s0 #1 #0 v_cndmask_b32 t0 #0 #1 q0 "
    "v_sub_nc_u32 t0 s0 t0 v_add_nc_u32 v0 v0 v1 v_add_nc_u32 v0 v0 t0 ;"
)
ADDED = "v_add_nc_u32 v0 v1 v2"
TEXTS = [
    # A value written to null is lost.
    (SUM, "v_add_co_u32 v0 s0 v1 v2 ; v_add_co_ci_u32 v3 s0 v4 v5 s0 ;", True),
    (SUM, "v_add_co_u32 v0 null v1 v2 ; v_add_co_ci_u32 v3 null v4 v5 null ;", False),
    # Modifiers that no meaning reads are something to the hardware.
    (CHOICE, "v_cndmask_b32 v0 v2 v1 p0 ;", True),
    (CHOICE, "v_cndmask_b32 v0 v2 v1 p0 neg:1 ;", False),
    (CHOICE, "v_cndmask_b32 v0 v2 v1 p0 abs:2 ;", False),
    (CHOICE, "v_sad_u32 t0 v1 #0 #0 clamp v_cndmask_b32 v0 v2 t0 p0 ;", False),
    (FUNNEL, "v_alignbit_b32 v0 v3 v1 v2 ;", True),
    (FUNNEL, "v_alignbit_b32 v0 v3 v1 v2 op_sel:4 ;", False),
    # What R2UR takes as the same in all lanes is its source, not what the code has there since.
    (TOLD, f"v_readfirstlane_b32 u0 v0 ; {ADDED} ; v_add_nc_u32 v3 v1 v2 ;", True),
    (TOLD, f"v_mov_b32 t0 v0 v_readfirstlane_b32 u0 t0 ; {ADDED} ; v_mov_b32 v3 v0 ;", True),
    (TOLD, f"v_readfirstlane_b32 u0 v0 {ADDED} v_mov_b32 t0 v0 v_readfirstlane_b32 s0 t0 ; ; "
     "v_mov_b32 v3 s0 ;", False),
    (TWICE, f"v_readfirstlane_b32 u0 v0 {ADDED} ; v_mov_b32 t0 v0 v_readfirstlane_b32 s0 t0 "
     "s_mov_b32 u1 u0 ; ; v_mov_b32 v3 s0 ;", False),
    # Nor a value that is present before its code.
    (FORMER, "; ; v_mov_b32 t0 v1 v_readfirstlane_b32 s0 t0 v_mov_b32 v0 s0 v_mov_b32 v1 #5 "
     "s_mov_b32 u0 #5 ;", False),
    # A uniform predicate that is no longer read is not one any more: its place holds anything.
    (THERE, f"{ALIKE} s_cmp_lg_u32 s1 #0 s_cselect_b32 u0 u1 u2 ;", True),
    (STALE, f"{ALIKE} v_cmp_le_i32 q0 #5 u0 ;", False),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "answer", "right"), TEXTS)
def test_an_answer_in_words(asked: tuple[str, ...], answer: str, right: bool) -> None:
    read, out, *sass = asked
    lines = ("gfx1100", f"in {read}", f"out {out}", "free t24 s20", *sass)
    q = read_question("\n".join(lines), 90)
    rules = [item for group in rules_code(q.block, q.regs) for item in group]
    code = read_code(answer.split(), q)
    got = Gate(24, cheaper=False).judge(q.block, q.regs, q.live_out, code, rules)
    assert got.reason in (("accepted",) if right else ("refuted", "unknown")), got


def test_what_all_lanes_wrote_lasts() -> None:
    """After a guard in which it was not written."""
    part, regs = next((p, m) for p, m in parts() if m.p)
    t, s, mask = regs.vtemp_base, min(regs.stemps), regs.p[min(regs.p)]
    code = [
        Inst("v_mov_b32", (V(t), I(1))),
        Inst("s_and_saveexec_b32", (regs.save_exec, mask)),
        Inst("v_mov_b32", (V(t + 1), I(2))),
        Inst("s_mov_b32", (EXEC, regs.save_exec)),
        Inst("v_readfirstlane_b32", (S(s), V(t))),
        Inst("v_readfirstlane_b32", (S(s), V(t + 1))),
    ]
    sass = part.block.instructions[:1]
    ((*_, first, second),) = with_uniform([code], sass, regs, lasting=True)
    assert first.uniform
    assert not second.uniform
    ((*_, first, second),) = with_uniform([code], sass, regs)
    assert not first.uniform


def test_a_guard_leaves_what_all_lanes_share() -> None:
    """The rules' code is still accepted: EXEC saved, narrowed and restored."""
    part, regs = next((p, m) for p, m in parts() if m.ur_lanes)
    index, at = min(regs.ur_lanes.items())
    reader = replace(part.block.instructions[0], reads=frozenset({RegRef("UR", index)}))
    taken = Inst("v_readfirstlane_b32", (S(min(regs.stemps)), V(at)))
    guarded = [
        Inst("s_and_saveexec_b32", (regs.save_exec, regs.p[min(regs.p)])),
        Inst("v_mov_b32", (V(regs.vtemp_base), I(0))),
        Inst("s_mov_b32", (EXEC, regs.save_exec)),
        taken,
    ]
    ((*_, last),) = with_uniform([guarded], [reader], regs)
    assert last.uniform
