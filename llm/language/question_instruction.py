"""The instruction of a question's line, with numbers for its names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Final

from sassxlate.disasm.sass.codec.decode import (
    CompiledRow,
    index,
    opcode_bits,
    row_of,
)
from sassxlate.disasm.sass.codec.encode import NO_CONTROL, modifiers_of
from sassxlate.disasm.sass.codec.operand_parser import Slots, put
from sassxlate.disasm.sass.instruction import Instruction, Mem, Operand, Pred, Reg
from sassxlate.disasm.sass.tables import ROWS
from sassxlate.disasm.sass.tables.spec import C, Fixed, I, L, M, Mask, P, R, When
from sassxlate.errors import DecodeError, EncodeError
from sassxlate.llm.language.question_lines import WINDOWS, QuestionLine, Said, bad, is_name
from sassxlate.lowering.abi.kernarg import BankLayout
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.numbers import value_of
from sassxlate.lowering.region.places import Names
from sassxlate.lowering.region.region import Region
from sassxlate.lowering.region.text import USUALLY_FALSE
from sassxlate.lowering.region.text import _instruction as line_of  # pyright: ignore[reportPrivateUsage]

Words = tuple[str, ...]
DESCRIPTOR: Final = 60  # the uniform registers of descriptors, which mean nothing
FILES: Final = {"v": "R", "l": "UR", "u": "UR", "p": "P", "q": "UP"}


@lru_cache(maxsize=1 << 10)
def _rows(generation: int, mnemonic: str) -> tuple[CompiledRow, ...]:
    opcodes = dict.fromkeys(r.opcode for r in ROWS if r.mnemonic == mnemonic and r.of(generation))
    found = (row for opcode in opcodes for row in index(generation).rows(opcode))
    return tuple(row for row in found if row.row.mnemonic == mnemonic)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A row with its modifiers; ``bits`` are the bits that they decide."""

    row: CompiledRow
    context: Mapping[str, int]
    bits: int


@lru_cache(maxsize=1 << 13)
def _readings(generation: int, mnemonic: str, modifiers: Words) -> tuple[_Reading, ...]:
    out: list[_Reading] = []
    for row in _rows(generation, mnemonic):
        if row.row.effect:
            raise bad(f"{mnemonic} names predicates by their numbers")
        base = opcode_bits(row.row.opcode) | NO_CONTROL
        for at, value in row.row.fixed:
            base |= put(at, value)
        for at in row.row.ones:
            base |= at.mask
        for context, bits in modifiers_of(row.row, list(modifiers), 0, 0, {}, 0):
            out.append(_Reading(row, context, base | bits))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class NumberedNames:
    """The numbers assigned to names."""

    of: Mapping[str, int]  # of registers and predicates
    consts: Mapping[str, tuple[int, int]]
    layout: BankLayout
    generation: int
    low: bool = False  # whether Z may be the low word of a window

    def register(self, said: Said, file: str) -> str | None:
        """NVIDIA's name of a register of a file."""
        if said.kind != "register":
            return None
        first = said.places[0]
        if first == "Z" and len(said.places) == 1:
            return f"{file}Z"
        if not isinstance(first, str) or not is_name(first) or FILES.get(first[0]) != file:
            return None
        return f"{file}{self.of[first]}"

    def constant(self, said: Said) -> tuple[int, int] | None:
        """The bank and offset of a constant's first word."""
        found = [self._word(p, n) for n, p in enumerate(said.places)]
        first = next((w for w in found if w is not None), None)
        if first is None:
            return None
        bank, at = first[0], first[1]
        for n, word in enumerate(found):
            if word is not None and word != (bank, at + 4 * (n - found.index(first))):
                return None
        return bank, at - 4 * found.index(first)

    def _word(self, place: str | tuple[int, int], n: int) -> tuple[int, int] | None:
        if not isinstance(place, str):
            return place
        if place == "Z" and self.low and n == 0:
            return 0, self.layout.local_window
        if place in WINDOWS:
            base = getattr(self.layout, f"{WINDOWS[place]}_window")
            return None if base is None else (0, base + 4)
        return self.consts.get(place)


def _predicate(slot: object, said: tuple[bool, str], numbers: NumberedNames) -> int | None:
    """The bits of a predicate."""
    inverted, name = said
    if not isinstance(slot, P):
        return 0  # a fixed predicate: decoding checks whether it is this one
    if name == "T":
        number = 7
    elif FILES.get(name[0]) == slot.file:
        number = numbers.of[name]
    else:
        return None
    if inverted and slot.inv is None:
        return None
    return (number ^ slot.flip) << slot.lo | (
        1 << slot.inv if inverted and slot.inv is not None else 0
    )


def _signed(body: str, said: Said) -> str:
    if "|" in said.signs:
        body = f"|{body}|"
    return "".join(s for s in ("-", "~") if s in said.signs) + body


def _operand(slot: object, said: Said, slots: Slots, numbers: NumberedNames) -> Iterator[int]:
    """The possible bits of an operand."""
    texts: list[str] = []
    select = f".{said.select}" if said.select else ""
    match slot:
        case When():
            chosen = slot.slot if slots.context.get(slot.mod) else slot.other
            yield from _operand(chosen, said, slots, numbers)
        case R():
            name = numbers.register(said, slot.file)
            if name is not None:
                texts = [_signed(name, said) + select, _signed(name + select, said)]
        case C():
            texts = _constants(slot, said, numbers, select)
        case I() | Mask():
            if said.kind == "number" and not said.signs:
                yield from _immediate(slot, said.number)
        case Fixed():
            yield 0
        case M():
            if said.kind == "memory":
                yield from _memory(slot, said, numbers)
        case L():
            return
        case _:
            if said.kind == "word":
                texts = [said.number[0]]
    done: set[int] = set()
    for text in dict.fromkeys(texts):
        found = slots.parse(slot, text, 0)
        if found is not None and found[1] == len(text) and found[0] not in done:
            done.add(found[0])
            yield found[0]


def _constants(slot: C, said: Said, numbers: NumberedNames, select: str) -> list[str]:
    if slot.bindless is not None:
        return []
    if said.kind == "indexed":
        name = numbers.register(said.parts[0], slot.index_file)
        if name is None or slot.index is None:
            return []
        bank, at = said.bank, value_of(said.number, 0)[0]
        inner = name + (f"+{_hex(at)}" if at else "")
    else:
        found = numbers.constant(said) if said.kind == "register" else None
        if found is None:
            return []
        bank, inner = found[0], f"{found[1]:#x}"
    bodies = (f"c[{bank:#x}]{gap}[{inner}]" for gap in ("", " "))
    return [t for b in bodies for t in (_signed(b, said) + select, _signed(b + select, said))]


def _hex(value: int) -> str:
    return f"-{-value:#x}" if value < 0 else f"{value:#x}"


def _immediate(slot: I | Mask, words: Words) -> Iterator[int]:
    width = slot.field.width
    wide = isinstance(slot, I) and slot.bits == 64
    try:
        value, _ = value_of(words, 0, 64 if wide else 32)
    except EncodeError:
        return
    if isinstance(slot, I) and slot.kind == "f64":
        if value & 0xFFFFFFFF == 0:
            yield put(slot.field, value >> 32 & 0xFFFFFFFF)
        return
    if isinstance(slot, I):
        if value % slot.scale:
            return
        value //= slot.scale
    yield put(slot.field, value & (1 << width) - 1)


def _memory(slot: M, said: Said, numbers: NumberedNames) -> Iterator[int]:
    """An address: decoding checks which of its bits give its width."""
    offset, _ = value_of(said.number, 0)
    if offset % slot.unit:
        return
    bits = put(slot.offset, offset // slot.unit)
    scales = {1: 0, 4: 1, 8: 2, 16: 3}
    if (said.scale != 1 and slot.scale is None) or said.scale not in scales:
        return
    if slot.scale is not None:
        bits |= put(slot.scale, scales[said.scale])
    parts = list(said.parts)
    if slot.base is not None:
        name = numbers.register(parts.pop(0), "R") if parts else None
        if name is None:
            return
        bits |= (255 if name == "RZ" else int(name[1:])) << slot.base
    described = False
    if slot.ureg is not None:
        zero = (1 << (8 if numbers.generation >= 100 else 6)) - 1
        described = not parts
        name = numbers.register(parts.pop(0), "UR") if parts else f"UR{DESCRIPTOR}"
        if name is None:
            return
        bits |= (zero if name == "URZ" else int(name[2:])) << slot.ureg
    if parts:
        return
    open_ = [b for b in (slot.wide, slot.uwide) if b is not None]
    if described:
        if slot.desc is None:
            return
        bits |= 1 << slot.desc
        if slot.desc_shown is not None:
            open_.append(slot.desc_shown)
    for choice in product((0, 1), repeat=len(set(open_))):
        yield bits | sum(1 << b for b, on in zip(sorted(set(open_)), choice, strict=True) if on)


def _words_of(reading: _Reading, line: QuestionLine, numbers: NumberedNames) -> Iterator[int]:
    """The words whose text may be this line."""
    row = reading.row.row
    inverted, name = line.guard
    if name != "T" and FILES[name[0]] != row.guard:
        return
    guard = (7 if name == "T" else numbers.of[name]) | inverted << 3
    settled = reading.row.mod_mask | reading.row.match_mask
    slots = Slots(reading.context, reading.row.generation, reading.bits, settled)
    choices: list[list[int]] = []
    left = list(line.operands)
    if not line.predicates.keys() <= row.operands.keys():
        return
    usual = line.mnemonic in USUALLY_FALSE
    for role, slot in row.operands.items():
        inner = slot
        if isinstance(slot, When):
            inner = slot.slot if reading.context.get(slot.mod) else slot.other
        if isinstance(inner, P) or (isinstance(inner, Fixed) and inner.kind in ("P", "UP")):
            said = line.predicates.get(role, (usual and role in ("Pp", "Pq"), "T"))
            bits = _predicate(inner, said, numbers)
            found = [] if bits is None else [bits]
        elif not left:
            return
        else:
            found = list(_operand(inner, left.pop(0), slots, numbers))
        if not found:
            return
        choices.append(found)
    if left:
        return
    for choice in product(*choices):
        word = reading.bits | guard << 12
        for bits in choice:
            word |= bits
        yield word


def _alike(ins: Instruction) -> object:
    """The meaning of an instruction, as far as its text can express it."""

    def plain(operand: Operand) -> Operand:
        match operand:
            case Reg() if operand.is_zero:
                return replace(operand, file="R", width=1, reuse=False)
            case Pred() if operand.index == 7:
                return replace(operand, file="P")
            case Mem():
                base = operand.base
                if base is not None and base.is_zero:
                    base = replace(base, width=1)
                return replace(operand, desc=None, base=base)
            case _:
                return operand

    return (
        ins.mnemonic,
        ins.modifiers,
        plain(ins.guard),
        {role: plain(operand) for role, operand in ins.operands.items()},
        ins.writes,
    )


def instruction_of(
    line: QuestionLine,
    offset: int,
    numbers: NumberedNames,
    block: Region,
    regs: RegisterMap,
    here: Names,
) -> Instruction:
    """The one instruction with this line.  EncodeError SX0549 if there is none, or several."""
    if ("Z",) in [o.places for o in line.operands]:  # mostly a register, or the word Z
        with contextlib.suppress(EncodeError):
            return _decoded(line, offset, numbers, block, regs, here)
        numbers = replace(numbers, low=True)
    return _decoded(line, offset, numbers, block, regs, here)


def _decoded(
    line: QuestionLine,
    offset: int,
    numbers: NumberedNames,
    block: Region,
    regs: RegisterMap,
    here: Names,
) -> Instruction:
    text = " ".join(line.words)
    arch = block.around.arch
    found: Instruction | None = None
    for reading in _readings(numbers.generation, line.mnemonic, line.modifiers):
        for word in _words_of(reading, line, numbers):
            try:
                ins = reading.row.decode(word, offset, arch, False)
                if row_of(word, numbers.generation) is not reading.row:
                    continue
                if line_of(ins, block, regs, here) != line.words:
                    continue
            except (DecodeError, EncodeError):
                continue
            if found is None:
                found = ins
            elif _alike(ins) != _alike(found):
                raise bad(f"{text!r} can be read in two ways")
    if found is None:
        raise bad(f"no instruction of sm_{arch} is said {text!r}")
    return found
