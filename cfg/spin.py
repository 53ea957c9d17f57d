"""Loops in which lanes may wait for what other lanes do.

A lane that spins on a lock or a flag must not keep the lane it waits for from running.  The
candidates are loops with an atomic, a strong load or a look at an arrival barrier, and loops with a
load from shared memory that the compiler marked (YIELD or NANOSLEEP).  In the marked ones lanes
that left the loop may also go on past the BSYNC behind it without the others: nvcc puts BSYNC in
front of critical sections, and an H200 finishes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sassxlate.disasm.sass.ir import Instruction, Label

from .model import Block, Cfg

_ATOMIC = frozenset({"ATOM", "ATOMG", "ATOMS"})
_LOADS = frozenset({"LD", "LDG"})
_MARKS = frozenset({"YIELD", "NANOSLEEP"})


@dataclass(frozen=True, slots=True)
class Spins:
    """Block indices: ``latches`` end with the back edge of such a loop; ``marked`` belong to a
    marked loop, or call a function that has one."""

    latches: frozenset[int]
    marked: frozenset[int]


def _waits(ins: Instruction) -> bool:
    strong = ins.has("STRONG") or ins.has("MMIO")
    looks = ins.mnemonic == "SYNCS" and ins.has("PHASECHK")
    return looks or ins.mnemonic in _ATOMIC or (ins.mnemonic in _LOADS and strong)


def _latch_target(block: Block) -> int | None:
    last = block.last
    label = last.get("target")
    if last.mnemonic in ("BRA", "JMP") and isinstance(label, Label) and label.target <= last.offset:
        return label.target
    return None


def _body(before: Sequence[Sequence[int]], header: int, latch: int) -> set[int]:
    """The blocks from which ``latch`` is reached before ``header`` is; ``before`` has each block's
    predecessors, calls passed over."""
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
    """Whether a function calls itself, if through others."""
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


def _functions(cfg: Cfg, holds: Callable[[Instruction], bool]) -> frozenset[int]:
    """The functions with such an instruction, or that call one with it."""
    found = {b.function for b in cfg.blocks if any(map(holds, b.instructions))}
    changed = True
    while changed:
        more = {b.function for b in cfg.blocks if _callees(cfg, b) & found} - found
        found |= more
        changed = bool(more)
    return frozenset(found)


def _blocks(
    cfg: Cfg, holds: Callable[[Instruction], bool], functions: frozenset[int]
) -> frozenset[int]:
    """The blocks with such an instruction, or that call one of the functions."""
    return frozenset(
        b.index
        for b in cfg.blocks
        if any(map(holds, b.instructions)) or _callees(cfg, b) & functions
    )


def spins(cfg: Cfg) -> Spins:
    """All spin loops of a kernel."""
    waiting = _functions(cfg, _waits)
    yielding = _functions(cfg, lambda i: i.mnemonic in _MARKS)
    waits = _blocks(cfg, _waits, waiting)
    marks = _blocks(cfg, lambda i: i.mnemonic in _MARKS, yielding)
    shares = _blocks(cfg, lambda i: i.mnemonic in ("LDS", "LD"), frozenset())
    before = [[e.src for e in some if e.kind not in ("call", "ret")] for some in cfg.predecessors]
    latches: set[int] = set()
    marked: set[int] = set()
    for block in cfg.blocks:
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
