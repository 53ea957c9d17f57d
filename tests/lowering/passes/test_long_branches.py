"""Branches at the limit of what the encoding reaches, and beyond it."""

from __future__ import annotations

import pytest

from sassxlate.disasm.rdna3 import encode_items, resolve_labels
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, LabelRef, S
from sassxlate.errors import EncodeError
from sassxlate.lowering.passes.long_branches import expand_long_branches

MOST = 0x7FFF  # dwords forwards, from the instruction after the branch
NOP = Inst("s_nop", ())


def _forwards(dwords: int) -> list[Item]:
    return [Inst("s_branch", (LabelRef("far"),)), *[NOP] * dwords, Label("far"), NOP]


def _backwards(dwords: int) -> list[Item]:
    return [Label("far"), *[NOP] * dwords, Inst("s_branch", (LabelRef("far"),))]


@pytest.mark.parametrize(
    "items", [_forwards(MOST), _backwards(0x8000 - 1), _forwards(3)], ids=["on", "back", "near"]
)
def test_what_reaches_is_left_alone(items: list[Item]) -> None:
    program = encode_items(items)
    assert expand_long_branches(program) is program
    resolve_labels(program)


@pytest.mark.parametrize(
    "items", [_forwards(MOST + 1), _backwards(0x8000), _forwards(3 * MOST)], ids=["on", "back", "3"]
)
def test_what_does_not_reach_goes_over_islands(items: list[Item]) -> None:
    program = encode_items(items)
    with pytest.raises(EncodeError, match="SX0511"):
        resolve_labels(program)
    longer = expand_long_branches(program)
    made = resolve_labels(longer)
    for item, code in zip(longer.items, longer.code, strict=True):
        assert bool(code) == isinstance(item, Inst)
    # From the branch one comes to the label over branches alone.
    last = len(longer.items) - 1
    here = 0 if isinstance(items[0], Inst) else last
    for _ in range(8):
        item = longer.items[here]
        assert isinstance(item, Inst)
        assert item.op == "s_branch"
        (target,) = item.args
        assert isinstance(target, LabelRef)
        if target.name == "far":
            break
        here = longer.items.index(Label(target.name)) + 1
    else:
        pytest.fail("the label is never reached")
    assert len(made.data) == sum(map(len, longer.code))


def test_a_literal_of_a_label_is_no_branch() -> None:
    far: list[Item] = [
        Inst("s_add_u32", (S(0), S(0), LabelRef("far"))),
        *[NOP] * 0x9000,
        Label("far"),
    ]
    program = encode_items(far)
    assert expand_long_branches(program) is program
