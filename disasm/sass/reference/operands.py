"""Descriptions of a form's operands as text."""

from __future__ import annotations

from sassxlate.disasm.sass.codec.row_compiler import ureg_bits
from sassxlate.disasm.sass.reference.numbers import field_text, named_values, ranges
from sassxlate.disasm.sass.tables.spec import (
    SB,
    B,
    C,
    Count,
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
    bits,
)


def _signs(slot: R | C | P) -> list[str]:
    out: list[str] = []
    if isinstance(slot, P):
        return [f"`!` {slot.inv}"] if slot.inv is not None else []
    inverted = f" (`~` with .{slot.inv_if})" if slot.inv_if else ""
    for sign, bit in (("-", slot.neg), ("|x|", slot.abs), ("~", slot.inv)):
        if bit is not None:
            out.append(f"`{sign}` {bit}" + inverted * (sign == "-"))
    if slot.select is not None:
        out.append(_select(slot.select))
    return out


def _select(select: Select) -> str:
    return f"part {field_text(select.field)}: {named_values(select.names)}"


def _width(width: object) -> str:
    if isinstance(width, Count):
        return f"as many registers as bits {ranges(width.field.mask)} say"
    if isinstance(width, str):
        return f"as many registers as .{width} says"
    return "" if width == 1 else f"{width} registers"


def _register(slot: R, uniform: int) -> list[str]:
    number = slot.split or bits(slot.lo, uniform if slot.file == "UR" else 8)
    way = "read and written" if slot.both else "written" if slot.write else "read"
    reuse = f"reuse {slot.reuse}" if slot.reuse is not None else ""
    extra = [f"printed `{slot.wrap}`"] if slot.wrap else []
    extra += [f"part `{slot.suffix}`"] if slot.suffix else []
    where = f"{slot.file} in {field_text(number)}"
    return [f"{way}: {where}", _width(slot.width), *_signs(slot), *extra, reuse]


def _constant(slot: C, uniform: int) -> list[str]:
    scale = f" times {slot.scale}" if slot.scale != 1 else ""
    parts = [f"read: c[bank][offset], offset {field_text(slot.offset)}{scale}"]
    if slot.bindless is None:
        parts.append(f"bank {field_text(slot.bank)}")
    else:
        parts.append(f"descriptor UR in {field_text(bits(slot.bindless, uniform))}")
    if slot.index is not None:
        width = uniform if slot.index_file == "UR" else 8
        parts.append(f"index {slot.index_file} in {field_text(bits(slot.index, width))}")
    return [*parts, _width(slot.width), *_signs(slot)]


def _memory(slot: M, uniform: int) -> list[str]:
    parts = ["written: memory" if slot.write else "memory" + f" {slot.space}" * bool(slot.space)]
    if slot.base is not None:
        parts.append(f"base R in {field_text(bits(slot.base, 8))}")
    if slot.ureg is not None:
        parts.append(f"UR in {field_text(bits(slot.ureg, uniform))}")
    kind = "signed" if slot.signed else "unsigned"
    parts.append(f"offset {field_text(slot.offset)} ({kind})" if slot.offset.parts else "")
    named = (("64-bit base", slot.wide), ("64-bit UR base", slot.uwide), ("descriptor", slot.desc))
    parts += [f"{what} {bit}" for what, bit in named if bit is not None and bit > 1]
    parts += [f"descriptor printed {slot.desc_shown}"] if slot.desc_shown is not None else []
    parts += [f"scale {field_text(slot.scale)}"] if slot.scale else []
    return parts


def describe(slot: object, generation: int) -> str:
    """The kind of an operand, the bits of its parts, and whether it is read or written."""
    uniform = ureg_bits(generation)
    match slot:
        case R():
            parts = _register(slot, uniform)
        case C():
            parts = _constant(slot, uniform)
        case M():
            parts = _memory(slot, uniform)
        case P():
            way = "written" if slot.write else "read"
            flip = f", number xor {slot.flip}" if slot.flip else ""
            where = f"{slot.file} in {field_text(bits(slot.lo, 3))}{flip}"
            default = "usually !PT" if slot.default_inv else ""
            parts = [f"{way}: {where}", *_signs(slot), default]
        case I():
            kind = {"f16x2": "two halves", "f32": "binary32", "f64": "high half of a binary64"}
            what = kind.get(slot.kind, "signed integer" if slot.signed else "integer")
            scale = f"times {slot.scale}" if slot.scale != 1 else ""
            parts = [f"immediate: {what} in {field_text(slot.field)}", scale]
        case L():
            what = "displacement" if slot.displacement else "code address"
            base = "from the next instruction" if slot.relative else "absolute"
            parts = [f"{what} in {field_text(slot.field)}", f"times {slot.scale}", base]
        case S():
            parts = [f"read: special register in {field_text(slot.field)}"]
        case B():
            ways = ("read " * slot.read + "written " * slot.write).split()
            what = "thread state" if slot.names else "convergence barrier B"
            parts = [f"{' and '.join(ways)}: {what} in {field_text(slot.field)}"]
            parts += [named_values(slot.names)] if slot.names else []
        case N():
            parts = [f"word in {field_text(slot.field)}: {named_values(slot.names)}"]
        case SB():
            parts = [f"scoreboard in {field_text(slot.field)}"]
        case Mask():
            parts = [f"set in {field_text(slot.field)}"]
        case When():
            other = describe(slot.other, generation)
            parts = [f"with .{slot.mod} {describe(slot.slot, generation)}", f"else {other}"]
        case Fixed():
            inverted = "!" * slot.inv
            top = {"P": (7, "PT"), "UP": (7, "UPT"), "R": (255, "RZ")}.get(slot.kind)
            text = top[1] if top and slot.value == top[0] else f"{slot.kind} {slot.value}"
            parts = [f"always {inverted}{text}"]
        case _:
            raise TypeError(f"an operand slot of another kind: {slot!r}")
    return "; ".join(part for part in parts if part)
