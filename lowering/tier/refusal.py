"""The kernels that the optimising tier leaves to the rules, and why."""

from __future__ import annotations

from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.errors import LoweringError, Where

# Stable codes of the reasons; each has its page in the catalogue of errors.
FORM, TOGETHER, WAITING, FLOW, BACKEND = "SX0460", "SX0461", "SX0462", "SX0463", "SX0464"


class Refused(LoweringError):
    """The tier does not take a kernel.  ``code`` is one of those above."""


def refused(code: str, message: str, ins: Instruction | None = None) -> Refused:
    """The refusal, with the instruction that it is for."""
    if ins is None:
        return Refused(code, message)
    return Refused(code, message, Where(offset=ins.offset, inst=ins.text))


__all__ = ["BACKEND", "FLOW", "FORM", "TOGETHER", "WAITING", "Refused", "refused"]
