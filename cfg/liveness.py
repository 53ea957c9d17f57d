"""Registers and predicates live on entry to and exit from blocks (backward dataflow)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sassxlate.cfg.graph import Block, Cfg
from sassxlate.cfg.register_sets import bits_of, refs_of
from sassxlate.disasm.sass.instruction import Instruction, RegRef

Refs = frozenset[RegRef]
_NONE: Final[Refs] = frozenset()


@dataclass(frozen=True)
class Liveness:
    """Live sets by block index: as integers, and as sets, which are made when they are asked
    for."""

    in_bits: tuple[int, ...]
    out_bits: tuple[int, ...]

    @cached_property
    def live_in(self) -> tuple[Refs, ...]:
        return tuple(map(refs_of, self.in_bits))

    @cached_property
    def live_out(self) -> tuple[Refs, ...]:
        return tuple(map(refs_of, self.out_bits))


def kept(ins: Instruction) -> Refs:
    """Registers that an instruction may leave partly unchanged: R2UR.OR accumulates into its
    predicate, and an arrival writes only the high register of its token."""
    if ins.mnemonic == "R2UR" and ins.has("OR"):
        return frozenset(r for r in ins.writes if r.file == "P")
    return ins.writes if ins.mnemonic == "SYNCS" and ins.has("ARRIVE") else _NONE


def _kept_bits(ins: Instruction) -> int:
    some = kept(ins)
    return bits_of(some) if some else 0


def live_before(ins: Instruction, live: Refs) -> Refs:
    """Live-in set of ``ins``, given its live-out set."""
    if ins.guard.is_true:
        live -= ins.writes
    return live | ins.reads | kept(ins)


def bits_before(ins: Instruction, live: int) -> int:
    """As :func:`live_before`, of sets as integers."""
    if ins.guard.is_true:
        live &= ~bits_of(ins.writes)
    return live | bits_of(ins.reads) | _kept_bits(ins)


def gen_kill(block: Block) -> tuple[int, int]:
    """Registers read before any write, and registers always written (unguarded)."""
    gen = kill = 0
    for ins in block.instructions:
        gen |= (bits_of(ins.reads) | _kept_bits(ins)) & ~kill
        if ins.guard.is_true:
            kill |= bits_of(ins.writes)
        else:
            gen |= bits_of(ins.writes) & ~kill  # a lane whose guard is false keeps the old value
    return gen, kill


def liveness(cfg: Cfg) -> Liveness:
    """Iterates to a fixed point, blocks in reverse order; calls and returns are edges."""
    facts = [gen_kill(b) for b in cfg.blocks]
    after = [[e.dst for e in some] for some in cfg.successors]
    before = [[e.src for e in some] for some in cfg.predecessors]
    live_in = [0] * len(cfg.blocks)
    live_out = [0] * len(cfg.blocks)
    stale = [True] * len(cfg.blocks)  # blocks with a successor whose set has grown
    while any(stale):
        for i in range(len(cfg.blocks) - 1, -1, -1):
            if not stale[i]:
                continue
            stale[i] = False
            out = 0
            for n in after[i]:
                out |= live_in[n]
            gen, kill = facts[i]
            live_out[i] = out
            new = gen | out & ~kill
            if new != live_in[i]:
                live_in[i] = new
                for n in before[i]:
                    stale[n] = True
    return Liveness(tuple(live_in), tuple(live_out))
