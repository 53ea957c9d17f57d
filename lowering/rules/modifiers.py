"""Modifiers shared by many rules, by topic."""

from __future__ import annotations

from typing import Final

# Cache placement and eviction, and data that only this access reads.  They change nothing.
HINTS: Final = "CONSTANT EF EL EU LU NA PRIVATE LTC64B LTC128B LTC256B EFL2 ENL2 ELL2"
SCOPES: Final = "STRONG SM CTA GPU SYS MMIO"
SIZES: Final = "S8 U8 S16 U16 64 128"
MEMORY: Final = f"E {SIZES} {SCOPES} {HINTS}"
ATOMIC: Final = (
    f"E 64 S32 U64 S64 F32 F64 F16x2 FTZ RN ADD MIN MAX INC DEC AND OR XOR EXCH CAS SAFEADD "
    f"F16x4 F16x8 BF16x2 BF16x4 BF16x8 F32x2 F32x4 {SCOPES} {HINTS}"
)
FLOAT_RELATIONS: Final = "F LT EQ LE GT NE GE NUM NAN LTU EQU LEU GTU NEU GEU T AND OR XOR"
ROUND: Final = "RM RP RZ"
INTS: Final = "S8 U8 S16 U16 S32 U32 S64 U64"
