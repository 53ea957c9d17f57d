"""The calls of each function, by a linear pass over the machine code (capstone)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sassxlate.disasm.host_code.program import Function, Program, function_at

_RIP = re.compile(r"\[rip ([+-]) (0x[0-9a-f]+|\d+)\]")
_NUMBER = re.compile(r"(?:0x[0-9a-f]+|\d+)$")
_TABLE = re.compile(r"\[.*\*8.*\]")


@dataclass(slots=True)
class Calls:
    """What a function calls: places by target (an address, or an imported name); functions whose
    address it takes; places of calls to unknown addresses."""

    direct: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    imported: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    takes: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    unknown: list[int] = field(default_factory=list[int])


def decoder(detail: bool = False) -> Any:
    """capstone's decoder for x86-64."""
    import capstone

    made = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    made.detail = detail
    return made


def plt(program: Program) -> dict[int, str]:
    """The entries of the procedure linkage tables: the imported names by their addresses."""
    found: dict[int, str] = {}
    engine = decoder()
    for section in program.code:
        if not section.name.startswith(".plt"):
            continue
        for at in range(0, len(section.data) - 7, 8):
            for address, size, mnemonic, text in engine.disasm_lite(
                bytes(section.data[at : at + 16]), section.addr + at
            ):
                slot = _slot(address + size, text)
                if mnemonic.endswith("jmp") and slot in program.slots:
                    found[section.addr + at] = program.slots[slot]
                if mnemonic not in ("endbr64",):
                    break
    return found


def targets(program: Program, functions: Sequence[Function]) -> set[int]:
    """The targets of direct calls, where functions begin that no table names."""
    found: set[int] = set()
    engine = decoder()
    for function in functions:
        code = program.bytes_at(function.start, function.end)
        for _, _, mnemonic, text in engine.disasm_lite(code, function.start):
            if mnemonic == "call" and _NUMBER.match(text):
                found.add(int(text, 0))
    return {a for a in found if program.is_code(a)}


def calls(
    program: Program, functions: list[Function], stubs: dict[int, str], skipped: set[int]
) -> dict[int, Calls]:
    """The calls of each function, by its start; of those in ``skipped`` none."""
    starts = {f.start for f in functions}
    engine = decoder()
    found: dict[int, Calls] = {}
    for function in functions:
        if function.start in skipped:
            continue
        one = found[function.start] = Calls()
        code = program.bytes_at(function.start, function.end)
        before = ""
        for address, size, mnemonic, text in engine.disasm_lite(code, function.start):
            name = mnemonic.split(" ")[-1]
            if name == "call" or name[0] == "j":
                _branch(
                    program, one, stubs, starts, function, address, size, mnemonic, text, before
                )
            elif name in ("lea", "mov"):
                value = _value(address + size, name, text)
                if value in starts:
                    one.takes.append((address, value))
            before = name
    return found


def _branch(
    program: Program,
    one: Calls,
    stubs: dict[int, str],
    starts: set[int],
    function: Function,
    address: int,
    size: int,
    mnemonic: str,
    text: str,
    before: str,
) -> None:
    call = mnemonic.endswith("call")
    if _NUMBER.match(text):
        target = int(text, 0)
        if target in stubs:
            one.imported.append((address, stubs[target]))
        elif call or (target in starts and target != function.start):
            one.direct.append((address, target))
        return
    slot = _slot(address + size, text)
    if slot in program.slots:
        one.imported.append((address, program.slots[slot]))
    elif call or not (
        mnemonic.startswith("notrack") or before == "add" or _TABLE.search(text)
    ):  # a jump through a table stays in its function
        one.unknown.append(address)


def _slot(following: int, text: str) -> int | None:
    found = _RIP.search(text)
    if found is None:
        return None
    return following + (int(found[2], 0) if found[1] == "+" else -int(found[2], 0))


def _value(following: int, name: str, text: str) -> int | None:
    if name == "lea":
        return _slot(following, text)
    operand = text.rpartition(", ")[2]
    return int(operand, 0) if _NUMBER.match(operand) else None


def containing(functions: list[Function], address: int) -> Function | None:
    """The function with an address; None: none."""
    return function_at(functions, address)


__all__ = ["Calls", "calls", "containing", "decoder", "plt", "targets"]
