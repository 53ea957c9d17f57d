"""A kernel's sequences are each followed once, whatever registers of the program they name."""

from __future__ import annotations

from contextlib import suppress

import pytest

from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.errors import LoweringError
from sassxlate.lowering.lane_checks import checked
from sassxlate.lowering.lane_checks.checked import Checked
from sassxlate.lowering.verify.rules.one_instruction import registers

EXEC = Sp("exec_lo")
SAVE, MASK = S(4), S(5)
INS = decode(assemble("IADD3 R8, R4, R4, RZ ;", 90, 0), 0, 90)
REGS = registers(INS, "together")
T0 = V(REGS.vtemp_base)


def _loop(to: V, source: V, number: int, label: str, last: S = SAVE) -> list[Item]:
    """Lanes leave one by one; at the end EXEC is ``last``."""
    return [
        Inst("s_mov_b32", (SAVE, EXEC)),
        Label(label),
        Inst("v_mov_b32", (T0, I(number))),
        Inst("v_cmp_eq_u32", (MASK, I(number), source)),
        Inst("s_and_not1_b32", (EXEC, EXEC, MASK)),
        Inst("s_cbranch_execnz", (LabelRef(label),)),
        Inst("s_mov_b32", (EXEC, last)),
        Inst("v_mov_b32", (to, source)),
    ]


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with each sequence that is followed."""
    calls: list[int] = []
    real = checked.faults

    def counted(*args: object, **more: object) -> object:
        calls.append(1)
        return real(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(checked, "faults", counted)
    return calls


def test_registers_numbers_and_names_of_labels_make_no_other_sequence(
    followed: list[int],
) -> None:
    done = Checked(REGS)
    for n in range(1, 9):
        done.check("k", INS, _loop(V(n), V(n + 1), 7 * n, f"L{n}"))
    assert len(followed) == 1


@pytest.mark.parametrize(
    "other",
    [
        _loop(V(1), V(2), 7, "a", last=MASK),  # another scalar register
        _loop(T0, V(2), 7, "a"),  # a temporary in the place of a register
        _loop(V(1), V(2), 0xFFFFFFFF, "a"),  # a number that is a mask of all lanes
        [*_loop(V(1), V(2), 7, "a")[2:], Label("a")],  # a label elsewhere
    ],
)
def test_what_affects_a_lane_makes_another(followed: list[int], other: list[Item]) -> None:
    done = Checked(REGS)
    done.check("k", INS, _loop(V(1), V(2), 7, "a"))
    with suppress(LoweringError):
        done.check("k", INS, other)
    assert len(followed) == 2


def test_a_wrong_one_is_refused_each_time(followed: list[int]) -> None:
    done = Checked(REGS)
    done.check("k", INS, _loop(V(1), V(2), 7, "a"))
    for _ in range(2):
        with pytest.raises(LoweringError, match="ends without a lane") as caught:
            done.check("k", INS, _loop(V(1), V(2), 7, "a", last=MASK))
        assert caught.value.code == "SX0431"
    assert len(followed) == 3
