"""The state of a kernel while its code is written."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sassxlate.disasm.rdna3.instruction import Item
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.lowering.abi.kernarg import BankLayout
from sassxlate.lowering.nans.bits import NanBits
from sassxlate.lowering.passes.coalesce_copies import Shorter
from sassxlate.lowering.regalloc.register_map import RegisterMap


@dataclass(slots=True)
class Spans:
    """A kernel's spans in order: ``items[firsts[n]:ends[n]]`` is the code that one emitter wrote
    for ``instructions[n]``, without the EXEC of its guard.  Temporaries end with it.

    There is no object for each: a kernel of 100,000 instructions has two lists of them at a time.
    """

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    firsts: array[int] = field(default_factory=lambda: array("I"))
    ends: array[int] = field(default_factory=lambda: array("I"))

    def add(self, ins: Instruction, first: int, end: int) -> None:
        """Appends a span."""
        self.instructions.append(ins)
        self.firsts.append(first)
        self.ends.append(end)

    def moved(self, shorter: Shorter) -> Spans:
        """The spans of the same program where some lost items."""
        return Spans(self.instructions, shorter.moved(self.firsts), shorter.moved(self.ends))


@dataclass(slots=True)
class KernelBuilder:
    """State shared by the rules of one kernel; ``items`` is the program so far, or, where it is
    taken away part by part, the rest of it."""

    name: str
    arch: int
    layout: BankLayout
    regs: RegisterMap
    bank_table: dict[int, int]  # constant bank -> byte offset of its pointer in the kernarg segment
    merge: frozenset[RegRef]  # predicates whose bits of waiting lanes must survive a write
    items: list[Item] = field(default_factory=list[Item])
    spans: Spans = field(default_factory=Spans)  # of finished instructions
    labels: int = 0
    vtemps_used: int = 0
    rules_used: dict[str, int] = field(default_factory=dict[str, int])
    shared_size: int = 0  # static shared memory, bytes
    grid_words: Mapping[int, int] = field(default_factory=dict[int, int])  # bank 0 -> half
    grid_workspace: int = 0  # offset of the grid's counters in bank 4
    externs: tuple[str, ...] = ()  # the driver's functions that the kernel calls
    idle: frozenset[int] = frozenset()  # offsets of instructions whose results are never read
    nans: NanBits = field(default_factory=NanBits)  # where a NaN's bits are observable
    textures: int = 0  # offset in the kernarg segment of the address of the texture table
    locks: int = 0  # and of the locks for 128-bit atomics
    smid: int = 0  # and of the number of multiprocessors, after which its reciprocal is
    param_size: int = 0  # bytes of parameters
    left_out: int = 0  # functions that it may call through pointers, and that are not there
    outlining: bool = False  # whether rules with long code put it after the kernel, once
    part: int = 0  # items of a part, where the code goes to ``take`` part by part
    take: Callable[[KernelBuilder], None] | None = None
    # Label -> function that writes the routine, given the kernel and an instruction for errors.
    outlined: dict[str, Outlined] = field(default_factory=dict[str, "Outlined"])

    def label(self, stem: str) -> str:
        self.labels += 1
        return f"{stem}_{self.labels}"


Outlined = Callable[[KernelBuilder, Instruction], None]
