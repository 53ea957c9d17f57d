"""Pairs of VGPRs that a block takes as 64-bit values from those before it, addresses mostly.

Put together from halves such a vector costs the host eight shuffles, and taken apart as many, each
time that a loop adds to it.  So it has a slot of its own beside its halves' (`registers`), which
LLVM then leaves out where nothing else uses them.  The slot is right where each way to a block has
written both halves in one piece last; elsewhere the pair is put together as before, but before a
loop that takes it, not in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sassxlate.lowering.emulate.wave.known_registers import used_later
from sassxlate.lowering.llvm.ir_text import Function, Val, vec_type
from sassxlate.lowering.target import LANES

V32, V64 = vec_type(32), vec_type(64)
Pair = tuple[int, int]  # the lower half's register, the upper one's


@dataclass(frozen=True, slots=True)
class _Taken:
    """A pair's value at the start of a block: its name, and the halves'."""

    block: int
    number: int
    name: str
    hi: str
    lo: str

    def lines(self, pair: Pair, *, right: bool) -> str:
        """What makes it, if the slot is right or not."""
        if right:
            return f"  {self.name} = load {V64}, ptr {slot(pair)}"
        return _put_together(self.name, self.hi, self.lo)


def _put_together(name: str, hi: str, lo: str) -> str:
    index = ", ".join(f"i32 {lane}, i32 {lane + LANES}" for lane in range(LANES))
    both = f"<{2 * LANES} x i32>"
    return (
        f"  {name}.h = shufflevector {V32} {lo}, {V32} {hi}, {both} <{index}>\n"
        f"  {name} = bitcast {both} {name}.h to {V64}"
    )


def slot(pair: Pair) -> str:
    return f"%v{pair[0]}.{pair[1]}"


class Pairs:
    """Which pairs there are, and which blocks take and write them."""

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        self.block = 0
        self._numbers: dict[Pair, int] = {}
        self._loaded: dict[str, tuple[int, int]] = {}  # by what a register's slot had: block, VGPR
        self._taken: dict[str, _Taken] = {}  # by the line that stands for it
        # Per block, one bit a pair: those that it takes, those that later ones take (once that is
        # known), and those that it writes otherwise than in one piece, or in one.
        self._uses: dict[int, int] = {}
        self._later: dict[int, int] | None = None
        self._spoilt: dict[int, int] = {}
        self._written: dict[int, int] = {}
        self._ends: dict[int, int] = {}  # the line with which a block leaves its code

    def load(self, register: int, ref: str) -> None:
        """A block has loaded a register from its slot."""
        if register:  # v0 begins with the threads' numbers, pairs with 0
            self._loaded[ref] = self.block, register

    def whole(self, hi: Val, lo: Val) -> Val | None:
        """The pair of two registers as the blocks before left them; None if these are not such."""
        low, high = (self._loaded.get(a.ref, (-1, 0)) for a in (lo, hi))
        if low[0] != self.block or high[0] != self.block or low == high:
            return None
        pair = low[1], high[1]
        if self._later is None:
            number = self._numbers.setdefault(pair, len(self._numbers))
            self._uses[self.block] = self._uses.get(self.block, 0) | 1 << number
        elif pair not in self._known():
            return None
        return self._take(self._numbers[pair], hi.ref, lo.ref)

    def _take(self, number: int, hi: str, lo: str) -> Val:
        text = f"pair {number}"
        known = self.fn.memo.get(text)
        if known is None:
            known = self.fn.memo[text] = self.fn.name()
            line = f"  {known} = {text}"
            self.fn.lines.append(line)
            self._taken[line] = _Taken(self.block, number, known, hi, lo)
        return Val(known, 64, True)

    def _known(self) -> list[Pair]:
        """The pairs that the block or a later one takes."""
        assert self._later is not None
        mask = self._later[self.block] | self._uses.get(self.block, 0)
        return [pair for pair, number in self._numbers.items() if mask >> number & 1]

    # -- blocks' ends ---------------------------------------------------------------------

    def close(self, successors: Mapping[int, Sequence[int]]) -> list[str]:
        """The slots: from now on blocks' ends are written."""
        self._later = used_later(self._uses, {}, successors)
        return [slot(pair) for pair in self._numbers]

    def later(self) -> list[Pair]:
        """The pairs that blocks after this one take."""
        assert self._later is not None
        mask = self._later[self.block]
        return [pair for pair, number in self._numbers.items() if mask >> number & 1]

    def write(self, pair: Pair, value: Val | None) -> None:
        """What a block leaves in a pair; None if that is not in one piece."""
        kind = self._spoilt if value is None else self._written
        kind[self.block] = kind.get(self.block, 0) | 1 << self._numbers[pair]
        if value is not None:
            self.fn.do(f"store {V64} {value.ref}, ptr {slot(pair)}")

    def end(self) -> None:
        """The block's registers have been written to their slots."""
        self._ends[len(self.fn.lines)] = self.block

    def finish(self, successors: Mapping[int, Sequence[int]]) -> None:
        """Writes the lines that stand for pairs."""
        wanted = self._wanted(successors)
        wrong = self._wrong(successors, wanted)
        pairs = {number: pair for pair, number in self._numbers.items()}
        out: list[str] = []
        for at, line in enumerate(self.fn.lines):
            block = self._ends.get(at)
            if block is not None:
                mended = self._left(block, wrong) & wanted.get(block, 0)
                out += (self._mended(pairs[n]) for n in _bits(mended))
            one = self._taken.get(line)
            if one is not None:
                right = not wrong.get(one.block, 0) >> one.number & 1
                line = one.lines(pairs[one.number], right=right)
            out.append(line)
        self.fn.lines = out

    def _mended(self, pair: Pair) -> str:
        lo, hi, both = (self.fn.name() for _ in range(3))
        return (
            f"  {lo} = load {V32}, ptr %v{pair[0]}\n  {hi} = load {V32}, ptr %v{pair[1]}\n"
            f"{_put_together(both, hi, lo)}\n  store {V64} {both}, ptr {slot(pair)}"
        )

    def _wanted(self, successors: Mapping[int, Sequence[int]]) -> dict[int, int]:
        """Per block, the pairs that a loop takes which begins after it."""
        loops: dict[int, int] = {}  # by the first block the last one
        for block, following in successors.items():
            for succ in following:
                if succ <= block:
                    loops[succ] = max(loops.get(succ, 0), block)
        inside = dict.fromkeys(loops, 0)
        for block, uses in self._uses.items():
            for first, last in loops.items():
                if first <= block <= last:
                    inside[first] |= uses
        wanted: dict[int, int] = {}
        for block, following in successors.items():
            for succ in following:
                wanted[block] = wanted.get(block, 0) | inside.get(succ, 0)
        return wanted

    def _left(self, block: int, wrong: Mapping[int, int]) -> int:
        """The pairs whose slots are not right at a block's end."""
        spoilt = self._spoilt.get(block, 0)
        return wrong.get(block, 0) & ~self._written.get(block, 0) | spoilt

    def _wrong(
        self, successors: Mapping[int, Sequence[int]], wanted: Mapping[int, int]
    ) -> dict[int, int]:
        """Per block, the pairs whose slots are not right at its start."""
        wrong: dict[int, int] = {}
        work = list(self._spoilt)
        while work:
            block = work.pop()
            here = self._left(block, wrong) & ~wanted.get(block, 0)
            for succ in successors.get(block, ()):
                if here & ~wrong.get(succ, 0):
                    wrong[succ] = wrong.get(succ, 0) | here
                    work.append(succ)
        return wrong


def _bits(mask: int) -> list[int]:
    return [n for n in range(mask.bit_length()) if mask >> n & 1]


__all__ = ["V64", "Pair", "Pairs"]
