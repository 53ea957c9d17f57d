"""The smaller or larger of two numbers: the choices that the semantics write are one instruction.

``extreme`` in `disasm/sass/semantics/arithmetic/float.py` says it by comparisons, with -0 below +0
and the number of a number and a NaN: the minimumNumber and maximumNumber of IEEE 754-2019, which
LLVM has.  Each step of it is followed by name; if one is missing, the choices stay as they are.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from sassxlate.lowering.llvm.ir_text import Val

Which: TypeAlias = Literal["minimumnum", "maximumnum"]
Found: TypeAlias = tuple[Which, Val, Val]


class Extremes:
    """The steps that were written in a function, by the values that they gave."""

    def __init__(self) -> None:
        self._compared: dict[str, tuple[str, Val, Val]] = {}
        self._joined: dict[str, tuple[str, Val, Val]] = {}
        self._second: dict[str, Found] = {}  # b if it is nearer to the end, else both joined
        self._numbers: dict[str, Found] = {}  # of two numbers
        self._one_nan: dict[str, Found] = {}  # if the second is no NaN
        self._both: dict[str, tuple[Val, Val]] = {}
        self._made: dict[str, tuple[Val, Val]] = {}

    def compared(self, out: Val, predicate: str, a: Val, b: Val) -> None:
        self._compared[out.ref] = predicate, a, b

    def joined(self, out: Val, op: str, a: Val, b: Val) -> None:
        """``a op b``: ``or`` or ``and``."""
        self._joined[out.ref] = op, a, b

    def tested(self, out: Val, a: Val, b: Val) -> None:
        """Whether both are NaN."""
        self._both[out.ref] = a, b

    def made(self, out: Val, found: Found) -> None:
        self._made[out.ref] = found[1], found[2]

    def none(self, c: Val, out: Val) -> bool:
        """Whether ``c`` says that both of the numbers whose extreme ``out`` is are NaN."""
        both = self._both.get(c.ref)
        return both is not None and both == self._made.get(out.ref)

    def chosen(self, out: Val, c: Val, a: Val, b: Val, tested: Val | None) -> Found | None:
        """Follows ``out``, which is ``a`` if ``c`` holds, else ``b``; an extreme if it is one now.
        ``tested`` is what ``c`` finds to be NaN."""
        if tested is not None:
            return self._of_nan(out, tested, a, b)
        predicate, x, y = self._compared.get(c.ref, ("", a, b))
        op = {"olt": "or", "ogt": "and"}.get(predicate)
        if op is None or x != a:
            return None
        which: Which = "minimumnum" if op == "or" else "maximumnum"
        joined = self._joined.get(b.ref)
        if joined in ((op, x, y), (op, y, x)):
            self._second[out.ref] = which, y, x
        if self._second.get(b.ref) == (which, x, y):
            self._numbers[out.ref] = which, x, y
        return None

    def _of_nan(self, out: Val, tested: Val, a: Val, b: Val) -> Found | None:
        """``out`` is ``a`` if ``tested`` is NaN, else ``b``.  A constant is not asked for."""
        found = self._numbers.get(b.ref)
        if found is not None and found[1:] == (a, tested):
            if a.const is not None:
                return found
            self._one_nan[out.ref] = found
            return None
        if found is None or a.const is None:
            found = self._one_nan.get(b.ref)
        return found if found is not None and found[1:] == (tested, a) else None


__all__ = ["Extremes", "Found"]
