"""What is compared: a block of SASS, its RDNA3, and where each register lives."""

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
    """What is compared: instructions and the code of each, where each SASS register lives, what is
    live behind.  An engine that does not say which code is whose gives it all to the last.

    ``merged`` are the predicates whose bits of waiting lanes must survive; ``tables`` says at which
    offsets of the kernarg segment the addresses of constant banks stand.  ``tail`` is the start of
    what transfers control, up to its first branch: only the waits in it are looked at.
    ``routines`` is code that stands elsewhere and is called, by offset.  ``wide`` are the
    offsets of instructions that read the bits of a double whose NaN may be another, ``exact`` of
    operations of doubles whose NaN is SASS's to the bit, ``loose`` the registers whose NaN may be
    another than SASS has (:mod:`.nans`), ``loose_out`` what must hold of them behind: all that is
    named.
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


@dataclass(frozen=True, slots=True)
class Obligation(Generic[T]):
    """A place by its SASS name, with what each side leaves in it."""

    name: str
    sass: T
    rdna: T
