"""Both sides make the same accesses in the same order, per lane, with the same fences between."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from typing import TypeVar

from sassxlate.domain.interface import Domain
from sassxlate.lowering.verify.block.block import Obligation
from sassxlate.lowering.verify.memory import Access, Memory
from sassxlate.lowering.verify.verdict import Undecided

T = TypeVar("T")


def accesses(d: Domain[T], sass: Memory[T], rdna: Memory[T]) -> list[Obligation[T]]:
    """The obligations.  Raises Undecided if one side splits words and the other does not."""
    out: list[Obligation[T]] = []
    never = d.const(0, 1)
    for n, (a, b) in enumerate(zip_longest(sass.accesses, rdna.accesses)):
        if a is not None and b is not None and _shape(a) == _shape(b):
            out += _pairs(d, f"{n} ({a})", a, b)
            continue
        if _bytes(sass) == _bytes(rdna) and _shapes(sass) != _shapes(rdna):
            raise Undecided("the two sides split words differently")
        # The remaining accesses have no counterpart: they must not be reached.
        for name, one in (("SASS", a), ("RDNA3", b)):
            if one is None:
                continue
            title = f"access {n}, {one} of {name} alone"
            pair = (one.when, never) if name == "SASS" else (never, one.when)
            out.append(Obligation(title, *pair))
        break
    return out + _fences(d, sass, rdna)


def _shape(a: Access[T]) -> tuple[str, str, int]:
    return a.space, a.what, a.size


def _shapes(memory: Memory[T]) -> Counter[tuple[str, str, int]]:
    return Counter(_shape(a) for a in memory.accesses)


def _bytes(memory: Memory[T]) -> Counter[tuple[str, str]]:
    out: Counter[tuple[str, str]] = Counter()
    for a in memory.accesses:
        out[a.space, a.what] += a.size
    return out


def _pairs(d: Domain[T], name: str, a: Access[T], b: Access[T]) -> list[Obligation[T]]:
    def where(side: Access[T], value: T) -> T:
        return d.select(side.when, value, d.const(0, d.width(value)))

    out = [
        Obligation(f"condition of access {name}", a.when, b.when),
        Obligation(f"address of access {name}", where(a, a.address), where(b, b.address)),
    ]
    for x, y in zip(a.data, b.data, strict=True):
        out.append(Obligation(f"data of access {name}", where(a, x), where(b, y)))
    return out


def _fences(d: Domain[T], sass: Memory[T], rdna: Memory[T]) -> list[Obligation[T]]:
    """Each fence of SASS at its place; RDNA3 may have more.  A cache is emptied only after the
    accesses before it are done."""
    have: set[tuple[int, str]] = set()
    for fence in rdna.fences:
        if fence.what == "done" or (fence.at, "done") in have:
            have.add((fence.at, fence.what))
    missing = [f for f in sass.fences if (f.at, f.what) not in have]
    return [
        Obligation(f"fence before access {f.at} ({f.what})", d.const(1, 1), d.const(0, 1))
        for f in missing
    ]
