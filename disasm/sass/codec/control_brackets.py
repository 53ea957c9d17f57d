"""The brackets of ``--control``: scheduling, and the bits that the text does not determine.

nvdisasm prints no descriptor on sm_80 to sm_89, spells every NaN alike, names one of two optional
carries without saying which, and leaves out fields that mean something only beside others.  The
brackets of ``--control`` hold these, so that the text is read back to the same bits.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import groupby
from operator import sub

from sassxlate.disasm.sass.codec.decode import CompiledRow, generation_of, row_of
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.codec.operand_bits import register_bits
from sassxlate.disasm.sass.instruction import RZ, Control, Imm, Instruction, Mem
from sassxlate.disasm.sass.tables.effects import effects_of
from sassxlate.disasm.sass.tables.spec import (
    DESCRIPTOR,
    Bits,
    C,
    I,
    L,
    M,
    Mod,
    Operand,
    R,
    Select,
    When,
)
from sassxlate.errors import DecodeError

_FAR = ("generic", "global")
_NUMBER = 6  # bits of the shortest register number
_OPCODE = 0xFFF | 1 << 91
_GUARD = 0xF000
_SCHEDULING = (1 << 125) - (1 << 105)
_FULL = (1 << 128) - 1


def differing(word: int, made: int, generation: int) -> int:
    """The meaningful bits in which two words differ.

    Bits that the row of ``word`` does not name, operands that its modifiers omit, and values of one
    field that the row spells alike have no meaning.
    """
    row = row_of(word, generation)
    if row is None:
        return word ^ made
    context = row.settle(word).context
    mask = row.match_mask | _GUARD | _OPCODE | _SCHEDULING
    alike = 0
    named: list[Mod | Select] = [mod for mod in row.row.mods if isinstance(mod, Mod)]
    for mod in named:
        mask |= mod.field.mask
    for role, slot in row.row.operands.items():
        if not isinstance(slot, When) or context.get(slot.mod):
            mask |= row.operand_masks[role]
        select = getattr(slot, "select", None)
        if isinstance(select, Select):
            named.append(select)
    for field in named:
        if field.names.get(field.field.get(word)) == field.names.get(field.field.get(made)):
            alike |= field.field.mask
    return (word ^ made) & mask & ~alike


def control_text(control: Control) -> str:
    """The scheduling information: scoreboards waited for, barriers set, yield, stall, reuse.

    ``[B0-2---:R3:W-:Y:S04]``: scoreboards 0 and 2 are waited for, 3 is set when the operands are
    read, none when the result is written, the warp may yield, four cycles of stall.
    """
    waits = "".join(str(i) if control.wait_mask >> i & 1 else "-" for i in range(6))
    read = "-" if control.read_barrier == 7 else str(control.read_barrier)
    write = "-" if control.write_barrier == 7 else str(control.write_barrier)
    flag = "-" if control.yield_ else "Y"  # the bit set means: do not yield
    return f"[B{waits}:R{read}:W{write}:{flag}:S{control.stall:02}]"


def _is_plain(inst: Instruction) -> bool:
    """A load or store with 64-bit addresses, for which sm_75 to sm_89 encode the width of RZ."""
    memory = effects_of(inst.mnemonic).memory
    return memory is not None and memory.kind in ("load", "store") and memory.space in _FAR


def hidden_text(inst: Instruction) -> str:
    """The bits that the text does not determine, as further parts of the brackets.

    ``:UR6``, a descriptor that sm_80 to sm_89 do not print, if it is not in UR4;
    ``:0x7fc00000``, the bits of an immediate that is not a number; ``:64`` and ``:32``, the width
    of RZ if a uniform register hides it and compilers mostly write the other; ``:T3``, the value
    of the reuse bits if they mean something else; ``:b84-86=0x5``, any other bits that assembling
    the text would set differently.
    """
    out = ""
    for operand in inst.operands.values():
        if isinstance(operand, Mem) and operand.desc is not None and "desc[" not in inst.text:
            if operand.desc.index != DESCRIPTOR:
                number = operand.desc.index
                out += f":UR{'Z' if number == RZ else number}"
        elif isinstance(operand, Mem) and operand.base is not None and operand.ureg is not None:
            usual = 1 if inst.mnemonic == "LD" else 2
            wide = _is_plain(inst) and operand.base.index == RZ
            if wide and inst.has("E") and operand.base.width != usual and "[UR" in inst.text:
                out += ":64" if usual == 1 else ":32"
        elif isinstance(operand, Imm) and operand.kind != "int" and "NAN" in inst.text:
            raw = operand.value >> 32 if operand.kind == "f64" else operand.value
            out += f":{raw:#x}"
    batch = inst.control.reuse & 7
    if batch and ".reuse" not in inst.text:
        out += f":T{batch}"
    return out + _bits_text(inst, out)


def kind_of(word: int, row: CompiledRow) -> tuple[int, ...]:
    """The word without the fields that its text always gives: register numbers, offsets,
    immediates.

    Of these, only properties that may change the text's form are kept: zero, all ones, the highest
    bit.
    """
    plain, fields = _numbers(row)
    flags = 0
    for field in fields:
        value = field.get(word)
        flags = flags << 3 | (value == 0) << 2 | (value + 1 == 1 << field.width) << 1
        flags |= value >> field.width - 1
    return row.number, word & plain, flags


@cache
def _numbers(row: CompiledRow) -> tuple[int, tuple[Bits, ...]]:
    """The bits that make the kind of a word, and the fields of numbers that do not."""
    fields = [f for slot in row.row.operands.values() for f in _fields(slot, row.generation)]
    plain = _FULL & ~(_SCHEDULING | _GUARD)
    taken = row.mod_mask | row.match_mask
    kept: list[Bits] = []
    for field in fields:
        # A field that shares bits with a modifier, or may not be printed at all, is part of the
        # kind.
        if field.width >= _NUMBER and not field.mask & taken:
            plain &= ~field.mask
            kept.append(field)
    return plain, tuple(kept)


def _fields(slot: Operand, generation: int) -> tuple[Bits, ...]:
    match slot:
        case R():
            return (_bits(register_bits(slot, generation)),)
        case I() | L():
            return (slot.field,)
        case C() if slot.bindless is None and slot.index is None:
            return (slot.offset, slot.bank)
        case M():
            base = () if slot.base is None else (Bits(((slot.base, 8),)),)
            return (slot.offset, *base)
        case When():
            return _fields(slot.slot, generation)
        case _:
            return ()


def _bits(mask: int) -> Bits:
    return Bits(tuple((lo, hi - lo + 1) for lo, hi in _runs(mask)))


def _runs(mask: int) -> list[tuple[int, int]]:
    """The contiguous parts of a mask: lowest and highest bit."""
    places = [i for i in range(128) if mask >> i & 1]
    groups = (list(g) for _, g in groupby(enumerate(places), key=lambda p: sub(*p)))
    return [(group[0][1], group[-1][1]) for group in groups]


@lru_cache(1 << 17)
def _known(_kind: tuple[int, ...], _generation: int, _said: str) -> list[int]:
    """A cached cell for the mask of a kind."""
    return []


def hides(word: int, generation: int) -> bool:
    """Whether the text of such words may leave bits undetermined: False once one did not."""
    row = row_of(word, generation)
    known = None if row is None else _known(kind_of(word, row), generation, "")
    return known != [0]


def _bits_text(inst: Instruction, said: str) -> str:
    """The bits that the text and the brackets so far (``said``) do not determine."""
    generation = generation_of(inst.arch)
    row = row_of(inst.word, generation)
    if row is None:
        return ""
    known = _known(kind_of(inst.word, row), generation, said)
    if not known:
        known.append(_open(inst, said, generation))
    return bits_text(inst.word, known[0])


def bits_text(word: int, mask: int) -> str:
    """The bits of a mask by their values: ``:b84-86=0x5:b90=0x1``."""
    out = ""
    for lo, hi in _runs(mask):
        value = word >> lo & (1 << hi - lo + 1) - 1
        out += f":b{lo}{f'-{hi}' if hi > lo else ''}={value:#x}"
    return out


def _open(inst: Instruction, said: str, generation: int) -> int:
    """The bits that assembling the text sets differently."""
    try:
        line = f"{control_text(inst.control)[:-1]}{said}] {inst.text} ;"
        made = assemble(line, inst.arch, inst.offset)
    except DecodeError:
        return 0  # the text cannot be assembled: bits would not help
    mask = 0
    # Values that print alike do not differ until one of their bits is set, so repeat.
    while more := differing(inst.word, made, generation) & ~_SCHEDULING:
        mask |= more
        made = made & ~mask | inst.word & mask
    return mask
