"""Options and fixtures of the SASS tests."""

from __future__ import annotations

import pytest

from tools.witness.nvdisasm import witness as sass_witness


@pytest.fixture(scope="session")
def witness() -> sass_witness.Witness:
    """nvdisasm; skips where it is absent."""
    try:
        return sass_witness.find()
    except sass_witness.NoWitness as error:
        pytest.skip(str(error))
