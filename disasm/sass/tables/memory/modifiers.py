"""Modifiers that accesses to memory share: sizes, caching, order and scope."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.sass.tables.spec import (
    Mod,
    bits,
    enum,
    flag,
)

WIDTHS = {"64": 2, "128": 4}
SIZE = enum("size", 73, 3, "U8 S8 U16 S16 _ 64 128 -", WIDTHS)
SIZE_75 = enum("size", 73, 3, "U8 S8 U16 S16 _ 64 128 U.128", {**WIDTHS, "U.128": 4})
E = flag("E", 72)
EVICT = enum("evict", 84, 3, "EF _ EL LU EU NA - -")
PREFETCH = enum("prefetch", 68, 2, "_ LTC64B LTC128B LTC256B")
# Memory order and scope.  sm_75 has a scope (77-78) and an order (79-80); later architectures
# one field of sixteen values.
_SCOPES = ("CTA", "SM", "GPU", "SYS")
_STRONG: Mapping[int, str] = {
    0: "", 1: "CONSTANT.PRIVATE", 2: "CONSTANT.CTA", 3: "CONSTANT.CTA.PRIVATE", 4: "CONSTANT",
    5: "STRONG.SM", 6: "STRONG.GPU.PRIVATE", 7: "STRONG.GPU", 8: "MMIO.GPU", 9: "CONSTANT.SM",
    10: "STRONG.SYS", 11: "CONSTANT.SM.PRIVATE", 12: "MMIO.SYS", 13: "CONSTANT.VC",
    14: "CONSTANT.VC.PRIVATE", 15: "CONSTANT.GPU",
}  # fmt: skip
_STRONG_ST = {**_STRONG, 4: "STRONG.SM.PRIVATE"}
_ORDERED = {13: "SYS.ORDERED", 14: "STRONG.SYS.ORDERED", 15: "MMIO.SYS.ORDERED"}  # STG, sm_100
COPIED: Mapping[int, str] = {
    **_STRONG, 5: "MMIO.CTA", 6: "GPU.PRIVATE", 7: "MMIO.CTA.PRIVATE", 8: "MMIO.SM",
    10: "MMIO.VC", 12: "MMIO.GPU",
}  # fmt: skip


def _order75(orders: Mapping[int, str]) -> Mod:
    return Mod(
        "order",
        bits(77, 4),
        {s | o << 2: f"{n}.{_SCOPES[s]}" if n else _SCOPES[s]
         for o, n in orders.items() for s in range(4)},
    )  # fmt: skip


LD_75 = _order75({0: "CONSTANT", 1: "", 2: "STRONG", 3: "MMIO"})
ST_75 = _order75({1: "", 2: "STRONG", 3: "MMIO"})
AT_75 = _order75({1: "", 2: "STRONG"})
PRIVATE = flag("PRIVATE", 76)
LD_80 = Mod("order", bits(77, 4), _STRONG)
ST_80 = Mod("order", bits(77, 4), _STRONG_ST)
STG_100 = Mod("order", bits(77, 4), {**_STRONG_ST, **_ORDERED})
SCALE = bits(78, 2)
