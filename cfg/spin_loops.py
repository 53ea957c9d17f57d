"""Loops in which lanes may wait for other lanes.

A lane that spins on a lock or a flag must not keep the lane it waits for from running.  The
candidates are loops with an atomic, a strong load or a test of an arrival barrier, and loops with a
load from shared memory that the compiler marked (YIELD or NANOSLEEP).  In marked loops, lanes that
have left the loop may also pass the BSYNC after it without the others: nvcc puts BSYNC before
critical sections, and an H200 finishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.cfg.graph import Block, Cfg
from sassxlate.disasm.sass.instruction import Instruction, Label
from sassxlate.disasm.sass.traits import Traits, traits


@dataclass(frozen=True, slots=True)
class Spins:
    """Block indices: ``latches`` end with the back edge of such a loop; ``marked`` belong to a
    marked loop, or call a function that has one."""

    latches: frozenset[int]
    marked: frozenset[int]


def _waits(ins: Instruction, t: Traits) -> bool:
    looks = t.reaches(("arrival",)) and ins.has("PHASECHK")
    loads = t.reaches(("load",), "generic", "global")
    strong = ins.has("STRONG") or ins.has("MMIO")
    return looks or t.reaches(("atomic",)) or (loads and strong)


def _looks_at_shared(t: Traits) -> bool:
    """A load from memory that may be shared, executed per lane."""
    return t.reaches(("load",), "generic", "shared") and not t.lanes


def _latch_target(block: Block) -> int | None:
    last = block.last
    label = last.get("target")
    if traits(last).transfer != "jump" or not isinstance(label, Label):
        return None
    return label.target if label.target <= last.offset else None


def _body(before: Sequence[Sequence[int]], header: int, latch: int) -> set[int]:
    """The blocks from which ``latch`` can be reached without passing ``header``; ``before`` lists
    each block's predecessors, skipping over calls."""
    body, work = {header}, [latch]
    while work:
        b = work.pop()
        if b not in body:
            body.add(b)
            work += before[b]
    return body


def _callees(cfg: Cfg, block: Block) -> frozenset[int]:
    return frozenset(
        cfg.blocks[e.dst].start for e in cfg.successors[block.index] if e.kind == "call"
    )


def recursive(cfg: Cfg) -> bool:
    """Whether a function calls itself, directly or through others."""
    called: dict[int, set[int]] = {}
    for block in cfg.blocks:
        called.setdefault(block.function, set()).update(_callees(cfg, block))
    for start in called:
        seen: set[int] = set()
        work = list(called[start])
        while work:
            function = work.pop()
            if function == start:
                return True
            if function not in seen:
                seen.add(function)
                work += called.get(function, ())
    return False


def _reaching(cfg: Cfg, blocks: set[int]) -> set[int]:
    """These blocks, and those that call a function that has one of them or calls such a function
    in turn."""
    called = {b.index: some for b in cfg.blocks if (some := _callees(cfg, b))}
    functions = {cfg.blocks[b].function for b in blocks} if called else set[int]()
    changed = bool(called)
    while changed:
        more = {cfg.blocks[b].function for b, some in called.items() if some & functions}
        changed = not more <= functions
        functions |= more
    return blocks | {b for b, some in called.items() if some & functions}


def spins(cfg: Cfg) -> Spins:
    """All spin loops of a kernel."""
    # The blocks with an instruction that may wait, one that yields, a load from shared memory.
    waiting: set[int] = set()
    yielding: set[int] = set()
    shares: set[int] = set()
    for block in cfg.blocks:
        for ins in block.instructions:
            t = traits(ins)
            if t.yields:
                yielding.add(block.index)
            if t.memory is not None:
                if _waits(ins, t):
                    waiting.add(block.index)
                if _looks_at_shared(t):
                    shares.add(block.index)
    waits, marks = _reaching(cfg, waiting), _reaching(cfg, yielding)
    before = [[e.src for e in some if e.kind not in ("call", "ret")] for some in cfg.predecessors]
    latches: set[int] = set()
    marked: set[int] = set()
    for block in cfg.blocks if waits or (marks and shares) else ():
        target = _latch_target(block)
        if target is None:
            continue
        body = _body(before, cfg.by_start[target], block.index)
        mark = not marks.isdisjoint(body)
        if not waits.isdisjoint(body) or (mark and not shares.isdisjoint(body)):
            latches.add(block.index)
            if mark:
                marked |= body
    functions = {cfg.blocks[b].function for b in marked}
    changed = True
    while changed:
        callers = {b.index for b in cfg.blocks if _callees(cfg, b) & functions}
        changed = not callers <= marked
        marked |= callers
        functions |= {cfg.blocks[b].function for b in callers}
    return Spins(frozenset(latches), frozenset(marked))
