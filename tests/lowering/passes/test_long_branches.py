"""Branches at the limit of what the encoding reaches, and beyond it."""

from __future__ import annotations

import random

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
    for item, size in zip(longer.items, longer.sizes, strict=True):
        assert bool(size) == isinstance(item, Inst)
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
    assert len(made.data) == sum(longer.sizes)


def _anywhere(blocks: int, seed: int) -> list[Item]:
    """Blocks of 80 bytes, each with a branch to a block that the seed chooses."""
    rng = random.Random(seed)
    out: list[Item] = []
    for n in range(blocks):
        goal = LabelRef(f"L{rng.randrange(blocks)}")
        out += [Label(f"L{n}"), *[NOP] * 19, Inst("s_cbranch_scc0", (goal,))]
    return out


@pytest.mark.parametrize(("blocks", "seed"), [(2500, 1), (4000, 2), (6000, 3)])
def test_thousands_of_far_labels_make_large_islands(blocks: int, seed: int) -> None:
    """Branches are as much longer as the islands under them are large."""
    items = _anywhere(blocks, seed)
    program = encode_items(items)
    with pytest.raises(EncodeError, match="SX0511"):
        resolve_labels(program)
    longer = expand_long_branches(program)
    resolve_labels(longer)
    # Every branch of the program comes to its label, over islands' branches alone.
    next_of = {
        item.name: longer.items[n + 1]
        for n, item in enumerate(longer.items[:-1])
        if isinstance(item, Label)
    }
    own = [i for i in longer.items if isinstance(i, Inst) and i.op == "s_cbranch_scc0"]
    asked = [i for i in items if isinstance(i, Inst) and i.op == "s_cbranch_scc0"]
    assert len(own) == len(asked)
    for made, was in zip(own, asked, strict=True):
        (goal,), (label,) = made.args, was.args
        while goal != label:
            assert isinstance(goal, LabelRef)
            onward = next_of[goal.name]
            assert isinstance(onward, Inst)
            assert onward.op == "s_branch"
            (goal,) = onward.args


def test_more_far_labels_than_islands_can_hold_are_refused() -> None:
    far = 34_000
    items: list[Item] = [Inst("s_cbranch_scc0", (LabelRef(f"L{n}"),)) for n in range(far)]
    items += [NOP] * MOST
    items += [i for n in range(far) for i in (Label(f"L{n}"), NOP)]
    with pytest.raises(EncodeError, match="SX0511"):
        resolve_labels(expand_long_branches(encode_items(items)))


def test_a_literal_of_a_label_is_no_branch() -> None:
    far: list[Item] = [
        Inst("s_add_u32", (S(0), S(0), LabelRef("far"))),
        *[NOP] * 0x9000,
        Label("far"),
    ]
    program = encode_items(far)
    assert expand_long_branches(program) is program
