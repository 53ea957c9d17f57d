"""The effects of instructions, besides computing results from their operands.

A row defines which bits hold which operand, not their use: that a load reads memory, that a
shuffle reads other lanes, that a branch transfers control.  Only this table has that, by mnemonic.
An instruction that only computes has no entry.  Everything else about an instruction is derived
from its rows and its semantics, see :mod:`sassxlate.disasm.sass.traits`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

Space: TypeAlias = Literal[
    "global", "generic", "shared", "local", "constant", "texture", "surface", "tensor", "attribute"
]
Kind: TypeAlias = Literal[
    "load", "store", "atomic", "reduction", "arrival", "copy", "bulk", "query"
]
Transfer: TypeAlias = Literal["", "jump", "indirect", "call", "return", "exit", "wait", "resume"]
Barrier: TypeAlias = Literal["", "arm", "leave", "move", "result"]
Lanes: TypeAlias = Literal["", "first", "some", "whole"]
Order: TypeAlias = Literal["", "schedule", "memory", "hint"]
Subnormals: TypeAlias = Literal["", "sum", "product", "fixed"]


@dataclass(frozen=True, slots=True)
class Memory:
    """An access to memory.

    ``kind``: *load*; *store*; *atomic* (reads and changes in one step, and returns the old value);
    *reduction* (the same without a result); *arrival* (counts at a barrier that is a word of shared
    memory); *copy* (each lane copies from global to shared memory); *bulk* (one copy or reduction
    of many bytes for a warp); *query* (queries an address or a texture and reads no byte).
    ``space`` of a copy is that of its far end: global.  *tensor* is the tensor core's own memory,
    *attribute* data passed between the stages of a graphics pipeline.  ``asynchronous``: it is
    complete when something else signals it (a scoreboard of copies, an arrival barrier).
    """

    kind: Kind
    space: Space
    asynchronous: bool = False


@dataclass(frozen=True, slots=True)
class Effects:
    """``transfer``, where control goes after it: *jump*, to an address in the instruction;
    *indirect*, to one in a register; *call*; *return*; *exit*, the lane ends; *wait*, on once other
    lanes have arrived; *resume*, to the place given by the lane's WARPSYNC.COLLECTIVE.

    ``barrier``, the change to one of B0 to B15, for which lanes wait at a BSYNC: *arm*, the active
    lanes join it; *leave*, they leave it; *move*, to or from a register;
    *result* (of B2R), the result of a BAR.RED.

    ``lanes``, the lanes whose values decide a lane's result: "", only itself; *first*, the first
    lane that executes it; *some*, the lanes that execute it together; *whole*, all 32 lanes, which
    must execute it together.  ``one``: all lanes that execute it together get the same result.

    ``order``, for instructions that change no register, predicate or memory: *schedule*, needless
    with execution in order; *memory*, it orders accesses or invalidates caches, so that others see
    the accesses; *hint*, everything else without an observable effect if copies complete at once
    and errors are reported when they happen.  ``yields``: lets other warps, or lanes, run.

    ``other``: any other effect, which no reader needs to distinguish.
    """

    transfer: Transfer = ""
    barrier: Barrier = ""
    memory: Memory | None = None
    lanes: Lanes = ""
    one: bool = False
    order: Order = ""
    yields: bool = False
    other: str = ""


def _each(names: str, effects: Effects) -> Iterator[tuple[str, Effects]]:
    return ((name, effects) for name in names.split())


def _memory(
    names: str, kind: Kind, space: Space, *, asynchronous: bool = False, lanes: Lanes = ""
) -> Iterator[tuple[str, Effects]]:
    return _each(names, Effects(memory=Memory(kind, space, asynchronous), lanes=lanes))


# A row has the target, but not whether control returns, or what a lane waits for.
_CONTROL = (
    *_each("BRA JMP", Effects("jump")),
    *_each("BRX BRXU JMX JMXU", Effects("indirect")),
    *_each("CALL", Effects("call")),
    *_each("RET", Effects("return")),
    *_each("EXIT KILL", Effects("exit")),
    *_each("BSYNC WARPSYNC BAR", Effects("wait")),
    *_each("ENDCOLLECTIVE", Effects("resume")),
    *_each("BSSY", Effects(barrier="arm")),
    *_each("BREAK", Effects(barrier="leave")),
    *_each("BMOV", Effects(barrier="move")),
    *_each("B2R", Effects(barrier="result")),
    *_each("UCGABAR_ARV UCGABAR_WAIT", Effects(other="a barrier of a cluster")),
    *_each("BPT RPCMOV LEPC ULEPC", Effects(other="traps, or reads the code's address")),
)
# A memory operand looks the same in a load, a store and a prefetch, and the textures have none.
_MEMORY = (
    *_memory("LD", "load", "generic"),
    *_memory("LDG LDGMC", "load", "global"),
    *_memory("LDS", "load", "shared"),
    *_memory("LDL", "load", "local"),
    *_memory("LDC LDCU ULDC", "load", "constant"),
    *_memory("ST", "store", "generic"),
    *_memory("STG USTGR", "store", "global"),
    *_memory("STS", "store", "shared"),
    *_memory("STL", "store", "local"),
    *_memory("STAS", "store", "shared", asynchronous=True),
    *_memory("LDSM", "load", "shared", lanes="whole"),
    *_memory("STSM", "store", "shared", lanes="whole"),
    *_memory("ATOM", "atomic", "generic"),
    *_memory("ATOMG", "atomic", "global"),
    *_memory("ATOMS", "atomic", "shared"),
    *_memory("RED", "reduction", "generic"),
    *_memory("REDG UREDGR", "reduction", "global"),
    *_memory("REDAS", "reduction", "shared", asynchronous=True),
    *_memory("SYNCS", "arrival", "shared"),
    *_memory("ARRIVES", "arrival", "shared", asynchronous=True),
    *_memory("LDGSTS", "copy", "global", asynchronous=True),
    *_memory("UBLKCP UBLKRED UTMALDG UTMASTG UTMAREDG", "bulk", "global", asynchronous=True),
    *_memory("UMEMSETS", "bulk", "shared", asynchronous=True),
    *_memory("QSPC", "query", "generic"),
    *_memory("TEX TLD TLD4 TXD", "load", "texture"),
    *_memory("TXQ TMML FOOTPRINT", "query", "texture"),
    *_memory("SULD", "load", "surface"),
    *_memory("SUST", "store", "surface"),
    *_memory("SUATOM", "atomic", "surface"),
    *_memory("SURED", "reduction", "surface"),
    *_memory("SUQUERY", "query", "surface"),
    *_memory("LDTM", "load", "tensor", asynchronous=True, lanes="whole"),
    *_memory("STTM", "store", "tensor", asynchronous=True, lanes="whole"),
    *_memory("UTCCP UTCSHIFT", "bulk", "tensor", asynchronous=True),
    *_memory("ALD IPA LDTRAM ISBERD", "load", "attribute"),
    *_memory("AST ISBEWR OUT", "store", "attribute"),
    *_memory("AL2P", "query", "attribute"),
)
# Which lanes a result depends on is not visible in the operands, which are ordinary registers.
_LANES = (
    *_each("R2UR", Effects(lanes="first")),
    *_each("SHFL MATCH ELECT FSWZADD PIXLD", Effects(lanes="some")),
    *_each("VOTE VOTEU REDUX CREDUX", Effects(lanes="some", one=True)),
    *_each("HMMA QMMA IMMA BMMA DMMA OMMA MOVM", Effects(lanes="whole")),
    *_each("HGMMA QGMMA IGMMA BGMMA", Effects(lanes="whole", other="asynchronous sums")),
    *_each("UTCHMMA UTCQMMA UTCIMMA UTCOMMA UTCBAR UTCATOMSWS UVIRTCOUNT",
           Effects(other="works on the tensor core's memory")),
)  # fmt: skip
# These have no results, or (USETMAXREG) one that is always the same.
_ORDER = (
    *_each("NOP DEPBAR LDGDEPBAR", Effects(order="schedule")),
    *_each("YIELD", Effects(order="schedule", yields=True)),
    *_each("NANOSLEEP", Effects(order="hint", yields=True)),
    *_each("MEMBAR CCTL", Effects(order="memory")),
    # CCTLL: a lane's local memory is visible only to that lane.
    *_each("CCTLL ERRBAR CGAERRBAR FENCE ACQBULK PREEXIT PMTRIG WARPGROUP", Effects(order="hint")),
    *_each("UTMACMDFLUSH UBLKPF USETMAXREG", Effects(order="hint")),
    *_each("CCTLT UTMACCTL UTMAPF WARPGROUPSET", Effects(other="caches, registers of a group")),
)
_OTHER = (
    *_each("GETLMEMBASE SETLMEMBASE SETCTAID USETSHMSZ ACQSHMINIT UGETNEXTWORKID CSMTEST",
           Effects(other="the driver's, or the state of a launch")),
    # Not described: only their rows are known.
    *_each("IMUL QADD4 QFMA4 QMUL4 UCLEA __HIR0X1E0", Effects(other="no meaning yet")),
)  # fmt: skip


def _collected() -> Mapping[str, Effects]:
    table: dict[str, Effects] = {}
    for name, effects in (*_CONTROL, *_MEMORY, *_LANES, *_ORDER, *_OTHER):
        if name in table:
            raise ValueError(f"two entries of {name}")
        table[name] = effects
    return MappingProxyType(table)


EFFECTS: Mapping[str, Effects] = _collected()
NONE = Effects()


def effects_of(mnemonic: str) -> Effects:
    """The effects of an instruction; empty if it is not listed."""
    return EFFECTS.get(mnemonic, NONE)


# Of instructions on binary32 numbers, by mnemonic without the U of the uniform data path.
# "sum", "product": it adds or multiplies them.  "fixed": .FTZ does not change what becomes of
# subnormals, or it reads bits, or makes binary32 numbers of integers or halves.
_SUBNORMALS: Mapping[str, Subnormals] = MappingProxyType({
    **dict.fromkeys("FADD FADD2".split(), "sum"),
    **dict.fromkeys("FMUL FFMA FMUL2 FFMA2".split(), "product"),
    **dict.fromkeys("MUFU FCHK FSEL I2F I2FP F2FP HADD2".split(), "fixed"),
})  # fmt: skip


def subnormals_of(base: str) -> Subnormals:
    """How an instruction, by its mnemonic without U, treats subnormal binary32 numbers."""
    return _SUBNORMALS.get(base, "")


__all__ = [
    "EFFECTS", "NONE", "Barrier", "Effects", "Kind", "Lanes", "Memory", "Order", "Space",
    "Subnormals", "Transfer", "effects_of", "subnormals_of",
]  # fmt: skip
