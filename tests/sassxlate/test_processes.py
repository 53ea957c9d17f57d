"""Children that die with their parent."""

from __future__ import annotations

import os

from sassxlate.processes import die_with_parent


def _status(parent: int) -> int:
    """The exit status of a child that is told of this parent."""
    pid = os.fork()
    if pid == 0:
        try:
            die_with_parent(parent)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_child_ends_if_its_parent_is_gone() -> None:
    """A parent that died between the fork and the call sends no signal any more."""
    assert _status(os.getpid()) == 0
    assert _status(os.getppid()) == 1
