"""Stand-ins for the parts of Ghidra and Binary Ninja that our scripts call.

They keep what they are given, and refuse what Ghidra refuses: a function that begins on data, two
modules of one name, a program that is used after its last consumer released it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar, cast

import pytest


class _Names:
    """An object whose attributes are their own names: an enumeration."""

    def __getattr__(self, name: str) -> str:
        return name


@dataclass
class Block:
    executable: bool = False

    def setExecute(self, on: bool) -> None:
        self.executable = on


@dataclass
class Fragment:
    ranges: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def move(self, first: int, last: int) -> None:
        self.ranges.append((first, last))


@dataclass
class Module:
    children: dict[str, Any] = field(default_factory=dict[str, Any])

    def _add(self, name: str, made: Any) -> Any:
        assert name not in self.children
        self.children[name] = made
        return made

    def createModule(self, name: str) -> Module:
        return cast(Module, self._add(name, Module()))

    def createFragment(self, name: str) -> Fragment:
        return cast(Fragment, self._add(name, Fragment()))


@dataclass
class Function:
    name: str
    namespace: str
    body: tuple[int, int]
    comment: str = ""

    def setComment(self, text: str) -> None:
        self.comment = text


class Program:
    """All of ProgramDB's parts in one: `getListing`, `getMemory` and the others give this."""

    made: ClassVar[list[Program]] = []

    def __init__(self, name: str, language: str, spec: str, consumer: object) -> None:
        self.name, self.language, self.spec, self.consumer = name, language, spec, consumer
        self.memory: dict[int, bytes] = {}
        self.blocks: dict[str, Block] = {}
        self.functions: dict[int, Function] = {}
        self.data: set[int] = set()
        self.comments: dict[tuple[int, str], str] = {}
        self.labels: dict[int, str] = {}
        self.references: set[tuple[int, int, str]] = set()
        self.root = Module()
        self.kept = self.saved = self.opened = False
        Program.made.append(self)

    def _itself(self) -> Program:
        assert self.consumer is not None
        return self

    getListing = getMemory = getSymbolTable = getReferenceManager = _itself
    getAddressFactory = getDefaultAddressSpace = _itself

    def getAddress(self, offset: int) -> int:
        return offset

    def getGlobalNamespace(self) -> str:
        return ""

    def getOrCreateNameSpace(self, parent: str, name: str, source: str) -> str:
        assert (parent, source) == ("", "IMPORTED")
        return name

    def createRootModule(self, tree: str) -> Module:
        assert tree
        return self.root

    def createInitializedBlock(
        self, name: str, start: int, data: bytes, size: int, monitor: object, overlay: bool
    ) -> Block:
        assert len(data) == size > 0
        assert not overlay
        assert monitor is not None
        self.memory[start] = data
        return self.blocks.setdefault(name, Block())

    def createFunction(
        self, name: str, namespace: str, start: int, body: tuple[int, int], source: str
    ) -> Function:
        assert start not in self.data, "Function entryPoint may not be created on defined data"
        assert body[0] <= start <= body[1]
        assert source == "IMPORTED"
        made = self.functions[start] = Function(name, namespace, body)
        return made

    def createData(self, address: int, kind: object) -> None:
        assert kind == ("byte", 16, 1)
        self.data.add(address)

    def setComment(self, address: int, kind: str, text: str) -> None:
        self.comments[address, kind] = text

    def createLabel(self, address: int, name: str, namespace: Function, source: str) -> None:
        assert namespace.body[0] < address <= namespace.body[1]
        assert source == "IMPORTED"
        self.labels[address] = name

    def addMemoryReference(
        self, source: int, target: int, kind: str, by: str, operand: int
    ) -> None:
        assert (by, operand) == ("IMPORTED", 0)
        self.references.add((source, target, kind))

    def startTransaction(self, description: str) -> int:
        assert description
        return 7

    def endTransaction(self, number: int, keep: bool) -> bool:
        assert number == 7
        self.kept = keep
        return True

    def release(self, consumer: object) -> None:
        assert self.consumer is consumer
        self.consumer = None


class Script:
    """The GhidraScript that a script gets: headless, with arguments."""

    def __init__(self, *arguments: str) -> None:
        self.arguments = list(arguments)
        self.printed: list[str] = []

    def getScriptArgs(self) -> list[str]:
        return self.arguments

    def getMonitor(self) -> Script:
        return self

    def checkCancelled(self) -> None:
        """As if the user never cancels."""

    def saveProgram(self, program: Program) -> None:
        assert program.kept
        assert program.consumer is self
        program.saved = True

    def openProgram(self, program: Program) -> None:
        assert program.saved
        program.opened = True

    def println(self, message: str) -> None:
        self.printed.append(message)


def _parts(*parts: object) -> tuple[object, ...]:
    return parts


class _Byte:
    dataType = "byte"


class _Languages:
    @staticmethod
    def getLanguageService() -> _Languages:
        return _Languages()

    def getLanguage(self, name: str) -> _Language:
        return _Language(name)


class _Language(str):
    def getDefaultCompilerSpec(self) -> str:
        return "default"


def _modules(patch: pytest.MonkeyPatch, **contents: dict[str, object]) -> None:
    """Makes modules importable; ``__`` in a name stands for a dot."""
    for name, values in contents.items():
        parts = name.split("__")
        for depth in range(1, len(parts) + 1):
            dotted = ".".join(parts[:depth])
            if dotted not in sys.modules:
                patch.setitem(sys.modules, dotted, ModuleType(dotted))
        vars(sys.modules[".".join(parts)]).update(values)


def install_ghidra(patch: pytest.MonkeyPatch) -> None:
    Program.made.clear()
    _modules(
        patch,
        java__io={"ByteArrayInputStream": bytes},
        ghidra__program__database={"ProgramDB": Program},
        ghidra__program__util={"DefaultLanguageService": _Languages},
        ghidra__program__model__address={"AddressSet": _parts},
        ghidra__program__model__data={
            "ArrayDataType": _parts,
            "ByteDataType": _Byte,
        },
        ghidra__program__model__lang={"LanguageID": str},
        ghidra__program__model__listing={"CommentType": _Names()},
        ghidra__program__model__symbol={"RefType": _Names(), "SourceType": _Names()},
    )


class _Architectures(type):
    def __iter__(cls) -> Iterator[Architecture]:
        return iter(Architecture.registered.values())


class Architecture(metaclass=_Architectures):
    """Binary Ninja's, which is iterable."""

    registered: ClassVar[dict[str, Architecture]] = {}
    name = ""
    standalone_platform = "platform"

    @classmethod
    def register(cls) -> None:
        Architecture.registered[cls.name] = cls()

    def get_instruction_info(self, data: bytes, addr: int) -> Info | None:
        raise NotImplementedError


class Info:
    def __init__(self) -> None:
        self.length = 0
        self.branches: list[tuple[str, int]] = []

    def add_branch(self, kind: str, target: int = 0) -> None:
        self.branches.append((kind, target))


class View:
    """A BinaryView; the raw one holds a file's bytes."""

    registered: ClassVar[list[type[View]]] = []

    def __init__(
        self, file_metadata: object = None, parent_view: View | None = None, raw: bytes = b""
    ) -> None:
        self.file, self.parent, self.bytes, self.length = file_metadata, parent_view, raw, len(raw)
        self.memory: dict[int, bytes] = {}
        self.symbols: dict[int, tuple[str, str]] = {}
        self.functions: list[int] = []
        self.comments: dict[int, str] = {}
        self.sections: dict[str, tuple[int, int]] = {}
        self.memory_map = self

    @classmethod
    def register(cls) -> None:
        View.registered.append(cls)

    def read(self, address: int, length: int) -> bytes:
        return self.bytes[address : address + length]

    def add_memory_region(self, name: str, start: int, source: bytes, flags: int) -> bool:
        assert name
        assert flags == 5
        self.memory[start] = source
        return True

    def add_auto_section(self, name: str, start: int, length: int, semantics: str) -> None:
        assert semantics == "ReadOnlyCodeSectionSemantics"
        self.sections[name] = (start, length)

    def define_auto_symbol(self, symbol: tuple[str, int, str]) -> None:
        self.symbols[symbol[1]] = (symbol[0], symbol[2])

    def add_function(self, address: int, platform: object) -> None:
        assert platform == "platform"
        self.functions.append(address)

    def set_comment_at(self, address: int, comment: str) -> None:
        self.comments[address] = comment


class _Flags:
    SegmentReadable, SegmentExecutable = 4, 1


def _symbol(kind: str, address: int, name: str, raw_name: str | None = None) -> object:
    del raw_name
    return kind, address, name


def install_binary_ninja(patch: pytest.MonkeyPatch) -> list[str]:
    """Makes the API importable; returns the list of what is logged."""
    logged: list[str] = []
    Architecture.registered.clear()
    View.registered.clear()
    names = ("BranchType", "Endianness", "InstructionTextTokenType", "SectionSemantics")
    enums = {name: _Names() for name in (*names, "SymbolType")}
    _modules(
        patch,
        binaryninja__architecture={
            "Architecture": Architecture,
            "InstructionInfo": Info,
            "RegisterInfo": _parts,
            "RegisterName": str,
        },
        binaryninja__binaryview={"BinaryView": View},
        binaryninja__enums={**enums, "SegmentFlag": _Flags},
        binaryninja__function={"InstructionTextToken": _parts},
        binaryninja__log={"log_error": logged.append},
        binaryninja__types={"Symbol": _symbol},
    )
    return logged
