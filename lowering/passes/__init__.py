"""Passes over finished instructions, each a function from a list to a list."""

from __future__ import annotations

from collections.abc import Callable

from sassxlate.disasm.rdna3.instruction import Item
from sassxlate.lowering.passes.hazards import insert_hazards
from sassxlate.lowering.passes.waitcnt import insert_waitcnt

Pass = Callable[[list[Item]], list[Item]]

PASSES: tuple[tuple[str, Pass], ...] = (("waits", insert_waitcnt), ("hazards", insert_hazards))
