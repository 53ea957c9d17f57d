"""Blocks that all live lanes run together, and registers with one value for the whole wave.

A block is *converged* when every lane of the wave that has not exited is in it.  Only facts that
the hardware guarantees count: uniform branches keep lanes together; BSYNC, a full WARPSYNC and BAR
bring them together again; two paths that merely meet do not.  A register is uniform at a point when
it was last written in a converged block by an instruction whose inputs were uniform.
"""

from __future__ import annotations

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


def analyse(cfg: Cfg, presumed: Set[int] = frozenset()) -> Uniformity:
    """Solves both properties together, starting optimistically, to a fixed point.

    ``presumed``: blocks, by index, whose lanes are taken to leave them by one edge."""
    count = len(cfg.blocks)
    spinning = spins(cfg)
    found, sync_region = regions(cfg, spinning)
    sections = cfg.collectives
    block_of = {ins.offset: b.index for b in cfg.blocks for ins in b.instructions}
    guarded = {
        ins.offset
        for b in cfg.blocks
        for ins in b.instructions
        if ins.mnemonic == "BSSY" and not ins.guard.is_true
    }
    every = 0
    for block in cfg.blocks:
        for ins in block.instructions:
            every |= bits_of(ins.writes) | bits_of(ins.reads)
    steps = [[_step(i) for i in b.instructions if i.writes] for b in cfg.blocks]
    converged = [True] * count
    uniform_in = [every] * count
    uniform_in[0] = 0
    uniform_branch = [True] * count

    # A guard of an instruction that ends no block chooses no way.
    conditional = [traits(b.last).ends_block and is_conditional(b.last) for b in cfg.blocks]

    def together(index: int) -> bool:
        """Whether all live lanes execute the instruction at a block's end."""
        return converged[index] and (uniform_branch[index] or not conditional[index])

    def leaves_converged(block: Block) -> bool:
        """Whether the lanes that go from this block's end to its successors are all live lanes."""
        last, transfer = block.last, traits(block.last).transfer
        if conditional[block.index] and transfer == "wait":
            return converged[block.index] and uniform_branch[block.index]
        if converged[block.index] and last.mnemonic in ("BSYNC", "WARPSYNC"):
            serial = last.has("EXCLUSIVE") or last.has("COLLECTIVE")
            if last.mnemonic == "BSYNC" or not serial or _full_warpsync(last):
                return True  # no lane is missing
        if last.mnemonic == "BSYNC":
            region = sync_region.get(last.offset, -1)
            if region < 0 or found[region].breaks or len(found[region].syncs) != 1:
                return False
            if found[region].soft or guarded.intersection(found[region].arms):
                return False
            if not all(map(together, found[region].waits)):
                return False  # lanes may go on without those that still wait there
            return all(converged[block_of[a]] for a in found[region].arms)
        if last.mnemonic == "ENDCOLLECTIVE":
            here = sections.by_end.get(last.offset)
            alone = here is not None and len(sections.members(here.sync)) == 1
            return converged[block.index] and alone
        if last.mnemonic == "WARPSYNC":
            return _full_warpsync(last)
        if last.mnemonic == "BAR":
            return True
        if last.mnemonic == "CALL" and last.get("target") is None:
            return False  # the target is per lane
        if last.mnemonic == "EXIT" or not conditional[block.index]:
            return converged[block.index] and transfer not in ("indirect", "return")
        return converged[block.index] and uniform_branch[block.index]

    def returns_together(block: Block) -> bool:
        """Whether all live lanes come back from one call: they run the end of the function
        together, and were together when they came to it.  Without the second they may have met
        inside, at a WARPSYNC, from several calls."""
        entry = cfg.by_start[block.function]
        return converged[block.index] and converged[entry] and not is_conditional(block.last)

    # Blocks to visit again when a block turns out not to be converged: its successors, and those of
    # the BSYNCs that wait for a barrier it arms, or in whose regions it ends with a WARPSYNC.
    after: list[set[int]] = [{e.dst for e in cfg.successors[i]} for i in range(count)]
    for offset, index in sync_region.items():
        for arm in found[index].arms if index >= 0 else ():
            after[block_of[arm]] |= {e.dst for e in cfg.successors[block_of[offset]]}
        for wait in found[index].waits if index >= 0 else ():
            after[wait] |= {e.dst for e in cfg.successors[block_of[offset]]}
    returns: dict[int, set[int]] = {}
    for block in cfg.blocks:
        returns.setdefault(cfg.by_start[block.function], set()).update(
            e.dst for e in cfg.successors[block.index] if e.kind == "ret"
        )
    for entry, some in returns.items():
        after[entry] |= some
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
            leaves_converged(cfg.blocks[e.src])
            or (e.kind == "ret" and returns_together(cfg.blocks[e.src]))
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
    return Uniformity(*states, found, sync_region, spinning)
