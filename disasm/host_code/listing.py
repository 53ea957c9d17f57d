"""The x86-64 code of a host program's functions, with the names of what it refers to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sassxlate.disasm.containers.demangle import demangle
from sassxlate.disasm.containers.elf import Elf, printable
from sassxlate.disasm.host_code.calls import decoder, plt
from sassxlate.disasm.host_code.launches import HostGraph
from sassxlate.disasm.host_code.program import Function, Program, function_at
from sassxlate.disasm.inputs import kernel_matches

_RIP = re.compile(r"\[rip ([+-]) (0x[0-9a-f]+|\d+)\]")
_NUMBER = re.compile(r"(?:0x[0-9a-f]+|\d+)$")
_MOST_TEXT = 60  # characters of a string that are shown


@dataclass(frozen=True, slots=True)
class HostLine:
    """An instruction: its address, its bytes, its text in Intel's syntax, what it refers to ("" if
    that has no name)."""

    address: int
    code: bytes
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A function's instructions; ``kernel`` is the one whose stub it is, "" if it is none."""

    address: int
    name: str
    demangled: str
    kernel: str
    lines: tuple[HostLine, ...]


def host_functions(
    elf: Elf, graph: HostGraph, patterns: Sequence[str] = ()
) -> Iterator[HostFunction]:
    """The functions whose names match a pattern (mangled, demangled, a glob, ``sub_ADDRESS`` for
    one without a name, a kernel's for its stub); all of the graph without patterns.

    A byte that begins no instruction is listed as ``.byte``.
    """
    reader = _Reader(Program(elf), graph)
    for start, function in sorted(graph.functions.items()):
        kernel = graph.kernels.get(start)
        shown = graph.label(start)
        of_stub = kernel and kernel_matches(kernel.name, kernel.demangled, patterns)
        if of_stub or kernel_matches(function.label, shown, patterns):
            lines = tuple(reader.lines(function))
            stub_of = kernel.demangled if kernel else ""
            yield HostFunction(start, function.name, shown, stub_of, lines)


class _Reader:
    def __init__(self, program: Program, graph: HostGraph) -> None:
        self.program = program
        self.graph = graph
        self.functions = sorted(graph.functions.values(), key=lambda f: f.start)
        self.stubs = plt(program)
        self.engine: Any = decoder()
        self.engine.skipdata = True  # what begins no instruction is `.byte`, one at a time
        self.launched = _launched(graph)

    def lines(self, function: Function) -> Iterator[HostLine]:
        size = self.program.symbols.get(function.start, ("", 0))[1]
        end = min(function.end, function.start + size) if size else function.end
        code = self.program.bytes_at(function.start, end)
        for address, size, mnemonic, operands in self.engine.disasm_lite(code, function.start):
            at = address - function.start
            text = f"{mnemonic} {operands}".rstrip()
            note = self.note(function, address, size, mnemonic, operands)
            yield HostLine(address, code[at : at + size], text, note)

    def note(
        self, function: Function, address: int, size: int, mnemonic: str, operands: str
    ) -> str:
        """What an instruction refers to."""
        name = mnemonic.split(" ")[-1]
        branch = name == "call" or name[0] == "j"
        found = ""
        if relative := _RIP.search(operands):
            away = int(relative[2], 0)
            place = address + size + (away if relative[1] == "+" else -away)
            if place in self.program.slots:
                found = demangle(self.program.slots[place])
            else:
                found = self._of(place, branch)
        elif branch and _NUMBER.match(operands):
            target = int(operands, 0)
            inside = function.start < target < function.end
            found = "" if inside else self._of(target, branch)
        elif name == "mov" and _NUMBER.match(last := operands.rpartition(", ")[2]):
            found = self._of(int(last, 0), branch)
        if launched := self.launched.get(address):
            found = f"{found}, launches {launched}".removeprefix(", ")
        return found

    def _of(self, address: int, branch: bool) -> str:
        """The name of an address: a function, an import's stub, a string."""
        if address in self.stubs:
            return demangle(self.stubs[address])
        if kernel := self.graph.kernels.get(address):
            return f"stub of {kernel.demangled}"
        if address in self.graph.functions:
            return self.graph.label(address)
        if branch:
            inside = function_at(self.functions, address)
            return f"{self.graph.label(inside.start)}+{address - inside.start:#x}" if inside else ""
        text = None if self.program.is_code(address) else self.program.string(address)
        if text is None or not text.strip().isprintable():
            return ""
        short = text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "..."
        return '"' + printable(short.replace("\n", "\\n").encode()) + '"'


def _launched(graph: HostGraph) -> dict[int, str]:
    """The kernels that are launched at an address, by a call of the runtime or of a stub."""
    names: dict[int, list[str]] = {
        launch.address: [] if launch.stubs else ["an unknown kernel"] for launch in graph.launches
    }
    for stub, kernel in graph.kernels.items():
        own = {launch.address for launch in graph.launches if stub in launch.stubs}
        calls = {place for f in graph.launching(stub) for place in graph.places(f, stub)}
        for place in own | calls:
            names.setdefault(place, []).append(kernel.demangled)
    return {place: ", ".join(kernels) for place, kernels in names.items()}


def to_lines(function: HostFunction, *, encoding: bool = False) -> Iterator[str]:
    """The listing of a function, as llvm-objdump lays it out."""
    stub = f"  # stub of {function.kernel}" if function.kernel else ""
    yield f"{function.address:016x} <{function.demangled}>:{stub}"
    for line in function.lines:
        code = f"{line.code.hex(' '):<30} " if encoding else ""
        note = f"  # {line.note}" if line.note else ""
        yield f"{line.address:8x}: {code}{line.text}{note}"
    yield ""


def value(function: HostFunction) -> dict[str, Any]:
    """What JSON says; addresses are numbers, bytes are hexadecimal."""
    return {
        "address": function.address,
        "name": function.name,
        "demangled": function.demangled,
        "stub_of": function.kernel,
        "instructions": [
            {
                "address": line.address,
                "bytes": line.code.hex(),
                "text": line.text,
                "refers_to": line.note,
            }
            for line in function.lines
        ],
    }


__all__ = ["HostFunction", "HostLine", "host_functions", "to_lines", "value"]
