"""Passes over finished instructions, each a function from a list to a list."""

from __future__ import annotations

from collections.abc import Iterable

from sassxlate.disasm.rdna3.instruction import Item
from sassxlate.lowering.passes.hazards import insert_hazards
from sassxlate.lowering.passes.waitcnt import insert_waitcnt
from sassxlate.lowering.target import DEFAULT, Target


def made_safe(items: Iterable[Item], target: Target = DEFAULT) -> list[Item]:
    """Code with its waits and its hazards mitigated: what any code needs before it runs."""
    return insert_hazards(insert_waitcnt(items, target), target)
