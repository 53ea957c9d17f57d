"""Random kernels with branches by workgroup and by lane, loops, barriers and LDS."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass

from sassxlate.disasm.rdna3.codec.assemble import Item, Label, assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, Sp, V
from sassxlate.lowering.emulate.runner import (
    BaselineKernel,
    EmulatedDevice,
    LoadedImage,
    Setup,
    run_image,
)

GROUPS, THREADS, WORDS = 4, 50, 256
_EXEC, _VCC, _WAIT = Sp("exec_lo"), Sp("vcc_lo"), Inst("s_waitcnt", (), 0)
_VGPRS, _SGPRS, _S0 = 12, 12, 16  # that the code computes with, from v1 and s16 on
_ROW = 4 * (_VGPRS + _SGPRS + 1)  # bytes per lane, stored at the end
_OUT = 4 * WORDS
SIZE = _OUT + GROUPS * 64 * _ROW


@dataclass(slots=True)
class _Writer:
    rng: random.Random
    items: list[Item]
    labels: int = 0
    barriers: bool = True

    def add(self, op: str, *args: V | S | I | Sp | LabelRef) -> None:
        self.items.append(Inst(op, args))

    def label(self) -> str:
        self.labels += 1
        return f"l{self.labels}"

    def v(self) -> V:
        return V(self.rng.randrange(1, _VGPRS + 1))

    def s(self) -> S:
        return S(self.rng.randrange(_S0, _S0 + _SGPRS))

    def step(self) -> None:
        v, s, r = self.v, self.s, self.rng
        simple: tuple[Callable[[], Inst], ...] = (
            lambda: Inst("v_add_nc_u32", (v(), v(), v())),
            lambda: Inst("v_add_nc_u32", (v(), v(), v())),
            lambda: Inst("v_xor_b32", (v(), v(), s())),
            lambda: Inst("v_lshl_add_u32", (v(), v(), I(3), v())),
            lambda: Inst("v_mov_b32", (v(), I(r.randrange(64)))),
            lambda: Inst("v_cmp_gt_u32", (_VCC, v(), v())),
            lambda: Inst("v_cndmask_b32", (v(), v(), v(), _VCC)),
            lambda: Inst("v_readfirstlane_b32", (s(), v())),
            lambda: Inst("v_readlane_b32", (s(), v(), I(r.randrange(32)))),
            lambda: Inst("v_writelane_b32", (v(), s(), I(r.randrange(32)))),
            lambda: Inst("v_add_co_ci_u32", (v(), _VCC, v(), v(), _VCC)),
            lambda: Inst("s_add_u32", (s(), s(), s())),
            lambda: Inst("s_addc_u32", (s(), s(), s())),
            lambda: Inst("s_cmp_lt_u32", (s(), s())),
            lambda: Inst("s_cselect_b32", (s(), s(), s())),
        )
        kind = r.randrange(len(simple) + 2)
        if kind < len(simple):
            self.items.append(simple[kind]())
            return
        self.add("v_and_b32", V(14), I(0xFC), v())
        if kind == len(simple):
            self.add("ds_store_b32", V(14), v())
            self.items.append(_WAIT)
            self.add("ds_load_b32", v(), V(14))
        else:
            self.add("global_load_b32", v(), V(14), S(2, 2))
        self.items.append(_WAIT)

    def code(self, depth: int, length: int) -> None:
        while length > 0:
            part, kind = self.rng.randrange(4, 24), self.rng.randrange(8)
            if depth < 5 and kind < 3:
                self.by_group(depth, part)
            elif depth < 5 and kind == 3:
                self.by_lane(depth, part)
            elif depth < 3 and kind == 4:
                self.loop(depth, part)
            elif kind == 5 and self.barriers:
                self.add("s_barrier")
            else:
                for _ in range(part):
                    self.step()
            length -= part

    def by_group(self, depth: int, length: int) -> None:
        skip, end = self.label(), self.label()
        self.add("s_bitcmp1_b32", S(8), I(self.rng.randrange(32)))
        self.add(self.rng.choice(["s_cbranch_scc0", "s_cbranch_scc1"]), LabelRef(skip))
        self.code(depth + 1, length)
        if self.rng.random() < 0.5:
            self.add("s_branch", LabelRef(end))
            self.items.append(Label(skip))
            self.code(depth + 1, length)
        else:
            self.items.append(Label(skip))
        self.items.append(Label(end))

    def by_lane(self, depth: int, length: int) -> None:
        kept, skip, barriers = S(40 + depth), self.label(), self.barriers
        self.add("v_cmp_gt_u32", _VCC, self.v(), self.v())
        self.add("s_and_saveexec_b32", kept, _VCC)
        if self.rng.random() < 0.7:
            self.add("s_cbranch_execz", LabelRef(skip))
        self.barriers = False
        self.code(depth + 1, length)
        self.barriers = barriers
        self.items.append(Label(skip))
        self.add("s_or_b32", _EXEC, _EXEC, kept)

    def loop(self, depth: int, length: int) -> None:
        top, turns = self.label(), S(50 + depth)
        self.add("s_mov_b32", turns, I(self.rng.randrange(1, 4)))
        self.items.append(Label(top))
        self.code(depth + 1, length)
        self.add("s_sub_u32", turns, turns, I(1))
        self.add("s_cmp_lg_u32", turns, I(0))
        self.add("s_cbranch_scc1", LabelRef(top))


def kernel(rng: random.Random, least: int, never: int = 0) -> bytes:
    """Code of at least so many items, and as many as ``never`` in a block at the end that no wave
    enters.  Its argument is the address of WORDS words; each workgroup
    branches by its own, and each lane stores all registers after them."""
    w = _Writer(rng, [])
    w.add("s_load_b64", S(2, 2), S(0, 2))
    w.add("s_lshl_b32", S(5), S(4), I(2))
    w.items.append(_WAIT)
    w.add("s_load_b32", S(8), S(2, 2), S(5))
    w.items.append(_WAIT)
    w.add("v_mov_b32", V(15), V(0))
    for i in range(1, _VGPRS + 1):
        w.add("v_mad_u32_u24", V(i), V(0), I(7919 * i), I(i))
    for i in range(_SGPRS):
        w.add("s_xor_b32", S(_S0 + i), S(8), I(0x1234567 * i & 0xFFFFFFFF))
    while len(w.items) < least:
        w.code(0, 60)
    w.add("s_cmp_lg_u32", S(4), S(4))
    w.add("s_cbranch_scc1", LabelRef("never"))
    w.add("s_lshl_b32", S(6), S(4), I(6))
    w.add("v_add_nc_u32", V(15), V(15), S(6))
    w.add("v_mul_u32_u24", V(15), V(15), I(_ROW))
    for i in range(1, _VGPRS + 1):
        w.items.append(Inst("global_store_b32", (V(15), V(i), S(2, 2)), _OUT + 4 * i))
    for i, arg in enumerate([_VCC, *(S(_S0 + i) for i in range(_SGPRS))]):
        w.add("v_mov_b32", V(14), arg)
        at = _OUT + 4 * (_VGPRS + i if i else 0)
        w.items.append(Inst("global_store_b32", (V(15), V(14), S(2, 2)), at))
    w.add("s_endpgm")
    w.items.append(Label("never"))
    for _ in range(never):
        w.add("v_add_nc_u32", w.v(), w.v(), w.v())
    w.add("s_endpgm")
    return assemble(w.items).data


def result(
    loaded: LoadedImage | BaselineKernel,
    words: list[int],
    *,
    groups: int = GROUPS,
    counts: object = None,
    rest: BaselineKernel | None = None,
) -> tuple[bytes, int]:
    """The memory after a launch, and the number of waves that are stuck."""
    device = EmulatedDevice(1 << 20)
    at = device.alloc(SIZE)
    device.write(at, struct.pack(f"<{WORDS}I", *words))
    setup = Setup(wg_sgpr=(4, None, None), lds_size=1024)
    argument = at.to_bytes(8, "little")
    stuck = run_image(
        loaded, setup, groups, THREADS, argument, device, fuel=5, counts=counts, rest=rest
    )
    return device.read(at, SIZE), stuck
