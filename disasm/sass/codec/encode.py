"""Assembling: the text of an instruction, as nvdisasm and ``sassxlate disasm`` print it, to its
word.

A row of the tables is chosen by mnemonic, its modifiers and operands are matched in print order,
and the word is decoded again: only a word whose text is the given one is ever returned.

Where the text does not determine the word, the word is the one that compilers write: fields
without meaning hold their usual values, NaN immediates the canonical pattern, descriptors that
sm_80 to sm_89 leave out UR4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from sassxlate.disasm.sass.codec.decode import (
    CompiledRow,
    generation_of,
    index,
    opcode_bits,
    row_of,
    tokens,
)
from sassxlate.disasm.sass.codec.operand_parser import Slots, put, spellings
from sassxlate.disasm.sass.codec.row_compiler import Context
from sassxlate.disasm.sass.instruction import Control
from sassxlate.disasm.sass.tables.spec import DESCRIPTOR, Bits, Idiom, Row
from sassxlate.errors import DecodeError

_GUARD = re.compile(r"@(!?)(U?P)(\d|T)\s+")
_CONTROL = re.compile(
    r"\[B([0-5-]{6}):R([0-7-]):W([0-7-]):([Y-]):S(\d\d)"
    r"(?::UR(\d+|Z))?(?::0x([0-9a-f]+))?(?::(32|64))?(?::T([1-7]))?"
    r"((?::b\d+(?:-\d+)?=0x[0-9a-f]+)*)\]\s*"
)
_BITS = re.compile(r":b(\d+)(?:-(\d+))?=0x([0-9a-f]+)")
_IDIOMS = (("IADD",), ("MOV",), ("SHL",), ())
NO_CONTROL = 0x7E0 << 105  # no barrier is set or waited for


@dataclass(frozen=True, slots=True)
class Source:
    """A line of assembly, taken apart."""

    guard: int  # bits 12 to 15
    guard_file: str
    mnemonic: str
    parts: list[str]
    operands: str
    control: int | None  # bits 105 to 125 in place, without the reuse bits
    descriptor: int  # the uniform register of a descriptor that is not in the text
    nan: int | None  # the bits of an immediate that is not a number
    width: int | None  # width of an RZ that a uniform register hides
    mask: int  # bits that the brackets set,
    value: int  # and their value


def control_bits(control: Control) -> int:
    """The scheduling bits in place, without the reuse bits, which belong to the operands."""
    return (
        control.stall
        | control.yield_ << 4
        | control.write_barrier << 5
        | control.read_barrier << 8
        | control.wait_mask << 11
    ) << 105


def _error(what: str) -> DecodeError:
    return DecodeError("SX0206", what)


def _source(text: str) -> Source:
    """Guard, mnemonic, modifiers, operands and scheduling of a line."""
    body = text.strip().removesuffix(";").strip()
    control = nan = None
    mask = value = 0
    width: int | None = None
    descriptor = DESCRIPTOR
    match = _CONTROL.match(body)
    if match:
        body = body[match.end() :]
        control = control_bits(
            Control(
                stall=int(match[5]),
                yield_=match[4] == "-",
                write_barrier=7 if match[3] == "-" else int(match[3]),
                read_barrier=7 if match[2] == "-" else int(match[2]),
                wait_mask=sum(1 << int(c) for c in match[1] if c != "-"),
                reuse=0,
            )
        )
        if match[6]:
            descriptor = 63 if match[6] == "Z" else int(match[6])
        nan = int(match[7], 16) if match[7] else None
        width = int(match[8]) if match[8] else None
        control |= int(match[9] or 0) << 122
        mask, value = _said(match[10])
    guard, file = 7, ""
    match = _GUARD.match(body)
    if match:
        guard = (7 if match[3] == "T" else int(match[3])) | bool(match[1]) << 3
        file = match[2]
        body = body[match.end() :]
    head, _, operands = body.partition(" ")
    mnemonic, *parts = head.split(".")
    if not mnemonic or guard & 7 > 7:
        raise _error(f"no instruction: {text.strip()!r}")
    return Source(
        guard, file, mnemonic, parts, operands.strip(), control, descriptor, nan, width, mask, value
    )


def _said(text: str) -> tuple[int, int]:
    """The bits that brackets set, and the value in place."""
    mask = value = 0
    for low, high, number in _BITS.findall(text):
        lo, hi, n = int(low), int(high or low), int(number, 16)
        if not lo <= hi < 128 or n >> hi - lo + 1:
            raise _error(f"no bits of a word: {text!r}")
        mask |= (1 << hi + 1) - (1 << lo)
        value |= n << lo
    return mask, value


@cache
def _by_mnemonic(generation: int) -> Mapping[str, tuple[CompiledRow, ...]]:
    out: dict[str, list[CompiledRow]] = {}
    for rows in index(generation).values():
        for row in rows:
            out.setdefault(row.row.mnemonic, []).append(row)
    return {name: tuple(rows) for name, rows in out.items()}


def modifiers_of(
    row: Row, parts: list[str], at: int, i: int, context: dict[str, int], bits: int
) -> Iterator[tuple[dict[str, int], int]]:
    """Every way in which the row's modifiers spell ``parts``: their values and bits."""
    if i == len(row.mods):
        if at == len(parts):
            yield context, bits
        return
    mod = row.mods[i]
    if isinstance(mod, Idiom):
        for name in _IDIOMS:
            if parts[at : at + len(name)] == list(name):
                more = {**context, mod.name: int(bool(name))}
                yield from modifiers_of(row, parts, at + len(name), i + 1, more, bits)
        return
    for value, end in spellings(mod.names, parts, at):
        more = {**context, mod.name: value}
        yield from modifiers_of(row, parts, end, i + 1, more, bits | put(mod.field, value))


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to read a mnemonic with its modifiers.

    ``bits`` are the bits that the mnemonic decides, ``absent`` those of operands that are not
    printed; ``printed`` are role, whether it is a literal or may be left out, and separator.
    """

    row: CompiledRow
    context: Mapping[str, int]
    bits: int
    absent: int
    printed: tuple[tuple[str, bool, bool, str], ...]

    def slots(self) -> Slots:
        settled = self.row.mod_mask | self.row.match_mask
        return Slots(self.context, self.row.generation, self.bits, settled)


@lru_cache(maxsize=1 << 13)
def _readings(generation: int, mnemonic: str, parts: tuple[str, ...]) -> tuple[_Reading, ...]:
    """All ways to read a mnemonic, in the order of the table."""
    out: list[_Reading] = []
    for row in _by_mnemonic(generation).get(mnemonic, ()):
        base = opcode_bits(row.row.opcode) | _fixed(row.row) | _usual(row)
        for context, bits in modifiers_of(row.row, list(parts), 0, 0, {}, 0):
            printed = tuple(
                (t.role, t.literal, t.elide, t.lead) for t in tokens(row.row.text, context)
            )
            reading = _Reading(row, context, base | bits, 0, printed)
            shown = {role for role, literal, _, _ in printed if not literal}
            slots, absent = reading.slots(), 0
            for role, slot in row.row.operands.items():
                if role not in shown:
                    absent |= slots.default(slot)
            out.append(replace(reading, absent=absent))
    return tuple(out)


def _operands(reading: _Reading, slots: Slots, text: str) -> Iterator[int]:
    """Every way in which the print template matches: the operands' bits."""
    row, printed = reading.row.row, reading.printed

    def match(i: int, at: int, bits: int, first: bool) -> Iterator[int]:
        if i == len(printed):
            if not text[at:].strip():
                yield bits
            return
        role, literal, elide, lead = printed[i]
        start = at if first else _after(text, at, lead)
        if start is not None:
            if literal:
                if text.startswith(role, start):
                    yield from match(i + 1, start + len(role), bits, False)
            else:
                found = slots.parse(row.operands[role], text, start)
                if found is not None:
                    yield from match(i + 1, found[1], bits | found[0], False)
        if elide:
            yield from match(i + 1, at, bits | slots.default(row.operands[role]), first)

    yield from match(0, 0, reading.absent, True)


def _after(text: str, at: int, lead: str) -> int | None:
    """The position after a separator, which may have a space before it."""
    for spelling in (lead, f" {lead}"):
        if text.startswith(spelling, at):
            return at + len(spelling)
    return None


def _usual(row: CompiledRow) -> int:
    """The values that compilers write into meaningless fields: no register, no predicate."""
    bits = 0
    for field in row.row.ones:
        bits |= field.mask
    return bits


def _fixed(row: Row) -> int:
    return sum(put(field, value) for field, value in row.fixed)


def assemble(text: str, arch: int, offset: int = 0) -> int:
    """The 128-bit word of an instruction's text.

    ``offset`` is the instruction's place in its section, from which code addresses count.  The
    scheduling information of :func:`.control_text` may precede it; without it no
    barrier is set or waited for and no stall is scheduled.

    Raises :class:`DecodeError`: SX0204 unknown architecture, SX0206 no instruction of the
    architecture has this text.
    """
    source = _source(text)
    wanted = _canonical(source)
    generation = generation_of(arch)
    if source.mnemonic not in _by_mnemonic(generation):
        raise _error(f"{source.mnemonic} is not an instruction of sm_{arch}")
    scheduling = source.control
    if scheduling is None:  # registers are kept only if the warp does not yield
        scheduling = NO_CONTROL | (0x11 << 105 if ".reuse" in text else 0)
    for reading in _readings(generation, source.mnemonic, tuple(source.parts)):
        row = reading.row
        for word in _candidates(reading, source, offset):
            word |= scheduling
            try:
                found = row.decode(word, offset, arch, False)
            except DecodeError:
                continue
            if _squeeze(found.text) == wanted and row_of(word, generation_of(arch)) is row:
                return _with_bits(word, source, wanted, arch, offset) if source.mask else word
    raise _error(f"no form of {source.mnemonic} on sm_{arch} reads {text.strip()!r}")


def _with_bits(word: int, source: Source, wanted: str, arch: int, offset: int) -> int:
    """The word with the bits that the brackets give, if it reads the same."""
    word = word & ~source.mask | source.value
    row = row_of(word, generation_of(arch))
    if row is None or _squeeze(row.decode(word, offset, arch, False).text) != wanted:
        raise _error("the bits in the brackets make another instruction")
    return word


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _canonical(source: Source) -> str:
    """The text that decoding the word must give."""
    head = ".".join((source.mnemonic, *source.parts))
    guard = ""
    if source.guard != 7 or source.guard_file:
        index_ = source.guard & 7
        inv = "!" if source.guard & 8 else ""
        guard = f"@{inv}{source.guard_file}{'T' if index_ == 7 else index_} "
        if index_ == 7 and not inv:
            guard = ""
    return _squeeze(f"{guard}{head} {source.operands}")


def _candidates(reading: _Reading, source: Source, offset: int) -> Iterator[int]:
    """Words that may have the text."""
    if source.guard_file and source.guard_file != reading.row.row.guard:
        return
    slots = reading.slots()
    slots.offset, slots.descriptor, slots.nan = offset, source.descriptor, source.nan
    slots.width = source.width
    for operands in _operands(reading, slots, source.operands):
        yield reading.bits | source.guard << 12 | operands


__all__ = ["Bits", "Context", "assemble", "control_bits", "modifiers_of"]
