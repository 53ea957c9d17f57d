"""Vectors that are made of the threads' numbers alone: made anew where rare code wants them.

Of such a vector fast code often wants the first lane of each run only, which scalars give, and the
whole of it is wanted in arms that are seldom executed.  There it is computed from v0, as the wave
has it in memory, so that no vector is kept for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import NAMES, PURE, Function, Val
from sassxlate.lowering.target import LANES

_BINARY = frozenset({"add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr"})
_COMPARED = frozenset({"eq", "ult", "slt"})
_EXTENDED = frozenset({"sext", "zext", "trunc"})
_MOST = 24  # operations
# Instructions that may be left out where nothing uses their results.
_LEFT_OUT = PURE | {"fcmp", "load"}
_MADE = re.compile(r"  (%[\w.]+) = (\w+) (.*)")
_STORED = re.compile(r"  store \S.* (\S+), ptr (%[\w.]+)$")


def made_of_them(c: Context, value: Val) -> bool:
    """Whether a vector is made of v0 at the wave's start and scalars, by few operations."""
    left = _MOST

    def each(one: Val) -> bool:
        nonlocal left
        if not one.vec or one.const is not None or one.ref == c.state.threads:
            return True
        op, parts = c.d.origins.get(one.ref, ("", ()))
        left -= 1
        if left < 0 or op not in _BINARY | _COMPARED | _EXTENDED:
            return False
        return all(each(part) for part in parts)

    return bool(c.state.threads) and value.lanes == LANES and each(value)


def again(c: Context, value: Val) -> Val:
    """The same vector, computed in the current block if it is made of the threads' numbers."""
    return _again(c, value) if made_of_them(c, value) else value


def _again(c: Context, value: Val) -> Val:
    d = c.d
    if not value.vec or value.const is not None:
        return value
    if value.ref == c.state.threads:
        p = c.fn.emit(f"getelementptr i8, ptr %w, i64 {int(WaveLayout.V0)}")
        return Val(c.fn.emit(f"load {value.type}, ptr {p}, align 4"), value.width, True)
    op, parts = d.origins[value.ref]
    parts = tuple(_again(c, part) for part in parts)
    if op in _EXTENDED:
        ref = c.fn.emit(f"{op} {parts[0].type} {parts[0].ref} to {value.type}")
    else:
        what = f"icmp {op}" if op in _COMPARED else op
        type_ = next(part.type for part in parts if part.vec)
        ref = c.fn.emit(f"{what} {type_} {d.text(parts[0], True)}, {d.text(parts[1], True)}")
    return Val(ref, value.width, True)


# --- first lanes by scalars ------------------------------------------------------------------


def lane(c: Context, value: Val, number: int) -> str:
    """The value of a vector's lane; `finish` may find that scalars give it for less."""
    ref = c.fn.emit(f"extractelement {value.type} {value.ref}, i64 {number}")
    if c.fn.around is not None and value.width == 32 and made_of_them(c, value):
        c.lanes[ref] = (value, number)
    return ref


def finish(c: Context) -> None:
    """Computes lanes of vectors by scalars where nothing else wants the vectors."""
    if not c.lanes:
        return
    wanted = _wanted(c.fn, c.lanes)
    out: list[str] = []
    for line in c.fn.lines:
        made = _MADE.match(line)
        known = c.lanes.get(made[1]) if made is not None else None
        if made is None or known is None or known[0].ref in wanted:
            out.append(line)
            continue
        done: dict[str, str] = {}
        ref = _scalar(c, *known, out, done)
        out.append(f"  {made[1]} = add i32 {ref}, 0")
    c.fn.lines[:] = out


def _scalar(c: Context, value: Val, number: int, out: list[str], done: dict[str, str]) -> str:
    """One element of a vector, by lines that are appended."""
    if value.const is not None or not value.vec:
        return str(value.const) if value.const is not None else value.ref
    old = done.get(value.ref)
    if old is not None:
        return old
    ref = done[value.ref] = c.fn.name()
    if value.ref == c.state.threads:
        out.append(f"  {ref}.p = getelementptr i8, ptr %w, i64 {WaveLayout.V0 + 4 * number}")
        out.append(f"  {ref} = load i32, ptr {ref}.p, align 4")
        return ref
    op, parts = c.d.origins[value.ref]
    given = [_scalar(c, part, number, out, done) for part in parts]
    if op in _EXTENDED:
        text = f"{op} i{parts[0].width} {given[0]} to i{value.width}"
    else:
        what = f"icmp {op}" if op in _COMPARED else op
        text = f"{what} i{parts[0].width} {', '.join(given)}"
    out.append(f"  {ref} = {text}")
    return ref


def _wanted(fn: Function, lanes: Iterable[str]) -> set[str]:
    """The names that code wants which is not left out, other than by ``lanes``."""
    lines = [*fn.entry, *fn.lines]
    if fn.around is not None:
        lines += [line for part in fn.around.lines for line in part]
    slots = {line.split()[0] for line in fn.entry if " = alloca " in line}
    uses: dict[str, list[str]] = {}
    stores: list[tuple[str, str]] = []  # to slots
    todo: list[str] = []
    for line in lines:
        made, stored = _MADE.match(line), _STORED.match(line)
        if made is not None and made[2] == "alloca":
            continue
        if made is not None and made[2] in _LEFT_OUT and "volatile" not in made[3]:
            uses[made[1]] = NAMES.findall(made[3])
        elif stored is not None and stored[2] in slots:
            stores.append((stored[1], stored[2]))
        else:
            todo += NAMES.findall(line)
    # What is stored in a slot is wanted if the slot is used otherwise, too.
    read = slots & {name for names in (todo, *uses.values()) for name in names}
    todo += [value for value, slot in stores if slot in read]
    wanted, by_lane = set[str](), set(lanes)
    while todo:
        name = todo.pop()
        if name in wanted or name in by_lane:
            continue
        wanted.add(name)
        todo += uses.get(name, ())
    return wanted


__all__ = ["again", "finish", "lane", "made_of_them"]
