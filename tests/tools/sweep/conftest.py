"""What tests of the random differential test share."""

from __future__ import annotations

import pytest

from tools.sweep import plan
from tools.sweep.kernel import Group


@pytest.fixture(scope="package")
def groups() -> list[Group]:
    """The groups of the seed whose truth is kept."""
    return list(plan.groups())
