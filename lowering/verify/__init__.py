"""Verification: is a block of RDNA3 what a block of SASS means?  Proved, refuted or unknown."""

from __future__ import annotations

from .block import Block
from .check import verify
from .execute import Placed
from .verdict import Proved, Refuted, Unknown, Verdict

__all__ = ["Block", "Placed", "Proved", "Refuted", "Unknown", "Verdict", "verify"]
