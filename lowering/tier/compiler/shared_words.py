"""Loads of neighbouring words of shared memory at constant addresses, as one load.

LLVM joins loads whose addresses have a base in common; constants have none, so code generation
makes pairs of them at best.  What the warps of a block leave for one of them is read so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sassxlate.lowering.tier.compiler.ssa import NAME, Function, changed, keeps_memory

_LOAD: Final = re.compile(
    rf"  ({NAME}) = load (i32|float), ptr addrspace\(3\) "
    r"inttoptr \(i32 (\d+) to ptr addrspace\(3\)\), align \d+(?=,|$)"
)
_WORDS: Final = 4


def _runs(function: Function) -> Iterator[dict[int, tuple[int, str, str]]]:
    """Loads with no change of memory between them: by address, the line, the name and the type."""
    run: dict[int, tuple[int, str, str]] = {}
    for at, line in enumerate(function.lines):
        if found := _LOAD.match(line):
            run.setdefault(int(found[3]), (at, found[1], found[2]))
        elif not keeps_memory(line):
            yield run
            run = {}
    yield run


def _function(function: Function) -> list[str]:
    number = 0
    for run in _runs(function):
        for base in sorted(at for at in run if at % (4 * _WORDS) == 0):
            some = [run[at] for at in range(base, base + 4 * _WORDS, 4) if at in run]
            if len(some) < _WORDS:
                continue
            first, many = min(at for at, _, _ in some), f"<{_WORDS} x i32>"
            vector = f"%shared.{number}"
            number += 1
            function.insert(
                first,
                f"{vector} = load {many}, ptr addrspace(3) "
                f"inttoptr (i32 {base} to ptr addrspace(3)), align {4 * _WORDS}",
            )
            for place, (at, name, kind) in enumerate(some):
                note, word = function.note(at), name if kind == "i32" else f"{vector}.{place}"
                part = f"  {word} = extractelement {many} {vector}, i64 {place}{note}"
                if kind != "i32":
                    part += f"\n  {name} = bitcast i32 {word} to {kind}{note}"
                function.lines[at] = part
    return []


def together(text: str) -> str:
    """A module as LLVM prints it after its passes, with such loads as one."""
    some = text.count("load i32, ptr addrspace(3) inttoptr (")
    return changed(text, _function) if some >= _WORDS - 1 else text


__all__ = ["together"]
