"""How the library reads machine code: the fields of every instruction, as data for C++.

The library decodes no mnemonics.  A row says which fields of an encoding name operands, what each
value of a field stands for, which bits are immediates, and how control leaves the instruction; the
rest of the bits is the shape (`Shape`).  native/hip/stencils.h declares the same structures.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import Final

from sassxlate.cfg.rdna3_flow import READS
from sassxlate.disasm.rdna3.instruction import Arg, I, S, Sp, V
from sassxlate.disasm.rdna3.semantics.apply import lookup
from sassxlate.disasm.rdna3.tables.layout import Layout, layouts
from sassxlate.disasm.rdna3.tables.opcodes import FORMATS, Operand
from sassxlate.disasm.rdna3.tables.operand_codes import (
    ALIASES,
    EXEC_HI,
    EXEC_LO,
    LITERAL_MARK,
    NULL,
    bits_of,
    source_table,
)
from sassxlate.lowering.emulate.image.abi import PRIVATE_APERTURE_HI, SHARED_APERTURE_HI
from sassxlate.lowering.emulate.stencils import frame
from sassxlate.lowering.emulate.stencils.stencil import OPERANDS, immediates, slots
from sassxlate.lowering.emulate.wave.access.memory import has_alignment
from sassxlate.lowering.emulate.wave.straight import NOTHING


class Action(IntEnum):
    """What a value of an operand's field stands for."""

    INVALID = 0
    VGPR = 1
    HALF = 2  # a half of a VGPR: bit 7 chooses it
    SCALAR = 3
    CONSTANT = 4
    LITERAL = 5
    SHAPE = 6  # part of the shape


class Literal(IntEnum):
    """What a literal word means in an operand."""

    ZERO_EXTENDED = 0
    HIGH = 1
    SIGN_EXTENDED = 2
    LOW_HALF = 3
    INVALID = 4


class Control(IntEnum):
    """How control leaves an instruction, and what the library must know of it besides."""

    STRAIGHT = 0
    NOTHING = 1
    BRANCH = 2
    CONDITIONAL = 3
    END = 4
    ILLEGAL = 5
    TRAP = 6
    ROUND_MODE = 7
    DENORM_MODE = 8
    SETREG = 9
    SETREG_LITERAL = 10
    UNSUPPORTED = 11
    CALL = 12  # writes where it would go on, and jumps
    RETURN = 13  # jumps to the address in registers
    ADDRESS = 14  # writes an address of the code


READS_MEMORY, MODE, DPP, ACCESS = 1, 2, 4, 8  # flags of a row
Y_DESTINATION, DPP_SOURCE = 1, 2  # flags of a field
NO_BIT: Final = 255

_CLASS = struct.Struct("<II512B512Q")
_ROW = struct.Struct("<QQHBBBBH" + "BBBBI" * 2)
_FIELD = struct.Struct("<BBBBBBHHH")
_FORMAT = struct.Struct("<BBHI")  # place and width of the opcode, bytes, first of its rows

# The formats by the nine bits that an encoding begins with, the specific ones first.  The three
# memory segments are two bits below the opcode.
_ORDER: Final = (
    "SOP1", "SOPC", "SOPP", "SOPK", "SOP2", "VOP1", "VOPC", "VOP2", "VOP3P", "VOPD", "VOP3", "DS",
    "FLAT", "SMEM", "MUBUF",
)  # fmt: skip
_SEGMENTS: Final = ("FLAT", "SCRATCH", "GLOBAL")
_SIZES: Final = {8: 1, 16: 2, 32: 4, 64: 8}


@dataclass(slots=True)
class _Tables:
    classes: dict[bytes, int] = field(default_factory=dict[bytes, int])
    rows: list[bytes] = field(default_factory=list[bytes])
    fields: list[bytes] = field(default_factory=list[bytes])

    def operand_class(self, table: tuple[Arg | None, ...], how: _How) -> int:
        actions, values = [0] * 512, [0] * 512
        for code, arg in enumerate(table):
            actions[code], values[code] = _meaning(arg, code, how)
        packed = _CLASS.pack(how.n, how.literal, *actions, *values)
        return self.classes.setdefault(packed, len(self.classes))


@dataclass(frozen=True, slots=True)
class _How:
    n: int  # registers
    literal: Literal
    destination: bool = False
    half: bool = False
    bits: int = 32
    inline: bool = False  # a VGPR or an inline constant, which is part of the shape


def _meaning(arg: Arg | None, code: int, how: _How) -> tuple[Action, int]:
    if arg is None:
        return Action.INVALID, 0
    if arg is LITERAL_MARK:
        bad = how.literal is Literal.INVALID
        return (Action.INVALID if bad else Action.LITERAL), 0
    if isinstance(arg, V):
        return (Action.HALF if how.half else Action.VGPR), frame.VGPR_BYTES * arg.index
    if isinstance(arg, I) and how.inline:
        return Action.SHAPE, 0
    if isinstance(arg, I):
        return Action.CONSTANT, arg.value & ((1 << (64 if how.bits == 64 else 32)) - 1)
    if isinstance(arg, S):
        return Action.SCALAR, frame.SGPR + 4 * arg.index
    assert isinstance(arg, Sp)
    number = ALIASES.get(arg.name)
    if number is None:
        return Action.INVALID, 0
    if arg.name.startswith("src_"):
        high = SHARED_APERTURE_HI if "shared" in arg.name else PRIVATE_APERTURE_HI
        low = 0xFFFFFFFF if arg.name.endswith("limit") else 0
        return Action.CONSTANT, high << 32 | low if how.n > 1 else (low)
    if arg.name == "scc":
        return Action.SCALAR, frame.SCC
    if number == NULL or (how.destination and number in (EXEC_LO, EXEC_HI)):
        return Action.SHAPE, 0
    del code
    return Action.SCALAR, frame.SGPR + 4 * number


def _literal(operand: Operand, shared: bool) -> Literal:
    if operand.type == "lane" or operand.cls == "vi":
        return Literal.INVALID
    if operand.type == "f64":
        return Literal.HIGH
    if operand.type == "i64":
        return Literal.SIGN_EXTENDED
    if bits_of(operand.type) == 16 and not shared:
        return Literal.LOW_HALF
    return Literal.ZERO_EXTENDED


def _how(operand: Operand, lay: Layout) -> _How:
    shared = any(a.cls == "i" for a in lay.info.args)
    return _How(
        operand.n, _literal(operand, shared), "w" in operand.role, bits=bits_of(operand.type),
        inline=operand.cls == "vi",
    )  # fmt: skip


_PLACES: Final = {"src0": 0, "src1": 1, "src2": 2}


def _fields(t: _Tables, lay: Layout) -> tuple[list[bytes], int]:
    """(the fields of operands, the bits that they take)"""
    out: list[bytes] = []
    taken = 0
    long = lay.format.size == 8 and lay.format.name.startswith("VOP3")
    short = lay.format.size == 4 and lay.format.name.startswith("VOP")
    memory = lay.format.name in _SEGMENTS
    for slot, (operand, (lo, mask, table)) in enumerate(zip(lay.info.args, lay.plan, strict=True)):
        if mask == 0 and table != (LITERAL_MARK,):
            continue  # vcc
        how = _how(operand, lay)
        if short and operand.half:
            how = _How(how.n, how.literal, how.destination, True)
        if memory and operand.cls == "v":
            table = source_table("v", 1, "b32")
        alt_bit = sel_bit = NO_BIT
        place = _PLACES.get(operand.field, -1)
        if operand.type == "mix" and place >= 0:
            alt_bit = (59, 60, 14)[place]
        if lay.format.name == "VOP3" and place >= 0 and operand.half:
            sel_bit = 11 + place
        cls = t.operand_class(table, how)
        alt = cls
        if alt_bit != NO_BIT:
            alt = t.operand_class(source_table("src", 1, "f16"), how)
        flags = DPP_SOURCE if operand.field == "src0" and (long or short) else 0
        out.append(_FIELD.pack(lo, mask.bit_length(), slot, alt_bit, sel_bit, flags, cls, alt, 0))
        taken |= mask << lo
    if lay.format.name == "SMEM" and lay.info.args:
        cls = t.operand_class(source_table("sd", 1, "b32"), _How(1, Literal.INVALID))
        out.append(_FIELD.pack(57, 7, len(lay.info.args), NO_BIT, NO_BIT, 0, cls, cls, 0))
        taken |= 0x7F << 57
    return out, taken


def _half(t: _Tables, lay: Layout, y: bool) -> tuple[list[bytes], int]:
    """The same of one half of a dual instruction."""
    out: list[bytes] = []
    taken = 0
    for number, operand in zip(slots(lay.info.op), lay.info.args, strict=True):
        how = _how(operand, lay)
        table = source_table("src", 1, operand.type)
        flags = 0
        if operand.field == "vdst":
            lo, width, table = (49, 7, source_table("v", 1, "b32")) if y else (
                56, 8, source_table("v", 1, "b32"))  # fmt: skip
            flags = Y_DESTINATION if y else 0
        elif operand.field == "lit":
            lo, width, table = 0, 0, (LITERAL_MARK,)
        elif operand.field == "src0":
            lo, width = (32 if y else 0), 9
        else:
            lo, width, table = (41 if y else 9), 8, source_table("v", 1, "b32")
        cls = t.operand_class(table, how)
        slot = OPERANDS // 2 * y + number
        out.append(_FIELD.pack(lo, width, slot, NO_BIT, NO_BIT, flags, cls, cls, 0))
        taken |= ((1 << width) - 1) << lo
    return out, taken


_CONTROLS: Final = {
    "s_branch": Control.BRANCH,
    "s_endpgm": Control.END,
    "s_endpgm_saved": Control.END,
    "s_code_end": Control.ILLEGAL,
    "s_trap": Control.TRAP,
    "s_round_mode": Control.ROUND_MODE,
    "s_denorm_mode": Control.DENORM_MODE,
    "s_setreg_b32": Control.SETREG,
    "s_setreg_imm32_b32": Control.SETREG_LITERAL,
    "s_call_b64": Control.CALL,
    "s_setpc_b64": Control.RETURN,
    "s_getpc_b64": Control.ADDRESS,
    "s_swappc_b64": Control.UNSUPPORTED,
}


def _control(op: str) -> Control:
    if op in _CONTROLS:
        return _CONTROLS[op]
    if op.startswith("s_cbranch_"):
        known = ("scc0", "scc1", "vccz", "vccnz", "execz", "execnz")
        return Control.CONDITIONAL if op.removeprefix("s_cbranch_") in known else (
            Control.UNSUPPORTED)  # fmt: skip
    return Control.NOTHING if op in NOTHING else Control.STRAIGHT


def _immediates(lay: Layout) -> list[tuple[int, int, int, int]]:
    """(place, width, signed, factor) of what the library fills in."""
    name, op = lay.format.name, lay.info.op
    count = immediates(op) if _control(op) is Control.STRAIGHT else 0
    if op.startswith("s_cbranch_") or op == "s_call_b64":
        return [(0, 16, 1, 4)]  # not filled in, but not part of the shape
    if not count:
        return []
    if name == "SOPK":
        return [(0, 16, int(not (op.startswith("s_cmpk_") and "_u32" in op)), 1)]
    if name == "SMEM":
        return [(32, 21, 1, 1)]
    if name == "DS" and count == 2:
        unit = (8 if op.endswith("b64") else 4) * (64 if "stride64" in op else 1)
        return [(0, 8, 0, unit), (8, 8, 0, unit)]
    if name == "DS":
        return [(0, 16, 0, 1)]
    return [(0, 13, int(name != "FLAT"), 1)]


def _row(t: _Tables, lays: tuple[Layout, ...]) -> bytes:
    lay = lays[0]
    if len(lays) == 1:
        fields, taken = _fields(t, lay)
    else:
        fields, taken = _half(t, lays[0], False)
        more, also = _half(t, lays[1], True)
        fields, taken = fields + more, taken | also
    first = len(t.fields)
    t.fields += fields
    op = lay.info.op
    imms = _immediates(lay)
    for lo, width, _, _ in imms:
        taken |= ((1 << width) - 1) << lo
    rows = [lookup(x.info.op) for x in lays]
    flags = READS_MEMORY if READS.match(op) else 0
    flags |= MODE if any(r is not None and r.mode for r in rows) else 0
    flags |= DPP if lay.dpp else 0
    flags |= ACCESS if has_alignment(op) else 0
    mode_bits = 0
    if lay.format.name.startswith("VOP3"):
        mode_bits = 1 << 15 | (3 << 59 if lay.format.name != "VOP3P" else 0)
    control = _control(op)
    if control is Control.STRAIGHT and re.match(r"s_getreg", op):
        flags |= MODE
    whole = (1 << 8 * lay.format.size) - 1
    numbers = [
        x for imm in [*imms, *[(0, 0, 0, 0)] * (2 - len(imms))] for x in (*imm[:3], 0, imm[3])
    ]
    return _ROW.pack(
        whole & ~taken, mode_bits, first, len(fields), len(imms), control, flags, 0, *numbers
    )


@dataclass(frozen=True, slots=True)
class Encodings:
    """The tables as bytes: operand classes, fields, rows, the row of each opcode of a format
    (0xFFFF: none), formats, and the format of the top nine bits (0xFF: none)."""

    classes: bytes = b""
    fields: bytes = b""
    rows: bytes = b""
    opcodes: bytes = b""
    formats: bytes = b""
    dispatch: bytes = b""


@cache
def encodings() -> Encodings:
    t = _Tables()
    opcodes: list[int] = []
    formats = b""
    dispatch = [0xFF] * 512
    for number, name in enumerate(_ORDER):
        fmt = FORMATS[name]
        lo, width = fmt.op.lo, fmt.op.width
        found: dict[int, tuple[Layout, ...]] = {}
        if name == "VOPD":
            lo, width = 17, 9
            halves = layouts("VOPD")
            for x, one in halves.items():
                for y, other in halves.items():
                    if x < 16:
                        found[x << 5 | y] = one, other
        elif name == "FLAT":
            lo, width = 16, 9
            for segment, each in enumerate(_SEGMENTS):
                found |= {op << 2 | segment: (lay,) for op, lay in layouts(each).items()}
        else:
            found = {op: (lay,) for op, lay in layouts(name).items()}
            if name == "VOP3":
                found |= {op: (lay,) for op, lay in layouts("VOP3SD").items()}
        formats += _FORMAT.pack(lo, width, fmt.size, len(opcodes))
        for op in range(1 << width):
            if op in found and not (name == "MUBUF" and found[op][0].info.args):
                opcodes.append(len(t.rows))
                t.rows.append(_row(t, found[op]))
            else:
                opcodes.append(0xFFFF)
        for top in range(512):
            mask = fmt.mask if name != "FLAT" else 0xFC000000
            if dispatch[top] == 0xFF and (top << 23) & mask == fmt.value & mask & 0xFF800000:
                dispatch[top] = number
    return Encodings(
        b"".join(t.classes),
        b"".join(t.fields),
        b"".join(t.rows),
        struct.pack(f"<{len(opcodes)}H", *opcodes),
        formats,
        bytes(dispatch),
    )
