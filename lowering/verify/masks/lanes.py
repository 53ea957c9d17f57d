"""All that the lanes of a wave may be, on two sides at once: an abstraction exact for masks.

Operations on masks treat each lane by itself.  So the lanes of a wave are described by the set of
their *cases*: the bits that one lane has in the registers followed, on the side of the old code and
on that of the new.  Any lane of any wave that comes here is one of the cases.  What depends on all
lanes at once is only whether a mask is 0; of that, masks are known that have some lane.

Registers that are not followed are equal on both sides, or may differ (``differ``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress
from typing import Final

from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.lowering.verify.masks.operations import ONES, SCC, ZERO, MaskOperation, Opaque

OLD, NEW = 0, 1
SIDES: Final = (OLD, NEW)
MOST_CASES: Final = 1 << 12
_CROWDED: Final = 1 << 9


class Crowded(Exception):
    """More cases than are looked at."""


@dataclass(frozen=True, slots=True)
class Cases:
    """Lanes at a label.  ``rows``: per case a bit for each of ``keys`` and each side.  ``some``:
    registers, by side, that are not empty."""

    keys: tuple[int, ...]
    rows: frozenset[tuple[str, ...]]
    some: frozenset[tuple[int, int]]
    differ: frozenset[int]

    def joined(self, other: Cases) -> Cases:
        """Lanes that come from either."""
        if self == other or not other.rows:
            return self
        if not self.rows:
            return other
        mine, theirs = self, other
        if self.keys != other.keys:
            both = Lanes.of(self), Lanes.of(other)
            keys = set(self.keys) & set(other.keys)
            for lanes in both:
                lanes.keep(keys)
            mine, theirs = (lanes.cases() for lanes in both)
        rows = mine.rows if theirs.rows <= mine.rows else mine.rows | theirs.rows
        if len(rows) > MOST_CASES:
            raise Crowded
        some = mine.some
        if some != theirs.some:
            there = Lanes.of(theirs)
            some = frozenset(one for one in some if there.has_some(*one))
            if len(some) < len(theirs.some):
                here = Lanes.of(mine)
                some |= {one for one in theirs.some if here.has_some(*one)}
        return Cases(mine.keys, rows, some, mine.differ | theirs.differ)


class Lanes:
    """Lanes at one instruction.  ``columns`` has per register the bits of all cases, on both
    sides; SCC's is the mask that it was made from, ``polarity`` whether it is set where that is not
    0, None on a side where it is something else: that is equal on both unless SCC may differ."""

    __slots__ = ("columns", "differ", "ones", "polarity", "some")

    def __init__(self, count: int = 1) -> None:
        self.ones = (1 << count) - 1
        self.columns: dict[int, tuple[int, int]] = {}
        self.some: set[tuple[int, int]] = set()
        self.differ: set[int] = set()
        self.polarity: list[bool | None] = [None, None]

    @staticmethod
    def at_entry() -> Lanes:
        """The start of a kernel: some lanes run."""
        lanes = Lanes()
        lanes.follow(EXEC_LO)
        lanes.some = {(EXEC_LO, side) for side in SIDES}
        return lanes

    @staticmethod
    def of(cases: Cases) -> Lanes:
        lanes = Lanes(len(cases.rows))
        columns = [int("".join(bits), 2) for bits in zip(*cases.rows, strict=True)]
        for n, key in enumerate(cases.keys):
            lanes.columns[key] = columns[2 * n], columns[2 * n + 1]
        lanes.some, lanes.differ = set(cases.some), set(cases.differ)
        return lanes

    def copy(self) -> Lanes:
        lanes = Lanes()
        lanes.ones = self.ones
        lanes.columns, lanes.some = dict(self.columns), set(self.some)
        lanes.differ, lanes.polarity = set(self.differ), list(self.polarity)
        return lanes

    def cases(self) -> Cases:
        """The distinct cases."""
        keys = tuple(sorted(k for k in self.columns if k != SCC))
        width = f"0{self.ones.bit_length()}b"
        columns: list[str] = []
        for key in keys:
            old, new = self.columns[key]
            columns.append(format(old, width))
            columns.append(columns[-1] if new == old else format(new, width))
        differ = self.differ - {SCC}
        if not self.equal(SCC):
            differ.add(SCC)
        return Cases(
            keys,
            frozenset(zip(*columns, strict=True)) if self.ones else frozenset(),
            frozenset(one for one in self.some if one[0] != SCC),
            frozenset(differ),
        )

    # --- what is known ---------------------------------------------------------------------------

    def equal(self, key: int) -> bool:
        """Whether a register is the same on both sides."""
        if key in self.columns and (key != SCC or None not in self.polarity):
            a, b = self.columns[key]
            return a == b and (key != SCC or self.polarity[OLD] == self.polarity[NEW])
        return key not in self.differ

    def has_some(self, key: int, side: int) -> bool:
        """Whether a register certainly is not empty."""
        return key in self.columns and self.is_some(self.columns[key][side])

    def is_some(self, column: int) -> bool:
        """Whether some lane certainly has a bit of a column."""
        return any(self.columns[k][side] & ~column == 0 for k, side in self.some)

    def decided(self, key: int, side: int) -> bool | None:
        """Whether a mask is not 0 (SCC: whether it is set), if that is known."""
        if key not in self.columns or (key == SCC and self.polarity[side] is None):
            return None
        column = self.columns[key][side]
        found = False if column == 0 else True if self.is_some(column) else None
        if key == SCC and found is not None:
            return found == self.polarity[side]
        return found

    # --- what changes ----------------------------------------------------------------------------

    def follow(self, key: int) -> None:
        """Splits the cases by a register's bit."""
        if key in self.columns:
            return
        self._split()
        half = self.ones.bit_length() // 2
        high = self.ones >> half << half
        if key in self.differ:
            self.columns[key] = (high, 0)
            self.differ.discard(key)
            self._split()
            half = self.ones.bit_length() // 2
            self.columns[key] = (self.columns[key][OLD], self.ones >> half << half)
        else:
            self.columns[key] = (high, high)

    def _split(self) -> None:
        count = self.ones.bit_length()
        if count > MOST_CASES:
            raise Crowded
        self.ones = (1 << (2 * count)) - 1
        self.columns = {k: (a | a << count, b | b << count) for k, (a, b) in self.columns.items()}

    def keep(self, keys: Iterable[int]) -> None:
        """Follows only these registers from here on, and SCC."""
        kept = {*keys, SCC}
        gone = [k for k in self.columns if k not in kept]
        for key in gone:
            a, b = self.columns.pop(key)
            if a != b:
                self.differ.add(key)
        if gone:
            lost = [one for one in self.some if one[0] in gone]
            self.some.difference_update(lost)
        if self.ones.bit_length() > _CROWDED:
            self.dedupe()

    def dedupe(self) -> None:
        count = self.ones.bit_length()
        keys = list(self.columns)
        width = f"0{count}b"
        rows = set(zip(*(format(c, width) for k in keys for c in self.columns[k]), strict=True))
        columns = [int("".join(bits), 2) for bits in zip(*rows, strict=True)]
        self.ones = (1 << len(rows)) - 1
        self.columns = {k: (columns[2 * n], columns[2 * n + 1]) for n, k in enumerate(keys)}

    def column(self, source: int, side: int) -> int:
        if source == ZERO:
            return 0
        if source == ONES:
            return self.ones
        return self.columns[source][side]

    def run(self, what: MaskOperation, side: int) -> None:
        """An operation on one side.  Its sources and results are followed already."""
        made = what.compute(self.ones, *(self.column(s, side) for s in what.sources))
        keys = _results(what)
        lanes = [key for key, column in zip(keys, made, strict=True) if self.is_some(column)]
        for key, column in zip(keys, made, strict=True):
            old = self.columns.get(key, (0, 0))
            self.columns[key] = (column, old[NEW]) if side == OLD else (old[OLD], column)
            self.some.discard((key, side))
        self.some.update((key, side) for key in lanes)
        if what.scc is not None:
            self.polarity[side] = what.scc
            if self.polarity[1 - side] is None:
                self.differ.add(SCC)

    def run_both(self, what: MaskOperation) -> None:
        """The same operation on both sides."""
        if what.scc is not None:
            self.polarity = [what.scc, what.scc]
        results = [
            what.compute(self.ones, *(self.column(s, side) for s in what.sources)) for side in SIDES
        ]
        keys = _results(what)
        lanes = [
            (key, side) for side in SIDES for key, c in zip(keys, results[side], strict=True)
            if self.is_some(c)
        ]  # fmt: skip
        for n, key in enumerate(keys):
            self.columns[key] = (results[OLD][n], results[NEW][n])
            self.differ.discard(key)
        self.some = {one for one in self.some if one[0] not in keys} | set(lanes)

    def forget(self, what: Opaque, wanted: Iterable[int]) -> None:
        """The results of an opaque instruction that reads the same on both sides."""
        for key in what.writes:
            self.columns.pop(key, None)
            self.differ.discard(key)
            self.some -= {(key, side) for side in SIDES}
            if key == SCC:
                self.polarity = [None, None]
        for key in what.writes & set(wanted):
            self.follow(key)
            if what.per_lane and key != EXEC_LO and EXEC_LO in self.columns:
                a, b = self.columns[key]
                running = self.columns[EXEC_LO]
                self.columns[key] = (a & running[OLD], b & running[NEW])

    def leave_out(self, key: int) -> None:
        """Only the cases without a register's bit stay, on both sides."""
        gone = self.columns[key][OLD] | self.columns[key][NEW]
        if not gone:
            return
        width = f"0{self.ones.bit_length()}b"
        stay = [bit == "0" for bit in format(gone, width)]
        self.some -= {(key, side) for side in SIDES}
        self.ones = (1 << sum(stay)) - 1

        def left(column: int) -> int:
            return int("0" + "".join(compress(format(column, width), stay)), 2)

        for k, (a, b) in self.columns.items():
            here = left(a)
            self.columns[k] = here, here if b == a else left(b)

    def assume(self, key: int, side: int) -> None:
        """A mask is not empty."""
        self.some.add((key, side))


def _results(what: MaskOperation) -> tuple[int, ...]:
    return what.to if what.scc is None else (*what.to, SCC)


__all__ = ["MOST_CASES", "NEW", "OLD", "SIDES", "Cases", "Crowded", "Lanes"]
