"""Properties of instructions, for all code that has to distinguish instructions.

::

    t = traits(ins)
    t.pure, t.memory, t.transfer, t.lanes ...

Derived from the instruction's rows, its semantics, and the hand-written :mod:`.tables.effects`;
no other module keeps a list of mnemonics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from sassxlate.disasm.sass.instruction import Instruction, Special
from sassxlate.disasm.sass.semantics import Semantics, converts, semantics_table
from sassxlate.disasm.sass.semantics.rows import Number
from sassxlate.disasm.sass.tables import ROWS
from sassxlate.disasm.sass.tables.effects import (
    NONE,
    Barrier,
    Effects,
    Lanes,
    Memory,
    Order,
    Subnormals,
    Transfer,
    effects_of,
    subnormals_of,
)
from sassxlate.disasm.sass.tables.spec import P, R, Row, S, When

# No instructions of the hardware: a pass puts them where nvcc wrote a function for a quotient or
# root.  By mnemonic, the format of the numbers.
QUOTIENTS: Mapping[str, Number] = {"FDIV": "f32", "FSQRT": "f32", "DDIV": "f64", "DSQRT": "f64"}
INTEGER_QUOTIENTS = frozenset({"UDIV64", "UREM64", "SDIV64", "SREM64"})
INLINE_QUOTIENTS = frozenset({"UDIV32", "UREM32", "SDIV32", "SREM32"})
_CLOCKS = ("SR_CLOCK", "SR_GLOBALTIMER")


@dataclass(frozen=True, slots=True)
class Traits:
    """``transfer``, ``barrier``, ``memory``, ``lanes``, ``order`` and ``yields`` are those of
    :class:`.tables.effects.Effects`.

    ``pure``: its results depend only on its operands (registers, predicates, immediates and
    constants), in each lane separately, and it does nothing else.
    ``uniform``: all lanes that execute it together get the same results.
    ``clock``: it reads a clock, for which any value is right.
    ``approximate``: the result is right only within stated bounds.
    ``converts``: it converts between number formats.
    ``masked``: an immediate mask selects the predicates that it reads or writes; no operand names
    them. ``number``: the format of the floats that it reads unless a modifier gives another.
    ``subnormals``: how it treats those of binary32, as :mod:`.tables.effects` has it.
    ``base``: the mnemonic, without the U of an instruction of the uniform data path.
    """

    mnemonic: str
    pure: bool = False
    memory: Memory | None = None
    transfer: Transfer = ""
    barrier: Barrier = ""
    lanes: Lanes = ""
    uniform: bool = False
    order: Order = ""
    yields: bool = False
    clock: bool = False
    approximate: bool = False
    converts: bool = False
    masked: bool = False
    number: Number = ""
    subnormals: Subnormals = ""
    base: str = ""

    @property
    def ends_block(self) -> bool:
        """Whether control after it may go elsewhere than to the next instruction."""
        return self.transfer != ""

    def reaches(self, kinds: Iterable[str], *spaces: str) -> bool:
        """Whether it accesses memory in one of these ways and spaces (any space if none is
        named)."""
        m = self.memory
        return m is not None and m.kind in kinds and (not spaces or m.space in spaces)


def derive(
    mnemonic: str,
    rows: Sequence[Row],
    meaning: Semantics | None = None,
    effects: Effects = NONE,
    *,
    is_conversion: bool = False,
    base: str = "",
) -> Traits:
    """The traits of an instruction with these rows and, if any, these per-lane semantics."""
    slots = [s.slot if isinstance(s, When) else s for r in rows for s in r.operands.values()]
    written: set[str] = {s.file for s in slots if isinstance(s, R | P) and s.write}
    written |= {"UP" for r in rows if r.effect == "ur2up"}
    constant = effects == Effects(memory=effects.memory) and (
        effects.memory is None or effects.memory.space == "constant"
    )
    special = any(isinstance(s, S) for s in slots)
    return Traits(
        mnemonic,
        pure=meaning is not None and constant and not special,
        memory=effects.memory,
        transfer=effects.transfer,
        barrier=effects.barrier,
        lanes=effects.lanes,
        uniform=effects.one or (bool(written) and written <= {"UR", "UP"}),
        order=effects.order,
        yields=effects.yields,
        approximate=meaning is not None and meaning.approximate,
        converts=is_conversion,
        masked=any(r.effect for r in rows),
        number="" if meaning is None else meaning.number,
        subnormals=subnormals_of(base or mnemonic),
        base=base or mnemonic,
    )


@cache
def _rows() -> Mapping[str, tuple[Row, ...]]:
    out: dict[str, list[Row]] = {}
    for row in ROWS:
        out.setdefault(row.mnemonic, []).append(row)
    return {name: tuple(rows) for name, rows in out.items()}


@cache
def traits_of(mnemonic: str) -> Traits:
    """The traits that every form of a mnemonic has; none for a mnemonic without rows."""
    if mnemonic in QUOTIENTS:
        return Traits(mnemonic, pure=True, number=QUOTIENTS[mnemonic], base=mnemonic)
    if mnemonic in INTEGER_QUOTIENTS or mnemonic in INLINE_QUOTIENTS:
        return Traits(mnemonic, pure=True, base=mnemonic)
    rows = _rows()
    made = derive(
        mnemonic,
        rows.get(mnemonic, ()),
        semantics_table().get(mnemonic),
        effects_of(mnemonic),
        is_conversion=mnemonic in converts(),
    )
    plain = mnemonic[1:]
    if mnemonic.startswith("U") and made.uniform and plain in rows:
        return replace(made, base=plain, subnormals=subnormals_of(plain))
    return made


@cache
def _clock(mnemonic: str) -> Traits:
    return replace(traits_of(mnemonic), clock=True)


@cache
def _without_special(mnemonic: str) -> Traits | None:
    """The traits of a mnemonic if no form of it reads a special register."""
    rows = _rows().get(mnemonic, ())
    named = not rows or any("sr" in row.operands for row in rows)
    return None if named else traits_of(mnemonic)


_PLAIN: Final[dict[str, Traits]] = {}  # of mnemonics without special registers


def traits(ins: Instruction) -> Traits:
    """The traits of an instruction."""
    known = _PLAIN.get(ins.mnemonic)
    if known is not None:
        return known
    plain = _without_special(ins.mnemonic)
    if plain is not None:
        _PLAIN[ins.mnemonic] = plain
        return plain
    special = ins.operands.get("sr")
    if isinstance(special, Special) and special.name.startswith(_CLOCKS):
        return _clock(ins.mnemonic)
    return traits_of(ins.mnemonic)


def acquires(instructions: Sequence[Instruction], *, earlier: bool = True) -> frozenset[int]:
    """The offsets of the NOPs of straight-line code that are all that is left of an acquire: the
    accesses after it must not be done before the loads before it (docs/memory-order.md).

    ptxas writes a NOP after each access that acquires where NVIDIA's hardware has nothing to
    invalidate: of CTA scope, and of shared memory at every scope (up to sm_89).  Its wait mask has
    the access's scoreboard, unless an instruction between the two has waited for that (one that
    reads the value, or needs another load with the same scoreboard): then there is none.  So a NOP
    without a mask counts, too, if an access that may acquire precedes it; the rest are padding,
    or mark where lanes meet.  ``earlier``: such an access may precede the code.
    """
    found: list[int] = []
    pending = earlier
    for ins in instructions:
        if ins.mnemonic == "NOP":
            if pending or ins.control.wait_mask:
                found.append(ins.offset)
            pending = False
        elif ins.mnemonic == "MEMBAR":
            pending = False
        elif may_acquire(ins):
            pending = True
    return frozenset(found)


def may_acquire(ins: Instruction) -> bool:
    """Whether it may be the access of an acquire: loads and atomics with .STRONG of any scope, and
    all of shared memory, which SASS does not distinguish."""
    t = traits(ins)
    if t.reaches(("load", "atomic", "arrival"), "shared"):
        return True
    return ins.has("STRONG") and t.reaches(("load", "atomic"))


__all__ = [
    "INLINE_QUOTIENTS",
    "INTEGER_QUOTIENTS",
    "QUOTIENTS",
    "Traits",
    "acquires",
    "derive",
    "may_acquire",
    "traits",
    "traits_of",
]
