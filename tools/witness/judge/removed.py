"""Waits taken away: does LLVM see it?  And the reverse: which waits would LLVM not have written?"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tools.witness.judge import mir
from tools.witness.judge.machine_code import Decoded
from tools.witness.judge.opcodes import Opcodes
from tools.witness.judge.verdicts import WAITS, Change, changes, passed

_WAIT = re.compile(r"S_WAITCNT(_VSCNT|_DEPCTR)?_gfx11$")
_LINE = re.compile(r"S_WAITCNT(_VSCNT|_DEPCTR)? ")
_SOFT = re.compile(r"^S_WAITCNT(_VSCNT)? ")
BATCH = 40  # functions a run of llc


@dataclass(frozen=True, slots=True)
class Trial:
    """One wait of one piece of code taken away.  ``code`` counts the pieces, ``wait`` its
    instructions; ``reason`` is LLVM's for holding it unneeded, empty where LLVM wants it."""

    code: int
    wait: int
    text: str
    reason: str

    @property
    def found(self) -> bool:
        return not self.reason


NOTHING_PENDING = "nothing that it counts is outstanding there"
NO_READER = "outstanding, but no register is used before another wait or the end"
NO_HAZARD = "no reader within the window of a hazard"


def waits(code: Sequence[Decoded]) -> list[int]:
    """Which instructions are waits."""
    return [n for n, inst in enumerate(code) if _WAIT.match(inst.opcode)]


def is_fence(code: Sequence[Decoded], n: int) -> bool:
    """Whether a wait is part of a fence: for stores, which no register waits for, or for everything
    beside one for stores.  LLVM writes these elsewhere, by its memory model: `memory_order`."""
    if code[n].opcode.startswith("S_WAITCNT_VSCNT"):
        return True
    beside = (*code[n + 1 : n + 2], *code[max(n - 1, 0) : n])
    return code[n].opcode.startswith("S_WAITCNT_gfx") and code[n].operands == (0,) and any(
        other.opcode.startswith("S_WAITCNT_VSCNT") for other in beside
    )  # fmt: skip


def draw(codes: Sequence[Sequence[Decoded]], count: int, seed: int) -> list[tuple[int, int]]:
    """A seeded sample of the waits of all pieces of code but for fences, each with the same chance:
    which piece, which of its instructions."""
    every = [
        (n, wait)
        for n, code in enumerate(codes)
        for wait in waits(code)
        if not is_fence(code, wait)
    ]
    return random.Random(seed).sample(every, min(count, len(every)))


def trials(
    codes: Sequence[Sequence[Decoded]], drawn: Sequence[tuple[int, int]], opcodes: Opcodes
) -> list[Trial]:
    """Takes each drawn wait away, alone, and asks LLVM.  The code must lack nothing before."""
    made: list[Trial] = []
    for start in range(0, len(drawn), BATCH):
        some = drawn[start : start + BATCH]
        functions = [_without(n, codes[code], wait, opcodes) for n, (code, wait) in enumerate(some)]
        soft = [_softened(n, codes[code], {wait}, opcodes) for n, (code, wait) in enumerate(some)]
        kept = [_count([lines]).total() for lines in passed(soft, WAITS)]
        for (code, wait), seen, here in zip(some, changes(functions), kept, strict=True):
            inst = codes[code][wait]
            drops = here < len(waits(codes[code]))  # one that it keeps is no longer soft
            made.append(Trial(code, wait, inst.text, _reason(inst, seen, drops)))
    return made


def _reason(inst: Decoded, seen: Sequence[Change], drops: bool) -> str:
    if any(change.lacks for change in seen):
        return ""
    if inst.opcode.startswith("S_WAITCNT_DEPCTR"):
        return NO_HAZARD
    return NOTHING_PENDING if drops else NO_READER


def _without(number: int, code: Sequence[Decoded], wait: int, opcodes: Opcodes) -> str:
    gone = code[wait]
    return mir.function(number, code, opcodes, lambda i, line: None if i is gone else line)


def _softened(number: int, code: Sequence[Decoded], which: set[int], opcodes: Opcodes) -> str:
    """The function with some waits of a kind that LLVM drops where nothing is outstanding."""
    soft = {code[n].at for n in which}

    def spell(inst: Decoded, line: str) -> str:
        return _SOFT.sub(r"S_WAITCNT\1_soft ", line) if inst.at in soft else line

    return mir.function(number, code, opcodes, spell)


@dataclass(frozen=True, slots=True)
class Balance:
    """How many waits there are, by mnemonic: ours, and how many of them are fences'; LLVM's for the
    same code with all of ours taken away; those of ours with something outstanding that they wait
    for."""

    ours: Counter[str]
    fences: Counter[str]
    theirs: Counter[str]
    pending: Counter[str]


def balance(codes: Sequence[Sequence[Decoded]], opcodes: Opcodes) -> Balance:
    """Counts over all pieces of code."""
    ours, fences = Counter[str](), Counter[str]()
    theirs, pending = Counter[str](), Counter[str]()
    for start in range(0, len(codes), BATCH):
        some = codes[start : start + BATCH]
        ours.update(_name(code[n].opcode) for code in some for n in waits(code))
        fences.update(
            _name(code[n].opcode) for code in some for n in waits(code) if is_fence(code, n)
        )
        bare = [
            mir.function(n, code, opcodes, lambda i, line: None if _WAIT.match(i.opcode) else line)
            for n, code in enumerate(some)
        ]
        theirs.update(_count(passed(bare, WAITS)))
        soft = [_softened(n, code, set(waits(code)), opcodes) for n, code in enumerate(some)]
        pending.update(_count(passed(soft, WAITS)))
    return Balance(ours, fences, theirs, pending)


def _count(functions: Sequence[Sequence[str]]) -> Counter[str]:
    found = (_LINE.match(line.replace("_soft ", " ")) for lines in functions for line in lines)
    return Counter(_name(one[0].strip()) for one in found if one)


def _name(opcode: str) -> str:
    return opcode.removesuffix("_gfx11").lower()
