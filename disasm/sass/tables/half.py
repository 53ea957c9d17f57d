"""Half precision: packed fp16 and bf16 arithmetic, comparisons, packing conversions."""

from __future__ import annotations

from collections.abc import Mapping

from ..spec import Mod, Row, bits, enum, flag, join
from .float32 import FCMP
from .forms import FTZ, HALF_PLACES, HALVES, HALVES_F32, SAT, Src, alu, pd, ps, rd

_H = Src(neg=True, abs=True, imm="pair", select=HALVES, bf16="type")
_H32 = Src(neg=True, abs=True, imm="pair", select=HALVES_F32, bf16="type")
_HH = {"Ra": _H, "Rb": _H}
_HH32 = {"Ra": _H32, "Rb": _H32}
_HHH = {"Ra": _H, "Rb": _H32, "Rc": _H32}
_FLAT = Src(neg=True, abs=True, imm="pair", bf16="type")
_BF16: Mapping[int, str] = {0: "", 1: "BF16_V2"}
_TYPE = Mod("type", bits(85), _BF16)
_TYPE_F32 = Mod("type", join((85, 1), (78, 1)), {0: "", 1: "BF16_V2", 2: "F32"})
_FLUSH = Mod("flush", join((76, 1), (80, 1)), {0: "", 1: "FMZ", 2: "FTZ"})
_RELU = flag("RELU", 79)
_ALL = (1, 2, 3, 4, 5, 6, 7)
_CMP = Mod("compare", FCMP.field, FCMP.names)
_BOOL = enum("bool", 69, 2, "AND OR XOR -")
_CMP_TYPE = Mod("type", bits(64, 2), {0: "", 2: "BF16_V2"})
_SETP = {"Pu": pd(81), "Pv": pd(84), "Pp": ps(87)}

ARITHMETIC = [
    *alu("HADD2", 0x030, "Rd, Ra, Rb", _HH32, forms=(1, 2, 3, 7), layout="ab2",
         mods=(_TYPE_F32, FTZ, SAT)),
    *alu("HMUL2", 0x032, "Rd, Ra, Rb", _HH, forms=(1, 4, 5, 6), layout="ab",
         mods=(_TYPE, _FLUSH, SAT)),
    *alu("HFMA2", 0x031, "Rd, Ra, Rb, Rc", _HHH, forms=_ALL, places=HALF_PLACES,
         mods=(_TYPE_F32, _FLUSH, _RELU, SAT), free=(bits(87, 4),)),
    *alu("HFMA2", 0x035, "Rd, Ra, Rb, Rc", {"Ra": _FLAT, "Rb": _FLAT, "Rc": _FLAT},
         forms=_ALL, places=HALF_PLACES,
         mods=(Mod("mma", bits(85, 0), {0: "MMA"}), _TYPE, _FLUSH, _RELU, SAT),
         free=(bits(87, 4),), since=80, until=90),
    *alu("HMNMX2", 0x040, "Rd, Ra, Rb, Pp", _HH, forms=(1, 4, 5, 6), layout="ab",
         mods=(_TYPE, FTZ, flag("NAN", 81), flag("XORSIGN", 82)), extra={"Pp": ps()}, since=80),
]  # fmt: skip

COMPARISONS = [
    *alu("HSET2", 0x033, "Rd, Ra, Rb, Pp", _HH, forms=(1, 2, 3, 7), layout="ab2",
         mods=(_CMP_TYPE, flag("BF", 71), _CMP, FTZ, _BOOL), extra={"Pp": ps()}),
    *alu("HSETP2", 0x034, "Pu, Pv, Ra, Rb, Pp", _HH, forms=(1, 2, 3, 7), layout="ab2",
         mods=(_CMP_TYPE, flag("H_AND", 71), _CMP, FTZ, _BOOL), dst={}, extra=_SETP),
]  # fmt: skip

ROWS: list[Row] = [*ARITHMETIC, *COMPARISONS]
__all__ = ["ROWS", "rd"]
