"""Any bitwise function of three words from RDNA3's instructions (which have no v_bitop3).

A function is the LUT of LOP3: bit 4a + 2b + c is its value.  ``synthesise`` returns an expression
tree with the fewest instructions that its forms can express; exhaustive tests evaluate all 256.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

A, B, C = 0xF0, 0xCC, 0xAA
VARIABLES = (A, B, C)


@dataclass(frozen=True, slots=True)
class Op:
    """An instruction over sub-expressions; ``args`` are operands in the instruction's order."""

    name: str
    args: tuple[Expr, ...]

    @property
    def cost(self) -> int:
        return 1 + sum(a.cost for a in self.args if isinstance(a, Op))


# 0, 1, 2: the variables a, b, c; -1: all ones; -2: zero.
Expr: TypeAlias = "Op | int"
ONES, ZEROS = -1, -2


def cost(e: Expr) -> int:
    return e.cost if isinstance(e, Op) else 0


def evaluate(e: Expr) -> int:
    """The LUT of an expression."""
    if isinstance(e, int):
        return {ONES: 0xFF, ZEROS: 0}.get(e, VARIABLES[e] if e >= 0 else 0)
    v = [evaluate(a) for a in e.args]
    match e.name:
        case "v_not_b32":
            out = ~v[0]
        case "v_and_b32":
            out = v[0] & v[1]
        case "v_or_b32":
            out = v[0] | v[1]
        case "v_xor_b32":
            out = v[0] ^ v[1]
        case "v_xnor_b32":
            out = ~(v[0] ^ v[1])
        case "v_and_or_b32":
            out = v[0] & v[1] | v[2]
        case "v_or3_b32":
            out = v[0] | v[1] | v[2]
        case "v_xor3_b32":
            out = v[0] ^ v[1] ^ v[2]
        case "v_bfi_b32":
            out = v[0] & v[1] | ~v[0] & v[2]
        case name:
            raise ValueError(name)
    return out & 0xFF


def _cofactors(lut: int, var: int) -> tuple[int, int]:
    """The function with the variable 1, and with it 0, both spread over all eight rows."""
    mask = VARIABLES[var]
    step = (4, 2, 1)[var]
    one, zero = lut & mask, lut & ~mask & 0xFF
    return one | one >> step, zero | zero << step


@lru_cache(maxsize=256)
def synthesise(lut: int) -> Expr:
    """The cheapest expression found for ``lut`` (0 to 255)."""
    for e in (ZEROS, ONES, 0, 1, 2):
        if evaluate(e) == lut:
            return e
    found: list[Expr] = list(_direct(lut))
    for var in range(3):
        one, zero = _cofactors(lut, var)
        if one == zero:
            continue
        found += _split(var, one, zero)
    return min(found, key=lambda e: (cost(e), repr(e)))


def _direct(lut: int) -> list[Expr]:
    out: list[Expr] = []
    for x in range(3):
        out.append(Op("v_not_b32", (x,)))
        for y in range(3):
            if x == y:
                continue
            z = 3 - x - y
            out += [Op(n, (x, y)) for n in ("v_and_b32", "v_or_b32", "v_xor_b32", "v_xnor_b32")]
            out += [Op(n, (x, y, z)) for n in ("v_and_or_b32", "v_or3_b32", "v_xor3_b32")]
            out.append(Op("v_bfi_b32", (x, y, z)))
    return [e for e in out if evaluate(e) == lut]


def _split(var: int, one: int, zero: int) -> list[Expr]:
    """Forms of ``var ? one : zero``."""
    out: list[Expr] = []
    if zero == 0:
        out.append(Op("v_and_b32", (var, synthesise(one))))
    if one == 0xFF:
        out.append(Op("v_or_b32", (var, synthesise(zero))))
    if one == zero ^ 0xFF:
        out.append(Op("v_xor_b32", (var, synthesise(zero))))
        out.append(Op("v_xnor_b32", (var, synthesise(one))))
    out.append(Op("v_bfi_b32", (var, synthesise(one), synthesise(zero))))
    return out
