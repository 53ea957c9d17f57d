"""bf16 in the operations that AMD's processors have: those of binary32.

The semantics round each product and sum to odd in binary32, and that to bf16, so that all is
rounded once.  Rounding to the nearest twice gives the same for a product and for a sum, where it
is one instruction:

* A product of two bf16 has at most 16 significant bits.  If it is 2^-134 or more, its last bit is
  2^-149 or more, so binary32 holds it.  What is smaller is 0 in bf16, whose least number is
  2^-133, and so is what it becomes in binary32, which is at most 2^-134, the middle, and goes to
  the even one.
* A sum of two bf16 whose exponents differ by 15 or less has at most 8 + 15 + 1 significant bits, so
  binary32 holds it.  If they differ by more, the smaller number is below 2^-8 of the larger one's
  last place.  The middle of two bf16 is at least a quarter of that place away from the larger
  number, and binary32 rounds by at most 2^-16 of it: it does not come to the middle.

A product and a sum at once has no such bound: 16 bits of the product may be the middle itself.

A NaN that such an operation gives is a quiet one of its operands', or AMD's own, 0x7fc00000 with
either sign.  Its lower half is 0, as the operands' are, so rounding carries nothing into the upper.
"""

from __future__ import annotations

from sassxlate.domain.interface import IEEE
from sassxlate.lowering.llvm.ir_text import Val
from sassxlate.lowering.tier.numbers import stand_ins
from sassxlate.lowering.tier.numbers.flushing import Flushing

_ONE, _MINUS_ZERO = 0x3F80, 0x8000


class BrainFloats(Flushing):
    """The part of the domain that knows bf16 (:mod:`disasm.sass.semantics.arithmetic.bfloat`).

    ``any_nan``: a NaN result may be any NaN: its bits are not observed before they are repaired
    (:mod:`sassxlate.lowering.nans.bits`).
    """

    any_nan = False

    def bf16_fma(self, a: Val, b: Val, c: Val) -> Val | None:
        """a * b + c; None if it is no product or sum alone."""
        p, q, r = (self.concat(v, self.const(0, 16)) for v in (a, b, c))
        if c.const == _MINUS_ZERO:
            out = self.fmul(p, q, IEEE)
        elif _ONE in (a.const, b.const):
            out = self.fadd(q if a.const == _ONE else p, r, IEEE)
        else:
            return None
        return self._rounded_half(out) if self.any_nan else self.bf16_nearest(out)

    def bf16_nearest(self, a: Val) -> Val:
        """A binary32 number as the nearest bf16; a NaN becomes 0x7fff."""
        return self._rounded_half(self.canonical_single(a, stand_ins.BF16_NAN))

    def _rounded_half(self, a: Val) -> Val:
        """The same of a number, or of a NaN whose lower half is 0, which stays a NaN."""
        odd = self.and_(self.lshr(a, self.const(16, 32)), self.const(1, 32))
        # Above the middle, or at it and odd, it carries.  An infinity stays one, and so does a NaN.
        carried = self.add(self.add(a, odd), self.const(0x7FFF, 32))
        return self.extract(carried, 16, 16)


__all__ = ["BrainFloats"]
