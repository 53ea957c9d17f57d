"""Failures of PTX: each with the number that CUDA's driver would return, and the tool's output."""

from __future__ import annotations

from sassxlate.errors import ShimError, Where

_INVALID_IMAGE = 200
_NO_BINARY_FOR_GPU = 209
_INVALID_PTX = 218
_JIT_COMPILER_NOT_FOUND = 221
_UNSUPPORTED_PTX_VERSION = 222
_UNKNOWN = 999

# The driver's own numbers: 209 for a .target above the device and 999 for objects that do not fit
# together are what applications report of it.
CUDA_ERRORS: dict[str, int] = {
    "SX0741": _JIT_COMPILER_NOT_FOUND,
    "SX0742": _INVALID_PTX,
    "SX0743": _NO_BINARY_FOR_GPU,
    "SX0744": _UNSUPPORTED_PTX_VERSION,
    "SX0745": _UNKNOWN,
    "SX0746": _UNKNOWN,
    "SX0747": _JIT_COMPILER_NOT_FOUND,
    "SX0748": _UNKNOWN,
    "SX0749": _JIT_COMPILER_NOT_FOUND,
    "SX0770": _INVALID_IMAGE,
}


class PtxError(ShimError):
    """A tool refused or failed; ``log`` is all that it printed."""

    def __init__(self, code: str, message: str, where: Where | None = None, log: str = "") -> None:
        super().__init__(code, message, where)
        self.log = log


def shown(text: str, most: int = 300) -> str:
    """One line of what a tool printed."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= most else f"{line[:most]} ..."


__all__ = ["CUDA_ERRORS", "PtxError", "shown"]
