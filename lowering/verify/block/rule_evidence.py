"""Rules that no solver decides, and the tests that stand in for a proof.

Approximations and conversions of floating point, and sequences that reach other lanes, are run
both by SASS's semantics and by our RDNA3, on edge-biased random inputs.  That is evidence, not
a proof: a block that holds one can only be proved apart from it, see :func:`rule_evidence`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.rules import TABLE
from sassxlate.lowering.rules.rule import choose

COMMAND = "sassxlate verify rules"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The test of one form of a rule: the number of inputs, and the bound of agreement."""

    rule: str
    form: str  # the modifiers, in printed order
    vectors: int
    bound: str
    command: str


@dataclass(frozen=True, slots=True)
class _Tried:
    vectors: int
    bound: str
    forms: frozenset[str]


# Modifiers that do not change a value: caching, and scope.
_UNSEEN = frozenset(
    (
        "E CONSTANT EF EL EU LU NA PRIVATE LTC64B LTC128B LTC256B STRONG WEAK SM CTA GPU SYS MMIO"
    ).split()
)


def form_key(instruction: Instruction) -> str:
    """The modifiers that decide what an instruction computes, in printed order, with a space
    between them: a form of :data:`TRIED`.  Those of caching, order and scope are left out."""
    return " ".join(m for m in instruction.modifiers if m not in _UNSEEN)


def _tried(vectors: int, bound: str, forms: str) -> _Tried:
    return _Tried(vectors, bound, frozenset(line.strip() for line in forms.split(";")))


_EQUAL = "equal to the bit except for NaN payloads"
# For atomic sums with .FTZ also except for denormal sums of normal numbers.
_WAVES = "equal to the bit except for NaN payloads; waves of 32 lanes, random EXEC"
_SUMS = "sums of whole warps, equal to the bit except for NaN payloads"
_NEAR = "within PTX's bounds"
TRIED: Mapping[str, _Tried] = {
    "arrives": _tried(1 << 20, _WAVES, "LDGSTSBAR 64; LDGSTSBAR 64 ARVCNT; LDGSTSBAR 64 TRANSCNT"),
    "atom": _tried(1 << 20, _WAVES, "ADD F16x2 RN; ADD F64 RN"),
    "atomg": _tried(
        1 << 20,
        _WAVES,
        "ADD BF16x2 RN; ADD BF16x4 RN; ADD BF16x8 RN; ADD F16x2 RN; ADD F32 RN; ADD F32x2 RN; "
        "ADD F32x2 FTZ RN; ADD F32x4 RN; ADD F32x4 FTZ RN; ADD F64 RN",
    ),
    "atoms_arrive": _tried(1 << 20, _WAVES, "ARRIVE 64"),
    "atoms_popc_value": _tried(1 << 20, _WAVES, "POPC INC 32"),
    "bmma": _tried(1 << 20, _SUMS, "168128 AND POPC; 168256 AND POPC; 88128 AND POPC"),
    "dmma": _tried(1 << 20, _SUMS, "8x8x4; 8x8x4 RM; 8x8x4 RP; 8x8x4 RZ"),
    "elect": _tried(1 << 20, _WAVES, ""),
    "f2f": _tried(
        1 << 20,
        _EQUAL,
        "BF16 F64; BF16 F64 RM; BF16 F64 RP; BF16 F64 RZ; F16 F64; F16 F64 RM; F16 F64 RP; "
        "F16 F64 RZ; F32 F64; F32 F64 RM; F64 BF16; F64 F16; F64 F16 RM; F64 F16 RP; F64 F16 RZ; "
        "FTZ F32 F64; FTZ F32 F64 RM; FTZ F32 F64 RP; FTZ F32 F64 RZ; FTZ F64 F32",
    ),
    "f2fp_bytes": _tried(
        1 << 20,
        _EQUAL,
        "RELU E4M3 F16 UNPACK_B_MERGE_C; RELU E5M2 F16 UNPACK_B_MERGE_C; "
        "SATFINITE E4M3 F16 UNPACK_B_MERGE_C; SATFINITE E5M2 F16 UNPACK_B_MERGE_C; "
        "SATFINITE RELU E4M3 F16 UNPACK_B_MERGE_C; SATFINITE RELU E5M2 F16 UNPACK_B_MERGE_C",
    ),
    "f2fp_halves": _tried(1 << 20, _EQUAL, "F16 E4M3 UNPACK_B"),
    "f2i": _tried(
        1 << 20,
        _EQUAL,
        "BF16 NTZ; F16; F16 CEIL; F16 NTZ; FTZ S64 CEIL NTZ; FTZ U64; NTZ; S16 F16; "
        "S16 F16 CEIL; S16 F64 CEIL NTZ; S64; S64 BF16; S64 CEIL; S64 F16; S64 F16 CEIL; "
        "S64 F16 FLOOR; S64 F16 TRUNC; S64 F64; S64 F64 CEIL; S64 F64 FLOOR; S64 F64 TRUNC; "
        "S64 FLOOR; S64 TRUNC; S8 F16; S8 F16 CEIL; U16 F16; U16 F16 CEIL; U16 F64; U32 F16; "
        "U32 F16 CEIL; U32 F64; U32 F64 FLOOR; U32 F64 NTZ; U64; U64 BF16; U64 BF16 CEIL; "
        "U64 BF16 FLOOR; U64 BF16 NTZ; U64 BF16 TRUNC; U64 CEIL; U64 F16; U64 F16 CEIL; "
        "U64 F16 FLOOR; U64 F16 NTZ; U64 F16 TRUNC; U64 F64; U64 F64 CEIL; U64 F64 CEIL NTZ; "
        "U64 F64 FLOOR; U64 F64 FLOOR NTZ; U64 F64 NTZ; U64 F64 TRUNC; U64 F64 TRUNC NTZ; "
        "U64 FLOOR; U64 NTZ; U64 TRUNC; U8 BF16; U8 BF16 FLOOR; U8 F16; U8 F16 CEIL; "
        "U8 F16 FLOOR; U8 F64; U8 F64 FLOOR; U8 F64 NTZ; U8 FLOOR",
    ),
    "f2ip": _tried(
        1 << 20,
        _EQUAL,
        "S8 F32 RELU; S8 F32 TRUNC; S8 F32 TRUNC RELU; U8 F32; U8 F32 NTZ; U8 F32 TRUNC; "
        "U8 F32 TRUNC NTZ",
    ),
    "fmul": _tried(
        1 << 20,
        _EQUAL,
        "D2; D2 RM; D2 RP; D2 RP SAT; D2 RZ; D2 RZ SAT; D4; D4 RM; D4 RM SAT; D4 RP; D4 RP SAT; "
        "D4 RZ; D8 RZ; FTZ D2; FTZ D2 RP SAT; FTZ D2 RZ SAT; FTZ D4; FTZ D4 RM; FTZ D4 RM SAT; "
        "FTZ D4 RP; FTZ D4 RP SAT; FTZ D4 RZ; FTZ D4 RZ SAT; FTZ D4 SAT; FTZ D8; FTZ D8 RP; "
        "FTZ D8 RP SAT; FTZ D8 RZ SAT; FTZ D8 SAT; FTZ M2; FTZ M2 RP SAT; FTZ M2 RZ; FTZ M4; "
        "FTZ M4 RM; FTZ M4 RM SAT; FTZ M4 RP SAT; FTZ M8; FTZ M8 RM SAT; FTZ M8 RP; "
        "FTZ M8 RP SAT; M2 RM; M2 RP; M4 RZ; M8 RP; M8 RZ",
    ),
    "hmma": _tried(
        1 << 20,
        _SUMS,
        "16816 F16; 16816 F32; 16816 F32 BF16; 1684 F32 TF32; 1688 F16; 1688 F32; 1688 F32 BF16; "
        "1688 F32 TF32",
    ),
    "i2f": _tried(
        1 << 20,
        _EQUAL,
        "BF16 S64; BF16 S64 RM; BF16 S64 RP; BF16 S64 RZ; BF16 U64; BF16 U64 RM; BF16 U64 RP; "
        "BF16 U64 RZ; F16; F16 RM; F16 RP; F16 RZ; F16 S16; F16 S64; F16 S64 RM; F16 S64 RP; "
        "F16 S64 RZ; F16 S8; F16 S8 RZ; F16 U16; F16 U32; F16 U32 RM; F16 U32 RP; F16 U32 RZ; "
        "F16 U64; F16 U64 RM; F16 U64 RP; F16 U64 RZ; F16 U8; F16 U8 RZ; F64 S64; F64 S64 RM; "
        "F64 S64 RP; F64 S64 RZ; F64 U64; F64 U64 RM; F64 U64 RP; F64 U64 RZ; S64; S64 RM; "
        "S64 RP; S64 RZ; U64; U64 RM; U64 RP; U64 RZ",
    ),
    "imma": _tried(
        1 << 20,
        _SUMS,
        "16816 S8 S8; 16816 S8 S8 SAT; 16816 S8 U8; 16816 S8 U8 SAT; 16816 U8 S8; "
        "16816 U8 S8 SAT; 16816 U8 U8; 16816 U8 U8 SAT; 16832 S8 S8; 16832 S8 S8 SAT; "
        "16832 S8 U8; 16832 S8 U8 SAT; 16832 U8 S8; 16832 U8 S8 SAT; 16832 U8 U8; "
        "16832 U8 U8 SAT; 8816 S8 S8; 8816 S8 S8 SAT; 8816 S8 U8; 8816 S8 U8 SAT; 8816 U8 S8; "
        "8816 U8 S8 SAT; 8816 U8 U8; 8816 U8 U8 SAT",
    ),
    "ldsm": _tried(1 << 20, _WAVES, "16 M88; 16 M88 2; 16 M88 4; 16 MT88; 16 MT88 2; 16 MT88 4"),
    "match": _tried(1 << 20, _WAVES, "ALL; ALL U64; ANY; ANY U64"),
    "movm": _tried(1 << 20, _WAVES, "16 MT88"),
    "mufu16": _tried(1 << 20, _NEAR, "COS F16; SQRT F16; TANH BF16; TANH F16"),
    "mufu_high": _tried(1 << 20, _EQUAL, "RSQ64H"),
    "mufu_tanh": _tried(1 << 20, _NEAR, "TANH"),
    "r2ur": _tried(1 << 20, _WAVES, ""),
    "red": _tried(1 << 20, _WAVES, "ADD F16x2 RN; ADD F64 RN"),
    "redg": _tried(
        1 << 20,
        _WAVES,
        "ADD BF16x2 RN; ADD F16x2 RN; ADD F16x4 RN; ADD F16x8 RN; ADD F32 RN; ADD F32x2 RN; "
        "ADD F32x2 FTZ RN; ADD F32x4 RN; ADD F32x4 FTZ RN; ADD F64 RN",
    ),
    "redux": _tried(1 << 20, _WAVES, "; MAX; MAX S32; MIN; MIN S32; OR; SUM; SUM S32; XOR"),
    "shfl": _tried(1 << 20, _WAVES, "BFLY; DOWN; IDX; UP"),
    "stsm": _tried(1 << 20, _WAVES, "16 M88; 16 M88 2; 16 M88 4; 16 MT88; 16 MT88 2; 16 MT88 4"),
    "syncs_arrive": _tried(
        1 << 20,
        _WAVES,
        "ARRIVE TRANS64; ARRIVE TRANS64 A0T1; ARRIVE TRANS64 A0TR; ARRIVE TRANS64 A0TX; "
        "ARRIVE TRANS64 A1T0; ARRIVE TRANS64 ART0; ARRIVE TRANS64 OPTOUT; ARRIVE TRANS64 RED; "
        "ARRIVE TRANS64 RED A0TX; ARRIVE TRANS64 RED A1T0; ARRIVE TRANS64 RED OPTOUT; "
        "ARRIVE TRANS64 RED OPTOUT A0TR; ARRIVE TRANS64 RED OPTOUT A0TX",
    ),
    "syncs_exch": _tried(1 << 20, _WAVES, "EXCH 64"),
    "syncs_ld": _tried(1 << 20, _WAVES, "LD 64"),
    "syncs_phasechk": _tried(1 << 20, _WAVES, "PHASECHK TRANS64; PHASECHK TRANS64 TRYWAIT"),
    "ublkcp": _tried(1 << 20, _WAVES, "G S; S G"),
    "vote": _tried(1 << 20, _WAVES, "ALL; ANY; EQ"),
    "voteu": _tried(1 << 20, _WAVES, "ALL; ANY; EQ"),
}


@cache
def _evidence(rule: str, form: str) -> Evidence | None:
    tried = TRIED.get(rule)
    if tried is None or form not in tried.forms:
        return None
    return Evidence(rule, form, tried.vectors, tried.bound, f"{COMMAND} {rule}")


def rule_evidence(instruction: Instruction) -> Evidence | None:
    """The evidence for the rule that translates an instruction; None if it was not tested, because
    the solver decides it or nothing tests it."""
    rule = choose(TABLE.get(instruction.mnemonic, ()), instruction)
    if rule is None:
        return None
    return _evidence(rule.name, form_key(instruction))
