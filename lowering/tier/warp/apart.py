"""Uniform registers that are written where lanes of a warp run apart.

SASS has one such register for a warp, the tier's code one for each lane.  They agree if SASS may
run the lanes so that each reads what it wrote itself.  A *section* is a part of the graph with one
entry in which lanes that enter together stay together: no instruction waits for other lanes, and
all branches are decided by values that these lanes have in common.  SASS promises no order of lanes
that run apart, so a group of lanes may run a section from its entry to its end with no other lanes
of the warp in between.  Lanes may leave a section where the others go on, as at the end of a loop:
SASS may let them wait there until these are through.  And lanes may part where they have armed a
barrier (BSSY), if the section goes on where all of them have met at it.
In this order a register that is written in the section before it is read there has the value of the
lane's own write.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from sassxlate.cfg import Cfg, Uniformity
from sassxlate.cfg.build import conditions, is_conditional, is_state_test
from sassxlate.cfg.dominators import components
from sassxlate.cfg.graph import Block
from sassxlate.cfg.uniformity import guard_uniform, result_uniform
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.tier.refusal import TOGETHER, refused
from sassxlate.lowering.tier.warp.constants import constants

_UNIFORM = ("UR", "UP")
_Refs: TypeAlias = frozenset[RegRef]


@dataclass(frozen=True, slots=True)
class Join:
    """The block where lanes arm a barrier, and what may be written until they have met at it."""

    arm: int
    written: _Refs


_NONE: Mapping[int, Join] = MappingProxyType({})


def _ways(cfg: Cfg, joins: Mapping[int, int]) -> dict[int, Join]:
    """The joins between which lanes wait for no others but those."""
    out: dict[int, Join] = {}
    for met, arm in joins.items():
        last = cfg.predecessors[met][0].src
        between: set[int] = set()
        work = [e.dst for e in cfg.successors[arm]] if arm != last else []
        while work:
            n = work.pop()
            if n not in between:
                between.add(n)
                if n != last:
                    work += [e.dst for e in cfg.successors[n] if e.kind != "ret"]
        some = [i for n in between for i in cfg.blocks[n].instructions]
        if not any(i.mnemonic in ("BAR", "WARPSYNC") or traits(i).barrier == "move" for i in some):
            out[met] = Join(arm, frozenset(w for i in some for w in i.writes))
    return out


def _always(ins: Instruction) -> bool:
    return ins.guard.is_true


def _plain_end(block: Block) -> bool:
    """Whether lanes leave it by a branch or by falling through, without waiting for others."""
    last = block.last
    if not traits(last).ends_block:
        return True
    return last.mnemonic == "BRA" and not is_state_test(last) and not last.has("ANY")


def _in_common(block: Block, given: _Refs) -> _Refs:
    """The registers with one value for the lanes of a section at a block's end."""
    now = set(given)
    for ins in block.instructions:
        if not ins.writes:
            continue
        same = result_uniform(ins, frozenset(now))
        if same and not _always(ins):  # other lanes keep the old value
            guard = RegRef(ins.guard.file, ins.guard.index)
            same = now >= ins.writes and (ins.guard.file == "UP" or guard in now)
        now = now | ins.writes if same else now - ins.writes
    return frozenset(now)


def _stays(block: Block, common: _Refs) -> bool:
    """Whether the lanes of a section all go from a block's end to one successor."""
    if not _plain_end(block):
        return False
    given = [p for p in conditions(block.last) if p.index != 7 and p.file != "UP"]
    return not is_conditional(block.last) or all(RegRef(p.file, p.index) in common for p in given)


def _forward(
    cfg: Cfg,
    inside: set[int],
    head: int,
    through: Callable[[Block, _Refs], _Refs],
    every: _Refs,
    joins: Mapping[int, Join],
) -> dict[int, _Refs]:
    """At each block's entry what holds on all paths from the section's; nothing does there."""
    into = {n: every for n in inside} | {head: frozenset[RegRef]()}
    work = sorted(inside)
    after = {join.arm: (met, join.written) for met, join in joins.items() if met in inside}

    def come(n: int, out: _Refs) -> None:
        if n in inside and not into[n] <= out:
            into[n] &= out
            work.append(n)

    while work:
        n = work.pop()
        out = through(cfg.blocks[n], into[n])
        for edge in cfg.successors[n]:
            come(edge.dst, out)
        if n in after:
            come(after[n][0], out - after[n][1])
    return into


def _around(cfg: Cfg, inside: set[int]) -> dict[int, int]:
    """For blocks at whose end lanes may leave a loop: the block where the others go on."""
    after = [[e.dst for e in some] for some in cfg.successors]
    out: dict[int, int] = {}
    for part in components(inside, after):
        for n in part:
            stays = [to for to in after[n] if to in part]
            if len(stays) == 1 and len(after[n]) == 2 and _plain_end(cfg.blocks[n]):
                out[n] = stays[0]
    return out


def section(cfg: Cfg, head: int, joins: Mapping[int, Join] = _NONE) -> frozenset[int]:
    """The blocks of the largest section that lanes enter at a block.  ``joins``: by the block where
    lanes go on after they met."""
    every = frozenset(w for b in cfg.blocks for i in b.instructions for w in i.writes)
    inside = {head}
    work = [head]
    while work:  # all that may be inside
        block = cfg.blocks[work.pop()]
        for edge in cfg.successors[block.index] if _plain_end(block) else ():
            if edge.kind in ("taken", "fall") and edge.dst not in inside:
                inside.add(edge.dst)
                work.append(edge.dst)
        for met, join in joins.items():
            if join.arm == block.index and met not in inside:
                inside.add(met)
                work.append(met)
    goes_on = _around(cfg, inside)
    while True:
        common = _forward(cfg, inside, head, _in_common, every, joins)
        parted = {n for n in inside if not _stays(b := cfg.blocks[n], _in_common(b, common[n]))}
        left = {
            n for n in inside - {head}
            if not (n in joins and joins[n].arm in inside)
            and any(e.src not in inside or (e.src in parted and goes_on.get(e.src) != n)
                   for e in cfg.predecessors[n])
        }  # fmt: skip
        if not left:
            return frozenset(inside)
        inside -= left


def _written(block: Block, given: _Refs) -> _Refs:
    """The uniform registers that were written in the section before a block's end."""
    return given.union(
        w for i in block.instructions if _always(i) for w in i.writes if w.file in _UNIFORM
    )


def _own(cfg: Cfg, apart: _Refs, joins: Mapping[int, Join]) -> list[_Refs]:
    """By block index, the registers that lanes surely wrote before it in a section with it."""
    own = [frozenset[RegRef]() for _ in cfg.blocks]
    for block in cfg.blocks:
        starts = any(i.writes & apart for i in block.instructions)
        inside = set(section(cfg, block.index, joins)) if starts else set[int]()
        if len(inside) > 1:
            facts = _forward(cfg, inside, block.index, _written, apart, joins)
            for n, found in facts.items():
                own[n] |= found
    return own


def _strays(cfg: Cfg, step: Sequence[bool]) -> list[_Refs]:
    """By block index, the registers whose last write before it may be out of step, or that a lane
    may have written there before it ended."""

    def through(block: Block, given: _Refs) -> _Refs:
        now = set(given)
        for ins in block.instructions:
            written = {w for w in ins.writes if w.file in _UNIFORM}
            if not step[block.index]:
                now |= written
            elif _always(ins):
                now -= written
        return frozenset(now)

    into = [frozenset[RegRef]() for _ in cfg.blocks]
    work = list(range(len(cfg.blocks)))
    while work:
        n = work.pop()
        out = through(cfg.blocks[n], into[n])
        for edge in cfg.successors[n]:
            if not out <= into[edge.dst]:
                into[edge.dst] |= out
                work.append(edge.dst)
    ended = frozenset[RegRef]().union(
        *(through(b, into[b.index]) for b in cfg.blocks
          if not step[b.index] and traits(b.last).transfer == "exit")
    )  # fmt: skip
    return [found | ended for found in into]


def uniform_registers(
    cfg: Cfg,
    step: Sequence[bool],
    joins: Mapping[int, int] = MappingProxyType({}),
    facts: Uniformity | None = None,
) -> None:
    """Refuses (SX0461) uniform registers that a lane may get from lanes that run apart from it.
    ``joins``: for blocks where all lanes go on that armed a barrier, after they met, the blocks
    where they armed it.  ``facts``: which lanes are where together.

    A register that is written out of step, which is where a block's lanes may not be all lanes, is
    read only after a write in the same block or section, or in step after a write in step.  Then
    all lanes were together at both, and a write out of step between them would come after the
    first.  Or it has one value there, whichever lane wrote it (:mod:`.constants`).
    """
    apart: dict[RegRef, Instruction] = {}
    for block in cfg.blocks:
        for place, ins in enumerate(block.instructions):
            written = [w for w in ins.writes if w.file in _UNIFORM]
            if written and ins.guard.index != 7 and ins.guard.file != "UP":
                alike = facts is not None and guard_uniform(block, facts, place)
                if not alike or not step[block.index]:
                    raise refused(TOGETHER, "a uniform register written under a lane's guard", ins)
            if not step[block.index]:
                apart.update(dict.fromkeys(written, ins))
    if not apart:
        return
    own, strays = _own(cfg, frozenset(apart), _ways(cfg, joins)), _strays(cfg, step)
    fixed: list[Mapping[RegRef, Hashable]] = []
    for block in cfg.blocks:
        known = set(own[block.index])
        if step[block.index]:
            known |= apart.keys() - strays[block.index]
        for ins in block.instructions:
            for ref in ins.reads:
                if ref in apart and ref not in known:
                    fixed = fixed or (constants(cfg, facts.converged) if facts else [])
                    if fixed and ref in fixed[block.index]:
                        continue
                    message = "a uniform register written where lanes run apart"
                    raise refused(TOGETHER, message, apart[ref])
            if _always(ins):
                known |= ins.writes


__all__ = ["section", "uniform_registers"]
