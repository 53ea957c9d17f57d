"""From rows to decoding functions.

Each row becomes a :class:`Compiled`, whose operands are small closures over their bit positions.
Decoded modifiers and operands are remembered by the bits that determine them: programs repeat
the same registers and modifiers endlessly, and a dictionary look-up is cheaper than decoding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from sassxlate.disasm.sass.codec import number_text as fmt
from sassxlate.disasm.sass.instruction import (
    BReg,
    Const,
    Imm,
    Label,
    Mem,
    Name,
    Operand,
    Pred,
    Reg,
    RegRef,
    Scoreboard,
    Special,
)
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
from sassxlate.disasm.sass.tables.special_registers import special_name
from sassxlate.errors import DecodeError

_File: TypeAlias = Literal["R", "UR"]

_NONE: frozenset[RegRef] = frozenset()
_CACHE_LIMIT = 1 << 14  # entries per operand; immediates would grow without bound

CONTROL = bits(105, 21)
NO_YIELD = 109  # if it is clear, the reuse bits hold something else
REUSE_BITS = (122, 123, 124)
REUSE = {24: 122, 32: 123, 64: 124}  # by the low bit of the register field


class Value(NamedTuple):
    """A decoded operand: its value, its text, whether templates elide it, the registers that it
    accesses."""

    operand: Operand
    text: str
    default: bool
    reads: frozenset[RegRef]
    writes: frozenset[RegRef]


Context = Mapping[str, int]  # modifier name -> value of its field
Decoder = Callable[[int, int], Value]  # (word, offset) -> value
Maker = Callable[[Context, Mapping[str, int], int], Decoder]


def undefined(what: str, value: int) -> DecodeError:
    """The error for a field with an undefined value."""
    return DecodeError("SX0202", f"{what} has the undefined value {value}")


_REGISTERS: Final = {
    file: [RegRef(file, i) for i in range(255)] for file in cast("tuple[_File, ...]", ("R", "UR"))
}
_TUPLES: Final[dict[tuple[_File, int, int], frozenset[RegRef]]] = {}  # by file, first, width


def refs(file: _File, index: int, width: int) -> frozenset[RegRef]:
    """The 32-bit registers from ``index`` on; empty for RZ.  One object for equal ones: operands
    are remembered by all of their bits, and name the same few hundred tuples."""
    if index == 255:
        return _NONE
    known = _TUPLES.get((file, index, width))
    if known is None:
        known = frozenset(_REGISTERS[file][index : min(index + width, 255)])
        _TUPLES[file, index, width] = known
    return known


def ureg_bits(generation: int) -> int:
    """The width of a uniform register field."""
    return 8 if generation >= 100 else 6


def ureg(word: int, lo: int, generation: int) -> int:
    """The index of a uniform register, URZ as 255."""
    if generation >= 100:
        return word >> lo & 255
    index = word >> lo & 63
    return 255 if index == 63 else index


def reg_text(file: str, index: int) -> str:
    """``R5``, ``RZ``, ``UR7``, ``URZ``."""
    return f"{file}{'Z' if index == 255 else index}"


def _wrap(body: str, neg: bool, absolute: bool, inverted: bool) -> str:
    if absolute:
        body = f"|{body}|"
    if inverted:
        return f"~{body}"
    return f"-{body}" if neg else body


def _select(select: Select | None, word: int) -> str:
    if select is None:
        return ""
    value = select.field.get(word)
    name = select.names.get(value)
    if name is None:
        raise undefined("an operand's part selector", value)
    return name


def _bit(word: int, position: int | None) -> bool:
    return position is not None and bool(word >> position & 1)


def _reg(slot: R, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    count = slot.width if isinstance(slot.width, Count) else None
    settled = slot.width if isinstance(slot.width, int) else 1
    if isinstance(slot.width, str):
        settled = widths[slot.width]
    flips = bool(slot.inv_if) and bool(context.get(slot.inv_if))
    uniform = slot.file == "UR"

    def decode(word: int, offset: int) -> Value:
        width = settled if count is None else count.of(word)
        if slot.split is not None:
            index = slot.split.get(word)
        else:
            index = ureg(word, slot.lo, generation) if uniform else word >> slot.lo & 255
        if index == 255 and slot.real:
            raise undefined("a register that cannot be RZ", index)
        minus = _bit(word, slot.neg)
        neg, inv = minus and not flips, (minus and flips) or _bit(word, slot.inv)
        absolute = _bit(word, slot.abs)
        part = _select(slot.select, word) or slot.suffix
        reuse = _bit(word, slot.reuse) and (slot.reuse not in REUSE_BITS or _bit(word, NO_YIELD))
        body = reg_text(slot.file, index)
        if slot.wrap:
            following = reg_text(slot.file, min(index + 1, 255))
            body = slot.wrap.format(body, next=following)
        if slot.select is not None and slot.select.inside and part:
            text = _wrap(f"{body}.{part}", neg, absolute, inv)
        else:
            text = _wrap(body, neg, absolute, inv)
        if reuse:
            text += ".reuse"
        if part and not (slot.select is not None and slot.select.inside):
            text += f".{part}"
        value = Reg(slot.file, index, width, neg, absolute, inv, part, reuse)
        touched = refs(slot.file, index, width)
        return Value(
            value,
            text,
            index == 255 and text == body,
            _NONE if slot.write and not slot.both else touched,
            touched if slot.write else _NONE,
        )

    return decode


def _pred(slot: P, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    def decode(word: int, offset: int) -> Value:
        index = (word >> slot.lo & 7) ^ slot.flip
        inv = _bit(word, slot.inv)
        body = f"{slot.file}{'T' if index == 7 else index}"
        touched = _NONE if index == 7 else frozenset((RegRef(slot.file, index),))
        return Value(
            Pred(slot.file, index, inv),
            f"!{body}" if inv else body,
            index == 7 and inv == slot.default_inv,
            _NONE if slot.write else touched,
            touched if slot.write else _NONE,
        )

    return decode


def _imm_text(slot: I, raw: int, value: int, bf16: bool) -> str:
    match slot.style:
        case "hex":
            return f"{value:#x}" if value >= 0 else fmt.shex(value)
        case "shex":
            return fmt.shex(fmt.signed(raw, slot.field.width) * slot.scale)
        case "dec":
            return str(value)
        case "f16":
            return fmt.f16(raw)
        case "bf16":
            return fmt.bf16(raw)
        case "f32":
            return fmt.f32(raw)
        case "f64":
            return fmt.f64(raw << 32)
        case "pair":
            half = fmt.bf16 if bf16 else fmt.f16
            return f"{half(raw >> 16)}, {half(raw & 0xFFFF)}"


def _imm(slot: I, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    mod, _, value_of_bf16 = slot.bf16.partition("=")
    bf16 = bool(mod) and context.get(mod) == int(value_of_bf16)

    def decode(word: int, offset: int) -> Value:
        raw = slot.field.get(word)
        value = (fmt.signed(raw, slot.field.width) if slot.signed else raw) * slot.scale
        stored = raw << 32 if slot.kind == "f64" else value
        body = _imm_text(slot, raw, value, bf16)
        if slot.signed_by is not None and _bit(word, slot.signed_by):
            body = fmt.shex(fmt.signed(raw, slot.field.width))
        return Value(Imm(stored, slot.bits, slot.kind), body, value == slot.elide, _NONE, _NONE)

    return decode


def _fixed(slot: Fixed, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    if slot.kind == "int":
        operand: Operand = Imm(slot.value)
        body = f"{slot.value:#x}"
    elif slot.kind == "P" or slot.kind == "UP":
        operand = Pred(slot.kind, slot.value, slot.inv)
        body = f"{'!' if slot.inv else ''}{slot.kind}{'T' if slot.value == 7 else slot.value}"
    else:
        operand = Reg(slot.kind, slot.value)
        body = reg_text(slot.kind, slot.value)
    value = Value(operand, body, True, _NONE, _NONE)
    return lambda word, offset: value


def _const(slot: C, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    width = slot.width if isinstance(slot.width, int) else widths[slot.width]
    flips = bool(slot.inv_if) and bool(context.get(slot.inv_if))

    def decode(word: int, offset: int) -> Value:
        raw = slot.offset.get(word)
        plain = slot.bindless is not None and not slot.signed
        at = (raw if plain else fmt.signed(raw, slot.offset.width)) * slot.scale
        minus = _bit(word, slot.neg)
        neg, inv = minus and not flips, (minus and flips) or _bit(word, slot.inv)
        absolute = _bit(word, slot.abs)
        part = _select(slot.select, word)
        touched = _NONE
        index = handle = None
        inner = ""
        if slot.index is not None:
            uniform = slot.index_file == "UR"
            i = ureg(word, slot.index, generation) if uniform else word >> slot.index & 255
            index = Reg(slot.index_file, i)
            touched |= refs(slot.index_file, i, 1)
            if i != 255:
                inner = reg_text(slot.index_file, i)
        if slot.bindless is not None:
            i = ureg(word, slot.bindless, generation)
            handle = Reg("UR", i, 2)
            touched |= refs("UR", i, 2)
            bank, head = 0, f"cx[{reg_text('UR', i)}]"
        else:
            bank = slot.bank.get(word)
            head = f"c[{bank:#x}]"
        if slot.index is not None and not inner and at == 0:
            inner = reg_text(slot.index_file, 255)
        elif inner:
            inner += f"+{fmt.shex(at)}" if at else ""
        else:
            inner = fmt.shex(at)
        chosen = slot.select
        gap = slot.gap or (chosen is not None and chosen.field.get(word) in chosen.spaced)
        body = f"{head}{' ' if gap else ''}[{inner}]"
        within = f".{part}" if chosen is not None and chosen.inside and part else ""
        body = _wrap(body + within, neg, absolute, inv)
        body += f".{part}" if part and not within else ""
        value = Const(bank, at, index, handle, width, neg, absolute, inv, part)
        return Value(value, body, False, touched, _NONE)

    return decode


def _mem(slot: M, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    def decode(word: int, offset: int) -> Value:
        at = slot.offset.get(word)
        if slot.signed:
            at = fmt.signed(at, slot.offset.width)
        at *= slot.unit
        is_desc = _bit(word, slot.desc)
        scale = 1 if slot.scale is None else (1, 4, 8, 16)[slot.scale.get(word)]
        pair = _bit(word, slot.wide)
        long_base = _bit(word, slot.uwide)
        wide = pair and (slot.uwide is None or long_base)
        touched = _NONE
        base = uniform = descriptor = None
        parts: list[str] = []
        head = slot.space
        if slot.ureg is not None:
            u = ureg(word, slot.ureg, generation)
            if is_desc:
                if slot.uwide is not None and not long_base:
                    raise DecodeError("SX0202", "a descriptor with a 32-bit address")
                descriptor = Reg("UR", u, 2)
                if not slot.desc_low or _bit(word, slot.desc_shown):
                    head = f"desc[{reg_text('UR', u)}]"
                touched |= refs("UR", u, 2)
            else:
                uwidth = 2 if pair else 1
                uniform = Reg("UR", u, uwidth)
                touched |= refs("UR", u, uwidth)
        if slot.base is not None:
            b = word >> slot.base & 255
            base = Reg("R", b, 2 if wide else 1)
            touched |= refs("R", b, 2 if wide else 1)
            name = reg_text("R", b)
            if slot.uwide is not None:
                name += ".64" if long_base else ".U32"
            if scale != 1:
                name += f".X{scale}"
            shown = (scale != 1 and uniform is not None) or (slot.show_rz and not wide)
            named = slot.uwide is not None and (generation >= 90 or descriptor is not None)
            if b != 255 or shown or named:
                parts.append(name)
        hidden = slot.hide_urz and (wide or slot.desc is not None or slot.base is None)
        if uniform is not None and not (hidden and uniform.index == 255):
            parts.append(reg_text("UR", uniform.index))
        if not parts:
            if not slot.sign_alone:  # an address without a register has no sign
                at = slot.offset.get(word) * slot.unit
            parts.append(fmt.shex(at) if at or base is None else "RZ")
        elif at:
            parts.append(fmt.shex(at))
        value = Mem(base, at, uniform, scale, descriptor)
        return Value(value, f"{head}[{'+'.join(parts)}]", False, touched, _NONE)

    return decode


def _label(slot: L, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    def decode(word: int, offset: int) -> Value:
        raw = slot.field.get(word)
        if slot.relative or slot.displacement:
            distance = fmt.signed(raw, slot.field.width) * slot.scale
        else:  # an address lacks the field's top bit
            distance = raw * slot.scale & (2 << slot.field.width) - 1
        at = distance + offset + 16 if slot.relative else distance
        operand = Imm(distance, 64) if slot.displacement else Label(at)
        return Value(operand, fmt.shex(at), slot.elide_zero and at == 0, _NONE, _NONE)

    return decode


def _special(slot: S, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    def decode(word: int, offset: int) -> Value:
        number = slot.field.get(word)
        name = special_name(number, generation)
        return Value(Special(number, name), name, False, _NONE, _NONE)

    return decode


def _barrier(slot: B, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    def decode(word: int, offset: int) -> Value:
        number = slot.field.get(word)
        if slot.names is None:
            name = f"B{number}"
        elif number in slot.names:
            name = slot.names[number]
        else:
            raise undefined("the barrier register", number)
        touched = frozenset((RegRef("B", number),)) if number < 16 else _NONE
        return Value(
            BReg(number, name),
            name,
            False,
            touched if slot.read else _NONE,
            touched if slot.write else _NONE,
        )

    return decode


def _scoreboard(slot: SB, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    def decode(word: int, offset: int) -> Value:
        number = slot.field.get(word)
        return Value(Scoreboard(number), f"SB{number}", False, _NONE, _NONE)

    return decode


def _named(slot: N, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    def decode(word: int, offset: int) -> Value:
        value = slot.field.get(word)
        name = slot.names.get(value)
        if name is None:
            raise undefined("a named operand", value)
        return Value(Name(value, name), name, value == slot.elide, _NONE, _NONE)

    return decode


def _set(slot: Mask, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    def decode(word: int, offset: int) -> Value:
        raw = slot.field.get(word)
        members = [str(i) for i in reversed(range(slot.field.width)) if raw >> i & 1]
        return Value(Imm(raw), "{" + ",".join(members) + "}", raw == 0, _NONE, _NONE)

    return decode


def _when(slot: When, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    chosen = slot.slot if context.get(slot.mod) else slot.other
    return make(chosen, context, widths, generation)


_MAKERS: dict[type, Callable[..., Decoder]] = {
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
    Mask: _set,
    When: _when,
}


def make(slot: object, context: Context, widths: Mapping[str, int], generation: int) -> Decoder:
    """The decoder of one operand slot, given the values of the row's modifiers."""
    return _MAKERS[type(slot)](slot, context, widths, generation)
