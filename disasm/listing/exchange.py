"""The code of cubins as other programs load it: functions with addresses, blocks and references.

A cubin's sections all begin at 0, and a file may have several cubins.  Here each section has a
place of its own in one address space, so that a disassembler with flat memory can show them all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sassxlate.disasm.containers import demangle
from sassxlate.disasm.containers.elf import STT_FUNC, ElfReloc, Section
from sassxlate.disasm.inputs import arch_name
from sassxlate.disasm.listing.cubin import Document
from sassxlate.disasm.listing.source_lines import source_of
from sassxlate.disasm.sass.instruction import Instruction, Label, Pred, Reg
from sassxlate.disasm.sass.traits import traits

START = 0x10000  # of the first section
ALIGN = 128  # bytes, as nvlink aligns code
WORD = 16  # bytes of an instruction

# What an instruction does with control.  "jump", "indirect", "call", "return" and "exit" are its
# transfer (`.tables.effects`); "wait": lanes meet here and go on together.
Flow: TypeAlias = Literal["", "jump", "indirect", "call", "return", "exit", "wait", "resume"]
# jump: always; branch: under a condition; case: one of several; call; names: the instruction uses
# the address and does not go there, such as the place where lanes meet of BSSY.
Kind: TypeAlias = Literal["jump", "branch", "case", "call", "names"]


@dataclass(frozen=True, slots=True)
class Line:
    """One word.  ``error`` is that of a word that is no instruction, whose text is empty."""

    address: int
    word: int
    text: str
    flow: Flow = ""
    conditional: bool = False  # it has a guard or another predicate that decides
    source: tuple[str, int] | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """The instruction at ``source`` refers to the code at ``target``; both are addresses."""

    source: int
    target: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Code:
    """A function.  ``blocks`` are (address, bytes) in order; ``labels`` names of addresses."""

    name: str
    demangled: str
    kind: Literal["kernel", "function"]
    arch: str
    address: int
    size: int  # bytes
    blocks: tuple[tuple[int, int], ...]
    labels: tuple[tuple[int, str], ...]
    lines: tuple[Line, ...]
    references: tuple[Reference, ...]


def functions_of(
    document: Document, start: int, chosen: Callable[[str], bool]
) -> tuple[list[Code], int]:
    """The chosen functions of a cubin, whose sections are placed from ``start`` on, and the first
    address after all of its sections.

    A section that holds several functions is chosen if one of them is; then all of them are given.

    Raises:
        ContainerError: SX0129, the line table cannot be read.
    """
    image = document.image
    bases: dict[int, int] = {}
    for section in image.texts:
        bases[section.index] = start
        start = (start + section.size + ALIGN - 1) // ALIGN * ALIGN
    found: list[Code] = []
    for section in image.texts:
        if any(chosen(name) for name in _names(document, section).values()):
            found += _Reader(document, bases, section).functions()
    return found, start


def _names(document: Document, section: Section) -> dict[int, str]:
    """The functions in a section by offset; its own name is that of the code before them."""
    image = document.image
    found = {0: section.name.removeprefix(".text.")}
    for number in image.symbols_of.get(section.index, ()):
        symbol = image.symbols[number]
        inside = symbol.value < section.size and symbol.value % WORD == 0
        if symbol.kind == STT_FUNC and inside:
            found[symbol.value] = image.name(number)
    return dict(sorted(found.items()))


class _Reader:
    """One code section."""

    def __init__(self, document: Document, bases: dict[int, int], section: Section) -> None:
        self.document, self.bases, self.section = document, bases, section
        self.base = bases[section.index]
        self.code = document.codes[section.index]
        self.addresses = self.code.addresses()
        image = document.image
        self.relocs = {r.offset: r for r in image.relocations.get(section.index, ())}
        self.tables = {t.offset: t.targets for t in image.tables_of(section.index)}
        self.source = source_of(image.elf)

    def functions(self) -> Iterator[Code]:
        starts = _names(self.document, self.section)
        lines, references, leaders = self._walk(set(starts))
        marks = sorted(leaders)
        labels = self.document.labels
        image = self.document.image
        kernels = {k.name for k in image.cubin.kernels}
        ends = [*list(starts)[1:], WORD * len(self.code)]
        for (begin, name), end in zip(starts.items(), ends, strict=True):
            if begin == end:
                continue
            own = marks[bisect_right(marks, begin - 1) : bisect_right(marks, end - 1)]
            named = ((at, labels.at(self.section.index, at)) for at in own if at != begin)
            first, last = self.base + begin, self.base + end
            yield Code(
                name,
                demangle(name),
                "kernel" if name in kernels else "function",
                arch_name(image.cubin.arch, image.cubin.variant),
                first,
                end - begin,
                tuple(
                    (self.base + at, to - at)
                    for at, to in zip(own, [*own[1:], end], strict=True)
                ),
                tuple((self.base + at, label) for at, label in named if label),
                tuple(lines[begin // WORD : end // WORD]),
                tuple(r for r in references if first <= r.source < last),
            )  # fmt: skip

    def _walk(self, leaders: set[int]) -> tuple[list[Line], list[Reference], set[int]]:
        """All words, what they refer to, and the offsets where blocks begin."""
        texts = [text for window in self.document.windows(self.section) for text in window]
        lines: list[Line] = []
        references: list[Reference] = []
        size = WORD * len(self.code)
        for i, (item, text) in enumerate(zip(self.code.instructions, texts, strict=True)):
            offset = WORD * i
            at, source = self.base + offset, self.source(self.section.name, offset)
            if not isinstance(item, Instruction):
                why = f"{item.error.code} {item.error.message}"
                lines.append(Line(at, item.word, "", source=source, error=why))
                leaders.add(offset + WORD)
                continue
            flow, decides = traits(item).transfer, _conditional(item)
            lines.append(Line(at, item.word, text or item.text, flow, decides, source))
            if flow:
                leaders.add(offset + WORD)
            for target, kind in self._targets(i, flow, decides):
                references.append(Reference(at, target, kind))
                inside = target - self.base
                if 0 <= inside < size and inside % WORD == 0:
                    leaders.add(inside)
        leaders.discard(size)
        return lines, references, leaders

    def _targets(self, i: int, flow: Flow, decides: bool) -> Iterator[tuple[int, Kind]]:
        """The code that the instruction refers to, as addresses."""
        offset = WORD * i
        kind: Kind = "names"
        if flow == "jump":
            kind = "branch" if decides else "jump"
        elif flow == "call":
            kind = "call"
        reloc = self.relocs.get(offset)
        if offset in self.tables:
            for to in dict.fromkeys(self.tables[offset]):
                yield self.base + to, "call" if flow == "call" else "case"
        elif reloc is not None:
            target = self._place(reloc)
            if target is not None:
                yield target, kind
        elif i in self.addresses:
            yield self.base + self.addresses[i], kind

    def _place(self, reloc: ElfReloc) -> int | None:
        """The address of the code that a relocation names, if it is in this file."""
        symbol = self.document.image.symbols[reloc.symbol]
        base = self.bases.get(symbol.shndx)
        return None if base is None else base + symbol.value + reloc.addend


def _conditional(item: Instruction) -> bool:
    """Whether its guard, or an operand beside the target, decides where control goes."""
    if not item.guard.is_true:
        return True
    operands = item.operands.values()
    if any(isinstance(o, Pred) and not o.is_true for o in operands):
        return True
    # BRA.DIV compares a register with the lanes that are there.
    return any(isinstance(o, Label) for o in operands) and any(isinstance(o, Reg) for o in operands)


__all__ = ["ALIGN", "START", "WORD", "Code", "Line", "Reference", "functions_of"]
