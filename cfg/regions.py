"""Convergence regions: which BSSYs arm the barrier that a BSYNC waits for."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sassxlate.cfg.collective_sections import Collective
from sassxlate.cfg.graph import Block, Cfg
from sassxlate.cfg.spin_loops import Spins, spins
from sassxlate.disasm.sass.instruction import BReg, Instruction, Label, Reg

BARRIERS = 16  # B0 to B15; higher numbers are thread state
_BARRIER = re.compile(r"\bB\d")
_Named: TypeAlias = list[tuple[Instruction, int]]  # of a block


@dataclass(frozen=True, slots=True)
class Region:
    """A convergence region: the BSSYs that arm it and the BSYNCs that wait for it."""

    target: int  # BSSY's operand, the byte offset just after the BSYNC
    barrier: int  # n of Bn
    arms: tuple[int, ...]  # offsets of the BSSY instructions
    syncs: tuple[int, ...]  # offsets of the BSYNC instructions
    breaks: tuple[int, ...]  # offsets of BREAK and BMOV instructions that may take lanes out
    soft: bool = False  # lanes may leave it while others spin inside
    waits: tuple[int, ...] = ()  # blocks inside, or called from there, that end with a WARPSYNC
    # Blocks after whose end no lane reaches a BSYNC or BREAK of the barrier before arming it again;
    # empty if all lanes leave by those.
    left: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Reach:
    """The arms that reach an instruction, by offset, and a block's end, by index."""

    by_sync: dict[int, frozenset[int]]
    by_break: dict[int, frozenset[int]]
    by_block: dict[int, frozenset[int]]
    by_edge: dict[tuple[int, int], frozenset[int]]  # by the blocks before and after it


def barrier_of(ins: Instruction) -> int | None:
    """The convergence barrier register that an instruction names; None for thread state."""
    breg = ins.operands.get("B")
    return breg.index if isinstance(breg, BReg) and breg.index < BARRIERS else None


def moves_barrier(ins: Instruction) -> bool:
    """Whether a barrier's mask is saved to or restored from a register (clearing alone is not)."""
    if ins.mnemonic != "BMOV" or barrier_of(ins) is None:
        return False
    target = ins.get("Rd")
    return not (isinstance(target, Reg) and target.is_zero)


def disarms(ins: Instruction) -> bool:
    """BREAK, or BMOV that clears a barrier and saves nothing."""
    if ins.mnemonic == "BMOV":
        return barrier_of(ins) is not None and ins.has("CLEAR")
    return ins.mnemonic == "BREAK"


def regions(
    cfg: Cfg, spinning: Spins | None = None
) -> tuple[tuple[Region, ...], Mapping[int, int]]:
    """All regions, and for each BSYNC offset the index of its region, or -1 if it has none.
    ``spinning``: the kernel's spin loops, if they are known.

    A BSYNC belongs to the BSSYs of its barrier that reach it.  Regions that share a BSYNC are one.
    """
    arms: dict[int, tuple[int, int]] = {}  # BSSY offset -> (barrier, target)
    named = [_named(block) for block in cfg.blocks]
    for some in named:
        for ins, barrier in some:
            label = ins.get("target")
            if ins.mnemonic == "BSSY" and isinstance(label, Label):
                arms[ins.offset] = (barrier, label.target)
    reach = _reaching(cfg, arms, named)
    parent: dict[int, int] = {o: o for o in arms}

    def find(x: int) -> int:
        while parent[x] != x:
            parent[x] = x = parent[parent[x]]
        return x

    first_of: dict[tuple[int, int], int] = {}
    for offset, key in arms.items():  # the same barrier and target: the same region
        parent[find(offset)] = find(first_of.setdefault(key, offset))
    for reaching in reach.by_sync.values():
        ordered = sorted(reaching)
        for other in ordered[1:]:
            parent[find(other)] = find(ordered[0])
    roots = sorted({find(o) for o in arms})
    index = {root: i for i, root in enumerate(roots)}
    sync_region = {o: index[find(min(a))] if a else -1 for o, a in reach.by_sync.items()}
    marked = (spinning or spins(cfg)).marked
    spun = {find(a) for b in marked for a in reach.by_block.get(b, ())}
    waits = _waits(cfg, {b: frozenset(map(find, here)) for b, here in reach.by_block.items()})
    needed = _needed(cfg, named)
    leaking = {  # arms that carry over an edge after which nothing waits for their barrier
        a
        for (_, dst), carried in reach.by_edge.items()
        for a in carried
        if not needed[dst] >> arms[find(a)][0] & 1
    }
    leaky = {find(a) for a in leaking}
    members_of: dict[int, list[int]] = {root: [] for root in roots}
    for arm in arms:
        members_of[find(arm)].append(arm)
    syncs_of: dict[int, list[int]] = {}
    for sync, number in sync_region.items():
        syncs_of.setdefault(number, []).append(sync)
    breaks_of: dict[int, list[int]] = {}
    for offset, broken in reach.by_break.items():
        for root in {find(arm) for arm in broken}:
            breaks_of.setdefault(root, []).append(offset)
    # By barrier: a kernel has up to 16, and perhaps a thousand regions that leak.
    unneeded: dict[int, frozenset[int]] = {}
    made: list[Region] = []
    for number, root in enumerate(roots):
        members = tuple(members_of[root])
        barrier, target = arms[root]
        syncs = tuple(syncs_of.get(number, ()))
        breaks = tuple(breaks_of.get(root, ()))
        inside = tuple(sorted(waits.get(root, ())))
        left = frozenset[int]()
        if root in leaky:
            if barrier not in unneeded:
                unneeded[barrier] = frozenset(
                    b.index
                    for b in cfg.blocks
                    if not any(needed[n] >> barrier & 1 for n in _successors(cfg, b))
                )
            left = unneeded[barrier]
        made.append(Region(target, barrier, members, syncs, breaks, root in spun, inside, left))
    return tuple(made), sync_region


def _waits(cfg: Cfg, by_block: Mapping[int, frozenset[int]]) -> Mapping[int, frozenset[int]]:
    """For each region (given the regions of each block): its blocks that end with a WARPSYNC.

    This includes blocks of functions called from inside the region, directly or indirectly.
    """
    ends = {b.index for b in cfg.blocks if b.last.mnemonic == "WARPSYNC"}
    if not ends:
        return {}
    members: dict[int, set[int]] = {}
    for block in cfg.blocks:
        members.setdefault(block.function, set()).add(block.index)
    callees = {
        b.index: {cfg.blocks[e.dst].function for e in cfg.successors[b.index] if e.kind == "call"}
        for b in cfg.blocks
    }
    of_function = {f: some & ends for f, some in members.items()}
    changed = True
    while changed:
        changed = False
        for function, some in members.items():
            for called in {f for b in some for f in callees[b]}:
                new = of_function[called] - of_function[function]
                of_function[function] |= new
                changed |= bool(new)
    found: dict[int, set[int]] = {}
    for index, roots in by_block.items():
        inside = {index} & ends
        for function in callees[index]:
            inside |= of_function[function]
        for root in roots if inside else ():
            found.setdefault(root, set()).update(inside)
    return {root: frozenset(some) for root, some in found.items()}


def _needed(cfg: Cfg, named: Sequence[_Named]) -> list[int]:
    """Of each block, as bits, the barriers that a lane at its start may wait at, leave or save
    before it arms them again.  Ways through callees are those of all their calls: too many are
    named, never too few."""
    needed = [0] * len(cfg.blocks)
    before: list[list[int]] = [[] for _ in cfg.blocks]
    after = [_successors(cfg, block) for block in cfg.blocks]
    for index, some in enumerate(after):
        for n in some:
            before[n].append(index)
    work = [b.index for b in cfg.blocks]
    while work:
        index = work.pop()
        now = 0
        for n in after[index]:
            now |= needed[n]
        for ins, barrier in reversed(named[index]):
            if ins.mnemonic != "BSSY":
                now |= 1 << barrier
            elif ins.guard.is_true:
                now &= ~(1 << barrier)
        if now != needed[index]:
            needed[index] = now
            work += before[index]
    return needed


def _named(block: Block) -> _Named:
    """The instructions that name a convergence barrier, each with its number."""
    found: _Named = []
    for ins in block.instructions:
        if "B" in ins.operands:
            barrier = barrier_of(ins)
            if barrier is not None:
                found.append((ins, barrier))
    return found


def _successors(cfg: Cfg, block: Block) -> tuple[int, ...]:
    """The blocks where a lane continues: after a collective section, which the lanes of all
    sections of its class may run, that is the block after its own."""
    last, home = block.last, block.last.get("target")
    if last.mnemonic == "WARPSYNC" and last.has("COLLECTIVE") and isinstance(home, Label):
        index = cfg.by_start.get(home.target)
        if index is not None:
            return (index,)
    return tuple(e.dst for e in cfg.successors[block.index])


def _reaching(cfg: Cfg, arms: Mapping[int, tuple[int, int]], named: Sequence[_Named]) -> _Reach:
    """Forward dataflow.  Arms end at a BSYNC of their barrier, and where BMOV changes it."""
    state: list[frozenset[int]] = [frozenset()] * len(cfg.blocks)
    found = _Reach({}, {}, {}, {})
    work = deque(b.index for b in cfg.blocks)
    queued = set(work)
    while work:
        block = cfg.blocks[work.popleft()]
        queued.discard(block.index)
        live = state[block.index]
        for ins, barrier in named[block.index]:
            mine = frozenset(a for a in live if arms[a][0] == barrier)
            if ins.mnemonic == "BSSY" and ins.offset in arms:
                live = (live - mine if ins.guard.is_true else live) | {ins.offset}
                continue
            if ins.mnemonic == "BSYNC":
                found.by_sync[ins.offset] = mine
            if disarms(ins):
                found.by_break[ins.offset] = mine
            gone = ins.mnemonic == "BSYNC" or (ins.mnemonic == "BMOV" and _changes(ins))
            if gone and ins.guard.is_true:
                live -= mine
        # The header of a loop sees what is live at the loop's end as well as at its start.
        found.by_block[block.index] = live | state[block.index]
        for index in _carried(cfg, block):
            found.by_edge[block.index, index] = live
            merged = state[index] | live
            if merged != state[index]:
                state[index] = merged
                if index not in queued:
                    queued.add(index)
                    work.append(index)
    return found


def _carried(cfg: Cfg, block: Block) -> list[int]:
    """The blocks to which an arm carries over.

    Callees save and restore what they use: it carries over a call, not through it.  Likewise a
    collective section: the lanes of a whole class of sections run one of them, and regions that
    have only this in common are not one (their lanes would wait for each other).
    """
    end = cfg.collectives.by_end.get(block.last.offset)
    if end is not None and not _has_barriers(end):
        return []
    here = cfg.collectives.by_sync.get(block.last.offset)
    inside = [e.dst for e in cfg.successors[block.index] if e.kind not in ("call", "ret")]
    if here is None or _has_barriers(here):
        return inside
    return [*inside, *(n for n in _successors(cfg, block) if n not in inside)]


def _has_barriers(section: Collective) -> bool:
    """Whether a section names a convergence barrier, which none of nvcc's does."""
    return any(_BARRIER.search(text) for text in section.body)


def _changes(ins: Instruction) -> bool:
    return ins.has("CLEAR") or ins.get("Rd") is None
