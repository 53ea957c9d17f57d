# pyright: reportMissingModuleSource=false
"""Plugin of Binary Ninja that opens the SASS of a CUDA program, as
`sassxlate listing FILE -o FILE.listing.json` writes it.

Copy this file into Binary Ninja's folder of plugins, then open the listing.  Binary Ninja has no
architecture for SASS: this one knows the instructions that a listing has, and decodes no others.
Functions, graphs, calls, labels and source lines work; there is no lifting, so no decompiler.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, cast

from binaryninja.architecture import Architecture, InstructionInfo, RegisterInfo, RegisterName
from binaryninja.binaryview import BinaryView
from binaryninja.enums import (
    BranchType,
    Endianness,
    InstructionTextTokenType,
    SectionSemantics,
    SegmentFlag,
    SymbolType,
)
from binaryninja.function import InstructionTextToken
from binaryninja.log import log_error
from binaryninja.types import Symbol

WORD = 16  # bytes of an instruction
SCHEMA = "sassxlate.listing/1"
_TOKEN = re.compile(
    r"(?P<register>\bU?[RP]\d+\b)|(?P<number>\b0x[0-9a-f]+\b)|(?P<label>`\([^`]*\))"
)

# The instructions of all listings that are open, by address and code.
_known: dict[tuple[int, bytes], dict[str, Any]] = {}


def read(text: bytes) -> dict[str, Any]:
    """The listing.  Raises ValueError if it is none."""
    found = json.loads(text)
    listing = cast("dict[str, Any]", found if isinstance(found, dict) else {})
    if listing.get("schema") != SCHEMA:
        raise ValueError("no listing of sassxlate")
    return listing


def code_of(function: dict[str, Any]) -> bytes:
    """A function's code, in memory order."""
    words = (int(line["word"], 16) for line in function["instructions"])
    return b"".join(word.to_bytes(WORD, "little") for word in words)


def remember(listing: dict[str, Any]) -> None:
    """Makes a listing's instructions known to the architecture."""
    for function in listing["functions"]:
        ways: dict[int, list[dict[str, Any]]] = {}
        for way in function["references"]:
            ways.setdefault(way["from"], []).append(way)
        for line in function["instructions"]:
            code = int(line["word"], 16).to_bytes(WORD, "little")
            known = line | {"ways": ways.get(line["address"], [])}
            _known[line["address"], code] = known


def branches(line: dict[str, Any]) -> list[tuple[BranchType, int]]:
    """Where control may go from an instruction; empty: only on."""
    flow, address = line.get("flow", ""), line["address"]
    targets = [way["to"] for way in line["ways"] if way["kind"] != "names"]
    if flow == "jump":
        if not targets:
            return [(BranchType.UnresolvedBranch, 0)]
        if not line["conditional"]:
            return [(BranchType.UnconditionalBranch, targets[0])]
        return [(BranchType.TrueBranch, targets[0]), (BranchType.FalseBranch, address + WORD)]
    if flow == "indirect":
        return [(BranchType.IndirectBranch, to) for to in targets] or [
            (BranchType.UnresolvedBranch, 0)
        ]
    if flow == "call":
        return [(BranchType.CallDestination, to) for to in targets]
    # A conditional end is not one: lanes for which it does not hold go on.
    if flow in ("exit", "return") and not line["conditional"]:
        return [(BranchType.FunctionReturn, 0)]
    if line.get("error"):
        return [(BranchType.UnresolvedBranch, 0)]
    return []


def tokens(line: dict[str, Any]) -> list[InstructionTextToken]:
    """The instruction's text in parts."""
    kinds = InstructionTextTokenType
    text = line.get("text") or f"error {line['error']}"
    words = text.split(" ", 2 if text.startswith("@") else 1)
    rest = words.pop() if len(words) == (3 if text.startswith("@") else 2) else ""
    found = [InstructionTextToken(kinds.InstructionToken, " ".join(words))]
    if rest:
        found.append(InstructionTextToken(kinds.TextToken, " "))
    target = next((way["to"] for way in line["ways"]), None)
    at = 0
    for part in _TOKEN.finditer(rest):
        if part.start() > at:
            found.append(InstructionTextToken(kinds.TextToken, rest[at : part.start()]))
        if part["register"]:
            found.append(InstructionTextToken(kinds.RegisterToken, part[0]))
        elif part["label"] and target is not None:
            found.append(InstructionTextToken(kinds.PossibleAddressToken, hex(target), target))
        elif part["number"]:
            value = int(part[0], 16)
            found.append(InstructionTextToken(kinds.IntegerToken, part[0], value))
        else:
            found.append(InstructionTextToken(kinds.TextToken, part[0]))
        at = part.end()
    if at < len(rest):
        found.append(InstructionTextToken(kinds.TextToken, rest[at:]))
    return found


class SassListing(Architecture):
    """The instructions of the listings that are open."""

    name = "sass-listing"
    endianness = Endianness.LittleEndian
    address_size = 8
    default_int_size = 4
    instr_alignment = WORD
    max_instr_length = WORD
    regs: ClassVar[dict[RegisterName, RegisterInfo]] = {
        RegisterName(f"R{i}"): RegisterInfo(RegisterName(f"R{i}"), 4) for i in range(256)
    }
    stack_pointer = "R1"

    def get_instruction_info(self, data: bytes, addr: int) -> InstructionInfo | None:
        """The length and the branches of the instruction at an address."""
        line = _known.get((addr, bytes(data[:WORD])))
        if line is None:
            return None
        info = InstructionInfo()
        info.length = WORD
        for kind, target in branches(line):
            info.add_branch(kind, target)
        return info

    def get_instruction_text(
        self, data: bytes, addr: int
    ) -> tuple[list[InstructionTextToken], int] | None:
        """The text of the instruction at an address."""
        line = _known.get((addr, bytes(data[:WORD])))
        return None if line is None else (tokens(line), WORD)


def architecture() -> Architecture:
    """The registered one."""
    found: dict[str, Architecture] = {known.name: known for known in Architecture}
    return found[SassListing.name]


class SassView(BinaryView):
    """A listing as a file with code."""

    name = "SASS listing"
    long_name = "SASS listing of sassxlate"

    def __init__(self, data: BinaryView) -> None:
        BinaryView.__init__(self, file_metadata=data.file, parent_view=data)
        self.raw = data
        self.first = 0

    @classmethod
    def is_valid_for_data(cls, data: BinaryView) -> bool:
        """Whether a file begins as a listing does."""
        return f'"{SCHEMA}"'.encode() in data.read(0, 64)

    def init(self) -> bool:
        """Fills the view from the file."""
        try:
            listing = read(bytes(self.raw.read(0, self.raw.length)))
        except ValueError as error:
            log_error(f"sassxlate: {error}")
            return False
        remember(listing)
        self.arch = architecture()
        self.platform = self.arch.standalone_platform
        flags = SegmentFlag.SegmentReadable | SegmentFlag.SegmentExecutable
        for function in listing["functions"]:
            name = f"{function['arch']}.{function['name']}"
            start, size = function["address"], function["size"]
            self.memory_map.add_memory_region(name, start, code_of(function), flags)
            code = SectionSemantics.ReadOnlyCodeSectionSemantics
            self.add_auto_section(name, start, size, code)
        for function in listing["functions"]:
            start = function["address"]
            self.first = self.first or start
            symbol = Symbol(
                SymbolType.FunctionSymbol,
                start,
                function["demangled"],
                raw_name=function["name"],
            )
            self.define_auto_symbol(symbol)
            self.add_function(start, self.platform)
            self.set_comment_at(start, f"{function['kind']}, {function['arch']}")
            for label in function["labels"]:
                local = Symbol(SymbolType.LocalLabelSymbol, label["address"], label["name"])
                self.define_auto_symbol(local)
            before = ""
            for line in function["instructions"]:
                source = line.get("source")
                place = f"{source['file']}:{source['line']}" if source else ""
                if place and place != before and line["address"] != start:
                    self.set_comment_at(line["address"], place)
                before = place
        return True

    def perform_is_executable(self) -> bool:
        """It has code."""
        return True

    def perform_get_address_size(self) -> int:
        """Bytes of an address."""
        return 8

    def perform_get_entry_point(self) -> int:
        """The first function."""
        return self.first


SassListing.register()
SassView.register()
