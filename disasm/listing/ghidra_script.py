# Loads the SASS of a CUDA program, as `sassxlate listing FILE -o FILE.listing.json` writes it.
# @category CUDA
# @runtime PyGhidra
# pyright: reportMissingModuleSource=false
"""Makes a program of Ghidra out of a listing: memory, functions, labels, the instructions' texts as
comments, source lines, references, and the blocks in a program tree.

Ghidra has no processor module for SASS.  The program is of its raw data "processor", so that each
instruction is 16 bytes of data with its text as a comment: listing, symbol tree, cross references
and program trees work, decompiler and function graph do not.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ghidra.app.script import GhidraScript
    from ghidra.program.model.listing import Program

WORD = 16  # bytes of an instruction
SCHEMA = "sassxlate.listing/1"


def read(path: str) -> dict[str, Any]:
    """The listing in a file.  Raises ValueError if it is none."""
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    listing = cast("dict[str, Any]", found if isinstance(found, dict) else {})
    if listing.get("schema") != SCHEMA:
        raise ValueError(f"{path} is no listing: `sassxlate listing FILE -o {path}` writes one")
    return listing


def code_of(function: dict[str, Any]) -> bytes:
    """A function's code, in memory order."""
    words = (int(line["word"], 16) for line in function["instructions"])
    return b"".join(word.to_bytes(WORD, "little") for word in words)


def load(listing: dict[str, Any], program: Program, monitor: Any) -> int:
    """Fills the program and returns the number of functions."""
    from ghidra.program.model.address import AddressSet
    from ghidra.program.model.data import ArrayDataType, ByteDataType
    from ghidra.program.model.listing import CommentType
    from ghidra.program.model.symbol import RefType, SourceType
    from java.io import ByteArrayInputStream

    kinds = {
        "jump": RefType.UNCONDITIONAL_JUMP,
        "branch": RefType.CONDITIONAL_JUMP,
        "case": RefType.COMPUTED_JUMP,
        "call": RefType.UNCONDITIONAL_CALL,
        "names": RefType.DATA,
    }
    factory, memory = program.getAddressFactory(), program.getMemory()
    space = factory.getDefaultAddressSpace()
    shown, symbols = program.getListing(), program.getSymbolTable()
    references = program.getReferenceManager()
    word = ArrayDataType(ByteDataType.dataType, WORD, 1)
    root = shown.createRootModule("Blocks")
    # References last: their targets exist then.
    for function in listing["functions"]:
        monitor.checkCancelled()
        name, arch = symbol(function["name"]), function["arch"]
        start = space.getAddress(function["address"])
        last = space.getAddress(function["address"] + function["size"] - 1)
        code = ByteArrayInputStream(code_of(function))
        block = memory.createInitializedBlock(
            f"{arch}.{name}", start, code, function["size"], monitor, False
        )
        block.setExecute(True)
        namespace = symbols.getOrCreateNameSpace(
            program.getGlobalNamespace(), arch, SourceType.IMPORTED
        )
        # Before the data: no function can begin on data that is there.
        body = AddressSet(start, last)
        made = shown.createFunction(name, namespace, start, body, SourceType.IMPORTED)
        made.setComment(f"{function['kind']} {function['demangled']}, {arch}")
        for line in function["instructions"]:
            at = space.getAddress(line["address"])
            shown.createData(at, word)
            shown.setComment(at, CommentType.EOL, line.get("text") or f"error {line['error']}")
        for address, place in changes(function):
            shown.setComment(space.getAddress(address), CommentType.PRE, place)
        for label in function["labels"]:
            symbols.createLabel(
                space.getAddress(label["address"]), symbol(label["name"]), made, SourceType.IMPORTED
            )
        module = root.createModule(f"{function['address']:x} {arch} {name}")
        for part in function["blocks"]:
            fragment = module.createFragment(f"{part['address']:x} of {arch} {name}")
            end = part["address"] + part["size"] - 1
            fragment.move(space.getAddress(part["address"]), space.getAddress(end))
    for function in listing["functions"]:
        for way in function["references"]:
            source, target = space.getAddress(way["from"]), space.getAddress(way["to"])
            references.addMemoryReference(
                source, target, kinds[way["kind"]], SourceType.IMPORTED, 0
            )
    return len(listing["functions"])


def symbol(name: str) -> str:
    """A name without the characters that Ghidra's symbols cannot have, of at most 2,000."""
    return "".join("_" if c.isspace() or not c.isprintable() else c for c in name[:2000])


def changes(function: dict[str, Any]) -> list[tuple[int, str]]:
    """The addresses where another source line begins, with file and line."""
    found: list[tuple[int, str]] = []
    before = ""
    for line in function["instructions"]:
        source = line.get("source")
        place = f"{source['file']}:{source['line']}" if source else ""
        if place and place != before:
            found.append((line["address"], place))
        before = place
    return found


def main(script: GhidraScript) -> None:
    """Asks for a listing (headless: the script's argument), and shows it as a new program."""
    from ghidra.program.database import ProgramDB
    from ghidra.program.model.lang import LanguageID
    from ghidra.program.util import DefaultLanguageService

    arguments = [str(word) for word in script.getScriptArgs()]
    path = arguments[0] if arguments else str(script.askFile("A listing of sassxlate", "Load"))
    listing = read(path)
    name = symbol(listing["file"].rpartition("/")[2]) + ".sass"
    service = DefaultLanguageService.getLanguageService()
    language = service.getLanguage(LanguageID("DATA:LE:64:default"))
    # Not the script's createProgram: without a tool, its program is closed at once.
    program = ProgramDB(name, language, language.getDefaultCompilerSpec(), script)
    try:
        change = program.startTransaction("load the SASS")
        done = False
        try:
            number = load(listing, program, script.getMonitor())
            done = True
        finally:
            program.endTransaction(change, done)
        script.saveProgram(program)
        script.openProgram(program)
    finally:
        program.release(script)
    script.println(f"{name}: {number} functions")


if __name__ == "__main__":
    main(globals()["this"])  # the script, as PyGhidra names it
