"""The seam: what a proposer of code is told of a region, and what it answers.

A proposer is told of one region at a time and answers with candidates.  It decides nothing: every
candidate goes through the gate (:mod:`.gate`), and where none passes, the rules' code stays.  So a
wrong proposer costs time, never correctness.  Rules, search and model differ here only: the rules
are the baseline that a region comes with.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, cast, runtime_checkable

from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, Sp, V
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.places import VTEMPS
from sassxlate.lowering.region.region import Region
from sassxlate.lowering.region.text import RegionText

# Of each SASS instruction of a region, in order, the RDNA3 instructions that stand for it.
Code: TypeAlias = tuple[tuple[Inst, ...], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A region, and all that may be known for its code.

    ``region`` has the SASS instructions, and in ``region.around`` the kernel's environment.
    ``regs`` is where registers live; ``live_out`` are those that are read after the region.
    ``rules`` is the rules' code, which a candidate has to be cheaper than.  ``text`` says the same
    in words, by canonical names: equal texts are one question.
    """

    region: Region
    regs: RegisterMap
    live_out: frozenset[RegRef]
    rules: Code
    text: RegionText = field(compare=False)

    @property
    def temporaries(self) -> tuple[V, ...]:
        """The vector registers that a candidate may write besides the region's results.  How many
        the kernel has room for is the gate's business: those that are used are packed first."""
        first = self.regs.vtemp_base
        return tuple(V(first + n) for n in range(min(VTEMPS, self.regs.target.vgprs - first)))

    @property
    def scalar_temporaries(self) -> tuple[S, ...]:
        """The scalar registers that a candidate may write besides the region's results."""
        return tuple(map(S, self.regs.stemps))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A candidate in another form that could not be read as code; ``why`` is the reader's error."""

    why: str


Candidate: TypeAlias = Code | Unreadable

# Why there is no candidate: nothing better is known (``none``); the region is too ``long``, so that
# its parts are asked for; it is ``unsaid``, having no form that this proposer reads; the proposer
# ``raised`` an error.
NoCandidate: TypeAlias = Literal["none", "long", "unsaid", "raised"]


@dataclass(frozen=True, slots=True)
class Proposals:
    """Candidates for one region, the likeliest first.

    ``why`` and ``detail`` matter where there are none.  ``key`` is the canonical form that was
    asked, where it is another than the question's text; ``remembered`` says that its answer was
    known before, and ``seconds`` are those that were spent on it ahead of this call.
    """

    candidates: tuple[Candidate, ...] = ()
    why: NoCandidate = "none"
    detail: str = ""
    key: str = ""
    remembered: bool = False
    seconds: float = 0.0


class Proposer(Protocol):
    """Whatever writes code for regions.  ``name`` is shown in reports and is part of the keys that
    code is kept under: equal names give equal answers."""

    @property
    def name(self) -> str: ...

    def propose(self, question: Question) -> Proposals:
        """Candidates for a region's code.  An error is counted as a refusal, but for ModelError,
        which says that there is nothing to ask."""
        ...


@runtime_checkable
class AsksAhead(Protocol):
    """A proposer that is faster where it knows many questions at once."""

    def ahead(self, questions: Sequence[Question], told: Callable[[int, int], None]) -> None:
        """``propose`` will be called with these.  ``told``: so many of so many are done."""
        ...


def raised_at(error: BaseException, caller: str) -> str:
    """Where an error was raised, as `` (ones.py:12)``; empty if ``caller``'s own file raised it."""
    if isinstance(error, SyntaxError):
        return ""  # its text has the place
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or frames[-1].filename == caller:
        return ""
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


_TEXTS = ("op", "dpp", "enc")
_NUMBERS = (
    "imm", "neg", "abs", "clamp", "omod", "op_sel", "op_sel_hi", "neg_hi", "glc", "dlc", "slc",
    "imm2", "gds",
)  # fmt: skip


def malformed(candidate: object, count: int) -> str | None:
    """Why a value is not code of ``count`` SASS instructions; None if it is.  The gate judges the
    code."""
    if not isinstance(candidate, tuple):
        return f"{type(candidate).__name__}, not a tuple"
    groups = cast("tuple[object, ...]", candidate)
    if len(groups) != count:
        return f"code of {len(groups)} instructions, not {count}"
    for group in groups:
        if not isinstance(group, tuple):
            return f"a group that is {type(group).__name__}, not a tuple"
        for inst in cast("tuple[object, ...]", group):
            bad = _bad_instruction(inst)
            if bad is not None:
                return bad
    return None


def _bad_instruction(inst: object) -> str | None:
    if not isinstance(inst, Inst):
        return f"{type(inst).__name__} in the place of an instruction"
    if not all(isinstance(getattr(inst, name), str) for name in _TEXTS):
        return "an instruction with a name that is not text"
    if not all(isinstance(getattr(inst, name), int) for name in _NUMBERS):
        return f"{inst.op}: a field that is not a number"
    if inst.more != ():
        return f"{inst.op}: modifiers that no region has"
    bad = _bad_operands(inst.args)
    if bad is not None:
        return f"{inst.op}: {bad}"
    return None if inst.y is None else _bad_instruction(inst.y)


def _bad_operands(args: object) -> str | None:
    if not isinstance(args, tuple):
        return "operands that are not a tuple"
    for arg in cast("tuple[object, ...]", args):
        if not _is_operand(arg):
            return f"{arg!r} is not an operand"
    return None


def _is_operand(arg: object) -> bool:
    match arg:
        case V() | S():
            return all(type(n) is int and n >= 0 for n in (arg.index, arg.n - 1))
        case Sp():
            return type(arg.name) is str and type(arg.n) is int
        case I():
            return type(arg.value) is int
        case LabelRef():
            return type(arg.name) is str
        case _:
            return False


__all__ = [
    "AsksAhead", "Candidate", "Code", "NoCandidate", "Proposals", "Proposer", "Question",
    "Unreadable", "malformed", "raised_at",
]  # fmt: skip
