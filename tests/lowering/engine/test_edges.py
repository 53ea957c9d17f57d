"""The code between blocks: shorter, with the kernel's contract, and without any proposal."""

from __future__ import annotations

import pytest

from sassxlate.lowering.engine.engine import Engine
from sassxlate.lowering.engine.seam import Proposals, Question
from tests.lowering.engine.test_gate import hybrid


class Silent:
    """Proposes nothing."""

    name = "silent"

    def propose(self, question: Question) -> Proposals:
        return Proposals()


@pytest.mark.parametrize("kernel", ["divergent_if", "nested_break"])
def test_edges_are_shorter_and_right(monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    for edges in (False, True):
        _, report = hybrid(monkeypatch, kernel, Engine(Silent(), "search", edges=edges))
        assert (report.edges > 5) == edges
        assert report.accepted == 0
        assert report.as_dict()["edges"] == report.edges
