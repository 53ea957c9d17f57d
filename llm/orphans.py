"""Processes that end with the one that began them."""

from __future__ import annotations

import contextlib
import ctypes
import signal

_PR_SET_PDEATHSIG = 1


def die_along() -> None:
    """Said by a process after its fork: who is killed takes it along.  Linux alone knows how."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


__all__ = ["die_along"]
