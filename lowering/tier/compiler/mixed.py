"""Sums and products of halves as binary32 numbers, by one instruction each.

v_fma_mix_f32 takes each source as binary32, or as either half of a register, so it needs neither
v_cvt_f32_f16 nor a shift.  LLVM writes it for llvm.fma of an fpext alone: x + y is x * 1 + y, and
x * y is x * y + -0, with the same rounding, signs of zeros, and NaN for NaN.  Before its passes
LLVM would make the sum and the product of these again, and of a 1 that it sees it does so later.

The conversions are not fpext before its passes, since LLVM 22 moves comparisons and choices out of
that (`LlvmLanes.float_extend`); nothing but arithmetic uses the ones that become it here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from sassxlate.lowering.tier.compiler.ssa import NAME

_CONVERSION: Final = "@llvm.experimental.constrained.fpext.f32.f16("
_EXTENDED: Final = re.compile(
    rf"  ({NAME}) = (?:tail )?call float {re.escape(_CONVERSION)}half ([^,]+), [^)]*\)[^,]*(.*)"
)
_USE: Final = re.compile(rf"(?<![-\w.$@%]){NAME}(?![-\w.$])")
_SUM: Final = re.compile(rf"  ({NAME}) = (fadd|fsub|fmul) float ([^,]+), ([^,]+)(?=,|$)(.*)")
_FUSED: Final = re.compile(rf"  {NAME} = (?:tail )?call float @llvm\.fma\.f32\(")
_MOST: Final = 2  # uses of a conversion; two sums without one may be issued together
_ONE: Final = "%mixed.one"
_GIVEN: Final = f'  {_ONE} = call float asm "", "=s,0"(float 1.0)'
_DECLARED: Final = "declare float @llvm.fma.f32(float, float, float)"


def mixed(text: str) -> str:
    """A module as LLVM prints it after its passes, with such sums and products as llvm.fma."""
    if _CONVERSION not in text:
        return text
    lines = text.split("\n")
    for start in [at for at, line in enumerate(lines) if line.startswith("define ")][::-1]:
        end = lines.index("}", start)
        lines[start + 1 : end] = _function(lines[start + 1 : end])
    if "@llvm.fma.f32(" not in text:
        lines.append(_DECLARED)
    return "\n".join(lines)


def _function(body: Sequence[str]) -> list[str]:
    """The lines of a function.  A conversion that others need, too, stays."""
    extended = {m[1]: (at, m) for at, line in enumerate(body) if (m := _EXTENDED.match(line))}
    sums = {at: m for at, line in enumerate(body) if (m := _SUM.match(line))}
    uses: dict[str, set[int]] = defaultdict(set)
    for at, line in enumerate(body):
        for name in _USE.findall(line):
            if name in extended and at != extended[name][0]:
                uses[name].add(at)
    alone = {
        name for name in extended if 0 < len(uses[name]) <= _MOST
        and all(at in sums or _FUSED.match(body[at]) for at in uses[name])
    }  # fmt: skip
    out = list(body)
    for name in alone:
        at, found = extended[name]
        out[at] = f"  {name} = fpext half {found[2]} to float{found[3]}"
    changed = [at for at, m in sums.items() if m[3] in alone or m[4] in alone]
    for number, at in enumerate(changed):
        out[at] = "\n".join(_fused(sums[at], alone, f"%mixed.minus.{number}"))
    if changed:
        out.insert(1 if body[0][:1] != " " else 0, _GIVEN)  # after the label
    return out


def _fused(found: re.Match[str], alone: set[str], minus: str) -> list[str]:
    """A sum or product as llvm.fma."""
    name, op, a, b, rest = found.groups()
    lines: list[str] = []
    if op == "fmul":
        given = a, b, "-0.0"
    elif op == "fadd":
        given = (a, _ONE, b) if a in alone else (b, _ONE, a)
    else:
        lines.append(f"  {minus} = fneg float {b if a in alone else _ONE}{rest}")
        given = (a, _ONE, minus) if a in alone else (b, minus, a)
    args = ", ".join(f"float {value}" for value in given)
    return [*lines, f"  {name} = call float @llvm.fma.f32({args}){rest}"]


__all__ = ["mixed"]
