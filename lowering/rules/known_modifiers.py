"""Modifiers that a rule does not handle: they refuse the instruction.

A rule tests the modifiers that it implements, and would silently ignore the others.  So each file
of rules lists in its ``KNOWN`` the modifiers that its rules translate or refuse, and those that
change nothing in an in-order execution: cache and eviction hints, the pipe that computes (.MMA),
hints for the scheduler.
"""

from __future__ import annotations

from functools import lru_cache

from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.rules.rule import Rule


def unknown_modifiers(ins: Instruction, rule: Rule) -> list[str]:
    """The modifiers of ``ins`` that the rule does not handle, in printed order."""
    return list(_unknown(ins.modifiers, rule.modifiers)) if ins.modifiers else []


@lru_cache(maxsize=1 << 12)
def _unknown(printed: tuple[str, ...], known: frozenset[str]) -> tuple[str, ...]:
    return tuple(m for part in printed for m in part.split(".") if m and m not in known)
