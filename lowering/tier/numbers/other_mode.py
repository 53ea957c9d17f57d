"""Single operations on binary32 numbers that flush denormal ones in a function that keeps them, or
keep them in one that flushes."""

from __future__ import annotations

from sassxlate.domain.interface import Fp, Round
from sassxlate.lowering.llvm.ir_text import Function, Val
from sassxlate.lowering.tier.numbers import stand_ins
from sassxlate.lowering.tier.numbers.vectors import Vectors


class OtherMode(Vectors):
    """The part of the domain that knows the function's mode: ``flushes`` says whether it flushes
    binary32 numbers; ``no_denormal`` are values that are none."""

    def __init__(self, fn: Function, *, avx512: bool = False, seed_offset: int = 0) -> None:
        super().__init__(fn, avx512=avx512, seed_offset=seed_offset)
        self.flushes = False
        self.no_denormal: set[str] = set()
        self._of_other_mode: set[str] = set()

    def in_other_mode(self, op: stand_ins.Operation, fp: Fp, *args: Val) -> Val | None:
        """A sum or product that the function's mode would not give; None if it would, or if it is
        another operation than these."""
        if args[0].width != 32 or fp.round != Round.NEAREST or fp.flush_in != fp.flush_out:
            return None
        if fp.flush_out == self.flushes:
            return None
        out = stand_ins.otherwise(self.fn, op, *args)
        (self.no_denormal if fp.flush_out else self._of_other_mode).add(out.ref)
        return out

    def canonical_single(self, a: Val, nan: int = stand_ins.SINGLE_NAN) -> Val:
        """A binary32 number with this NaN for all; denormal numbers are kept."""
        other = a.ref in self._of_other_mode
        if self.flushes and not other and a.ref not in self.no_denormal:
            return super().select(self.fcmp("uno", a, a), self.const(nan, 32), a)
        return stand_ins.canonical(self.fn, a, nan=nan, other_mode=other)


__all__ = ["OtherMode"]
