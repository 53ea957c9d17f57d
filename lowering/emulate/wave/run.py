"""Runs of waves: one call executes waves that follow each other, and computes once what they share.

The function gets the first wave of a run, `%first`.  It loops over the waves of a workgroup, `%w`,
and around that over workgroups of a row, whose waves are the same structures with another number.
Each wave says whether another one follows it, the first one how many workgroups do; the library
clears both where a wave is suspended, since those after it begin on their own then.

Scalar registers, the arguments and the limits of memory are the same in all waves of a workgroup,
and but for the workgroup's number in all of a row.  So is what is computed of them alone, which
`Function.emit` puts before the loops.
"""

from __future__ import annotations

from sassxlate.cfg.rdna3_flow import Flow
from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.llvm.ir_text import Around, Function

_LONGEST = 256  # instructions; of more, what each wave computes anew is a small part
_IN_ROW, _IN_GROUP = 0, 1  # the levels of `Around`: before both loops, before that over waves
# Members of SxWave that are the same in all waves of a workgroup.
_SHARED = frozenset(
    {
        WaveLayout.LDS_SIZE,
        WaveLayout.LDS,
        WaveLayout.SCRATCH_SIZE,
        WaveLayout.ARENA_BASE,
        WaveLayout.ARENA_SIZE,
        WaveLayout.ARGUMENTS,
        WaveLayout.MOST_X,
        WaveLayout.MOST_Y,
        WaveLayout.MOST_Z,
    }
)


def wanted(flow: Flow, options: CompileOptions) -> bool:
    """Whether the image runs waves that follow: not where they wait for each other in barriers, nor
    where each one is watched.  A wave with a loop takes longer than what would be saved, and a loop
    within others has worse code: values that it carries leave their registers."""
    if options.strict or options.turns or options.quick or options.trace is not None:
        return False
    if flow.goes_back():
        return False
    steps = [step for block in flow.blocks.values() for step in block.steps]
    return len(steps) <= _LONGEST and all(step.inst.op != "s_barrier" for step in steps)


def around(fn: Function) -> Around:
    """The two loops around a function's blocks."""
    return Around(fn.entry, 2)


def _first(fn: Function, offset: int, type_: str, level: int, how: str = "") -> str:
    assert fn.around is not None
    p = fn.around.enter(fn, f"getelementptr i8, ptr %first, i64 {offset}")
    return fn.around.enter(fn, f"load {type_}, ptr {p}, align 4{how}", level)


def member(fn: Function, at: WaveLayout, type_: str) -> str | None:
    """A member of SxWave, loaded before the loops; None if it is each wave's own, or there are no
    loops."""
    if fn.around is None or at not in _SHARED:
        return None
    return _first(fn, at, type_, _IN_ROW, ", !invariant.load !0")


def register(fn: Function, index: int, workgroup: int | None) -> str:
    """What a scalar register has at a wave's start; ``workgroup`` is the one with the workgroup's
    number in its row."""
    level = _IN_GROUP if index == workgroup else _IN_ROW
    return _first(fn, WaveLayout.SGPR + 4 * index, "i32", level)


def finish(fn: Function, workgroup: int | None) -> None:
    """Puts the loops around the function's blocks, which begin after ``entry``."""
    assert fn.around is not None
    entry, group, wave = fn.around.lines
    step = _first(fn, WaveLayout.STEP, "i64", _IN_ROW)
    more = _at("%more", "%first", WaveLayout.MORE)
    entry += [
        more,
        "  br label %group",
        "group:",
        *group,
        "  br label %run",
        "run:",
        "  %w = phi ptr [ %first, %group ], [ %w.next, %again ]",
        *wave,
    ]
    fn.lines += [
        "ended:",
        _at("%follows", "%w", WaveLayout.FOLLOWS),
        "  %follows.n = load i32, ptr %follows",
        "  %alone = icmp eq i32 %follows.n, 0",
        "  br i1 %alone, label %last, label %again",
        "again:",
        f"  %w.next = getelementptr i8, ptr %w, i64 {step}",
        "  br label %run",
        "last:",
        "  %more.n = load i32, ptr %more",
        "  %none = icmp eq i32 %more.n, 0",
        "  br i1 %none, label %over, label %next",
        "next:",
        "  %more.left = sub i32 %more.n, 1",
        "  store i32 %more.left, ptr %more",
    ]
    if workgroup is not None:
        fn.lines += [
            _at("%number", "%first", WaveLayout.SGPR + 4 * workgroup),
            "  %number.n = load i32, ptr %number",
            "  %number.next = add i32 %number.n, 1",
            "  store i32 %number.next, ptr %number",
        ]
    fn.lines += [
        "  br label %group",
        "over:",
        "  %done = load i64, ptr %executed",
        _at("%done.p", "%w", WaveLayout.EXECUTED),
        "  store i64 %done, ptr %done.p",
        "  ret void",
    ]


def _at(name: str, wave: str, offset: int) -> str:
    return f"  {name} = getelementptr i8, ptr {wave}, i64 {int(offset)}"


__all__ = ["around", "finish", "member", "register", "wanted"]
