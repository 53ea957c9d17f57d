"""Calls of the functions of a kernel's module, in its machine code.

LLVM makes a function's address from the place where it is needed: `s_getpc_b64`, and two sums with
literals that a linker fills in.  The functions follow the kernel here, so each `s_swappc_b64`
becomes an `s_call_b64`, which has the distance, and the address is not made.  The debug location of
a call has the function's number as column.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sassxlate.disasm.containers.elf import SHT_RELA, SHT_SYMTAB, STT_FUNC, Elf
from sassxlate.disasm.containers.line_table import parse_lines
from sassxlate.lowering.target import Family
from sassxlate.lowering.tier.numbers.far import addresses
from sassxlate.lowering.tier.numbers.pieces import (
    NOP,
    OPCODES,
    Opcodes,
    Piece,
    one_source,
    without_operands,
)
from sassxlate.lowering.tier.refusal import BACKEND, refused

_LOW, _HIGH = 10, 11  # R_AMDGPU_REL32_LO and _HI
_AWAY: Final = 32  # most bytes from s_getpc_b64 to the last word of its sums
_SOPK: Final = 0xB << 28
_WORD: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Linked:
    """A kernel's code, then its functions', with the lines of both.

    ``distances``: the offsets of the words with parts of an address, and whether it is the low
    one; ``starts``: the functions', by number; ``columns``: (offset, column) where it changes.
    """

    code: bytes
    names: tuple[str, ...]
    lines: tuple[tuple[int, int], ...]
    distances: Mapping[int, bool]
    starts: Mapping[int, int]
    columns: tuple[tuple[int, int], ...]


def _number(name: str) -> int:
    last = name.rpartition(".")[2]
    if not last.isdecimal():
        raise refused(BACKEND, f"the function {name}")
    return int(last)


def linked(elf: Elf, kernel: str, align: int = 4) -> Linked:
    """The functions of a relocatable file, each at a multiple of ``align`` bytes, with s_nop
    before, as LLVM's alignments within them count from there.

    Raises Refused SX0464 for relocations of other kinds, and for functions that it does not know.
    """
    text = next(s for s in elf.sections if s.name == ".text")
    symbols = [s for t in elf.sections if t.type == SHT_SYMTAB for s in elf.symbols(t)]
    functions = [s for s in symbols if s.kind == STT_FUNC and s.shndx == text.index]
    functions.sort(key=lambda s: (s.name != kernel, s.value))
    new: dict[int, int] = {}  # offsets of functions in LLVM's code, and here
    code = b""
    for symbol in functions:
        code += NOP * (-len(code) % align // len(NOP))
        new[symbol.value] = len(code)
        code += bytes(text.data[symbol.value : symbol.value + symbol.size])
    numbers = [_number(s.name) for s in functions[1:]]
    if len(set(numbers)) != len(numbers):
        raise refused(BACKEND, "two functions of one number")

    def moved(at: int) -> int | None:
        for symbol in functions:
            if symbol.value <= at < symbol.value + symbol.size:
                return new[symbol.value] + at - symbol.value
        return None

    rows = sorted(
        (place, row.line, row.column)
        for table in parse_lines(elf)
        for row in table.rows
        if row.section == ".text" and not row.end
        if (place := moved(row.address)) is not None
    )
    return Linked(
        code,
        tuple(s.name for s in functions),
        tuple((at, line) for at, line, _ in rows),
        dict(_distances(elf, {s.value for s in functions[1:]}, moved)),
        {n: new[s.value] for n, s in zip(numbers, functions[1:], strict=True)},
        tuple((at, column) for at, _, column in rows),
    )


def _distances(
    elf: Elf, functions: set[int], moved: Callable[[int], int | None]
) -> Iterator[tuple[int, bool]]:
    symbols = [s for t in elf.sections if t.type == SHT_SYMTAB for s in elf.symbols(t)]
    for section in elf.sections:
        if section.type != SHT_RELA or section.name != ".rela.text":
            continue
        for reloc in elf.relocations(section):
            # The addend counts from the instruction after s_getpc_b64.
            to = symbols[reloc.symbol].value + reloc.addend
            at = moved(reloc.offset)
            known = any(0 < to - start <= _AWAY for start in functions)
            if reloc.type not in (_LOW, _HIGH) or at is None or not known:
                raise refused(BACKEND, "the code has relocations")
            yield at, reloc.type == _LOW


def with_calls(found: Linked, family: Family, pieces: Sequence[Piece]) -> list[Piece]:
    """The code with its calls; what makes the addresses has no bytes any more.  Raises Refused
    SX0464 if an address is used otherwise."""
    ops = OPCODES[family]
    out: list[Piece] = []
    for piece in pieces:
        inside = range(piece.at, piece.at + len(piece.data), 4)
        low = next((found.distances[at] for at in inside if at in found.distances), None)
        op = one_source(piece.data)
        if low is not None:
            if low:
                _drop_start(out, ops)
            out.append(replace(piece, data=b"", text=""))
        elif op == ops.swappc:
            out.append(_call(piece, found, ops))
        else:
            out.append(piece)
    if addresses(out, ops):
        raise refused(BACKEND, "addresses of code of another form")
    return out


def _drop_start(out: list[Piece], ops: Opcodes) -> None:
    """Takes out the s_getpc_b64 before the first of two sums, and RDNA4's sign extension."""
    for n in range(len(out) - 1, max(len(out) - 5, -1), -1):
        op = one_source(out[n].data)
        if op in (ops.getpc, ops.sext_i16):
            out[n] = replace(out[n], data=b"", text="")
        elif without_operands(out[n].data) is None:
            break
        if op == ops.getpc:
            return
    raise refused(BACKEND, "an address of code of another form")


def _call(piece: Piece, found: Linked, ops: Opcodes) -> Piece:
    place = bisect_right(found.columns, (piece.at, _WORD)) - 1
    number = found.columns[place][1] if place >= 0 else 0
    if len(found.starts) == 1:
        (target,) = found.starts.values()
    elif number in found.starts:
        target = found.starts[number]
    else:
        raise refused(BACKEND, "a call of an unknown function")
    link = int.from_bytes(piece.data, "little") >> 16 & 0x7F
    data = (_SOPK | ops.call << 23 | link << 16).to_bytes(4, "little")
    return Piece(piece.at, data, target, text=f"s_call_b64 s[{link}:{link + 1}], 0")


__all__ = ["Linked", "linked", "with_calls"]
