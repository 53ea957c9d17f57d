"""How an H200 schedules the lanes of one warp: which run, which wait, and which are next.

A model fitted to the results of 1,300 small kernels on an H200 (``docs/errata.md`` says how much of
it they confirm).  The model:

* There is one set of B0 to B15 per warp.  BSSY adds the running lanes; BSYNC, once all have
arrived, clears it.
* When lanes diverge, the smaller part runs first; if the parts are equal, the part that does not
jump.
* One split is kept beside the running one.  Earlier splits are in a pool, one place per lane:
  the last that came runs first, and with it every lane at the same place, *whichever call or
  iteration of a loop brought it there*, even if it waits at a BSYNC, which it then executes again.
* BSYNC passes lanes that are not in its mask, and does not wait for lanes that yielded or wait at
WARPSYNC.
  If all missing lanes wait elsewhere, and no lane waits at it yet, it passes at once.
* If no lane can run, the lanes that began to wait last continue alone.

So recursion whose levels wait at one BSYNC diverges.  Masks are of lanes; a place is the index
of an instruction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ALL = 0xFFFFFFFF
WaitKind: TypeAlias = Literal["bsync", "warpsync", "section", "bar"]


def lanes_of(mask: int) -> Iterator[int]:
    """The numbers of a mask's lanes, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def mask_of(lanes: Iterable[int]) -> int:
    return sum(1 << lane for lane in lanes)


@dataclass(slots=True)
class Split:
    """Lanes at one place."""

    mask: int
    place: int


@dataclass(frozen=True, slots=True)
class Waits:
    """The reason why a lane waits.  ``what``: the number of a convergence barrier, the mask of a
    WARPSYNC, the class of a section; ``mask`` and ``home`` are a section's."""

    kind: WaitKind
    what: int = 0
    mask: int = 0
    home: int = 0


@dataclass(slots=True)
class Splits:
    """The lanes of one warp.  The executor takes ``running``, and the methods set it again:
    None if the next lanes are still to be chosen."""

    live: int
    running: Split | None = None
    beside: Split | None = None
    barriers: list[int] = field(default_factory=lambda: [0] * 16)
    places: dict[int, int] = field(default_factory=dict[int, int])  # of the lanes in the pool
    waits: dict[int, Waits] = field(default_factory=dict[int, Waits])  # beside, or in the pool
    away: int = 0  # yielded, and may run
    homes: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    # Of lanes that a section or WARPSYNC.EXCLUSIVE brought together: all of them, up to its end or
    # the next meeting.  Others at the same place do not join them.
    teams: dict[int, int] = field(default_factory=dict[int, int])
    exclusive: set[int] = field(default_factory=set[int])  # places of WARPSYNC.EXCLUSIVE
    _age: dict[int, int] = field(default_factory=dict[int, int])
    _newest: int = 0
    _oldest: int = 0

    def __post_init__(self) -> None:
        self.running = Split(self.live, 0)

    # --- places of lanes
    # ---------------------------------------------------------------------------

    def waiting(self, *kinds: WaitKind) -> int:
        """The lanes that wait at something (of some kinds)."""
        return mask_of(n for n, w in self.waits.items() if not kinds or w.kind in kinds)

    def at_barrier(self, number: int) -> int:
        return mask_of(n for n, w in self.waits.items() if w.kind == "bsync" and w.what == number)

    def place_of(self, lane: int) -> int:
        """The place of a lane that is not running."""
        if lane in self.places:
            return self.places[lane]
        assert self.beside is not None
        return self.beside.place

    def _asleep(self) -> int:
        return self.away | self.waiting("warpsync", "section")

    def _ready(self) -> int:
        others = mask_of(self.places) | (self.beside.mask if self.beside else 0)
        return others & ~self.waiting()

    # --- the pool -------------------------------------------------------------------------------

    def _pool(self, mask: int, place: int, *, last: bool = False) -> None:
        """Puts lanes into the pool, as the first to continue or as the last."""
        if last:
            self._oldest -= 1
        else:
            self._newest += 1
        for lane in lanes_of(mask):
            self.places[lane] = place
            self._age[lane] = self._oldest if last else self._newest

    def put_beside(self, mask: int, place: int) -> None:
        """Adds lanes that diverged from the running ones."""
        if not mask:
            return
        self._spill()
        self.beside = Split(mask, place)

    def _spill(self) -> None:
        if self.beside is not None:
            self._pool(self.beside.mask, self.beside.place)
            self.beside = None

    def _remove(self, mask: int) -> None:
        """Removes lanes from where they wait."""
        for lane in lanes_of(mask):
            self.waits.pop(lane, None)
            self.places.pop(lane, None)
        if self.beside is not None:
            self.beside.mask &= ~mask
            if not self.beside.mask:
                self.beside = None

    def _first(self, lanes: Iterable[int]) -> int:
        return max(lanes, key=lambda lane: (self._age[lane], -lane))

    def choose(self) -> bool:
        """Chooses the running lanes if there are none; False if no lane can run."""
        if self.running is not None:
            return True
        ready = self._ready()
        if not ready:
            return False
        if self.beside is not None and self.beside.mask & ready:
            mask, place = self.beside.mask, self.beside.place
            self.beside = None
            if mask & ~ready:
                self._pool(mask & ~ready, place)
            self.running = Split(mask & ready, place)
        else:
            self._spill()
            if not ready & ~self.away:
                self.away = 0  # all yielded: each gets a turn
            first = self._first(lanes_of(ready & ~self.away))
            place, team = self.places[first], self.teams.get(first)
            same = mask_of(
                n for n, p in self.places.items() if p == place and self.teams.get(n) == team
            )
            self._remove(same)
            self.running = Split(same, place)
        self.away &= ~self.running.mask
        return True

    def resolve(self) -> bool:
        """No lane can run: the last to arrive at a BSYNC continue.  False if there are none."""
        self._spill()
        held = [n for n, w in self.waits.items() if w.kind == "bsync"]
        if not held:
            return False
        first = self._first(held)
        place, number = self.places[first], self.waits[first].what
        same = mask_of(n for n in held if self.places[n] == place and self.waits[n].what == number)
        if same & self.barriers[number]:
            self.barriers[number] = 0
        for lane in lanes_of(same):
            del self.waits[lane]
            self.places[lane] = place + 1
        return True

    # --- what the running lanes do ----------------------------------------------------------------

    def go(self, mask: int, place: int) -> None:
        """Sets the running lanes and their place; none: the next are to be chosen."""
        self.running = Split(mask, place) if mask else None

    def part(self, taken: int, target: int, other: int, following: int) -> None:
        """The running lanes diverge: those that jump, and the others."""
        if not taken:
            self.go(other, following)
        elif not other:
            self.go(taken, target)
        elif taken.bit_count() < other.bit_count():
            self.put_beside(other, following)
            self.go(taken, target)
        else:
            self.put_beside(taken, target)
            self.go(other, following)

    def end(self, mask: int) -> None:
        """Lanes have ended; they are no longer among the running ones."""
        self.live &= ~mask
        self.away &= ~mask
        self.recheck()

    def sync(self, number: int, mask: int, arriving: int, place: int) -> None:
        """BSYNC: ``arriving``, of the running lanes ``mask``, arrive at a barrier."""
        armed = self.barriers[number] & self.live
        coming = arriving & armed
        if not coming:
            self.go(mask, place + 1)
            return
        self._disband(coming)
        there = self.at_barrier(number) & armed
        passing = mask & ~coming
        missing = armed & ~(coming | there | self._asleep())
        eligible = self._ready() & ~self.away | passing
        if missing and (there or missing & eligible):
            self._wait(mask, coming, Waits("bsync", number), place)
            return
        self.barriers[number] = 0
        same = mask_of(n for n in lanes_of(there) if self.place_of(n) == place)
        self._remove(same)
        self.go(mask | same, place + 1)

    def leave(self, number: int, mask: int, leaving: int, place: int) -> None:
        """BREAK: lanes leave a barrier's mask; lanes that waited only for them continue, and run
        before them if they are more."""
        before = self.barriers[number]
        self.barriers[number] = before & ~leaving
        self.go(mask, place + 1)
        there = self.at_barrier(number) & self.barriers[number] & self.live
        missing = self.barriers[number] & self.live & ~(there | self._asleep())
        if not there or not before & leaving or missing:
            return
        self.barriers[number] = 0
        if self.beside is not None and self.beside.mask & there:
            at = self.beside.place
        else:
            at = self.places[self._first(lanes_of(there))]
        same = mask_of(n for n in lanes_of(there) if self.place_of(n) == at)
        self._remove(same)
        if same.bit_count() < mask.bit_count():
            self.put_beside(mask, place + 1)
            self.go(same, at + 1)
        else:
            self.put_beside(same, at + 1)

    def _disband(self, lanes: int) -> None:
        for lane in lanes_of(lanes):
            self.teams.pop(lane, None)

    def _form(self, teams: Iterable[int]) -> None:
        for team in teams:
            self.teams |= dict.fromkeys(lanes_of(team), team)

    def _apart(self, teams: list[int], place: int) -> None:
        """Teams continue one after another, the one of the lowest lane first."""
        self._form(teams)
        teams = sorted(teams, key=lambda team: team & -team, reverse=True)
        for team in teams[:-1]:
            self.put_beside(team, place)
        self.go(teams[-1], place)

    def meet(
        self, mask: int, wanted: dict[int, int], place: int, *, exclusive: bool = False
    ) -> None:
        """WARPSYNC: each lane of ``wanted``, all of them running, waits for a mask at this
        place.  ``exclusive``: the lanes of each mask continue apart from others."""
        self._disband(mask_of(wanted))
        if exclusive:
            self.exclusive.add(place)
        here = {n: w.what for n, w in self.waits.items()
                if w.kind == "warpsync" and self.place_of(n) == place} | wanted  # fmt: skip
        teams = self._agreed(here)
        met, coming = sum(teams), mask_of(wanted)
        if not coming & ~met:
            self._remove(met & ~coming)
            if exclusive:
                self._pool(mask & ~coming, place + 1)
                self._apart(teams, place + 1)
            else:
                self.go(mask | met, place + 1)
            return
        for lane, m in wanted.items():
            self.waits[lane] = Waits("warpsync", m)
        self._park(mask, coming, place)
        self.recheck()

    def _agreed(self, there: dict[int, int]) -> list[int]:
        """Of lanes at one WARPSYNC, with their masks, those whose mask has met, mask by mask: all
        its lanes are there with the same one."""
        teams: dict[int, int] = {}
        for lane, m in there.items():
            teams[m] = teams.get(m, 0) | 1 << lane
        return [team for m, team in teams.items() if not m & self.live & ~team]

    def gather(self, mask: int, wanted: dict[int, Waits], starts: int, place: int) -> None:
        """WARPSYNC.COLLECTIVE: the lanes of a mask run the section at ``starts`` together, each
        mask in turn."""
        self._newest += 1
        for lane, w in wanted.items():
            self.homes[lane] = (w.home, self._newest)
        self.waits |= wanted
        met = self._teams(next(iter(wanted.values())).what)
        coming = mask_of(wanted)
        whole = sum(met)
        rest = coming & ~whole
        if not whole:
            self._park(mask, coming, place)
            self.recheck()
            return
        self._remove(whole)
        if rest:
            self._pool(rest, place)
        if mask & ~coming:
            self._pool(mask & ~coming, place + 1)
        self._apart(met, starts)

    def home(self, mask: int, following: int) -> None:
        """ENDCOLLECTIVE: the last to arrive continues first."""
        groups: dict[tuple[int, int], int] = {}
        self._disband(mask)
        for lane in lanes_of(mask):
            home, order = self.homes.get(lane, (-1, 0))
            key = (order, home if home >= 0 else following)
            groups[key] = groups.get(key, 0) | 1 << lane
        *others, last = sorted(groups)
        for key in others:
            self._pool(groups[key], key[1])
        self.go(groups[last], last[1])

    def give_way(self, mask: int, place: int) -> None:
        """YIELD and NANOSLEEP: the running lanes are the last to continue, if others can run."""
        self.go(mask, place + 1)
        if not self._ready():
            return
        self.away |= mask
        self._pool(mask, place + 1, last=True)
        self.running = None
        self.recheck()

    def stand(self, mask: int, coming: int, place: int) -> None:
        """BAR: lanes wait for their block."""
        self._wait(mask, coming, Waits("bar"), place)

    def free(self, mask: int, place: int) -> None:
        """Lanes that waited at BAR may run again."""
        self._remove(mask)
        self._pool(mask, place)

    def _wait(self, mask: int, coming: int, what: Waits, place: int) -> None:
        for lane in lanes_of(coming):
            self.waits[lane] = what
        self._park(mask, coming, place)

    def _park(self, mask: int, coming: int, place: int) -> None:
        """Waiting lanes leave the running ones: a ready split beside them takes their place."""
        passing = mask & ~coming
        if passing:
            self.put_beside(coming, place)
            self.go(passing, place + 1)
            return
        self.running = None
        other = self.beside
        if other is not None and other.mask & ~self.waiting():
            self.choose()
            self.beside = Split(coming, place)
            return
        self._spill()
        self._pool(coming, place)

    def recheck(self) -> None:
        """Releases lanes whose waiting condition is met because lanes ended or wait elsewhere."""
        asleep = self._asleep()
        for number, armed in enumerate(self.barriers):
            there = self.at_barrier(number) & armed & self.live
            if there and not armed & self.live & ~(there | asleep):
                self.barriers[number] = 0
                self._past(there)
        at: dict[int, dict[int, int]] = {}
        for lane, w in self.waits.items():
            if w.kind == "warpsync":
                at.setdefault(self.place_of(lane), {})[lane] = w.what
        for place, them in at.items():
            met = self._agreed(them)
            if place in self.exclusive:
                self._spill()
                self._form(met)
            self._past(sum(met))
        for team in self._teams():
            self._spill()
            self._form([team])
            start = self.places[self._first(lanes_of(team))] + 1
            self._remove(team)
            self._pool(team, start)

    def _teams(self, kind: int | None = None) -> list[int]:
        """Lanes at sections (of one class) whose masks are complete."""
        teams: dict[tuple[int, int], int] = {}
        for lane, w in self.waits.items():
            if w.kind == "section" and (kind is None or w.what == kind):
                key = w.what, w.mask
                teams[key] = teams.get(key, 0) | 1 << lane
        return [team for (_, m), team in teams.items() if not m & self.live & ~team]

    def _past(self, mask: int) -> None:
        """Lanes stop waiting, and continue after their barrier when it is their turn."""
        if self.beside is not None and self.beside.mask & mask:
            some, place = self.beside.mask & mask, self.beside.place
            others = self.beside.mask & ~mask
            self.beside = Split(some, place + 1)
            if others:
                self._pool(others, place)
        for lane in lanes_of(mask):
            del self.waits[lane]
            if lane in self.places:
                self.places[lane] += 1


__all__ = ["ALL", "Split", "Splits", "Waits", "lanes_of", "mask_of"]
