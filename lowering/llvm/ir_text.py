"""LLVM IR as text: functions, blocks and values, with a memo of the instructions in the current
block.

Text is several times faster to build than an object tree, and the parser is LLVM's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from sassxlate.lowering.target import LANES


@dataclass(frozen=True, slots=True)
class Val:
    """An integer of `width` bits, or one for each of `lanes` lanes; `const` if it is known."""

    ref: str
    width: int
    vec: bool
    const: int | None = None
    lanes: int = LANES  # of a vector

    @property
    def type(self) -> str:
        return vec_type(self.width, self.lanes) if self.vec else f"i{self.width}"


def vec_type(width: int, lanes: int = LANES) -> str:
    return f"<{lanes} x i{width}>"


def literal(n: int, width: int) -> str:
    """An integer constant's text; LLVM reads a truth value as true or false."""
    if width == 1:
        return "true" if n & 1 else "false"
    return str(n)


def const(n: int, width: int) -> Val:
    n &= (1 << width) - 1
    return Val(literal(n, width), width, False, n)


def signed(n: int, width: int) -> int:
    """The number that so many bits are."""
    return n - (1 << width) if n >> (width - 1) & 1 else n


# Operations on integers that are known, by LLVM's names: of both, and their width.
FOLD: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, w: a + b,
    "sub": lambda a, b, w: a - b,
    "mul": lambda a, b, w: a * b,
    "and": lambda a, b, w: a & b,
    "or": lambda a, b, w: a | b,
    "xor": lambda a, b, w: a ^ b,
    "shl": lambda a, b, w: a << b if b < w else 0,
    "lshr": lambda a, b, w: a >> b,
    "ashr": lambda a, b, w: signed(a, w) >> b,
}


# !0: loads of values that never change; !1: the first target of a branch is the likely one.
METADATA = '\n!0 = !{}\n!1 = !{!"branch_weights", i32 1000000, i32 1}\n'


NAMES = re.compile(r"%[\w.]+")  # of values, as `Function` makes them
# Of what `Function.emit` computes, what may be computed where it is not needed: it cannot trap.
_ANYWHERE = frozenset(
    "add and ashr getelementptr icmp inttoptr lshr mul or select".split()
    + "sext shl sub trunc xor zext".split()
)
# The same, and what moves vectors' elements: neither reads nor writes memory.
PURE = _ANYWHERE | frozenset("bitcast extractelement insertelement shufflevector".split())


class Module:
    """The functions of one image: the wave's, and the helpers that it uses."""

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}
        self.declarations: dict[str, None] = {}

    def declare(self, text: str) -> None:
        self.declarations.setdefault(text)

    def text(self) -> str:
        head = "".join(f"declare {d}\n" for d in self.declarations)
        return head + "\n".join(self.functions.values()) + METADATA


class Around:
    """Loops around all blocks of a function, and what is computed before each of them, once: the
    scalars that depend on nothing that changes in it."""

    def __init__(self, entry: list[str], loops: int) -> None:
        # What is done before the first loop, at the beginning of its turns and so on; of the last
        # one's turns, all that does not depend on `emit`.
        self.lines: list[list[str]] = [entry, *([] for _ in range(loops))]
        self._level: dict[str, int] = {}  # of the values that are computed before loops
        self._made: dict[str, str] = {}  # their names by what makes them

    def level(self, name: str) -> int | None:
        """In how many loops a value is computed; None: in the blocks."""
        return self._level.get(name)

    def emit(self, fn: Function, text: str) -> str | None:
        """The value of a pure instruction, if it can be computed before a loop."""
        if text.partition(" ")[0] not in _ANYWHERE or "<" in text:
            return None
        levels = [self._level.get(name) for name in NAMES.findall(text)]
        known = [level for level in levels if level is not None]
        if len(known) != len(levels):
            return None
        return self.enter(fn, text, max(known, default=0))  # of constants: before all loops

    def enter(self, fn: Function, text: str, level: int = 0) -> str:
        """A scalar's value, computed in so many loops."""
        old = self._made.get(text)
        if old is None:
            old = self._made[text] = fn.name()
            self.lines[level].append(f"  {old} = {text}")
            self._level[old] = level
        return old


class Function:
    """A function under construction; `emit` appends to the current block."""

    def __init__(self, module: Module, signature: str, attributes: str) -> None:
        self.module = module
        self.signature = signature
        self.attributes = attributes
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.memo: dict[str, str] = {}
        self.block = "entry"
        self._n = 0
        self._buffers: dict[str, str] = {}
        self.around: Around | None = None  # the loops that its blocks are in

    def name(self) -> str:
        self._n += 1
        return f"%x{self._n}"

    def emit(self, text: str) -> str:
        """A pure instruction's value; the same text in the same block is computed once."""
        old = self.memo.get(text)
        if old is None:
            old = (self.around and self.around.emit(self, text)) or self.emit_new(text)
            self.memo[text] = old
        return old

    def emit_new(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def label(self, name: str, *, keep: bool = False) -> None:
        """Starts a block; `keep` if the current block dominates it."""
        self.lines.append(f"{name}:")
        self.block = name
        if not keep:
            self.memo = {}

    def fresh(self, stem: str) -> str:
        self._n += 1
        return f"{stem}.{self._n}"

    def alloca(self, name: str, type_: str, align: int = 0) -> None:
        self.entry.append(f"  {name} = alloca {type_}" + (f", align {align}" if align else ""))

    def buffer(self, name: str, bytes_: int) -> str:
        """A 64-byte-aligned scratch area of the function's frame, created on first use."""
        ref = self._buffers.get(name)
        if ref is None:
            ref = f"%buf.{name}"
            self.alloca(ref, f"[{bytes_} x i8]", 64)
            self._buffers[name] = ref
        return ref

    @contextmanager
    def arm(self, label: str) -> Generator[None]:
        """A block dominated by the current one, whose values end with it."""
        saved = dict(self.memo)
        self.label(label, keep=True)
        try:
            yield
        finally:
            self.memo = saved

    def text(self) -> str:
        body = "\n".join(["entry:", *self.entry, *self.lines])
        return f"define {self.signature} {self.attributes} {{\n{body}\n}}\n"

    def finish(self, name: str) -> None:
        self.module.functions[name] = self.text()
