"""Python's cycle collector, paused while something makes many long-lived objects."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator


@contextlib.contextmanager
def paused() -> Generator[None]:
    """Without the collector, which would walk the growing data again and again and find nothing:
    frozen values form no cycles.  What they leave unused is freed by reference counts."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
