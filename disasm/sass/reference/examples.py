"""An example word of each form, made from its row: decodable, with small numbers in its fields.

`..codec.legality` defines which values of fields go together: a combination that is not an
instruction is changed in as few bits as possible until it is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from sassxlate.disasm.sass.codec import legality
from sassxlate.disasm.sass.codec.decode import CompiledRow, index, opcode_bits, row_of
from sassxlate.disasm.sass.codec.encode import NO_CONTROL
from sassxlate.disasm.sass.codec.operand_parser import put
from sassxlate.disasm.sass.codec.row_compiler import ureg_bits
from sassxlate.disasm.sass.tables.spec import (
    B,
    C,
    I,
    L,
    M,
    Mod,
    N,
    Operand,
    P,
    R,
    Row,
    S,
    When,
    bits,
)
from sassxlate.errors import DecodeError

_TRUE = 7 << 12  # guard PT
_OPCODE = opcode_bits(0x1FFF)
_CONTROL = bits(105, 21)
_STEPS = 8  # changes of groups before a form counts as one without an example
_ONES = {"f32": 0x3F800000, "f64": 0x3FF00000, "f16x2": 0x3C003C00}  # 1.0; f64: its high half
_TID = 0x21  # SR_TID.X
_USUAL = ("", "LT", "RN")  # preferred spellings in examples


def scatter(value: int, mask: int) -> int:
    """The inverse of `legality.gather`: the low bits of ``value`` at the bits of ``mask``."""
    out = 0
    while mask:
        low = mask & -mask
        if value & 1:
            out |= low
        value >>= 1
        mask ^= low
    return out


def _register(slot: R, number: int, generation: int, *, elided: bool) -> int:
    uniform = slot.file == "UR"
    field = slot.split or bits(slot.lo, ureg_bits(generation) if uniform else 8)
    if elided:
        return field.mask  # RZ or URZ
    return put(field, 4 + 2 * number if uniform else 4 * number)


def _predicate(slot: P, *, elided: bool) -> int:
    if slot.write and not elided:
        return put(bits(slot.lo, 3), slot.flip)
    inverted = 1 << slot.inv if slot.default_inv and slot.inv is not None else 0
    return put(bits(slot.lo, 3), 7 ^ slot.flip) | inverted


def _constant(slot: C, generation: int) -> int:
    word = put(slot.offset, 0x180 // slot.scale)
    if slot.bindless is not None:
        word |= put(bits(slot.bindless, ureg_bits(generation)), 4)
    if slot.index is not None:
        uniform = slot.index_file == "UR"
        # Beside a descriptor, nvdisasm rejects any index but URZ.
        number = 4 if slot.bindless is None else 0xFF
        word |= put(bits(slot.index, ureg_bits(generation) if uniform else 8), number)
    return word


def _memory(slot: M, generation: int) -> int:
    word = put(slot.offset, 0x10) if slot.offset.parts else 0
    if slot.base is not None:
        word |= put(bits(slot.base, 8), 2)
    if slot.ureg is not None:
        word |= put(bits(slot.ureg, ureg_bits(generation)), 4)
    if slot.wide is not None and slot.wide > 1:  # 0 and 1 are constants, not bits
        word |= 1 << slot.wide
    return word


def _operand(slot: Operand, number: int, generation: int, *, elided: bool) -> int:
    match slot:
        case R():
            return _register(slot, number, generation, elided=elided)
        case P():
            return _predicate(slot, elided=elided)
        case C():
            return _constant(slot, generation)
        case M():
            return _memory(slot, generation)
        case I():
            return put(slot.field, _ONES.get(slot.kind, 0x10) >> max(0, 32 - slot.field.width))
        case L():
            return put(slot.field, 0x100 // slot.scale)
        case S():
            return put(slot.field, _TID)
        case B():
            return put(slot.field, min(slot.names)) if slot.names else 0
        case N():
            return put(slot.field, min(slot.names))
        case When():
            return _operand(slot.slot, number, generation, elided=elided)
        case _:
            return 0


def _first(compiled: CompiledRow) -> int:
    """The row's bits, the usual modifiers and small numbers in the operands."""
    row = compiled.row
    word = 0
    for number, (role, slot) in enumerate(row.operands.items()):
        elided = f"{role}?" in row.text
        word |= _operand(slot, number, compiled.generation, elided=elided)
    for mod in row.mods:
        if isinstance(mod, Mod) and mod.field.parts:
            by_name = {name: value for value, name in sorted(mod.names.items(), reverse=True)}
            usual = next((by_name[name] for name in _USUAL if name in by_name), min(mod.names))
            word = word & ~mod.field.mask | put(mod.field, usual)
    for field in row.ones:
        word |= field.mask
    word &= ~(_OPCODE | compiled.match_mask | compiled.zero_mask | _CONTROL.mask | 0xF << 12)
    return word | opcode_bits(row.opcode) | compiled.match_value | _TRUE


def _nearest(group: legality.Group, word: int, kept: int) -> int | None:
    """The word with a legal combination of the group's values, with as few bits changed as
    possible."""
    now, fixed = legality.gather(word, group.mask), legality.gather(kept, group.mask)
    taken = (
        value
        for value in range(1 << group.mask.bit_count())
        if group.taken >> value & 1 and not (value ^ now) & fixed
    )
    best = min(taken, key=lambda value: ((value ^ now).bit_count(), value), default=None)
    return None if best is None else word & ~group.mask | scatter(best, group.mask)


def _scheduled(compiled: CompiledRow, word: int) -> int:
    """The word with legal scheduling information: without a barrier if possible, otherwise with
    one."""
    for barriers in (0x7E0, 0x700, 0xE0, 0):
        for stall in range(32):
            control = barriers | stall
            if compiled.legal.takes_control(control):
                return word | control << 105
    return word | NO_CONTROL


def _word(compiled: CompiledRow) -> int:
    word = _first(compiled)
    for _ in range(_STEPS):
        bad = [g for g in compiled.legal.groups if not g.taken >> legality.gather(word, g.mask) & 1]
        if not bad:
            break
        for group in bad:
            word = _nearest(group, word, _OPCODE | compiled.match_mask) or word
    return _scheduled(compiled, word)


@cache
def _compiled(generation: int) -> Mapping[tuple[object, ...], CompiledRow]:
    rows = (row for some in index(generation).values() for row in some)
    return {(row.row.mnemonic, row.row.opcode, row.row.text, row.row.fixed): row for row in rows}


def example(row: Row, generation: int) -> tuple[int, str] | None:
    """(word, text) of a form in a generation; None if none was found."""
    compiled = _compiled(generation).get((row.mnemonic, row.opcode, row.text, row.fixed))
    if compiled is None:
        return None
    word = _word(compiled)
    try:
        found = compiled.decode(word, 0, generation)
    except DecodeError:
        return None
    return (word, found.text) if row_of(word, generation) is compiled else None
