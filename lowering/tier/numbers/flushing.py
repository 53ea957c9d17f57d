"""Denormal binary32 numbers: what the function's mode does with them, so that no code has to, what
LLVM must not see of it, and single operations that need the other mode.

A mode that flushes does it to the sources of every operation, comparison and minimum, and to
results.  LLVM 22 takes it into account but for one case: it makes x == 0 of a test for zeros and
denormal numbers, and a comparison of integers of x == 0 if x is an integer's bits; denormal numbers
are not 0 there.  (It takes such tests, too, from |x| <= 0 and from numbers that it finds to be 0
only later.)
"""

from __future__ import annotations

from collections.abc import Sequence

from sassxlate.domain.interface import FloatPredicate, Fp, Round
from sassxlate.lowering.llvm.ir_text import Function, Val
from sassxlate.lowering.tier.numbers import stand_ins
from sassxlate.lowering.tier.numbers.vectors import Vectors
from sassxlate.lowering.tier.refusal import FORM, refused

# Bits of llvm.is.fpclass, of both signs.
NORMAL, SUBNORMAL, ZERO, ANY = 0x108, 0x90, 0x60, 0x3FF
_EXPONENT, _MAGNITUDE = 0x7F800000, 0x7FFFFFFF
_EQUALITY = ("oeq", "une", "ueq", "one")


class Flushing(Vectors):
    """The part of the domain that knows the function's mode: ``flushes`` says whether it flushes
    binary32 numbers; ``no_denormal`` are values that are none."""

    def __init__(self, fn: Function, *, avx512: bool = False, seed_offset: int = 0) -> None:
        super().__init__(fn, avx512=avx512, seed_offset=seed_offset)
        self.flushes = False
        self.no_denormal: set[str] = set()
        self._of_other_mode: set[str] = set()
        self.flushed_of: dict[str, Val] = {}  # what was flushed by code
        self._absolute: set[str] = set()
        self._halves: set[str] = set()  # numbers that a half may be

    def and_(self, a: Val, b: Val) -> Val:
        out = super().and_(a, b)
        if a.width == 32 and b.const == _MAGNITUDE:
            self._absolute.add(out.ref)
            if a.ref in self.no_denormal:
                self.no_denormal.add(out.ref)
        return out

    def is_class(self, a: Val, which: int) -> Val:
        """A test of a binary32 number's class, whatever the function's mode."""
        number = self.as_float(a, False)
        if self.flushes:
            number = self.hidden(number)
        self.fn.module.declare("i1 @llvm.is.fpclass.f32(float, i32 immarg)")
        given = f"float {number}, i32 {which}"
        return Val(self.fn.emit(f"call i1 @llvm.is.fpclass.f32({given})"), 1, False)

    def hidden(self, number: str) -> str:
        """A binary32 number that LLVM does not look through, by a move that means nothing outside
        of graphics.  (With llvm.arithmetic.fence LLVM ends where the value is computed and the same
        in all lanes: "illegal VGPR to SGPR copy".)"""
        self.fn.module.declare("float @llvm.amdgcn.softwqm.f32(float)")
        return self.fn.emit(f"call float @llvm.amdgcn.softwqm.f32(float {number})")

    def by_mode(self, value: Val) -> Val:
        """A result that the function's mode flushes.  LLVM makes x of x + -0 and x * 1, where the
        mode flushes nothing; only an operation that remains needs no further instruction."""
        out = self.float_call("canonicalize", value)
        self.no_denormal.add(out.ref)
        return out

    def same_number(self, ref: str, value: Val) -> None:
        """``ref`` is that value, read from where it was stored."""
        if value.ref in self.no_denormal:
            self.no_denormal.add(ref)

    def of_half(self, value: Val) -> None:
        """A half as a wider number."""
        self._halves.add(value.ref)
        self.no_denormal.add(value.ref)

    def in_other_mode(self, op: stand_ins.Operation, fp: Fp, *args: Val) -> Val | None:
        """A sum or product that the function's mode would not give; None if it would, or if it is
        another operation than these."""
        if args[0].width != 32 or fp.round != Round.NEAREST or fp.flush_in != fp.flush_out:
            return None
        if fp.flush_out == self.flushes or self.of_halves(args):
            return None
        out = stand_ins.otherwise(self.fn, op, *args)
        (self.no_denormal if fp.flush_out else self._of_other_mode).add(out.ref)
        return out

    def canonical_single(self, a: Val, nan: int = stand_ins.SINGLE_NAN) -> Val:
        """A binary32 number with this NaN for all; denormal numbers are kept."""
        other = a.ref in self._of_other_mode
        if self.flushes and not other and a.ref not in self.no_denormal:
            return super().select(self.fcmp("uno", a, a), self.const(nan, 32), a)
        out = stand_ins.canonical(self.fn, a, nan=nan, other_mode=other)
        if other:
            self._of_other_mode.add(out.ref)
        elif a.ref in self.no_denormal:
            self.no_denormal.add(out.ref)
        return out

    def of_halves(self, sources: Sequence[Val]) -> bool:
        """Whether a sum or product is of two halves.  Those are multiples of 2**-24 and 2**-48, so
        none is a denormal number."""
        return len(sources) == 2 and all(a.ref in self._halves for a in sources)

    def only_flushed(self, fp: Fp, sources: Sequence[Val]) -> None:
        """Raises Refused SX0460 if the mode may flush what a sum or product must not."""
        if not ((fp.flush_in and fp.flush_out) or self.of_halves(sources)):
            raise refused(FORM, "operations with and without .FTZ in one kernel")

    def unflushed(self, *args: Val) -> list[Val]:
        """Sources of an instruction that the function's mode flushes: not by code before it."""
        if not self.flushes:
            return list(args)
        return [self.flushed_of.get(a.ref, a) if a.width == 32 else a for a in args]

    def compared(self, predicate: FloatPredicate, a: Val, b: Val) -> list[Val]:
        """The sources of a comparison.  Raises Refused SX0460 as `only_of_flushed`."""
        if not self.flushes or a.width != 32 or predicate in ("ord", "uno"):
            return [a, b]
        normal = any(_is_normal(v) for v in (a, b))
        if not normal:
            self.only_of_flushed(a, b)
        some = self.unflushed(a, b)
        zero = any(v.const is not None for v in some)
        absolute = any(v.ref in self._absolute for v in some)
        if normal or not (zero or absolute or predicate in _EQUALITY):
            return some
        return [v if v.const is not None else self.float_call("canonicalize", v) for v in some]

    def only_of_flushed(self, *some: Val) -> None:
        """Raises Refused SX0460 if the mode would flush one of an instruction's sources, which the
        instruction must not."""
        if self.flushes and any(v.width == 32 and not self._is_flushed(v) for v in some):
            raise refused(FORM, "operations with and without .FTZ in one kernel")

    def _is_flushed(self, value: Val) -> bool:
        if value.const is not None:
            return value.const & _EXPONENT != 0 or value.const & _MAGNITUDE == 0
        return value.ref in self.flushed_of or value.ref in self.no_denormal


def _is_normal(value: Val) -> bool:
    """Whether it is a constant that is no denormal number and not zero."""
    return value.const is not None and value.const & _EXPONENT != 0


__all__ = ["ANY", "NORMAL", "SUBNORMAL", "ZERO", "Flushing"]
