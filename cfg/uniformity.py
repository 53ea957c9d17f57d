"""Blocks that all live lanes run together, and registers with one value for the whole wave.

A block is *converged* when every lane of the wave that has not exited is in it.  Only facts that
the hardware guarantees count: uniform branches keep lanes together; BSYNC, a full WARPSYNC and BAR
bring them together again; two paths that merely meet do not.  A register is uniform at a point when
it was last written in a converged block by an instruction whose inputs were uniform.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from sassxlate.cfg.build import conditions, is_conditional, is_state_test
from sassxlate.cfg.graph import Block, Cfg
from sassxlate.cfg.regions import regions
from sassxlate.disasm.sass.instruction import Imm, Instruction, RegRef, Special
from sassxlate.disasm.sass.traits import traits

_UNIFORM_SPECIAL = frozenset({"SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z", "SRZ", "SR_CgaCtaId"})


@dataclass(frozen=True, slots=True)
class Uniformity:
    """By block index: converged or not; registers that are uniform on entry; uniform branches."""

    converged: tuple[bool, ...]
    uniform_in: tuple[frozenset[RegRef], ...]
    uniform_branch: tuple[bool, ...]


def _inputs_uniform(ins: Instruction, uniform: frozenset[RegRef]) -> bool:
    return all(r.file in ("UR", "UP", "B") or r in uniform for r in ins.reads)


def result_uniform(ins: Instruction, uniform: frozenset[RegRef]) -> bool:
    """Whether the result is one value for all lanes that run this instruction together."""
    if traits(ins).uniform:
        return all(r in uniform for r in ins.reads if r.file == "P" and r in _guard_refs(ins))
    special = ins.get("sr")
    if isinstance(special, Special):
        return special.name in _UNIFORM_SPECIAL
    # A loaded value is not uniform: another lane may store between two loads.
    return traits(ins).pure and _inputs_uniform(ins, uniform)


def _guard_refs(ins: Instruction) -> frozenset[RegRef]:
    if ins.guard.is_true or ins.guard.is_false:
        return frozenset()
    return frozenset({RegRef(ins.guard.file, ins.guard.index)})


def _through(block: Block, uniform: frozenset[RegRef], converged: bool) -> frozenset[RegRef]:
    for ins in block.instructions:
        if not ins.writes:
            continue
        if converged and result_uniform(ins, uniform) and _guard_uniform(ins, uniform):
            uniform |= frozenset(w for w in ins.writes if w.file in ("R", "P"))
        else:
            uniform -= ins.writes
    return uniform


def _guard_uniform(ins: Instruction, uniform: frozenset[RegRef]) -> bool:
    if ins.guard.is_true:
        return True
    guard = RegRef(ins.guard.file, ins.guard.index)
    # A guarded write keeps the old value in other lanes: both must be uniform.
    return (guard.file == "UP" or guard in uniform) and all(
        w in uniform or w.file in ("UR", "UP") for w in ins.writes
    )


def branch_uniform(ins: Instruction, uniform: frozenset[RegRef]) -> bool:
    """Whether all lanes that reach this block's end together leave it by the same edge."""
    if is_state_test(ins) or (ins.mnemonic == "BRA" and ins.has("ANY")):
        return True  # a test of the warp
    return all(
        p.index == 7 or p.file == "UP" or RegRef(p.file, p.index) in uniform
        for p in conditions(ins)
    )


def _full_warpsync(ins: Instruction) -> bool:
    mask = ins.get("Ra")
    return ins.has("ALL") or (isinstance(mask, Imm) and mask.value == 0xFFFFFFFF)


def analyse(cfg: Cfg) -> Uniformity:
    """Solves both properties together, starting optimistically, to a fixed point."""
    count = len(cfg.blocks)
    found, sync_region = regions(cfg)
    sections = cfg.collectives
    block_of = {ins.offset: b.index for b in cfg.blocks for ins in b.instructions}
    guarded = {
        ins.offset
        for b in cfg.blocks
        for ins in b.instructions
        if ins.mnemonic == "BSSY" and not ins.guard.is_true
    }
    every = frozenset(w for b in cfg.blocks for i in b.instructions for w in i.writes | i.reads)
    converged = [True] * count
    uniform_in: list[frozenset[RegRef]] = [every] * count
    uniform_in[0] = frozenset()
    uniform_branch = [True] * count

    def together(index: int) -> bool:
        """Whether all live lanes execute the instruction at a block's end."""
        return converged[index] and (
            uniform_branch[index] or not is_conditional(cfg.blocks[index].last)
        )

    def leaves_converged(block: Block) -> bool:
        """Whether the lanes that go from this block's end to its successors are all live lanes."""
        last, transfer = block.last, traits(block.last).transfer
        if is_conditional(last) and transfer == "wait":
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
        if last.mnemonic == "EXIT" or not is_conditional(last):
            return converged[block.index] and transfer not in ("indirect", "return")
        return converged[block.index] and uniform_branch[block.index]

    # Blocks to visit again when a block turns out not to be converged: its successors, and those of
    # the BSYNCs that wait for a barrier it arms, or in whose regions it ends with a WARPSYNC.
    after: list[set[int]] = [{e.dst for e in cfg.successors[i]} for i in range(count)]
    for offset, index in sync_region.items():
        for arm in found[index].arms if index >= 0 else ():
            after[block_of[arm]] |= {e.dst for e in cfg.successors[block_of[offset]]}
        for wait in found[index].waits if index >= 0 else ():
            after[wait] |= {e.dst for e in cfg.successors[block_of[offset]]}
    outs = [_through(b, uniform_in[b.index], True) for b in cfg.blocks]
    work = deque(range(count))
    queued = set(work)
    while work:
        i = work.popleft()
        queued.discard(i)
        block = cfg.blocks[i]
        before = (uniform_in[i], converged[i], uniform_branch[i])
        preds = [e for e in cfg.predecessors[i] if e.kind != "back"]
        if i != 0 and preds:
            uniform_in[i] = uniform_in[i].intersection(*(outs[e.src] for e in preds))
        converged[i] = converged[i] and all(
            leaves_converged(cfg.blocks[e.src])
            or (e.kind == "ret" and _returns_together(cfg.blocks[e.src], converged))
            for e in preds
        )
        new = _through(block, uniform_in[i], converged[i])
        uniform_branch[i] = uniform_branch[i] and branch_uniform(block.last, new)
        if before != (uniform_in[i], converged[i], uniform_branch[i]) or new != outs[i]:
            outs[i] = new
            fresh = after[i] - queued
            work.extend(sorted(fresh))
            queued |= fresh
    return Uniformity(tuple(converged), tuple(uniform_in), tuple(uniform_branch))


def _returns_together(block: Block, converged: list[bool]) -> bool:
    """Whether all live lanes run a callee together and it has one call site: they return there."""
    return converged[block.index] and not is_conditional(block.last)
