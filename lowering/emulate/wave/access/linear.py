"""Addresses that are made of one vector by operations with scalars: the vector is tested instead.

Of ``base + 4 * sext(x - n)`` only x differs from lane to lane.  Where x grows by one from lane to
lane, so does x - n, modulo 2**32; the rest is known of a run (`contiguous`) by its first lane, and
the accesses that are made of the same x share its test.  An extension to 64 bits is of that kind
if the run does not leave the narrow numbers, which a scalar says, too.

The vectors of addresses are wanted by the helpers alone then, which get them made anew, so that
nothing computes them where lanes are side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.lowering.emulate.wave import rows
from sassxlate.lowering.emulate.wave.access import contiguous
from sassxlate.lowering.emulate.wave.addresses import threads
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.target import LANES

_STEPS = 16  # operations of an address that are looked through


@dataclass(frozen=True, slots=True)
class Step:
    """An operation of a vector with a scalar, or its extension to ``width`` bits."""

    op: str
    width: int
    scalar: Val | None = None

    def of(self, d: LlvmDomain, value: Val) -> Val:
        """The operation, of a vector's values or of one of them."""
        if self.scalar is None:
            return d.sext(value, self.width) if self.op == "sext" else d.zext(value, self.width)
        match self.op:
            case "add":
                return d.add(value, self.scalar)
            case "sub":
                return d.sub(value, self.scalar)
            case "mul":
                return d.mul(value, self.scalar)
            case _:
                return d.shl(value, self.scalar)

    def factor(self) -> int:
        """What it multiplies differences between lanes by."""
        if self.op not in ("mul", "shl") or self.scalar is None or self.scalar.const is None:
            return 1
        return self.scalar.const if self.op == "mul" else 1 << self.scalar.const


@dataclass(frozen=True, slots=True)
class Linear:
    """``steps`` make the address, without its base, of ``root``, which has to grow by ``stride``
    from lane to lane."""

    root: Val
    steps: tuple[Step, ...]
    stride: int

    def of(self, d: LlvmDomain, value: Val) -> Val:
        for step in self.steps:
            value = step.of(d, value)
        return value


def _before(d: LlvmDomain, value: Val) -> tuple[Step, Val] | None:
    """The last operation of a vector, and what it was done to."""
    op, parts = d.origins.get(value.ref, ("", ()))
    if op in ("sext", "zext"):
        return Step(op, value.width), parts[0]
    if op not in ("add", "sub", "mul", "shl"):
        return None
    a, b = parts
    if not a.vec and op in ("add", "mul"):
        a, b = b, a
    if not a.vec or b.vec or (op in ("mul", "shl") and not b.const):
        return None
    if op == "shl" and b.const is not None and b.const >= value.width:
        return None
    return Step(op, value.width, b), a


def chain(d: LlvmDomain, top: Val) -> tuple[Val, list[Step]]:
    """The vector that a vector is made of, and the operations that make it, the last one first."""
    root, steps = top, list[Step]()
    while len(steps) < _STEPS and (found := _before(d, root)) is not None:
        step, root = found
        steps.append(step)
    return root, steps


def find(d: LlvmDomain, lo: Val, hi: Val | None, bytes_: int, *, short: bool) -> Linear | None:
    """How the addresses hi:lo, or lo, of accesses side by side are made of a vector; None if they
    are not.  ``short``: addresses of 32 bits whose sums may wrap; others are extended to 64."""
    top = lo if hi is None else d.whole(hi, lo)
    if top is None or not top.vec:
        return None
    root, steps = chain(d, top)
    if hi is None and not short:
        steps.insert(0, Step("zext", 64))
    total = 1
    for step in steps:
        total *= step.factor()
    # One operation of 32 bits takes less than a scalar's way through it, on which the access waits.
    least = 2 if short else 1
    if not total or bytes_ % total or sum(step.scalar is not None for step in steps) < least:
        return None
    return Linear(root, tuple(reversed(steps)), bytes_ // total)


def grows(c: Context, form: Linear) -> tuple[Val, list[Val]]:
    """(whether the active lanes of each run have values ``stride`` apart, those of the first)."""
    d, root, length = c.d, form.root, contiguous.run_length(c)
    known = rows.grows(c, root, form.stride, length)
    if known is not None:
        return known, contiguous.heads(c, root)
    heads, vector = contiguous.firsts(c, root)
    offsets = ", ".join(f"i{root.width} {i % length * form.stride}" for i in range(LANES))
    hit = d.eq(root, d.add(vector, Val(f"<{offsets}>", root.width, True)))
    return c.state.every_active(hit), heads


def starts(c: Context, form: Linear) -> contiguous.Starts:
    """As `contiguous.starts`."""
    d, length = c.d, contiguous.run_length(c)
    ok, heads = grows(c, form)
    out: list[Val] = []
    for head in heads:
        stride = form.stride
        for step in form.steps:
            if step.scalar is None:
                ok = d.and_(ok, _fits(d, step.op, head, (length - 1) * stride))
            stride *= step.factor()
            head = step.of(d, head)
        out.append(d.zext(head, 64))
    return contiguous.Starts(ok, out)


def _fits(d: LlvmDomain, op: str, head: Val, span: int) -> Val:
    """Whether a value and the ones up to ``span`` above it are extended alike."""
    if op == "sext":
        return d.slt(head, const((1 << (head.width - 1)) - span, head.width))
    return d.ult(head, const((1 << head.width) - span, head.width))


def vector(c: Context, form: Linear) -> Val:
    """The addresses in all lanes, computed here."""
    c.fn.memo = {}  # in an arm, which restores it
    return form.of(c.d, threads.again(c, form.root) if c.fn.around is not None else form.root)


__all__ = ["Linear", "Step", "chain", "find", "grows", "starts", "vector"]
