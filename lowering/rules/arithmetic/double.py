"""Arithmetic of doubles: plain, and with the NaN that NVIDIA propagates.

NVIDIA propagates the NaN of Rb before that of Rc before that of Ra, quieted, with the sign that it
has in the register regardless of ``-`` and ``|x|``, and makes 0xfff8000000000000 for an invalid
operation (measured: docs/errata.md).  No manual states which operand's NaN AMD's units propagate.
So if the bits of the result are observable (``NanBits.exact``), a wave with a NaN among its results
runs code that chooses it; other waves jump over that.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from sassxlate.disasm.rdna3.instruction import Arg, I, V
from sassxlate.disasm.sass.instruction import Imm, Instruction, Reg
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.builder.sources import part
from sassxlate.lowering.rules.arithmetic.compare import float_bits
from sassxlate.lowering.rules.arithmetic.modes import rounding
from sassxlate.lowering.rules.modifiers import ROUND
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import VCC, ZERO

_DEFAULT = I(0xFFF80000)  # the high word of an invalid operation's NaN
_QUIET = I(0x00080000)
_MUFU_HIGH = {"RCP64H": "v_rcp_f64", "RSQ64H": "v_rsq_f64"}


def seen(c: RuleEmitter) -> bool:
    """Whether the bits of the result's NaN are observable."""
    return c.ins.offset in c.k.nans.exact


def _arithmetic(c: RuleEmitter, op: str, roles: Sequence[str], order: Sequence[str]) -> None:
    """``order``: the operands whose NaN is propagated, the last one first."""
    args = {role: c.src64(role) for role in roles}
    sources = [args[role] for role in order if _may_be_nan(c, role)]
    with _result(c, sources) as out, rounding(c):
        c.emit(op, out, *args.values(), **c.fneg(*roles))


@contextmanager
def _result(c: RuleEmitter, sources: Sequence[Arg]) -> Generator[V]:
    """The register to write the result to; afterwards its NaN becomes that of the last of
    ``sources`` that is NaN."""
    dst = c.dst_last()
    if not seen(c):
        yield dst
        return
    kept = any(isinstance(a, V) and abs(a.index - dst.index) < 2 for a in sources)
    out = c.vtemp(2) if kept else dst
    yield out
    _choose(c, out, sources)
    if kept:
        for n in range(2):
            c.emit("v_mov_b32", part(dst, n), part(out, n))


def _may_be_nan(c: RuleEmitter, role: str) -> bool:
    """Immediates are not tested: the code must be the same for all of their values."""
    operand = c.operand(role)
    return not (isinstance(operand, Reg) and operand.is_zero)


def _choose(c: RuleEmitter, out: V, sources: Sequence[Arg]) -> None:
    """The result; its NaN becomes that of the last of ``sources`` that is NaN."""
    done, nan, chosen = c.k.label("number"), c.stemp(), c.vtemp(2)
    c.emit("v_cmp_u_f64", VCC, out, out)
    c.branch("s_cbranch_vccz", done)
    first: list[Arg] = [ZERO, _DEFAULT]
    for n, source in enumerate(sources):
        if source in sources[n + 1 :]:
            continue
        c.emit("v_cmp_u_f64", nan, source, source)
        for word in range(2):
            other = c.to_v(part(source, word))
            c.emit("v_cndmask_b32", part(chosen, word), first[word], other, nan)
        first = [part(chosen, 0), part(chosen, 1)]
    c.emit("v_or_b32", part(chosen, 1), _QUIET, first[1])
    for word, value in ((0, first[0]), (1, part(chosen, 1))):
        c.emit("v_cndmask_b32", part(out, word), part(out, word), c.to_v(value), VCC)
    c.mark(done)


def round_to_integral(c: RuleEmitter, op: str) -> None:
    """FRND.F64 without .FTZ, whose input differs from the value propagated."""
    _arithmetic(c, op, ("Rb",), ("Rb",))


def round_flushed(c: RuleEmitter, op: str, value: V) -> None:
    """The same with .FTZ: ``value`` is Rb, flushed and with its signs."""
    with _result(c, [c.src64("Rb")] if _may_be_nan(c, "Rb") else []) as out:
        c.emit(op, out, value)


def dadd(c: RuleEmitter) -> None:
    _arithmetic(c, "v_add_f64", ("Ra", "Rb"), ("Ra", "Rb"))


def dmul(c: RuleEmitter) -> None:
    _arithmetic(c, "v_mul_f64", ("Ra", "Rb"), ("Ra", "Rb"))


def dfma(c: RuleEmitter) -> None:
    _arithmetic(c, "v_fma_f64", ("Ra", "Rb", "Rc"), ("Ra", "Rc", "Rb"))


def mufu_high(c: RuleEmitter) -> None:
    """RCP64H, RSQ64H: the high word of an approximation, from the high word of a double.

    Denormals are flushed, as in PTX's rcp.approx.ftz.f64 and on an H200.
    """
    name = next(m for m in c.ins.modifiers if m in _MUFU_HIGH)
    word = 1 if isinstance(c.operand("Rb"), Imm) else 0  # an immediate is the high word itself
    pair, out = c.vtemp(2), c.vtemp(2)
    c.emit("v_mov_b32", V(pair.index), ZERO)
    _flush_high(c, V(pair.index + 1), c.to_v(float_bits(c, "Rb", word)))
    c.emit(_MUFU_HIGH[name], out, pair)
    if name == "RSQ64H":  # its result is never denormal
        high = V(out.index + 1)
    else:
        high = c.vtemp() if seen(c) else c.dst_last()
        _flush_high(c, high, V(out.index + 1))
    if seen(c):
        high = _nan_of_high(c, high, out, pair)
    if seen(c) or name == "RSQ64H":
        c.emit("v_mov_b32", c.dst_last(), high)


def _nan_of_high(c: RuleEmitter, high: V, out: V, source: V) -> V:
    """The high word of a result: for a NaN source, the source quieted; for any other NaN, the
    default."""
    nan, quiet, first, chosen = c.stemp(), c.vtemp(), c.vtemp(), c.vtemp()
    c.emit("v_cmp_u_f64", nan, out, out)
    c.emit("v_cndmask_b32", first, high, c.to_v(_DEFAULT), nan)
    c.emit("v_cmp_u_f64", nan, source, source)
    c.emit("v_or_b32", quiet, _QUIET, part(source, 1))
    c.emit("v_cndmask_b32", chosen, first, quiet, nan)
    return chosen


def _flush_high(c: RuleEmitter, dst: V, high: V) -> None:
    """The high word of a double; only its sign if the exponent is 0."""
    piece, tiny = c.vtemp(), c.stemp()
    c.emit("v_and_b32", piece, I(0x7FF00000), high)
    c.emit("v_cmp_eq_u32", tiny, ZERO, piece)
    c.emit("v_and_b32", piece, I(0x80000000), high)
    c.emit("v_cndmask_b32", dst, high, piece, tiny)


def _is_high(ins: Instruction) -> bool:
    return any(ins.has(m) for m in _MUFU_HIGH)


KNOWN: Mapping[str, str] = {
    "DADD": ROUND,
    "DMUL": ROUND,
    "DFMA": ROUND,
    "MUFU": "RCP64H RSQ64H",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("dadd", "DADD", dadd),
    Rule("dmul", "DMUL", dmul),
    Rule("dfma", "DFMA", dfma),
    Rule("mufu_high", "MUFU", mufu_high, _is_high),
)
