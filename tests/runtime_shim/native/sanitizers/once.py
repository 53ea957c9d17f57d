"""A build that pytest's parallel processes share: one makes it, the others wait for it and take it
as it is, so that no library is replaced while a test of another process runs it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

RUN = "PYTEST_XDIST_TESTRUNUID"  # the same in all processes of one run of pytest -n


def once(folder: Path, name: str, build: Callable[[], None]) -> None:
    """Calls ``build`` unless another process of this run did; never two at a time.  A build that
    raises is not taken as made."""
    folder.mkdir(parents=True, exist_ok=True)
    run, stamp = os.environ.get(RUN, ""), folder / f"{name}.built"
    with open(folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if run and stamp.is_file() and stamp.read_text() == run:
            return
        stamp.unlink(missing_ok=True)
        build()
        stamp.write_text(run)
