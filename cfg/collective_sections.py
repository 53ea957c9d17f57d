"""Collective sections: the code between WARPSYNC.COLLECTIVE and ENDCOLLECTIVE.

The lanes of the mask run a section together, wherever in the code each of them arrived: the
compiler gives the sections of one operation the same instructions and registers, and each
WARPSYNC.COLLECTIVE names where its own lanes go on.  (Seen in nvcc 13.0, for shuffles with one
mask in both arms of a branch, sm_90.)  So sections with the same instructions form a class: its
lanes meet at one point and run the leader's section, whichever section they came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sassxlate.disasm.sass.instruction import Instruction, Label


@dataclass(frozen=True, slots=True)
class Collective:
    """One section, by the byte offsets of its ends; ``target`` is where its lanes continue."""

    sync: int
    end: int
    target: int
    body: tuple[str, ...]
    whole_warp: bool  # WARPSYNC.COLLECTIVE.ALL has no mask register


@dataclass(frozen=True, slots=True)
class Collectives:
    """All sections of a kernel."""

    by_sync: Mapping[int, Collective]
    by_end: Mapping[int, Collective]
    classes: Mapping[tuple[tuple[str, ...], bool], tuple[Collective, ...]]

    def members(self, sync: int) -> tuple[Collective, ...]:
        """The class of the section that starts at ``sync``, itself included, in layout order."""
        here = self.by_sync.get(sync)
        return () if here is None else self.classes[here.body, here.whole_warp]

    def leader(self, sync: int) -> Collective:
        """The section that the lanes of the class run."""
        return self.members(sync)[0]


NONE = Collectives({}, {}, {})


def collectives(instructions: Iterable[Instruction], before: Collectives = NONE) -> Collectives:
    """The sections among instructions in layout order; one without an end is left out.

    Sections of ``before`` keep their class: a pass may have changed the leader's instructions.
    """
    by_sync: dict[int, Collective] = {}
    by_end: dict[int, Collective] = {}
    opened: Instruction | None = None
    body: list[str] = []
    for ins in instructions:
        if ins.mnemonic == "WARPSYNC" and ins.has("COLLECTIVE"):
            opened, body = ins, []
        elif opened is not None and ins.mnemonic == "ENDCOLLECTIVE":
            label = opened.get("target")
            target = label.target if isinstance(label, Label) else ins.offset + 16
            old = before.by_sync.get(opened.offset)
            texts = tuple(body) if old is None or old.end != ins.offset else old.body
            found = Collective(opened.offset, ins.offset, target, texts, opened.has("ALL"))
            by_sync[found.sync] = by_end[found.end] = found
            opened = None
        elif opened is not None and ins.mnemonic != "NOP":
            body.append(ins.text.replace(".reuse", ""))
    classes: dict[tuple[tuple[str, ...], bool], tuple[Collective, ...]] = {}
    for found in by_sync.values():
        key = (found.body, found.whole_warp)
        classes[key] = (*classes.get(key, ()), found)
    return Collectives(by_sync, by_end, classes)
