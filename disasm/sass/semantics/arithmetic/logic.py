"""Logic, shifts, permutations, counts, selections and predicate logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sassxlate.disasm.sass.instruction import Pred, PredFile, Reg, RegRef
from sassxlate.disasm.sass.semantics.rows import NoSemantics, Results, Semantics, View, row, uniform
from sassxlate.domain.interface import Domain, umin

T = TypeVar("T")


def table3(d: Domain[T], lut: int, a: T, b: T, c: T) -> T:
    """The bitwise function whose bit 4a + 2b + c is its value; a domain may write it otherwise."""
    written: Callable[[int, T, T, T], T] | None = getattr(d, "table3", None)
    if written is not None:
        return written(lut, a, b, c)
    width = d.width(a)
    out = d.const(0, width)
    for i in range(8):
        if lut >> i & 1:
            term = a if i & 4 else d.not_(a)
            term = d.and_(term, b if i & 2 else d.not_(b))
            out = d.or_(out, d.and_(term, c if i & 1 else d.not_(c)))
    return out


def lop3(d: Domain[T], x: View[T]) -> Results:
    """Pu: whether any bit is set, joined with Pp."""
    value = table3(d, x.imm("lut"), x.integer("Ra"), x.integer("Rb"), x.integer("Rc"))
    some = d.not_(d.eq(value, d.const(0, 32)))
    other = x.pred("Pp")
    return {"Rd": value, "Pu": d.and_(some, other) if x.has("PAND") else d.or_(some, other)}


def _signs(d: Domain[T], x: View[T], role: str) -> T:
    operand = x.operand(role)
    if not isinstance(operand, Pred):  # PLOP3 over the signs of registers and constants
        return d.extract(x.whole(role), 31, 1)
    return x.pred(role)


def plop3(d: Domain[T], x: View[T]) -> Results:
    a, b, c = (_signs(d, x, role) for role in ("Pp", "Pq", "Pr"))
    return {
        "Pu": table3(d, x.imm("lut") & 0xFF, a, b, c),
        "Pv": table3(d, x.imm("lut2") & 0xFF, a, b, c),
    }


def _width(x: View[T]) -> int:
    target = x.ins.get("Rd")
    return 32 * target.width if isinstance(target, Reg) else 32


def sel(d: Domain[T], x: View[T]) -> Results:
    width = _width(x)
    return {"Rd": d.select(x.pred("Pp"), x.integer("Ra", width), x.integer("Rb", width))}


def mov(d: Domain[T], x: View[T]) -> Results:
    if not x.absent("mask") and x.imm("mask") != 15:
        raise NoSemantics("MOV of some bytes")
    return {"Rd": x.integer("Rb", _width(x))}


# --- shifts ------------------------------------------------------------------------------------


def _amount(d: Domain[T], x: View[T], limit: int) -> T:
    """Rb modulo ``limit`` with .W, otherwise at most ``limit``."""
    count = x.bits("Rb")
    if x.has("W"):
        return d.and_(count, d.const(limit - 1, 32))
    return umin(d, count, d.const(limit, 32))


def _shift(d: Domain[T], fn: Callable[[T, T], T], value: T, count: T, beyond: T) -> T:
    """``fn`` by a count that may reach the width, which gives ``beyond``."""
    width = d.width(value)
    wide = d.zext(count, width) if width > 32 else count
    inside = d.ult(wide, d.const(width, width))
    safe = d.select(inside, wide, d.const(0, width))
    return d.select(inside, fn(value, safe), beyond)


def shf(d: Domain[T], x: View[T]) -> Results:
    """A shift of the pair Rc:Ra; .HI gives its high word.  A domain may write it otherwise."""
    arithmetic = x.has("S64", "S32")
    count = _amount(d, x, 64 if x.has("S64", "U64") else 32)
    written: Callable[..., T | None] | None = getattr(d, "funnel", None)
    if written is not None:
        how = "shl" if x.has("L") else "ashr" if arithmetic else "lshr"
        word = written(how, x.bits("Rc"), x.bits("Ra"), count, high=x.has("HI"))
        if word is not None:
            return {"Rd": word}
    pair = d.concat(x.bits("Rc"), x.bits("Ra"))
    zero = d.const(0, 64)
    if x.has("L"):
        out = _shift(d, d.shl, pair, count, zero)
    elif arithmetic:
        out = _shift(d, d.ashr, pair, count, d.ashr(pair, d.const(63, 64)))
    else:
        out = _shift(d, d.lshr, pair, count, zero)
    return {"Rd": d.extract(out, 32 if x.has("HI") else 0, 32)}


def _low_ones(d: Domain[T], count: T) -> T:
    """``count`` ones, at most 32."""
    ones = d.const(-1, 64)
    return d.extract(d.not_(d.shl(ones, d.zext(count, 64))), 0, 32)


def sgxt(d: Domain[T], x: View[T]) -> Results:
    """The low Rb bits of Ra, extended."""
    count = _amount(d, x, 32)
    kept = d.and_(x.bits("Ra"), _low_ones(d, count))
    if x.has("U32"):
        return {"Rd": kept}
    rest = d.sub(d.const(32, 32), count)
    up = _shift(d, d.shl, x.bits("Ra"), rest, d.const(0, 32))
    full = _shift(d, d.ashr, up, rest, d.const(0, 32))
    return {"Rd": full}


def bmsk(d: Domain[T], x: View[T]) -> Results:
    """Rb ones from bit Ra on."""
    ones = _low_ones(d, _amount(d, x, 32))
    at = x.bits("Ra")
    if x.has("W"):
        at = d.and_(at, d.const(31, 32))
    return {"Rd": _shift(d, d.shl, ones, at, d.const(0, 32))}


# --- bytes and bits ----------------------------------------------------------------------------

# The bytes that a mode takes for a value of Rb's bits 1:0, lowest first (PTX manual, prmt).
PRMT_MODES: dict[str, Callable[[int], list[int]]] = {
    "F4E": lambda n: [n + k for k in range(4)],
    "B4E": lambda n: [(n - k) & 7 for k in range(4)],
    "RC8": lambda n: [n] * 4,
    "ECL": lambda n: [max(n, k) for k in range(4)],
    "ECR": lambda n: [min(n, k) for k in range(4)],
    "RC16": lambda n: [2 * (n & 1), 2 * (n & 1) + 1] * 2,
}


def _joined(d: Domain[T], parts: list[T]) -> T:
    out = parts[0]
    for part in parts[1:]:
        out = d.concat(part, out)
    return out


def prmt(d: Domain[T], x: View[T]) -> Results:
    pair = d.concat(x.bits("Rc"), x.bits("Ra"))
    codes = x.bits("Rb")
    mode = x.one_of(PRMT_MODES)
    if mode:
        number = d.extract(codes, 0, 2)
        out = d.const(0, 32)
        for n in range(4):
            value = _joined(d, [d.extract(pair, 8 * b, 8) for b in PRMT_MODES[mode](n)])
            out = d.select(d.eq(number, d.const(n, 2)), value, out)
        return {"Rd": out}
    parts: list[T] = []
    for i in range(4):
        at = d.zext(d.extract(codes, 4 * i, 3), 64)
        byte = d.extract(d.lshr(pair, d.shl(at, d.const(3, 64))), 0, 8)
        sign = d.ashr(byte, d.const(7, 8))
        parts.append(d.select(d.extract(codes, 4 * i + 3, 1), sign, byte))
    return {"Rd": _joined(d, parts)}


def popc(d: Domain[T], x: View[T]) -> Results:
    return {"Rd": d.popcount(x.integer("Rb"))}


def brev(d: Domain[T], x: View[T]) -> Results:
    return {"Rd": d.bitreverse(x.bits("Rb"))}


def flo(d: Domain[T], x: View[T]) -> Results:
    """The place of the highest one (of a negative number the highest zero), or with .SH its
    distance from the top; all ones and Pu false if there is none."""
    value = x.integer("Rb")
    if not x.has("U32"):
        value = d.xor(value, d.ashr(value, d.const(31, 32)))
    none = d.eq(value, d.const(0, 32))
    lead = d.clz(value)
    place = lead if x.has("SH") else d.sub(d.const(31, 32), lead)
    return {"Rd": d.select(none, d.const(-1, 32), place), "Pu": d.not_(none)}


# --- predicates as bits ------------------------------------------------------------------------


def _byte(x: View[T]) -> int:
    names = (*x.ins.modifiers, x.select("Ra"))
    return next((n for n in range(4) if f"B{n}" in names), 0)


def _p2r(file: PredFile) -> Callable[[Domain[T], View[T]], Results]:
    def fn(d: Domain[T], x: View[T]) -> Results:
        """The predicates that the mask names into a byte of Ra; bit 7 of the mask gives a one."""
        shift, mask = 8 * _byte(x), x.imm("mask") & 0xFF
        out = d.and_(x.bits("Ra"), d.const(~(mask << shift), 32))
        for n in range(8):
            if mask >> n & 1:
                bit = d.const(1, 1) if n == 7 else x.env.pred(file, n)
                out = d.or_(out, d.shl(d.zext(bit, 32), d.const(n + shift, 32)))
        return {"Rd": out}

    return fn


def _r2p(file: PredFile) -> Callable[[Domain[T], View[T]], Results]:
    def fn(d: Domain[T], x: View[T]) -> Results:
        shift, mask = 8 * _byte(x), x.imm("mask")
        value = x.whole("Ra")
        return {RegRef(file, n): d.extract(value, n + shift, 1) for n in range(7) if mask >> n & 1}

    return fn


_BYTES = "B0 B1 B2 B3"


def rows() -> list[Semantics]:
    return [
        *uniform([
            row("LOP3", lop3, "LUT PAND"),
            row("PLOP3", plop3, "LUT"),
            row("SEL", sel, "64"),
            row("MOV", mov, "64 SPILL"),
            row("SHF", shf, "L R HI W U32 S32 U64 S64"),
            row("SGXT", sgxt, "W U32"),
            row("BMSK", bmsk, "W"),
            row("PRMT", prmt, " ".join(PRMT_MODES)),
            row("POPC", popc),
            row("BREV", brev),
            row("FLO", flo, "U32 SH"),
        ]),
        row("MOV64IUR", mov),
        row("P2R", _p2r("P"), _BYTES),
        row("R2P", _r2p("P"), _BYTES),
        row("UP2UR", _p2r("UP"), _BYTES),
        row("UR2UP", _r2p("UP"), _BYTES),
    ]  # fmt: skip
