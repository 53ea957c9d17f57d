"""The LLVM domain of the semantics: a value is an i`width`, or a vector of 32 of them.

The two may be mixed: a scalar combined with a vector is splatted, and a computation on scalars
alone stays scalar.  Rounding to nearest even with denormals kept is one instruction; every other
mode is computed here (`softfloat`), never by the host's control register.
"""

from __future__ import annotations

from sassxlate.domain.interface import IEEE, Approximation, Fp
from sassxlate.lowering.llvm import by_halves, softfloat, transcendental, wide
from sassxlate.lowering.llvm.ir_text import Val
from sassxlate.lowering.llvm.lanes import LlvmLanes


class LlvmDomain(LlvmLanes):
    """`Domain[Val]` over the current block of a function."""

    def whole(self, hi: Val, lo: Val) -> Val | None:
        return wide.whole(self, hi, lo)

    def low_half(self, a: Val) -> Val | None:
        return wide.low_half(self, a)

    def by_halves(self, op: str, a: Val, b: Val) -> Val | None:
        if op in ("lshr", "ashr"):
            return by_halves.shifted_right(self, op, a, b)
        return by_halves.compared(self, op, a, b)

    def fadd(self, a: Val, b: Val, fp: Fp) -> Val:
        if fp == IEEE and a.width != 16:
            return self.float_op("fadd", a, b)
        return softfloat.fadd(self, a, b, fp)

    def fmul(self, a: Val, b: Val, fp: Fp) -> Val:
        if fp == IEEE and a.width != 16:
            return self.float_op("fmul", a, b)
        return softfloat.fmul(self, a, b, fp)

    def ffma(self, a: Val, b: Val, c: Val, fp: Fp) -> Val:
        if fp == IEEE and a.width != 16:
            return self.float_call("fma", a, b, c)
        return softfloat.ffma(self, a, b, c, fp)

    def fcvt(self, a: Val, width: int, fp: Fp) -> Val:
        return softfloat.fcvt(self, a, width, fp)

    def itof(self, a: Val, width: int, signed: bool, fp: Fp) -> Val:
        return softfloat.itof(self, a, width, signed, fp)

    def approx(self, fn: Approximation, a: Val) -> Val:
        out = transcendental.approx(self, fn, a)
        return transcendental.perturb(self, fn, a, out) if self.perturbed else out
