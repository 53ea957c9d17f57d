"""Where the instructions of RDNA2 and RDNA4 begin, and the few that the tier writes itself.

An instruction's first word says its format, and with it its size; a source of 255 is followed by
the literal, a DPP control follows in its own word.  LLVM's disassembler is asked in the tests.

Sources: AMD's ISA documents of RDNA2 and RDNA4, "Microcode formats"; opcodes are those that LLVM's
assembler writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sassxlate.lowering.tier.numbers.pieces import OPCODES, Opcodes
from sassxlate.lowering.tier.refusal import BACKEND, refused

LITERAL: Final = 255
_DPP: Final = frozenset({233, 234, 249, 250})  # DPP8, DPP8 with FI, SDWA, DPP16
_VOP2_LITERAL: Final = frozenset({0x2C, 0x2D, 0x37, 0x38})  # v_fmamk, v_fmaak of f32 and f16
_SOP2_LITERAL: Final = frozenset({0x45, 0x46})  # s_fmaak_f32, s_fmamk_f32
_VOPD_LITERAL: Final = frozenset({1, 2})  # v_dual_fmaak_f32, v_dual_fmamk_f32
_VOP3, _VOP3P = 0x35, 0x33  # bits 31:26


@dataclass(frozen=True, slots=True)
class Encodings:
    """What differs between the families.

    ``sizes`` are bytes by bits 31:26 of the first word, for formats without a literal;
    ``opcodes`` and ``stand_ins`` those of VOP3.  ``maximum_of_nans`` says whether of two NaN the
    first is known to be the maximum.
    """

    sizes: Mapping[int, int]
    stand_ins: Mapping[str, int]
    set_register: int  # SOPK's opcode with a literal: s_setreg_imm32_b32
    modes: Mapping[str, int]  # SOPP's opcodes
    opcodes: Mapping[str, int]
    packed_maximum: int
    names: Mapping[str, str]  # of those that the family calls otherwise
    maximum_of_nans: bool
    scalar: Opcodes
    dual: bool  # VOPD, s_fmaak_f32 and s_fmamk_f32


_SAME: Final = {
    "v_add_f32": 0x103, "v_mul_f32": 0x108, "v_cvt_u32_f32": 0x187, "v_cvt_i32_f32": 0x188,
    "v_cvt_u32_f64": 0x195, "v_cvt_i32_f64": 0x183, "v_cvt_f32_u32": 0x186, "v_cvt_f32_i32": 0x185,
}  # fmt: skip
RDNA2: Final = Encodings(
    # VINTRP; DS, FLAT, MUBUF, MTBUF, SMEM, EXP
    sizes={0x32: 4, 0x36: 8, 0x37: 8, 0x38: 8, 0x3A: 8, 0x3D: 8, 0x3E: 8},
    stand_ins={"v_lerp_u8": 0x14D, "v_sad_hi_u8": 0x15B, "v_msad_u8": 0x171, "v_sad_u8": 0x15A,
               "v_sad_u16": 0x15C,
               "v_qsad_pk_u16_u8": 0x172, "v_mqsad_u32_u8": 0x175},
    set_register=21,
    modes={"s_round_mode": 0x24, "s_denorm_mode": 0x25},
    opcodes={
        **_SAME, "v_fma_f32": 0x14B, "v_max3_f32": 0x154, "v_add_f64": 0x164, "v_mul_f64": 0x165,
        "v_fma_f64": 0x14C,
    },
    packed_maximum=0x12,
    names={},
    maximum_of_nans=False,
    scalar=OPCODES["RDNA2"],
    dual=False,
)  # fmt: skip
RDNA4: Final = Encodings(
    # VBUFFER, VIMAGE; DS; VSAMPLE; VFLAT, VSCRATCH, VGLOBAL; SMEM, VEXPORT
    sizes={0x31: 12, 0x34: 12, 0x36: 8, 0x39: 12, 0x3B: 12, 0x3D: 8, 0x3E: 8},
    stand_ins={"v_lerp_u8": 0x215, "v_sad_hi_u8": 0x223, "v_msad_u8": 0x239, "v_sad_u8": 0x222,
               "v_sad_u16": 0x224,
               "v_qsad_pk_u16_u8": 0x23A, "v_mqsad_u32_u8": 0x23D},
    set_register=19,
    modes={"s_round_mode": 0x11, "s_denorm_mode": 0x12},
    opcodes={
        **_SAME, "v_fma_f32": 0x213, "v_max3_f32": 0x22A, "v_add_f64": 0x102, "v_mul_f64": 0x106,
        "v_fma_f64": 0x214,
    },
    packed_maximum=0x1C,
    names={"v_max3_f32": "v_max3_num_f32", "v_pk_max_f16": "v_pk_max_num_f16"},
    maximum_of_nans=True,
    scalar=OPCODES["RDNA4"],
    dual=True,
)  # fmt: skip


def field(word: int, lo: int, width: int) -> int:
    """Bits of a word."""
    return word >> lo & (1 << width) - 1


def size(code: bytes, at: int, family: Encodings) -> int:
    """Bytes of the instruction at an offset.  Raises Refused SX0464 for an unknown format."""
    word = int.from_bytes(code[at : at + 4], "little")
    if word >> 31 == 0:
        return _vop(word)
    top = word >> 26
    if word >> 30 == 0b10:
        return _scalar(word, family)
    if top in (_VOP3, _VOP3P):
        if top == _VOP3P and word >> 24 != 0xCC:  # VINTERP
            return 8
        more = int.from_bytes(code[at + 4 : at + 8], "little")
        sources = [field(more, lo, 9) for lo in (0, 9, 18)]
        return 12 if LITERAL in sources or sources[0] in _DPP else 8
    if top == 0x32 and family.dual:
        more = int.from_bytes(code[at + 4 : at + 8], "little")
        ops = {field(word, 22, 4), field(word, 17, 5)}
        literal = LITERAL in (field(word, 0, 9), field(more, 0, 9))
        return 12 if literal or ops & _VOPD_LITERAL else 8
    found = family.sizes.get(top)
    if found is None:
        raise refused(BACKEND, f"an unknown format of instruction: {word:#010x}")
    return found


def _vop(word: int) -> int:
    """VOP1, VOP2 and VOPC."""
    source = field(word, 0, 9)
    if field(word, 25, 6) in _VOP2_LITERAL:
        return 8
    return 8 if source == LITERAL or source in _DPP else 4


def _scalar(word: int, family: Encodings) -> int:
    """SOP1, SOP2, SOPC, SOPK and SOPP."""
    first, second = field(word, 0, 8), field(word, 8, 8)
    head = field(word, 23, 7)
    if head == 0x7D:  # SOP1
        return 8 if first == LITERAL else 4
    if head == 0x7E:  # SOPC
        return 8 if LITERAL in (first, second) else 4
    if head == 0x7F:  # SOPP
        return 4
    if head >> 5 == 0b11:  # SOPK
        return 8 if head & 31 == family.set_register else 4
    if family.dual and head in _SOP2_LITERAL:
        return 8
    return 8 if LITERAL in (first, second) else 4


def places(code: bytes, family: Encodings) -> list[tuple[int, int]]:
    """The instructions, each as its offset and the offset after it.

    Raises Refused SX0464 for an unknown format, or one that ends after the code.
    """
    out: list[tuple[int, int]] = []
    at = 0
    while at < len(code):
        end = at + size(code, at, family)
        out.append((at, end))
        at = end
    if at != len(code):
        raise refused(BACKEND, "the last instruction ends after the code")
    return out


__all__ = ["LITERAL", "RDNA2", "RDNA4", "Encodings", "field", "places", "size"]
