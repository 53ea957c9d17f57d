"""The code between blocks: shorter, with the kernel's contract, and without any proposal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sassxlate.disasm.rdna3.instruction import I, Inst, Item
from sassxlate.lowering.engine import edges
from sassxlate.lowering.engine.engine import Engine
from sassxlate.lowering.engine.memo import Memo
from sassxlate.lowering.engine.seam import Proposals, Question
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.stages import Selected
from sassxlate.lowering.verify.steps.region_proofs import RegionProofs
from tests.lowering import emulated
from tests.lowering.engine.test_gate import hybrid


class Silent:
    """Proposes nothing."""

    name = "silent"

    def propose(self, question: Question) -> Proposals:
        return Proposals()


@pytest.mark.parametrize("kernel", ["divergent_if", "nested_break"])
def test_edges_are_shorter_and_right(monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    for shorter in (False, True):
        _, report = hybrid(monkeypatch, kernel, Engine(Silent(), "search", edges=shorter))
        assert (report.edges > 5) == shorter
        assert report.accepted == 0
        assert report.as_dict()["edges"] == report.edges


def _selected(kernel: str) -> Selected:
    return translate_kernel(emulated.load(kernel, 90), kernel).selected


def _store() -> tuple[dict[str, bytes], Memo, RegionProofs]:
    kept: dict[str, bytes] = {}
    return kept, Memo(kept.get, kept.__setitem__), RegionProofs(kept.get, kept.__setitem__)


def _never(*_: object) -> None:
    raise AssertionError("looked for again")


def test_what_was_found_is_not_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    selected = _selected("nested_break")
    kept, memo, proofs = _store()
    found = edges.shorter(selected, memo, proofs)
    assert found is not None
    assert len(found) < len(selected.items)
    monkeypatch.setattr(edges, "simplified", _never)
    again = edges.shorter(selected, Memo(kept.get), proofs)
    assert again is not None
    assert again == found
    assert [getattr(i, "origin", None) for i in again] == [
        getattr(i, "origin", None) for i in found
    ]
    # Nor in code that differs in what does not move lanes.
    new = tuple(_other(item) for item in selected.items)
    assert edges.shorter(replace(selected, items=new), Memo(kept.get), proofs) is not None


def _other(item: Item) -> Item:
    """A vector instruction with another operand; anything else as it is."""
    if isinstance(item, Inst) and item.op == "v_add_nc_u32":
        return replace(item, args=(item.args[0], I(7), item.args[0]))
    return item


@pytest.mark.parametrize("spoiled", ["no proof", "another answer", "no answer"])
def test_what_has_no_proof_is_looked_for_again(
    monkeypatch: pytest.MonkeyPatch, spoiled: str
) -> None:
    selected = _selected("nested_break")
    kept, memo, proofs = _store()
    found = edges.shorter(selected, memo, proofs)
    (key,) = (key for key, data in kept.items() if not data.startswith(b"proved"))
    if spoiled == "no proof":
        _, _, proofs = _store()
    elif spoiled == "another answer":  # without its first instruction
        kept[key] = kept[key].split(b" ", 1)[1]
    else:
        kept[key] = b"=0 nothing|x|s1"
    looked: list[object] = []
    original = edges.simplified

    def counted(*args: object) -> object:
        looked.append(args)
        return original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(edges, "simplified", counted)
    assert edges.shorter(selected, Memo(kept.get), proofs) == found
    assert looked


def test_a_kernel_with_nothing_to_shorten_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    selected = _selected("divergent_if")
    kept, memo, proofs = _store()
    found = edges.shorter(selected, memo, proofs)
    assert found is not None
    selected = replace(selected, items=found)
    assert edges.shorter(selected, memo, proofs) is None
    monkeypatch.setattr(edges, "simplified", _never)
    assert edges.shorter(selected, Memo(kept.get), proofs) is None
