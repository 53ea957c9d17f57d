"""Wrong answers around a macro: what it reads, writes, overwrites and orders is as the rules have
it, or nothing is proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, V
from sassxlate.errors import EncodeError
from sassxlate.lowering.engine.gate import Gate, Judgement
from sassxlate.lowering.optimize.regions import CutRegion
from sassxlate.lowering.region.macro import Macro, macro_of, opened
from sassxlate.lowering.region.text import read_code, region_text
from sassxlate.lowering.verify import Proved
from sassxlate.lowering.verify.steps.prover import Prover
from tests.lowering.engine.macros import REGS, judged, region

# v0 v1 v2 are R3 R1 R2; v3 R4; v4 R5; v5 R6.  The shuffle overwrites t0 and t1.
SHUFFLE = "IADD3 R3, R1, R2, RZ; SHFL.BFLY PT, R4, R3, 0x1, 0x1f; IADD3 R5, R1, R6, RZ"
SHUFFLE_OUT = ("R3", "R4", "R5")
SUM, LAST = "v_add_nc_u32 v0 v1 v2", "v_add_nc_u32 v4 v1 v5"
# p0 v1 v2 v3 are P0 R1 R2 and R4.  The predicate is made before the shuffle under it.
GUARDED = (
    "ISETP.NE.AND P0, PT, R1, R2, PT; @P0 SHFL.IDX PT, R4, R1, R2, 0x1f; "
    "ISETP.NE.AND P0, PT, R1, R2, PT"
)
TEST = "v_cmp_ne_i32 p0 v0 v1"
SHARED = "@P0 IADD3 R3, R1, R2, RZ; @P0 SHFL.BFLY PT, R4, R3, 0x1, 0x1f; @P0 IADD3 R5, R1, R4, RZ"
# s18 s19 and SCC are overwritten.
VOTE = "IADD3 R4, R1, R2, RZ; VOTE.ANY R3, PT, P0; ISETP.NE.AND P1, PT, R1, R2, PT"
REDUX = "IADD3 R3, R1, R2, RZ; REDUX.SUM UR4, R3; IADD3 R4, R3, 0x1, RZ"
FENCE = "LDG.E R4, [R2]; MEMBAR.SC.GPU; LDG.E R5, [R2+0x4]; IADD3 R6, R4, R5, RZ"
FIRST, SECOND = "global_load_b32 v0 v1 :2 off", "global_load_b32 v3 v1 :2 off + #4"
STRONG = "LDG.E R4, [R2]; LDG.E.STRONG.SYS R5, [R2+0x4]; IADD3 R6, R4, R5, RZ"
ATOMIC = (
    "IADD3 R3, R1, R2, RZ; REDG.E.ADD.F64.RN.STRONG.GPU [R8], R6; LDG.E R4, [R8]; STG.E [R10], R7"
)
LOOP_LOAD, LOOP_STORE = "global_load_b32 v7 v3 :2 off", "global_store_b32 v8 :2 v6 off"
ADD = "v_add_nc_u32"

RIGHT = {
    "the rules'": (SHUFFLE, SHUFFLE_OUT, f"{SUM} ; .macro ; {LAST} ;"),
    "a value across": (SHUFFLE, SHUFFLE_OUT, f"{SUM} {ADD} t5 v1 v5 ; .macro ; v_mov_b32 v4 t5 ;"),
    "later": (SHUFFLE, ("R4", "R5"), f"{SUM} {LAST} ; .macro ; ;"),
    "a fence": (FENCE, ("R4", "R5", "R6"), f"{FIRST} ; .macro ; {SECOND} ; {ADD} v4 v0 v3 ;"),
    "a guard": (GUARDED, ("P0", "R4"), f"{TEST} ; .pred p0 .macro .endpred ; {TEST} ;"),
    "a shared guard": (
        SHARED, ("R3", "R4", "R5"), f".pred p0 {SUM} ; .macro ; {ADD} v4 v1 v3 .endpred ;",
    ),
    "two guards": (
        SHARED, ("R3", "R4", "R5"),
        f".pred p0 {SUM} ; .macro .endpred ; .pred p0 {ADD} v4 v1 v3 .endpred ;",
    ),
    "a vote": (VOTE, ("R3", "R4", "P1"), f"{SUM} ; .macro ; v_cmp_ne_i32 p1 v1 v2 ;"),
    "a sum": (REDUX, ("UR4", "R3", "R4"), f"{SUM} ; .macro ; {ADD} v3 #1 v0 ;"),
    "a strong load": (STRONG, ("R4", "R5", "R6"), f"{FIRST} ; .macro ; {ADD} v4 v0 v3 ;"),
    "a loop": (
        ATOMIC, ("R3", "R4"),
        f"{SUM} ; .macro ; {LOOP_LOAD} ; {LOOP_STORE} ;",
    ),
}  # fmt: skip

WRONG = {
    "not under its guard": (
        SHARED, ("R3", "R4", "R5"),
        f".pred p0 {SUM} .endpred ; .macro ; .pred p0 {ADD} v4 v1 v3 .endpred ;",
    ),
    "under its guard's opposite": (
        SHARED, ("R3", "R4", "R5"),
        f".pred p0 {SUM} ; .endpred .pred ! p0 .macro .endpred ; "
        f".pred p0 {ADD} v4 v1 v3 .endpred ;",
    ),
    "a guard that stays open": (
        "@P0 SHFL.BFLY PT, R4, R3, 0x1, 0x1f; IADD3 R5, R1, R6, RZ", ("R4", "R5"),
        f".pred p0 .macro ; {ADD} v2 v3 v4 .endpred ;",
    ),
    "its input is not written yet": (SHUFFLE, SHUFFLE_OUT, f"; .macro ; {SUM} {LAST} ;"),
    "its input is another value": (
        SHUFFLE, SHUFFLE_OUT, f"{ADD} v0 v1 v1 ; .macro ; {SUM} {LAST} ;",
    ),
    "its input is changed and put back": (
        SHUFFLE, SHUFFLE_OUT,
        f"{SUM} {ADD} v0 #1 v0 ; .macro ; v_sub_nc_u32 v0 v0 #1 {LAST} ;",
    ),
    "its result is overwritten": (
        SHUFFLE, SHUFFLE_OUT, f"{SUM} ; .macro ; {LAST} v_mov_b32 v3 v0 ;",
    ),
    "its result is taken for its input": (
        "SHFL.BFLY PT, R4, R3, 0x1, 0x1f; IADD3 R5, R4, R6, RZ", ("R4", "R5"),
        f".macro ; {ADD} v2 v1 v3 ;",
    ),
    "its result is taken from its old place": (
        "IADD3 R3, R1, R2, RZ; SHFL.BFLY PT, R4, R4, 0x1, 0x1f; IADD3 R5, R4, R6, RZ",
        ("R3", "R4", "R5"), f"{SUM} v_mov_b32 t5 v3 ; .macro ; {ADD} v4 t5 v5 ;",
    ),
    "results change places": (
        "SHFL.BFLY PT, R4, R3, 0x1, 0x1f; SHFL.BFLY PT, R5, R3, 0x2, 0x1f; "
        "IADD3 R6, R4, 0x1, RZ; IADD3 R7, R5, 0x1, RZ", ("R6", "R7"),
        f".macro ; .macro ; {ADD} v3 #1 v2 ; {ADD} v4 #1 v0 ;",
    ),
    "a vector temporary across": (
        SHUFFLE, SHUFFLE_OUT, f"{SUM} {ADD} t0 v1 v5 ; .macro ; v_mov_b32 v4 t0 ;",
    ),
    "a vector temporary of its own": (SHUFFLE, SHUFFLE_OUT, f"{SUM} ; .macro ; v_mov_b32 v4 t1 ;"),
    "SCC across": (
        "IADD3 R3, R1, R2, RZ; REDUX.SUM UR4, R3; USEL UR5, UR6, UR7, UP0", ("UR4", "UR5", "R3"),
        f"{SUM} s_and_b32 s0 q0 exec_lo s_cmp_lg_u32 s0 #0 ; .macro ; s_cselect_b32 u1 u2 u3 ;",
    ),
    "a scalar temporary across": (
        VOTE, ("R3", "R4", "P1"),
        f"{SUM} v_cmp_ne_i32 s19 v1 v2 ; .macro ; s_mov_b32 p1 s19 ;",
    ),
    "EXEC is narrowed around it": (
        GUARDED.replace("@P0 ", ""), ("P0", "R4"), f"{TEST} .pred p0 ; .macro ; .endpred {TEST} ;",
    ),
    "another mask": (
        GUARDED, ("P0", "R4"), f"v_cmp_eq_u32 p0 v0 v1 ; .pred p0 .macro .endpred ; {TEST} ;",
    ),
    "all lanes": (GUARDED, ("P0", "R4"), f"{TEST} ; .macro ; {TEST} ;"),
    "MODE is changed around it": (
        SHUFFLE, SHUFFLE_OUT, f"{SUM} s_denorm_mode + #0 ; .macro ; s_denorm_mode + #15 {LAST} ;",
    ),
    "a load before a fence is after it": (
        FENCE, ("R4", "R5", "R6"), f"; .macro ; {FIRST} {SECOND} ; {ADD} v4 v0 v3 ;",
    ),
    "a load after a fence is before it": (
        FENCE, ("R4", "R5", "R6"), f"{FIRST} {SECOND} ; .macro ; ; {ADD} v4 v0 v3 ;",
    ),
    "a load after a strong one": (
        STRONG, ("R4", "R5", "R6"), f"; .macro ; {FIRST} {ADD} v4 v0 v3 ;",
    ),
    "a load before a loop around an atomic": (
        ATOMIC, ("R3", "R4"),
        f"{LOOP_LOAD} ; .macro ; ; {LOOP_STORE} ;",
    ),
    "a store before a loop around an atomic": (
        ATOMIC, ("R3", "R4"),
        f"{LOOP_STORE} ; .macro ; {LOOP_LOAD} ; ;",
    ),
    "a value of all lanes, overwritten": (
        SHUFFLE, SHUFFLE_OUT,
        f"{SUM} v_mov_b32 t0 #0 ; .macro ; v_readfirstlane_b32 s0 t0 {LAST} {ADD} v4 s0 v4 ;",
    ),
}  # fmt: skip


def _asked(sass: str, live_out: tuple[str, ...]) -> CutRegion:
    part = region(sass, live_out)
    assert part.block.macros
    return part


@pytest.mark.parametrize("name", RIGHT)
def test_right_code_is_proved(name: str) -> None:
    sass, live_out, answer = RIGHT[name]
    got = judged(_asked(sass, live_out), answer)
    assert got.accepted, got
    assert any(reading.startswith("rules' code of ") for reading in got.proved or ())


@pytest.mark.parametrize("name", WRONG)
def test_wrong_code_is_not(name: str) -> None:
    sass, live_out, answer = WRONG[name]
    part = _asked(sass, live_out)
    got = judged(part, answer)
    assert got.reason in ("refuted", "unknown", "accesses"), got
    assert part.asked is not None  # nor does the proof rely on the gate's other checks
    code = read_code(answer.split(), part.asked)
    try:
        verdict = Prover().region(part.block, REGS, part.live_out, code)
    except EncodeError:  # a value that is not known to be uniform has no word
        return
    assert not isinstance(verdict, Proved)


def _judged(part: CutRegion, code: list[list[Inst]], prover: Prover | None = None) -> Judgement:
    sass, macros = part.block.instructions, part.block.macros
    rules = [item for group in opened(part.code, sass, macros) for item in group]
    gate = Gate(24, cheaper=False, prover=prover)
    return gate.judge(part.block, REGS, part.live_out, code, rules)


TWO = "SHFL.BFLY PT, R4, R3, 0x1, 0x1f; VOTE.ANY R5, PT, P0; IADD3 R6, R4, R5, RZ"
Forge = Callable[[list[list[Inst]]], list[list[Inst]]]
FORGED: dict[str, Forge] = {
    "dropped": lambda c: [[], *c[1:]],
    "twice": lambda c: [[*c[0], *c[0]], *c[1:]],
    "in other code": lambda c: [*c[:2], [*c[0], *c[2]]],
    "with other code": lambda c: [[*c[0], *c[2]], c[1], []],
    "reordered": lambda c: [c[1], c[0], c[2]],
    "at the end": lambda c: [[], [], [*c[0], *c[1], *c[2]]],
    "with other operands": lambda c: [[replace(c[0][0], args=c[1][0].args)], *c[1:]],
}


@pytest.mark.parametrize("name", FORGED)
def test_a_macro_is_all_of_its_instruction_s_code(name: str) -> None:
    part = _asked(TWO, ("R4", "R5", "R6"))
    code = [[i for i in group if isinstance(i, Inst)] for group in part.code]
    assert _judged(part, code).accepted
    got = _judged(part, FORGED[name](code))
    assert got.reason == "malformed", got


@pytest.mark.parametrize("lost", ["nothing", "s_waitcnt", "buffer_gl"])
def test_its_code_cannot_be_written_out(lost: str) -> None:
    """Not even as it is: waits and caches of a fence are written by the rules alone."""
    part = _asked(FENCE, ("R4", "R5", "R6"))
    code = [[i for i in group if isinstance(i, Inst)] for group in part.code]
    (macro,) = part.block.macros.values()
    inner = [i for i in macro.items if isinstance(i, Inst)]
    left = [i for i in inner if not i.op.startswith(lost)]
    assert len(left) < len(inner) or lost == "nothing"
    got = _judged(part, [code[0], left, *code[2:]])
    assert got.reason == "malformed", got


def test_words_have_no_other_macros() -> None:
    part = _asked(SHUFFLE, SHUFFLE_OUT)
    assert part.asked is not None
    for answer in (
        f".macro ; .macro ; {LAST} ;",
        f"{SUM} ; .macro ; .macro {LAST} ;",
        f"{SUM} ; .macro ; {LAST} ; .macro ;",
    ):
        with pytest.raises(EncodeError):
            read_code(answer.split(), part.asked)


def test_a_proof_is_of_one_code_of_the_macro() -> None:
    """Equal words of a question do not make equal code: what another kernel's macro overwrites is
    part of the key."""
    part = _asked(SHUFFLE, SHUFFLE_OUT)
    ((offset, macro),) = part.block.macros.items()
    (result,) = (i for i in macro.items if isinstance(i, Inst) and i.op.startswith("ds_bpermute"))
    spoils = Inst("v_mov_b32", (replace(result.args[0], index=REGS.vtemp_base + 5), result.args[0]))  # type: ignore[type-var]
    other = Macro(macro.inst, (*macro.items, spoils))
    answer = f"{SUM} {ADD} t5 v1 v5 ; .macro ; v_mov_b32 v4 t5 ;"
    prover = Prover()
    for block in (part.block, replace(part.block, macros={offset: other})):
        asked = region_text(block, REGS, part.live_out)
        code = [list(group) for group in read_code(answer.split(), asked)]
        got = _judged(replace(part, block=block), code, prover)
        assert got.accepted == (block is part.block), got


def test_what_is_no_macro() -> None:
    """Code that depends on a temporary of the code before it, or leaves its block."""
    part = _asked(SHUFFLE, SHUFFLE_OUT)
    (macro,) = part.block.macros.values()
    temp = V(REGS.vtemp_base + 9)
    reads = Inst("v_mov_b32", (temp, V(REGS.vtemp_base + 8)))
    assert macro_of((*macro.items, Inst("v_mov_b32", (temp, V(1)))), REGS) is not None
    assert macro_of((*macro.items, reads), REGS) is None
    assert macro_of((*macro.items, Inst("s_branch", (LabelRef("Lelsewhere"),))), REGS) is None
    assert macro_of((*macro.items, Inst("s_endpgm", ())), REGS) is None
    assert macro_of((*macro.items, Inst("s_mov_b32", (REGS.save_exec, I(0)))), REGS) is None
    assert macro_of((), REGS) is None
