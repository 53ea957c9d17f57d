"""Blocks that all live lanes run together, and registers with one value for the whole wave.

A block is *converged* when every lane of the wave that has not exited is in it.  Only facts that
the hardware guarantees count: uniform branches keep lanes together; BSYNC, a full WARPSYNC and BAR
bring them together again; two paths that merely meet do not.  A register is uniform at a point when
it was last written in a converged block by an instruction whose inputs were uniform.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sassxlate.cfg.build import conditions, is_conditional, is_state_test
from sassxlate.cfg.graph import Block, Cfg
from sassxlate.cfg.regions import Region, regions
from sassxlate.cfg.register_sets import FIRST, bits_of, of_files, refs_of
from sassxlate.cfg.spin_loops import Spins, spins
from sassxlate.disasm.sass.instruction import Imm, Instruction, RegRef, Special
from sassxlate.disasm.sass.traits import traits

_UNIFORM_SPECIAL = frozenset(
    {"SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z", "SRZ", "SR_CgaCtaId", "SR_VIRTUALSMID"}
)


@dataclass(frozen=True)
class Uniformity:
    """By block index: converged or not; registers that are uniform on entry, as integers; uniform
    branches.  ``regions``, ``sync_region`` and ``spins``: what they were found with."""

    converged: tuple[bool, ...]
    uniform_bits: tuple[int, ...]
    uniform_branch: tuple[bool, ...]
    regions: tuple[Region, ...]
    sync_region: Mapping[int, int]
    spins: Spins

    @cached_property
    def uniform_in(self) -> tuple[frozenset[RegRef], ...]:
        return tuple(map(refs_of, self.uniform_bits))


class _Step(NamedTuple):
    """What an instruction does to the set of uniform registers: if all of ``needs`` are uniform,
    ``gains`` become so, otherwise ``writes`` are no more."""

    needs: int  # -1: it never gives one value
    gains: int
    writes: int


_PER_LANE = of_files("R", "P")
_SHARED = of_files("UR", "UP")
_BARRIERS = of_files("B")


def _result_needs(ins: Instruction) -> int:
    """The registers that must be uniform for the result to be one value for all lanes that run
    this instruction together; -1 if it never is."""
    t = traits(ins)
    if t.uniform:
        guarded = not ins.guard.is_true and not ins.guard.is_false and ins.guard.file == "P"
        return 1 << FIRST["P"] + ins.guard.index if guarded else 0
    special = ins.get("sr")
    if isinstance(special, Special):
        return 0 if special.name in _UNIFORM_SPECIAL else -1
    # A loaded value is not uniform: another lane may store between two loads.
    return bits_of(ins.reads) & ~(_SHARED | _BARRIERS) if t.pure else -1


def result_uniform(ins: Instruction, uniform: frozenset[RegRef]) -> bool:
    """Whether the result is one value for all lanes that run this instruction together."""
    needs = _result_needs(ins)
    return needs >= 0 and not needs & ~bits_of(uniform)


def _step(ins: Instruction) -> _Step:
    writes = bits_of(ins.writes)
    needs = _result_needs(ins)
    if needs >= 0 and not ins.guard.is_true:
        # A guarded write keeps the old value in other lanes: both must be uniform.
        needs |= writes & ~_SHARED
        if ins.guard.file == "P":
            needs |= 1 << FIRST["P"] + ins.guard.index
    return _Step(needs, writes & _PER_LANE, writes)


def _through(steps: Sequence[_Step], uniform: int, converged: bool) -> int:
    for step in steps:
        if converged and step.needs >= 0 and not step.needs & ~uniform:
            uniform |= step.gains
        else:
            uniform &= ~step.writes
    return uniform


def branch_uniform(ins: Instruction, uniform: int) -> bool:
    """Whether all lanes that reach this block's end together leave it by the same edge."""
    if is_state_test(ins) or (ins.mnemonic == "BRA" and ins.has("ANY")):
        return True  # a test of the warp
    return all(
        p.index == 7 or p.file == "UP" or uniform >> FIRST["P"] + p.index & 1
        for p in conditions(ins)
    )


def guard_uniform(block: Block, facts: Uniformity, place: int) -> bool:
    """Whether all live lanes run a block's instruction at a place, or none."""
    ins = block.instructions[place]
    if ins.guard.index == 7 or ins.guard.file == "UP":
        return facts.converged[block.index]
    before = [_step(i) for i in block.instructions[:place] if i.writes]
    uniform = _through(before, facts.uniform_bits[block.index], True)
    held = bool(uniform >> FIRST["P"] + ins.guard.index & 1)
    return held and facts.converged[block.index]


def _full_warpsync(ins: Instruction) -> bool:
    mask = ins.get("Ra")
    return ins.has("ALL") or (isinstance(mask, Imm) and mask.value == 0xFFFFFFFF)


class _Solver:
    """The facts so far.  (Functions in a function would be a cycle when compiled, which keeps the
    graph until Python's collector finds it.)"""

    def __init__(self, cfg: Cfg) -> None:
        self.cfg = cfg
        count = len(cfg.blocks)
        self.spins = spins(cfg)
        self.regions, self.sync_region = regions(cfg, self.spins)
        self.starts = [b.start for b in cfg.blocks]  # ascending
        self.guarded: set[int] = set()  # offsets of BSSYs under a guard
        every = 0
        for block in cfg.blocks:
            for ins in block.instructions:
                if ins.mnemonic == "BSSY" and not ins.guard.is_true:
                    self.guarded.add(ins.offset)
                every |= bits_of(ins.writes) | bits_of(ins.reads)
        self.converged = [True] * count
        self.uniform_in = [every] * count
        self.uniform_in[0] = 0
        self.uniform_branch = [True] * count
        # A guard of an instruction that ends no block chooses no way.
        self.conditional = [
            traits(b.last).ends_block and is_conditional(b.last) for b in cfg.blocks
        ]

    def block_of(self, offset: int) -> int:
        """The index of the block that has the instruction at an offset."""
        return bisect_right(self.starts, offset) - 1

    def together(self, index: int) -> bool:
        """Whether all live lanes execute the instruction at a block's end."""
        return self.converged[index] and (self.uniform_branch[index] or not self.conditional[index])

    def leaves_converged(self, block: Block) -> bool:
        """Whether the lanes that go from this block's end to its successors are all live lanes."""
        last, transfer = block.last, traits(block.last).transfer
        converged, conditional = self.converged[block.index], self.conditional[block.index]
        if conditional and transfer == "wait":
            return converged and self.uniform_branch[block.index]
        if converged and last.mnemonic in ("BSYNC", "WARPSYNC"):
            serial = last.has("EXCLUSIVE") or last.has("COLLECTIVE")
            if last.mnemonic == "BSYNC" or not serial or _full_warpsync(last):
                return True  # no lane is missing
        if last.mnemonic == "BSYNC":
            return self.brings_together(last)
        if last.mnemonic == "ENDCOLLECTIVE":
            sections = self.cfg.collectives
            here = sections.by_end.get(last.offset)
            alone = here is not None and len(sections.members(here.sync)) == 1
            return converged and alone
        if last.mnemonic == "WARPSYNC":
            return _full_warpsync(last)
        if last.mnemonic == "BAR":
            return True
        if last.mnemonic == "CALL" and last.get("target") is None:
            return False  # the target is per lane
        if last.mnemonic == "EXIT" or not conditional:
            return converged and transfer not in ("indirect", "return")
        return converged and self.uniform_branch[block.index]

    def brings_together(self, sync: Instruction) -> bool:
        """Whether the lanes that go on from a BSYNC are all live lanes."""
        number = self.sync_region.get(sync.offset, -1)
        if number < 0:
            return False
        region = self.regions[number]
        if region.breaks or len(region.syncs) != 1:
            return False
        if region.soft or self.guarded.intersection(region.arms):
            return False
        if not all(map(self.together, region.waits)):
            return False  # lanes may go on without those that still wait there
        return all(self.converged[self.block_of(a)] for a in region.arms)

    def returns_together(self, block: Block) -> bool:
        """Whether all live lanes come back from one call: they run the end of the function
        together, and were together when they came to it.  Without the second they may have met
        inside, at a WARPSYNC, from several calls."""
        converged = self.converged
        entry = self.cfg.by_start[block.function]
        return converged[block.index] and converged[entry] and not is_conditional(block.last)

    def dependants(self) -> list[set[int]]:
        """Blocks to visit again when a block turns out not to be converged: its successors, and
        those of the BSYNCs that wait for a barrier it arms, or in whose regions it ends with a
        WARPSYNC."""
        cfg = self.cfg
        after: list[set[int]] = [{e.dst for e in some} for some in cfg.successors]
        for offset, index in self.sync_region.items():
            if index < 0:
                continue
            following = {e.dst for e in cfg.successors[self.block_of(offset)]}
            for arm in self.regions[index].arms:
                after[self.block_of(arm)] |= following
            for wait in self.regions[index].waits:
                after[wait] |= following
        returns: dict[int, set[int]] = {}
        for block in cfg.blocks:
            returns.setdefault(cfg.by_start[block.function], set()).update(
                e.dst for e in cfg.successors[block.index] if e.kind == "ret"
            )
        for entry, some in returns.items():
            after[entry] |= some
        return after


def analyse(cfg: Cfg, presumed: Set[int] = frozenset()) -> Uniformity:
    """Solves both properties together, starting optimistically, to a fixed point.

    ``presumed``: blocks, by index, whose lanes are taken to leave them by one edge."""
    count = len(cfg.blocks)
    found = _Solver(cfg)
    uniform_in, converged, uniform_branch = found.uniform_in, found.converged, found.uniform_branch
    steps = [[_step(i) for i in b.instructions if i.writes] for b in cfg.blocks]
    after = found.dependants()
    outs = [_through(steps[n], uniform_in[n], True) for n in range(count)]
    work = deque(range(count))
    queued = set(work)
    while work:
        i = work.popleft()
        queued.discard(i)
        block = cfg.blocks[i]
        before = (uniform_in[i], converged[i], uniform_branch[i])
        preds = [e for e in cfg.predecessors[i] if e.kind != "back"]
        if i != 0 and preds:
            for e in preds:
                uniform_in[i] &= outs[e.src]
        converged[i] = converged[i] and all(
            found.leaves_converged(cfg.blocks[e.src])
            or (e.kind == "ret" and found.returns_together(cfg.blocks[e.src]))
            for e in preds
        )
        new = _through(steps[i], uniform_in[i], converged[i])
        one_way = i in presumed or branch_uniform(block.last, new)
        uniform_branch[i] = uniform_branch[i] and one_way
        if before != (uniform_in[i], converged[i], uniform_branch[i]) or new != outs[i]:
            outs[i] = new
            fresh = after[i] - queued
            work.extend(sorted(fresh))
            queued |= fresh
    states = tuple(converged), tuple(uniform_in), tuple(uniform_branch)
    return Uniformity(*states, found.regions, found.sync_region, found.spins)
