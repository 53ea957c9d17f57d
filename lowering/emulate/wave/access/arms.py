"""Two ways to the same values, of which a condition chooses one at run time.

LLVM moves computations down to the blocks that use their results.  That is right for vectors of
addresses, which one arm alone wants, mostly.  Of a sum over many loads, though, all additions would
move past the last load, and the stack would get what was loaded.  So what registers have by
operations on floating-point numbers counts as used before the branch.

Accesses that follow each other by one condition, as those of neighbouring elements do, share a
branch: what the later one does is put at the ends of the earlier one's arms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sassxlate.lowering.emulate.wave.context import Arms, Context
from sassxlate.lowering.llvm.ir_text import NAMES, PURE, Val

_Arm = Callable[[], list[Val]]
_MADE = re.compile(r"  (%[\w.]+) = (\w+) ")
_WRITES = re.compile(r"  (store|call void|%[\w.]+ = (atomicrmw|cmpxchg)) ")
# The load of a register from its slot, which no arm writes.
_SLOT = re.compile(r"  %[\w.]+ = load \S.*, ptr %(v\d+|s\d+|exec|scc)(, align \d+)?$")


def either(c: Context, cond: Val, fast: _Arm, slow: _Arm) -> list[Val]:
    """Values of one arm or the other; neither arm may read registers that are not cached yet."""
    fn, last = c.fn, c.arms
    if last is not None and (last.cond, last.join) == (cond.ref, fn.block) and not c.floats:
        out = _joined(c, last, fast, slow)
        if out is not None:
            return out
    for value in c.state.held(c.floats):
        c.module.declare("void @llvm.fake.use(...)")
        fn.do(f"call void (...) @llvm.fake.use({value.type} {value.ref})")
    c.floats.clear()
    n = fn.fresh("m")
    branch = len(fn.lines)
    fn.do(f"br i1 {cond.ref}, label %fast.{n}, label %slow.{n}, !prof !1")
    ends: list[tuple[list[Val], str]] = []
    at: list[int] = []
    for name, arm in (("fast", fast), ("slow", slow)):
        with fn.arm(f"{name}.{n}"):
            values = [c.d.splat(v) for v in arm()]
            ends.append((values, fn.block))
            at.append(len(fn.lines))
            fn.do(f"br label %join.{n}")
    fn.label(f"join.{n}", keep=True)
    out = _phis(c, fn.lines, ends)
    if fn.around is not None:
        blocks = (ends[0][1], ends[1][1])
        end = len(fn.lines)
        c.arms = Arms(cond.ref, fn.block, branch, (at[0], at[1]), blocks, end, end - len(out))
    return out


def _phis(c: Context, lines: list[str], ends: Sequence[tuple[Sequence[Val], str]]) -> list[Val]:
    out: list[Val] = []
    for a, b in zip(ends[0][0], ends[1][0], strict=True):
        ref = c.fn.name()
        text = f"phi {a.type} [ {a.ref}, %{ends[0][1]} ], [ {b.ref}, %{ends[1][1]} ]"
        lines.append(f"  {ref} = {text}")
        out.append(Val(ref, a.width, True))
    return out


def _apart(c: Context, block: str, arm: _Arm) -> tuple[list[str], list[Val], str]:
    """(an arm's lines, as if it went on with a block, its values, the block at its end)."""
    fn = c.fn
    lines, memo, here = fn.lines, dict(fn.memo), fn.block
    fn.lines, fn.block = [], block
    values = [c.d.splat(v) for v in arm()]
    made, end = fn.lines, fn.block
    fn.lines, fn.memo, fn.block = lines, memo, here
    return made, values, end


def _needed(lines: Sequence[str], since: Sequence[str]) -> list[int] | None:
    """Which of ``since`` the arms' lines or values use, directly or not; None if one of these
    cannot be moved, or the arms cannot be moved past one: past a load, if they store."""
    place: dict[str, int] = {}
    writes = any(_WRITES.match(line) for line in lines)
    for i, line in enumerate(since):
        made = _MADE.match(line)
        if made is None or " volatile " in line:
            return None
        loads = made[2] == "load" and (not writes or _SLOT.fullmatch(line))
        if not loads and made[2] not in PURE:
            return None
        place[made[1]] = i
    found, todo = set[int](), [name for line in lines for name in NAMES.findall(line)]
    while todo:
        at = place.get(todo.pop())
        if at is None or at in found:
            continue
        made = _MADE.match(since[at])
        if made is None or made[2] not in PURE:
            return None
        found.add(at)
        todo += NAMES.findall(since[at])
    return sorted(found)


def _joined(c: Context, last: Arms, fast: _Arm, slow: _Arm) -> list[Val] | None:
    """The values of arms that are put at the ends of earlier ones; None if that cannot be done."""
    lines = c.fn.lines
    since = lines[last.after :]
    one, other = (
        _apart(c, block, arm) for block, arm in zip(last.blocks, (fast, slow), strict=True)
    )
    used = [*one[0], *other[0], *(value.ref for value in (*one[1], *other[1]))]
    needed = _needed(used, since)
    if needed is None:
        return None
    phis = {made[1] for line in lines[last.phis : last.after] if (made := _MADE.match(line))}
    moved = [since[i] for i in needed]
    if any(name in phis for line in (*moved, *used) for name in NAMES.findall(line)):
        return None
    left = [line for i, line in enumerate(since) if i not in set(needed)]
    first, second = last.ends
    new: list[str] = []
    out = _phis(c, new, [one[1:], other[1:]])
    head = [*lines[: last.branch], *moved, *lines[last.branch : first], *one[0]]
    ends = [len(head)]
    head += [*lines[first:second], *other[0]]
    ends.append(len(head))
    phis_at = len(head) + last.phis - second
    head += [*lines[second : last.after], *new]
    c.arms = Arms(
        last.cond,
        last.join,
        last.branch + len(moved),
        (ends[0], ends[1]),
        (one[2], other[2]),
        len(head),
        phis_at,
    )
    lines[:] = [*head, *left]
    return out


__all__ = ["either"]
