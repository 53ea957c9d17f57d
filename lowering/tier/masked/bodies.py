"""The bodies of blocks: which lanes run each instruction.

What a lane does is in a branch that the running lanes take.  What the uniform datapath does, with
nothing but uniform registers, is done once, for the warp; what it takes from lanes, it takes from
the first that runs the instruction, as the hardware and the rules do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sassxlate.disasm.sass.instruction import Instruction, RegRef, Special
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.tier.control import WHOLE
from sassxlate.lowering.tier.masked.masks import Masks

SHARED = ("UR", "UP")  # one for a warp
_MIXED = ("lanes", "warp", "none")


def shared_writes(ins: Instruction) -> list[RegRef]:
    """The registers of the warp that it writes."""
    return sorted((w for w in ins.writes if w.file in SHARED), key=lambda r: (r.file, r.index))


def of_the_warp(ins: Instruction) -> bool:
    """Whether it reads and writes nothing but what the warp shares."""
    t = traits(ins)
    if not ins.writes or t.lanes or isinstance(ins.get("sr"), Special):
        return False
    local = {r for r in ins.reads | ins.writes if r.file not in SHARED}
    return not local and (ins.guard.index == 7 or ins.guard.file == "UP")


def kind(ins: Instruction) -> str:
    """How an instruction is written: see the module."""
    t = traits(ins)
    if ins.guard.is_false:
        return "none"
    if t.barrier in ("arm", "leave", "move"):
        return "state"
    if ins.mnemonic in WHOLE:
        return "whole"
    if ins.mnemonic == "BPT" and set(ins.modifiers) == {"TRAP"}:
        return "trap"
    if of_the_warp(ins):
        return "warp"
    return "shared" if shared_writes(ins) else "lanes"


class Bodies:
    """Writes runs of instructions of one kind."""

    def __init__(
        self,
        masks: Masks,
        lanes: Callable[[Sequence[Instruction]], None],
        each: Callable[[Instruction], None],
    ) -> None:
        """``lanes`` writes instructions for the lanes that run them, ``each`` one of another
        kind."""
        self.masks, self.lane = masks, masks.lane
        self._lanes, self._each = lanes, each
        self.kept = 0

    def write(self, some: Sequence[Instruction]) -> None:
        at = 0
        while at < len(some):
            end, what = at + 1, kind(some[at])
            if what == "shared":
                self._shared(some[at])
            elif what in _MIXED:
                while end < len(some) and kind(some[end]) in _MIXED:
                    end += 1
                self._mixed(some[at:end])
            else:
                self._each(some[at])
            at = end

    def _mixed(self, some: Sequence[Instruction]) -> None:
        """What the warp does goes first, as it needs nothing of what lanes do, so that these run
        all of it in one branch: with the warp's registers as they were at each instruction."""
        lane = self.lane
        last = {ref: at for at, ins in enumerate(some) if kind(ins) == "warp"
                for ref in ins.writes}  # fmt: skip
        parts: list[tuple[dict[tuple[str, int], str], list[Instruction]]] = []
        fresh = True
        for at, ins in enumerate(some):
            what = kind(ins)
            if what == "warp":
                self._each(ins)
                fresh = True
            elif what == "lanes":
                if fresh:
                    parts.append(({}, []))
                    fresh = False
                places, part = parts[-1]
                part.append(ins)
                for ref in {*ins.reads, RegRef(ins.guard.file, ins.guard.index)}:
                    key = ref.file, ref.index
                    if last.get(ref, -1) > at and key not in places:
                        self.kept += 1
                        self.masks.kept(ref, f"%kept{self.kept}")
                        places[key] = lane.elsewhere.pop(key)
        if parts:
            with self.masks.run(self.masks.running):
                for places, part in parts:
                    lane.elsewhere.update(places)
                    self._lanes(part)
                    lane.elsewhere.clear()

    def _shared(self, ins: Instruction) -> None:
        """An instruction by which lanes write what the warp shares."""
        m, lane = self.masks, self.lane
        running = m.lanes(m.running, lane.holds(ins.guard))
        m.shared(shared_writes(ins), running, lambda: self._lanes([ins]))


__all__ = ["SHARED", "Bodies", "kind", "of_the_warp", "shared_writes"]
