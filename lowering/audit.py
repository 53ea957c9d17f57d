"""What the rules of each mnemonic know: a modifier that is not listed here refuses the instruction.

A rule asks for the modifiers that it gives a meaning to, and would silently ignore the others.  So
each mnemonic (or rule, by its name, where it knows less or more than its mnemonic) lists those that
its rules translate, refuse themselves, or that change nothing in an execution in order: cache and
eviction hints, the pipe that computes (.MMA), hints for the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.sass.ir import Instruction

_HINTS = "CONSTANT EF EL EU LU NA PRIVATE LTC64B LTC128B LTC256B"
_SCOPES = "STRONG WEAK SM CTA GPU SYS MMIO"
_SIZES = "S8 U8 S16 U16 64 128"
_MEMORY = f"E {_SIZES} {_SCOPES} {_HINTS}"
_ATOMIC = (
    f"E 64 S32 U64 S64 F32 F64 F16x2 FTZ RN ADD MIN MAX INC DEC AND OR XOR EXCH CAS SAFEADD "
    f"F16x4 F16x8 BF16x2 BF16x4 BF16x8 F32x2 F32x4 {_SCOPES} {_HINTS}"
)
_FLOAT_RELATIONS = "F LT EQ LE GT NE GE NUM NAN LTU EQU LEU GTU NEU GEU T AND OR XOR"
_ROUND = "RM RP RZ"
_INTS = "S8 U8 S16 U16 S32 U32 S64 U64"

_KNOWN: Mapping[str, str] = {
    # integer
    "IABS": "",
    "IADD": "64 X",
    "IADD3": "X",
    "IDP": "4A 2A LO HI S8 U8 S16 U16",
    "iadd3_64": "64 X",
    "IMAD": "HI WIDE X U32 MOV SHL IADD",
    "IMNMX": "U32",
    "ISETP": "F LT EQ LE GT NE GE T AND OR XOR EX U32 U64 S64 64",
    "LEA": "HI SX32 X",
    "VABSDIFF": "U32",
    "VABSDIFF4": "U8 ACC",
    "VIADD": "32 S32 U32 ISAT",
    "VIADDMNMX": "U32 RELU",
    "VIMNMX": "S32 U32 RELU",
    "VIMNMX3": "S32 U32 RELU",
    "imnmx64": "U64 S64",
    "uimnmx64": "U64 S64",
    "viadd_parts": "16x2 U16x2 S16x2 U8x4 S8x4",
    "vimnmx8": "U8x4 S8x4",
    "viaddmnmx16": "U16x2 S16x2 16x2 RELU",
    "vimnmx16": "U16x2 S16x2 16x2 RELU",
    "vimnmx3_16": "U16x2 S16x2 16x2 RELU",
    # logic
    "BMSK": "W",
    "BREV": "",
    "FLO": "U32 SH",
    "LOP3": "LUT PAND",
    "MOV": "64 SPILL",
    "P2R": "B0 B1 B2 B3",
    "PLOP3": "LUT",
    "POPC": "",
    "PRMT": "F4E B4E RC8 ECL ECR RC16",
    "R2P": "B0 B1 B2 B3",
    "UP2UR": "B0 B1 B2 B3",
    "UR2UP": "B0 B1 B2 B3",
    "SEL": "64",
    "SGXT": "U32 W",
    "SHF": "L R HI W U32 S32 U64 S64",
    # floating point
    "DADD": _ROUND,
    "DFMA": _ROUND,
    "DMUL": _ROUND,
    "DSETP": f"{_FLOAT_RELATIONS} MIN MAX",
    "FADD": f"FTZ SAT {_ROUND}",
    "FCHK": "DIVIDE",
    "FFMA": f"FTZ SAT FMZ {_ROUND}",
    "FMNMX": "FTZ NAN XORSIGN IS_A",
    "FMNMX3": "FTZ NAN",
    "FMUL": f"FTZ SAT FMZ D2 D4 D8 M2 M4 M8 {_ROUND}",
    "FRND": "F16 BF16 F64 FTZ TRUNC FLOOR CEIL",
    "FSEL": "FTZ",
    "FSET": f"BF FTZ {_FLOAT_RELATIONS}",
    "FSETP": f"FTZ {_FLOAT_RELATIONS}",
    "MUFU": "RCP RSQ SQRT EX2 LG2 SIN COS TANH RCP64H RSQ64H F16 BF16",
    "HADD2": "F32 FTZ SAT",
    "HFMA2": "MMA FTZ SAT FMZ RELU",
    "hfma2_mov": "MMA BF16_V2",
    "HMNMX2": "FTZ NAN XORSIGN",
    "hmnmx2_general": "BF16_V2 FTZ NAN XORSIGN IS_A",
    "HMUL2": "FTZ SAT FMZ",
    "HSET2": f"BF BF16_V2 FTZ {_FLOAT_RELATIONS}",
    "HSETP2": f"BF16_V2 FTZ H_AND {_FLOAT_RELATIONS}",
    "VHMNMX": "FTZ NAN XORSIGN BF16_V2",
    "hmul2_general": "BF16_V2 FTZ SAT FMZ F32",
    "hfma2_general": "MMA BF16_V2 FTZ SAT FMZ RELU OOB F32",
    "hadd2_bf16": "BF16_V2 FTZ SAT F32",
    "hfma2_bf16": "MMA BF16_V2 FTZ SAT FMZ RELU OOB F32",
    "hmnmx2_bf16": "BF16_V2 FTZ NAN XORSIGN IS_A",
    "hmul2_bf16": "BF16_V2 FTZ SAT FMZ F32",
    # conversions
    "F2F": f"F16 BF16 F32 F64 FTZ {_ROUND}",
    "f2fp_bytes": (
        "E4M3 E5M2 F16 BF16 F32 PACK_AB_MERGE_C UNPACK_B_MERGE_C RELU SATFINITE RM RP RZ"
    ),
    "f2fp_halves": "E4M3 E5M2 F16 UNPACK_B RELU",
    "F2FP": "F16 BF16 F32 PACK_AB PACK_B MERGE_C RZ RELU SATFINITE E4M3 E5M2 TF32 UNPACK_B",
    "F2IP": "U8 S8 F32 TRUNC NTZ RELU",
    "F2I": f"FTZ NTZ F16 BF16 F64 TRUNC FLOOR CEIL {_INTS}",
    "I2F": f"F16 BF16 F64 {_ROUND} {_INTS}",
    "I2FP": "F32 S32 U32 RZ",
    "I2I": "S8 U8 S16 U16 S32 SAT",
    "I2IP": "S2 U2 S4 U4 S8 U8 S16 U16 S32 SAT SATRELU",
    # memory
    "ATOM": _ATOMIC,
    "ATOMG": _ATOMIC,
    "ATOMS": "64 S32 U64 S64 F32 F64 F16x2 RN FTZ ADD MIN MAX INC DEC AND OR XOR EXCH CAS ARRIVE",
    "ARRIVES": "LDGSTSBAR 64 ARVCNT TRANSCNT",
    "FENCE": "VIEW ASYNC S G",
    "LDGSTS": f"E 64 128 BYPASS ZFILL VC {_SCOPES} {_HINTS}",
    "SYNCS": "ARRIVE TRANS64 RED OPTOUT TMASK A1T0 A0T1 A0TR A0TX ART0 PHASECHK TRYWAIT EXCH LD 64 "
    "CCTL IV WB IVALL WBALL FLUSH",
    "UBLKCP": "S G LTC64B LTC128B LTC256B",
    "UBLKPF": "L2",
    "USETMAXREG": "DEALLOC TRY_ALLOC CTAPOOL",
    "atom128": f"E 128 EXCH CAS {_SCOPES} {_HINTS}",
    "atomg128": f"E 128 EXCH CAS {_SCOPES} {_HINTS}",
    "atom_cast": f"E CAST SPIN 64 {_SCOPES}",
    "atoms_cast": "CAST SPIN 64",
    "atoms_popc": "POPC INC 32",
    "CCTL": "E C D I U IV IVALL IVALLP PF1 PF2 WB WBALL WBALLP RS PML2 DML2 RML2",
    "CGAERRBAR": "",
    "ERRBAR": "",
    "LD": _MEMORY,
    "LDC": "64 S8 U8 S16 U16 IL IS ISL",
    "LDCU": "64 128 S8 U8 S16 U16",
    "LDG": _MEMORY,
    "LDL": f"{_SIZES} {_HINTS}",
    "LDS": f"{_SIZES} U",  # .U: all lanes read one address
    "MEMBAR": "SC ALL CTA SM GPU SYS VC MMIO",
    "QSPC": "E S L G D",
    "RED": _ATOMIC,
    "REDG": _ATOMIC,
    "ST": _MEMORY,
    "STG": _MEMORY,
    "STL": f"{_SIZES} {_HINTS}",
    "STS": _SIZES,
    "ULDC": "64 S8 U8 S16 U16 IL IS ISL",
    # matrices
    "BMMA": "88128 168128 168256 AND XOR POPC",
    "DMMA": f"8x8x4 884 {_ROUND}",
    "HMMA": "1684 1688 16816 F16 F32 BF16 TF32",
    "IMMA": "8816 8832 16816 16832 16864 U8 S8 U4 S4 SAT",
    "QMMA": "16816 16832 F16 F32 E4M3 E5M2",
    "LDSM": "16 M88 MT88 2 4",
    "MOVM": "16 MT88",
    "STSM": "16 M88 MT88 2 4",
    # the warp
    "BPT": "TRAP",
    "TEX": "SCR LL LZ",
    "TLD": "SCR LZ",
    "TLD4": "SCR R G B A",
    "SUST": f"D BA 1D 2D 3D TRAP IGN {_SIZES} {_SCOPES}",
    "HOSTCALL": "ABS REL NOINC",
    "LEPC": "",
    "CREDUX": "MIN MAX S32",
    "CS2R": "32",
    "CS2UR": "32",
    "MATCH": "ALL ANY U64",
    "NANOSLEEP": "RAND WARP SYNCS",
    "R2UR": "OR",
    "REDUX": "SUM AND OR XOR MIN MAX S32",
    "S2R": "",
    "S2UR": "",
    "SHFL": "IDX UP DOWN BFLY",
    "VOTE": "ALL ANY EQ",
    "VOTEU": "ALL ANY EQ",
}
_SETS = {name: frozenset(text.split()) for name, text in _KNOWN.items()}


def unknown_modifiers(ins: Instruction, rule: str) -> list[str]:
    """The modifiers of ``ins`` that the rule called ``rule`` does not know, in print order."""
    known = _SETS.get(rule, _SETS.get(ins.mnemonic))
    if known is None:  # the uniform datapath shares the rules
        known = _SETS.get(ins.mnemonic.removeprefix("U"), frozenset())
    return [m for part in ins.modifiers for m in part.split(".") if m and m not in known]
