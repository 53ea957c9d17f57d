"""The interface between the translator and code writers: blocks of straight-line SASS.

An engine gets a region's instructions, the places of their registers and the registers read after
it, and nothing else.  Its code has no waits and no mitigation of hazards: these, EXEC between
blocks, and all control flow belong to the translator, whichever engine wrote the code.  The rules
are one engine; a model is another (``sassxlate.llm``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sassxlate.cfg.liveness import live_before
from sassxlate.cfg.register_sets import refs_of
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.lowering.abi.kernarg import BankLayout
from sassxlate.lowering.nans.bits import NanBits
from sassxlate.lowering.region.macro import Macro, Macros


@dataclass(frozen=True, slots=True)
class KernelEnv:
    """The facts shared by all blocks of a kernel, besides the register map."""

    name: str
    arch: int
    layout: BankLayout
    bank_table: Mapping[int, int]  # constant bank -> offset of its pointer in the kernarg segment
    shared_size: int = 0
    externs: tuple[str, ...] = ()
    textures: int = 0
    outlining: bool = False
    grid_words: Mapping[int, int] = field(default_factory=dict[int, int])
    grid_workspace: int = 0
    idle: frozenset[int] = frozenset()
    locks: int = 0
    nans: NanBits = field(default_factory=NanBits)
    smid: int = 0
    param_size: int = 0

    @property
    def tables(self) -> dict[int, int]:
        """Offset in the kernarg segment -> the constant bank whose address is there."""
        return {offset: bank for bank, offset in self.bank_table.items()}


@dataclass(frozen=True, slots=True)
class Region:
    """Straight-line SASS: a block of the graph without its control transfer, or the part of one
    before, between or after instructions that act on barriers (BSSY, BREAK, BMOV, B2R).

    ``merged`` are the predicates whose bits of waiting lanes must survive.  ``converged``: no lane
    waits elsewhere.  Instructions whose results are never read, and those that only schedule, are
    left out.  ``macros`` are those whose code stays the rules', by offset (:mod:`.macro`).
    """

    index: int  # of the graph's block
    instructions: tuple[Instruction, ...]
    converged: bool
    merged: frozenset[RegRef]
    around: KernelEnv
    macros: Macros = field(default_factory=dict[int, Macro])

    @property
    def start(self) -> int:
        """The byte offset of the first instruction."""
        return self.instructions[0].offset

    def live_in(self, live_out: frozenset[RegRef]) -> frozenset[RegRef]:
        """The live-in set: registers read in the block or after it, with their values before it."""
        live = live_out
        for ins in reversed(self.instructions):
            live = live_before(ins, live)
        return live


@dataclass(frozen=True, slots=True)
class RegionSite:
    """A block of a selected kernel, and the rules' code of it: ``items[first:end]``.

    ``live_bits`` are the registers read after it, as an integer (``cfg/register_sets.py``).
    ``starts`` has for each instruction, and for the end of the last, the item at which its code
    begins; None if a guard's EXEC spans it, so that the code cannot be cut there.
    """

    block: Region
    live_bits: int
    first: int
    end: int
    starts: tuple[int | None, ...]

    @property
    def live_out(self) -> frozenset[RegRef]:
        """The registers read after it, as a set."""
        return refs_of(self.live_bits)


@dataclass(frozen=True, slots=True)
class BlockBody:
    """Instructions of one block and the items of each, see :class:`RegionSite`."""

    members: tuple[Instruction, ...]
    starts: tuple[int | None, ...]


@dataclass(slots=True)
class KernelBodies:
    """Collects the pieces of one block of the graph while the rules write its body.

    A piece ends before and after an instruction of the convergence machine, where EXEC is all of
    the block's lanes; if a guard spans such an instruction, the code that it spans is not a piece.
    """

    found: list[BlockBody] = field(default_factory=list[BlockBody])
    _members: list[Instruction] = field(default_factory=list[Instruction])
    _starts: list[int | None] = field(default_factory=list["int | None"])
    _mixed: bool = False
    _state: bool = False  # the last instruction belonged to the machine

    def add(self, ins: Instruction, at: int, *, state: bool, clean: bool) -> None:
        """An instruction whose code begins at item ``at``.  ``clean``: no guard is open there."""
        if clean and (state or self._state):
            self.end(at)
        self._state = state
        self._mixed |= state
        self._members.append(ins)
        self._starts.append(at if clean else None)

    def end(self, at: int) -> None:
        """Ends the piece at item ``at``."""
        if self._members and not self._mixed:
            self.found.append(BlockBody(tuple(self._members), (*self._starts, at)))
        self._members, self._starts = [], []
        self._mixed = self._state = False
