"""Limits of the first lane's value, for all accesses that are made of one vector, before the loop.

Where the waves of a workgroup run in a loop (`run`), what an address is made of besides its vector
is the same in all of them.  So which values of the first lane lead into the arena is known before
the loop: those between two limits.  A wave compares its first lanes with these, for all accesses
by one vector at once, and an address is a sum of two numbers, of which one is known, too.

Limits are narrower than they have to be where an operation wraps around: such waves take the way
of scattered lanes, which is right for all.
"""

from __future__ import annotations

import functools

from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave import run
from sassxlate.lowering.emulate.wave.access import contiguous, linear
from sassxlate.lowering.emulate.wave.access.linear import Linear
from sassxlate.lowering.emulate.wave.context import Context, Limits
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Val, const

# Sums of a few numbers below it do not wrap around; no address of user space is above it.
_LARGEST = 1 << 50


def _known(c: Context, value: Val) -> bool:
    """Whether a scalar is there before the loop, and may be added to others."""
    if value.const is not None:
        return value.width < 64 or (value.const + _LARGEST) % (1 << 64) - _LARGEST < _LARGEST
    return not value.vec and c.fn.around is not None and c.fn.around.level(value.ref) is not None


def _power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def applies(c: Context, form: Linear, base: Val, align: int) -> bool:
    """Whether the limits of an access can be known before the loop."""
    if c.fn.around is None or not _known(c, base):
        return False
    total, extended = 1, 0
    for step in form.steps:
        if step.scalar is None:
            extended += 1
        elif not _known(c, step.scalar) or not _power_of_two(step.factor()):
            return False
        total *= step.factor()
    return extended <= 1 and total % align == 0


class _Solver:
    """Of one access: which values of a first lane lead into the arena."""

    def __init__(self, c: Context, form: Linear, base: Val) -> None:
        self.c, self.d, self.form = c, c.d, form
        self.sane: list[Val] = []  # conditions without which there are none
        self.base = self._wide(base)

    def _small(self, value: Val) -> Val:
        d = self.d
        if value.const is None:
            moved = d.add(value, const(_LARGEST, 64))
            self.sane.append(d.ult(moved, const(2 * _LARGEST, 64)))
        return value

    def _wide(self, scalar: Val) -> Val:
        """A scalar with its sign."""
        wide = self.d.sext(scalar, 64)
        return self._small(wide) if scalar.width == 64 else wide

    def offset(self) -> Val:
        """The address, without the base, of a first lane with the value 0, as a sum that does not
        wrap around."""
        d, total = self.d, const(0, 64)
        for step in self.form.steps:
            if step.scalar is None:
                continue
            if step.op in ("mul", "shl"):
                total = d.shl(total, const(step.factor().bit_length() - 1, 64))
            elif step.op == "add":
                total = d.add(total, self._wide(step.scalar))
            else:
                total = d.sub(total, self._wide(step.scalar))
        return total

    def limits(self, bytes_: int, lanes: int, more: int) -> tuple[Val, Val]:
        """The least and the greatest of them."""
        d = self.d
        arena, size = (
            self._small(Val(run.member(self.c.fn, at, "i64") or "", 64, False))
            for at in (WaveLayout.ARENA_BASE, WaveLayout.ARENA_SIZE)
        )
        lo = d.sub(arena, self.base)
        hi = d.sub(d.add(lo, size), const(bytes_ * lanes + more, 64))
        stride = bytes_
        for step in reversed(self.form.steps):
            if step.scalar is None:
                least, most = (-(1 << 31), 1 << 31) if step.op == "sext" else (0, 1 << 32)
                lo = _most(d, lo, const(least, 64))
                hi = _least(d, hi, const(most - 1 - (lanes - 1) * stride, 64))
            elif step.op in ("mul", "shl"):
                shift = const(step.factor().bit_length() - 1, 64)
                # The least is rounded up.
                lo = d.ashr(d.add(lo, const(step.factor() - 1, 64)), shift)
                hi = d.ashr(hi, shift)
                stride //= step.factor()
            elif step.op == "add":
                scalar = self._wide(step.scalar)
                lo, hi = d.sub(lo, scalar), d.sub(hi, scalar)
            else:
                scalar = self._wide(step.scalar)
                lo, hi = d.add(lo, scalar), d.add(hi, scalar)
        return lo, hi


def _most(d: LlvmDomain, a: Val, b: Val) -> Val:
    return d.select(d.slt(a, b), b, a)


def _least(d: LlvmDomain, a: Val, b: Val) -> Val:
    return d.select(d.slt(a, b), a, b)


def side_by_side(
    c: Context, form: Linear, base: Val, bytes_: int, align: int, more: int
) -> tuple[Val, list[str]]:
    """(whether the lanes of each run are side by side, aligned and inside, the runs' pointers);
    ``more``: how far the last one reaches past that."""
    d, lanes = c.d, contiguous.run_length(c)
    ok, heads = linear.grows(c, form)
    solver = _Solver(c, form, base)
    offset = solver.offset()
    lo, hi = solver.limits(bytes_, lanes, more)
    at_zero = d.add(offset, solver.base)
    aligned = d.eq(d.and_(at_zero, const(align - 1, 64)), const(0, 64))
    sane = functools.reduce(d.and_, solver.sane, aligned)
    known = c.limits.get(form.root.ref)
    if known is None:
        known = Limits(f"%limit{len(c.limits)}", lo, hi, sane)
    else:
        known = Limits(
            known.name, _most(d, known.lo, lo), _least(d, known.hi, hi), d.and_(known.sane, sane)
        )
    c.limits[form.root.ref] = known
    extended = next((step.op for step in form.steps if step.scalar is None), "")
    shift = const((bytes_ // form.stride).bit_length() - 1, 64)
    at: list[str] = []
    for head in heads:
        value = d.zext(head, 64) if extended == "zext" else d.sext(head, 64)
        above = d.sub(value, Val(f"{known.name}.lo", 64, False))
        ok = d.and_(ok, d.ult(above, Val(f"{known.name}.count", 64, False)))
        rest = offset if base.const is not None else at_zero
        address = d.add(d.shl(value, shift), rest)
        if base.const is not None:
            address = d.add(address, base)
        at.append(c.fn.emit(f"inttoptr i64 {address.ref} to ptr"))
    return ok, at


def finish(c: Context) -> None:
    """Writes the limits of all accesses, which are known once all blocks have been built."""
    d, around = c.d, c.fn.around
    for one in c.limits.values():
        assert around is not None
        some = d.and_(one.sane, d.not_(d.slt(one.hi, one.lo)))
        count = d.select(some, d.add(d.sub(one.hi, one.lo), const(1, 64)), const(0, 64))
        for what, value in (("lo", one.lo), ("count", count)):
            around.lines[1].append(f"  {one.name}.{what} = add i64 {value.ref}, 0")


__all__ = ["applies", "finish", "side_by_side"]
