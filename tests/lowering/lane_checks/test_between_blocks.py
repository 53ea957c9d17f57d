"""Code between blocks, followed for each lane: it runs, waits at one point, or has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.errors import LoweringError
from sassxlate.lowering.abi.kernarg import bank_layout
from sassxlate.lowering.builder.kernel_builder import KernelBuilder
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.convergence.plan import ConvergencePlan, ResumePoint
from sassxlate.lowering.lane_checks import between_blocks
from sassxlate.lowering.lane_checks.between_blocks import misplaced
from sassxlate.lowering.pipeline import select_kernel
from sassxlate.lowering.regalloc.register_map import LaneSlot, RegisterMap
from sassxlate.lowering.verify.rules.one_instruction import registers

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
EXEC, ZERO = Sp("exec_lo"), I(0)
INS = decode(assemble("IADD3 R8, R4, R4, RZ ;", 90, 0), 0, 90)
HEAD, SYNC = S(50), S(51)  # the masks of the points 0x100 and 0x201
REGS: RegisterMap = replace(registers(INS, "together"), ready={0x100: HEAD, 0x201: SYNC})
POINTS = (ResumePoint(0x100, 1), ResumePoint(0x201, 2, "bsync"))
LIVE, P0, TAKEN, OLD = REGS.live, S(88), S(4), S(5)
TO_HEAD = Inst("s_branch", (LabelRef("L_0100"),))
WAIT = [Inst("s_or_b32", (SYNC, SYNC, EXEC)), Inst("s_mov_b32", (EXEC, ZERO))]
DEPART: list[Item] = [
    Inst("s_and_b32", (TAKEN, EXEC, P0)),
    Inst("s_or_b32", (HEAD, HEAD, TAKEN)),
    Inst("s_and_not1_b32", (EXEC, EXEC, TAKEN)),
    Inst("s_cbranch_execz", (LabelRef("Lsync_0200"),)),
]
EXIT: list[Item] = [
    Inst("s_and_not1_b32", (LIVE, LIVE, EXEC)),
    Inst("s_cbranch_scc0", (LabelRef("Lend"),)),
    Inst("s_mov_b32", (EXEC, ZERO)),
    Inst("s_branch", (LabelRef("Lsync_0200"),)),
]
PASS: list[Item] = [
    *WAIT,
    Label("Lsync_0200"),
    Inst("s_cmp_eq_u32", (SYNC, ZERO)),
    Inst("s_cbranch_scc1", (LabelRef("Lscan"),)),
    Inst("s_mov_b32", (EXEC, SYNC)),
    Inst("s_mov_b32", (SYNC, ZERO)),
]


def _texts(items: Sequence[Item], *, ends: bool = False) -> set[str]:
    return {f.text for f in misplaced(items, REGS, POINTS, ends=ends)}


def _without(items: Sequence[Item], number: int) -> list[Item]:
    return [*items[:number], *items[number + 1 :]]


@pytest.mark.parametrize("items", [DEPART, PASS, [TO_HEAD]], ids=["branch", "bsync", "jump"])
def test_sound(items: list[Item]) -> None:
    assert _texts(items) == set()


def test_an_exit_ends_lanes_and_nothing_else_does() -> None:
    assert _texts(EXIT, ends=True) == set()
    assert _texts(EXIT) == {"ends a lane"}


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (_without(DEPART, 1), "loses a lane"),
        (_without(DEPART, 2), "has a lane in two places"),
        (_without(PASS, 0), "loses a lane"),
        (_without(PASS, 1), "has a lane in two places"),
        (_without(PASS, 6), "has a lane in two places"),
        ([Inst("s_mov_b32", (EXEC, I(0xFFFFFFFF)))], "ends a lane that runs or waits"),
        ([Inst("s_mov_b32", (LIVE, I(0xFFFFFFFF)))], "revives an ended lane"),
        (
            [Inst("s_branch", (LabelRef("Lsync_0200"),))],
            "goes on to the next point while a lane runs",
        ),
        ([Inst("s_branch", (LabelRef("Lend"),))], "ends the wave while a lane is alive"),
        (
            [Inst("s_or_b32", (HEAD, HEAD, SYNC)), Inst("s_mov_b32", (SYNC, ZERO))],
            "moves a lane to another point",
        ),
        (
            [Inst("v_cmp_eq_u32", (TAKEN, I(0), S(6))), Inst("s_mov_b32", (EXEC, TAKEN))],
            "loses a lane",
        ),
        ([Inst("s_mov_b32", (HEAD, S(6)))], "has a lane in two places"),
    ],
)  # fmt: skip
def test_wrong(items: list[Item], text: str) -> None:
    assert text in _texts(items)


def test_masks_in_lanes_of_vector_registers() -> None:
    regs = replace(REGS, ready={0x100: LaneSlot(60, 3), 0x201: SYNC})

    def moved(by: str) -> list[Item]:
        v = V(60)
        return [
            Inst("v_readlane_b32", (OLD, v, I(3))),
            Inst("s_or_b32", (OLD, OLD, EXEC)),
            Inst("v_writelane_b32", (v, OLD, I(3))),
            Inst("s_mov_b32", (EXEC, I(0) if by == "all" else EXEC)),
        ]

    assert misplaced(moved("all"), regs, POINTS) == ()
    found = {f.text for f in misplaced(moved("none"), regs, POINTS)}
    assert found == {"has a lane in two places"}


# --- kernels --------------------------------------------------------------------------------------


def _kernels(pattern: str) -> list[tuple[Path, str]]:
    files = sorted(FIXTURES.glob(pattern))
    return [(f, k.name) for f in files for k in parse_cubin(f.read_bytes()).kernels]


QUICK = ("spin_lock", "calls", "split_warp_sync", "function_pointers", "named_barriers")


@pytest.mark.parametrize("name", QUICK)
def test_kernels(name: str) -> None:
    for file, kernel in _kernels(f"kernels/sm_90/{name}.cubin"):
        select_kernel(parse_cubin(file.read_bytes()), kernel, placed=True)


# Recursion that saves its barriers: the code between two of its blocks has too many states.
UNKNOWN = {"calls5": "more states than can be checked"}


@pytest.mark.sweep
def test_all_kernels() -> None:
    unknown: dict[str, str] = {}
    for file, kernel in _kernels("**/*.cubin"):
        try:
            select_kernel(parse_cubin(file.read_bytes()), kernel, placed=True)
        except LoweringError as e:
            unknown[kernel] = e.message
    assert unknown.keys() == UNKNOWN.keys()
    assert all(unknown[name].endswith(text) for name, text in UNKNOWN.items()), unknown


def _pieces(
    file: Path, kernel: str
) -> list[tuple[list[Item], RegisterMap, ConvergencePlan, bool, str]]:
    """The code between the blocks of a kernel that moves lanes."""
    out: list[tuple[list[Item], RegisterMap, ConvergencePlan, bool, str]] = []

    def keep(
        c: RuleEmitter,
        items: Sequence[Item],
        plan: ConvergencePlan,
        *,
        ends: bool = False,
        following: str = "",
    ) -> None:
        if not plan.alone and between_blocks.moves(items, c.k.regs):
            out.append((list(items), c.k.regs, plan, ends, following))

    was: Callable[..., None] = between_blocks.check
    between_blocks.check = keep
    try:
        select_kernel(parse_cubin(file.read_bytes()), kernel, placed=True)
    finally:
        between_blocks.check = was
    return out


def _moves_lanes(item: Item, regs: RegisterMap, keys: set[int]) -> bool:
    """Whether an instruction writes EXEC, the live lanes or a point's mask."""
    if not isinstance(item, Inst) or not item.args:
        return False
    slots = [regs.ready[key] for key in keys if key in regs.ready]
    masks = [EXEC, regs.live, *(s for s in slots if isinstance(s, S))]
    if item.op == "v_writelane_b32":
        v, lane = item.args[0], item.args[2]
        return any(isinstance(s, LaneSlot) and (V(s.vgpr), I(s.lane)) == (v, lane) for s in slots)
    return item.args[0] in masks and not item.op.startswith("s_cmp")


MISSED = {"spin_lock": 0, "calls": 4, "split_warp_sync": 3}


@pytest.mark.parametrize("name", MISSED)
def test_left_out_moves_are_found(name: str) -> None:
    """Each instruction that moves lanes is removed in turn."""
    found, missed = 0, list[Item]()
    for file, kernel in _kernels(f"kernels/sm_90/{name}.cubin"):
        for items, regs, plan, ends, following in _pieces(file, kernel):
            assert misplaced(items, regs, plan.points, ends=ends, following=following) == ()
            for n, item in enumerate(items):
                if _moves_lanes(item, regs, {p.key for p in plan.points}):
                    left = _without(items, n)
                    if misplaced(left, regs, plan.points, ends=ends, following=following):
                        found += 1
                    else:
                        missed.append(item)
    # The misses let a group of lanes wait for ever, each in its place.
    assert len(missed) == MISSED[name]
    assert found >= 20


def test_what_loses_lanes_is_refused() -> None:
    file, kernel = _kernels("kernels/sm_90/spin_lock.cubin")[0]
    plan = replace(select_kernel(parse_cubin(file.read_bytes()), kernel).plan, points=POINTS)
    c = RuleEmitter(
        KernelBuilder("lost", 90, bank_layout(90), REGS, {}, frozenset()), INS, converged=False
    )
    between_blocks.check(c, DEPART, plan)
    with pytest.raises(LoweringError, match="loses a lane") as caught:
        between_blocks.check(c, _without(DEPART, 1), plan)
    assert caught.value.code == "SX0431"
