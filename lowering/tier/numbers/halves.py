"""Pairs of halves: two operations on halves whose results are packed become one on both.

The semantics write an operation on each half and pack the results.  LLVM does not find out that the
two are one packed instruction, so it is said here: the operations are written on vectors of two
halves, and the single ones are dropped as unused.
"""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.lowering.llvm.ir_text import Function, Val

_PAIR = "<2 x half>"


@dataclass(frozen=True, slots=True)
class _Part:
    """A half of a word: bits 15:0 or 31:16."""

    word: Val
    high: bool


class Halves:
    """What is known of the halves in a function: the operations that made them, and their words."""

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        self._parts: dict[str, _Part] = {}
        self._negated: dict[str, Val] = {}
        self._made: dict[str, tuple[str, tuple[Val, ...]]] = {}

    def extracted(self, half: Val, word: Val, lo: int) -> None:
        self._parts[half.ref] = _Part(word, lo == 16)

    def negated(self, out: Val, half: Val) -> None:
        self._negated[out.ref] = half

    def made(self, half: Val, op: str, *args: Val) -> None:
        """A half is the result of ``fadd``, ``fmul`` or of an intrinsic that vectors have, too."""
        self._made[half.ref] = op, args

    def packed(self, hi: Val, lo: Val) -> str | None:
        """Two halves that one operation gives, as a word; None if no one operation does."""
        one, other = self._made.get(lo.ref), self._made.get(hi.ref)
        if one is None or other is None or one[0] != other[0]:
            return None
        op, low = one
        args = [self._pair(h, part) for h, part in zip(other[1], low, strict=True)]
        if op in ("fadd", "fmul"):
            return self._word(self.fn.emit(f"{op} {_PAIR} {', '.join(args)}"))
        self.fn.module.declare(f"{_PAIR} @llvm.{op}.v2f16({', '.join([_PAIR] * len(args))})")
        text = ", ".join(f"{_PAIR} {a}" for a in args)
        return self._word(self.fn.emit(f"call {_PAIR} @llvm.{op}.v2f16({text})"))

    def joined(self, hi: Val, lo: Val) -> str:
        """Two halves as a word."""
        return self._word(self._pair(hi, lo))

    def _word(self, pair: str) -> str:
        return self.fn.emit(f"bitcast {_PAIR} {pair} to i32")

    def _pair(self, hi: Val, lo: Val) -> str:
        """A vector of two halves."""
        if hi.const is not None and lo.const is not None:
            return self.fn.emit(f"bitcast i32 {hi.const << 16 | lo.const} to {_PAIR}")
        negated = self._negated.get(hi.ref), self._negated.get(lo.ref)
        if negated[0] is not None and negated[1] is not None:
            return self.fn.emit(f"fneg {_PAIR} {self._pair(negated[0], negated[1])}")
        high, low = self._parts.get(hi.ref), self._parts.get(lo.ref)
        if high is not None and low is not None and high.word == low.word:
            word = self.fn.emit(f"bitcast i32 {low.word.ref} to {_PAIR}")
            if high.high and not low.high:
                return word
            order = f"<i32 {int(low.high)}, i32 {int(high.high)}>"
            return self.fn.emit(f"shufflevector {_PAIR} {word}, {_PAIR} poison, <2 x i32> {order}")
        out = "poison"
        for at, half in enumerate((lo, hi)):
            value = self.fn.emit(f"bitcast i16 {half.ref} to half")
            out = self.fn.emit(f"insertelement {_PAIR} {out}, half {value}, i32 {at}")
        return out


__all__ = ["Halves"]
