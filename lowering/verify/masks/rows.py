"""Old code beside new code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sassxlate.disasm.rdna3.instruction import Inst, Item, Label
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.lowering.verify.masks.operations import (
    Jump,
    MaskOperation,
    Opaque,
    bits,
    meaning,
)

Meaning: TypeAlias = "MaskOperation | Opaque | Jump"


@dataclass(frozen=True, slots=True)
class Row:
    """An instruction of the old code beside that of the new code, with what they do to masks; or a
    label of both.  ``reads`` and ``writes`` are of the old one, see :func:`.operations.bits`."""

    old: Inst | None
    new: Inst | None
    label: str
    was: Meaning | None
    now: Meaning | None
    reads: int
    writes: int

    @property
    def same(self) -> bool:
        return self.old is self.new

    def other(self, new: Inst | None) -> Row:
        """The same row with other new code."""
        now = None if new is None else meaning(new)
        return Row(self.old, new, "", self.was, now, self.reads, self.writes)

    def settled(self) -> Row:
        """The new code beside itself."""
        if self.same:
            return self
        return Row(self.new, self.new, "", self.now, self.now, *_touched(self.now))


def _touched(what: Meaning | None) -> tuple[int, int]:
    match what:
        case None:
            return 0, 0
        case Jump():
            return bits((what.on,) if what.on else ()), 0
        case _:
            return bits(what.reads), bits(what.writes)


def row(old: Inst | None, new: Inst | None = None) -> Row:
    """An instruction of the old code, or (None) a place for one of the new code alone."""
    was = None if old is None else meaning(old)
    now = None if new is None else was if new is old else meaning(new)
    return Row(old, new, "", was, now, *_touched(was))


def rows_of(items: Iterable[Item]) -> list[Row]:
    """A kernel beside itself.  Raises Unfollowed if it has code that goes anywhere."""
    return [
        Row(None, None, item.name, None, None, 0, 0) if isinstance(item, Label) else row(item, item)
        for item in items
    ]


def that_matter(rows: Sequence[Row]) -> list[int]:
    """The rows but for those that read no scalar register other than EXEC, and write none, where
    such a row precedes them with the same EXEC."""
    out: list[int] = []
    running = 1 << EXEC_LO
    seen = False
    for n, one in enumerate(rows):
        plain = one.same and isinstance(one.was, Opaque) and not one.writes
        if plain and not one.reads & ~running:
            if seen or not one.reads:
                continue
            seen = True
        elif not (one.same and isinstance(one.was, Opaque) and not one.writes & running):
            seen = False
        out.append(n)
    return out


__all__ = ["Meaning", "Row", "row", "rows_of", "that_matter"]
