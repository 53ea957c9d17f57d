"""What is known of a wave's registers in a block under construction, and what later ones use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sassxlate.cfg.rdna3_flow import Flow
from sassxlate.lowering.llvm.ir_text import Val


@dataclass(frozen=True, slots=True)
class Older:
    """A value of the lanes of a mask."""

    value: Val
    mask: Val
    lanes: Val


@dataclass(slots=True)
class Vgpr:
    """Known values of one VGPR: its whole value, newer values for the lanes that were active when
    they were written, in order, and the newest one, for the lanes active now.  ``view`` is right in
    the lanes that are active now, like ``active``, but is merged with the others already: it was
    written before lanes ended, or in the block before."""

    whole: Val | None = None
    older: list[Older] = field(default_factory=list["Older"])
    active: Val | None = None
    view: Val | None = None
    dirty: bool = False

    def seen(self) -> Val | None:
        """What is known of the lanes active now."""
        if self.active is not None:
            return self.active
        return self.view if self.view is not None or self.older else self.whole


@dataclass(slots=True)
class Cache:
    vgpr: dict[int, Vgpr] = field(default_factory=dict[int, Vgpr])
    sgpr: dict[int, Val] = field(default_factory=dict[int, Val])
    dirty: set[int] = field(default_factory=set[int])
    lanes: dict[int, Val] = field(default_factory=dict[int, Val])
    scc: Val | None = None
    scc_dirty: bool = False
    exec_lanes: Val | None = None

    def passed_on(self) -> Cache:
        """What a block knows that nothing but the end of this one leads to."""
        new = Cache(sgpr=dict(self.sgpr), scc=self.scc)
        for i, e in self.vgpr.items():
            seen = e.seen()
            if seen is not None:
                new.vgpr[i] = Vgpr(view=seen)
        return new


@dataclass(slots=True)
class Arm:
    """What was known before an arm that is skipped if no lane is active, as ``cond`` says; the
    scalar registers that it wrote."""

    cond: Val
    exec_mask: Val
    sgpr: dict[int, Val]
    scc: Val | None
    written: set[int] = field(default_factory=set[int])


@dataclass(slots=True)
class End:
    """The end of a block, written once the later reads are known."""

    block: int
    cache: Cache
    memo: dict[str, str]
    line: int  # its index in the function's lines
    every: bool


def used_later(
    uses: Mapping[int, int], new: Mapping[int, int], successors: Mapping[int, Sequence[int]]
) -> dict[int, int]:
    """Per block, the registers of which a later block uses what they have at its end, one bit
    each; ``new``: those that a block writes, of which it uses nothing else after that."""
    before: dict[int, list[int]] = {}
    for block, following in successors.items():
        for succ in following:
            before.setdefault(succ, []).append(block)
    later = dict.fromkeys(successors, 0)
    work = list(successors)
    while work:
        block = work.pop()
        wanted = later[block] & ~new.get(block, 0) | uses.get(block, 0)
        for pred in before.get(block, ()):
            if wanted & ~later[pred]:
                later[pred] |= wanted
                work.append(pred)
    return later


def only_before(flow: Flow) -> dict[int, int]:
    """By block the one whose end alone leads to it; of others nothing."""
    before: dict[int, set[int]] = {}
    for start, block in flow.blocks.items():
        for succ in block.succs:
            before.setdefault(succ, set()).add(start)
    several = {flow.entry, *flow.indirect}
    return {b: min(a) for b, a in before.items() if len(a) == 1 and b not in several}


def entered(flow: Flow) -> set[int]:
    """The blocks that others, or they themselves, may lead to."""
    return {*flow.indirect, *(succ for block in flow.blocks.values() for succ in block.succs)}


__all__ = ["Arm", "Cache", "End", "Older", "Vgpr", "entered", "only_before", "used_later"]
