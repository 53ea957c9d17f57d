"""The reference interpreter: runs whole launches of SASS by the meanings of its instructions."""

from __future__ import annotations

from .launch import Launch
from .machine import Stop
from .memory import Device, Piece
from .resident import Group, Resident
from .runs import Done, run
from .turns import ORDERS_OF_WARPS, Options, Order

__all__ = [
    "ORDERS_OF_WARPS",
    "Device",
    "Done",
    "Group",
    "Launch",
    "Options",
    "Order",
    "Piece",
    "Resident",
    "Stop",
    "run",
]
