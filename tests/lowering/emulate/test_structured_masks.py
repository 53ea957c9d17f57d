"""VGPRs and scalars in branches and loops as compilers write them, against an interpreter by lanes:
EXEC saved, narrowed and restored; arms that are skipped where no lane is active; waves that begin
with some of their lanes."""

from __future__ import annotations

import random
import re
import struct
from dataclasses import dataclass, field

import pytest

from sassxlate.cfg.rdna3_flow import Flow, discover
from sassxlate.disasm.rdna3.codec.assemble import Label, assemble
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, LabelRef, S, Sp, V
from sassxlate.lowering.emulate import counts
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.wave.masks.every_lane import every_lane
from sassxlate.lowering.emulate.wave.masks.short_arms import LONGEST, arms, heads
from sassxlate.lowering.emulate.wave.wave import build

from .baseline import ISAS

_EXEC, _VCC, _FULL = Sp("exec_lo"), Sp("vcc_lo"), 0xFFFFFFFF
_VECTORS, _SCALARS = range(1, 6), range(12, 16)  # v0 is the lane's number
_ROWS = range(9, 12)  # of 32 dwords in memory, after the registers' at the end
_Items = list[Inst | Label]


@dataclass
class _Writer:
    """Code of random shape: ``s20`` and up keep masks."""

    rng: random.Random
    items: _Items = field(default_factory=list[Inst | Label])
    labels: int = 0
    masks: int = 20

    def _vector(self) -> V:
        return V(self.rng.choice(_VECTORS))

    def _new(self) -> tuple[str, S]:
        self.labels, self.masks = self.labels + 1, self.masks + 1
        return f"on{self.labels}", S(self.masks)

    def straight(self) -> None:
        rng, a, b, c = self.rng, self._vector(), self._vector(), self._vector()
        s, row = S(rng.choice(_SCALARS)), 128 * rng.choice(_ROWS)
        self.items.append(
            rng.choice(
                (
                    Inst("global_store_b32", (V(8), a, S(4, 2)), row),
                    Inst("global_load_b32", (a, V(8), S(4, 2)), row),
                    Inst("v_mov_b32", (a, I(rng.randrange(64)))),
                    Inst("v_mov_b32", (a, s)),
                    Inst("v_add_nc_u32", (a, b, c)),
                    Inst("v_lshl_add_u32", (a, b, I(1), V(0))),
                    Inst("s_add_u32", (s, s, I(rng.randrange(9)))),
                    Inst("v_cmp_gt_u32", (s, I(rng.randrange(1 << 9)), a)),
                    Inst("s_mov_b32", (s, _EXEC)),
                    Inst("s_addc_u32", (s, s, I(rng.randrange(3)))),
                    Inst("v_cndmask_b32", (a, b, c, s)),
                )
            )
        )

    def block(self, depth: int) -> None:
        for _ in range(self.rng.randrange(1, 5)):
            kind = self.rng.randrange(8) if depth else 0
            if kind < 4:
                self.straight()
            elif kind < 7:
                self.branch(depth - 1, jumps=kind < 6)
            else:
                self.loop(depth - 1)

    def branch(self, depth: int, *, jumps: bool = True) -> None:
        label, mask = self._new()
        self.items += [
            Inst("v_cmp_gt_u32", (_VCC, I(self.rng.choice((0, 5, 40, 1 << 9))), self._vector())),
            Inst("s_and_saveexec_b32", (mask, _VCC)),
        ]
        if jumps:
            self.items.append(Inst("s_cbranch_execz", (LabelRef(label),)))
        self.block(depth)
        self.items.append(Label(label))
        if self.rng.random() < 0.5:  # whose carry is that of either way
            self.items.append(Inst("s_addc_u32", (S(13), S(13), I(0))))
        self.items.append(Inst("s_or_b32", (_EXEC, _EXEC, mask)))

    def loop(self, depth: int) -> None:
        """Lanes leave it one by one, or all at its first end."""
        label, done = self._new()
        left = S(self.masks + 20)
        self.items += [Inst("s_mov_b32", (done, I(0))), Inst("s_mov_b32", (left, I(0)))]
        self.items.append(Label(label))
        self.block(depth)
        self.items += [
            Inst("s_add_u32", (left, left, I(self.rng.choice((7, 40))))),
            Inst("v_cmp_gt_u32", (_VCC, left, V(0))),
            Inst("s_or_b32", (done, _VCC, done)),
            Inst("s_and_not1_b32", (_EXEC, _EXEC, done)),
            Inst("s_cbranch_execnz", (LabelRef(label),)),
            Inst("s_or_b32", (_EXEC, _EXEC, done)),
        ]


class _Model:
    """Executes the items of `_Writer` lane by lane."""

    def __init__(self, items: _Items, lanes: int) -> None:
        self.items = items
        self.v = {n: [0] * 32 for n in (0, *_VECTORS)}
        self.v[0] = list(range(32))
        self.s: dict[Arg, int] = {_EXEC: (1 << lanes) - 1, _VCC: 0}
        self.scc = 0
        self.rows = {128 * n: [0] * 32 for n in _ROWS}
        self.places = {item.name: at for at, item in enumerate(items) if isinstance(item, Label)}

    def _of(self, arg: Arg, lane: int = 0) -> int:
        if isinstance(arg, V):
            return self.v[arg.index][lane]
        return arg.value & _FULL if isinstance(arg, I) else self.s.get(arg, 0)

    def run(self) -> None:
        at = 0
        while at < len(self.items):
            item = self.items[at]
            at += 1
            if isinstance(item, Inst) and self._one(item):
                (target,) = item.args
                assert isinstance(target, LabelRef)
                at = self.places[target.name]

    def _one(self, inst: Inst) -> bool:
        """Executes it; whether it branches."""
        op, args, exec_ = inst.op, inst.args, self.s[_EXEC]
        if op == "s_cbranch_vccz":
            return self.s[_VCC] == 0
        if op.startswith("s_cbranch"):
            return (exec_ == 0) == (op == "s_cbranch_execz")
        if op.startswith("global_"):
            self._memory(inst, [lane for lane in range(32) if exec_ >> lane & 1])
            return False
        if op.startswith("v_"):
            self._vector(op, args, [lane for lane in range(32) if exec_ >> lane & 1])
            return False
        a, b = self._of(args[1]), self._of(args[-1])
        if op == "s_and_saveexec_b32":
            self.s[args[0]], self.s[_EXEC] = exec_, exec_ & a
            self.scc = int(self.s[_EXEC] != 0)
            return False
        if op == "s_mov_b32":
            self.s[args[0]] = a
            return False
        if op.startswith("s_add"):
            whole = a + b + (self.scc if op == "s_addc_u32" else 0)
            self.scc = whole >> 32
        else:
            whole = {"s_or_b32": a | b, "s_and_b32": a & b, "s_and_not1_b32": a & ~b}[op]
            self.scc = int(whole != 0)
        self.s[args[0]] = whole & _FULL
        return False

    def _memory(self, inst: Inst, lanes: list[int]) -> None:
        row = self.rows[inst.imm]
        value = inst.args[0 if inst.op == "global_load_b32" else 1]
        assert isinstance(value, V)
        of = self.v[value.index]
        for lane in lanes:
            if inst.op == "global_load_b32":
                of[lane] = row[lane]
            else:
                row[lane] = of[lane]

    def _vector(self, op: str, args: tuple[Arg, ...], lanes: list[int]) -> None:
        if op == "v_cmp_gt_u32":
            hit = [lane for lane in lanes if self._of(args[1], lane) > self._of(args[2], lane)]
            self.s[args[0]] = sum(1 << lane for lane in hit)
            return
        into = args[0]
        assert isinstance(into, V)
        new = {lane: _value(op, [self._of(arg, lane) for arg in args[1:]], lane) for lane in lanes}
        for lane, value in new.items():
            self.v[into.index][lane] = value & _FULL


def _value(op: str, of: list[int], lane: int) -> int:
    match op:
        case "v_mov_b32":
            return of[0]
        case "v_cndmask_b32":
            return of[1] if of[2] >> lane & 1 else of[0]
        case "v_add_nc_u32":
            return of[0] + of[1]
        case _:  # v_lshl_add_u32
            return (of[0] << of[1]) + of[2]


def _program(body: _Items) -> bytes:
    end: _Items = []
    for n, register in enumerate(_VECTORS):
        end.append(Inst("global_store_b32", (V(8), V(register), S(4, 2)), 128 * n))
    for n, register in enumerate(_SCALARS, len(_VECTORS)):
        end.append(Inst("v_mov_b32", (V(9), S(register))))
        end.append(Inst("global_store_b32", (V(8), V(9), S(4, 2)), 128 * n))
    return assemble(
        [
            Inst("s_load_b64", (S(4, 2), S(0, 2)), 0),
            Inst("v_lshlrev_b32", (V(8), I(2), V(0))),
            *(Inst("v_mov_b32", (V(n), I(0))) for n in _VECTORS),
            *(Inst("s_mov_b32", (S(n), I(0))) for n in _SCALARS),
            Inst("s_waitcnt", (), 0),
            *body,
            *end,
            Inst("s_endpgm"),
        ]
    ).data


def _runs(items: _Items, lanes: int, isa: Isa) -> Flow:
    """Compares what registers have at the end.  Returns the blocks."""
    model = _Model(items, lanes)
    model.run()
    code = _program(items)
    device = EmulatedDevice(1 << 16)
    assert len(_VECTORS) + len(_SCALARS) == _ROWS.start
    size = 128 * _ROWS.stop
    out = device.alloc(size)
    loaded = LoadedImage(compile_kernel(code, 0, CompileOptions(isa=isa)))
    run_image(loaded, Setup(), 1, lanes, struct.pack("<Q", out), device)
    found = struct.unpack(f"<{size // 4}I", device.read(out, size))
    rows = [found[32 * n : 32 * n + lanes] for n in range(_ROWS.start)]
    wanted = [model.v[n][:lanes] for n in _VECTORS]
    wanted += [[model.s.get(S(n), 0)] * lanes for n in _SCALARS]
    assert [list(row) for row in rows] == wanted, items
    memory = {128 * n: list(found[32 * n : 32 * n + 32]) for n in _ROWS}
    assert memory == model.rows, items
    return discover(code, 0)


_PROGRAMS = 4


@pytest.mark.parametrize("isa", ISAS)
def test_as_lane_by_lane(isa: Isa) -> None:
    rng = random.Random(f"structured masks {isa}")
    joined = whole = 0
    for _ in range(_PROGRAMS):
        writer = _Writer(rng)
        # All flags are those of the first addition until then.
        writer.items.append(Inst("s_add_u32", (S(12), S(12), I(0))))
        for _ in range(4):
            writer.block(3)
            writer.branch(1)
        flow = _runs(writer.items, rng.choice((32, 32, 19)), isa)
        joined += len(arms(flow))
        whole += len(every_lane(flow).at)
    assert joined > 3 * _PROGRAMS
    assert whole > 8 * _PROGRAMS


def test_a_loop_keeps_the_mask_that_a_wave_begins_with() -> None:
    """It is made at the start, not where the loop stores."""
    items: _Items = [
        Label("again"),
        Inst("v_add_nc_u32", (V(1), V(1), V(0))),
        Inst("global_store_b32", (V(8), V(1), S(4, 2)), 128 * _ROWS[0]),
        Inst("s_add_u32", (S(13), S(13), I(1))),
        Inst("s_cmp_lg_u32", (S(13), I(5))),
        Inst("s_cbranch_scc1", (LabelRef("again"),)),
    ]
    module, _ = build(discover(_program(items), 0), CompileOptions(), "avx512", "nounwind")
    text = module.text()
    start, body = text.split("define void @wave")[1].split("br label %b", 1)
    mask = re.compile(r"bitcast i32 \S+ to <32 x i1>")
    assert len(mask.findall(start)) == 1
    assert not mask.findall(body)


def _mov(register: int, value: int) -> Inst:
    return Inst("v_mov_b32", (V(register), I(value)))


@pytest.mark.parametrize("limit", [0, 9])
def test_an_arm_that_makes_lanes_active(limit: int) -> None:
    """Where it is skipped, they are not."""
    items: _Items = [
        _mov(1, 3),
        Inst("s_mov_b32", (S(20), _EXEC)),
        Inst("v_cmp_gt_u32", (_VCC, I(limit), V(0))),
        Inst("s_and_saveexec_b32", (S(21), _VCC)),
        Inst("s_cbranch_execz", (LabelRef("on"),)),
        Inst("s_mov_b32", (_EXEC, S(20))),
        _mov(1, 7),
        Inst("v_cmp_gt_u32", (_VCC, I(5), V(0))),
        Inst("s_and_b32", (_EXEC, _EXEC, _VCC)),
        _mov(2, 8),
        Label("on"),
        _mov(3, 9),
        Inst("s_or_b32", (_EXEC, _EXEC, S(20))),
    ]
    assert arms(_runs(items, 32, "avx2"))


@pytest.mark.parametrize("limit", [0, 9])
def test_what_a_skipped_arm_leaves_to_scalars(limit: int) -> None:
    """The carry, and a mask of lanes."""
    items: _Items = [
        Inst("s_mov_b32", (S(14), I(0xF0))),
        _mov(2, 7),
        Inst("v_cmp_gt_u32", (_VCC, I(limit), V(0))),
        Inst("s_and_saveexec_b32", (S(21), _VCC)),
        Inst("s_cbranch_execz", (LabelRef("on"),)),
        Inst("v_cmp_gt_u32", (S(14), I(5), V(0))),
        Inst("s_add_u32", (S(13), I(-1), I(1 if limit == 0 else 0))),
        Label("on"),
        Inst("s_addc_u32", (S(12), S(12), I(0))),
        Inst("s_or_b32", (_EXEC, _EXEC, S(21))),
        Inst("v_cndmask_b32", (V(1), V(0), V(2), S(14))),
    ]
    assert arms(_runs(items, 32, ISAS[-1]))


def test_masks_that_overlap() -> None:
    """Lanes of the first that are not in the second keep what they got."""
    items: _Items = [Inst("s_mov_b32", (S(20), _EXEC))]
    for value, (low, high) in enumerate(((0, 20), (8, 32), (10, 14)), 5):
        items += [
            Inst("v_cmp_gt_u32", (_VCC, I(high), V(0))),
            Inst("s_and_b32", (_EXEC, _EXEC, _VCC)),
            Inst("v_cmp_gt_u32", (_VCC, V(0), V(4))),
            Inst("s_and_b32", (_EXEC, _EXEC, _VCC)),
            _mov(1, value),
            Inst("s_mov_b32", (_EXEC, S(20))),
            _mov(4, low + 8),
        ]
    _runs(items, 32, ISAS[-1])


def test_an_arm_that_ends_lanes() -> None:
    """All lanes are active before it."""
    items: _Items = [
        Inst("s_mov_b32", (S(20), _EXEC)),
        Inst("v_cmp_gt_u32", (_VCC, I(9), V(0))),
        Inst("s_cbranch_vccz", (LabelRef("on"),)),
        Inst("s_cbranch_execz", (LabelRef("on"),)),
        Inst("s_and_b32", (_EXEC, _EXEC, _VCC)),
        _mov(2, 8),
        Label("on"),
        Inst("s_mov_b32", (_EXEC, S(20))),
    ]
    ((_, arm),) = arms(_runs(items, 32, "avx2")).items()
    assert not arm.alone


def _arm(body: _Items) -> bytes:
    return assemble(
        [
            Inst("v_cmp_gt_u32", (_VCC, I(16), V(0))),
            Inst("s_and_saveexec_b32", (S(20), _VCC)),
            Inst("s_cbranch_execz", (LabelRef("on"),)),
            *body,
            Label("on"),
            Inst("s_or_b32", (_EXEC, _EXEC, S(20))),
            Inst("s_endpgm"),
        ]
    ).data


_ADD = Inst("v_add_nc_u32", (V(1), V(1), V(0)))


@pytest.mark.parametrize(
    "body",
    [
        [Inst("v_writelane_b32", (V(1), S(4), I(3)))],  # it writes a lane that is not active
        [Inst("global_load_b32", (V(1), V(0), S(4, 2)))],
        [Inst("v_mov_b32", (V(1), V(0)), dpp="row_shr:1 row_mask:0xf bank_mask:0xf")],
        [Inst("s_setreg_imm32_b32", (I(5),), 0x801)],
        [Inst("s_barrier")],
        [_ADD] * (LONGEST + 1),
    ],
)
def test_what_is_skipped_by_a_branch(body: _Items) -> None:
    assert not arms(discover(_arm(body), 0))
    assert arms(discover(_arm([_ADD, *([_ADD] if LONGEST > 1 else [])]), 0))


def test_an_arm_is_a_part_of_its_block() -> None:
    flow = discover(_arm([_ADD]), 0)
    ((start, arm),) = arms(flow).items()
    assert (start, arm.alone, len(arm.steps)) == (0, True, 1)
    assert heads({start: arm}) == {arm.block: 0, arm.next: 0}


def test_counts_of_a_skipped_arm() -> None:
    """The second wave of each workgroup has no lane below 16 in it."""
    code = _arm([_ADD, _ADD])
    flow = counts.flow_of(code, 0)
    numbers = counts.counters(flow)
    loaded = LoadedImage(compile_kernel(code, 0, CompileOptions(counts=True)))
    run_image(loaded, Setup(), 3, 64, b"", EmulatedDevice(), counts=numbers)
    assert list(numbers) == [6, 3, 6]


@pytest.mark.parametrize(
    ("items", "known"),
    [
        ([Inst("s_mov_b32", (_EXEC, S(3)))], False),
        ([Inst("s_mov_b32", (_EXEC, I(-1)))], False),  # lanes that a wave began without
        ([Inst("s_or_saveexec_b32", (S(3), I(-1)))], False),
        ([Inst("s_mov_b32", (S(3), _EXEC)), Inst("s_mov_b32", (_EXEC, S(3)))], True),
        (
            [
                Inst("s_and_saveexec_b32", (S(3), S(9))),
                Inst("s_xor_b32", (S(3), _EXEC, S(3))),
                Inst("s_or_b32", (_EXEC, _EXEC, S(3))),
            ],
            False,
        ),
    ],
)
def test_where_all_lanes_are_active(items: _Items, known: bool) -> None:
    """The last case would need to be told that two parts make the whole."""
    flow = discover(assemble([*items, _ADD, Inst("s_endpgm")]).data, 0)
    last = max(step.pc for block in flow.blocks.values() for step in block.steps)
    assert (last in every_lane(flow).at) == known
