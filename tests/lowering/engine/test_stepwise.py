"""A block's code is judged step by step: what one step cannot have costs the others nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from sassxlate.disasm.rdna3.instruction import Inst, V
from sassxlate.lowering.engine.engine import Engine
from sassxlate.lowering.engine.seam import Code, Proposals, Question
from sassxlate.lowering.engine.search import SearchProposer
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.verify import Proved
from sassxlate.lowering.verify.steps.framing import accesses
from sassxlate.lowering.verify.steps.prover import Prover
from tests.lowering.engine.test_gate import hybrid

KERNEL = "byte_lanes"
Spoil = Callable[[Code, Code], Code]  # the search's, the rules'


@dataclass
class Spoiled:
    """The search's code for a region, with the code of one instruction spoiled."""

    spoil: Spoil
    prover: Prover = field(default_factory=Prover)
    name = "spoiled"

    def propose(self, question: Question) -> Proposals:
        (found,) = SearchProposer(self.prover).propose(question).candidates or (question.rules,)
        assert not isinstance(found, str)
        code = self.spoil(found, question.rules)  # type: ignore[arg-type]
        return Proposals((code,))


def _wrong(code: Code, rules: Code) -> Code:
    """The first changed instruction's code lacks its first line."""
    changed = [n for n, (a, b) in enumerate(zip(code, rules, strict=True)) if a and a != b]
    return tuple(g[1:] if [n] == changed[:1] else g for n, g in enumerate(code))


def _as_it_is(code: Code, _: Code) -> Code:
    return code


def test_a_wrong_step_costs_the_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's contract holds, with as much of the rest as passes."""
    saved: list[int] = []
    for spoil in (_as_it_is, _wrong):
        engine = Engine(Spoiled(spoil), "search", longest=256)
        _, report = hybrid(monkeypatch, KERNEL, engine)
        saved.append(report.saved)
        assert all(row.verdict == "Proved" for row in report.blocks if row.outcome == "accepted")
        for row in report.blocks:
            assert (row.outcome == "accepted") == (row.engine == "spoiled")
    assert 0 < saved[1] < saved[0]


def test_what_is_taken_is_proved_in_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the rules' code in the other steps, as one region, by a prover that knows nothing."""
    proposer = Spoiled(_wrong)
    engine = Engine(proposer, "search", longest=256)
    seen = 0
    from sassxlate.lowering.engine import engine as module

    def judged(*args: object) -> object:
        nonlocal seen
        found = original(*args)  # type: ignore[arg-type]
        if found is None:
            return None
        part, regs = args[0], args[1]
        rules = [[i for i in group if isinstance(i, Inst)] for group in part.code]  # type: ignore[attr-defined]
        made = list(rules)
        for first, end, got in found.got.steps:
            assert got.accepted
            old = [i for group in rules[first:end] for i in group]
            new = [i for group in got.code for i in group]
            assert accesses(new) == accesses(old)
            assert cost(new) < cost(old)
            made[first:end] = list(map(list, got.code))
        block, live = part.block, part.live_out  # type: ignore[attr-defined]
        whole = Prover(timeout_ms=20_000).region(block, regs, live, made)  # type: ignore[arg-type]
        assert isinstance(whole, Proved), whole
        seen += 1
        return found

    original = module.by_steps
    monkeypatch.setattr(module, "by_steps", judged)
    hybrid(monkeypatch, KERNEL, engine)
    assert seen > 0


def test_a_mode_without_the_rules_takes_no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from sassxlate.lowering.engine import engine as module

    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(module, "by_steps", never)
    with pytest.raises(Exception, match="SX1007"):
        hybrid(monkeypatch, KERNEL, Engine(Spoiled(_wrong), "model", cheaper=False))


def test_a_temporary_between_two_steps_joins_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is kept in a temporary for a later instruction is no end of a step."""

    def lends(code: Code, _: Code) -> Code:
        if len(code) < 2 or not code[0] or not code[1]:
            return code
        at = V(250)
        first = code[0][-1]
        if not first.op.startswith("v_") or not isinstance(first.args[0], V):
            return code
        held = (*code[0], Inst("v_mov_b32", (at, V(first.args[0].index))))
        back = (Inst("v_mov_b32", (V(first.args[0].index), at)), *code[1])
        return (held, back, *code[2:])

    _, report = hybrid(monkeypatch, KERNEL, Engine(Spoiled(lends), "search", longest=256))
    assert report.accepted
