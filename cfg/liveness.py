"""Registers and predicates live on entry to and exit from blocks (backward dataflow)."""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.cfg.graph import Block, Cfg
from sassxlate.disasm.sass.instruction import Instruction, RegRef

Refs = frozenset[RegRef]


@dataclass(frozen=True, slots=True)
class Liveness:
    """Live sets by block index."""

    live_in: tuple[Refs, ...]
    live_out: tuple[Refs, ...]


def _kept(ins: Instruction) -> Refs:
    """Registers that an instruction may leave partly unchanged: R2UR.OR accumulates into its
    predicate, and an arrival writes only the high register of its token."""
    if ins.mnemonic == "R2UR" and ins.has("OR"):
        return frozenset(r for r in ins.writes if r.file == "P")
    return ins.writes if ins.mnemonic == "SYNCS" and ins.has("ARRIVE") else frozenset()


def live_before(ins: Instruction, live: Refs) -> Refs:
    """Live-in set of ``ins``, given its live-out set."""
    if ins.guard.is_true:
        live -= ins.writes
    return live | ins.reads | _kept(ins)


def gen_kill(block: Block) -> tuple[Refs, Refs]:
    """Registers read before any write, and registers always written (unguarded)."""
    gen: set[RegRef] = set()
    kill: set[RegRef] = set()
    for ins in block.instructions:
        gen |= (ins.reads | _kept(ins)) - kill
        if ins.guard.is_true:
            kill |= ins.writes
        else:
            gen |= ins.writes - kill  # a lane whose guard is false keeps the old value
    return frozenset(gen), frozenset(kill)


def liveness(cfg: Cfg) -> Liveness:
    """Iterates to a fixed point, blocks in reverse order; calls and returns are edges."""
    facts = [gen_kill(b) for b in cfg.blocks]
    live_in: list[Refs] = [frozenset()] * len(cfg.blocks)
    live_out: list[Refs] = [frozenset()] * len(cfg.blocks)
    changed = True
    while changed:
        changed = False
        for i in range(len(cfg.blocks) - 1, -1, -1):
            out = frozenset[RegRef]().union(*(live_in[e.dst] for e in cfg.successors[i]))
            gen, kill = facts[i]
            new = gen | (out - kill)
            live_out[i] = out
            if new != live_in[i]:
                live_in[i] = new
                changed = True
    return Liveness(tuple(live_in), tuple(live_out))
