"""Operand texts back into bits: the inverse of :mod:`.row_compiler`, slot by slot.

Every parser takes the text from a position on and returns the bits that the operand sets in the
word, and the end position, or None.  It may accept more than is printed; :mod:`.encode` decodes the
word again and compares the texts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TypeAlias

from sassxlate.disasm.sass.codec.operand_bits import register_bits
from sassxlate.disasm.sass.codec.row_compiler import Context, ureg_bits
from sassxlate.disasm.sass.tables.spec import (
    DESCRIPTOR,
    SB,
    B,
    Bits,
    C,
    Fixed,
    I,
    L,
    M,
    Mask,
    N,
    P,
    R,
    S,
    Select,
    When,
)
from sassxlate.disasm.sass.tables.special_registers import special_numbers

# The bits, and the position after the operand.
Parsed: TypeAlias = tuple[int, int] | None
_NAME = r"(?:\.[A-Za-z0-9_]+)*"
_REG = re.compile(r"(U?R)(\d+|Z)")
_HEX = re.compile(r"(-?)0x([0-9a-f]+)")
_NUMBER = re.compile(
    r"(?:[+-](?:INF|QNAN|SNAN) ?)|(?:-0\.0(?!\d) ?)|(?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
)
_F32_SPECIAL: Mapping[str, int] = {"INF": 0x7F800000, "QNAN": 0x7FFFFFFF, "SNAN": 0x7FA00000}
_F64_SPECIAL: Mapping[str, int] = {"INF": 0x7FF00000, "QNAN": 0x7FFFFFFF, "SNAN": 0x7FF40000}
_F16_SPECIAL: Mapping[str, int] = {"INF": 0x7C00, "QNAN": 0x7FFF, "SNAN": 0x7D00}


def put(field: Bits, value: int) -> int:
    """The value shifted to the field's place."""
    word = shift = 0
    for lo, width in field.parts:
        word |= (value >> shift & (1 << width) - 1) << lo
        shift += width
    return word


def fits(value: int, width: int, signed: bool) -> bool:
    """Whether a number fits in a field; a signed field also takes large unsigned ones."""
    low = -(1 << width - 1) if signed and width else 0
    return low <= value < 1 << width


def _bit(position: int | None) -> int | None:
    return None if position is None else 1 << position


def _register(file: str, name: str, generation: int) -> int | None:
    """The field's value of a register's number or Z."""
    width = ureg_bits(generation) if file == "UR" else 8
    zero = (1 << width) - 1
    if name == "Z":
        return zero
    value = int(name) if name.isascii() and name.isdigit() else zero
    return value if value < zero else None


def _selected(select: Select | None, name: str, word: int, settled: int) -> int | None:
    """The bits of a part selector; bits shared with other fields are already settled."""
    if select is None:
        return None if name else 0
    for value, spelling in select.names.items():
        bits = put(select.field, value)
        if spelling == name and (bits ^ word) & select.field.mask & settled == 0:
            return bits
    return None


class Slots:
    """Parsers of operands for one form under given modifiers."""

    def __init__(self, context: Context, generation: int, word: int, settled: int) -> None:
        self.context = context
        self.generation = generation
        self.word = word  # the opcode and the modifiers
        self.settled = settled  # the bits that these decide
        self.offset = 0
        self.descriptor = DESCRIPTOR
        self.nan: int | None = None  # the bits of an immediate that is not a number
        self.width: int | None = None  # width of an RZ that a uniform register hides

    def parse(self, slot: object, text: str, at: int) -> Parsed:
        """The bits of an operand whose text starts at ``at``."""
        return _PARSERS[type(slot)](self, slot, text, at)

    def default(self, slot: object) -> int:
        """The bits of an operand that is not printed."""
        match slot:
            case P():
                bits = (7 ^ slot.flip) << slot.lo
                if slot.default_inv and slot.inv is not None:
                    bits |= 1 << slot.inv
                return bits
            case R():
                return register_bits(slot, self.generation)
            case I() if slot.elide is not None:
                return put(slot.field, slot.elide // slot.scale)
            case N() if slot.elide is not None:
                return put(slot.field, slot.elide)
            case When():
                return 0 if isinstance(slot.slot, R) else self.default(slot.slot)
            case _:
                return 0


def _sign(slot: R | C, sign: str, slots: Slots) -> int | None:
    flips = bool(slot.inv_if) and bool(slots.context.get(slot.inv_if))
    if sign == "":
        return 0
    if sign == "-":
        return None if flips else _bit(slot.neg)
    return _bit(slot.neg) if flips and slot.neg is not None else _bit(slot.inv)


@cache
def _register_pattern(file: str, wrap: str) -> re.Pattern[str]:
    before, _, after = (wrap or "{}").partition("{}")
    rest = re.escape(after).replace(re.escape("{next}"), rf"{file}(?:\d+|Z)")
    return re.compile(rf"([-~]?)(\|?){re.escape(before)}{file}(\d+|Z){rest}({_NAME})(\|?)({_NAME})")


def _reg(slots: Slots, slot: R, text: str, at: int) -> Parsed:
    match = _register_pattern(slot.file, slot.wrap).match(text, at)
    if match is None or bool(match[2]) != bool(match[5]):
        return None
    index = _register(slot.file, match[3], slots.generation)
    sign = _sign(slot, match[1], slots)
    names = [n for n in (match[4] + match[6]).split(".") if n]
    reuse = 0
    if "reuse" in names and slot.reuse is not None:
        names.remove("reuse")
        reuse = 1 << slot.reuse
    name = ".".join(names)
    if slot.suffix:
        name = "" if name == slot.suffix else "?"
    part = _selected(slot.select, name, slots.word, slots.settled)
    absolute = _bit(slot.abs) if match[2] else 0
    if index is None or sign is None or part is None or absolute is None:
        return None
    number = index << slot.lo if slot.split is None else put(slot.split, index)
    return number | sign | part | absolute | reuse, match.end()


_PRED = re.compile(r"(!?)(U?P)(\d|T)")


def _pred(slots: Slots, slot: P, text: str, at: int) -> Parsed:
    match = _PRED.match(text, at)
    if match is None or match[2] != slot.file or (match[1] and slot.inv is None):
        return None
    index = 7 if match[3] == "T" else int(match[3])
    bits = (index ^ slot.flip) << slot.lo
    if match[1] and slot.inv is not None:
        bits |= 1 << slot.inv
    return (bits, match.end()) if index < 8 else None


def _float(text: str, kind: str) -> int | None:
    """The field of a floating-point number: 32 bits, a double's high word, or 16 bits."""
    text = text.strip()
    sign = text.startswith("-")
    name = text.lstrip("+-")
    special = {"f32": _F32_SPECIAL, "f64": _F64_SPECIAL, "bf16": _F32_SPECIAL}.get(
        kind, _F16_SPECIAL
    )
    if name in special:
        raw = special[name] >> 16 if kind == "bf16" else special[name]
        return raw | sign << (15 if kind in ("f16", "bf16") else 31)
    value = float(text)
    try:
        if kind == "f64":
            return int(struct.unpack("<Q", struct.pack("<d", value))[0]) >> 32
        if kind == "f16":
            return int(struct.unpack("<H", struct.pack("<e", value))[0])
        raw = int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return None
    return raw >> 16 if kind == "bf16" else raw


def _imm(slots: Slots, slot: I, text: str, at: int) -> Parsed:
    width = slot.field.width
    if slot.style in ("hex", "shex"):
        match = _HEX.match(text, at)
        if match is None:
            return None
        value = int(match[2], 16) * (-1 if match[1] else 1)
        if value % slot.scale or not fits(value // slot.scale, width, True):
            return None
        return put(slot.field, value // slot.scale), match.end()
    if slot.style == "dec":
        digits = re.compile(r"\d+").match(text, at)
        return (put(slot.field, int(digits[0])), digits.end()) if digits else None
    kind: str = slot.style
    first = _NUMBER.match(text, at)
    if first is None:
        return None
    if slot.style != "pair":
        raw = _float(first[0], kind)
        if slots.nan is not None and "NAN" in first[0]:
            raw = slots.nan
        return None if raw is None else (put(slot.field, raw), first.end())
    mod, _, wanted = slot.bf16.partition("=")
    kind = "bf16" if mod and slots.context.get(mod) == int(wanted) else "f16"
    if text[first.end() : first.end() + 2] != ", ":
        return None
    second = _NUMBER.match(text, first.end() + 2)
    high = _float(first[0], kind)
    low = _float(second[0], kind) if second else None
    if high is None or low is None or second is None:
        return None
    if slots.nan is not None and "NAN" in first[0] + second[0]:
        return put(slot.field, slots.nan), second.end()
    return put(slot.field, high << 16 | low), second.end()


def _fixed(slots: Slots, slot: Fixed, text: str, at: int) -> Parsed:
    if slot.kind == "int":
        spelling = f"{slot.value:#x}"
    elif slot.kind in ("P", "UP"):
        spelling = f"{'!' if slot.inv else ''}{slot.kind}{'T' if slot.value == 7 else slot.value}"
    else:
        spelling = f"{slot.kind}{'Z' if slot.value == 255 else slot.value}"
    return (0, at + len(spelling)) if text.startswith(spelling, at) else None


_CONST = re.compile(
    rf"([-~]?)(\|?)(?:c\[0x([0-9a-f]+)\]|cx\[UR(\d+|Z)\])( ?)\[([^\]]*)\]({_NAME})(\|?)({_NAME})"
)


def _const(slots: Slots, slot: C, text: str, at: int) -> Parsed:
    match = _CONST.match(text, at)
    if match is None or bool(match[2]) != bool(match[8]):
        return None
    if bool(match[5]) != slot.gap and not (slot.select is not None and slot.select.spaced):
        return None
    if (match[4] is not None) != (slot.bindless is not None):
        return None
    sign = _sign(slot, match[1], slots)
    absolute = _bit(slot.abs) if match[2] else 0
    part = _selected(slot.select, (match[7] + match[9]).lstrip("."), slots.word, slots.settled)
    inner = _inner(slots, slot, match[6])
    if sign is None or absolute is None or part is None or inner is None:
        return None
    bits = sign | absolute | part | inner
    if slot.bindless is not None:
        handle = _register("UR", match[4], slots.generation)
        if handle is None:
            return None
        bits |= handle << slot.bindless
    else:
        bank = int(match[3], 16)
        if not fits(bank, slot.bank.width, False):
            return None
        bits |= put(slot.bank, bank)
    return bits, match.end()


def _inner(slots: Slots, slot: C, text: str) -> int | None:
    """The index register and the offset between a constant's brackets."""
    bits = 0
    match = _REG.match(text)
    rest = text
    if match is not None:
        index = _register(match[1], match[2], slots.generation)
        if slot.index is None or match[1] != slot.index_file or index is None:
            return None
        bits |= index << slot.index
        rest = text[match.end() :].removeprefix("+")
    elif slot.index is not None:
        bits |= slots.default(R(slot.index, 1, slot.index_file))
    number = _HEX.fullmatch(rest or "0x0")
    if number is None:
        return None
    value = int(number[2], 16) * (-1 if number[1] else 1)
    if value % slot.scale or not fits(value // slot.scale, slot.offset.width, True):
        return None
    return bits | put(slot.offset, value // slot.scale)


_MEM = re.compile(r"(?:desc\[UR(\d+|Z)\])?\[([^\]]*)\]")
_BASE = re.compile(r"R(\d+|Z)(\.64|\.U32)?(?:\.X(4|8|16))?")


def _mem(slots: Slots, slot: M, text: str, at: int) -> Parsed:
    if not text.startswith(slot.space, at):
        return None
    match = _MEM.match(text, at + len(slot.space))
    if match is None:
        return None
    bits = value = 0
    base = uniform = ""
    long = False
    for part in re.split(r"\+", match[2]):
        found = _BASE.fullmatch(part)
        number = _HEX.fullmatch(part)
        if found and slot.base is not None:
            base = found[1]
            long = found[2] == ".64"
            if found[2] == ".64":
                bits |= _bit(slot.uwide) or 0
                if slot.uwide is None:
                    return None
            if found[3]:
                if slot.scale is None:
                    return None
                bits |= put(slot.scale, {"4": 1, "8": 2, "16": 3}[found[3]])
        elif part.startswith("UR"):
            uniform = part[2:]
        elif number:
            value = int(number[2], 16) * (-1 if number[1] else 1)
        else:
            return None
    if slot.base is not None:
        index = _register("R", base or "Z", slots.generation)
        if index is None:
            return None
        bits |= index << slot.base
    narrow = slot.narrow_rz if slots.width is None else slots.width == 32
    if uniform and not base and slot.uwide is not None and not narrow:
        bits |= 1 << slot.uwide  # RZ in place of an absent 64-bit base
    handle = match[1] if match[1] is not None else uniform
    if slot.ureg is None:
        if handle:
            return None
    else:
        number_ = _register("UR", handle or "Z", slots.generation)
        if number_ is None:
            return None
        bits |= number_ << slot.ureg
        if match[1] is not None:
            if slot.desc is None:
                return None
            bits |= 1 << slot.desc | (_bit(slot.desc_shown) or 0)
        elif not handle and not (slot.desc_low or slot.hide_urz):
            return None
        elif not handle and slot.desc_low and slot.desc is not None and long:
            # sm_80 to sm_89 print no descriptor; it is in UR4 in nearly all that nvcc writes.
            bits &= ~(slots.default(R(slot.ureg, 1, "UR")))
            bits |= slots.descriptor << slot.ureg | 1 << slot.desc
    if value % slot.unit or not fits(value // slot.unit, slot.offset.width, slot.signed):
        return None
    value //= slot.unit
    return bits | put(slot.offset, value), match.end()


def _label(slots: Slots, slot: L, text: str, at: int) -> Parsed:
    match = _HEX.match(text, at)
    if match is None:
        return None
    value = int(match[2], 16) * (-1 if match[1] else 1)
    if slot.relative:
        value -= slots.offset + 16
    if value % slot.scale or not fits(value // slot.scale, slot.field.width, True):
        return None
    return put(slot.field, value // slot.scale), match.end()


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_CHOICE = re.compile(r"[\w.]+")


def _special(slots: Slots, slot: S, text: str, at: int) -> Parsed:
    match = _WORD.match(text, at)
    number = special_numbers(slots.generation).get(match[0]) if match else None
    return None if number is None or match is None else (put(slot.field, number), match.end())


def _barrier(slots: Slots, slot: B, text: str, at: int) -> Parsed:
    match = _WORD.match(text, at)
    if match is None:
        return None
    names = slot.names or {i: f"B{i}" for i in range(16)}
    for number, name in names.items():
        if name == match[0]:
            return put(slot.field, number), match.end()
    return None


def _named(slots: Slots, slot: N, text: str, at: int) -> Parsed:
    match = _CHOICE.match(text, at)
    for value, name in slot.names.items():
        if match is not None and name == match[0]:
            return put(slot.field, value), match.end()
    return None


def _scoreboard(slots: Slots, slot: SB, text: str, at: int) -> Parsed:
    match = re.compile(r"SB(\d)").match(text, at)
    return (put(slot.field, int(match[1])), match.end()) if match else None


def _mask(slots: Slots, slot: Mask, text: str, at: int) -> Parsed:
    match = re.compile(r"\{([\d,]*)\}").match(text, at)
    if match is None:
        return None
    value = sum(1 << int(i) for i in match[1].split(",") if i)
    return put(slot.field, value), match.end()


def _when(slots: Slots, slot: When, text: str, at: int) -> Parsed:
    return slots.parse(slot.slot if slots.context.get(slot.mod) else slot.other, text, at)


_PARSERS: Mapping[type, Callable[..., Parsed]] = {
    R: _reg,
    P: _pred,
    I: _imm,
    Fixed: _fixed,
    C: _const,
    M: _mem,
    L: _label,
    S: _special,
    B: _barrier,
    N: _named,
    SB: _scoreboard,
    Mask: _mask,
    When: _when,
}


def spellings(names: Mapping[int, str], parts: list[str], at: int) -> Iterator[tuple[int, int]]:
    """The values of a modifier that is spelled at ``parts[at:]``, and where the spelling ends.

    The longest spelling comes first, the value that prints nothing last.
    """
    for value, name in sorted(names.items(), key=lambda item: (-len(item[1]), item[0])):
        wanted = name.split(".") if name else []
        if parts[at : at + len(wanted)] == wanted:
            yield value, at + len(wanted)
