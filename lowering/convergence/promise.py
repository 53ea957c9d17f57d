"""Whether structured execution lets each operation see the lanes that SASS lets it see.

LLVM's AMDGPU backend makes control flow structured: in each turn of the innermost loop around it a
block is run once, by all lanes that come to it in this turn, and lanes that part meet again at the
nearest block that all of them must pass.  SASS says it itself, by BSSY, BSYNC, BREAK and WARPSYNC;
elsewhere lanes that meet may stay apart.  An operation whose result or effect depends on which
lanes run it together is *proved* here if both ways give it the same ones, otherwise it is unknown:

* A block is in *step* if all live lanes are in it whenever one is (`cfg/uniformity.py`), and so
  are they in the head of each loop around it: then they are in the same turn, too, and both ways
  have all live lanes there.  A function is in step only if all blocks that call it are.
* A block is an *arm* if its lanes come by one edge from a block in step or another arm, in the same
  turn: both ways have the lanes there that took the edge, as long as nothing waited in between.

Only the graph decides: nothing here depends on values, and no operation is proved because it
usually works.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sassxlate.cfg import Block, Cfg, Uniformity, analyse
from sassxlate.cfg.build import conditions, is_conditional, is_state_test
from sassxlate.cfg.dominators import components
from sassxlate.cfg.spin_loops import recursive
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.convergence.plan import is_plain_barrier, warpsync_mask

_INSIDE = ("taken", "fall", "sync", "back")  # edges within a function
_UNIFORM = ("UR", "UP")
_ALL = 0xFFFFFFFF


class Reason(StrEnum):
    """Why an operation is proved, or why it is not known to be."""

    STEP = "step"  # proved: all live lanes run it, in the same turn of every loop
    ARM = "arm"  # proved: all lanes that took one edge run it
    LOCAL = "local"  # proved: a uniform register that is read only where it was written
    APART = "apart"  # lanes may run it in groups that SASS and structured code form differently
    TURNS = "turns"  # in a loop that lanes leave or enter at different turns, or by several heads
    GUARD = "guard"  # a lane's own predicate decides whether the warp's state changes
    SHARED = "shared"  # a uniform register that lanes which run apart may read
    MASK = "mask"  # waits for lanes of a mask, which may be elsewhere
    SECTION = "section"  # a collective section, or lanes one by one
    STATE = "state"  # asks which lanes are here
    WAITS = "waits"  # a loop that a lane may leave only after another lane has stored
    RECURSION = "recursion"  # lanes may be in different calls of a function

    @property
    def proved(self) -> bool:
        return self in (Reason.STEP, Reason.ARM, Reason.LOCAL)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that sees other lanes; ``offset`` is its byte offset in the kernel."""

    offset: int
    mnemonic: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Promise:
    """The operations of one kernel in layout order, and by block index: in step, an arm."""

    operations: tuple[Operation, ...]
    step: tuple[bool, ...]
    arm: tuple[bool, ...]

    @property
    def unknown(self) -> tuple[Operation, ...]:
        return tuple(o for o in self.operations if not o.reason.proved)

    @property
    def proved(self) -> bool:
        """Whether structured execution shows every operation of the kernel the lanes of SASS."""
        return not self.unknown


# --- the shape ---------------------------------------------------------------------------------


def _after(cfg: Cfg) -> list[list[int]]:
    return [[e.dst for e in some if e.kind in _INSIDE] for some in cfg.successors]


def nests(cfg: Cfg) -> tuple[tuple[int, ...] | None, ...]:
    """By block index, the heads of the loops around it, outermost first, a head among its own; None
    in a loop that can be entered at more than one block."""
    after = _after(cfg)
    before: list[list[int]] = [[] for _ in after]
    for n, some in enumerate(after):
        for to in some:
            before[to].append(n)
    entries = {cfg.by_start[f] for f in cfg.functions}
    found: list[tuple[int, ...] | None] = [()] * len(after)
    work = [frozenset(range(len(after)))]
    while work:
        inside = work.pop()
        for part in components(inside, after):
            if not any(part.intersection(after[n]) for n in part):
                continue
            heads = {n for n in part if n in entries or not part.issuperset(before[n])}
            alone = len(heads) == 1
            for n in part:
                around = found[n]
                found[n] = (*around, *heads) if around is not None and alone else None
            if alone:
                work.append(frozenset(part - heads))
    return tuple(found)


def _steady(cfg: Cfg, state: Uniformity, around: Sequence[tuple[int, ...] | None]) -> list[bool]:
    good = [
        state.converged[n] and heads is not None and all(state.converged[h] for h in heads)
        for n, heads in enumerate(around)
    ]
    calls = [(b.index, e.dst) for b in cfg.blocks for e in cfg.successors[b.index]
             if e.kind == "call"]  # fmt: skip
    changed = True
    while changed:
        bad = {cfg.blocks[dst].function for src, dst in calls if not good[src]}
        lost = [b.index for b in cfg.blocks if b.function in bad and good[b.index]]
        for n in lost:
            good[n] = False
        changed = bool(lost)
    return good


def _arms(
    cfg: Cfg, state: Uniformity, around: Sequence[tuple[int, ...] | None], step: Sequence[bool]
) -> list[bool]:
    arm = [False] * len(cfg.blocks)

    def follows(block: Block) -> bool:
        before = cfg.predecessors[block.index]
        if len(before) != 1 or around[block.index] is None:
            return False
        edge = before[0]
        source = cfg.blocks[edge.src]
        plain = edge.kind in ("taken", "fall") and traits(source.last).transfer in ("", "jump")
        return (
            plain
            and not is_state_test(source.last)
            and around[edge.src] == around[block.index]
            and not {edge.src, block.index} & state.spins.marked
            and (step[edge.src] or arm[edge.src])
        )

    changed = True
    while changed:
        new = [b.index for b in cfg.blocks
               if not step[b.index] and not arm[b.index] and follows(b)]  # fmt: skip
        for n in new:
            arm[n] = True
        changed = bool(new)
    return arm


# --- operations --------------------------------------------------------------------------------


def _writes_uniform(ins: Instruction) -> frozenset[RegRef]:
    return frozenset(w for w in ins.writes if w.file in _UNIFORM)


def _asks(ins: Instruction) -> bool:
    """Whether it names the lanes that are here, or moves a barrier's mask to or from a register."""
    if is_state_test(ins) or (ins.mnemonic == "BRA" and ins.has("ANY")):
        return True
    return traits(ins).barrier == "move" and not ins.has("CLEAR")


def _apart(block: Block, step: Sequence[bool], around: Sequence[tuple[int, ...] | None]) -> Reason:
    heads = around[block.index]
    turns = heads is None or any(not step[h] for h in heads)
    return Reason.TURNS if turns else Reason.APART


def _leaks(cfg: Cfg, step: Sequence[bool]) -> frozenset[RegRef]:
    """Uniform registers written out of step that are also read without a write of the same block
    before, where their value may be that of lanes which ran apart."""
    written = {
        w
        for b in cfg.blocks
        if not step[b.index]
        for i in b.instructions
        for w in _writes_uniform(i)
    }
    out: set[RegRef] = set()
    for block in cfg.blocks if written else ():
        known: set[RegRef] = set()
        for ins in block.instructions:
            out |= {r for r in ins.reads if r in written and r not in known}
            if ins.guard.is_true:
                known |= _writes_uniform(ins)
    return frozenset(out)


def _reason(
    ins: Instruction,
    block: Block,
    step: Sequence[bool],
    arm: Sequence[bool],
    around: Sequence[tuple[int, ...] | None],
    leaks: frozenset[RegRef],
) -> Reason | None:
    """None: it does not see other lanes."""
    here, name = step[block.index], ins.mnemonic
    lane_guard = not ins.guard.is_true and ins.guard.file != "UP"
    if name == "ENDCOLLECTIVE" or ins.has("COLLECTIVE") or ins.has("EXCLUSIVE"):
        return Reason.SECTION
    if _asks(ins):
        return Reason.STATE
    if name == "BAR":
        if lane_guard:
            return Reason.GUARD
        if not is_plain_barrier(ins) or not (ins.has("SYNC") or ins.has("RED")):
            return Reason.MASK
        return Reason.STEP if here else _apart(block, step, around)
    if name == "WARPSYNC":
        if lane_guard:
            return Reason.GUARD
        if here:
            return Reason.STEP
        # All live lanes come, but structured code does not bring them together for it.
        whole = warpsync_mask(ins) == _ALL
        return _apart(block, step, around) if whole else Reason.MASK
    if traits(ins).lanes:
        if here or arm[block.index]:
            return Reason.STEP if here else Reason.ARM
        return _apart(block, step, around)
    written = _writes_uniform(ins)
    if not written:
        return None
    if lane_guard:
        return Reason.GUARD
    if here:
        return None
    return Reason.SHARED if written & leaks else Reason.LOCAL


# --- loops that wait ---------------------------------------------------------------------------


def _brings(ins: Instruction) -> bool:
    """Whether its result is of memory that others may write."""
    return traits(ins).reaches(("load", "atomic", "arrival"), "generic", "global", "shared")


def _called(cfg: Cfg, blocks: Iterable[int]) -> list[Instruction]:
    """The instructions of the functions that blocks call, directly or not."""
    found: set[int] = set()
    work = list(blocks)
    while work:
        for edge in cfg.successors[work.pop()]:
            function = cfg.blocks[edge.dst].function
            if edge.kind == "call" and function not in found:
                found.add(function)
                work += [b.index for b in cfg.blocks if b.function == function]
    return [i for b in cfg.blocks if b.function in found for i in b.instructions]


def _waiting(
    cfg: Cfg,
    state: Uniformity,
    around: Sequence[tuple[int, ...] | None],
    step: Sequence[bool],
) -> Iterator[Operation]:
    """The ends of blocks by which a lane leaves a loop that may wait, by what it read from memory
    there, while other lanes are elsewhere."""
    suspects = [n for n in sorted(state.spins.latches) if not step[n]]
    seen: set[int] = set()
    for latch in suspects:
        heads = around[latch] or ()
        # The whole of an irreducible loop is not known here: every block of the function then.
        body = {
            b.index
            for b in cfg.blocks
            if b.function == cfg.blocks[latch].function
            and (not heads or (around[b.index] or ())[: len(heads)] == heads)
        }
        inside = [i for n in body for i in cfg.blocks[n].instructions] + _called(cfg, body)
        tainted = {w for i in inside if _brings(i) for w in i.writes}
        size = -1
        while size != len(tainted):
            size = len(tainted)
            tainted |= {w for i in inside if tainted & i.reads for w in i.writes}
        for n in sorted(body - seen):
            last = cfg.blocks[n].last
            named = {RegRef(p.file, p.index) for p in conditions(last) if p.index != 7}
            leaves = last.mnemonic == "EXIT" or any(t not in body for t in _after(cfg)[n])
            if leaves and is_conditional(last) and named & tainted:
                seen.add(n)
                yield Operation(last.offset, last.mnemonic, Reason.WAITS)


def promise(cfg: Cfg, uniformity: Uniformity | None = None) -> Promise:
    """What is known of each operation of a kernel that sees other lanes."""
    state = uniformity if uniformity is not None else analyse(cfg)
    around = nests(cfg)
    step = _steady(cfg, state, around)
    arm = _arms(cfg, state, around, step)
    deep = recursive(cfg)
    leaks = _leaks(cfg, step)
    found: list[Operation] = []
    for block in cfg.blocks:
        for ins in block.instructions:
            reason = _reason(ins, block, step, arm, around, leaks)
            if reason is not None:
                lost = deep and block.function != cfg.functions[0] and reason.proved
                found.append(
                    Operation(ins.offset, ins.mnemonic, Reason.RECURSION if lost else reason)
                )
    found += _waiting(cfg, state, around, step)
    found.sort(key=lambda o: o.offset)
    return Promise(tuple(found), tuple(step), tuple(arm))


__all__ = ["Operation", "Promise", "Reason", "nests", "promise"]
