"""Hand-written code that branches and writes EXEC, followed for each lane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.tables.spec import GENERATION_OF
from sassxlate.errors import LoweringError, SassxlateError
from sassxlate.lowering.abi.kernarg import bank_layout
from sassxlate.lowering.builder.kernel_builder import KernelBuilder
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.convergence.sync_points import Syncs
from sassxlate.lowering.lane_checks.handwritten import HELPED, faults, is_sequence
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.select import instruction
from sassxlate.lowering.verify.rules.forms import cases, rows
from sassxlate.lowering.verify.rules.one_instruction import (
    SURROUNDINGS,
    Surroundings,
    registers,
    selected,
)
from tests.lowering.rules.host_waves import code_of

EXEC, P0 = Sp("exec_lo"), S(88)
SAVE, MASK, OTHER = S(4), S(5), S(6)
INS = decode(assemble("IADD3 R8, R4, R4, RZ ;", 90, 0), 0, 90)
REGS: RegisterMap = registers(INS, "together")
R4, R8, T0 = V(4), V(8), V(REGS.vtemp_base)


def _saved(*inner: Item) -> list[Item]:
    return [Inst("s_mov_b32", (SAVE, EXEC)), *inner, Inst("s_mov_b32", (EXEC, SAVE))]


def _compare(mask: S) -> Inst:
    return Inst("v_cmp_eq_u32", (mask, I(1), R4))


def _texts(items: Sequence[Item], *, helps: bool = False) -> set[str]:
    return {f.text for f in faults(items, REGS, helps=helps)}


SOUND: dict[str, list[Item]] = {
    "narrowed and put back": _saved(_compare(MASK), Inst("s_and_b32", (EXEC, EXEC, MASK))),
    "a loop that each lane leaves": [
        *_saved(
            Inst("s_cbranch_execz", (LabelRef("done"),)),
            Label("again"),
            Inst("global_load_b32", (T0, V(4, 2), Sp("off"))),
            _compare(MASK),
            Inst("s_and_not1_b32", (EXEC, EXEC, MASK)),
            Inst("s_cbranch_execnz", (LabelRef("again"),)),
            Label("done"),
        ),
        Inst("v_mov_b32", (R8, T0)),
    ],
    "who has been served is taken out, of all": _saved(
        Inst("s_mov_b32", (OTHER, EXEC)),
        _compare(MASK),
        Inst("s_and_b32", (EXEC, EXEC, MASK)),
        _compare(MASK),
        Inst("s_and_not1_b32", (OTHER, OTHER, MASK)),
        Inst("s_mov_b32", (EXEC, OTHER)),
        Inst("v_mov_b32", (R8, R4)),
    ),
    "a choice by a comparison of all": _saved(
        _compare(MASK),
        Inst("s_and_b32", (EXEC, EXEC, P0)),
        Inst("v_cndmask_b32", (R8, R4, R8, MASK)),
    ),
    "a jump over code that no lane runs": [
        Inst("s_cbranch_execz", (LabelRef("done"),)),
        Inst("v_mov_b32", (T0, R4)),
        Label("done"),
        Inst("v_mov_b32", (R8, T0)),
    ],
}  # fmt: skip

WRONG: dict[str, tuple[str, list[Item]]] = {
    "not put back": (
        "ends without a lane",
        [_compare(MASK), Inst("s_and_b32", (EXEC, EXEC, MASK))],
    ),
    "not put back on one way": (
        "ends without a lane",
        [
            Inst("s_mov_b32", (SAVE, EXEC)),
            _compare(MASK),
            Inst("s_and_b32", (EXEC, EXEC, MASK)),
            Inst("s_cbranch_execz", (LabelRef("done"),)),
            Inst("s_mov_b32", (EXEC, SAVE)),
            Label("done"),
        ],
    ),
    "all lanes at the end": ("ends with a new lane", [Inst("s_mov_b32", (EXEC, I(0xFFFFFFFF)))]),
    "a comparison of some, asked of all": (
        "drops a lane by a comparison that it took no part in",
        _saved(
            _compare(MASK),
            Inst("s_and_b32", (EXEC, SAVE, MASK)),
            _compare(OTHER),
            Inst("s_and_b32", (EXEC, SAVE, OTHER)),
        ),
    ),
    "a comparison of some, chosen by": (
        "selects by a comparison that the lane took no part in",
        [
            *_saved(Inst("s_and_b32", (EXEC, EXEC, P0)), _compare(MASK)),
            Inst("v_cndmask_b32", (R8, R4, R8, MASK)),
        ],
    ),
    "the negation of a comparison of some": (
        "drops a lane by a comparison that it took no part in",
        _saved(
            Inst("s_and_b32", (EXEC, EXEC, P0)),
            _compare(MASK),
            Inst("s_not_b32", (MASK, MASK)),
            Inst("s_and_b32", (EXEC, SAVE, MASK)),
        ),
    ),
    "a value of some, read by all": (
        "reads a temporary that a present lane has not written",
        [
            *_saved(Inst("s_and_b32", (EXEC, EXEC, P0)), Inst("v_mov_b32", (T0, R4))),
            Inst("v_mov_b32", (R8, T0)),
        ],
    ),
    "a result in a lane that waits elsewhere": (
        "writes a register of an absent lane",
        _saved(Inst("s_mov_b32", (EXEC, I(0xFFFFFFFF))), Inst("v_mov_b32", (R8, R4))),
    ),
    "a store of a lane that waits elsewhere": (
        "accesses memory for an absent lane",
        _saved(
            Inst("s_mov_b32", (EXEC, I(1))),
            Inst("global_store_b32", (V(4, 2), R8, Sp("off"))),
        ),
    ),
    "a branch elsewhere": ("is left by a branch", [Inst("s_branch", (LabelRef("elsewhere"),))]),
}


def _always(_: Instruction) -> bool:
    return True


@pytest.mark.parametrize("name", SOUND)
def test_sound(name: str) -> None:
    assert _texts(SOUND[name]) == set()


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    text, items = WRONG[name]
    assert is_sequence(items)
    assert _texts(items) == {text}


def test_a_wave_that_helps_may_reach_memory_and_no_register() -> None:
    store = WRONG["a store of a lane that waits elsewhere"][1]
    assert _texts(store, helps=True) == set()
    result = WRONG["a result in a lane that waits elsewhere"][1]
    assert _texts(result, helps=True) == _texts(result)


def test_a_call_that_once_lost_lanes() -> None:
    """EXEC stayed with the lanes of the first function when the address was compared again."""
    state = code_of(("vprintf", "malloc"))
    assert faults(state.items, state.regs) == ()
    skip = next(n for n, i in enumerate(state.items) if isinstance(i, Label))
    skips = [n for n, i in enumerate(state.items) if isinstance(i, Label) and "Lother" in i.name]
    assert skip <= skips[0]
    old = [*state.items[: skips[0] + 1], *state.items[skips[0] + 2 :]]
    found = {f.text for f in faults(old, state.regs)}
    assert found == {"drops a lane by a comparison that it took no part in"}


@pytest.mark.sources  # a method of a compiled class takes no stand-in for its object
def test_break_changes_the_masks_of_lanes_that_wait() -> None:
    """Barriers' masks, one word per lane, are the only register that code writes in other lanes."""
    masks = V(40)
    regs = replace(REGS, barriers={6: masks.index})
    state = KernelBuilder("break", 90, bank_layout(90), regs, {}, frozenset())
    c = RuleEmitter(state, INS, converged=False)
    save = c.stemp()
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    Syncs._break_masks(cast("Any", SimpleNamespace(k=state)), c, masks)  # pyright: ignore[reportPrivateUsage]
    c.raw(Inst("s_mov_b32", (EXEC, save)))
    assert faults(state.items, regs) == ()
    found = {f.text for f in faults(state.items, REGS)}
    assert found == {"writes a register of an absent lane"}


@pytest.mark.sources
def test_what_is_wrong_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that loses lanes refuses its instruction."""

    def narrows(c: RuleEmitter) -> None:
        mask = c.stemp()
        c.emit("v_cmp_eq_u32", mask, I(1), c.vsrc("Ra"))
        c.raw(Inst("s_and_b32", (EXEC, EXEC, mask)))
        c.emit("v_mov_b32", c.dst_last(), I(1))

    ins = decode(assemble("SHFL.IDX PT, R8, R4, R4, 0x1f ;", 90, 0), 0, 90)
    assert selected(ins, "together").items
    rule = replace(instruction.TABLE["SHFL"][0], emit=narrows, guard=_always)
    changed = {**instruction.TABLE, "SHFL": (rule,)}
    monkeypatch.setattr(instruction, "TABLE", changed)
    with pytest.raises(LoweringError, match="ends without a lane") as caught:
        selected(ins, "together")
    assert caught.value.code == "SX0431"


def _last_restore(items: Sequence[Item]) -> int | None:
    """The last instruction that sets EXEC from a register, if only moves follow it."""
    found = [
        n for n, i in enumerate(items)
        if isinstance(i, Inst) and i.op == "s_mov_b32" and i.args[0] == EXEC
        and isinstance(i.args[1], S)
    ]  # fmt: skip
    return found[-1] if found else None


# Words with sequences of their own, one per kind; the last restore of EXEC is removed.
RESTORING = (
    "ATOMG.E.ADD.F64.RN.STRONG.GPU PT, R16, desc[UR4][R4.64], R8",
    "ATOMG.E.ADD.BF16x2.RN.STRONG.GPU PT, R16, desc[UR4][R4.64], R8",
    "MATCH.ANY R16, R4",
    "SYNCS.ARRIVE.TRANS64.A1T0 R16, [R4+UR24], R8",
    "SYNCS.EXCH.64 URZ, [UR4], UR6",
    "UBLKCP.S.G [UR4], [UR8], UR12",
    "LDGSTS.E.128 [R4], desc[UR4][R8.64], P0",
)


@pytest.mark.parametrize("text", RESTORING)
def test_the_last_restore_is_missed(text: str) -> None:
    ins = decode(assemble(text + " ;", 90, 0), 0, 90)
    state = selected(ins, "together")
    helps = ins.mnemonic in HELPED
    assert faults(state.items, state.regs, helps=helps) == ()
    at = _last_restore(state.items)
    assert at is not None
    left = [*state.items[:at], *state.items[at + 1 :]]
    assert faults(left, state.regs, helps=helps)


def _own_code(ins: Instruction, around: Surroundings) -> bool | None:
    """Whether the code of a word has lanes of its own, its guard apart; None where it is refused,
    but not for what it does to lanes."""
    try:
        return is_sequence(selected(ins, around).items) and ins.guard.is_true
    except SassxlateError as e:
        if e.code == "SX0431":
            raise
        return None


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [75, 80, 90, 120])
def test_words_of_every_form(arch: int) -> None:
    generation = GENERATION_OF[arch]
    found: Counter[str] = Counter()

    def usable(ins: Instruction) -> bool:
        return _own_code(ins, "together") is not None

    for row in rows(generation, lambda _: True):
        every = [*cases(row, arch, generation, 8, 1, usable)]
        for case in every[:: max(1, len(every) // 60)]:
            for around in SURROUNDINGS:
                found[case.ins.mnemonic] += bool(_own_code(case.ins, around))
    print(arch, dict(+found))
    assert {"MATCH", "ATOM", "IMMA"} <= set(+found)
