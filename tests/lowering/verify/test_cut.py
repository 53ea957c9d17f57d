"""Instructions whose rule was tested on inputs: passed over if the code is the rule's, and only
then."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.lowering.verify import Proved, Refuted, Unknown, verify
from sassxlate.lowering.verify.block import trusted_instructions
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.rdna3.frame import frame
from sassxlate.lowering.verify.verdict import Undecided

from .defects import arg, block, drop, first, last, op

SHUFFLE = "SHFL.IDX PT, R10, R2, R4, 0x1f"


@pytest.mark.parametrize(
    "text",
    [
        SHUFFLE,
        "SHFL.BFLY P3, R10, R2, 0x1, 0x1f",
        "VOTE.ANY R10, P3, P0",
        "VOTEU.ALL UR4, UPT, P0",
        "MATCH.ANY R10, R2",
        "REDUX.SUM UR4, R2",
        "@P0 SHFL.UP P3, R10, R2, 0x1, RZ",
        f"@P0 IADD3 R2, R2, 0x1, RZ; {SHUFFLE}; IADD3 R10, R10, R2, RZ",
    ],
)
def test_passed_over(text: str) -> None:
    made = block(text)
    verdict = verify(made, tested=True)
    assert isinstance(verdict, Proved), verdict
    assert any(reading.startswith("tested rule ") for reading in verdict.modulo)
    assert isinstance(verify(made), Unknown), "only where it is asked for"


@pytest.mark.parametrize(
    "change",
    [
        op("v_and_b32", "v_or_b32"),
        drop("v_lshlrev_b32"),
        arg("ds_bpermute", 2, V(3)),
        first(Inst("v_mov_b32", (V(17), I(0)))),
        last(Inst("v_mov_b32", (V(9), I(0)))),
        last(Inst("s_mov_b32", (Sp("exec_lo"), I(1)))),
        last(Inst("s_mov_b32", (S(12), I(0)))),
    ],
)
def test_other_code(change: object) -> None:
    """Tests of a rule do not cover code that differs in one bit."""
    assert callable(change)
    made = block(SHUFFLE)
    other = replace(made, rdna=[change(list(made.rdna[0]))])
    assert not isinstance(verify(other, tested=True), Proved)


def test_another_source() -> None:
    """The sides must agree on what the instruction reads."""
    made = block(f"IADD3 R2, R2, 0x1, RZ; {SHUFFLE}")
    wrong = arg("v_add_nc", 2, I(2))(list(made.rdna[0]))
    verdict = verify(replace(made, rdna=[wrong, made.rdna[1]]), tested=True)
    assert isinstance(verdict, Refuted)


def test_untried(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: Instruction) -> None:
        return None

    monkeypatch.setattr(trusted_instructions, "rule_evidence", nothing)
    verdict = verify(block(SHUFFLE), tested=True)
    assert isinstance(verdict, Unknown)
    assert "not tested" in verdict.reason


def test_clocks() -> None:
    verdict = verify(block("CS2R R10, SR_CLOCKLO"), tested=True)
    assert verdict == Proved(("clocks read anything",))


_EXEC = Sp("exec_lo")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ([Inst("s_mov_b32", (_EXEC, I(1)))], "EXEC is not restored"),
        ([Inst("s_mov_b32", (_EXEC, I(-1))), Inst("v_mov_b32", (V(3), I(0)))], "inactive"),
        ([Inst("v_writelane_b32", (V(3), S(4), I(0)))], "inactive"),
        ([Inst("global_store_b32", (V(2, 2), V(4), Sp("off")))], "not access memory"),
        ([Inst("s_denorm_mode", (), imm=0)], "MODE"),
        ([Inst("s_branch", (), imm=7)], "leaves"),
        ([Inst("s_or_b32", (_EXEC, _EXEC, S(4)))], "EXEC is not restored"),
    ],
)
def test_frame(code: list[Inst], why: str) -> None:
    placed = [Placed(inst, 4 * i, 4 * i + 4) for i, inst in enumerate(code)]
    with pytest.raises(Undecided, match=why):
        frame(placed, frozenset())


def test_loop_in_a_frame() -> None:
    """Lanes leave a loop one by one; after it EXEC is restored."""
    code = [
        Inst("s_mov_b32", (S(4), _EXEC)),
        Inst("v_cmp_eq_u32", (S(5), V(2), V(3))),
        Inst("v_mov_b32", (V(9), I(1))),
        Inst("s_and_not1_b32", (_EXEC, _EXEC, S(5))),
        Inst("s_cbranch_execnz", (), imm=-4),
        Inst("s_mov_b32", (_EXEC, S(4))),
        Inst("s_and_not1_b32", (S(6), S(6), _EXEC)),
        Inst("s_or_b32", (S(6), S(6), S(5))),
    ]
    found = frame([Placed(i, 4 * n, 4 * n + 4) for n, i in enumerate(code)], frozenset())
    assert found.keeps(6)
    assert not found.keeps(5)


def test_dead_here() -> None:
    """A register that is dead after a block may be needed where other lanes wait."""
    made = replace(block("IADD3 R10, R4, R2, RZ"), live_out=frozenset[RegRef]())
    assert isinstance(verify(made), Proved)
    wide = [
        first(Inst("s_mov_b32", (S(2), _EXEC))),
        first(Inst("s_mov_b32", (_EXEC, I(-1)))),
        last(Inst("s_mov_b32", (_EXEC, S(2)))),
    ]
    code = wide[0](wide[2](wide[1](list(made.rdna[0]))))
    assert isinstance(verify(replace(made, rdna=[code])), Refuted)
