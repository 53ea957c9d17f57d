"""The seam between the translator and the engines that write code: a function of one block.

An engine is told a block of straight-line SASS, where its registers live and which of them are read
behind it, and nothing else.  It answers with RDNA3 that has neither waits nor hazards mitigated:
those, EXEC between blocks, and all control flow are the translator's, for every engine.  The rules
are one engine; a model is another (``sassxlate.llm``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from sassxlate.cfg.liveness import live_before
from sassxlate.disasm.rdna3.ir import Inst, Item
from sassxlate.disasm.sass.ir import Instruction, RegRef

from .allocate import RegisterMap
from .launch import BankLayout

if TYPE_CHECKING:
    from .select import Selected


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is the same for all blocks of a kernel, besides the register map."""

    name: str
    arch: int
    layout: BankLayout
    bank_table: Mapping[int, int]  # constant bank -> offset of its pointer in the kernarg segment
    shared_size: int = 0
    externs: tuple[str, ...] = ()
    textures: int = 0
    sharing: bool = False
    grid_words: Mapping[int, int] = field(default_factory=dict[int, int])
    grid_workspace: int = 0
    idle: frozenset[int] = frozenset()

    @property
    def tables(self) -> dict[int, int]:
        """Offset in the kernarg segment -> the constant bank whose address stands there."""
        return {offset: bank for bank, offset in self.bank_table.items()}


@dataclass(frozen=True, slots=True)
class SassBlock:
    """Straight-line SASS: a block of the graph without what transfers control, or the part of one
    before, between or behind instructions that act on barriers (BSSY, BREAK, BMOV, B2R).

    ``merged`` are the predicates whose bits of waiting lanes must survive.  ``converged``: no lane
    waits elsewhere.  Instructions whose results nobody reads, and those that only schedule, are
    left out.
    """

    index: int  # of the graph's block
    instructions: tuple[Instruction, ...]
    converged: bool
    merged: frozenset[RegRef]
    around: Surroundings

    @property
    def start(self) -> int:
        """The byte offset of the first instruction."""
        return self.instructions[0].offset

    def live_in(self, live_out: frozenset[RegRef]) -> frozenset[RegRef]:
        """What is read in the block or behind it, as it is before."""
        live = live_out
        for ins in reversed(self.instructions):
            live = live_before(ins, live)
        return live


@dataclass(frozen=True, slots=True)
class RdnaBlock:
    """An engine's answer, in which labels and branches are forward and inside."""

    items: tuple[Item, ...]
    engine: str


class Engine(Protocol):
    """Whoever writes the code of blocks."""

    @property
    def name(self) -> str: ...

    def translate(
        self, block: SassBlock, regs: RegisterMap, live_out: frozenset[RegRef]
    ) -> RdnaBlock | None:
        """The block's code; None where the engine has none to offer.

        Raises LoweringError for an instruction that the engine refuses.
        """
        ...


@dataclass(frozen=True, slots=True)
class Piece:
    """A block of a selected kernel, and the rules' code of it: ``items[first:end]``."""

    block: SassBlock
    live_out: frozenset[RegRef]
    first: int
    end: int


@dataclass(slots=True)
class Pieces:
    """Finds the pieces of one block of the graph while the rules write its body.

    A piece ends before and behind an instruction of the convergence machine, where EXEC is all of
    the block's lanes; where a guard spans such an instruction, what it spans is no piece.
    """

    found: list[tuple[tuple[Instruction, ...], int, int]] = field(
        default_factory=list[tuple[tuple[Instruction, ...], int, int]]
    )
    _members: list[Instruction] = field(default_factory=list[Instruction])
    _first: int = 0
    _mixed: bool = False
    _state: bool = False  # the last instruction was one of the machine's

    def add(self, ins: Instruction, at: int, *, state: bool, clean: bool) -> None:
        """An instruction whose code begins at item ``at``.  ``clean``: no guard is open there."""
        if clean and (state or self._state or not self._members):
            self.end(at)
        self._state = state
        self._mixed |= state
        self._members.append(ins)

    def end(self, at: int) -> None:
        """Nothing of the piece stands behind item ``at``."""
        if self._members and not self._mixed:
            self.found.append((tuple(self._members), self._first, at))
        self._members, self._first, self._mixed, self._state = [], at, False, False


def rewritten(selected: Selected, answers: Mapping[int, RdnaBlock]) -> Selected:
    """The kernel with other code for some of its pieces, by their number.

    Each instruction of an answer is marked with the piece's last SASS instruction, so that the
    verifier takes the code as that of the piece as a whole.
    """
    items: list[Item] = []
    at = 0
    pieces = list(selected.pieces)
    for n, piece in enumerate(selected.pieces):
        items += selected.items[at : piece.first]
        first = len(items)
        answer = answers.get(n)
        old = selected.items[piece.first : piece.end]
        items += old if answer is None else marked(answer.items, piece.block.instructions)
        pieces[n] = replace(piece, first=first, end=len(items))
        at = piece.end
    items += selected.items[at:]
    return replace(selected, items=tuple(items), pieces=tuple(pieces))


def marked(items: Iterable[Item], instructions: Sequence[Instruction]) -> list[Item]:
    """Items with the last instruction that they stand for as comments."""
    last = instructions[-1]
    offset = f"/*{last.offset:04x}*/"
    out: list[Item] = []
    for item in items:
        text = f"{offset} {last.text}" if not out else offset
        out.append(replace(item, comment=text) if isinstance(item, Inst) else item)
    return out
