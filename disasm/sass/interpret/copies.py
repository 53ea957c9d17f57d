"""Asynchronous copies; they are done at once."""

from __future__ import annotations

import numpy as np

from sassxlate.vectors import Vectors

from ..ir import Instruction, Pred
from ..meaning.memory import POLICY, address
from ..meaning.rows import NoMeaning, View
from .resident import Group, LaneEnv, Mask

_KNOWN = frozenset((*POLICY.split(), "BYPASS", "ZFILL", "64", "128"))


def ldgsts(ins: Instruction, group: Group, lanes: Mask) -> None:
    """From global to shared memory; with a false Pp zeros are written (.ZFILL) or nothing."""
    for modifier in ins.modifiers:
        if modifier not in _KNOWN:
            raise NoMeaning(f"modifier {modifier}")
    d, x = Vectors(), View(Vectors(), ins, LaneEnv(group))
    size = 16 if ins.has("128") else 8 if ins.has("64") else 4
    source = np.broadcast_to(address(d, x).v, lanes.shape)
    target = np.broadcast_to(address(d, x, "dst", 32).v, lanes.shape)
    copied, second = lanes, ins.get("Pp")
    if isinstance(second, Pred) and not second.is_true:
        held = x.pred("Pp").true
        copied = lanes & np.broadcast_to(held, lanes.shape)
        if not ins.has("ZFILL"):
            lanes = copied
    data = group.load("global", source, size, copied)
    group.store("shared", target, data, lanes)
