"""The reference interpreter: runs whole launches of SASS by the semantics of its instructions."""

from __future__ import annotations

from sassxlate.disasm.sass.interpreter.execute import Stop
from sassxlate.disasm.sass.interpreter.launch import Launch
from sassxlate.disasm.sass.interpreter.memory import GlobalMemory, Piece
from sassxlate.disasm.sass.interpreter.resident_warps import Group, Resident
from sassxlate.disasm.sass.interpreter.runner import Done, run
from sassxlate.disasm.sass.interpreter.schedule import ORDERS_OF_WARPS, Order, ScheduleOptions

__all__ = [
    "ORDERS_OF_WARPS",
    "Done",
    "GlobalMemory",
    "Group",
    "Launch",
    "Order",
    "Piece",
    "Resident",
    "ScheduleOptions",
    "Stop",
    "run",
]
