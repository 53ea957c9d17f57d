"""Cuts at instructions that no solver decides: those that reach other lanes, loop around an
atomic, or approximate.

Before one, both sides are proved to agree on everything it reads; its code is shown to be its
rule's, bit by bit, to write nothing but its destinations and temporaries, and to keep EXEC and
inactive lanes.  Then both sides continue with one free value.  That the rule's code computes the
right value is not proved, but was tested: :mod:`.rule_evidence` has the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.disasm.rdna3 import RRef
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, M0, VCC_LO
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.verify.block.block import BlockPair
from sassxlate.lowering.verify.block.matches_rule import Parts, matches_rule, parts
from sassxlate.lowering.verify.block.rule_evidence import rule_evidence
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.rdna3.frame import Frame, frame
from sassxlate.lowering.verify.rdna3.inlined_routines import inlined
from sassxlate.lowering.verify.rdna3.wait_counters import waits

_KINDS = ("load", "store", "atomic", "reduction", "arrival", "copy", "bulk")


@dataclass(frozen=True, slots=True)
class Cut:
    """Passes over one instruction's code."""

    name: str  # of the assumption
    parts: Parts
    frame: Frame
    memory: bool
    releases: bool  # whether it makes earlier accesses visible


def _reading(ins: Instruction) -> str | None:
    """The assumption of the cut; None if nothing was tested."""
    if traits(ins).clock:
        return "clocks read anything"
    if rule_evidence(ins) is None:
        return None
    return "tested rule " + ".".join((ins.mnemonic, *ins.modifiers))


def places(block: BlockPair, ref: RegRef) -> RRef | None:
    """The place of a register; None in scratch."""
    m = block.regs
    if ref.file == "R":
        return RRef("v", m.r[ref.index]) if ref.index in m.r else None
    if ref.file == "UR":
        if ref.index in m.ur:
            return RRef("s", m.ur[ref.index])
        return RRef("v", m.ur_lanes[ref.index]) if ref.index in m.ur_lanes else None
    place = (m.p if ref.file == "P" else m.up).get(ref.index)
    return None if place is None else RRef("s", place.index)


def cut_at(block: BlockPair, n: int) -> Cut | str:
    """The cut at SASS instruction ``n``, or why there is none.  Raises Undecided."""
    ins = block.sass[n]
    name = _reading(ins)
    if name is None:
        return f"{ins.mnemonic} was not tested on inputs"
    split = parts(block.rdna[n], block.regs)
    core, bodies = inlined(split.core, block.routines)
    if not matches_rule(ins, core, block.regs, block.layout, block.merged, block.tables):
        return f"the code of {ins.mnemonic} is not its rule's"
    for body in bodies:
        early = waits(body).early
        if early is not None:
            return f"a missing wait in what {ins.mnemonic} calls: {early}"
    memory = traits(ins).reaches(_KINDS, "global", "generic", "shared")
    return _framed(block, n, name, split, core, memory)


def macro_cut(block: BlockPair, n: int) -> Cut | str:
    """The cut at a macro of a region, whose code is the rules' own because nothing else can be
    said; or why there is none.  Raises Undecided.

    Whatever it does to memory counts as one access, so that no other access, fence or macro may
    change places with it.
    """
    ins = block.sass[n]
    split = parts(block.rdna[n], block.regs)
    core, bodies = inlined(split.core, block.routines)
    if bodies:
        return f"the code of {ins.mnemonic} calls a routine"
    name = "rules' code of " + ".".join((ins.mnemonic, *ins.modifiers))
    return _framed(block, n, name, split, core, True)


def _framed(
    block: BlockPair, n: int, name: str, split: Parts, core: Sequence[Placed], memory: bool
) -> Cut | str:
    """The cut, if the code writes nothing but its results and temporaries."""
    ins, regs = block.sass[n], block.regs
    kinds = {"mem", "lds", "scratch"} if memory else {"scratch"} if regs.spilled else set[str]()
    kept = frame(core, frozenset(kinds), regs.vtemp_base)
    mine = {places(block, ref) for ref in ins.writes}
    for reg in kept.written:
        temporary = reg.number >= regs.vtemp_base
        if reg.kind == "s":
            temporary = reg.number in {*regs.stemps, VCC_LO, VCC_LO + 1, M0, EXEC_LO}
        if reg not in mine and not temporary:
            return f"the code of {ins.mnemonic} writes {reg.kind}{reg.number}"
    for ref in ins.writes & block.merged:
        place = places(block, ref)
        if ref.file in ("P", "UP") and place is not None and not kept.keeps(place.number):
            return f"the code of {ins.mnemonic} changes other lanes' {ref.file}{ref.index}"
    return Cut(name, split, kept, memory, _releases(ins))


def _releases(ins: Instruction) -> bool:
    """Whether it makes earlier accesses visible to other lanes: arrivals, copies that arrive."""
    if ins.mnemonic == "SYNCS":
        return ins.has("ARRIVE") or ins.has("EXCH")
    inwards = ins.mnemonic == "UBLKCP" and ins.modifiers[:2] == ("S", "G")
    return inwards or ins.mnemonic == "ARRIVES" or ins.has("ARRIVE")


__all__ = ["Cut", "cut_at", "macro_cut", "places"]
