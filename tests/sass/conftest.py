"""Options and fixtures of the SASS tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))

if TYPE_CHECKING:
    from tools import sass_witness
else:
    import sass_witness


@pytest.fixture(scope="session")
def witness() -> sass_witness.Witness:
    """nvdisasm; skips where it is absent."""
    try:
        return sass_witness.find()
    except sass_witness.NoWitness as error:
        pytest.skip(str(error))
