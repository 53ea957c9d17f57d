"""The instructions of a cubin whose opcodes match a pattern, and how often each opcode occurs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import cast

from sassxlate.disasm.listing.cubin import Document
from sassxlate.disasm.listing.source_lines import source_of

Record = dict[str, object]


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in a function of ``total`` instructions.  ``records`` are those of
    `Document.functions`; those with a line table have ``source``: ``file`` and ``line``."""

    name: str
    total: int
    records: tuple[Record, ...]

    def lines(self) -> Iterator[str]:
        """A line per instruction: ``/*0130*/ STL [R1], R5 ; // scan.cu:12``."""
        for record in self.records:
            place = f"/*{int(str(record['offset']), 16):04x}*/"
            source = cast("Record | None", record.get("source"))
            comment = f" // {source['file']}:{source['line']}" if source else ""
            yield f"    {place} {record['text']} ;{comment}"


def find(document: Document, patterns: Sequence[str]) -> Iterator[Found]:
    """The matches in each chosen function that has any.

    A pattern is a glob without regard to case, of the mnemonic alone (``DFMA``) or with all of its
    modifiers (``F2F.F64.*``).  Words that cannot be decoded do not match.

    Raises:
        ContainerError: SX0129, the line table cannot be read.
    """
    wanted = re.compile("|".join(translate(pattern.upper()) for pattern in patterns))
    source = source_of(document.image.elf)
    for name, records in document.functions():
        matches: list[Record] = []
        for record in records:
            if "text" not in record or not _matches(wanted, record):
                continue
            at = source(f".text.{name}", int(str(record["offset"]), 16))
            place = {"source": {"file": at[0], "line": at[1]}} if at else {}
            matches.append(record | place)
        if matches:
            yield Found(name, len(records), tuple(matches))


@dataclass(frozen=True, slots=True)
class Counted:
    """How often each opcode, with its modifiers, occurs in a function of ``total`` words without
    padding: the most frequent first.  Words that cannot be decoded count to the total alone."""

    name: str
    total: int
    opcodes: tuple[tuple[str, int], ...]

    def lines(self) -> Iterator[str]:
        """A line per opcode: ``     12   8.3 %  IMAD.WIDE``."""
        for opcode, number in self.opcodes:
            yield f"  {number:6} {100 * number / self.total:5.1f} %  {opcode}"


def opcodes(document: Document, patterns: Sequence[str] = ()) -> Iterator[Counted]:
    """The opcodes of each chosen function; with patterns, those that `find` would match.

    Padding, the NOP after a function's last other instruction, is left out of the opcodes.
    """
    wanted = re.compile("|".join(translate(pattern.upper()) for pattern in patterns or "*"))
    for name, records in document.functions():
        end = len(records)
        while end and str(records[end - 1].get("text")) == "NOP":
            end -= 1
        texts = (str(r["text"]) for r in records[:end] if "text" in r and _matches(wanted, r))
        found = Counter(map(_opcode, texts))
        if found:
            order = sorted(found.items(), key=lambda item: (-item[1], item[0]))
            yield Counted(name, end, tuple(order))


def _matches(wanted: re.Pattern[str], record: Record) -> bool:
    opcode = _opcode(str(record["text"]))
    return bool(wanted.match(opcode) or wanted.match(opcode.partition(".")[0]))


@lru_cache(1 << 12)
def _opcode(text: str) -> str:
    """The mnemonic with its modifiers: the first word, or the second after a guard."""
    words = text.split(maxsplit=2)
    return words[1 if words[0].startswith("@") else 0].upper()


__all__ = ["Counted", "Found", "find", "opcodes"]
