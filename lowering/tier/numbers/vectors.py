"""Values of several registers as vectors of words.

A double, and what is loaded or stored by one instruction, is a vector for LLVM, whose parts are
registers.  LLVM makes phis of wide integers from shifts and masks otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from sassxlate.lowering.llvm.ir_text import Function, Val
from sassxlate.lowering.llvm.lanes import LlvmLanes


class Vectors(LlvmLanes):
    """The part of the domain that knows vectors."""

    def __init__(self, fn: Function, *, avx512: bool = False, seed_offset: int = 0) -> None:
        super().__init__(fn, avx512=avx512, seed_offset=seed_offset)
        self._pair_of: dict[str, tuple[Val, Val]] = {}
        self._vector_of: dict[str, str] = {}

    def words(self, a: Val, vector: str) -> None:
        """A value of several words is a vector of them, too, from the lowest on."""
        self._vector_of[a.ref] = vector

    def vector(self, a: Val) -> str:
        """A value of several words as a vector."""
        known = self._vector_of.get(a.ref)
        if known is not None:
            return known
        return self.fn.emit(f"bitcast {a.type} {a.ref} to <{a.width // 32} x i32>")

    def as_vector(self, parts: Sequence[Val]) -> str:
        """Words as a vector.  LLVM makes phis of wide integers from their parts otherwise, with
        shifts and masks in loops."""
        kind, out = f"<{len(parts)} x i32>", "poison"
        for at, part in enumerate(parts):
            out = self.fn.emit(f"insertelement {kind} {out}, i32 {part.ref}, i32 {at}")
        return out

    def as_float(self, a: Val, vec: bool) -> str:
        pair = self._pair_of.get(a.ref)
        if pair is None or a.width != 64:
            return super().as_float(a, vec)
        return self.fn.emit(f"bitcast <2 x i32> {self.as_vector(pair)} to double")

    def _word(self, a: Val, lo: int) -> Val | None:
        """A word of a value that is a vector, or a double."""
        vector = self._vector_of.get(a.ref)
        if vector is None and a.width == 64 and a.ref in self._as_float:
            vector = self.fn.emit(f"bitcast double {self._as_float[a.ref]} to <2 x i32>")
        if vector is None:
            return None
        kind = f"<{a.width // 32} x i32>"
        return Val(self.fn.emit(f"extractelement {kind} {vector}, i32 {lo // 32}"), 32, False)

    def extract(self, a: Val, lo: int, width: int) -> Val:
        word = self._word(a, lo) if width == 32 and lo % 32 == 0 and a.const is None else None
        return super().extract(a, lo, width) if word is None else word

    def concat(self, hi: Val, lo: Val) -> Val:
        out = super().concat(hi, lo)
        if hi.width == lo.width == 32 and out.const is None:
            self._pair_of[out.ref] = lo, hi
        return out


__all__ = ["Vectors"]
