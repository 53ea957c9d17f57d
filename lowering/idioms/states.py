"""Registers of a lane as expressions, through blocks and through whole functions without loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sassxlate.cfg import Cfg
from sassxlate.cfg.build import conditions, is_state_test
from sassxlate.cfg.graph import SIZE, Block
from sassxlate.disasm.sass.instruction import (
    Const,
    Imm,
    Instruction,
    Label,
    Pred,
    PredFile,
    Reg,
    RegFile,
    RegRef,
    Special,
)
from sassxlate.disasm.sass.semantics import evaluate, semantics_table
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.disasm.sass.traits import acquires, traits
from sassxlate.lowering.idioms.expressions import Expressions

Registers = dict[RegRef, int]
_MOST = 300  # blocks on all paths through a function


class NoExpression(Exception):
    """Code that is more than expressions: memory, other lanes, loops, calls."""


@dataclass
class State:
    """A lane's registers.  ``missing`` makes the value of one that is read before it is written.
    A value that is ``hidden`` is written as another one, of which nothing is known."""

    graph: Expressions
    missing: Callable[[RegRef], int]
    registers: Registers = field(default_factory=Registers)
    facts: dict[int, int] = field(default_factory=dict[int, int])  # truth values that are known
    hidden: Mapping[int, int] = field(default_factory=dict[int, int])

    def copy(self) -> State:
        registers, facts = dict(self.registers), dict(self.facts)
        return State(self.graph, self.missing, registers, facts, self.hidden)

    def read(self, ref: RegRef) -> int:
        found = self.registers.get(ref)
        return self.known(self.missing(ref) if found is None else found)

    def known(self, value: int) -> int:
        """A value, given the facts."""
        graph, facts = self.graph, self.facts
        while facts and graph.ops[value] == "select":
            c, a, b = graph.args[value]
            sure = facts.get(c)
            if sure is None:
                return value
            value = a if sure else b
        sure = facts.get(value) if graph.widths[value] == 1 else None
        if sure is None and graph.ops[value] == "not":
            other = facts.get(graph.args[value][0])
            sure = None if other is None else 1 - other
        return value if sure is None else graph.const(sure, 1)

    def assume(self, condition: int, truth: int) -> None:
        graph = self.graph
        while graph.ops[condition] == "not":
            condition, truth = graph.args[condition][0], 1 - truth
        if graph.value(condition) is not None:
            return
        self.facts[condition] = truth
        if truth and graph.ops[condition] == "and":
            for part in graph.args[condition]:
                self.assume(part, 1)

    # As the source of the semantics' operands.

    def reg(self, file: RegFile, index: int) -> int:
        return self.read(RegRef(file, index))

    def pred(self, file: PredFile, index: int) -> int:
        return self.read(RegRef(file, index))

    def const(self, operand: Const, word: int) -> int:
        if operand.ur is not None or operand.index is not None or operand.place % 4:
            raise NoSemantics("an indexed constant")
        return self.graph.leaf("constant", 32, operand.bank, operand.place + 4 * word)

    def special(self, operand: Special) -> int:
        raise NoSemantics("a special register")

    def truth(self, some: Sequence[Pred]) -> int:
        """The conjunction of predicates."""
        d, out = self.graph, self.graph.const(1, 1)
        for p in some:
            value = d.const(1, 1) if p.index == 7 else self.pred(p.file, p.index)
            out = d.and_(out, d.not_(value) if p.inv else value)
        return out

    # Steps.

    def step(self, ins: Instruction) -> None:
        """One instruction.  Raises NoExpression if it is not pure."""
        if acquires([ins], earlier=False):
            raise NoExpression("an order of memory")
        if not ins.writes or all(ref.file == "B" for ref in ins.writes):
            if traits(ins).memory is not None or traits(ins).lanes:
                raise NoExpression(ins.text)
            return
        if not traits(ins).pure or ins.mnemonic not in semantics_table():
            raise NoExpression(ins.text)
        guard = self.truth([ins.guard])
        where = self
        if not ins.guard.is_true:
            where = State(self.graph, self.missing, self.registers, dict(self.facts))
            where.assume(guard, 1)
        try:
            written = evaluate(self.graph, semantics_table()[ins.mnemonic], ins, where)
        except NoSemantics as none:
            raise NoExpression(ins.text) from none
        self._write(guard, written)

    def _write(self, guard: int, written: Registers) -> None:
        for ref, value in written.items():
            sure = self.graph.value(guard)
            old = value if sure else self.read(ref)
            new = self.graph.select(guard, value, old)
            self.registers[ref] = self.hidden.get(new, new)

    def any_step(self, ins: Instruction, unknown: Callable[[RegRef, int], int]) -> None:
        """One instruction; results of what is not pure are unknown."""
        try:
            self.step(ins)
        except NoExpression:
            self._write(
                self.truth([ins.guard]), {ref: unknown(ref, ins.offset) for ref in ins.writes}
            )


def through(cfg: Cfg, entry: int, state: State, back: int | None = None) -> State:
    """The registers when a function returns.  ``entry`` is its first block's index, ``back`` the
    offset that it must return to, if that is known.

    Raises NoExpression if it does more than compute, has a loop, or may return elsewhere.
    """
    return _Ends(cfg, back).of(cfg.blocks[entry], state)


class _Ends:
    """The state at the end of all paths from a block."""

    def __init__(self, cfg: Cfg, back: int | None) -> None:
        self.cfg, self.back, self.left = cfg, back, _MOST

    def of(self, block: Block, state: State) -> State:
        self.left -= 1
        if self.left < 0:
            raise NoExpression("too many paths")
        last = block.last
        ends = traits(last).ends_block
        for ins in block.instructions[:-1] if ends else block.instructions:
            state.step(ins)
        edges = self.cfg.successors[block.index]
        kind = traits(last).transfer if ends else ""
        if kind == "return" and all(p.is_true for p in conditions(last)):
            if self.back is not None and self._target(last, state) != self.back:
                raise NoExpression("a return to another place")
            return state
        starts = {e.kind: self.cfg.blocks[e.dst] for e in edges}
        if kind in ("", "wait") and len(edges) == 1:
            return self.of(self.cfg.blocks[edges[0].dst], state)
        if kind != "jump" or last.mnemonic != "BRA" or last.has("ANY") or is_state_test(last):
            raise NoExpression(last.text)
        where = state.truth(conditions(last))
        sure = state.graph.value(where)
        if sure is not None:
            return self.of(starts["taken" if sure else "fall"], state)
        if starts.keys() != {"taken", "fall"}:
            raise NoExpression(last.text)
        other = state.copy()
        other.assume(where, 0)
        state.assume(where, 1)
        other = self.of(starts["fall"], other)
        taken = self.of(starts["taken"], state)
        return chosen(where, taken, other)

    @staticmethod
    def _target(ins: Instruction, state: State) -> int | None:
        """Where a RET goes, if its register is known."""
        register, disp, label = (ins.get(role) for role in ("Ra", "disp", "target"))
        if not isinstance(register, Reg) or not (ins.has("REL") or ins.has("ABS")):
            return None
        low = state.graph.value(state.read(RegRef(register.file, register.index)))
        if isinstance(label, Label):
            add = label.target
        else:
            add = disp.value if isinstance(disp, Imm) else 0
            add += 0 if ins.has("ABS") else ins.offset + SIZE
        return None if low is None else low + add & 0xFFFFFFFF


def chosen(where: int, yes: State, no: State) -> State:
    """One state or the other."""
    out = State(yes.graph, yes.missing)  # facts of either hold there no longer
    for ref in yes.registers.keys() | no.registers.keys():
        out.registers[ref] = yes.graph.select(where, yes.read(ref), no.read(ref))
    return out


__all__ = ["NoExpression", "Registers", "State", "chosen", "through"]
