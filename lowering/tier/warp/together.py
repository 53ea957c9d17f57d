"""Which lanes run a block together: in SASS, by its barriers, and in LLVM's structured code.

LLVM runs a block once in each turn of the innermost loop around it, with all lanes that come to it
in this turn.  A block is in *step* if that is also so in SASS: all live lanes are in it whenever
one is (`cfg/uniformity.py`), and they are in the same turns of the loops around it (`turns.py`).
Then both have all live lanes there.

Loops in which a lane may wait for a store of another lane of its warp need lanes that run apart;
they are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

from sassxlate.cfg import Cfg, Uniformity
from sassxlate.cfg.build import conditions, is_conditional
from sassxlate.cfg.dominators import components
from sassxlate.cfg.graph import Block, Edge
from sassxlate.cfg.regions import regions
from sassxlate.cfg.spin_loops import spins
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.convergence.plan import is_plain_barrier
from sassxlate.lowering.tier.refusal import FLOW, FORM, TOGETHER, WAITING, refused
from sassxlate.lowering.tier.warp.agreed import all_here
from sassxlate.lowering.tier.warp.apart import uniform_registers
from sassxlate.lowering.tier.warp.reductions import reduces
from sassxlate.lowering.tier.warp.retries import retries
from sassxlate.lowering.tier.warp.turns import steady

_INSIDE = ("taken", "fall", "sync", "back")  # edges within a function


@dataclass(frozen=True, slots=True)
class Together:
    """By block index, whether it is in step, and whether its lanes are the same group as in SASS
    (:func:`as_a_group`); whether lanes may exchange data through shared memory
    between two accesses without a barrier.

    ``exchanges``: then, by offset, before which accesses a fence keeps that order; without it, they
    are volatile."""

    in_step: tuple[bool, ...]
    group: tuple[bool, ...]
    ordered_shared: bool
    agreed: Mapping[int, Instruction]  # tests whether masks agree, by the offset where to make them
    exchanges: frozenset[int] = frozenset()

    @property
    def volatile(self) -> bool:
        return self.ordered_shared and not self.exchanges


def cycles(nodes: Iterable[int], after: Sequence[Sequence[int]]) -> list[frozenset[int]]:
    """The strongly connected components with a cycle."""
    found = components(nodes, after)
    return [part for part in found if len(part) > 1 or any(n in after[n] for n in part)]


def _edges(cfg: Cfg) -> list[list[int]]:
    return [[e.dst for e in some if e.kind in _INSIDE] for some in cfg.successors]


def _nests(cfg: Cfg, after: Sequence[Sequence[int]]) -> list[tuple[int, ...] | None]:
    """By block index, the heads of the loops around it, outermost first; None in a loop with
    several heads."""
    return _loops(cfg, after)[0]


def _loops(
    cfg: Cfg, after: Sequence[Sequence[int]]
) -> tuple[list[tuple[int, ...] | None], dict[int, frozenset[int]]]:
    """:func:`_nests`, and the blocks of each loop with one head, by that."""
    before: list[list[int]] = [[] for _ in cfg.blocks]
    for src, some in enumerate(after):
        for dst in some:
            before[dst].append(src)
    nests: list[tuple[int, ...] | None] = [()] * len(cfg.blocks)
    entries = {cfg.by_start[f] for f in cfg.functions}
    loops: dict[int, frozenset[int]] = {}
    work = cycles(range(len(cfg.blocks)), after)
    while work:
        part = work.pop()
        heads = _entered(part, before, entries)
        head = next(iter(heads))
        if len(heads) == 1:
            loops[head] = part
        for n in part:
            around = nests[n]
            nests[n] = None if around is None or len(heads) != 1 else (*around, head)
        work += cycles(part - heads, after)
    return nests, loops


def _entered(
    part: frozenset[int], before: Sequence[Sequence[int]], entries: Set[int]
) -> frozenset[int]:
    """The blocks of a loop that lanes come to from outside."""
    return frozenset(n for n in part if n in entries or any(p not in part for p in before[n]))


def _heads(cfg: Cfg, part: frozenset[int], after: Sequence[Sequence[int]]) -> frozenset[int]:
    before: list[list[int]] = [[] for _ in cfg.blocks]
    for src, some in enumerate(after):
        for dst in some:
            before[dst].append(src)
    return _entered(part, before, {cfg.by_start[f] for f in cfg.functions})


def in_step(cfg: Cfg, uniformity: Uniformity) -> tuple[bool, ...]:
    """By block index: see the module."""
    return _steps(cfg, uniformity)[0]


def _steps(cfg: Cfg, uniformity: Uniformity) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """By block index: whether it is in step; whether lanes that are there at the same time are in
    the same turns."""
    after = _edges(cfg)
    nests, loops = _loops(cfg, after)
    turns = list(steady(cfg, uniformity, after, loops, nests))
    good = [here and same for here, same in zip(uniformity.converged, turns, strict=True)]
    _through_calls(cfg, good)
    calls = [e for e in cfg.edges if e.kind == "call" and not good[e.src]]
    apart = {cfg.blocks[e.dst].function for e in calls}
    for block in cfg.blocks:
        if block.function in apart:
            turns[block.index] = False
    return tuple(good), tuple(turns)


def as_a_group(cfg: Cfg, step: Sequence[bool]) -> tuple[bool, ...]:
    """By block index, whether the lanes that run it together are the same in SASS: it is in step,
    or all lanes of such a block that take one edge come here and no others do, or they all come
    here from their BSYNC, or it is the head of a loop whose lanes come from such a block, turn by
    turn."""
    nests = _nests(cfg, _edges(cfg))
    joins = joined(cfg)
    good = list(step)

    def follows(n: int) -> bool:
        if len(cfg.predecessors[n]) != 1 or nests[n] is None:
            return False
        (edge,) = cfg.predecessors[n]
        last = cfg.blocks[edge.src].last
        if last.mnemonic == "BSYNC":
            arm = joins.get(n)
            return arm is not None and good[arm] and nests[arm] == nests[n]
        return _plain(cfg, edge) and good[edge.src] and nests[edge.src] == nests[n]

    def grown() -> None:
        changed = True
        while changed:
            changed = False
            for n, already in enumerate(good):
                if not already and follows(n):
                    good[n] = changed = True

    def turns(head: int) -> bool:
        """Whether the lanes of a loop's turn are the same if those of the first one are: all that
        go back come from one block, in which they are together."""
        nest, edges = nests[head], cfg.predecessors[head]
        assert nest is not None
        around = [e for e in edges if nests[e.src] == nest]
        into = [e for e in edges if nests[e.src] == nest[:-1]]
        if len(edges) != 2 or len(around) != 1 or len(into) != 1 or not good[into[0].src]:
            return False
        if not all(_plain(cfg, e) for e in edges):
            return False
        before = list(good)
        good[head] = True
        grown()
        if not good[around[0].src]:
            good[:] = before
        return good[head]

    grown()
    heads = sorted({nest[-1] for nest in nests if nest})
    while any([not good[h] and turns(h) for h in heads if nests[h] is not None]):
        pass
    return tuple(good)


def _plain(cfg: Cfg, edge: Edge) -> bool:
    """Whether the lanes that take an edge come to its end as they left its start."""
    last = cfg.blocks[edge.src].last
    if last.mnemonic in ("WARPSYNC", "BAR", "BSYNC") or edge.kind not in ("fall", "taken"):
        return False
    return traits(last).transfer not in ("indirect", "call", "return", "resume")


def joined(cfg: Cfg) -> dict[int, int]:
    """For blocks after a BSYNC at which all lanes of its BSSY meet, and no others: the block of
    that.

    Lanes may pass a BSYNC alone where others spin in its region (`cfg/spin_loops.py`): they need
    not, unless one waits for another, and that is refused.
    """
    found, region_of = regions(cfg)
    block_of = {i.offset: b.index for b in cfg.blocks for i in b.instructions}
    out: dict[int, int] = {}
    for n, edges in enumerate(cfg.predecessors):
        last = cfg.blocks[edges[0].src].last if len(edges) == 1 else None
        if last is None or last.mnemonic != "BSYNC" or not last.guard.is_true:
            continue
        number = region_of.get(last.offset, -1)
        region = found[number] if number >= 0 else None
        if region is None or region.breaks or region.left or region.waits:
            continue
        if len(region.syncs) != 1 or len(region.arms) != 1:
            continue
        arm = block_of[region.arms[0]]
        plain = all(
            i.guard.is_true for i in cfg.blocks[arm].instructions if i.offset == region.arms[0]
        )
        if plain:
            out[n] = arm
    return out


def _same_lanes(cfg: Cfg, group: Sequence[bool], start: int, end: int) -> bool:
    """Whether the lanes of block ``end`` are those of ``start``, before it."""
    nests, joins = _nests(cfg, _edges(cfg)), joined(cfg)
    n = end
    for _ in cfg.blocks:
        if not group[n] or nests[n] is None or nests[n] != nests[start]:
            return False
        if n == start:
            return True
        before = cfg.predecessors[n]
        if n in joins:
            n = joins[n]
        elif len(before) == 1 and len(cfg.successors[before[0].src]) == 1:
            (edge,) = before
            if edge.kind not in ("fall", "taken"):
                return False
            n = edge.src
        else:
            return False
    return False


def _votes(cfg: Cfg, group: Sequence[bool], votes: Mapping[int, int]) -> None:
    """Refuses a test of the lanes that voted elsewhere if others may be there, or some may not."""
    at = {i.offset: (b.index, i) for b in cfg.blocks for i in b.instructions}
    for test, vote in votes.items():
        if test not in at or vote not in at:
            continue  # no lane comes there
        (end, ins), (start, _) = at[test], at[vote]
        if (start == end and vote > test) or not _same_lanes(cfg, group, start, end):
            raise refused(FLOW, "a test of lanes that may not be here", ins)


def _through_calls(cfg: Cfg, good: list[bool]) -> None:
    """A function is in step only if all its calls are."""
    changed = True
    while changed:
        changed = False
        for block in cfg.blocks:
            for edge in cfg.successors[block.index]:
                if edge.kind != "call" or good[block.index]:
                    continue
                called = cfg.blocks[edge.dst].function
                for b in cfg.blocks:
                    if b.function == called and good[b.index]:
                        good[b.index] = False
                        changed = True


def _sees_others(ins: Instruction) -> bool:
    return bool(traits(ins).lanes)


def _barriers(cfg: Cfg, step: Sequence[bool], group: Sequence[bool], turns: Sequence[bool]) -> None:
    for block in cfg.blocks:
        for ins in block.instructions:
            if ins.mnemonic == "BAR":
                if not reduces(ins) and not (ins.has("SYNC") and is_plain_barrier(ins)):
                    raise refused(FORM, "this kind of BAR", ins)
                if not ins.guard.is_true:
                    raise refused(TOGETHER, "a barrier under a guard", ins)
                if not (step if reduces(ins) else turns)[block.index]:
                    raise refused(TOGETHER, "a barrier where lanes run apart", ins)
            elif ins.has("COLLECTIVE") or ins.mnemonic == "ENDCOLLECTIVE":
                raise refused(FLOW, "a collective section", ins)
            elif ins.has("EXCLUSIVE"):
                raise refused(TOGETHER, "WARPSYNC.EXCLUSIVE", ins)
            elif ins.mnemonic == "WARPSYNC" and not turns[block.index]:
                raise refused(TOGETHER, "lanes that wait for each other in different turns", ins)
            elif _sees_others(ins) and not group[block.index]:
                raise refused(TOGETHER, "sees other lanes where lanes run apart", ins)


# --- loops that wait ---------------------------------------------------------------------------


def _brings(ins: Instruction) -> bool:
    """Whether its result comes from memory that others may write."""
    t = traits(ins)
    return t.reaches(("load", "atomic", "arrival"), "generic", "global", "shared")


def _waiting(cfg: Cfg, step: Sequence[bool]) -> None:
    """Refuses a loop that lanes leave by what they read from memory, unless all lanes run it
    together, or it retries an exchange."""
    suspects = [b for b in spins(cfg).latches if not step[b]]
    if not suspects:
        return
    after = _edges(cfg)
    work = cycles(range(len(cfg.blocks)), after)
    while work:
        part = work.pop()
        if not any(b in part for b in suspects):
            continue
        heads = _heads(cfg, part, after)
        work += cycles(part - heads, after)
        if len(heads) == 1 and retries(cfg, part, next(iter(heads)), after):
            continue
        out_of = _brought(cfg, part, after)
        for b in part:
            last = cfg.blocks[b].last
            leaves = last.mnemonic == "EXIT" or any(n not in part for n in after[b])
            named = {RegRef(p.file, p.index) for p in conditions(last) if p.index != 7}
            if leaves and is_conditional(last) and named & out_of[b]:
                raise refused(WAITING, "a loop that may wait for another lane", last)


def _brought(
    cfg: Cfg, part: frozenset[int], after: Sequence[Sequence[int]]
) -> dict[int, set[RegRef]]:
    """For each block of a loop, the registers at its end that come from memory read in the loop."""
    called = _called(cfg, part)
    from_calls: set[RegRef] = set()
    if any(map(_brings, called)):
        from_calls.update(w for i in called for w in i.writes)
    into: dict[int, set[RegRef]] = {b: set() for b in part}
    out: dict[int, set[RegRef]] = {b: set() for b in part}
    work = sorted(part)
    while work:
        b = work.pop()
        now = set(into[b])
        for ins in cfg.blocks[b].instructions:
            if _brings(ins) or now & ins.reads:
                now |= ins.writes
            elif ins.guard.is_true:
                now -= ins.writes
        if any(e.kind == "call" for e in cfg.successors[b]):
            now |= from_calls
        out[b] = now
        for n in after[b]:
            if n in part and now - into[n]:
                into[n] |= now
                work.append(n)
    return out


def _called(cfg: Cfg, part: Iterable[int]) -> list[Instruction]:
    """The instructions of the functions that these blocks call, directly or not."""
    found: set[int] = set()
    work = [e.dst for b in part for e in cfg.successors[b] if e.kind == "call"]
    while work:
        function = cfg.blocks[work.pop()].function
        if function in found:
            continue
        found.add(function)
        work += [
            e.dst
            for b in cfg.blocks
            if b.function == function
            for e in cfg.successors[b.index]
            if e.kind == "call"
        ]
    return [i for b in cfg.blocks if b.function in found for i in b.instructions]


# --- shared memory -----------------------------------------------------------------------------

_LOADED, _STORED, _BOTH = 1, 2, 3


def _accesses(ins: Instruction) -> int:
    """How an instruction accesses shared memory."""
    if ins.guard.is_false:  # it has no code, and so no fence before it
        return 0
    t = traits(ins)
    spaces = ("shared", "generic")
    loads, stores = t.reaches(("load",), *spaces), t.reaches(("store",), *spaces)
    if ins.mnemonic == "LDGSTS":
        stores = True
    if t.reaches(("atomic", "reduction", "arrival"), *spaces):
        loads = stores = True
    return _LOADED * loads | _STORED * stores


def exchanges(cfg: Cfg) -> tuple[bool, frozenset[int]]:
    """Whether a lane may load from shared memory, and store to it, without a barrier in between:
    the lanes of a warp may exchange data that way, as code from before WARPSYNC did.  And before
    which accesses, by offset, a fence keeps all in SASS's order but loads among themselves."""
    fences: set[int] = set()
    exchanged = False

    def through(block: Block, state: int) -> tuple[int, bool]:
        """The kinds of accesses since the last meeting of lanes, and, in the bits above, since the
        last fence; and whether there was an exchange."""
        clash = False
        met, fenced = state & _BOTH, state >> 2
        for ins in block.instructions:
            own = _accesses(ins)
            if ins.mnemonic in ("BAR", "WARPSYNC"):
                met = fenced = 0
            elif own:
                clash |= bool(
                    (own & _LOADED and met & _STORED) or (own & _STORED and met & _LOADED)
                )
                if (own & _STORED and fenced) or fenced & _STORED:
                    fences.add(ins.offset)
                    fenced = 0
                met, fenced = met | own, fenced | own
        return met | fenced << 2, clash

    into = [0] * len(cfg.blocks)
    work = list(range(len(cfg.blocks)))
    while work:
        b = work.pop()
        out, clash = through(cfg.blocks[b], into[b])
        exchanged |= clash
        for edge in cfg.successors[b]:
            if out & ~into[edge.dst]:
                into[edge.dst] |= out
                work.append(edge.dst)
    return exchanged, frozenset(fences) if exchanged else frozenset()


def together(
    cfg: Cfg,
    uniformity: Uniformity,
    votes: Mapping[int, int] = MappingProxyType({}),
    agreed: Mapping[int, Instruction] = MappingProxyType({}),
) -> Together:
    """``votes``: where lanes are tested, by offset, and the votes of these lanes; ``agreed``: tests
    whether the masks of all lanes agree (:mod:`.tests_of_warp`).

    Raises Refused: SX0461, lanes that an instruction sees may differ; SX0462, lanes may wait for
    each other; SX0463, a test of lanes that may not be there."""
    step, turns = _steps(cfg, uniformity)
    group = as_a_group(cfg, step)
    _barriers(cfg, step, group, turns)
    _votes(cfg, group, votes)
    all_here(cfg, step, tuple(agreed))
    nests = _nests(cfg, _edges(cfg))
    joins = {met: arm for met, arm in joined(cfg).items() if nests[met] == nests[arm] is not None}
    uniform_registers(cfg, step, joins, uniformity)
    _waiting(cfg, step)
    exchanged, fences = exchanges(cfg)
    return Together(step, group, exchanged, agreed, fences)


__all__ = ["Together", "cycles", "exchanges", "together"]
