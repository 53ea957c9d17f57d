"""Replaces regions of a translated kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item
from sassxlate.disasm.sass.instruction import Instruction

if TYPE_CHECKING:
    from sassxlate.lowering.select.stages import Selected


@dataclass(frozen=True, slots=True)
class Replacement:
    """Other code for ``items[first:end]`` of a selected kernel, by SASS instruction."""

    first: int
    end: int
    instructions: tuple[Instruction, ...]
    code: tuple[tuple[Item, ...], ...]


def rewritten(selected: Selected, changes: Iterable[Replacement]) -> Selected:
    """The kernel with other code for some of its instructions.  Changes do not overlap; for a piece
    with a change, nothing but its block is known afterwards."""
    items: list[Item] = []
    at = 0
    for change in sorted(changes, key=lambda c: c.first):
        assert at <= change.first <= change.end
        items += selected.items[at : change.first]
        items += marked(change.code, change.instructions)
        at = change.end
    items += selected.items[at:]
    return replace(selected, items=tuple(items), pieces=())


def marked(code: Sequence[Sequence[Item]], instructions: Sequence[Instruction]) -> list[Item]:
    """Code with the instruction that each part implements as its origin, like the rules' code:
    from that the verifier learns which code belongs to which instruction."""
    out: list[Item] = []
    for ins, group in zip(instructions, code, strict=True):
        origin = InstOrigin(ins.text, ins.offset)
        out += [replace(i, origin=origin) if isinstance(i, Inst) else i for i in group]
    return out
