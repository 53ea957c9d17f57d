"""Options of the compilation to host code, and the places that a trace observes."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal, TypeAlias

import llvmlite.binding as llvm

from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, VCC_LO, VGPRS
from sassxlate.errors import EmulatorError
from sassxlate.lowering.target import DEFAULT, Target

Isa = Literal["avx512", "avx2"]
Alignment = Literal["natural", "unaligned"]

_NEEDS_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd")

# With common/host_cpu.h: what LLVM's x86-64-v3 and v4 take for granted.
_NEEDS_AVX2 = ("avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe", "popcnt")


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of a compilation.

    ``isa`` None is the host's best.  ``align``: "natural" faults as CUDA does (8 bytes for b64,
    16 for b128); "unaligned" lets every access but an atomic be at any address, as the hardware
    does in the mode that AMD's drivers set, which LLVM relies on.  ``float_mode``
    is the kernel descriptor's FLOAT_MODE byte: rounding 3:0, denormals 7:4; ``scratch`` its bytes
    of scratch per lane, a lower bound for every launch; ``vgprs`` how many registers a wave has,
    which bounds those that M0 can name; ``sgprs`` has a bit for each SGPR that a
    launch initialises; ``uniform`` are offsets, from the entry, of v_readfirstlane instructions
    whose active lanes are equal, ``fences`` of instructions before which all memory accesses are
    done: strict mode checks both.  ``counts``: each block adds 1 to its counter in
    ``SxWave.counts`` on entry (``counts.py``).  ``trace`` are the places where registers are
    recorded (``trace_points.py``); None: none, and no bound on a launch's length.  ``poison``: in
    strict mode undefined values are seeded rubbish, not 0.  ``target`` is the
    processor whose counters and hazards strict mode checks.  ``turns``: a wave gives way before
    each access to memory (``turns.py``).  ``quick``: without optimisation, in
    less time.
    """

    strict: bool = False
    isa: Isa | None = None
    opt: int = 1
    align: Alignment = "natural"
    float_mode: int = 0xF0
    ieee: bool = False
    dx10_clamp: bool = True
    scratch: int = 0
    vgprs: int = VGPRS
    sgprs: int = 0xFFFF
    uniform: frozenset[int] = frozenset()
    fences: frozenset[int] = frozenset()
    counts: bool = False
    trace: tuple[TracePoint, ...] | None = None
    poison: bool = True
    target: Target = DEFAULT
    turns: bool = False
    quick: bool = False


@functools.cache
def host_isa() -> Isa:
    """The best instruction set of this machine.

    Raises:
        EmulatorError: SX0624, the host has not even AVX2, FMA and F16C.
    """
    features = llvm.get_host_cpu_features()
    if not all(features.get(f) for f in _NEEDS_AVX2):
        raise EmulatorError("SX0624", "the emulated device needs a CPU with AVX2, FMA and F16C")
    return "avx512" if all(features.get(f) for f in _NEEDS_AVX512) else "avx2"


# v: a VGPR; s: a scalar register; x: a slot of scratch, by its byte offset; m: the word of device
# memory at an address, l: the word of LDS at an offset; both must exist.
PlaceKind: TypeAlias = Literal["v", "s", "x", "m", "l"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The place of a value."""

    kind: PlaceKind
    index: int

    def __str__(self) -> str:
        names = {VCC_LO: "vcc_lo", EXEC_LO: "exec_lo"}
        if self.kind == "s" and self.index in names:
            return names[self.index]
        if self.kind in ("m", "l"):
            return f"{'LDS' * (self.kind == 'l')}[{self.index:#x}]"
        return f"scratch+{self.index}" if self.kind == "x" else f"{self.kind}{self.index}"


@dataclass(frozen=True, slots=True)
class TracePoint:
    """``pc`` is the offset of an instruction from the kernel's entry; ``mask`` the scalar register
    with the lanes to record.  There is no point after an instruction that jumps."""

    number: int
    pc: int
    after: bool
    places: tuple[Place, ...]
    mask: int = EXEC_LO

    @property
    def wide(self) -> tuple[Place, ...]:
        """The places with one value per lane, in the order of the record."""
        return tuple(p for p in self.places if p.kind in ("v", "x"))

    @property
    def scalar(self) -> tuple[Place, ...]:
        return tuple(p for p in self.places if p.kind in ("s", "m", "l"))
