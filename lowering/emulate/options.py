"""Options of the compilation to host code, and the places that a trace observes."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, VCC_LO, VGPRS
from sassxlate.errors import EmulatorError
from sassxlate.lowering.target import DEFAULT, Target

Isa = Literal["avx512", "avx2"]
Alignment = Literal["natural", "unaligned"]

# With common/host_cpu.h: what LLVM's x86-64-v3 and v4 take for granted, by the kernel's names (abm:
# lzcnt).  It names no feature whose registers it does not save.
_NEEDS_AVX2 = frozenset({"avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe", "popcnt"})
_NEEDS_AVX512 = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"})


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of a compilation.

    ``isa`` None is the host's best.  ``align``: "natural" faults as CUDA does (8 bytes for b64,
    16 for b128); "unaligned" lets every access but an atomic be at any address, as the hardware
    does in the mode that AMD's drivers set, which LLVM relies on.  ``float_mode``
    is the kernel descriptor's FLOAT_MODE byte: rounding 3:0, denormals 7:4; ``scratch`` its bytes
    of scratch per lane, a lower bound for every launch; ``kernarg`` the SGPR pair that every wave
    starts with the address of its arguments in, and how many bytes of them each launch has in
    ``SxWave.arguments`` (None: unknown); ``workgroup`` the SGPR that every wave starts with its
    workgroup's number in a row in (None: none has it); ``vgprs`` how many registers a wave has,
    which bounds those that M0 can name; ``sgprs`` has a bit for each SGPR that a
    launch initialises; ``uniform`` are offsets, from the entry, of v_readfirstlane instructions
    whose active lanes are equal, ``fences`` of instructions before which all memory accesses are
    done: strict mode checks both.  ``counts``: each block adds 1 to its counter in
    ``SxWave.counts`` on entry (``counts.py``).  ``trace`` are the places where registers are
    recorded (``trace_points.py``); None: none, and no bound on a launch's length.  ``poison``: in
    strict mode undefined values are seeded rubbish, not 0.  ``target`` is the
    processor whose counters and hazards strict mode checks.  ``turns``: a wave gives way before
    each access to memory (``turns.py``).  ``quick``: without optimisation, in
    less time.  ``entered``: the numbers of the blocks that have been entered, by address; others
    may be left out (``wave/partial``), but not of strict, traced or quick code.  None: all have.
    """

    strict: bool = False
    isa: Isa | None = None
    opt: int = 1
    align: Alignment = "natural"
    float_mode: int = 0xF0
    ieee: bool = False
    dx10_clamp: bool = True
    scratch: int = 0
    kernarg: tuple[int, int] | None = None
    workgroup: int | None = None
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
    entered: frozenset[int] | None = None


def _flags() -> frozenset[str]:
    """The features of this processor.  Not by llvmlite, whose import would delay a first launch."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


@functools.cache
def host_isa() -> Isa:
    """The best instruction set of this machine, or the one that SASSXLATE_ISA asks for.

    Raises:
        EmulatorError: SX0624, the host has not even AVX2, FMA and F16C, or not what is asked for.
    """
    asked, flags = os.environ.get("SASSXLATE_ISA", ""), _flags()
    if asked not in ("", "avx2", "avx512"):
        raise EmulatorError("SX0624", f"SASSXLATE_ISA={asked} is neither avx2 nor avx512")
    if not flags >= _NEEDS_AVX2:
        raise EmulatorError("SX0624", "the emulated device needs a CPU with AVX2, FMA and F16C")
    if flags >= _NEEDS_AVX512:
        return "avx2" if asked == "avx2" else "avx512"
    if asked == "avx512":
        raise EmulatorError("SX0624", "SASSXLATE_ISA=avx512, but this CPU has no AVX-512")
    return "avx2"


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
