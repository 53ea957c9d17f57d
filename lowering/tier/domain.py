"""The domain of the semantics over LLVM values of one lane of an AMD GPU.

A float operation is one LLVM instruction without fast-math flags where LLVM has it exactly;
roundings other than to nearest are computed (`sassxlate.lowering.llvm.softfloat`), or refused.
"""

from __future__ import annotations

from sassxlate.domain.interface import Approximation, FloatPredicate, Fp, Round
from sassxlate.lowering.llvm import softfloat
from sassxlate.lowering.llvm.ir_text import Function, Val
from sassxlate.lowering.llvm.lanes import LlvmLanes, float_type
from sassxlate.lowering.tier.refusal import FORM, refused

_APPROXIMATIONS: dict[Approximation, str] = {
    "rcp": "rcp", "rsq": "rsq", "sqrt": "sqrt", "exp2": "exp2", "log2": "log", "sin": "sin",
    "cos": "cos",
}  # fmt: skip
_INFINITY = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF << 52}
_MAGNITUDE = {16: 0x7FFF, 32: 0x7FFFFFFF, 64: (1 << 63) - 1}


class LaneDomain(LlvmLanes):
    """`Domain[Val]` over the current block of a function of one lane.

    ``any_nan``: a NaN result may be any NaN: its bits are not observed before they are repaired
    (:mod:`sassxlate.lowering.nans.bits`).  ``payloads``: doubles pass on the NaN of an operand.
    """

    def __init__(self, fn: Function, *, avx512: bool = False, seed_offset: int = 0) -> None:
        super().__init__(fn, avx512=avx512, seed_offset=seed_offset)
        self.payloads = True
        self.any_nan = False
        self._magnitude_of: dict[str, Val] = {}
        self._nan_test_of: dict[str, Val] = {}

    # -- tests for NaN ----------------------------------------------------------------------------

    def and_(self, a: Val, b: Val) -> Val:
        out = super().and_(a, b)
        if a.const is None and b.const is not None and b.const == _MAGNITUDE.get(a.width):
            self._magnitude_of[out.ref] = a
        return out

    def ult(self, a: Val, b: Val) -> Val:
        """An integer comparison with infinity is LLVM's test for NaN."""
        tested = self._magnitude_of.get(b.ref)
        if tested is not None and a.const == _INFINITY[b.width]:
            out = self.fcmp("uno", tested, tested)
            self._nan_test_of[out.ref] = tested
            return out
        return super().ult(a, b)

    def select(self, c: Val, a: Val, b: Val) -> Val:
        """Without the choice of a NaN where any NaN will do."""
        if self.any_nan and a.const is not None and self._nan_test_of.get(c.ref) == b:
            infinity = _INFINITY.get(a.width)
            if infinity is not None and a.const & _MAGNITUDE[a.width] > infinity:
                return b
        return super().select(c, a, b)

    # -- arithmetic -------------------------------------------------------------------------------

    def _flushed(self, fp: Fp, *args: Val) -> list[Val]:
        return [self._flush(a) if fp.flush_in else a for a in args]

    def _flush(self, a: Val) -> Val:
        from sassxlate.domain.interface import flush

        return flush(self, a)

    def _given(self, fp: Fp, value: Val) -> Val:
        return self._flush(value) if fp.flush_out else value

    def _nearest(self, fp: Fp, width: int) -> bool:
        if fp.round != Round.NEAREST and width == 64:
            raise refused(FORM, f"binary64 rounded {fp.round.name.lower()}")
        return fp.round == Round.NEAREST

    def fadd(self, a: Val, b: Val, fp: Fp) -> Val:
        if not self._nearest(fp, a.width):
            return softfloat.fadd(self, a, b, fp)
        return self._given(fp, self.float_op("fadd", *self._flushed(fp, a, b)))

    def fmul(self, a: Val, b: Val, fp: Fp) -> Val:
        if not self._nearest(fp, a.width):
            return softfloat.fmul(self, a, b, fp)
        return self._given(fp, self.float_op("fmul", *self._flushed(fp, a, b)))

    def ffma(self, a: Val, b: Val, c: Val, fp: Fp) -> Val:
        if not self._nearest(fp, a.width):
            return softfloat.ffma(self, a, b, c, fp)
        return self._given(fp, self.float_call("fma", *self._flushed(fp, a, b, c)))

    def fcvt(self, a: Val, width: int, fp: Fp) -> Val:
        return softfloat.fcvt(self, a, width, fp)

    def itof(self, a: Val, width: int, signed: bool, fp: Fp) -> Val:
        if a.width > 32:
            if fp.round != Round.NEAREST or width == 16:
                raise refused(FORM, "this rounding of a 64-bit integer")
            return self.int_to_float(a, width, signed)
        return softfloat.itof(self, a, width, signed, fp)

    def fcmp(self, predicate: FloatPredicate, a: Val, b: Val) -> Val:
        text = f"{self.as_float(a, False)}, {self.as_float(b, False)}"
        return Val(self.fn.emit(f"fcmp {predicate} {float_type(a.width, False)} {text}"), 1, False)

    def frint(self, a: Val, how: Round) -> Val:
        if how == Round.NEAREST:
            return self.float_call("roundeven", a)
        return super().frint(a, how)

    def approx(self, fn: Approximation, a: Val) -> Val:
        if fn == "tanh":
            raise refused(FORM, "MUFU.TANH")
        if a.width == 64 and fn not in ("rcp", "rsq"):
            raise refused(FORM, f"{fn} of binary64")
        return self.float_call(f"amdgcn.{_APPROXIMATIONS[fn]}", a)


__all__ = ["LaneDomain"]
