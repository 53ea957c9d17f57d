"""Text of formats that are rare in compute code: buffers, interpolation, exports."""

from __future__ import annotations

from typing import Final

from sassxlate.disasm.rdna3.codec.encode.memory import is_off
from sassxlate.disasm.rdna3.instruction import Inst

_TARGETS: Final = {
    **{i: f"mrt{i}" for i in range(8)},
    8: "mrtz",
    **{i: f"pos{i - 12}" for i in range(12, 17)},
    20: "prim",
    21: "dual_src_blend0",
    22: "dual_src_blend1",
}


def _kinds(size: str, kinds: str) -> list[str]:
    return [f"{size}_{kind}" for kind in kinds.split()]


_ALL: Final = "UNORM SNORM USCALED SSCALED UINT SINT"
_WORDS: Final = "UINT SINT FLOAT"
# The unified buffer formats by number (RDNA3 ISA, table 49).
_FORMATS: Final = (
    "INVALID",
    *_kinds("8", _ALL),
    *_kinds("16", f"{_ALL} FLOAT"),
    *_kinds("8_8", _ALL),
    *_kinds("32", _WORDS),
    *_kinds("16_16", f"{_ALL} FLOAT"),
    "10_11_11_FLOAT",
    "11_11_10_FLOAT",
    *_kinds("10_10_10_2", "UNORM SNORM UINT SINT"),
    *_kinds("2_10_10_10", _ALL),
    *_kinds("8_8_8_8", _ALL),
    *_kinds("32_32", _WORDS),
    *_kinds("16_16_16_16", f"{_ALL} FLOAT"),
    *_kinds("32_32_32", _WORDS),
    *_kinds("32_32_32_32", _WORDS),
)
_DEFAULT_FORMAT: Final = 1


def _format(value: int) -> str:
    if value == _DEFAULT_FORMAT:
        return ""
    return f" format:[BUF_FMT_{_FORMATS[value]}]" if value < len(_FORMATS) else f" format:{value}"


def buffer_text(inst: Inst, operands: list[str], caches: str) -> str:
    """MUBUF and MTBUF, from the texts of the operands and of glc, slc and dlc."""
    more = dict(inst.more)
    tail = _format(more["format"]) if "format" in more else ""
    tail += " idxen" * more.get("idxen", 0) + " offen" * more.get("offen", 0)
    tail += f" offset:{inst.imm}" if inst.imm else ""
    return f"{inst.op} {', '.join(operands)}".rstrip() + tail + caches + " tfe" * more.get("tfe", 0)


def ldsdir_text(inst: Inst, operands: list[str]) -> str:
    """LDSDIR."""
    more = dict(inst.more)
    if inst.op == "lds_param_load":
        operands = [*operands, f"attr{more.get('attr', 0)}.{'xyzw'[more.get('chan', 0)]}"]
    return f"{inst.op} {', '.join(operands)} wait_vdst:{more.get('wait_vdst', 0)}"


def export_text(inst: Inst, operands: list[str]) -> str:
    """EXP."""
    more = dict(inst.more)
    parts = ["off" if is_off(a) else text for a, text in zip(inst.args, operands, strict=True)]
    target = _TARGETS[more.get("target", 0)]
    tail = " done" * more.get("done", 0) + " row_en" * more.get("row_en", 0)
    return f"exp {target} {', '.join(parts)}{tail}"
