"""Makers pass from block to block as they are; a place is made where paths bring different ones."""

from __future__ import annotations

from sassxlate.cfg import Cfg, liveness
from sassxlate.lowering.kernel_graph import kernel_cfg
from sassxlate.lowering.nans.flow import FACTS, MAKERS, SAME, Flow
from sassxlate.lowering.nans.reads import BITS, Nan
from sassxlate.lowering.nans.steps import UNKNOWN, Value
from tests.disasm.sass.interpreter.launches import assembled, with_code

R10 = 32 + 10  # the number of its bit
_DIAMOND = """MOV R2, 0x1000 ;
MOV R3, 0x0 ;
@P0 BRA `(.L0) ;
MOV R4, 0x1 ;
.L0:
STG.E [R2.64], R10 ;
EXIT ;"""
_SINGLE = int(BITS | Nan.SINGLE)


def _graph() -> Cfg:
    (kernel,) = with_code(assembled(_DIAMOND, 80), 80).kernels
    return kernel_cfg(kernel)


def _flow(doubles: frozenset[int] = frozenset()) -> tuple[Flow, int]:
    """The states of a kernel of three blocks, and the block where both paths meet."""
    cfg = _graph()
    (meets,) = (n for n, some in enumerate(cfg.predecessors) if len(some) == 2)
    return Flow(cfg, liveness(cfg), doubles), meets


def _made(*makers: int, bound: int = 0) -> Value:
    return Value(_SINGLE, bound, makers)


def test_one_maker_on_both_ways_needs_no_place() -> None:
    flow, block = _flow()
    assert flow.into(block, {R10: _made(0x40)}) == FACTS
    assert flow.into(block, {R10: _made(0x40)}) == SAME
    assert not flow.inputs
    assert flow.entry[block] == {R10: _made(0x40)}


def test_different_makers_meet_in_a_place_that_has_them_all() -> None:
    flow, block = _flow()
    for maker, changed in ((0x40, FACTS), (0x50, MAKERS), (0x60, SAME), (0x40, SAME)):
        assert flow.into(block, {R10: _made(maker)}) == changed
    (place,) = flow.inputs
    assert set(flow.inputs[place]) == {0x40, 0x50, 0x60}
    state = flow.entry[block]
    assert state is not None
    assert state[R10].makers == (place,)


def test_doubles_and_others_have_places_apart() -> None:
    flow, block = _flow(frozenset({0x40}))
    for maker in (0x40, 0x50):
        flow.into(block, {R10: _made(maker)})
    assert {place % 2: some for place, some in flow.inputs.items()} == {1: (0x40,), 0: (0x50,)}


def test_a_place_of_many_calls() -> None:
    flow, block = _flow()
    for maker in range(0x40, 0x40 + 100):
        flow.into(block, {R10: _made(maker)})
    (inputs,) = flow.inputs.values()
    assert set(inputs) == set(range(0x40, 0x40 + 100))
    assert flow.into(block, {R10: _made(0x40, 0x41)}) == SAME


def test_what_comes_is_held_itself_where_it_says_all() -> None:
    """A long kernel's states had three objects for each value."""
    flow, block = _flow()
    assert flow.into(block, {R10: _made(0x40)}) == FACTS
    wider = _made(0x40, bound=9)
    assert flow.into(block, {R10: wider}) == FACTS
    state = flow.entry[block]
    assert state is not None
    assert state[R10] is wider
    flow.entry[block] = {}
    unknown = UNKNOWN.joined(wider)
    assert flow.into(block, {R10: unknown}) == FACTS
    assert flow.entry[block] is not state
    assert (flow.entry[block] or {})[R10] is unknown


def test_what_is_unknown_on_one_way_is_unknown() -> None:
    flow, block = _flow()
    flow.into(block, {R10: Value(int(Nan.FREE16), 3)})
    assert flow.into(block, {}) == FACTS
    assert flow.entry[block] == {}
    flow.into(block, {R10: _made(0x40, bound=3)})
    assert flow.entry[block] == {R10: UNKNOWN.joined(_made(0x40, bound=3))}


def test_registers_that_are_not_read_later_are_left_out() -> None:
    flow, block = _flow()
    flow.into(block, {R10 + 1: _made(0x40)})
    assert flow.entry[block] == {}
