"""Accesses to memory under one guard, gathered from a block of SASS.

nvcc writes ``@P0 LDG, @P1 LDG, @P0 STS, @P1 STS``: on AMD's GPUs each change of the guard is two
changes of EXEC and a branch.  A guarded access is followed here by later ones with the same guard,
if these may go up: what they need is done before, or is pure and needs none of the accesses.  Lanes
then wait for one load before they begin the next, as in clang's code.

No instruction is passed by another that it depends on: by registers and predicates (also those that
it overwrites), and by memory of the same address space unless both are loads.  Instructions that
are neither pure nor plain weak accesses stay where they are, and nothing passes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sassxlate.cfg import Cfg
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.semantics.memory.memory import SPACES, shape
from sassxlate.disasm.sass.traits import acquires, traits
from sassxlate.lowering.tier.memory import scope

_FARTHEST = 64  # instructions between the first access of a run and its last
Repaired = Mapping[int, Sequence[RegRef]]


def _access(ins: Instruction, ordered_shared: bool) -> str:
    """The address space of a plain weak access, else ""."""
    if ins.mnemonic not in SPACES or scope(ins) is not None:
        return ""
    space = shape(ins).space
    return "" if ordered_shared and space in ("shared", "generic") else space


def _moves(ins: Instruction, ordered_shared: bool) -> bool:
    t = traits(ins)
    if t.masked or t.transfer:
        return False
    return t.pure or bool(_access(ins, ordered_shared))  # constants never change


def _aliases(one: str, other: str) -> bool:
    return one == other or "generic" in (one, other)


def _dependences(some: Sequence[Instruction], repaired: Repaired) -> list[set[int]]:
    """For each instruction the earlier ones that must come before it."""
    writer: dict[RegRef, int] = {}
    readers: dict[RegRef, list[int]] = {}
    stores: list[tuple[int, str]] = []
    loads: list[tuple[int, str]] = []
    out: list[set[int]] = []
    for at, ins in enumerate(some):
        own = frozenset(repaired.get(ins.offset, ()))  # registers whose NaN are repaired before it
        reads, writes = set(ins.reads) | own, set(ins.writes) | own
        guard = ins.guard
        if guard.index != 7:
            reads.add(RegRef(guard.file, guard.index))
            reads |= writes  # lanes without the guard keep the old value
        before = {writer[r] for r in reads | writes if r in writer}
        for ref in writes:
            before.update(readers.get(ref, ()))
        if ins.mnemonic in SPACES:
            space, store = shape(ins).space, shape(ins).store
            before.update(n for n, s in stores if _aliases(s, space))
            if store:
                before.update(n for n, s in loads if _aliases(s, space))
            (stores if store else loads).append((at, space))
        for ref in writes:
            writer[ref], readers[ref] = at, []
        for ref in reads:
            readers.setdefault(ref, []).append(at)
        before.discard(at)
        out.append(before)
    return out


class _Segment:
    """Instructions that may move, while they are put in order."""

    def __init__(self, some: Sequence[Instruction], repaired: Repaired) -> None:
        self.some = some
        self.before = _dependences(some, repaired)
        self.done: set[int] = set()

    def _needed(self, at: int, run: set[int]) -> set[int] | None:
        """What must be done before an access joins a run: pure instructions without a guard that
        need nothing of the run, and some with its guard.  None if there is anything else."""
        guard = self.some[at].guard
        tested = RegRef(guard.file, guard.index)
        found: set[int] = set()
        work = [at]
        while work:
            for n in self.before[work.pop()] - self.done - run - found:
                ins = self.some[n]
                pure = ins.mnemonic not in SPACES
                if (
                    not pure
                    or tested in ins.writes
                    or not (ins.guard.is_true or ins.guard == guard)
                ):
                    return None
                found.add(n)
                work.append(n)
        free = {n for n in found if self.some[n].guard.is_true}
        inside = run | (found - free)
        return None if any(self.before[n] & inside for n in free) else found

    def run(self, first: int) -> list[int]:
        """The instructions from a guarded access on that are done next, in their order."""
        guard = self.some[first].guard
        run, early = {first}, set[int]()
        for at in range(first + 1, min(first + _FARTHEST, len(self.some))):
            ins = self.some[at]
            if at in self.done or at in run or ins.guard != guard or ins.mnemonic not in SPACES:
                continue
            needed = self._needed(at, run - early)
            if needed is None:
                continue
            free = {n for n in needed if self.some[n].guard.is_true}
            early |= free
            run |= {at, *(needed - free)}
        return [*sorted(early), *sorted(run)]

    def order(self) -> list[Instruction]:
        out: list[Instruction] = []
        for at, ins in enumerate(self.some):
            if at in self.done:
                continue
            guarded = not ins.guard.is_true and ins.mnemonic in SPACES
            for n in self.run(at) if guarded else [at]:
                out.append(self.some[n])
                self.done.add(n)
        return out


def ordered(
    some: Sequence[Instruction], repaired: Repaired, *, ordered_shared: bool
) -> list[Instruction]:
    """The instructions of a block without its transfer of control, in another order."""
    fences = acquires(some)
    out: list[Instruction] = []
    segment: list[Instruction] = []

    def end() -> None:
        guards = [i.guard for i in segment if not i.guard.is_true and i.mnemonic in SPACES]
        several = len(set(guards)) < len(guards)
        out.extend(_Segment(segment, repaired).order() if several else segment)
        segment.clear()

    for ins in some:
        if ins.offset not in fences and _moves(ins, ordered_shared):
            segment.append(ins)
        else:
            end()
            out.append(ins)
    end()
    return out


def gathered(cfg: Cfg, repaired: Repaired, *, ordered_shared: bool) -> Cfg:
    """The graph with its blocks in such an order.  ``repaired``: the registers whose NaN are put
    right before an instruction, by its offset; ``ordered_shared``: lanes of a warp see each other's
    accesses to shared memory in their order."""
    blocks = tuple(
        replace(
            block,
            instructions=(
                *ordered(block.instructions[:-1], repaired, ordered_shared=ordered_shared),
                block.last,
            ),
        )
        for block in cfg.blocks
    )
    return replace(cfg, blocks=blocks)


__all__ = ["gathered", "ordered"]
