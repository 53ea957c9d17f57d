"""What the source map says of a program, gathered while the program is made a part at a time.

A part's instructions can go when they are encoded: of each run of one origin its first index and
the origin are kept, so that the text (:mod:`.source_map`) is made when all offsets are known.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from sassxlate.disasm.rdna3.codec.assemble import Program
from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item
from sassxlate.lowering.codeobject.source_map import ISLAND, hexadecimal, sass_text

_LINES: Final = 1 << 10
_ISLAND: Final = InstOrigin(ISLAND)


class Marks:
    """Of the items of a program, by index."""

    def __init__(self) -> None:
        self.items = 0
        self.instructions = 0
        self.starts = array("I")  # the instructions whose origin is not that of the one before
        self.origins: list[InstOrigin | None] = []  # and theirs
        self.uniform = array("I")
        self.fences = array("I")  # the last of each run of fences that an instruction follows
        self.blocks: list[tuple[int, int]] = []  # labels of blocks, and the blocks' SASS offsets
        self._fence = -1  # the last item, if it is a fence

    def add(self, items: Iterable[Item]) -> None:
        """The next part of the program."""
        at = self.items - 1
        before = self.origins[-1] if self.origins else None
        first = not self.origins
        count = 0
        for item in items:
            at += 1
            if not isinstance(item, Inst):
                if item.block is not None:
                    self.blocks.append((at, item.block))
                continue
            count += 1
            if item.uniform:
                self.uniform.append(at)
            if item.fence:
                self._fence = at
            elif self._fence >= 0 and item.origin != _ISLAND:  # which parts no fences
                self.fences.append(self._fence)
                self._fence = -1
            origin = item.origin
            if origin is before and not first:  # like most
                continue
            before, first = origin, False
            self.starts.append(at)
            self.origins.append(origin)
        self.items = at + 1
        self.instructions += count

    def with_islands(self, islands: Sequence[tuple[int, int]]) -> Marks:
        """Those of the program with islands, each given by the index of the item that it stands
        before and its number of items, of which every other is a branch."""
        places = [place for place, _ in islands]
        moved = [*accumulate((count for _, count in islands), initial=0)]

        def new(index: int) -> int:
            return index + moved[bisect_right(places, index)]

        made = Marks()
        made.items = self.items + moved[-1]
        made.instructions = self.instructions + moved[-1] // 2
        made.uniform.extend([new(n) for n in self.uniform])
        made.fences.extend([new(n) for n in self.fences])
        made.blocks = [(new(n), block) for n, block in self.blocks]
        number = 0
        origin: InstOrigin | None = None
        for start, following in zip((*self.starts, self.items), (*self.origins, None), strict=True):
            while number < len(places) and places[number] <= start:
                if islands[number][1]:
                    made.starts.extend([places[number] + moved[number], new(places[number])])
                    made.origins += [_ISLAND, origin]
                number += 1
            made.starts.append(new(start))
            made.origins.append(following)
            origin = following
        made.starts.pop()
        made.origins.pop()
        return made

    def text(self, program: Program) -> str:
        """The lines of the kernel, without its ``kernel`` line."""
        offsets, end = program.offsets, len(program.data)
        sass: list[str] = []
        joined: list[str] = []
        runs: dict[str, list[str]] = {}
        last = -1
        kind: str | None = None  # of the run of added code that the last instruction is in,
        begun = 0  # and where that begins
        for n, origin in enumerate(self.origins):
            offset = offsets[self.starts[n]]
            after = offsets[self.starts[n + 1]] if n + 1 < len(self.origins) else end
            if offset == after:
                continue  # what an island parts is nothing where something else begins
            now: str | None = None
            if origin is None:
                now = ""
            elif origin.offset is None:
                now = origin.text
            if now != kind:
                if kind is not None:
                    _run(runs, kind, begun, offset)
                kind, begun = now, offset
            if origin is not None and origin.offset is not None and origin.offset != last:
                last = origin.offset
                sass.append(f"{hexadecimal(offset)}\t{sass_text(origin)}\n")
                if len(sass) == _LINES:  # a line alone takes twice its characters
                    joined.append("".join(sass))
                    sass.clear()
        if kind is not None:
            _run(runs, kind, begun, end)
        named = (
            ("uniform", [hexadecimal(offsets[n]) for n in self.uniform]),
            # Of what follows each: an island may.
            ("fence", [hexadecimal(offsets[n + 1]) for n in self.fences]),
            ("blocks", [f"{hexadecimal(offsets[n])}:{block:04x}" for n, block in self.blocks]),
        )
        lines = [f"{name} {' '.join(some)}\n" for name, some in named if some]
        lines += [f"added {name} {' '.join(some)}\n" for name, some in sorted(runs.items())]
        return "".join((*lines, *joined, *sass))


def _run(runs: dict[str, list[str]], kind: str, start: int, end: int) -> None:
    """Notes code that implements no SASS."""
    runs.setdefault(kind, []).append(f"{hexadecimal(start)}-{hexadecimal(end)}")


def source_map(items: Iterable[Item], program: Program) -> str:
    """The lines of one kernel, without its ``kernel`` line."""
    marks = Marks()
    marks.add(items)
    return marks.text(program)


__all__ = ["Marks", "source_map"]
