"""A kernel's SASS and the code that implements it: which RDNA3 instruction belongs to which.

Nothing is guessed: the maker of these values (:mod:`sassxlate.lowering.report.side_by_side`) has
the map from the translator.  Every RDNA3 instruction is in exactly one row, either next to the SASS
instruction that it implements, or as added by the translator, with the reason.  Every SASS
instruction is in exactly one row, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sassxlate.cfg.view.picture import Line, Picture


@dataclass(frozen=True, slots=True)
class Code:
    """An RDNA3 instruction by its offset from the entry; ``added`` names its purpose if it
    implements no SASS instruction."""

    offset: int
    text: str
    added: str = ""
    runs: int | None = None  # executions by waves, after a run


@dataclass(frozen=True, slots=True)
class SideBySideRow:
    """A SASS instruction and its code; without ``line``, code added between two."""

    line: Line | None
    code: tuple[Code, ...]
    rule: str = ""  # the rule that wrote it, if known
    engine: str = ""  # "rules", or the name of a model
    why: str = ""  # why there is no code

    @property
    def runs(self) -> int | None:
        """Executions of the SASS instruction: those of the first instruction that implements it."""
        return next((c.runs for c in self.code if not c.added), None)


@dataclass(frozen=True, slots=True)
class Part:
    """A block of the SASS; if ``start`` is None, code outside any block, described by its name."""

    name: str
    start: int | None
    first: int  # start of its code, in bytes from the entry
    end: int
    rows: tuple[SideBySideRow, ...]
    runs: int | None = None  # times that waves entered the block

    def codes(self) -> Iterator[Code]:
        """All its RDNA3 instructions, in order."""
        for row in self.rows:
            yield from row.code


@dataclass(frozen=True, slots=True)
class Beside:
    """A kernel in both instruction sets.  ``source``: origin of the map."""

    name: str
    shown: str
    target: str  # of the SASS: sm_80
    other: str
    parts: tuple[Part, ...]
    source: str
    kinds: tuple[tuple[str, str], ...] = ()  # meaning of each name in ``Code.added``
    graphs: tuple[Picture, Picture] | None = None  # of both sides, where they are asked for


@dataclass(frozen=True, slots=True)
class Figures:
    """Instruction counts by kind; ``added`` by kind."""

    sass: int
    without: int  # SASS instructions that need no code
    rdna3: int
    added: tuple[tuple[str, int], ...]

    @property
    def standing(self) -> int:
        """The number of RDNA3 instructions that implement SASS."""
        return self.rdna3 - sum(n for _, n in self.added)


def figures(found: Beside) -> Figures:
    """The sums over all parts."""
    rows = [row for part in found.parts for row in part.rows]
    codes = [code for row in rows for code in row.code]
    added = Counter(code.added for code in codes if code.added)
    lines = [row for row in rows if row.line is not None]
    without = sum(all(c.added for c in row.code) for row in lines)
    return Figures(len(lines), without, len(codes), tuple(sorted(added.items())))


def said(found: Beside) -> str:
    """The sums as one line."""
    f = figures(found)
    added = ", ".join(f"{name} {n}" for name, n in f.added)
    total = sum(n for _, n in f.added)
    return (
        f"{f.sass} SASS, {f.without} of them without code; {f.rdna3} RDNA3: {f.standing} stand for "
        f"SASS, {total} added" + (f" ({added})" if added else "")
    )


def head(part: Part) -> str:
    """A part's heading: its block, the place of its code, the size of both sides."""
    lines = sum(row.line is not None for row in part.rows)
    codes = sum(len(row.code) for row in part.rows)
    place = f"{part.name}  {part.first:04x}..{part.end:04x}"
    counted = "" if part.runs is None else f"  {part.runs} times"
    if part.start is None:
        return f"{place}  no SASS, {codes} RDNA3{counted}"
    return f"{place}  {lines} SASS, {codes} RDNA3{counted}"


_LEFT = 48  # width of the SASS column


def to_text(found: Beside) -> str:
    """Both sides next to each other: ``|`` implements, ``+`` added."""
    out = [f"--- {found.name} {found.target}", f"+++ {found.name} {found.other} ({found.source})"]
    for part in found.parts:
        out.append(f"@@ {head(part)} @@")
        out += _lines(part)
    meant = [f"  + {kind}: {said_}" for kind, said_ in found.kinds]
    if meant:
        out.append("added by the translator:")
        out += meant
    out.append(said(found))
    return "\n".join(out) + "\n"


def _lines(part: Part) -> Iterator[str]:
    for row in part.rows:
        left = "" if row.line is None else f"/*{row.line.offset:04x}*/ {row.line.text}"
        if all(c.added for c in row.code) and row.line is not None:
            yield f"{left:<{_LEFT}} -        {row.why}"
            left = ""
        elif len(left) > _LEFT:
            yield left
            left = ""
        for code in row.code:
            sign, note = ("+", f"  ; {code.added}") if code.added else ("|", "")
            yield f"{left:<{_LEFT}} {sign} {code.offset:04x}  {code.text}{note}"
            left = ""


def to_data(found: Beside) -> dict[str, Any]:
    """For JSON."""
    f = figures(found)
    return {
        "name": found.name,
        "shown": found.shown,
        "target": found.target,
        "against": found.other,
        "map": found.source,
        "sass": f.sass,
        "sass_without_code": f.without,
        "rdna3": f.rdna3,
        "added": dict(f.added),
        "kinds": dict(found.kinds),
        "parts": [part_data(part) for part in found.parts],
    }


def part_data(part: Part) -> dict[str, Any]:
    """A part for JSON; empty and unknown values are left out."""
    made: dict[str, Any] = {
        "name": part.name,
        "sass_block": part.start,
        "first": part.first,
        "end": part.end,
        "rows": [_row_data(row) for row in part.rows],
    }
    return made if part.runs is None else {**made, "runs": part.runs}


def _row_data(row: SideBySideRow) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if row.line is not None:
        made["sass"] = {"offset": row.line.offset, "text": row.line.text}
    for name, value in (("rule", row.rule), ("engine", row.engine), ("why", row.why)):
        if value:
            made[name] = value
    made["rdna3"] = [_code_data(code) for code in row.code]
    return made


def _code_data(code: Code) -> dict[str, Any]:
    made: dict[str, Any] = {"offset": code.offset, "text": code.text}
    if code.added:
        made["added"] = code.added
    if code.runs is not None:
        made["runs"] = code.runs
    return made


__all__ = [
    "Beside",
    "Code",
    "Figures",
    "Part",
    "SideBySideRow",
    "figures",
    "head",
    "part_data",
    "said",
    "to_data",
    "to_text",
]
