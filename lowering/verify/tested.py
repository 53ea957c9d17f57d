"""Rules that no solver decides, and what they were tried on instead.

Approximations and conversions of floating point, and sequences that reach other lanes, are run as
SASS means them and as our RDNA3 computes them, on edge-biased random inputs.  That is evidence, not
a proof: a block that holds one can only be proved apart from it, see :func:`evidence`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from sassxlate.disasm.sass.ir import Instruction
from sassxlate.lowering.context import choose
from sassxlate.lowering.rules import TABLE

COMMAND = "sassxlate verify --rules"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one form of a rule was tried on: how many inputs, and within which bound they agree."""

    rule: str
    form: str  # the modifiers, in order of print
    vectors: int
    bound: str
    command: str


@dataclass(frozen=True, slots=True)
class _Tried:
    vectors: int
    bound: str
    forms: frozenset[str]


# What changes nothing of a value: where a cache keeps it, who else must see it.
_UNSEEN = frozenset(
    "E CONSTANT EF EL EU LU NA PRIVATE LTC64B LTC128B LTC256B STRONG WEAK SM CTA GPU SYS MMIO"
    .split()
)


def form_key(instruction: Instruction) -> str:
    """The modifiers that decide what an instruction computes, in order of print."""
    return " ".join(m for m in instruction.modifiers if m not in _UNSEEN)


def _tried(vectors: int, bound: str, forms: str) -> _Tried:
    return _Tried(vectors, bound, frozenset(line.strip() for line in forms.split(";")))


_EQUAL = "equal to the bit but for NaN payloads"
_WAVES = "equal to the bit but for NaN payloads; waves of 32 lanes, random EXEC"
_SUMS = _WAVES
_NEAR = "within PTX's bounds"
TRIED: Mapping[str, _Tried] = {
    "elect": _tried(1 << 20, _WAVES, ""),
    "f2fp_bytes": _tried(
        1 << 20,
        _EQUAL,
        "SATFINITE E4M3 F16 UNPACK_B_MERGE_C; SATFINITE E5M2 F16 UNPACK_B_MERGE_C",
    ),
    "f2i": _tried(1 << 20, _EQUAL, "F16 NTZ; S64 F64; U64 TRUNC"),
    "i2f": _tried(1 << 20, _EQUAL, "F16; F64 S64; F64 U64; S64; U64 RP"),
    "hmma": _tried(
        1 << 20,
        _SUMS,
        "16816 F16; 16816 F32; 16816 F32 BF16; 1684 F32 TF32; 1688 F16; 1688 F32; 1688 F32 BF16;"
        "1688 F32 TF32",
    ),
    "ldsm": _tried(1 << 20, _WAVES, "16 M88; 16 M88 2; 16 M88 4; 16 MT88; 16 MT88 2; 16 MT88 4"),
    "stsm": _tried(1 << 20, _WAVES, "16 M88; 16 M88 2; 16 M88 4; 16 MT88; 16 MT88 2; 16 MT88 4"),
    "movm": _tried(1 << 20, _WAVES, "16 MT88"),
    "ublkcp": _tried(1 << 20, _WAVES, "S G; G S"),
    "syncs_exch": _tried(1 << 20, _WAVES, "EXCH 64"),
    "syncs_arrive": _tried(
        1 << 20, _WAVES, "ARRIVE TRANS64 A1T0; ARRIVE TRANS64 RED A1T0; ARRIVE TRANS64"
    ),
    "syncs_phasechk": _tried(1 << 20, _WAVES, "PHASECHK TRANS64; PHASECHK TRANS64 TRYWAIT"),
    "match": _tried(1 << 20, _WAVES, "ALL; ALL U64; ANY; ANY U64"),
    "mufu16": _tried(1 << 20, _NEAR, "TANH BF16; TANH F16"),
    "mufu_high": _tried(1 << 20, _EQUAL, "RSQ64H"),
    "mufu_tanh": _tried(1 << 20, _NEAR, "TANH"),
    "r2ur": _tried(1 << 20, _WAVES, ""),
    "redg": _tried(1 << 20, _WAVES, "ADD F64 RN"),
    "redux": _tried(1 << 20, _WAVES, "; MAX; MAX S32; MIN; MIN S32; OR; SUM; SUM S32; XOR"),
    "shfl": _tried(1 << 20, _WAVES, "BFLY; DOWN; IDX; UP"),
    "vote": _tried(1 << 20, _WAVES, "ALL; ANY; EQ"),
    "voteu": _tried(1 << 20, _WAVES, "ALL; ANY; EQ"),
}


@cache
def _evidence(rule: str, form: str) -> Evidence | None:
    tried = TRIED.get(rule)
    if tried is None or form not in tried.forms:
        return None
    return Evidence(rule, form, tried.vectors, tried.bound, f"{COMMAND} {rule}")


def evidence(instruction: Instruction) -> Evidence | None:
    """What the rule that translates an instruction was tried on; None where it was not, because
    the solver decides it or nobody did."""
    rule = choose(TABLE.get(instruction.mnemonic, ()), instruction)
    if rule is None:
        return None
    return _evidence(rule.name, form_key(instruction))
