"""Verification: does a block of RDNA3 do what its SASS means?  Proved, refuted or unknown."""

from __future__ import annotations

from sassxlate.lowering.verify.block.block import BlockPair
from sassxlate.lowering.verify.block.check import verify
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.verdict import Proved, Refuted, Unknown, Verdict

__all__ = ["BlockPair", "Placed", "Proved", "Refuted", "Unknown", "Verdict", "verify"]
