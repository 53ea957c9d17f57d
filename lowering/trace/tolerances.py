"""What may differ between both sides: results that depend on an order, NaNs, approximations."""

from __future__ import annotations

import numpy as np

from sassxlate.cfg.build import is_state_test
from sassxlate.disasm.sass.instruction import Instruction, Special
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.target import LANES
from sassxlate.lowering.trace.observations import (
    Mask,
    Words,
)

ATOMICS = ("atomic", "arrival")
LOADS = ("load", "copy", *ATOMICS)
# Special registers whose numbering is up to the hardware.
_LOOSE = ("SR_VIRTID", "SR_SMID", "SR_NSMID", "SR_WARPID", "SR_GRIDID")


def depends_on_order(ins: Instruction) -> bool:
    """Whether its result depends on earlier actions of other warps."""
    t, strong = traits(ins), ins.has("STRONG") or ins.has("MMIO")
    return (strong and t.reaches(("load",), "global", "generic")) or t.reaches(ATOMICS)


def reads_memory(ins: Instruction) -> bool:
    """Whether its result comes from memory."""
    m = traits(ins).memory
    return m is not None and m.kind in LOADS and m.space != "constant"


def state_test(ins: Instruction) -> bool:
    """BRA.CONV and BRA.DIV test which lanes are here together; lanes that reach collective
    sections with the same code may run through any of these."""
    if ins.mnemonic == "WARPSYNC":
        return ins.has("COLLECTIVE")
    return is_state_test(ins)


def is_free(ins: Instruction) -> bool:
    """Whether its result may differ between two runs."""
    special = ins.get("sr")
    loose = isinstance(special, Special) and special.name.startswith(_LOOSE)
    return loose or traits(ins).clock


def is_nan(word: Words, infinity: int, sign: int) -> Mask:
    out: Mask = (word & np.uint32(sign - 1)) > np.uint32(infinity)
    return out


def both_nan(a: Words, b: Words) -> Mask:
    """Words that are NaN on both sides, or whose differing halves are NaN on both sides."""
    single = is_nan(a, 0x7F800000, 1 << 31) & is_nan(b, 0x7F800000, 1 << 31)
    halves = np.ones(LANES, np.bool_)
    for shift in (0, 16):
        x, y = (w >> np.uint32(shift) & np.uint32(0xFFFF) for w in (a, b))
        halves &= (x == y) | (is_nan(x, 0x7C00, 1 << 15) & is_nan(y, 0x7C00, 1 << 15))
    out: Mask = single | halves
    return out


def floating(ins: Instruction) -> bool:
    """Whether its result may be a NaN that it made."""
    name = ins.mnemonic
    return name == "MUFU" or (name[0] in "FDH" and name != "FLO")


def within_bounds(ins: Instruction, a: Words, b: Words) -> Mask:
    """For approximations: whether both may be right."""
    wide = ins.has("64H")
    bound = 2.0**-10 if ins.has("TANH") or wide else 2.0**-20
    if ins.has("F16"):
        bound = 2.0**-9
    with np.errstate(all="ignore"):
        kind = np.float16 if ins.has("F16") else np.float32
        x, y = (v.astype(np.uint16).view(kind) if ins.has("F16") else v.view(kind) for v in (a, b))
        p, q = x.astype(np.float64), y.astype(np.float64)
        out: Mask = np.abs(p - q) <= bound * np.maximum(np.maximum(np.abs(p), np.abs(q)), 1)
    return out
