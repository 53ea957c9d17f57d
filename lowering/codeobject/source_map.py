"""Maps machine code to the SASS that it came from, as a note in the code object.

The note's owner is ``SASSXLATE``, its type 0x5358; its text has for every kernel the line
``kernel NAME`` and then one line per run of instructions: the run's offset from the kernel's entry
in hexadecimal, a tab, and the SASS instruction as ``/*00f0*/ LDG.E R2, [R2.64]``.  Error messages
quote it.  The line ``uniform`` has the offsets of those v_readfirstlane whose active lanes the
translation assumes equal, which strict mode checks, and the line ``fence`` those of the
instructions before which all memory accesses must be done, since another thread may then read.

The line ``blocks`` has the start of each block's code, as ``RDNA3:SASS``; a line ``added
KIND`` the runs of instructions that implement no SASS, as ``FIRST-END``: those that the translator
inserts (:data:`ADDED`).

The line ``unaligned`` says that the kernel's accesses to memory rely on the hardware's alignment,
which is none, because they are not the SASS's one by one: the emulated device then leaves CUDA's
error 716 to the code (``s_trap 16``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item

OWNER: Final = b"SASSXLATE\0"
TYPE: Final = 0x5358  # "SX"

UNALIGNED: Final = "unaligned\n"

PROLOGUE, POINT, GUARD, NEXT = "prologue", "point", "guard", "next"
SCHEDULER, SHARED = "scheduler", "shared"
WAIT, HAZARD, ISLAND = "wait", "hazard", "island"
# What the translator adds, by the text of the origin that such instructions have.
ADDED: Final[Mapping[str, str]] = {
    PROLOGUE: "clears masks and loads constants when the kernel begins",
    POINT: "merges the lanes that wait here into EXEC; if it is zero, goes to the next point",
    GUARD: "restores EXEC after instructions under a predicate",
    NEXT: "goes to the block that follows",
    SCHEDULER: "finds lanes that can continue when all wait, and ends the wave",
    SHARED: "code that several instructions call",
    WAIT: "waits for a load whose result is needed next",
    HAZARD: "keeps two instructions apart that the hardware cannot run so close",
    ISLAND: "is an intermediate target of a branch that cannot reach its label",
    "": "has no origin",
}


# The digits of the offsets of the first instructions, by dwords: made once for all kernels.
_DIGITS: Final[list[str]] = []
_KEPT: Final = 1 << 12


def hexadecimal(offset: int) -> str:
    """An instruction's offset in hexadecimal."""
    number = offset >> 2
    if offset & 3 or not 0 <= number < _KEPT:
        return f"{offset:x}"
    while len(_DIGITS) <= number:
        _DIGITS.append(f"{4 * len(_DIGITS):x}")
    return _DIGITS[number]


def sass_text(origin: InstOrigin) -> str:
    """An origin as text: ``/*00f0*/ LDG.E R2, [R2.64]``, or the kind of added code."""
    if origin.offset is None:
        return origin.text
    return f"{_place(origin.offset)} {origin.text}" if origin.text else _place(origin.offset)


# The texts of the first instructions, which all kernels have.
_PLACES: Final[list[str]] = [f"/*{16 * index:04x}*/" for index in range(1 << 11)]


def _place(offset: int) -> str:
    if not offset & 15 and 0 <= offset < 16 << 11:
        return _PLACES[offset >> 4]
    return f"/*{offset:04x}*/"


def origin_texts(items: Iterable[Item]) -> Iterator[str]:
    """The origin of each item as listings print it: a SASS instruction's text on the first of its
    RDNA3 instructions, its offset on the others.  Empty for a label and without an origin."""
    said: set[int] = set()
    for item in items:
        origin = item.origin if isinstance(item, Inst) else None
        if origin is None:
            yield ""
        elif origin.offset is None or origin.offset not in said:
            if origin.offset is not None:
                said.add(origin.offset)
            yield sass_text(origin)
        else:
            yield _place(origin.offset)


def with_origin(items: list[Item], first: int, origin: InstOrigin) -> None:
    """Sets the origin of the instructions from ``first`` on that have none."""
    for i in range(first, len(items)):
        item = items[i]
        if isinstance(item, Inst) and item.origin is None:
            items[i] = item.with_origin(origin)


def added(items: list[Item], first: int, kind: str) -> None:
    """Marks the instructions from ``first`` on that have no origin with their purpose."""
    with_origin(items, first, InstOrigin(kind))


@dataclass(frozen=True, slots=True)
class Exact:
    """A kernel's complete map.  ``rows``: the SASS instruction from an offset on; ``blocks``: the
    SASS block from an offset on; ``added``: first, end and kind of code that implements no SASS.
    All in order; offsets count from the entry."""

    rows: tuple[tuple[int, str], ...]
    blocks: tuple[tuple[int, int], ...]
    added: tuple[tuple[int, int, str], ...]


def exact(note_text: str, kernel: str) -> Exact | None:
    """The map of a kernel; None if the note has no blocks.  ValueError if it is damaged."""
    found = _read(note_text, kernel)
    return found if found.blocks else None


def by_instructions(note_text: str, kernel: str) -> Exact | None:
    """The map, without blocks, of a kernel that was written as a whole; None if the note has
    blocks, or names none of its instructions.  ValueError if it is damaged."""
    found = _read(note_text, kernel)
    return found if found.rows and not found.blocks else None


def _read(note_text: str, kernel: str) -> Exact:
    blocks: list[tuple[int, int]] = []
    runs: list[tuple[int, int, str]] = []
    inside = False
    for line in note_text.splitlines():
        if line.startswith("kernel "):
            inside = line[7:] == kernel
        elif inside and line.startswith("blocks "):
            for pair in line.split()[1:]:
                here, _, there = pair.partition(":")
                blocks.append((int(here, 16), int(there, 16)))
        elif inside and line.startswith("added "):
            kind, _, spans = line[6:].partition(" ")
            for span in spans.split():
                first, _, end = span.partition("-")
                runs.append((int(first, 16), int(end, 16), kind))
    rows = parse(note_text).get(kernel, ())
    return Exact(rows, tuple(blocks), tuple(sorted(runs)))


def note(kernels: Iterable[tuple[str, str]]) -> bytes:
    """The ELF note of (name, lines) pairs; empty if no kernel has lines."""
    text = [f"kernel {name}\n{lines}".encode() for name, lines in kernels if lines]
    size = sum(map(len, text))
    if not size:
        return b""
    owner = OWNER + bytes(-len(OWNER) % 4)
    head = struct.pack("<III", len(OWNER), size, TYPE)
    return b"".join((head, owner, *text, bytes(-size % 4)))


def find(code_object: bytes) -> str:
    """The text of a code object's note; empty if there is none."""
    at = code_object.find(OWNER)
    if at < 12:
        return ""
    owner_size, size, kind = struct.unpack_from("<III", code_object, at - 12)
    start = at + len(OWNER) + -len(OWNER) % 4
    if (owner_size, kind) != (len(OWNER), TYPE) or start + size > len(code_object):
        return ""
    return code_object[start : start + size].decode("utf-8", "replace")


def parse(note_text: str) -> dict[str, tuple[tuple[int, str], ...]]:
    """Kernel to (offset, SASS) pairs in order of the offsets."""
    out: dict[str, list[tuple[int, str]]] = {}
    current: list[tuple[int, str]] = []
    for line in note_text.splitlines():
        if line.startswith("kernel "):
            current = out.setdefault(line[7:], [])
        elif "\t" in line:
            offset, _, text = line.partition("\t")
            current.append((int(offset, 16), text))
    return {name: tuple(rows) for name, rows in out.items()}


def offsets(note_text: str, kernel: str, what: Literal["uniform", "fence"]) -> frozenset[int]:
    """The offsets of a kernel's line of this name."""
    inside = False
    for line in note_text.splitlines():
        if line.startswith("kernel "):
            inside = line[7:] == kernel
        elif inside and line.startswith(what + " "):
            return frozenset(int(word, 16) for word in line.split()[1:])
    return frozenset()


def unaligned(note_text: str, kernel: str) -> bool:
    """Whether a kernel has the line ``unaligned``."""
    lines = iter(note_text.splitlines())
    if f"kernel {kernel}" not in lines:
        return False
    for line in lines:
        if line.startswith("kernel "):
            return False
        if line == UNALIGNED.strip():
            return True
    return False


def at(rows: tuple[tuple[int, str], ...], offset: int) -> str | None:
    """The SASS that the instruction at an offset came from."""
    found = None
    for start, text in rows:
        if start > offset:
            break
        found = text
    return found


__all__ = [
    "ADDED",
    "OWNER",
    "UNALIGNED",
    "Exact",
    "added",
    "at",
    "by_instructions",
    "exact",
    "find",
    "hexadecimal",
    "note",
    "offsets",
    "origin_texts",
    "parse",
    "sass_text",
    "unaligned",
    "with_origin",
]
