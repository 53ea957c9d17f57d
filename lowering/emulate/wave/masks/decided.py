"""Masks that are the same in all waves of a workgroup, but for the lanes that these have.

A kernel's first branch mostly compares thread numbers with the bounds of its data.  Inside of
these, all comparisons have one result for a whole workgroup, whose thread numbers go from zero to
what the launch says.  Where waves run in a loop (`run`), that is found out before it: each number
is between two scalars there, of 64 bits, in which nothing wraps around.  A wave then takes its
lanes and compares nothing; those of other workgroups do, in an arm of their own.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave import run
from sassxlate.lowering.emulate.wave.addresses import threads
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Val, const

_FIELD = 10  # bits of a thread number in v0: x | y << 10 | z << 20
_NUMBERS = (1 << _FIELD) - 1
_STEPS = 8  # operations of a number that are looked through
_COMPARISONS = 8  # of a mask


@dataclass(frozen=True, slots=True)
class _Range:
    """The least and the greatest value, as numbers of 64 bits, which both are below 2**``bits`` in
    size."""

    least: Val
    most: Val
    bits: int


@dataclass(frozen=True, slots=True)
class _Truth:
    """``known``: whether a condition is the same in all lanes; ``value``: then this."""

    known: Val
    value: Val


class _Decider:
    """Of one mask."""

    def __init__(self, c: Context, exec_: Val) -> None:
        self.c, self.d, self.exec = c, c.d, exec_
        self.known: list[Val] = []
        self.left = _COMPARISONS
        self._masks: dict[str, Val | None] = {}

    def _scalar(self, value: Val) -> bool:
        """Whether a value is there before the loop over waves."""
        around = self.c.fn.around
        assert around is not None
        return not value.vec and (value.const is not None or around.level(value.ref) is not None)

    # -- numbers --------------------------------------------------------------------------

    def _number(self, axis: int) -> _Range:
        """Of the threads in x, y or z."""
        most = run.member(self.c.fn, WaveLayout(WaveLayout.MOST_X + 4 * axis), "i32")
        assert most is not None
        return _Range(const(0, 64), self.d.zext(Val(most, 32, False), 64), _FIELD)

    def _all(self) -> _Range:
        """Of v0 itself, which is x where the kernel has no other numbers."""
        most = const(0, 64)
        for axis in range(3):
            one = self._number(axis).most
            most = self.d.add(most, self.d.shl(one, const(_FIELD * axis, 64)) if axis else one)
        return _Range(const(0, 64), most, 3 * _FIELD)

    def _field(self, op: str, parts: tuple[Val, ...]) -> int | None:
        """Which thread number an operation takes out of v0."""
        a, b = parts
        if op == "and" and b.const != _NUMBERS:
            a, b = b, a
        if op == "lshr":
            if a.ref == self.c.state.threads and b.const == 2 * _FIELD:
                return 2  # nothing is above z
            return None
        if op != "and" or b.const != _NUMBERS:
            return None
        if a.ref == self.c.state.threads:
            return 0
        op, parts = self.d.origins.get(a.ref, ("", ()))
        if op != "lshr" or parts[0].ref != self.c.state.threads:
            return None
        return {_FIELD: 1, 2 * _FIELD: 2}.get(parts[1].const or 0)

    def _range(self, value: Val, depth: int = _STEPS) -> _Range | None:
        """In which range a number of 32 bits is, but for multiples of 2**32."""
        d = self.d
        if value.const is not None or not value.vec:
            if not self._scalar(value):
                return None
            wide = d.sext(const(value.const, 32) if value.const is not None else value, 64)
            return _Range(wide, wide, 31)
        if value.ref == self.c.state.threads:
            return self._all()
        op, parts = d.origins.get(value.ref, ("", ()))
        if not depth or len(parts) != 2:
            return None
        axis = self._field(op, parts)
        if axis is not None:
            return self._number(axis)
        if op in ("mul", "shl"):
            return self._times(op, *parts, depth)
        if op not in ("add", "sub"):
            return None
        a, b = (self._range(part, depth - 1) for part in parts)
        if a is None or b is None or max(a.bits, b.bits) >= 62:
            return None
        bits = max(a.bits, b.bits) + 1
        if op == "add":
            return _Range(d.add(a.least, b.least), d.add(a.most, b.most), bits)
        return _Range(d.sub(a.least, b.most), d.sub(a.most, b.least), bits)

    def _times(self, op: str, value: Val, by: Val, depth: int) -> _Range | None:
        if op == "mul" and by.const is None:
            value, by = by, value
        if by.const is None or (op == "shl" and by.const >= 32):
            return None
        factor = by.const if op == "mul" else 1 << by.const
        of = self._range(value, depth - 1)
        if of is None or not factor or of.bits + factor.bit_length() > 62:
            return None
        least, most = (self.d.mul(v, const(factor, 64)) for v in (of.least, of.most))
        return _Range(least, most, of.bits + factor.bit_length())

    # -- conditions -----------------------------------------------------------------------

    def _sane(self, r: _Range, least: int) -> Val:
        """Whether all of a range are numbers of 32 bits from ``least`` on, below 2**31."""
        d = self.d
        above = d.not_(d.slt(r.least, const(least, 64)))
        return d.and_(above, d.slt(r.most, const(1 << 31, 64)))

    def _compared(self, op: str, a: Val, b: Val) -> _Truth | None:
        d = self.d
        self.left -= 1
        if self.left < 0 or a.width != 32:
            return None
        one, other = self._range(a), self._range(b)
        if one is None or other is None:
            return None
        least = 0 if op == "ult" else -(1 << 31)
        sane = d.and_(self._sane(one, least), self._sane(other, least))
        below = d.slt(one.most, other.least)
        if op == "eq":
            return _Truth(d.and_(sane, d.or_(below, d.slt(other.most, one.least))), const(0, 1))
        beyond = d.not_(d.slt(one.least, other.most))
        return _Truth(d.and_(sane, d.or_(below, beyond)), below)

    def _truth(self, lanes: Val) -> _Truth | None:
        if lanes.const is not None:
            return _Truth(const(1, 1), const(lanes.const, 1))
        op, parts = self.d.origins.get(lanes.ref, ("", ()))
        if op in ("eq", "slt", "ult"):
            return self._compared(op, *parts)
        if op not in ("and", "or", "xor"):
            return None
        a, b = (self._truth(part) for part in parts)
        if a is None or b is None:
            return None
        return _Truth(self.d.and_(a.known, b.known), self._both(op, a.value, b.value))

    def _both(self, op: str, a: Val, b: Val) -> Val:
        return {"and": self.d.and_, "or": self.d.or_, "xor": self.d.xor}[op](a, b)

    def mask(self, value: Val) -> Val | None:
        """A mask where every lane is active, if it is decided (`known`)."""
        if value == self.exec:
            return const(-1, 32)
        if value.width != 32 or value.vec:
            return None
        if self._scalar(value):
            return value
        if value.ref not in self._masks:
            self._masks[value.ref] = self._mask(*self.d.origins.get(value.ref, ("", ())))
        return self._masks[value.ref]

    def _mask(self, op: str, parts: tuple[Val, ...]) -> Val | None:
        if op == "mask":
            truth = self._truth(parts[0])
            if truth is None:
                return None
            self.known.append(truth.known)
            return self.d.sext(truth.value, 32)
        if op not in ("and", "or", "xor"):
            return None
        a, b = (self.mask(part) for part in parts)
        return None if a is None or b is None else self._both(op, a, b)


def _again(c: Context, value: Val, done: dict[str, Val]) -> Val:
    """A mask, computed in the current block."""
    d = c.d
    op, parts = d.origins.get(value.ref, ("", ()))
    if op not in ("mask", "and", "or", "xor") or (c.fn.around and c.fn.around.level(value.ref)):
        return value
    if value.ref not in done:
        if op == "mask":
            done[value.ref] = d.mask_of(threads.again(c, parts[0]))
        else:
            a, b = (_again(c, part, done) for part in parts)
            logic = {"and": d.and_, "or": d.or_, "xor": d.xor}
            done[value.ref] = logic[op](a, b)
    return done[value.ref]


def exec_mask(c: Context, value: Val) -> Val:
    """A new EXEC of lanes that are active now, by two ways if whole workgroups may decide it."""
    fn, d, old = c.fn, c.d, c.state.exec_mask()
    if fn.around is None or not c.state.threads or value == old or not d.is_part(value, old):
        return value
    decider = _Decider(c, old)
    every = decider.mask(value)
    if every is None or not decider.known:
        return value
    known = functools.reduce(d.and_, decider.known)
    now = d.and_(old, every)
    n, here = fn.fresh("d"), fn.block
    fn.do(f"br i1 {known.ref}, label %join.{n}, label %each.{n}, !prof !1")
    with fn.arm(f"each.{n}"):
        fn.memo = {}
        compared = _again(c, value, {})
        fn.do(f"br label %join.{n}")
    fn.label(f"join.{n}", keep=True)
    ref = fn.emit_new(f"phi i32 [ {now.ref}, %{here} ], [ {compared.ref}, %each.{n} ]")
    d.origins[ref] = "and", (old, value)  # the same number
    return Val(ref, 32, False)


__all__ = ["exec_mask"]
