"""Assigns the vector temporaries of proposed code.

A question states that there are ``VTEMPS`` of them, whatever its kernel, and an answer may
name any.  A kernel has those that its rules' code uses, and the rest of the granule in which the
hardware allocates registers.  So temporaries are packed before an answer is judged: those that are
live at the same time get different registers, from the first one on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sassxlate.disasm.rdna3 import MACRO
from sassxlate.disasm.rdna3.instruction import Arg, Inst, Item, V
from sassxlate.lowering.region.places import VTEMPS
from sassxlate.lowering.select.stages import Selected


def room(selected: Selected) -> int:
    """How many a kernel has without more registers being allotted to its waves."""
    target = selected.regs.target
    given = min(target.given(selected.vgprs), target.vgprs)
    return min(max(given - selected.regs.vtemp_base, 0), VTEMPS)


@dataclass(slots=True)
class _Run:
    """Temporaries that are adjacent in an operand, and where they occur."""

    first: int
    size: int
    begin: int
    end: int
    place: int = 0
    fixed: bool = False  # a macro's code names them


def packed(code: Sequence[Sequence[Inst]], base: int) -> tuple[tuple[Inst, ...], ...]:
    """The same code with its temporaries, which begin at VGPR ``base``, on the lowest numbers that
    are not in use; those of macros stay."""
    flat = [inst for group in code for inst in group]
    runs = _runs(flat, base)
    if runs is None:
        return tuple(map(tuple, code))
    settled: list[_Run] = []
    for run in sorted(runs, key=lambda r: (not r.fixed, r.begin, r.first)):
        if run.fixed:
            run.place = run.first - base
            settled.append(run)
            continue
        beside = [r for r in settled if r.end >= run.begin and run.end >= r.begin]
        taken = {r.place + n for r in beside for n in range(r.size)}
        while any(run.place + n in taken for n in range(run.size)):
            run.place += 1
        settled.append(run)
    if max((r.place + r.size for r in runs if not r.fixed), default=0) > VTEMPS:
        return tuple(map(tuple, code))
    moved = {r.first + n: base + r.place + n for r in runs for n in range(r.size)}

    def arg(old: Arg) -> Arg:
        return V(moved.get(old.index, old.index), old.n) if isinstance(old, V) else old

    return tuple(
        tuple(replace(inst, args=tuple(map(arg, inst.args))) for inst in group) for group in code
    )


def _runs(flat: Sequence[Inst], base: int) -> list[_Run] | None:
    """The runs of temporaries; None if undetermined: an operand that is only partly a temporary, or
    mixes two runs."""
    runs: list[_Run] = []
    for n, inst in enumerate(flat):
        if inst.y is not None:
            return None
        for operand in inst.args:
            if not isinstance(operand, V) or operand.index + operand.n <= base:
                continue
            fixed = inst.op == MACRO
            outside = operand.index < base or operand.index + operand.n > base + VTEMPS
            if outside and not fixed:
                return None
            new = _Run(operand.index, operand.n, n, n, fixed=fixed)
            for old in [r for r in runs if _meet(r, new)]:
                runs.remove(old)
                end = max(old.first + old.size, new.first + new.size)
                first = min(old.first, new.first)
                begin, fixed = min(old.begin, new.begin), old.fixed or new.fixed
                new = _Run(first, end - first, begin, n, fixed=fixed)
            runs.append(new)
    return runs


def _meet(a: _Run, b: _Run) -> bool:
    return a.first < b.first + b.size and b.first < a.first + a.size


def used(code: Sequence[Sequence[Item]], base: int) -> int:
    """The number of temporaries that the code needs for those that it names."""
    every = [inst for group in code for inst in group if isinstance(inst, Inst)]
    operands = [a for inst in every for a in inst.args if isinstance(a, V)]
    return max((a.index + a.n - base for a in operands if a.index + a.n > base), default=0)


__all__ = ["packed", "room", "used"]
