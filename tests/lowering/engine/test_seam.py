"""A made-up proposer goes the whole way: what is right runs, the rest is refused and counted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from sassxlate import compiled
from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, Sp, V
from sassxlate.errors import ModelError
from sassxlate.lowering.engine.engine import Engine
from sassxlate.lowering.engine.gate import Gate
from sassxlate.lowering.engine.report import EngineReport
from sassxlate.lowering.engine.seam import Proposals, Question, malformed
from sassxlate.lowering.engine.search import SearchProposer
from sassxlate.lowering.pipeline import translate_kernel
from tests.lowering import emulated
from tests.lowering.engine.test_gate import hybrid

KERNEL = "carry_chains"
Group = tuple[Inst, ...]


def without_multiplication(group: Group) -> Group:
    """Right: x * 1 + y is x + y."""
    if len(group) < 2 or group[0].op != "v_mul_lo_u32" or group[0].args[2] != I(1):
        return group
    product, factor, _ = group[0].args
    return tuple(replace(i, args=tuple(factor if a == product else a for a in i.args))
                 for i in group[1:])  # fmt: skip


def of_24_bits(group: Group) -> Group:
    """Wrong: v_mad_u32_u24 reads 24 bits of each factor."""
    if [i.op for i in group] != ["v_mul_lo_u32", "v_add_nc_u32"]:
        return group
    return (Inst("v_mad_u32_u24", (group[1].args[0], *group[0].args[1:], group[1].args[2])),)


@dataclass
class MadeUp:
    name: str = "made-up"

    def propose(self, question: Question) -> Proposals:
        if any(ins.mnemonic == "LDC" for ins in question.region.instructions):
            return Proposals(cast(Any, (("v_mov_b32 v0, v1",), question.rules[:-1], 7)))
        right = tuple(map(without_multiplication, question.rules))
        wrong = tuple(map(of_24_bits, question.rules))
        return Proposals(tuple(code for code in (wrong, right) if code != question.rules))


def test_the_whole_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's contract is checked on the emulated device with what was accepted in it."""
    done, report = hybrid(monkeypatch, KERNEL, Engine(MadeUp(), "made-up"))
    assert report.outcomes.keys() >= {"accepted", "refuted", "malformed", "none"}
    assert sum(report.outcomes.values()) == len(report.blocks)
    assert report.as_dict()["outcomes"] == report.outcomes
    rules = translate_kernel(emulated.load(KERNEL, 90), KERNEL)
    ops = [[i.op for i in t.selected.items if isinstance(i, Inst)] for t in (rules, done)]
    taken = [row for row in report.blocks if row.outcome == "accepted"]
    assert ops[0].count("v_mul_lo_u32") - ops[1].count("v_mul_lo_u32") == len(taken) > 0
    assert "v_mad_u32_u24" not in ops[1]
    for row in taken:
        assert (row.engine, row.verdict) == ("made-up", "Proved")
        assert row.model_cost is not None
        assert row.model_cost < row.rules_cost
    for row in report.blocks:
        if row.outcome == "malformed":
            assert re.fullmatch(r"code of 1 instructions, not \d|a group that is str.*", row.detail)
            assert row.engine == "rules"
        if row.outcome == "refuted":
            assert row.verdict == "Refuted"
            assert row.detail


def rewritten(propose: Callable[[Question], object], **settings: Any) -> EngineReport:
    @dataclass
    class Some:
        name: str = "some"

        def propose(self, question: Question) -> Proposals:
            return cast(Proposals, propose(question))

    selected = translate_kernel(emulated.load(KERNEL, 90), KERNEL).selected
    made, report = Engine(Some(), "some", **settings).rewrite(selected, KERNEL)
    assert report.accepted == 0
    assert made == selected
    return report


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (None, "TypeError: propose() returned NoneType, not Proposals"),
        ((), "TypeError: propose() returned tuple, not Proposals"),
        (Proposals(cast(Any, [()])), "TypeError: candidates are list, not a tuple"),
        (ZeroDivisionError("by nothing"), "ZeroDivisionError: by nothing"),
    ],
)
def test_an_error_is_counted(answer: object, detail: str) -> None:
    def propose(_: Question) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    report = rewritten(propose)
    details = {row.detail for row in report.blocks if row.outcome == "raised"}
    if isinstance(answer, Exception):
        assert {text.partition(" (test_seam.py:")[0] for text in details} == {detail}
    else:
        assert details == {detail}
    assert report.outcomes["raised"] == report.questions > 0
    with pytest.raises(ModelError, match="SX1007") as refused:
        rewritten(propose, cheaper=False)
    assert refused.value.where.inst  # the first instruction without proved code


@pytest.mark.parametrize("where", ["asking", "proving"])
def test_where_memory_runs_out_the_rules_code_stays(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The whole command ended there: "memory ran out", and no kernel was written."""
    left = [1]

    def short(*_: object, **__: object) -> Any:
        if left.pop() if left else False:
            raise MemoryError
        return original(*_, **__)

    owner, name = (MadeUp, "propose") if where == "asking" else (Gate, "judge")
    original = getattr(owner, name)
    monkeypatch.setattr(owner, name, short)
    done, report = hybrid(monkeypatch, KERNEL, Engine(MadeUp(), "made-up"))
    told = [row for row in report.blocks if row.detail == "memory ran out"]
    assert [row.outcome for row in told] == ["raised" if where == "asking" else "unknown"]
    assert {row.engine for row in told} == {"rules"}
    assert report.outcomes["accepted"] > 0
    assert done.code_object


def test_a_model_that_cannot_be_asked_is_an_error() -> None:
    def propose(_: Question) -> object:
        raise ModelError("SX1001", "no such file")

    with pytest.raises(ModelError, match="SX1001"):
        rewritten(propose)


def test_the_rules_code_is_dearer_than_itself() -> None:
    report = rewritten(lambda question: Proposals((question.rules,)))
    assert report.outcomes["dearer"] == report.questions == report.asked


REFUSED: Any = object()
COMPILED = compiled.state() == "used"
MOVE = Inst("v_mov_b32", (V(0), I(1)))


def _made(kind: Any, *fields: object, **others: object) -> Any:
    """A value with fields of other types; compiled code refuses them when it is made."""
    try:
        return kind(*fields, **others)
    except TypeError:
        return REFUSED


def _moved(**fields: Any) -> Any:
    if any(REFUSED is one for one in fields.get("args", ())):
        return REFUSED
    return _made(replace, MOVE, **fields)


@pytest.mark.parametrize(
    ("candidate", "why"),
    [
        (((MOVE,),), None),
        (((),), None),
        ((), "code of 0 instructions, not 1"),
        ([[MOVE]], "list, not a tuple"),
        (([MOVE],), "a group that is list, not a tuple"),
        (((MOVE, "s_nop"),), "str in the place of an instruction"),
        (((_moved(op=7),),), "an instruction with a name that is not text"),
        (((_moved(imm="0"),),), "v_mov_b32: a field that is not a number"),
        (((_moved(more=(("a", 1),)),),), "v_mov_b32: modifiers that no region has"),
        (((_moved(args=[]),),), "v_mov_b32: operands that are not a tuple"),
        (((_moved(y="v_mov_b32"),),), "str in the place of an instruction"),
        (((_moved(args=(V(0), S(-1))),),), "v_mov_b32: S(index=-1, n=1) is not an operand"),
        (((_moved(args=(V(0), V(1, 0))),),), "v_mov_b32: V(index=1, n=0) is not an operand"),
        (((_moved(args=(V(0), _made(I, 1.5))),),),
         "v_mov_b32: I(value=1.5) is not an operand"),
        (((_moved(args=(V(0), _made(Sp, None))),),),
         "v_mov_b32: Sp(name=None, n=1) is not an operand"),
        (((_moved(args=(V(0), _made(LabelRef, 1))),),),
         "v_mov_b32: LabelRef(name=1) is not an operand"),
        (((_moved(args=(V(0), 1)),),), "v_mov_b32: 1 is not an operand"),
    ],
)  # fmt: skip
def test_malformed(candidate: object, why: str | None) -> None:
    if COMPILED and candidate == ((REFUSED,),):
        pytest.skip("compiled code refused it when it was made")
    assert malformed(candidate, 1) == why


def test_the_search_needs_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a proposer like any other, and remembers by canonical form."""
    proposer = SearchProposer()
    engine = Engine(proposer, "search")
    _, report = hybrid(monkeypatch, KERNEL, engine)
    assert report.accepted > 0
    assert report.saved > 0
    assert report.outcomes.keys() <= {"accepted", "none", "macro", "guarded"}
    assert report.remembered == 0
    searched = len(proposer.memo.kept)
    assert searched == report.distinct
    _, again = hybrid(monkeypatch, KERNEL, engine)
    assert len(proposer.memo.kept) == searched
    assert again.remembered == again.distinct
    assert [replace(row, kept=False) for row in again.blocks] == [
        replace(row, kept=False) for row in report.blocks
    ]
