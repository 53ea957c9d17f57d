"""What is known of registers that a function does not name goes past its calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sassxlate.cfg import Cfg, liveness
from sassxlate.cfg.register_sets import FIRST, bit_number, tracked
from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.errors import SassxlateError
from sassxlate.lowering.kernel_graph import kernel_cfg
from sassxlate.lowering.nans.bits import NanBits, facts_before, nan_bits
from sassxlate.lowering.nans.calls import Calls
from sassxlate.lowering.nans.flow import FACTS, SAME, Flow
from sassxlate.lowering.nans.reads import BITS, Nan
from sassxlate.lowering.nans.steps import UNKNOWN, Value, names, steps
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.verify import Proved, verify
from sassxlate.lowering.verify.block.of_kernel import blocks
from tests.disasm.sass.interpreter.launches import assembled, with_code
from tests.lowering.nans import generated_calls

KERNELS = Path(__file__).parents[3] / "fixtures" / "kernels"
R = FIRST["R"]
_HEAD = ["MOV R2, 0x1000 ;", "MOV R3, 0x0 ;", "LDG.E R4, [R2.64] ;", "MOV R8, R4 ;"]
_FUNCTION = [".F:", "FADD R8, R8, R4 ;", "RET.REL.NODEC R6 0x0 ;"]


def _code(*parts: str, function: list[str] = _FUNCTION) -> str:
    """A kernel where each CALL has its return address in R6 and R7."""
    lines = list(_HEAD)
    for part in parts:
        if part == "CALL":
            at = 16 * (sum(not line.endswith(":") for line in lines) + 3)
            lines += [f"MOV R6, {at:#x} ;", "MOV R7, 0x0 ;", "CALL.REL.NOINC `(.F) ;"]
        else:
            lines.append(part)
    return "\n".join([*lines, "EXIT ;", *function])


def _graph(*parts: str, function: list[str] = _FUNCTION) -> Cfg:
    (kernel,) = with_code(assembled(_code(*parts, function=function), 80), 80).kernels
    return kernel_cfg(kernel)


def _found(*parts: str, function: list[str] = _FUNCTION) -> NanBits:
    cfg = _graph(*parts, function=function)
    return nan_bits(cfg, liveness(cfg))


_KEPT = ("FADD R10, R4, R4 ;", "CALL", "STG.E [R2.64], R10 ;")
_OTHER = ("MOV R10, 0x1 ;", "CALL", "STG.E [R2.64+0x4], R10 ;")


def test_a_float_that_is_kept_over_a_call_is_repaired_where_it_is_read() -> None:
    cfg = _graph(*_KEPT)
    (store,) = (i for b in cfg.blocks for i in b.instructions if i.mnemonic == "STG")
    assert [(at, [r.index for r, _ in some]) for at, some in _found(*_KEPT).before.items()] == [
        (store.offset, [10])
    ]


def test_what_another_call_keeps_does_not_come_back() -> None:
    """R10 is an integer at the second call, whatever it is at the first."""
    cfg = _graph("FADD R10, R4, R4 ;", "CALL", "FADD R8, R8, R10 ;", *_OTHER)
    first, second = sorted(Calls(cfg).sites)
    facts = facts_before(cfg, liveness(cfg))
    ref = RegRef("R", 10)
    assert facts[first][ref] & Nan.SINGLE
    assert ref not in facts[second]


def test_what_a_function_writes_comes_back_to_all() -> None:
    stored = ("CALL", "STG.E [R2.64], R8 ;")
    found = _found(*stored, "CALL", "STG.E [R2.64+0x4], R8 ;")
    assert len(found.before) == 2 or found.after


def test_what_a_function_reads_goes_through_it() -> None:
    function = [".F:", "STG.E [R2.64+0x8], R10 ;", "RET.REL.NODEC R6 0x0 ;"]
    cfg = _graph(*_KEPT, function=function)
    (place,) = (b for b in cfg.blocks if b.function != cfg.functions[0])
    assert list(_found(*_KEPT, function=function).before) == [place.start]


def _named(cfg: Cfg) -> set[int]:
    """The general registers that go through functions."""
    sets = list(Calls(cfg).named.values())
    assert all(some == sets[0] for some in sets)
    return {n - R for some in sets for n in some if R <= n < R + 255}


def test_registers_beside_those_written_go_through_functions() -> None:
    """One of the two words of a double alone would go past."""
    assert _named(_graph(*_KEPT, *_OTHER)) == {4, 6, 7, 8, 9}


def test_what_a_called_function_calls_is_named_too() -> None:
    inner = [
        *(".F:", "MOV R20, 0x0 ;", "CALL.REL.NOINC `(.G) ;", "RET.REL.NODEC R6 0x0 ;"),
        *(".G:", "FADD R30, R30, R4 ;", "RET.REL.NODEC R20 0x0 ;"),
    ]
    text = _code(*_KEPT, function=inner)
    at = 16 * (sum(not line.endswith(":") for line in text.split(".F:")[0].splitlines()) + 2)
    text = text.replace("MOV R20, 0x0 ;", f"MOV R20, {at:#x} ;\nMOV R21, 0x0 ;", 1)
    text = text.replace(f"{at:#x} ;", f"{at + 16:#x} ;")
    (kernel,) = with_code(assembled(text, 80), 80).kernels
    cfg = kernel_cfg(kernel)
    calls = Calls(cfg)
    assert len(calls.sites) == 2
    outer = next(some for block, some in calls.named.items() if cfg.blocks[block].function == 0)
    assert {R + 20, R + 30} <= outer
    assert nan_bits(cfg, liveness(cfg)).before


def test_code_that_runs_without_a_call_too_has_all() -> None:
    """Its blocks are the kernel's: there is no function that calls could go past."""
    cfg = _graph("@P0 BRA `(.F) ;", *_KEPT)
    assert any(edge.kind == "call" for edge in cfg.edges)
    assert not Calls(cfg).named
    assert not Calls(cfg).sites
    flow = Flow(cfg, liveness(cfg), frozenset())
    for edge in cfg.edges:
        assert edge.kind != "back" or flow.along(edge, {R + 10: UNKNOWN}) == SAME


@pytest.mark.parametrize("first", ["ret", "back"])
def test_a_return_site_is_reached_by_both_halves(first: str) -> None:
    cfg = _graph(*_KEPT)
    flow = Flow(cfg, liveness(cfg), frozenset())
    edges = {edge.kind: edge for edge in cfg.edges if edge.kind in ("ret", "back")}
    after = edges["ret"].dst
    dirty, other = Value(int(BITS | Nan.SINGLE), 0, (0x40,)), Value(int(Nan.FREE16), 3)
    second = "back" if first == "ret" else "ret"
    state = {R + 10: dirty, R + 2: other}
    assert flow.along(edges[first], state) == SAME
    assert flow.reached()[after] == {}
    assert flow.along(edges[second], state) == FACTS
    assert flow.reached()[after] == state
    # A half says nothing of the other's registers.
    assert flow.along(edges["ret"], {}) == SAME
    assert flow.along(edges["back"], {}) == FACTS
    assert flow.reached()[after] == {R + 10: UNKNOWN.joined(dirty)}


@pytest.mark.parametrize(("half", "mine", "rest"), [("ret", 8, 10), ("back", 10, 8)])
def test_a_way_around_a_call_comes_after_one_half(half: str, mine: int, rest: int) -> None:
    """It brings the other half, and is joined with that one."""
    cfg = _graph("@P0 BRA `(.A) ;", "CALL", ".A:", "STG.E [R2.64+0x8], R8 ;", *_KEPT[2:])
    edges = {edge.kind: edge for edge in cfg.edges if edge.kind in ("ret", "back", "taken")}
    (after,) = {edge.dst for edge in edges.values()}
    flow = Flow(cfg, liveness(cfg), frozenset())
    dirty, other = Value(int(BITS | Nan.SINGLE), 0, (0x40,)), Value(int(Nan.FREE16), 3)
    assert flow.along(edges[half], {R + 8: dirty, R + 10: dirty}) == SAME
    assert flow.along(edges["taken"], {R + mine: other, R + rest: other}) == FACTS
    assert flow.reached()[after] == {R + mine: dirty.joined(other), R + rest: other}
    assert flow.along(edges[half], {R + mine: other, R + rest: UNKNOWN}) == SAME


def test_all_that_a_function_depends_on_goes_through_it() -> None:
    count = 0
    for path in sorted(KERNELS.glob("sm_[89]0/*.cubin")):
        for kernel in parse_cubin(path.read_bytes()).kernels:
            cfg = kernel_cfg(kernel)
            calls = Calls(cfg)
            entries = {e.dst: e.src for e in cfg.edges if e.kind == "call"}
            for entry, site in entries.items():
                named = calls.named.get(site)
                for block in cfg.blocks if named is not None else ():
                    if block.function == cfg.blocks[entry].function:
                        count += 1
                        assert named is not None
                        assert names(steps(block, frozenset())) <= named | {R - 1}
                        for ins in block.instructions:
                            assert named.issuperset(tracked(ins.reads | ins.writes))
    assert count > 20


def test_code_with_registers_that_go_past_calls_is_proved() -> None:
    """Also what is live at one call's return alone, where another has a float in it."""
    text = _code(*_KEPT, *_OTHER, "FADD R11, R4, R4 ;", "CALL", "FADD R8, R11, R8 ;", *_KEPT)
    cubin = with_code(assembled(text, 80), 80)
    done = translate_kernel(cubin, cubin.kernels[0].name)
    verdicts = [verify(found.block) for found in blocks(done)]
    assert len(verdicts) == len(done.cfg.blocks)
    assert all(isinstance(verdict, Proved) for verdict in verdicts)
    calls = Calls(done.cfg)
    past = [e for e in done.cfg.edges if e.kind == "back"]
    assert past
    assert all(calls.carries(e, bit_number(RegRef("R", 10))) for e in past)


def test_a_call_that_may_bring_another_place_back() -> None:
    """Both calls come back after the second one, with a float or an integer in R10."""
    text = _code("FADD R10, R4, R4 ;", "@P0 BRA `(.B) ;", "CALL", "EXIT ;", ".B:", *_OTHER)
    first, second = (f"MOV R6, {at:#x} ;" for at in (0x90, 0xE0))
    assert text.count(first) == text.count(second) == 1
    # The first address is a constant of the code still: its call is one.
    moved = text.replace(first, second).replace("MOV R8, R4 ;", "MOV R8, 0x90 ;")
    (kernel,) = with_code(assembled(moved, 80), 80).kernels
    cfg = kernel_cfg(kernel)
    assert sum(edge.kind == "call" for edge in cfg.edges) == 2
    assert not Calls(cfg).named
    store = cfg.blocks[cfg.by_start[0xE0]].instructions[0].offset
    assert [at for at, _ in nan_bits(cfg, liveness(cfg)).before.items()] == [store]
    for line in (first, f"@P0 {first}", f"{first}\nMOV R6, R5 ;"):
        (kernel,) = with_code(assembled(text.replace(first, line, 1), 80), 80).kernels
        assert bool(Calls(kernel_cfg(kernel)).named) == (line == first)


def _same(seed: int) -> None:
    prepared = generated_calls.of_seed(seed, (80, 90)[seed & 1])
    wanted = prepared.interpreted()
    assert np.flatnonzero(wanted != prepared.translated()).tolist() == []


@pytest.mark.parametrize("seed", [4, 21, 47])
def test_random_kernels_with_calls(seed: int) -> None:
    _same(seed)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 300))
def test_more_random_kernels_with_calls(seed: int) -> None:
    try:
        _same(seed)
    except SassxlateError as error:
        if error.code != "SX0214":  # some return early to code that waits for all
            raise
        pytest.skip("lanes wait for others that never come")
