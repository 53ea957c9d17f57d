"""What an answer may do besides computing the right result; checked before any proof.

The verifier takes each place in the register map as the block's own.  An answer must not:
a register that the block's SASS does not write may be needed by lanes that wait elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from sassxlate.disasm.rdna3 import RRef, can_encode, writes
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, VCC_LO
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.errors import EncodeError
from sassxlate.lowering.passes.hazards import check_mad
from sassxlate.lowering.region.macro import MACRO, misplaced
from sassxlate.lowering.region.places import place_of
from sassxlate.lowering.region.subset import guard, in_subset
from sassxlate.lowering.region.text import RegionText


def writable_registers(here: RegionText) -> frozenset[RRef]:
    """The registers that an answer may write: the results of the SASS, and temporaries."""
    regs = here.regs
    out = {RRef("s", i) for i in regs.stemps} | {RRef("s", VCC_LO), RRef("s", VCC_LO + 1)}
    out |= {
        RRef("v", at.index)
        for name, at in here.names.place.items()
        if name[0] == "t" and name[1:].isdigit()
    }
    refs = frozenset[RegRef]().union(*(i.writes for i in here.block.instructions))
    for ref in refs:
        kind, at = place_of(ref, regs)
        out.add(RRef("v" if kind in "vl" else "s", at))
    if here.known is not None:
        out |= {RRef("v", at) for at in here.known.vectors}
    return frozenset(out)


def check_legality(code: Sequence[Sequence[Inst]], here: RegionText) -> None:
    """Raises EncodeError SX0546 for an instruction that does not encode, is outside the subset,
    or writes a register that it must not, and for a guard left open; LoweringError SX0430 for a
    destination that overlaps its own source where the unit forbids it."""
    mine = writable_registers(here)
    opened = False
    wrong = misplaced(code, here.block.instructions, here.block.macros, here.regs)
    if wrong is not None:
        raise EncodeError("SX0546", wrong)
    for group in code:
        for inst in group:
            if inst.op == MACRO:
                continue
            if not in_subset(inst, here.regs):
                raise EncodeError("SX0546", f"{inst.op} is not in the subset of instructions")
            reason = can_encode(inst)
            if reason is not None:
                raise EncodeError("SX0546", f"{inst.op}: {reason}")
            narrowed = guard(inst, here.regs)
            if narrowed is not None:
                if opened == (narrowed[0] == ".pred"):
                    raise EncodeError("SX0546", f"{narrowed[0]} in an open guard, or without one")
                opened = narrowed[0] != ".endpred"
                continue
            check_mad(inst)
            for ref in writes(inst):
                if ref.kind == "s" and ref.number == EXEC_LO:
                    raise EncodeError("SX0546", f"{inst.op} writes EXEC")
                if ref.kind in ("v", "s") and ref not in mine:
                    message = f"{inst.op} writes {ref.kind}{ref.number}, not a result of the SASS"
                    raise EncodeError("SX0546", message)
    if opened:
        raise EncodeError("SX0546", "a guard is open at the end")


__all__ = ["check_legality", "writable_registers"]
