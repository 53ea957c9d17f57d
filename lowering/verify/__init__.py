"""Verification: does a block of RDNA3 do what its SASS means?  Proved, refuted or unknown.

Verdicts are read where there is no solver, too: what needs z3 is imported at its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sassxlate.lowering.verify.block.block import BlockPair
from sassxlate.lowering.verify.verdict import Proved, Refuted, Unknown, Verdict

if TYPE_CHECKING:
    from sassxlate.lowering.verify.block.check import verify
    from sassxlate.lowering.verify.rdna3.execute import Placed


def __getattr__(name: str) -> object:
    if name == "verify":
        from sassxlate.lowering.verify.block.check import verify

        return verify
    if name == "Placed":
        from sassxlate.lowering.verify.rdna3.execute import Placed

        return Placed
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["BlockPair", "Placed", "Proved", "Refuted", "Unknown", "Verdict", "verify"]
