"""AMD's description of an opcode, and the names that it gives the printed operands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from tools.witness.pcode import readings

from .values import NotDescribed


@cache
def descriptions() -> dict[str, str]:
    """Descriptions by name in lower case, without ``_e32``; e64 where the two differ."""
    from tinygrad.runtime.autogen.amd.rdna3 import str_pcode

    table: dict[Any, str] = str_pcode.PCODE
    out: dict[str, str] = {}
    for key, text in table.items():
        name = key.name.lower()
        base = re.sub(r"_e(32|64)$", "", name)
        if base in out and name.endswith("_e32"):
            continue
        out[base] = readings.always(base, text)
    return out


@cache
def description(op: str, *, read: bool = False) -> str:
    """The pseudocode of an opcode; with ``read``, as the manual's words complete it."""
    text = descriptions().get(op)
    if text is None:
        raise NotDescribed("no description")
    return readings.read(op, text) if read else text


# --- roles of the printed operands ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Roles:
    """The name that the description gives each printed operand; "D1" is a mask of lanes."""

    names: tuple[str, ...]
    implicit: str = ""


_SCALAR_LAST = re.compile(r"v_(add|sub|subrev)_co_ci_u32$")


@cache
def roles(op: str, count: int) -> Roles:
    if op.startswith(("s_cmp_", "s_bitcmp")):
        return Roles(("S0", "S1"))
    if op.startswith("s_cmpk_"):
        return Roles(("S0", "SIMM16"))
    if op in ("s_movk_i32", "s_cmovk_i32", "s_addk_i32", "s_mulk_i32"):
        return Roles(("D0", "SIMM16"))
    if op.startswith("v_cmpx_"):
        return Roles(("S0", "S1"), "EXEC")
    if op.startswith("v_cmp_"):
        return Roles(("MASK", "S0", "S1"))
    if _SCALAR_LAST.match(op):
        return Roles(("D0", "MASK", "S0", "S1", "CARRY"))
    if re.match(r"v_(add|sub|subrev)_co_u32$|v_div_scale|v_mad_[ui]64", op):
        return Roles(("D0", "MASK", "S0", "S1", "S2"))
    if op.startswith("v_cndmask"):
        return Roles(("D0", "S0", "S1", "CARRY"))
    if op.startswith("v_fmaak"):
        return Roles(("D0", "S0", "S1", "SIMM32"))
    if op.startswith("v_fmamk"):
        return Roles(("D0", "S0", "SIMM32", "S1"))
    return Roles(("D0", "S0", "S1", "S2")[:count])
