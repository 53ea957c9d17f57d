"""The verifier's question: a block of SASS, its RDNA3, and the place of each register."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.lowering.abi.kernarg import BankLayout
from sassxlate.lowering.nans.reads import Nan
from sassxlate.lowering.regalloc.register_map import RegisterMap

if TYPE_CHECKING:
    from sassxlate.lowering.verify.rdna3.execute import Placed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BlockPair:
    """The two sides to compare: SASS instructions and the code of each, the place of each SASS
    register, the live-out set.  An engine that does not say which code implements which instruction
    assigns all of it to the last.

    ``merged`` are the predicates whose bits of waiting lanes must survive; ``tables`` gives the
    offsets in the kernarg segment of the addresses of constant banks.  ``tail`` is the start of
    the control transfer, up to its first branch: only its waits are checked.
    ``routines`` is code outside the block that is called, by offset.  ``wide`` are the offsets of
    instructions that read the bits of a double whose NaN may differ, ``exact`` those of operations
    on doubles whose NaN is SASS's to the bit, ``loose`` the registers whose NaN may differ from
    SASS's (:mod:`.nans`), ``loose_out`` all registers that may be loose after the block.
    ``macros`` are the numbers of instructions whose code is the rules' by construction: it is not
    looked into (:func:`.trusted_instructions.macro_cut`).
    """

    sass: Sequence[Instruction]
    rdna: Sequence[Sequence[Placed]]
    regs: RegisterMap
    layout: BankLayout
    merged: frozenset[RegRef]
    tables: Mapping[int, int] = field(default_factory=dict[int, int])
    live_out: frozenset[RegRef] | None = None  # None: everything
    tail: Sequence[Placed] = ()
    routines: Mapping[int, Sequence[Placed]] = field(default_factory=dict[int, "Sequence[Placed]"])
    wide: frozenset[int] = frozenset()
    exact: frozenset[int] = frozenset()
    loose: Mapping[RegRef, Nan] = field(default_factory=dict[RegRef, Nan])
    loose_out: Mapping[RegRef, frozenset[Nan]] = field(
        default_factory=dict[RegRef, "frozenset[Nan]"]
    )
    macros: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Obligation(Generic[T]):
    """A place by its SASS name, with the value that each side leaves in it.

    Where the two are only whether the values are alike, those are in ``values``.
    """

    name: str
    sass: T
    rdna: T
    values: tuple[T, T] | None = None
