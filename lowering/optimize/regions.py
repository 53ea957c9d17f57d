"""Selects the code that the model is prompted for: regions of a block within the model's subset.

Some instructions' code stays the rules': those whose rule is outside the subset (loops, other
lanes, fences, asynchronous copies, matrices, spilled registers) or was tested on inputs, not
proved.  A block is cut at these, or, where the proposer knows macros, only at those that cannot be
said as one (:mod:`sassxlate.lowering.region.macro`).  The rest is cut to at most ``LONGEST``
instructions; an instruction of a later architecture counts as the older ones in which the model is
prompted for it.  Each part is a
:class:`~sassxlate.lowering.region.region.Region` like the block that it comes from, and its code
goes through the same waits, hazards and encoder as the block's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sassxlate.cfg.liveness import live_before
from sassxlate.disasm.rdna3.instruction import Inst, Item
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import EncodeError
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.macro import Macro, macro_of, sealed
from sassxlate.lowering.region.region import Region
from sassxlate.lowering.region.subset import in_subset
from sassxlate.lowering.region.text import RegionText, code_words, region_text
from sassxlate.lowering.region.uniform import with_uniform
from sassxlate.lowering.select.kernel import rules_items
from sassxlate.lowering.verify.block.rule_evidence import rule_evidence

LONGEST = 8  # SASS instructions


@dataclass(frozen=True, slots=True)
class CutRegion:
    """A part of a block.  ``code`` is the rules', by SASS instruction.  ``macro``: it is never
    replaced, and is not asked about."""

    block: Region
    live_out: frozenset[RegRef]
    code: tuple[tuple[Item, ...], ...]
    macro: bool = False
    asked: RegionText | None = field(default=None, compare=False)  # the prompt, if it was built
    answer: tuple[tuple[str, ...], ...] = field(default=(), compare=False)  # the rules' answer


TooLong = Callable[[CutRegion, RegisterMap], bool]


def never(_: CutRegion, __: RegisterMap) -> bool:
    """No part is too long: for users that take the instructions as they are."""
    return False


def grouped(items: Sequence[Item], instructions: Sequence[Instruction]) -> list[list[Item]]:
    """The rules' code by SASS instruction; code between two belongs to the first."""
    number = {ins.offset: n for n, ins in enumerate(instructions)}
    groups: list[list[Item]] = [[] for _ in instructions]
    here = 0
    for item in items:
        origin = item.origin if isinstance(item, Inst) else None
        if origin is not None and origin.offset is not None:
            here = max(here, number.get(origin.offset, here))
        groups[here].append(item)
    return groups


def rules_code(block: Region, regs: RegisterMap) -> tuple[tuple[Item, ...], ...]:
    """The rules' code of a block, by SASS instruction.  LoweringError if they refuse one."""
    return tuple(map(tuple, grouped(rules_items(block, regs), block.instructions)))


def is_macro(ins: Instruction, code: Sequence[Item], regs: RegisterMap) -> bool:
    """Whether an instruction's code stays the rules'."""
    if traits(ins).clock:
        return True
    touched = ins.reads | ins.writes
    if any(r.file == "B" or (r.file == "R" and r.index in regs.spilled) for r in touched):
        return True
    if rule_evidence(ins) is not None:
        return True
    if not all(in_subset(item, regs) for item in code):
        return True
    plain = [item for item in code if isinstance(item, Inst)]
    (known,) = with_uniform([plain], [ins], regs)
    return any(a.uniform != b.uniform for a, b in zip(plain, known, strict=True))


def cut_regions(
    block: Region,
    regs: RegisterMap,
    live_out: frozenset[RegRef],
    longest: int = LONGEST,
    items: Sequence[Item] | None = None,
    *,
    too_long: TooLong,
    macros: bool = False,
) -> list[CutRegion]:
    """A block's parts in order; together they are the block.  ``items`` are the rules' code of it
    if available; a part for which ``too_long`` holds is cut further.  ``macros``: a part may have
    some between its other instructions.

    Raises LoweringError if the rules refuse an instruction: then the kernel cannot be translated.
    """
    if items is None:
        whole = rules_code(block, regs)
    else:
        whole = tuple(map(tuple, grouped(items, block.instructions)))
    # Other code is not trusted with the bits of NaN: proofs of regions do not cover which registers
    # of the kernel hold a NaN other than SASS's.
    apart = block.around.nans.apart
    own = [
        ins.offset in apart or is_macro(ins, code, regs)
        for ins, code in zip(block.instructions, whole, strict=True)
    ]
    said: list[bool] = [False] * len(own)
    if macros:
        said = [
            is_own and ins.offset not in apart and _said_macro(block, ins, code, regs)
            for ins, code, is_own in zip(block.instructions, whole, own, strict=True)
        ]
        own = [is_own and not is_said for is_own, is_said in zip(own, said, strict=True)]
    live_after: list[frozenset[RegRef]] = []
    live = live_out
    for ins in reversed(block.instructions):
        live_after.append(live)
        live = live_before(ins, live)
    live_after.reverse()
    out: list[CutRegion] = []
    for first, end, macro in _cuts(block.instructions, own, said, longest):
        part = replace(block, instructions=block.instructions[first:end])
        near = block.instructions[max(0, first - 1) : end + 1]
        # The end of a guarded run precedes the code after it.
        plain = all(ins.guard.is_true for ins in near)
        code = whole[first:end] if plain else rules_code(part, regs)
        macro |= all(said[first:end])
        if not macro and any(said[first:end]):
            found_macros = _macros(part, code, said[first:end], regs)
            if found_macros is None:  # a guard spans one here
                live = live_after[end - 1]
                out += cut_regions(part, regs, live, longest, too_long=too_long)
                continue
            part = replace(part, macros=found_macros)
            code = sealed(code, part.instructions, found_macros, regs)
        region = CutRegion(part, live_after[end - 1], code, macro)
        found = None if macro else said_as(region, regs)
        if found is not None and (end - first == 1 or not too_long(found, regs)):
            out.append(found)
        elif macro:
            out.append(region)
        elif end - first > 1 and longest > 1:  # too many registers, one unnamed, or too long
            shorter = _shorter(said[first:end])
            out += cut_regions(
                replace(part, macros={}), regs, live_after[end - 1], shorter or 1,
                too_long=too_long, macros=macros and shorter is not None,
            )  # fmt: skip
        else:
            out.append(replace(region, macro=True))
    return out


def _shorter(said: Sequence[bool]) -> int | None:
    """At how many instructions a part is cut once more, its macros not counted; None if it has but
    one that counts: then it is cut at its macros."""
    count = said.count(False)
    half = (len(said) + 1) // 2
    if half < count:
        return half
    return (count + 1) // 2 if count > 1 else None


def _said_macro(block: Region, ins: Instruction, code: Sequence[Item], regs: RegisterMap) -> bool:
    """Whether a macro has words."""
    macro = macro_of(code, regs, not ins.guard.is_true)
    if macro is None:
        return False
    try:
        alone = replace(block, instructions=(ins,), macros={ins.offset: macro})
        region_text(alone, regs, frozenset(ins.writes))
    except EncodeError:
        return False
    return True


def _macros(
    part: Region, code: Sequence[Sequence[Item]], said: Sequence[bool], regs: RegisterMap
) -> dict[int, Macro] | None:
    """The macros of a part by offset; None if the code of one is none."""
    out: dict[int, Macro] = {}
    for ins, group, is_said in zip(part.instructions, code, said, strict=True):
        if is_said:
            macro = macro_of(group, regs, not ins.guard.is_true)
            if macro is None:
                return None
            out[ins.offset] = macro
    return out


def said_as(region: CutRegion, regs: RegisterMap) -> CutRegion | None:
    """The region with prompt and answer, if both can be expressed."""
    try:
        asked = region_text(region.block, regs, region.live_out)
        return replace(region, asked=asked, answer=tuple(code_words(region.code, asked)))
    except EncodeError:
        return None


def _cuts(
    instructions: Sequence[Instruction], own: Sequence[bool], said: Sequence[bool], longest: int
) -> Iterator[tuple[int, int, bool]]:
    at = 0
    while at < len(instructions):
        if own[at]:
            yield at, at + 1, True
            at += 1
            continue
        end = at
        while end < len(instructions) and not own[end]:
            end += 1
        while (most := _most(said, at, end, longest)) < end:
            cut = _cut(instructions, at, most - at)
            yield at, cut, False
            at = cut
        yield at, end, False
        at = end


def _most(said: Sequence[bool], first: int, end: int, longest: int) -> int:
    """Where at most ``longest`` instructions besides macros end."""
    left = longest
    for n in range(first, end):
        left -= not said[n]
        if left < 0:
            return n
    return end


def _cut(instructions: Sequence[Instruction], first: int, longest: int) -> int:
    """The place to cut a long run: late, and preferably not inside a run of one guard."""
    for end in range(first + longest, first + longest // 2, -1):
        before, after = instructions[end - 1].guard, instructions[end].guard
        if before.is_true or before != after:
            return end
    return first + longest


__all__ = ["LONGEST", "CutRegion", "cut_regions", "grouped", "is_macro", "rules_code"]
