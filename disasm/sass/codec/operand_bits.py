"""The bits of an operand's slot: those read, those that can make it invalid, those of registers."""

from __future__ import annotations

from sassxlate.disasm.sass.codec.row_compiler import NO_YIELD, REUSE_BITS, ureg_bits
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
    When,
)


def register_bits(slot: R, generation: int) -> int:
    """The mask of the bits that number a register."""
    if slot.split is not None:
        return slot.split.mask
    return ((1 << ureg_bits(generation) if slot.file == "UR" else 256) - 1) << slot.lo


def operand_bits(slot: object, generation: int) -> int:
    """The mask of the bits that an operand slot reads."""
    mask = 0

    def add(*positions: int | None) -> None:
        nonlocal mask
        for p in positions:
            if p is not None:
                mask |= 1 << p

    def span(lo: int | None, width: int) -> None:
        nonlocal mask
        if lo is not None:
            mask |= (1 << width) - 1 << lo

    uniform = ureg_bits(generation)
    match slot:
        case R():
            mask |= register_bits(slot, generation)
            add(slot.neg, slot.abs, slot.inv, slot.reuse)
            add(NO_YIELD if slot.reuse in REUSE_BITS else None)
            mask |= slot.select.field.mask if slot.select else 0
            mask |= slot.width.field.mask if isinstance(slot.width, Count) else 0
        case P():
            span(slot.lo, 3)
            add(slot.inv)
        case I():
            mask |= slot.field.mask
            add(slot.signed_by)
        case L() | S() | B() | N() | SB() | Mask():
            mask |= slot.field.mask
        case C():
            mask |= slot.offset.mask
            if slot.bindless is None:
                mask |= slot.bank.mask
            add(slot.neg, slot.abs, slot.inv)
            span(slot.bindless, uniform)
            span(slot.index, uniform if slot.index_file == "UR" else 8)
            mask |= slot.select.field.mask if slot.select else 0
        case M():
            mask |= slot.offset.mask
            span(slot.base, 8)
            span(slot.ureg, uniform)
            add(slot.wide, slot.uwide, slot.desc, slot.desc_shown)
            mask |= slot.scale.mask if slot.scale else 0
        case When():
            mask |= operand_bits(slot.slot, generation)
        case _:
            pass
    return mask


def value_bits(slot: object, generation: int) -> int:
    """The bits of a slot that hold a register number, an address or the like: any value is
    valid."""
    match slot:
        case R():
            return register_bits(slot, generation)
        case C() | M():
            kept = slot.offset.mask
            index = slot.index if isinstance(slot, C) else slot.base
            handle = slot.bindless if isinstance(slot, C) else slot.ureg
            if isinstance(slot, C) and slot.bindless is None:
                kept |= slot.bank.mask
            if index is not None:
                uniform = isinstance(slot, C) and slot.index_file == "UR"
                kept |= ((1 << ureg_bits(generation) if uniform else 256) - 1) << index
            return kept | (0 if handle is None else (1 << ureg_bits(generation)) - 1 << handle)
        case I():
            return slot.field.mask
        case When():
            return value_bits(slot.slot, generation)
        case _:
            return operand_bits(slot, generation)


def failing_bits(slot: object, generation: int) -> int:
    """The bits of a slot that decide, with the modifiers, whether decoding it fails.

    A kind that is not listed may fail for any of its bits.
    """
    match slot:
        case P() | I() | Fixed() | L() | S() | SB() | Mask():
            return 0
        case R() if slot.real:
            return operand_bits(slot, generation)
        case R() | C():
            return slot.select.field.mask if slot.select else 0
        case M():
            return sum(1 << b for b in {slot.uwide, slot.desc} if b is not None)
        case B():
            return slot.field.mask if slot.names is not None else 0
        case When():
            return failing_bits(slot.slot, generation)
        case _:
            return operand_bits(slot, generation)


def touching_bits(slot: object, generation: int) -> int:
    """The bits of a slot that decide, with the modifiers, which registers it reads and writes.

    For a kind that is not listed, all bits count.
    """
    uniform = (1 << ureg_bits(generation)) - 1
    match slot:
        case I() | Fixed() | L() | S() | N() | SB() | Mask():
            return 0
        case R():
            count = slot.width.field.mask if isinstance(slot.width, Count) else 0
            return register_bits(slot, generation) | count
        case P():
            return 7 << slot.lo
        case C():
            mask = 0 if slot.bindless is None else uniform << slot.bindless
            if slot.index is not None:
                mask |= (uniform if slot.index_file == "UR" else 255) << slot.index
            return mask
        case M():
            plain = {slot.wide, slot.uwide, slot.desc}
            mask = sum(1 << b for b in plain if b is not None)
            mask |= 0 if slot.base is None else 255 << slot.base
            return mask | (0 if slot.ureg is None else uniform << slot.ureg)
        case When():
            return touching_bits(slot.slot, generation)
        case _:
            return operand_bits(slot, generation)


def settling_mods(slot: object, *, widths: bool = True) -> frozenset[str] | None:
    """The modifiers that a slot's decoder depends on; None if it may be any.

    Without ``widths``, only the modifiers that its text depends on, which excludes register counts.
    """
    match slot:
        case P() | Fixed() | M() | L() | S() | B() | N() | SB() | Mask():
            return frozenset()
        case R() | C():
            width = {slot.width} if widths and isinstance(slot.width, str) else set[str]()
            return frozenset(width | {slot.inv_if} - {""})
        case I():
            return frozenset({slot.bf16.partition("=")[0]} - {""})
        case When():
            inner = settling_mods(slot.slot, widths=widths)
            return None if inner is None else inner | {slot.mod}
        case _:
            return None


def may_end_blank(slot: object) -> bool:
    """Whether a slot's text may end in a space, as numbers without digits do."""
    match slot:
        case I():
            return slot.style in ("f16", "bf16", "f32", "f64", "pair")
        case When():
            return may_end_blank(slot.slot)
        case _:
            return not isinstance(slot, R | P | Fixed | C | M | L | S | B | SB | Mask)


def relative(slot: object) -> bool:
    """Whether an operand depends on the place of its instruction."""
    return isinstance(slot, L) or (isinstance(slot, When) and isinstance(slot.slot, L))
