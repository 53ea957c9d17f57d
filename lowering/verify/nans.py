"""How registers that hold a NaN may differ: each side's view of a float result.

SASS makes one NaN, RDNA3 any NaN.  A register is *loose* while its RDNA3 side may hold another
NaN than SASS's.  The translator lists the loose registers at a block's ends, and it is proved that
no others are loose.  Code that reads bits of a loose register would differ, and is not proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from sassxlate.disasm.rdna3.instruction import I, Inst
from sassxlate.disasm.sass.instruction import Instruction, Reg, RegRef
from sassxlate.domain.interface import Domain, is_nan
from sassxlate.lowering.nans.reads import Nan, made, moved, numeric

T = TypeVar("T")
LOOSE = Nan.SINGLE | Nan.HALVES
_FREE = Nan.FREE32 | Nan.FREE16
_SINGLE, _HALF = 0x7FFFFFFF, 0x7FFF


def pure(kind: Nan) -> Nan:
    """The one format in which every NaN of the register is SASS's own on the SASS side, or none."""
    if kind & LOOSE == Nan.SINGLE and not kind & Nan.FREE32:
        return Nan.SINGLE
    if kind & LOOSE == Nan.HALVES and not kind & Nan.FREE16:
        return Nan.HALVES
    return Nan(0)


def as_sass(d: Domain[T], value: T, kind: Nan, free: Callable[[int], T]) -> T:
    """SASS's side of a register that holds ``value`` on RDNA3; ``free`` makes the bits that decide
    where a NaN differs."""
    only = pure(kind)
    sure = d.const(1, 1)
    if kind & LOOSE == LOOSE:
        single = as_sass(d, value, Nan.SINGLE | Nan.FREE32, free)
        return d.select(free(1), single, as_sass(d, value, Nan.HALVES | Nan.FREE16, free))
    if kind & Nan.SINGLE:
        other = d.and_(is_nan(d, value), sure if only else free(1))
        return d.select(other, d.const(_SINGLE, 32), value)
    halves: list[T] = []
    for low in (0, 16):
        half = d.extract(value, low, 16)
        other = d.and_(is_nan(d, half), sure if only else free(1))
        halves.append(d.select(other, d.const(_HALF, 16), half))
    return d.concat(halves[1], halves[0])


def tight(d: Domain[T], value: T, kind: Nan) -> T:
    """A value in which the NaN that SASS does not make are replaced, unless ``kind`` allows
    them."""
    if not kind & Nan.FREE32:
        value = as_sass(d, value, Nan.SINGLE, lambda w: d.const(1, w))
    if not kind & Nan.FREE16:
        value = as_sass(d, value, Nan.HALVES, lambda w: d.const(1, w))
    return value


def alike(d: Domain[T], sass: T, rdna: T, kind: Nan) -> T:
    """Whether two values are equal, except that any NaN of these formats matches SASS's NaN."""
    out = d.eq(sass, rdna)
    if kind & Nan.SINGLE:
        other = d.and_(d.eq(sass, d.const(_SINGLE, 32)), is_nan(d, rdna))
        out = d.or_(out, other)
    if kind & Nan.HALVES:
        both = d.const(1, 1)
        for low in (0, 16):
            a, b = d.extract(sass, low, 16), d.extract(rdna, low, 16)
            other = d.and_(d.eq(a, d.const(_HALF, 16)), is_nan(d, b))
            both = d.and_(both, d.or_(d.eq(a, b), other))
        out = d.or_(out, both)
    return out


def written(ins: Instruction, loose: Mapping[RegRef, Nan]) -> dict[RegRef, Nan]:
    """The registers that an instruction leaves loose, of those that it writes, given the registers
    that are ``loose`` before it."""
    kind = made(ins) & LOOSE
    if ins.mnemonic == "F2F" and ins.has("F64") and (ins.has("F16") or ins.has("BF16")):
        kind = Nan.HALVES | _FREE  # sign and payload of a double, which are not described here
    roles = moved(ins)
    out: dict[RegRef, Nan] = {}
    for ref in ins.writes:
        mine = kind
        for role in roles:
            operand = ins.get(role)
            if isinstance(operand, Reg) and not operand.is_zero:
                source = RegRef(operand.file, operand.index + _word(ins, ref))
                mine |= loose.get(source, Nan(0))
        free = Nan(0)
        if roles or not ins.guard.is_true:
            free = _FREE
        if not ins.guard.is_true:
            mine |= loose.get(ref, Nan(0))
        if mine & LOOSE:
            out[ref] = mine | free
    return out


def _word(ins: Instruction, ref: RegRef) -> int:
    out = ins.get("Rd")
    return ref.index - out.index if isinstance(out, Reg) else 0


def puts_right(inst: Inst) -> bool:
    """Whether an instruction turns the NaN of a register into SASS's NaN, in place."""
    single, halves = I(0x7FFFFFFF), I(0x7FFF7FFF)
    if inst.op == "v_max3_f32" and len(inst.args) == 4:
        to, a, b, c = inst.args
        return to == b and a == c == single
    return inst.op == "v_pk_max_f16" and inst.args == (inst.args[0], halves, inst.args[0])


def claims(
    instructions: Iterable[Instruction],
) -> tuple[dict[RegRef, Nan], dict[RegRef, frozenset[Nan]]]:
    """The registers that may be loose before and after code of a kernel, by the code alone.

    Before: those that are only ever read as numbers.  This holds for code in which the translator
    repairs no NaN and moves no loose register: there, registers read as bits hold SASS's bits.
    """
    numbers: dict[RegRef, Nan] = {}
    bits: set[RegRef] = set()
    own: set[RegRef] = set()
    some = list(instructions)
    for ins in some:
        roles, blind = numeric(ins)
        seen: dict[RegRef, Nan] = {}
        for role in roles:
            operand = ins.get(role)
            if isinstance(operand, Reg) and not operand.is_zero:
                for i in range(operand.width):
                    seen[RegRef(operand.file, operand.index + i)] = blind & LOOSE
        for ref in ins.reads - own:
            if seen.get(ref):
                numbers[ref] = numbers.get(ref, LOOSE) & seen[ref]
            else:
                bits.add(ref)
        if ins.guard.is_true:
            own |= ins.writes
    before = {ref: kind | _FREE for ref, kind in numbers.items() if kind and ref not in bits}
    loose = dict(before)
    for ins in some:
        now = written(ins, loose)
        for ref in ins.writes:
            loose.pop(ref, None)
        loose |= now
    return before, {ref: frozenset({kind | _FREE}) for ref, kind in loose.items()}


__all__ = ["LOOSE", "alike", "as_sass", "claims", "pure", "puts_right", "tight", "written"]
