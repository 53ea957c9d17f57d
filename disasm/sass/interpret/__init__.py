"""The reference interpreter: runs whole launches of SASS by the meanings of its instructions."""

from __future__ import annotations

from .launch import Launch
from .machine import Done, Options, Order, Stop, run
from .memory import Device, Piece
from .resident import Group, Resident

__all__ = [
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
