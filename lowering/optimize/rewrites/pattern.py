"""The notation of rewrites: instructions with names in the place of operands.

``v_sub_nc_u32 t x y; v_min_u32 d x t``: each name stands for one operand throughout.

``k...``
    any constant; its value occurs in conditions and in expressions
``m...``
    a mask of lanes: a scalar register with a bit per lane, or VCC
``s...``
    a number in a scalar register, or a constant
``pN``, ``pN.lo``, ``pN.hi``
    a pair of vector registers, and its words
other names
    a vector register, a number in a scalar register, or a constant; a vector register where it is
    written
``12``, ``-1``, ``0xff``, ``exec``, ``null``
    this constant, or register; ``=k1+k2`` in a result: the constant with this value
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from sassxlate.disasm.rdna3 import OPS

Kind: TypeAlias = Literal["constant", "mask", "scalar", "pair", "word", "number", "expression"]
TABLE: Final = Path(__file__).with_name("table.toml")
SPECIALS: Final = {"null": "null", "exec": "exec_lo"}
_NUMBER = re.compile(r"-?(0x[0-9a-f]+|[0-9]+)")
_NAME = re.compile(r"[a-z][a-z0-9]*(\.lo|\.hi)?")


@dataclass(frozen=True, slots=True)
class Line:
    """An instruction of a rewrite; ``writes`` are its first operands that it writes."""

    op: str
    args: tuple[str, ...]
    writes: int

    @property
    def results(self) -> tuple[str, ...]:
        return self.args[: self.writes]

    @property
    def sources(self) -> tuple[str, ...]:
        return self.args[self.writes :]

    def __str__(self) -> str:
        return " ".join((self.op, *self.args))


@dataclass(frozen=True, slots=True, eq=False)
class Rewrite:
    """``old`` becomes ``new`` where ``when`` holds of the constants.  Compared by identity.

    What ``old`` writes and ``new`` does not must be read by ``old`` alone.  ``cases`` says where
    its one constant lies, as an expression of numbers below 32: a proof takes each value alone.
    """

    name: str
    old: tuple[Line, ...]
    new: tuple[Line, ...]
    when: str = ""
    cases: str = ""

    @property
    def kept(self) -> frozenset[str]:
        """The registers that both write: the results."""
        return written(self.old) & written(self.new)

    @property
    def constants(self) -> frozenset[str]:
        args = {arg for at in self.old for arg in at.args}
        return frozenset(arg for arg in args if kind(arg) == "constant")

    def __str__(self) -> str:
        old, new = ("; ".join(map(str, lines)) for lines in (self.old, self.new))
        return f"{old} -> {new}" + (f" if {self.when}" if self.when else "")


def written(lines: tuple[Line, ...]) -> frozenset[str]:
    """The names of words and masks that instructions write."""
    return frozenset(word for at in lines for arg in at.results for word in words(arg))


def words(arg: str) -> tuple[str, ...]:
    """A pair's words; another name by itself; nothing for a number."""
    if kind(arg) in ("number", "expression"):
        return ()
    return (f"{arg}.lo", f"{arg}.hi") if kind(arg) == "pair" else (arg,)


@cache
def kind(arg: str) -> Kind:
    """What an operand's text stands for.  ValueError if it is none."""
    if arg.startswith("="):
        return "expression"
    if _NUMBER.fullmatch(arg) or arg in SPECIALS:
        return "number"
    if not _NAME.fullmatch(arg):
        raise ValueError(f"{arg!r} is no operand of a rewrite")
    if arg.startswith("p"):
        return "word" if "." in arg else "pair"
    kinds: dict[str, Kind] = {"k": "constant", "m": "mask", "s": "scalar"}
    return kinds.get(arg[0], "word")


def line(text: str) -> Line:
    """An instruction.  ValueError for what RDNA3 does not have."""
    op, *args = text.split()
    row = OPS.get(op)
    if row is None:
        raise ValueError(f"{op}: no instruction of RDNA3")
    if len(args) != len(row.args):
        raise ValueError(f"{text}: {op} has {len(row.args)} operands")
    writes = sum(a.role == "w" for a in row.args)
    for arg in args:
        kind(arg)
    return Line(op, tuple(args), writes)


def rewrite(name: str, text: str, when: str = "", cases: str = "") -> Rewrite:
    """A rewrite from ``OLD -> NEW``.  ValueError for text that is none."""
    old, arrow, new = text.partition("->")
    if not arrow:
        raise ValueError(f"{name}: no -> in {text!r}")
    out = Rewrite(name, _lines(old), _lines(new), when, cases)
    if not out.kept:
        raise ValueError(f"{name}: both sides write nothing in common")
    if cases and len(out.constants) != 1:
        raise ValueError(f"{name}: cases are of one constant")
    return out


def _lines(text: str) -> tuple[Line, ...]:
    return tuple(line(part) for part in text.split(";") if part.strip())


@cache
def rewrites() -> tuple[Rewrite, ...]:
    """The rows of the table, in its order."""
    return tuple(_rows())


def _rows() -> Iterator[Rewrite]:
    for name, row in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        yield rewrite(name, row["rewrite"], row.get("when", ""), row.get("cases", ""))


__all__ = [
    "SPECIALS", "TABLE", "Kind", "Line", "Rewrite", "kind", "line", "rewrite", "rewrites", "words",
    "written",
]  # fmt: skip
