"""Loads of a run of instructions by the same addresses: which of their dwords are side by side.

Unlike `addresses/adjacent_loads`, where each load is one access of all lanes at its own place, this
is for runs in packs (`loop`): nothing of them writes memory, and their faults are put in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sassxlate.cfg.rdna3_flow import DecodedStep
from sassxlate.disasm.rdna3.instruction import Arg
from sassxlate.disasm.rdna3.reads_writes import bits_of, effects, registers

_DWORD = 4
# Dwords side by side that are loaded as rows (`rows`): so many that rows fill vectors of the host.
ROWS = (16, 8, 4)


@dataclass(frozen=True, slots=True)
class Span:
    """All dwords that loads by the same addresses take: so many from ``low`` bytes beyond those
    addresses on.  ``number`` tells spans apart."""

    number: int
    low: int
    dwords: int


@dataclass(frozen=True, slots=True)
class Group:
    """Loads of one dword, or of two side by side or as many as in `ROWS`, by their places in
    ascending order of the dwords; the first one is ``low`` bytes beyond the addresses."""

    places: tuple[int, ...]
    low: int
    span: Span

    @property
    def rows(self) -> bool:
        return len(self.places) in ROWS

    @property
    def offset(self) -> int:
        """The first one's, in bytes from the span's first."""
        return self.low - self.span.low


@dataclass(slots=True)
class _Open:
    """Loads by addresses that have not been written since; further ones of a dword are apart."""

    needs: int
    places: dict[int, int] = field(default_factory=dict[int, int])  # by the dword's offset

    def groups(self, number: int) -> Iterator[Group]:
        offsets = sorted(self.places)
        span = Span(number, offsets[0], (offsets[-1] - offsets[0]) // _DWORD + 1)
        at = 0
        while at < len(offsets):
            first, beside = offsets[at], 1
            while offsets[at + beside : at + beside + 1] == [first + _DWORD * beside]:
                beside += 1
            count = next((n for n in (*ROWS, 2) if n <= beside), 1)
            yield Group(tuple(self.places[o] for o in offsets[at : at + count]), first, span)
            at += count


def groups(steps: Sequence[DecodedStep], loads: frozenset[int]) -> dict[int, Group]:
    """By the place of each of the ``loads`` its group."""
    waiting: dict[tuple[tuple[Arg, ...], int], _Open] = {}
    done: list[_Open] = []
    for step in steps:
        inst = step.inst
        if step.pc in loads:
            address = inst.args[1:]
            key = address, inst.imm % _DWORD
            found = waiting.get(key)
            if found is None or inst.imm in found.places:
                needs = bits_of(ref for arg in address for ref in registers(arg))
                found = waiting[key] = _Open(needs)
                done.append(found)
            found.places[inst.imm] = step.pc
        written = effects(inst).write_bits
        waiting = {key: one for key, one in waiting.items() if not one.needs & written}
    return {
        place: group
        for number, one in enumerate(done)
        for group in one.groups(number)
        for place in group.places
    }


__all__ = ["ROWS", "Group", "Span", "groups"]
