"""The call graph of a cubin: the calls in the code, the contents of .nv.callgraph, and stack sizes.

``.nv.callgraph`` is a list of pairs of symbol numbers in parts: calls after (0, -1), after
(0, -2) functions whose address is taken, after (0, -3) functions that call through pointers.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import networkx as nx

from sassxlate.disasm.containers import demangle, eiattr, relocations
from sassxlate.disasm.containers.elf import STT_FUNC, Section, fail
from sassxlate.disasm.containers.values import Attribute, Function, Kernel
from sassxlate.disasm.listing.image import Image
from sassxlate.disasm.sass.codec.section import Section as Code
from sassxlate.disasm.sass.codec.section import decode_sections

CALLGRAPH = ".nv.callgraph"
_STO_CUDA_ENTRY = 0x10
_CALLS, _TAKEN, _CALLERS = -1, -2, -3
_CALL = re.compile(r"(?:@\S+ )?CALL\S*(?: (U?R\d+))?")
_JUMP = re.compile(r"(?:@\S+ )?(?:BRA|JMP)\b")
_POINTER = 8

# A CALL to an address, one through a relocation, one through a register, a branch to a function's
# first instruction, or a call that only .nv.callgraph or .nv.info names.
Kind: TypeAlias = Literal["direct", "relocated", "indirect", "jump", "listed"]


@dataclass(frozen=True, slots=True)
class Node:
    """A function.  Sizes are in bytes, None if .nv.info does not have them."""

    name: str
    demangled: str
    kind: Literal["kernel", "function", "external"]
    section: str
    offset: int
    size: int
    registers: int | None
    frame: int | None
    stack: int | None  # the minimum per lane, calls included
    recursive: bool
    address_taken: bool
    calls_pointers: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """One function calls another; ``offsets`` are those of the calls in the caller's section."""

    caller: str
    callee: str
    kind: Kind
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CallGraph:
    """The functions of a cubin and the calls between them.

    ``nodes`` are in the order of their addresses, section by section, external functions last;
    ``edges`` are in the order of their callers.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def called_from(self, names: Collection[str]) -> CallGraph:
        """The part that calls of these functions reach."""
        callees: dict[str, list[str]] = defaultdict(list)
        for edge in self.edges:
            callees[edge.caller].append(edge.callee)
        reached, work = set(names), list(names)
        while work:
            for callee in callees[work.pop()]:
                if callee not in reached:
                    reached.add(callee)
                    work.append(callee)
        return CallGraph(
            tuple(node for node in self.nodes if node.name in reached),
            tuple(edge for edge in self.edges if edge.caller in reached),
        )


def call_graph(image: Image) -> CallGraph:
    """The call graph of a cubin.

    Raises ContainerError SX0119 (.nv.callgraph), SX0124 (.nv.info), DecodeError SX0204.
    """
    return _Builder(image).graph()


def listed(image: Image) -> Mapping[int, list[tuple[int, int]]]:
    """The entries of .nv.callgraph: pairs of symbol numbers, by the kind of the part that they are
    in (_TAKEN, _CALLERS and others).  A pair of 0 and a negative kind begins a part."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    section = image.elf.section(CALLGRAPH)
    if section is None:
        return found
    if section.size % 8:
        raise fail("SX0119", f"{CALLGRAPH} is not a whole number of pairs", section.offset)
    part = 0
    for first, second in struct.iter_unpack("<ii", section.data):
        if first == 0 and second < 0:
            part = second
            continue
        if not 0 < first < len(image.symbols) or (
            part not in (_TAKEN, _CALLERS) and not 0 < second < len(image.symbols)
        ):
            raise fail("SX0119", f"{CALLGRAPH} names symbols {first} and {second}", section.offset)
        found[part].append((first, second))
    return found


class _Builder:
    """The state of reading one cubin."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.functions = {
            number: symbol for number, symbol in enumerate(image.symbols) if symbol.kind == STT_FUNC
        }
        self.listed = listed(image)
        texts = image.texts
        decoded = decode_sections([bytes(s.data) for s in texts], image.cubin.arch)
        self.codes = {s.index: code for s, code in zip(texts, decoded, strict=True)}
        # Section -> its functions' offsets and numbers, in order.
        self.places: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for number, symbol in self.functions.items():
            if symbol.shndx in self.codes:
                self.places[symbol.shndx].append((symbol.value, number))
        for places in self.places.values():
            places.sort()
        self.edges: dict[tuple[int, int, Kind], list[int]] = defaultdict(list)
        self.pointers: set[int] = {n for n, _ in self.listed.get(_CALLERS, ())}
        self.taken: set[int] = {n for n, _ in self.listed.get(_TAKEN, ())}
        codes: list[Kernel | Function] = [*image.cubin.kernels, *image.cubin.functions]
        self.by_name = {c.name: c for c in codes}

    def graph(self) -> CallGraph:
        self._take_addresses()
        for section in self.image.texts:
            self._section(section, self.codes[section.index])
        known = {(caller, callee) for caller, callee, _ in self.edges}
        for caller, callee in self.listed.get(_CALLS, ()):
            if (caller, callee) not in known:
                self.edges[caller, callee, "listed"] = []
        numbers = sorted(
            self.functions,
            key=lambda n: (self.functions[n].shndx or 1 << 32, self.functions[n].value, n),
        )
        rank = {number: i for i, number in enumerate(numbers)}
        names = self._names(numbers)
        cycles = self._recursive()
        sizes = self._sizes()
        return CallGraph(
            tuple(self._node(n, names[n], n in cycles, sizes.get(n, {})) for n in numbers),
            tuple(
                Edge(names[caller], names[callee], kind, tuple(sorted(offsets)))
                for (caller, callee, kind), offsets in sorted(
                    self.edges.items(), key=lambda e: (rank.get(e[0][0], -1), e[0][1:])
                )
                if caller in names and callee in names
            ),
        )

    def _names(self, numbers: list[int]) -> dict[int, str]:
        """Names, with the section where two functions share one."""
        count: dict[str, int] = defaultdict(int)
        for number in numbers:
            count[self.image.name(number)] += 1
        return {
            n: name
            if count[name := self.image.name(n)] == 1
            else f"{name}@{self.functions[n].shndx}+{self.functions[n].value:#x}"
            for n in numbers
        }

    def _take_addresses(self) -> None:
        """Functions whose addresses are in data: by relocation, or by offset in a kernel's constant
        bank 2."""
        for section in self.image.sections:
            if section.index in self.codes or not section.flags & 2:
                continue
            for reloc in self.image.relocations.get(section.index, ()):
                symbol = self.functions.get(reloc.symbol)
                if symbol is not None and symbol.shndx and not reloc.addend:
                    self.taken.add(reloc.symbol)
        for section in self.image.texts:
            self.taken.update(self._constant2(section))

    def _constant2(self, section: Section) -> Iterator[int]:
        """The callees that the pointers in a section's bank 2 address."""
        code = self.by_name.get(section.name.removeprefix(".text."))
        if code is None or self.image.relocatable:
            return
        at = {value: n for value, n in self.places[section.index] if value}
        for place in range(0, len(code.constant2) - _POINTER + 1, _POINTER):
            value = int.from_bytes(code.constant2[place : place + _POINTER], "little")
            if value in at:
                yield at[value]

    def _section(self, section: Section, code: Code) -> None:
        addresses = code.addresses()
        relocated = {r.offset: r for r in self.image.relocations.get(section.index, ())}
        info = self.by_name.get(section.name.removeprefix(".text."))
        system = set(info.syscall_offsets) if info is not None else set[int]()
        starts = {value: number for value, number in self.places[section.index]}
        for i, text in enumerate(code.texts()):
            if text is None:
                continue
            call = _CALL.match(text)
            if call is None and not _JUMP.match(text):
                continue
            offset = 16 * i
            caller = self._function_at(section.index, offset)
            if caller is None:
                continue
            reloc = relocated.get(offset)
            if reloc is not None and reloc.symbol in self.functions:
                kind = relocations.kind(reloc.type)
                if kind is not None and kind.field == "target":
                    self.edges[caller, reloc.symbol, "relocated"].append(offset)
            elif call is not None and call[1]:
                if offset not in system:
                    self._indirect(section, caller, offset)
            elif (target := addresses.get(i)) is not None and target in starts:
                callee = starts[target]
                if call is not None:
                    self.edges[caller, callee, "direct"].append(offset)
                elif callee != caller:
                    self.edges[caller, callee, "jump"].append(offset)

    def _indirect(self, section: Section, caller: int, offset: int) -> None:
        """A call through a register: to the listed targets, otherwise to every possible one."""
        self.pointers.add(caller)
        starts = {value: number for value, number in self.places[section.index]}
        tables = [t for t in self.image.tables_of(section.index) if t.offset == offset]
        if tables:
            callees = {starts[t] for table in tables for t in table.targets if t in starts}
        elif self.image.relocatable:
            callees = self.taken
        else:
            inside = set(starts.values())
            # With one kernel, data holds offsets of functions without any mark.
            entries = {n for n in inside if self.functions[n].other & _STO_CUDA_ENTRY}
            callees = {n for n in self.taken if n in inside} or self.taken or inside - entries
        for callee in callees:
            self.edges[caller, callee, "indirect"].append(offset)

    def _function_at(self, section: int, offset: int) -> int | None:
        places = self.places[section]
        at = bisect_right(places, (offset, 1 << 62)) - 1
        return places[at][1] if at >= 0 else None

    def _recursive(self) -> set[int]:
        """The functions that can reach themselves."""
        graph: nx.DiGraph[int] = nx.DiGraph()
        for caller, callee, _ in self.edges:
            graph.add_edge(caller, callee)
        itself = {caller for caller, callee, _ in self.edges if caller == callee}
        rings = (part for part in nx.strongly_connected_components(graph) if len(part) > 1)
        return itself.union(*rings)

    def _sizes(self) -> dict[int, dict[str, int]]:
        """Symbol -> the records of .nv.info that are per function."""
        wanted = ("REGCOUNT", "FRAME_SIZE", "MIN_STACK_SIZE")
        by_id = {eiattr.IDS[f"EIATTR_{name}"]: name for name in wanted}
        found: dict[int, dict[str, int]] = defaultdict(dict)
        records: tuple[Attribute, ...] = self.image.cubin.attributes
        for record in records:
            if record.id in by_id:
                symbol, value = eiattr.words(record, 2)
                if value < 1 << 31:  # -1: no bound is known
                    found[symbol][by_id[record.id]] = value
        return found

    def _node(self, number: int, name: str, recursive: bool, sizes: Mapping[str, int]) -> Node:
        symbol = self.functions[number]
        inside = symbol.shndx in self.codes
        kernel = bool(symbol.other & _STO_CUDA_ENTRY)
        stack = sizes.get("MIN_STACK_SIZE")
        return Node(
            name=name,
            demangled=demangle(self.image.name(number)),
            kind="external" if not inside else "kernel" if kernel else "function",
            section=self.image.sections[symbol.shndx].name if inside else "",
            offset=symbol.value,
            size=symbol.size,
            registers=sizes.get("REGCOUNT"),
            frame=sizes.get("FRAME_SIZE"),
            stack=stack,
            recursive=recursive,
            address_taken=number in self.taken,
            calls_pointers=number in self.pointers,
        )
