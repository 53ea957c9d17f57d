"""Kernels by the masks of the convergence machine: right for every contract, whatever way the tier
would take by itself."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from sassxlate.errors import SassxlateError
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT, Target, target_named
from sassxlate.lowering.tier import translate
from sassxlate.lowering.tier.backend import MachineCode, compiled
from sassxlate.lowering.tier.masked import blocks
from sassxlate.lowering.tier.masked.order import Item, Loop, arranged
from sassxlate.lowering.tier.refusal import FLOW, FORM, Refused, refused
from sassxlate.lowering.tier.translate import by_tier, module_text
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS
from tests.lowering.emulated import KERNELS, check, load

MASKED = "label %pass"  # in the IR of such a kernel
# Each with another difficulty; by themselves they take LLVM's control flow.
FORCED = ("divergent_if", "exit_in_regions", "jump_table")
# What sees lanes where they run apart, locks and flags.
NATURAL = ("divergent_ballot", "spin_lock", "lane_flags")


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> str:
        raise refused(FLOW, "not by LLVM's control flow")

    monkeypatch.setattr(translate, "_structured", never)


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("name", FORCED)
def test_kernels_that_do_not_need_masks(name: str) -> None:
    check(load(name, 80), name, change=by_tier, strict=True)


@pytest.mark.parametrize("name", NATURAL)
def test_kernels_that_need_them(name: str) -> None:
    assert MASKED in module_text(translate_kernel(load(name, 80), name), DEFAULT)
    check(load(name, 80), name, change=by_tier, strict=True)


def test_weak_loads_of_loops_that_wait_are_done_in_each_turn() -> None:
    text = module_text(translate_kernel(load("spin_lock", 80), "spin_lock"), DEFAULT)
    assert "load volatile i32, ptr addrspace(1)" in text


def test_collective_sections() -> None:
    check(load("divergent_ballot", 90), "divergent_ballot", change=by_tier)


@pytest.mark.usefixtures("forced")
@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90, 120])
@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_every_kernel(name: str, arch: int) -> None:
    if (KERNELS / f"sm_{arch}" / f"{name}.cubin").exists():
        refusal = None
        try:
            check(load(name, arch), name, change=by_tier, strict=True)
        except Refused as why:
            refusal = why.code
        assert refusal in (None, FORM, FLOW)


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("name", ["named_barriers", "arrive_barriers"])
def test_other_barriers_are_not_written_as_the_plain_one(name: str) -> None:
    with pytest.raises(Refused) as why:
        module_text(translate_kernel(load(name, 80), name), DEFAULT)
    assert why.value.code == FORM


def test_recursion_whose_stack_may_grow_is_refused() -> None:
    """LLVM's frame has one size: deeper calls would write over its other words."""
    rules = translate_kernel(load("mutual_recursion", 80), "mutual_recursion")
    assert rules.launch.growing_stack
    with pytest.raises(Refused) as why:
        module_text(rules, DEFAULT)
    assert why.value.code == FLOW


def test_what_is_too_long_is_left_to_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_LINES", 100)
    with pytest.raises(Refused) as why:
        module_text(translate_kernel(load("divergent_ballot", 80), "divergent_ballot"), DEFAULT)
    assert why.value.code == FLOW
    assert "too long" not in why.value.message  # it is the reason why masks were needed


def test_other_processors() -> None:
    name = "divergent_ballot"
    made = by_tier(translate_kernel(load(name, 80), name), target_named("gfx1201"))
    assert made.program.data


# Mistakes in the masks, and the kernels whose launches find them.
WRONG = {
    "a lane that ended is waited for": ("exit_in_regions", "%m.live"),
    "a barrier's mask is lost": ("split_warp_sync", "%m.held."),
}  # fmt: skip


def _without(text: str, mask: str) -> str:
    """The module without the stores of a mask, after the first block."""
    head, _, body = text.partition("pass:")
    place = f"ptr addrspace(5) {mask}"
    lines = [
        line for line in body.split("\n") if not (line.startswith("  store i32 ") and place in line)
    ]
    return head + "pass:" + "\n".join(lines)


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("what", WRONG)
def test_mistakes_in_masks_are_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, mask = WRONG[what]
    changed: list[bool] = []

    def wrong(text: str, target: Target) -> MachineCode:
        new = _without(text, mask)
        changed.append(new != text)
        return compiled(new, target)

    monkeypatch.setattr(translate, "compiled", wrong)
    with pytest.raises((AssertionError, SassxlateError)):
        check(load(name, 80), name, change=by_tier)
    assert changed == [True]


# --- the order of blocks --------------------------------------------------------------------------


def _places(loop: Loop) -> Iterator[tuple[int, list[Loop]]]:
    """Each block, with the loops around it from outside to inside."""

    def inside(items: tuple[Item, ...], around: list[Loop]) -> Iterator[tuple[int, list[Loop]]]:
        for item in items:
            if isinstance(item, Loop):
                yield from inside(item.items, [*around, item])
            else:
                yield item, around

    yield from inside(loop.items, [])


def test_each_way_leads_forwards_or_around_a_loop() -> None:
    chance = random.Random(21)
    for _ in range(200):
        count = chance.randint(1, 12)
        after = [
            [chance.randrange(count) for _ in range(chance.randint(0, 3))] for _ in range(count)
        ]
        made = arranged(after)
        found = list(_places(made))
        assert sorted(n for n, _ in found) == list(range(count))
        place = {n: at for at, (n, _) in enumerate(found)}
        around = dict(found)
        for n, some in enumerate(after):
            for to in some:
                if place[to] > place[n]:
                    continue
                # the innermost loop around both comes to the block again, and so do those inside
                assert to in made.again
                both = [loop for loop in around[n] if to in loop.blocks]
                assert both, (after, n, to)
                assert all(to in loop.again for loop in both)
