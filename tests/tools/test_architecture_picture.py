"""docs/pictures/architecture.svg is drawn from the contracts and names folders that are there."""

from __future__ import annotations

import pytest

from tools.figures import architecture

PICTURE = architecture.ROOT / "docs" / "pictures" / "architecture.svg"


def test_the_picture_is_of_the_contracts(request: pytest.FixtureRequest) -> None:
    """``--bless`` draws it anew."""
    if request.config.getoption("--bless", default=False):
        PICTURE.write_text(architecture.picture())
    assert PICTURE.read_text() == architecture.picture()


def test_the_way_of_a_kernel_names_folders() -> None:
    assert architecture.missing() == []
