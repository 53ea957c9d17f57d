"""The domain of the semantics over LLVM values of one lane of an AMD GPU.

A float operation is one LLVM instruction without fast-math flags where LLVM has it exactly;
roundings other than to nearest are computed (`sassxlate.lowering.llvm.softfloat`), or refused.
"""

from __future__ import annotations

from collections.abc import Callable

from sassxlate.domain.integers import Bits, Reference
from sassxlate.domain.interface import (
    Approximation,
    FloatPredicate,
    Fp,
    Round,
    fabs,
    flush,
    mantissa_bits,
)
from sassxlate.lowering.llvm import softfloat
from sassxlate.lowering.llvm.ir_text import Function, Val
from sassxlate.lowering.llvm.lanes import float_type
from sassxlate.lowering.tier.numbers import bits, stand_ins
from sassxlate.lowering.tier.numbers.bf16 import BrainFloats
from sassxlate.lowering.tier.numbers.extremes import Extremes, Found
from sassxlate.lowering.tier.numbers.flushing import ANY, NORMAL, SUBNORMAL, ZERO
from sassxlate.lowering.tier.numbers.halves import Halves
from sassxlate.lowering.tier.numbers.hyperbolic import tanh
from sassxlate.lowering.tier.numbers.to_integers import of_double, of_single
from sassxlate.lowering.tier.refusal import FORM, refused

_APPROXIMATIONS: dict[Approximation, str] = {
    "rcp": "rcp", "rsq": "rsq", "sqrt": "sqrt", "exp2": "exp2", "log2": "log", "sin": "sin",
    "cos": "cos",
}  # fmt: skip
_INFINITY = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF << 52}
# The least number that is not below the normal numbers when rounded to their precision, in the
# wider format, and the width of that.
_BORDER = {16: (0x387FF000, 32), 32: (0x380FFFFFF0000000, 64)}
_ONE = 0x3F800000
_REFERENCE = Reference()
_LEAST = {32: 0xCF000000, 64: 0xC1E0000000000000}  # -2**31
_NAN = {16: 0x7FFF, 32: 0x7FFFFFFF}  # NVIDIA's
_MAGNITUDE = {16: 0x7FFF, 32: 0x7FFFFFFF, 64: (1 << 63) - 1}


class LaneDomain(BrainFloats):
    """`Domain[Val]` over the current block of a function of one lane.

    ``payloads``: doubles pass on the NaN of an operand.
    """

    def __init__(self, fn: Function, *, avx512: bool = False, seed_offset: int = 0) -> None:
        super().__init__(fn, avx512=avx512, seed_offset=seed_offset)
        self.payloads = True
        self._magnitude_of: dict[str, Val] = {}
        self._nan_test_of: dict[str, Val] = {}
        self._exponent_of: dict[str, Val] = {}
        self._sign_of: dict[str, Val] = {}
        self._tiny_test_of: dict[str, Val] = {}
        self._field_of: dict[str, Val] = {}
        self._end_test_of: dict[str, tuple[Val, int]] = {}
        self._untruncated: dict[str, Val] = {}
        self._greater_of: dict[str, tuple[Val, int]] = {}
        self._positive_of: dict[str, Val] = {}
        self._canonical_of: dict[str, Val] = {}
        self._narrowed_of: dict[str, Val] = {}
        self.halves = Halves(fn)
        self.extremes = Extremes()
        self._whole_of: dict[str, Val] = {}  # what a number was rounded from
        self._minimum_of: dict[str, tuple[Val, Val]] = {}

    # -- tests for NaN ----------------------------------------------------------------------------

    def and_(self, a: Val, b: Val) -> Val:
        out = super().and_(a, b)
        if a.const is None and b.const is not None and b.const == _MAGNITUDE.get(a.width):
            self._magnitude_of[out.ref] = a
        if a.const is None and a.width == 32 and b.const == _INFINITY[32]:
            self._exponent_of[out.ref] = a
        if a.const is None and a.width == 32 and b.const == 1 << 31:
            self._sign_of[out.ref] = a
        one, other = self._nan_test_of.get(a.ref), self._nan_test_of.get(b.ref)
        if one is not None and other is not None:
            self.extremes.tested(out, one, other)
        if out.const is None:
            self.extremes.joined(out, "and", a, b)
        return out

    def eq(self, a: Val, b: Val) -> Val:
        """A test of all bits of an exponent is one of the number's class."""
        tested = self._exponent_of.get(a.ref)
        if tested is not None and b.const == 0:
            out = self.is_class(tested, ZERO | SUBNORMAL)
            self._tiny_test_of[out.ref] = tested
            return out
        if a.const is not None and b.const is not None:  # whether a constant is flushed
            return self.const(int(a.const == b.const), 1)
        out = super().eq(a, b)
        tested = self._field_of.get(a.ref)
        if tested is not None and b.const in (0, 255):
            self._end_test_of[out.ref] = (tested, b.const)
        return out

    def extract(self, a: Val, lo: int, width: int) -> Val:
        out = super().extract(a, lo, width)
        if a.const is None and (a.width, lo, width) == (32, 23, 8):
            self._field_of[out.ref] = a
        if a.const is None and a.width == 32 and width == 16 and lo in (0, 16):
            self.halves.extracted(out, a, lo)
        return out

    def or_(self, a: Val, b: Val) -> Val:
        one, other = self._end_test_of.get(a.ref), self._end_test_of.get(b.ref)
        if one is not None and other is not None and one[0] == other[0] and one[1] != other[1]:
            return self.is_class(one[0], ANY & ~NORMAL)
        out = super().or_(a, b)
        if out.const is None:
            self.extremes.joined(out, "or", a, b)
        return out

    def ult(self, a: Val, b: Val) -> Val:
        """An integer comparison with infinity is LLVM's test for NaN."""
        if a.const is not None and b.const is not None:  # a shift's count is told by it
            return self.const(int(a.const < b.const), 1)
        tested = self._magnitude_of.get(b.ref)
        if tested is not None and a.const == _INFINITY[b.width]:
            out = self.fcmp("uno", tested, tested)
            self._nan_test_of[out.ref] = tested
            return out
        return super().ult(a, b)

    def select(self, c: Val, a: Val, b: Val) -> Val:
        """Without the choice of a NaN where any NaN will do, and without a flush of what is
        flushed."""
        tiny = self._tiny_test_of.get(c.ref)
        if tiny == b and b == self._sign_of.get(a.ref):  # as `flush` writes it
            if b.ref in self.no_denormal:
                return b
            out = super().select(c, a, b)
            self.flushed_of[out.ref] = b
            return out
        tested = self._nan_test_of.get(c.ref)
        number, words = self._minimum_of.get(b.ref, (None, b))
        if number is not None and tested == number and a.const == 1 << b.width - 1:
            if b.width == 64:
                return words  # as the conversion gives it for NaN
            least = self.const(_LEAST[words.width], words.width)
            return stand_ins.converted(self.fn, self.float_call("maximumnum", words, least), True)
        if a.const is not None and tested in (b, self._narrowed_of.get(b.ref, b)):
            infinity = _INFINITY.get(a.width)
            nan = infinity is not None and a.const & _MAGNITUDE[a.width] > infinity
            if nan and self.any_nan:
                return b
            if nan and a.const == _NAN.get(a.width):
                return self.canonical(b)
        if a.const is not None and a.const == _NAN.get(a.width) and self.extremes.none(c, b):
            return b if self.any_nan else self.canonical(b)
        if a.width == 32 and c.ref in self._greater_of:
            return self._saturated(c, a, b)
        out = super().select(c, a, b)
        if a != b and c.const is None:
            found = self.extremes.chosen(out, c, a, b, tested)
            if found is not None:
                return self._extreme(found)
        return out

    def _extreme(self, found: Found) -> Val:
        which, a, b = found
        out = self.float_call(which, *self.unflushed(a, b))
        if self.flushes and out.width == 32:
            out = self.by_mode(out)
        self.extremes.made(out, found)
        if out.width == 16:
            self.halves.made(out, which, a, b)
        return out

    def _saturated(self, c: Val, a: Val, b: Val) -> Val:
        """A choice between a number and a bound of it: both are the clamp of an instruction."""
        number, bound = self._greater_of[c.ref]
        out = super().select(c, a, b)
        if bound == 0 and a == number and b.const == 0:
            self._positive_of[out.ref] = number
        positive = self._positive_of.get(b.ref)
        if positive is not None and bound == _ONE and a.const == _ONE and b == number:
            # Of a signaling NaN, RDNA4's instruction and LLVM give the last source: 0, as for any.
            self.fn.module.declare("float @llvm.amdgcn.fmed3.f32(float, float, float)")
            given = f"float {self.as_float(positive, False)}, float 1.0, float 0.0"
            return self.from_float(
                self.fn.emit(f"call float @llvm.amdgcn.fmed3.f32({given})"), 32, False
            )
        return out

    def canonical(self, a: Val) -> Val:
        """A binary32 number or a half whose NaN is NVIDIA's."""
        if a.width == 16:
            pair = stand_ins.canonical_halves(self.fn, self.zext(a, 32))
            out = super().extract(pair, 0, 16)
            self._canonical_of[out.ref] = a
            return out
        return self.canonical_single(a)

    def concat(self, hi: Val, lo: Val) -> Val:
        """Two halves are computed by one instruction, and their NaN repaired by one."""
        one, other = self._canonical_of.get(hi.ref), self._canonical_of.get(lo.ref)
        if one is not None and other is not None:
            return stand_ins.canonical_halves(self.fn, self.concat(one, other))
        if hi.ref in self._narrowed_of and lo.ref in self._narrowed_of:
            return Val(self.halves.joined(hi, lo), 32, False)
        packed = self.halves.packed(hi, lo) if hi.width == lo.width == 16 else None
        if packed is not None:
            return Val(packed, 32, False)
        return super().concat(hi, lo)

    def xor(self, a: Val, b: Val) -> Val:
        out = super().xor(a, b)
        if a.const is None and a.width == 16 and b.const == 0x8000:
            self.halves.negated(out, a)
        return out

    def table3(self, table: int, a: Val, b: Val, c: Val) -> Val:
        return bits.bitwise(self, table, a, b, c)

    def funnel(self, how: bits.Shift, hi: Val, lo: Val, count: Val, *, high: bool) -> Val | None:
        return bits.funnel(self, how, hi, lo, count, count.const, high=high)

    # -- arithmetic -------------------------------------------------------------------------------

    def _sources(self, fp: Fp, *args: Val) -> list[Val]:
        """The sources of an operation, flushed where the function's mode does not do it."""
        if args[0].width == 32 and self.flushes:
            self.only_flushed(fp, args)
            return list(args)
        return [flush(self, a) if fp.flush_in else a for a in args]

    def _given(self, fp: Fp, value: Val) -> Val:
        if value.width == 32 and self.flushes:
            return self.by_mode(value)
        return flush(self, value) if fp.flush_out else value

    def _product(self, fp: Fp, value: Val, exact: Callable[[], Val]) -> Val:
        """A product, or product and sum, as .FTZ gives it: zero if it is below the normal numbers
        once it is rounded to their precision.

        ``value`` has that rounded among the denormal numbers: if it is the smallest normal number,
        ``exact`` in the wider format decides, rounded to odd.
        """
        width = value.width
        if width == 32 and self.flushes:
            return self.by_mode(value)
        if not fp.flush_out:
            return value
        if width == 64:
            raise refused(FORM, "a product of binary64 with .FTZ")
        fn, least = self.fn, 1 << mantissa_bits(width)
        border = self.eq(fabs(self, value), self.const(least, width))
        before, rare, after = fn.fresh("product"), fn.fresh("rare"), fn.fresh("flushed")
        fn.do(f"br label %{before}")
        fn.label(before, keep=True)
        # Lanes whose guard is false compute, too, from registers that may hold anything.
        known = fn.emit(f"freeze i1 {border.ref}")
        fn.do(f"br i1 {known}, label %{rare}, label %{after}")
        with fn.arm(rare):
            tiny = self.fcmp("olt", fabs(self, exact()), self.const(*_BORDER[width]))
            zero = self.and_(value, self.const(1 << (width - 1), width))
            other = self.select(tiny, zero, value)
            fn.do(f"br label %{after}")
        fn.label(after, keep=True)
        kind = f"i{width}"
        ref = fn.emit_new(f"phi {kind} [ {value.ref}, %{before} ], [ {other.ref}, %{rare} ]")
        return flush(self, Val(ref, width, False))

    def _folded(self, op: str, fp: Fp, *args: Val) -> Val | None:
        """The result for constants: LLVM does not look into instructions that stand in."""
        known = [Bits(a.const, a.width) for a in args if a.const is not None]
        if len(known) < len(args):
            return None
        made: Bits = getattr(_REFERENCE, op)(*known, fp)
        return self.const(made.n, made.w)

    def fadd(self, a: Val, b: Val, fp: Fp) -> Val:
        if (known := self._folded("fadd", fp, a, b)) is not None:
            return known
        if (other := self.in_other_mode("add", fp, a, b)) is not None:
            return other
        if fp.round != Round.NEAREST:
            if a.width >= 32:
                return self._given(fp, self._rounded("add", fp, *self._sources(fp, a, b)))
            return softfloat.fadd(self, a, b, fp)
        a, b = self._sources(fp, a, b)
        out = self.float_op("fadd", a, b)
        self._kept_half(fp, out, "fadd", a, b)
        if self.of_halves((a, b)):
            self.no_denormal.add(out.ref)
            return out
        return self._given(fp, out)

    def _kept_half(self, fp: Fp, out: Val, op: str, *args: Val) -> None:
        if out.width == 16 and not fp.flush_out:
            self.halves.made(out, op, *args)

    def fmul(self, a: Val, b: Val, fp: Fp) -> Val:
        if (known := self._folded("fmul", fp, a, b)) is not None:
            return known
        if (other := self.in_other_mode("mul", fp, a, b)) is not None:
            return other
        if fp.round != Round.NEAREST:
            self._only_kept(fp, a.width)
            if a.width >= 32:
                return self._rounded("mul", fp, *self._sources(fp, a, b))
            return softfloat.fmul(self, a, b, fp)
        a, b = self._sources(fp, a, b)
        near = self.float_op("fmul", a, b)
        self._kept_half(fp, near, "fmul", a, b)
        return self._product(
            fp,
            near,
            lambda: self.float_op("fmul", self._wide(a), self._wide(b)),
        )

    def ffma(self, a: Val, b: Val, c: Val, fp: Fp) -> Val:
        if (known := self._folded("ffma", fp, a, b, c)) is not None:
            return known
        if (other := self.in_other_mode("fma", fp, a, b, c)) is not None:
            return other
        if fp.round != Round.NEAREST:
            self._only_kept(fp, a.width)
            if a.width >= 32:
                return self._rounded("fma", fp, *self._sources(fp, a, b, c))
            return softfloat.ffma(self, a, b, c, fp)
        a, b, c = self._sources(fp, a, b, c)

        def exact() -> Val:
            product = self.float_op("fmul", self._wide(a), self._wide(b))
            return softfloat.odd_sum(self, product, self._wide(c))

        near = self.float_call("fma", a, b, c)
        self._kept_half(fp, near, "fma", a, b, c)
        return self._product(fp, near, exact)

    def _wide(self, a: Val) -> Val:
        return self.float_convert("fpext", a, 2 * a.width)

    def _rounded(self, op: stand_ins.Operation, fp: Fp, *args: Val) -> Val:
        return stand_ins.rounded(self.fn, op, fp.round, *args)

    def _only_kept(self, fp: Fp, width: int) -> None:
        if fp.flush_out and not (width == 32 and self.flushes):
            raise refused(FORM, "a product with .FTZ rounded otherwise than to nearest")

    def fcvt(self, a: Val, width: int, fp: Fp) -> Val:
        narrows = width < a.width
        if narrows and fp.flush_out:
            raise refused(FORM, "a narrowing conversion with .FTZ")
        keeps = not fp.flush_in and (not narrows or fp.round != Round.NEAREST)
        if self.flushes and a.width == 32 and keeps:
            raise refused(FORM, "a conversion without .FTZ beside operations with it")
        if self.flushes and narrows and width == 32:
            raise refused(FORM, "a conversion to binary32 beside operations with .FTZ")
        if a.const is not None and a.const & _MAGNITUDE[a.width] <= _INFINITY[a.width]:
            made = _REFERENCE.fcvt(Bits(a.const, a.width), width, fp)
            out = self.const(made.n, made.w)
            if a.width == 16:
                self.of_half(out)
            return out
        (a,) = self.unflushed(a) if narrows else (a,)
        out = softfloat.fcvt(self, a, width, fp)
        if a.width == 16:
            self.of_half(out)
        if narrows and a.width == 32 and fp.round == Round.NEAREST:  # gives a NaN for a NaN
            self._narrowed_of[out.ref] = a
        return out

    def itof(self, a: Val, width: int, signed: bool, fp: Fp) -> Val:
        if a.width > 32:
            if width == 32 and fp.round == Round.UP:
                return self._upwards(a, self.int_to_float(a, 32, signed), signed)
            if fp.round != Round.NEAREST or width == 16:
                raise refused(FORM, "this rounding of a 64-bit integer")
            return self.int_to_float(a, width, signed)
        if fp.round != Round.NEAREST and width == a.width == 32 and a.const is None:
            return stand_ins.from_integer(self.fn, a, signed, fp.round)
        return softfloat.itof(self, a, width, signed, fp)

    def _upwards(self, a: Val, near: Val, signed: bool) -> Val:
        """The least binary32 number that is not below an integer, from the nearest one."""
        back = self.ftoi(near, a.width, signed)  # saturated: then it is not below
        below = self.slt(back, a) if signed else self.ult(back, a)
        one = self.const(1, 32)
        negative = self.slt(near, self.const(0, 32))
        above = self.select(negative, self.sub(near, one), self.add(near, one))
        return self.select(below, above, near)

    def float_convert(self, op: str, a: Val, width: int) -> Val:
        """fpext or fptrunc.

        LLVM 22 makes v_fma_mixlo_f16 with +0 as addend of a product that is narrowed to a half: -0
        became +0.  It does not look through a constrained fptrunc.
        """
        if op != "fptrunc" or width != 16:
            return super().float_convert(op, a, width)
        kind = float_type(a.width, False)
        name = f"@llvm.experimental.constrained.fptrunc.f16.f{a.width}"
        self.fn.module.declare(f"half {name}({kind}, metadata, metadata)")
        given = f'{kind} {self.as_float(a, False)}, metadata !"round.tonearest"'
        text = f'call half {name}({given}, metadata !"fpexcept.ignore") strictfp'
        return self.from_float(self.fn.emit(text), 16, False)

    def fcmp(self, predicate: FloatPredicate, a: Val, b: Val) -> Val:
        p, q = self.compared(predicate, a, b)
        text = f"{self.as_float(p, False)}, {self.as_float(q, False)}"
        kind = float_type(a.width, False)
        out = Val(self.fn.emit(f"fcmp {predicate} {kind} {text}"), 1, False)
        if predicate == "ogt" and a.width == 32 and b.const is not None:
            self._greater_of[out.ref] = a, b.const
        self.extremes.compared(out, predicate, a, b)
        return out

    def frint(self, a: Val, how: Round) -> Val:
        if how in (Round.UP, Round.DOWN):
            self.only_of_flushed(a)
        out = self.float_call("roundeven", a) if how == Round.NEAREST else super().frint(a, how)
        self._whole_of[out.ref] = a
        if how == Round.ZERO:
            self._untruncated[out.ref] = a
        return out

    def ftoi(self, a: Val, width: int, signed: bool) -> Val:
        """Conversions round towards zero themselves."""
        if width == 64 and a.width >= 32:
            return self._to_words(a, signed)
        number = self._whole_of.get(a.ref, a)
        if a.ref in self._untruncated:  # denormal numbers become 0, flushed before or not
            a = self._untruncated[a.ref]
            a = self.flushed_of.get(a.ref, a)
        if width != 32:
            return super().ftoi(a, width, signed)
        if a.width == 16:
            a = self.float_convert("fpext", a, 32)
        out = stand_ins.converted(self.fn, a, signed)
        if signed:
            self._minimum_of[out.ref] = number, a
        return out

    def _to_words(self, a: Val, signed: bool) -> Val:
        """Both words of an integer; a NaN gives 0, unless the semantics choose otherwise."""
        whole = a if a.ref in self._whole_of else self.frint(a, Round.ZERO)
        out = (of_double if a.width == 64 else of_single)(self, whole, signed=signed)
        if not signed:
            return out
        none = self.select(self.fcmp("uno", whole, whole), self.const(0, 64), out)
        self._minimum_of[none.ref] = self._whole_of.get(a.ref, a), out
        return none

    def approx(self, fn: Approximation, a: Val) -> Val:
        """Of binary32, AMD's unit flushes the arguments and results of all but sine and cosine,
        whose results are no denormal numbers if the arguments are none.

        LLVM 22 folds the reciprocal of a constant without it: the argument is hidden.
        """
        if fn == "tanh":
            return tanh(self, a)
        if a.width == 64 and fn not in ("rcp", "rsq"):
            raise refused(FORM, f"{fn} of binary64")
        kind = float_type(a.width, False)
        name = f"@llvm.amdgcn.{_APPROXIMATIONS[fn]}.f{a.width}"
        self.fn.module.declare(f"{kind} {name}({kind})")
        if a.width == 32 and fn not in ("sin", "cos"):
            a = self.flushed_of.get(a.ref, a)
        given = self.as_float(a, False)
        if a.width == 32 and fn == "rcp":
            given = self.hidden(given)
        out = self.from_float(self.fn.emit(f"call {kind} {name}({kind} {given})"), a.width, False)
        if a.width == 32:
            self.no_denormal.add(out.ref)
        return out


__all__ = ["LaneDomain"]
