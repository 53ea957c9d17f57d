"""A rule: the instructions that it takes, and the code that it writes for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.builder.rule_emitter import RuleEmitter

Emit = Callable[[RuleEmitter], None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A named way to translate one mnemonic; the first whose guard holds is used."""

    name: str
    source: str  # SASS mnemonic
    emit: Emit
    guard: Callable[[Instruction], bool] = lambda _: True
    temporaries: int = 24  # vector temporaries that a kernel with it gets at first
    modifiers: frozenset[str] = frozenset()  # handled ones; any other refuses the instruction


def knowing(known: Mapping[str, str], *rules: Rule) -> tuple[Rule, ...]:
    """The rules with the modifiers that they handle: the entry of ``known`` under a rule's name, or
    else under its mnemonic, which an instruction of the uniform data path shares with its vector
    counterpart.  A rule that already has modifiers keeps them; a rule without an entry raises
    KeyError."""
    out: list[Rule] = []
    for rule in rules:
        keys = (rule.name, rule.source, rule.source.removeprefix("U"))
        key = next((k for k in keys if k in known), rule.name)
        given = rule.modifiers or frozenset(known[key].split())
        out.append(replace(rule, modifiers=given))
    return tuple(out)


def choose(rules: Sequence[Rule], ins: Instruction) -> Rule | None:
    """The first rule that takes the instruction."""
    for rule in rules:
        if rule.guard(ins):
            return rule
    return None
