"""Modifiers that a rule does not know: they refuse the instruction.

A rule asks for the modifiers that it gives a meaning to, and would silently ignore the others.  So
each file of rules says in its ``KNOWN`` which ones its rules translate, refuse themselves, or which
change nothing in an execution in order: cache and eviction hints, the pipe that computes (.MMA),
hints for the scheduler.
"""

from __future__ import annotations

from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.rules.rule import Rule


def unknown_modifiers(ins: Instruction, rule: Rule) -> list[str]:
    """The modifiers of ``ins`` that the rule does not know, in print order."""
    return [m for part in ins.modifiers for m in part.split(".") if m and m not in rule.modifiers]
