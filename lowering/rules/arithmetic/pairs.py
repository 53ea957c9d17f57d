"""Sums and products of pairs of binary32 numbers (sm_100, sm_103), two instructions each, and those
of binary32 numbers with halves (from sm_100 on)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sassxlate.disasm.rdna3.instruction import Arg, I, V, vgprs
from sassxlate.disasm.sass.instruction import Imm, Reg
from sassxlate.disasm.sass.semantics.arithmetic.float import OPPOSITE, PAIRS
from sassxlate.lowering.builder.canonical_nan import one_nan
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.nans.reads import Nan
from sassxlate.lowering.rules.arithmetic.modes import ftz, rounding
from sassxlate.lowering.rules.modifiers import ROUND
from sassxlate.lowering.rules.rule import Rule, knowing


@dataclass(frozen=True, slots=True)
class _Source:
    """What one half of a result reads of a source, and its signs."""

    value: Arg
    neg: bool = False
    abs: bool = False


def _sources(c: RuleEmitter, role: str) -> tuple[_Source, _Source]:
    """Of the low and the high half."""
    operand = c.operand(role)
    if isinstance(operand, Imm) and not (operand.neg or operand.inv):
        both = _Source(c.value(operand))
        return both, both
    if not isinstance(operand, Reg) or operand.inv:
        raise c.refuse(f"this operand {role} of a pair")
    select = operand.select
    parts = PAIRS.get(select.removesuffix(OPPOSITE))
    if parts is None:
        raise c.refuse(f"selector {select} of a pair")
    low, high = (c.value(operand, word) for word in parts)
    return (
        _Source(low, operand.neg, operand.abs),
        _Source(high, operand.neg ^ select.endswith(OPPOSITE), operand.abs),
    )


def _each(c: RuleEmitter, op: str, *roles: str) -> None:
    """One instruction for each half.  The first must not change what the second reads: the order is
    chosen for that, and where neither does, the first result waits in a temporary."""
    if c.ins.has("FMZ"):
        raise c.refuse(".FMZ (0 times anything is 0)")
    pairs = [_sources(c, role) for role in roles]
    out = c.dst_last()
    places = [vgprs(out.index + i) for i in (0, 1)]
    halves: list[list[_Source]] = [[pair[i] for pair in pairs] for i in (0, 1)]
    order = (0, 1) if not _reads(halves[1], places[0]) else (1, 0)
    first, second = order
    waits = _reads(halves[second], places[first])
    targets = {first: c.vtemp() if waits else places[first], second: places[second]}
    with rounding(c), ftz(c):
        for half in order:
            sources = halves[half]
            c.emit(
                op,
                targets[half],
                *(s.value for s in sources),
                neg=sum(s.neg << i for i, s in enumerate(sources)),
                abs=sum(s.abs << i for i, s in enumerate(sources)),
            )
    if waits:
        c.emit("v_mov_b32", places[first], targets[first])


def _reads(sources: list[_Source], place: V) -> bool:
    return any(s.value == place for s in sources)


def fadd2(c: RuleEmitter) -> None:
    _each(c, "v_add_f32", "Ra", "Rb")


def fmul2(c: RuleEmitter) -> None:
    _each(c, "v_mul_f32", "Ra", "Rb")


def ffma2(c: RuleEmitter) -> None:
    _each(c, "v_fma_f32", "Ra", "Rb", "Rc")


# --- halves in single precision -------------------------------------------------------------------


def _half(c: RuleEmitter, role: str) -> Arg:
    """A half of a register as binary32, without its signs: exact."""
    operand = c.operand(role)
    high = getattr(operand, "select", "")
    if high not in ("", "H1"):
        raise c.refuse(f"selector {high} of a half")
    out = c.vtemp()
    if c.ins.has("BF16"):
        if high:
            c.emit("v_and_b32", out, I(0xFFFF0000), c.value(operand))
        else:
            c.emit("v_lshlrev_b32", out, I(16), c.value(operand))
        return out
    part = c.value(operand)
    if high:
        c.emit("v_lshrrev_b32", out, I(16), part)
        part = out
    elif isinstance(part, I):  # what an inline constant stands for depends on the type
        c.emit("v_mov_b32", out, part)
        part = out
    c.emit("v_cvt_f32_f16", out, part)
    return out


def _mixed(c: RuleEmitter, op: str, halves: int) -> None:
    """The first operands are halves; the result's NaN is put right here."""
    roles = ("Ra", "Rb", "Rc")[: 2 if op == "v_add_f32" else 3]
    args = [_half(c, r) if i < halves else c.src(r) for i, r in enumerate(roles)]
    saturated = c.ins.has("SAT")
    out = c.dst_last() if saturated else c.vtemp()
    with rounding(c):
        c.emit(op, out, *args, clamp=saturated, **c.fneg(*roles))
    if not saturated:
        one_nan(c, c.dst_last(), out, Nan.SINGLE)


def fhadd(c: RuleEmitter) -> None:
    _mixed(c, "v_add_f32", 1)


def fhfma(c: RuleEmitter) -> None:
    _mixed(c, "v_fma_f32", 2)


# The modifiers that each rule translates or refuses.
KNOWN: Mapping[str, str] = {
    "FADD2": f"FTZ {ROUND}",
    "FMUL2": f"FTZ FMZ {ROUND}",
    "FFMA2": f"FTZ FMZ {ROUND}",
    "FHADD": f"BF16 SAT {ROUND}",
    "FHFMA": f"BF16 SAT {ROUND}",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("fadd2", "FADD2", fadd2),
    Rule("fmul2", "FMUL2", fmul2),
    Rule("ffma2", "FFMA2", ffma2),
    Rule("fhadd", "FHADD", fhadd),
    Rule("ufhadd", "UFHADD", fhadd),
    Rule("fhfma", "FHFMA", fhfma),
    Rule("ufhfma", "UFHFMA", fhfma),
)
