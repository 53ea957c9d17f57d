"""What is known of registers where a block begins, of what comes along its edges.

A register's makers pass from block to block as they are.  Only where paths bring different ones do
they get a number of that place, a negative one, and :attr:`Flow.inputs` has what comes into it:
sets of makers at every block would take memory by the square of a kernel's size, and a place for
each register at each block as much time as the rest of the translation.  Such numbers are apart for
makers of doubles (odd) and others (even).

What is known of registers that a called function does not name goes from the call to its return
site (:mod:`.calls`), where the two halves come together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sassxlate.cfg import Cfg, Liveness
from sassxlate.cfg.graph import Edge
from sassxlate.cfg.register_sets import ALL
from sassxlate.lowering.nans.calls import Calls
from sassxlate.lowering.nans.steps import UNKNOWN, Makers, State, Value, union
from sassxlate.lowering.nans.values import ANY

FEW: Final = 24  # rounds over a block, after which bounds are given up
SAME, MAKERS, FACTS = range(3)  # what changed where a block begins
_COUNT: Final = len(ALL)
_FEW_INPUTS: Final = 8  # of a place, that are a tuple
_THROUGH, _PAST, _WHOLE = 1, 2, 3  # of what comes to a return site: through the function, past it


class Flow:
    """The states before each block; None: not reached.

    Along an edge only more may become known to be possible, as the values of :mod:`.steps` have it.
    """

    def __init__(
        self, cfg: Cfg, live: Liveness, doubles: frozenset[int], calls: Calls | None = None
    ) -> None:
        self.calls = Calls(cfg) if calls is None else calls
        self.entry: list[State | None] = [None] * len(cfg.blocks)
        self.entry[0] = {}
        self.inputs: dict[int, Makers | set[int]] = {}
        self.rounds = [0] * len(cfg.blocks)  # how often the facts at a block's start were new
        # The registers of which something else is known since the block was last followed.
        self.fresh: list[list[int]] = [[] for _ in cfg.blocks]
        self._live: Sequence[int] = live.in_bits
        self._doubles = doubles
        # A kernel's entry is a way into its first block.
        self._meets = [
            sum(edge.kind != "back" for edge in some) + (not number) > 1
            for number, some in enumerate(cfg.predecessors)
        ]
        # At return sites: whether other ways than the call itself lead there, and what has come.
        self._meets_past = {
            site: any(edge.kind not in ("back", "ret") for edge in cfg.predecessors[site])
            for site in self.calls.sites
        }
        self._come = dict.fromkeys(self.calls.sites, 0)

    def reached(self) -> list[State]:
        """The states before each block, empty where no lane comes."""
        return [
            {} if state is None or self._come.get(number, _WHOLE) != _WHOLE else state
            for number, state in enumerate(self.entry)
        ]

    def along(self, edge: Edge, out: State, *, whole: bool = True) -> int:
        """Adds what is known after a block along one of its edges, as :meth:`into`."""
        named = self.calls.inside(edge)
        if named is None:
            # Without ``named`` the path through the function exists as other edges.
            return SAME if edge.kind == "back" else self.into(edge.dst, out, whole=whole)
        if edge.kind == "call":
            return self.into(edge.dst, _part(out, named, _THROUGH), whole=whole)
        half = _PAST if edge.kind == "back" else _THROUGH
        return self._half(edge.dst, out, named, half, whole=whole)

    def _half(
        self, block: int, out: State, named: frozenset[int], half: int, *, whole: bool
    ) -> int:
        """Adds to a return site what comes through the function or past it.  Something is known
        before the block when both have come: what came first is not joined."""
        come = self._come[block]
        out = _part(out, named, half)
        if come & half:
            changed = self._joined(block, out, named, half, whole=whole)
            return changed if come == _WHOLE else SAME
        old, live = self.entry[block], self._live[block]
        new = {r: v for r, v in out.items() if live >> r & 1}
        self.entry[block] = new if old is None else {**old, **new}
        self._come[block] = come | half
        return FACTS if come | half == _WHOLE else SAME

    def into(self, block: int, out: State, *, whole: bool = True) -> int:
        """Adds what comes along an edge: SAME, MAKERS or FACTS, whether a register's makers alone
        are new.  Unless ``whole``, ``out`` has those registers alone that are new since the last
        time, UNKNOWN ones, too."""
        old, live = self.entry[block], self._live[block]
        come = self._come.get(block, _WHOLE)
        if come != _WHOLE:
            self._come[block] = _WHOLE
            if old is not None:  # one half is joined, and the other is new
                named = self.calls.named[self.calls.sites[block]]
                self._joined(block, _part(out, named, come), named, come, whole=whole)
                for register, value in _part(out, named, _WHOLE - come).items():
                    if live >> register & 1:
                        old[register] = value
                return FACTS
        if old is None:
            lives = live.to_bytes(_COUNT + 7 >> 3, "little")  # a shift would make a long number
            self.entry[block] = {r: v for r, v in out.items() if lives[r >> 3] >> (r & 7) & 1}
            return FACTS
        return self._joined(block, out, None, _WHOLE, whole=whole)

    def _joined(
        self, block: int, out: State, named: frozenset[int] | None, half: int, *, whole: bool
    ) -> int:
        """Joins what comes along an edge with what is known before a block, of a half of the
        registers or of all."""
        old, live = self.entry[block], self._live[block]
        assert old is not None
        met = self._meets_past[block] if half == _PAST else self._meets[block]
        changed, common, fresh = SAME, 0, self.fresh[block]
        for register, value in out.items():
            known = old.get(register)
            if known is value:
                common += 1
                continue
            if known is None:
                if not live >> register & 1:
                    continue
                joined = UNKNOWN.joined(value)
                if joined != UNKNOWN:
                    old[register] = value if joined == value else joined
                    fresh.append(register)
                    common += 1
                    changed = FACTS
                continue
            common += 1
            bits, bound = known.bits | value.bits, max(known.bound, value.bound)
            makers = value.makers
            if met and makers is not known.makers:
                makers = self._met(block, register, known.makers, makers)
            if bits != known.bits or bound != known.bound:
                changed = FACTS
            elif makers is known.makers or makers == known.makers:
                continue
            elif changed == SAME:
                changed = MAKERS
            fresh.append(register)
            joined = Value(bits, bound, makers)
            if joined == UNKNOWN:
                del old[register]
                common -= 1
            else:  # mostly equal to what comes, and one object does then
                old[register] = value if joined == value else joined
        if whole and common < len(old):
            rest = [r for r in old if r not in out]
            if named is not None:
                rest = [r for r in rest if (r in named) == (half == _THROUGH)]
            if self._rest(old, rest, fresh):
                changed = FACTS
        if self.rounds[block] > FEW and self._given_up(old, fresh):
            changed = FACTS
        return changed

    def _met(self, block: int, register: int, known: Makers, new: Makers) -> Makers:
        """The makers of a register where paths meet."""
        place = -2 * (block * _COUNT + register)
        for maker in new:  # mostly all are known to come into the place
            double = maker & 1 if maker < 0 else maker in self._doubles
            number = place - 1 if double else place - 2
            inputs = self.inputs.get(number)
            if inputs is None or not (maker in inputs or maker == number):
                break
        else:
            return known
        both = union(known, new)
        if both is known or not known:
            return both
        doubles = doubles_of(both, self._doubles)
        here: list[int] = []
        if len(doubles) < len(both):
            number = place - 2
            here.append(number)
            self._comes_in(number, tuple([m for m in both if m not in doubles]))
        if doubles:
            number = place - 1
            here.append(number)
            self._comes_in(number, doubles)
        return tuple(here)

    def _comes_in(self, number: int, some: Makers) -> None:
        """Adds to what comes into a place; that it comes into itself says nothing."""
        some = tuple([maker for maker in some if maker != number])
        inputs = self.inputs.get(number, ())
        if isinstance(inputs, set):
            inputs.update(some)
        else:
            inputs = union(inputs, some)
            self.inputs[number] = inputs if len(inputs) <= _FEW_INPUTS else set(inputs)

    def _rest(self, old: State, rest: list[int], fresh: list[int]) -> bool:
        """Joins registers of which nothing is known along an edge; whether one of them is new."""
        changed = False
        for register in rest:
            known = old[register]
            joined = UNKNOWN.joined(known)
            if joined == UNKNOWN:
                del old[register]
            elif joined != known:
                old[register] = joined
            else:
                continue
            fresh.append(register)
            changed = True
        return changed

    def _given_up(self, state: State, fresh: list[int]) -> bool:
        """Gives up bounds; whether one was known."""
        found = [(r, value) for r, value in state.items() if value.bound != ANY]
        for register, value in found:
            fresh.append(register)
            joined = Value(value.bits, ANY, value.makers)
            if joined != UNKNOWN:
                state[register] = joined
            else:
                del state[register]
        return bool(found)


def _part(out: State, named: frozenset[int], half: int) -> State:
    """What goes through a function that names such registers, or past it."""
    if half == _THROUGH:
        return {r: v for r, v in out.items() if r in named}
    return {r: v for r, v in out.items() if r not in named}


def doubles_of(makers: Makers, doubles: frozenset[int]) -> Makers:
    """Those that are makers of doubles, or places where such meet."""
    return tuple([m for m in makers if (m & 1 if m < 0 else m in doubles)])


__all__ = ["FACTS", "FEW", "MAKERS", "SAME", "Flow", "doubles_of"]
