"""Operand codes of RDNA3: registers, special registers and inline constants, both ways.

Codes are those of the 9-bit source field: 0-105 SGPRs, 106-127 special, 128-208 small integers,
240-248 floating-point constants, 255 a literal, 256-511 VGPRs (RDNA3 ISA, section 3.5 and table 5).
"""

from __future__ import annotations

from functools import cache
from typing import Final

from sassxlate.disasm.rdna3.instruction import Arg, I, S, Sp, V

LITERAL: Final = 255
DPP16: Final = 250
DPP8: Final = 233
NULL: Final = 124
VCC_LO: Final = 106
VCC_HI: Final = 107
M0: Final = 125
EXEC_LO: Final = 126
EXEC_HI: Final = 127
SGPRS: Final = 106  # that an operand can name
VGPRS: Final = 256

SPECIAL: Final[dict[str, int]] = {
    "vcc_lo": 106,
    "vcc_hi": 107,
    **{f"ttmp{i}": 108 + i for i in range(16)},
    "null": 124,
    "m0": 125,
    "exec_lo": 126,
    "exec_hi": 127,
    "src_shared_base": 235,
    "src_shared_limit": 236,
    "src_private_base": 237,
    "src_private_limit": 238,
    "scc": 253,
}
ALIASES: Final[dict[str, int]] = {
    **SPECIAL,
    "vcc": 106,
    "exec": 126,
    "off": 124,
    "src_scc": 253,
    "shared_base": 235,
    "shared_limit": 236,
    "private_base": 237,
    "private_limit": 238,
}
_NAMES: Final = {code: name for name, code in SPECIAL.items()}

# 0.5, -0.5, 1, -1, 2, -2, 4, -4, 1/(2 pi) as codes 240 to 248.
_F16: Final = (0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400, 0x3118)
_BF16: Final = (0x3F00, 0xBF00, 0x3F80, 0xBF80, 0x4000, 0xC000, 0x4080, 0xC080, 0x3E22)
_F32: Final = (
    0x3F000000,
    0xBF000000,
    0x3F800000,
    0xBF800000,
    0x40000000,
    0xC0000000,
    0x40800000,
    0xC0800000,
    0x3E22F983,
)
_F64: Final = (
    0x3FE0000000000000,
    0xBFE0000000000000,
    0x3FF0000000000000,
    0xBFF0000000000000,
    0x4000000000000000,
    0xC000000000000000,
    0x4010000000000000,
    0xC010000000000000,
    0x3FC45F306DC9C882,
)
_SIZE64: Final = frozenset({"f64", "i64", "u64", "b64"})
_INT16: Final = frozenset({"i16", "u16", "b16"})


def bits_of(typ: str) -> int:
    """The width of a constant in an operand of this type: 16, 32 or 64."""
    if typ in _SIZE64:
        return 64
    if typ in _INT16 or typ in ("f16", "bf16"):
        return 16
    return 32


@cache
def inline_values(typ: str) -> dict[int, int]:
    """Constant (in ``bits_of(typ)`` bits) to code, for the inline constants of a type."""
    bits = bits_of(typ)
    ones = (1 << bits) - 1
    out = {value & ones: 128 + value for value in range(65)}
    out |= {value & ones: 192 - value for value in range(-16, 0)}
    floats: tuple[int, ...]
    if typ in _SIZE64:
        floats = _F64
    elif typ in ("f16", "pk_f16"):
        floats = _F16
    elif typ == "pk_f16x2":
        floats = tuple(value << 16 | value for value in _F16)
    elif typ in ("bf16", "pk_bf16"):
        floats = _BF16
    elif typ in _INT16:
        floats = ()
    else:
        floats = _F32
    return out | {value: 240 + i for i, value in enumerate(floats)}


def inline_code(value: int, typ: str) -> int | None:
    """The code of an inline constant, None if the type has none of this value."""
    bits = bits_of(typ)
    if bits == 16:
        low = value & 0xFFFF
        if -0x8000 <= value <= 0xFFFF or value & 0xFFFFFFFF == low - 0x10000 & 0xFFFFFFFF:
            return inline_values(typ).get(low)
        return None
    return inline_values(typ).get(value & ((1 << bits) - 1))


def literal_word(value: int, typ: str) -> int | None:
    """The 32-bit literal that an operand of this type widens to ``value``, None if there is none.

    64-bit operands: f64 takes the literal as its high half, i64 sign-extends it, the others
    zero-extend it (RDNA3 ISA, section 3.5.2.1).
    """
    if bits_of(typ) < 64:
        return value & 0xFFFFFFFF if -(1 << 31) <= value < 1 << 32 else None
    if not -(1 << 63) <= value < 1 << 64:
        return None
    wide = value & ((1 << 64) - 1)
    if typ == "f64":
        return wide >> 32 if wide & 0xFFFFFFFF == 0 else None
    if typ == "i64":
        low = wide & 0xFFFFFFFF
        return low if wide == (low | (0xFFFFFFFF00000000 if low >> 31 else 0)) else None
    return wide if wide >> 32 == 0 else None


def literal_value(word: int, typ: str) -> int:
    """The value of a 32-bit literal in an operand of this type: the inverse of literal_word."""
    if typ == "f64":
        return word << 32
    if typ == "i64" and word >> 31:
        return word | 0xFFFFFFFF00000000
    return word


def scalar(code: int, n: int) -> Arg | None:
    """The scalar register or constant-like source of a code below 256, constants excluded."""
    if code < SGPRS:
        return S(code, n) if code + n <= SGPRS else None
    name = _NAMES.get(code)
    if name is None:
        return None
    if n >= 2 and name in ("vcc_hi", "exec_hi", "m0"):
        return None
    if n == 2 and name in ("vcc_lo", "exec_lo"):
        return Sp(name[:-3], 2)
    if n > 2 and not name.startswith(("ttmp", "null")):
        return None
    if name.startswith("ttmp") and code + n > NULL:
        return None
    return Sp(name, n)


# The marker of a literal in the tables that decode uses; never part of a decoded instruction.
LITERAL_MARK: Final = Sp("literal")


@cache
def source_table(kind: str, n: int, typ: str) -> tuple[Arg | None, ...]:
    """Field value to operand for one kind of field; None if the value is reserved."""
    if kind == "v":
        return tuple(V(i, n) if i + n <= 256 else None for i in range(256))
    if kind in ("sd", "sb", "sq"):
        step = {"sd": 1, "sb": 2, "sq": 4}[kind]
        align = min(n, 4)
        codes = [i * step for i in range(128 // step)]
        return tuple(scalar(c, n) if _aligned(c, align) else None for c in codes)
    table: list[Arg | None] = [scalar(c, n) if _aligned(c, min(n, 4)) else None for c in range(256)]
    for value, code in inline_values(typ).items():
        table[code] = I(value)
    table[LITERAL] = LITERAL_MARK
    if kind == "src":
        table += source_table("v", n, typ)
    return tuple(table)


def _aligned(code: int, align: int) -> bool:
    return code >= NULL or align <= 1 or (code if code < 108 else code - 108) % align == 0
