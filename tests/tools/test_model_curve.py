"""docs/pictures/model.curve.svg is drawn from its figures, which docs/model.md has, too."""

from __future__ import annotations

import json

import pytest

from tools.figures import model_curve

PICTURE = model_curve.FIGURES.with_suffix(".svg")
PAGE = model_curve.ROOT / "docs" / "model.md"


def test_the_picture_is_of_the_figures(request: pytest.FixtureRequest) -> None:
    """``--bless`` draws it anew."""
    made = model_curve.picture(json.loads(model_curve.FIGURES.read_text()))
    if request.config.getoption("--bless", default=False):
        PICTURE.write_text(made)
    assert PICTURE.read_text() == made


def test_the_page_has_the_same_figures() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    for run in model_curve.runs(json.loads(model_curve.FIGURES.read_text())):
        head = f"| {run.parameters / 1e6:.1f} million | {run.pairs:,} |"
        (row,) = (row for row in rows if row.startswith(head))
        for _, share in run.points:
            assert f" {share} %" in row


def test_a_point_outside_is_refused() -> None:
    run = {"parameters": 1, "pairs": 1, "points": [[1, 101.0]]}
    with pytest.raises(ValueError, match="outside"):
        model_curve.picture({"title": "", "measured": "", "runs": [run]})
