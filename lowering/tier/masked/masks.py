"""The masks of the convergence machine as LLVM values: one word for a wave, bit n of which is lane
n's.

All lanes of the hardware's wave run the code around the blocks' bodies, so a word has one value for
all of them: LLVM keeps it in a scalar register and sees the branches on it as those of a wave.  A
body is in a branch of its own (:meth:`Masks.run`), which only the lanes of a mask take, and after
which all are together again: EXEC is that mask in it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.tier.lane import Guard, Lane
from sassxlate.lowering.tier.others import ballot

ZERO = const(0, 32)


class Masks:
    """The masks of one kernel, by name."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self._known: set[str] = set()

    # -- words ------------------------------------------------------------------------------------

    def _place(self, name: str) -> str:
        ref = f"%m.{name}"
        if name not in self._known:
            self._known.add(name)
            self.lane.fn.entry.append(f"  {ref} = alloca i32, align 4, addrspace(5)")
            self.lane.fn.entry.append(f"  store i32 0, ptr addrspace(5) {ref}, align 4")
        return ref

    def begin(self, *names: str) -> None:
        """All lanes of the wave are live, and in these masks, at first."""
        lane = self.lane
        places = [self._place(name) for name in ("live", *names)]
        lane.module.declare("i32 @llvm.amdgcn.ballot.i32(i1)")
        lane.fn.entry.append("  %every = call i32 @llvm.amdgcn.ballot.i32(i1 true)")
        lane.fn.entry += [f"  store i32 %every, ptr addrspace(5) {p}, align 4" for p in places]

    def read(self, name: str) -> Val:
        """A mask, which is 0 at first.  Per-lane words are kept so, too."""
        place = self._place(name)
        ref = self.lane.fn.emit_new(f"load i32, ptr addrspace(5) {place}, align 4")
        return Val(ref, 32, False)

    def write(self, name: str, value: Val) -> None:
        place = self._place(name)
        self.lane.fn.do(f"store i32 {value.ref}, ptr addrspace(5) {place}, align 4")

    def add(self, name: str, mask: Val) -> None:
        self.write(name, self.lane.d.or_(self.read(name), mask))

    def remove(self, name: str, mask: Val) -> None:
        self.write(name, self.without(self.read(name), mask))

    @property
    def running(self) -> Val:
        """The lanes that run the current block."""
        return self.read("running")

    def run_only(self, mask: Val) -> None:
        """The lanes that run the code from here on."""
        self.write("running", mask)

    @property
    def live(self) -> Val:
        """The lanes that have not ended."""
        return self.read("live")

    # -- sets -------------------------------------------------------------------------------------

    def without(self, one: Val, other: Val) -> Val:
        d = self.lane.d
        return d.and_(one, d.not_(other))

    def none(self, mask: Val) -> Val:
        return self.lane.d.eq(mask, ZERO)

    def inside(self, mask: Val) -> Val:
        """Whether this lane is one of a mask's."""
        ref = self.lane.intrinsic("i1", "amdgcn.inverse.ballot.i32", f"i32 {mask.ref}", "i32")
        return Val(ref, 1, False)

    def lanes(self, mask: Val, condition: Guard) -> Val:
        """Those lanes of a mask for which a condition holds.  It may be undefined for others."""
        if condition is None:
            return mask
        return ballot(self.lane, self.lane.both(self.inside(mask), condition))

    def first(self, word: Val, mask: Val) -> Val:
        """A word of the first lane of a mask; of any lane if it has none."""
        d = self.lane.d
        at = d.and_(d.ctz(mask), const(31, 32))
        args = f"i32 {word.ref}, i32 {at.ref}"
        ref = self.lane.intrinsic("i32", "amdgcn.readlane.i32", args, "i32, i32")
        return Val(ref, 32, False)

    # -- code -------------------------------------------------------------------------------------

    def go(self, condition: Val, then: str, otherwise: str) -> None:
        self.lane.fn.do(f"br i1 {condition.ref}, label %{then}, label %{otherwise}")

    @contextmanager
    def when(self, condition: Val) -> Generator[None]:
        """Code that is run if a condition holds."""
        fn = self.lane.fn
        then, after = fn.fresh("then"), fn.fresh("after")
        self.go(condition, then, after)
        with fn.arm(then):
            yield
            self.lane.branch(after)
        fn.label(after, keep=True)

    @contextmanager
    def some(self, mask: Val) -> Generator[None]:
        """Code that the wave runs if a mask has lanes."""
        with self.when(self.lane.d.not_(self.none(mask))):
            yield

    @contextmanager
    def groups(self, lanes: Val, words: Val) -> Generator[tuple[Val, Val]]:
        """Code that is run for each value that a word has in lanes of a mask: with the value, and
        the lanes that have it."""
        fn, d = self.lane.fn, self.lane.d
        with self.some(lanes):
            self.write("left", lanes)
            again, done = fn.fresh("groups"), fn.fresh("grouped")
            self.lane.branch(again)
            fn.label(again)
            left = self.read("left")
            first = self.first(words, left)
            same = self.lanes(left, d.eq(words, first))
            self.write("left", self.without(left, same))
            yield first, same
            self.go(self.none(self.read("left")), done, again)
            fn.label(done)

    @contextmanager
    def run(self, mask: Val) -> Generator[None]:
        """Code that the lanes of a mask run."""
        with self.when(self.inside(mask)):
            yield

    def kept(self, ref: RegRef, name: str) -> None:
        """Keeps the value that a register has now in a place of its own, where the lanes find it
        meanwhile."""
        lane = self.lane
        value, kind = lane.named(ref), lane.slot(ref.file, ref.index)[1]
        if name not in self._known:
            self._known.add(name)
            lane.fn.entry.append(f"  {name} = alloca {kind}, align 4, addrspace(5)")
        lane.fn.do(f"store {kind} {value.ref}, ptr addrspace(5) {name}, align 4")
        lane.unknown(name)
        lane.elsewhere[ref.file, ref.index] = name

    def shared(self, refs: list[RegRef], mask: Val, write: Callable[[], None]) -> None:
        """Code that the lanes of a mask run, and that writes registers which the warp shares: they
        get what the first of these lanes wrote.  If there are none, they keep their values."""
        lane, d = self.lane, self.lane.d
        for ref in refs:
            self.kept(ref, f"%own.{ref.file}{ref.index}")
        with self.run(mask):
            write()
        made = {ref: lane.named(ref) for ref in refs}
        lane.elsewhere.clear()
        for ref, word in made.items():
            first = self.first(d.zext(word, 32), mask)
            value = d.select(self.none(mask), lane.named(ref), d.extract(first, 0, word.width))
            lane.write(ref, value)


__all__ = ["ZERO", "Masks"]
