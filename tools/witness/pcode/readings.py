"""Parts of AMD's manual that complete the pseudocode where it is not the whole description.

The unchanged text is always tried first; only lanes that differ from it are judged by a reading.
Sections are those of "RDNA3 Instruction Set Architecture: Reference Guide", 15 August 2023.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """``pattern`` becomes ``new`` in the descriptions of opcodes that match ``ops``."""

    ops: str
    pattern: str
    new: str
    reason: str
    where: str


_DIVISION = "LLVM's expansion of a division"
_DENORMALS = "(rcp|rsq|sqrt|exp|log)"

# Misprints: replacements of text that cannot be meant.
ALWAYS: tuple[Reading, ...] = (
    Reading(r"v_(sin|cos)_f\d\d", r" \* \d\d'F\(PI \* 2\.0\)", "",
            "the operand is in turns; the PDF has 64'F(S0.f) * 2.0 * PI", "16.12 V_SIN_F32"),
    Reading("v_ldexp_f16", r"16'F\((2\.0F \*\* 32'I\(S1\.i16\))\)", r"\1",
            "a power of two that has no binary16", "16.7 V_LDEXP_F16"),
    Reading("v_div_fixup_f(32|64)", "UNDERFLOW_F32", "0.0F", "not defined there", "16.12"),
    Reading("v_div_fixup_f(32|64)", "UNDERFLOW_F64", "0.0", "not defined there", "16.12"),
    Reading("v_div_fixup_f(32|64)", "OVERFLOW_F32", "INF.f32", "not defined there", "16.12"),
    Reading("v_div_fixup_f(32|64)", "OVERFLOW_F64", "INF", "not defined there", "16.12"),
    Reading("ds_b?permute_b32", r"32'I\(VGPR", "32'U(VGPR", "high-order bits are ignored",
            "16.13 DS_BPERMUTE_B32"),
    Reading("v_cvt_off_f32_i4", r"(?s)declare.*",
            "D0.f32 = i32_to_f32(32'I(signext(S0.i4))) * 0.0625F",
            "its table is printed beside it", "16.8 V_CVT_OFF_F32_I4"),
)  # fmt: skip

# Stated in prose.
READINGS: tuple[Reading, ...] = (
    Reading(r"v_rndne_f(16|32|64)", r"(?s)D0\.(f\d\d) = floor.*", r"D0.\1 = rndne(S0.\1)",
            "to the nearest even integer: S0 + 0.5 is rounded, and a zero keeps its sign",
            "16.8 V_RNDNE_F32"),
    Reading(r"v_fract_f(16|32|64)", r"D0\.(f\d\d) = (.*)",
            r"D0.\1 = \2; if D0.\1 == 1.0 then D0.\1 = below_one(D0.\1) endif",
            "result clamped to 0x3f7fffff", "16.8 V_FRACT_F32"),
    Reading(r"v_frexp_exp_i\d\d_f(16|32|64)", r"exponent\(S0\.(f\d\d)\) - (15|127|1023) \+ 1",
            r"frexp_exponent(S0.\1)", "S0 = significand * (2 ** exponent), as C's frexp()",
            "16.8 V_FREXP_EXP_I32_F32"),
    Reading(rf"v_{_DENORMALS}(_iflag)?_f32", r"$", "",
            "1ULP accuracy, denormals are flushed", "16.8 V_RCP_F32"),
    Reading(r"v_cmpx?_class_f\d\d", r"$", "", "classes are of the operand's bits, in every mode",
            "LLVM's llvm.is.fpclass, which becomes this instruction in every mode"),
    Reading("(global|flat)_atomic_add_f32", r"$", "",
            "Add_F32: Flush; of sums nothing is said, which are flushed, too, as NVIDIA's are",
            "13.2, table of denormals"),
    Reading(r"v_div_scale_f(32|64)", r"VCC = 0x0LL;", "VCC = 0x0LL; D0.f64 = S0.f64;",
            "D0 is S0 where nothing is scaled", _DIVISION),
    Reading(r"v_div_scale_f32", r"1\.0 / 64'F\(S1\.f32\) == DENORM\.f64",
            "1.0F / S1.f32 == DENORM.f32", "no reciprocal of a binary32 is a denormal binary64",
            _DIVISION),
    Reading(r"v_div_fmas_f32", r"2\.0F \*\* 32 \* (fma\(.*\))\n",
            "2.0F ** (exponent(S2.f32) > 127 ? 64 : -64) * \\1\n",
            "what V_DIV_SCALE scaled by 2 ** 64 is scaled back", _DIVISION),
    Reading(r"v_div_fmas_f64", r"2\.0 \*\* 64 \* (fma\(.*\))\n",
            "2.0 ** (exponent(S2.f64) > 1023 ? 128 : -128) * \\1\n",
            "what V_DIV_SCALE scaled by 2 ** 128 is scaled back", _DIVISION),
    Reading(r"v_div_fixup_f(16|32|64)", r"(sign_out \? -abs\(S0\.(f\d\d)\) : abs\(S0\.f\d\d\))",
            r"isNAN(64'F(S0.\2)) ? (sign_out ? -INF.\2 : INF.\2) : (\1)",
            "inf - inf in the steps of a quotient that overflows", _DIVISION),
    Reading("v_dot2_f32_bf16", r"tmp \+= (bf16_to_f32\(.*\)) \* (bf16_to_f32\(.*\))",
            r"tmp = fma(\1, \2, tmp)", "whether products are rounded is not said", "16.10"),
)  # fmt: skip


def always(op: str, text: str) -> str:
    return _applied(ALWAYS, op, text)


def read(op: str, text: str) -> str:
    """The description, completed by the manual's prose."""
    return _applied(READINGS, op, text)


def _applied(readings: tuple[Reading, ...], op: str, text: str) -> str:
    for r in readings:
        if re.fullmatch(r.ops, op):
            text = re.sub(r.pattern, r.new, text)
    return text


def flushes(op: str) -> bool:
    """Whether the manual says that the operation flushes denormals in every mode."""
    return bool(re.fullmatch(rf"v_{_DENORMALS}(_iflag)?_f32|(global|flat)_atomic_add_f32", op))


def keeps(op: str) -> bool:
    """Whether the operation sees denormals in every mode."""
    return bool(re.fullmatch(r"v_cmpx?_class_f\d\d", op))


def reasons(op: str) -> list[Reading]:
    return [r for r in READINGS if re.fullmatch(r.ops, op)]
