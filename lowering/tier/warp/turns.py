"""In which turns of its loops a block is run, and whether lanes that meet are at one place.

An *event* is a block that all live lanes run together, or the end of one at which they all meet
(WARPSYNC of all lanes, or BAR.SYNC, which a warp passes as a whole): each lane that has not ended
takes part in each event.  So the events that a lane has passed are the first ones of one sequence,
the same for all lanes.  LLVM runs a block once for all lanes that come to it with the same numbers
of turns of the loops around it.  Therefore lanes that SASS has at a block at the same time are
together there in LLVM's code, too, if these numbers follow from the events before, whichever way a
lane took between two events.

*Turns*: for a loop, and from each event, the ways without events are followed, and the passes of
the loop's head counted.  If two ways to a block have different numbers, or a way goes around the
loop without an event, nothing is said of the block; if that block is an event, of no block in the
loop.  A lane comes to a block only once with the same numbers, so that lanes with the same numbers
are at the same event, and no others are in LLVM's code.

*Places*: nvcc's slow way of a shuffle waits in a function that other shuffles call, too, or in a
section that has a class.  Lanes may meet there from different shuffles.  They come from one if from
no event two such shuffles can be reached without another event: this is so for the first meeting
by the events before it, and then the meeting is an event itself, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from sassxlate.cfg import Cfg, Uniformity
from sassxlate.cfg.graph import Block
from sassxlate.disasm.sass.instruction import Imm
from sassxlate.lowering.convergence.plan import is_plain_barrier

_ALL = 0xFFFFFFFF
# The passes of a loop's head on the way to a block inside: since the event, or since the lane came
# into the loop, and their number; None: there are several.
_Passes = tuple[bool, int] | None


def all_meet(block: Block) -> bool:
    """Whether all live lanes meet at a block's end."""
    last = block.last
    if last.mnemonic == "BAR":
        return last.has("SYNC") and is_plain_barrier(last) and last.guard.is_true
    mask = last.get("Ra")
    whole = last.has("ALL") or (isinstance(mask, Imm) and mask.value & _ALL == _ALL)
    plain = not last.has("COLLECTIVE") and not last.has("EXCLUSIVE")
    return last.mnemonic == "WARPSYNC" and plain and whole and last.guard.is_true


def steady(
    cfg: Cfg,
    uniformity: Uniformity,
    after: Sequence[Sequence[int]],
    loops: Mapping[int, Set[int]],
    nests: Sequence[tuple[int, ...] | None],
) -> tuple[bool, ...]:
    """By block index, whether lanes that are there at the same time are in the same turns of the
    loops around it.  ``after``: the blocks after each in its function; ``loops``: the blocks of
    each loop with one head, by that; ``nests``: the heads of the loops around each block, None in a
    loop with several."""
    converged = uniformity.converged
    lost = {n for n, nest in enumerate(nests) if nest is None}
    for head, inside in loops.items():
        if converged[head]:
            continue  # each turn is an event
        if not converged[cfg.by_start[cfg.blocks[head].function]]:
            lost |= inside
            continue
        several = _several(cfg, [(_OUTSIDE, (False, 0), head)], head, inside, after, converged)
        for n in inside:
            if converged[n] or all_meet(cfg.blocks[n]):
                ways = [(n, (True, 0), to) for to in after[n]]
                several |= _several(cfg, ways, head, inside, after, converged)
        events = {n for n in several if converged[n] or all_meet(cfg.blocks[n])}
        lost |= inside if events else several
    return tuple(n not in lost for n in range(len(cfg.blocks)))


_OUTSIDE = -1  # a block outside of all loops


def _several(
    cfg: Cfg,
    ways: Iterable[tuple[int, tuple[bool, int], int]],
    head: int,
    inside: Set[int],
    after: Sequence[Sequence[int]],
    converged: Sequence[bool],
) -> set[int]:
    """The blocks of the loop to which ways from an event, without another in between, have
    different numbers of passes.  ``ways``: the edges after the event, with what was counted
    before."""
    found: dict[int, _Passes] = {}
    work: list[int] = []

    def come(src: int, now: _Passes, dst: int) -> None:
        new = now
        if dst not in inside:
            new = False, 0
        elif dst == head:
            new = (False, 1) if src not in inside else None if now is None else (now[0], now[1] + 1)
        merged = new if found.get(dst, new) == new else None
        if dst not in found or merged != found[dst]:
            found[dst] = merged
            work.append(dst)

    for way in ways:
        come(*way)
    while work:
        n = work.pop()
        if not converged[n] and not all_meet(cfg.blocks[n]):
            for to in after[n]:
                come(n, found[n], to)
    return {n for n, passes in found.items() if passes is None and n in inside}


def two_places(cfg: Cfg, uniformity: Uniformity, classes: Mapping[int, str]) -> set[int]:
    """Of meetings (by the offset of a block's last instruction, with the name of their class),
    those at which lanes may have come from several of a class."""
    place = {b.index: classes[b.last.offset] for b in cfg.blocks if b.last.offset in classes}
    if len(place) < 2:
        return set()
    bad: set[int] = set()
    for _, seen, _ in between_events(cfg, uniformity.converged):
        by_class: dict[str, list[int]] = {}
        for n in seen & place.keys():
            by_class.setdefault(place[n], []).append(n)
        bad.update(cfg.blocks[n].last.offset for s in by_class.values() if len(s) > 1 for n in s)
    return bad


def between_events(
    cfg: Cfg, converged: Sequence[bool]
) -> Iterator[tuple[int | None, set[int], set[int]]]:
    """For each event the blocks in which lanes may be before the next one; with the block whose
    start it is, which is among them, or None if it is the end of one; and the blocks whose starts
    may be the next event."""
    after = [[e.dst for e in some] for some in cfg.successors]
    starts: list[tuple[int | None, list[int]]]
    starts = [(n, [n]) for n, here in enumerate(converged) if here or n == 0]
    starts += [(None, after[b.index]) for b in cfg.blocks if all_meet(b)]
    for begun, first in starts:
        reached = {n for n in first if converged[n] and n != begun}
        seen = set(first) - reached
        work = list(seen)
        while work:
            n = work.pop()
            if not all_meet(cfg.blocks[n]):
                reached |= {to for to in after[n] if converged[to]}
                more = {to for to in after[n] if to not in seen and not converged[to]}
                seen |= more
                work += more
        yield begun, seen, reached


__all__ = ["all_meet", "between_events", "steady", "two_places"]
