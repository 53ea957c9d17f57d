"""Memory instructions: each lane has its own 64 bytes, in global memory, LDS or scratch.

No two lanes meet at an address, so that the order of atomics does not matter.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, S, Sp, V
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

from .cases import LANES, Form, Vectors, seed
from .compare import Difference
from .described import description
from .machine import Wave, memory_name, step

SLOT = 64  # bytes per lane
_AT = 16  # where in its slot a lane's address points, before alignment varies it
Bytes = NDArray[np.uint8]


def is_memory(op: str) -> bool:
    return op.startswith(("global_", "flat_", "scratch_", "ds_")) and "permute" not in op


@dataclass(frozen=True, slots=True)
class Plan:
    """A memory form with registers.  ``at`` is each lane's place in its slot."""

    form: Form
    inst: Inst
    space: str  # g, l, s
    at: NDArray[np.int64]
    data: tuple[int, ...]  # VGPRs with data, from v30
    dst: tuple[int, ...]  # VGPRs written, from v50
    floats: bool
    slots: Bytes  # (vector, 64): the memory before


_DATA, _DST, _ADDRESS, _BASE = 30, 50, 20, 20


def _size(op: str) -> int:
    text = description(memory_name(op))
    if any(t in text for t in ("MEM[ADDR].u8", "MEM[ADDR].i8", "MEM[ADDR].b8")):
        return 1
    if any(t in text for t in ("MEM[ADDR].u16", "MEM[ADDR].i16", "MEM[ADDR].b16")):
        return 2
    if op.endswith("128"):
        return 16
    return 8 if op.endswith("64") else 4


def plan(form: Form, vectors: Vectors) -> Plan:
    """Registers, addresses and memory for a form."""
    op = form.op
    chance = seed(form.text)
    size = _size(op)
    n = vectors.shape[1]
    aligned = [_AT + chance.randrange(0, 16, min(size, 16)) for _ in range(n)]
    at = np.array(aligned, dtype=np.int64)
    space = "l" if op.startswith("ds_") else "s" if op.startswith("scratch_") else "g"
    returns = "_load_" in op or ("_rtn_" in op if space == "l" else dict(form.mods).get("glc"))
    imm = chance.choice(
        [0, 4, 8, 16] if space == "l" else [0, 16, 2048] if op[0] == "f" else [0, -16, 16, -2048]
    )
    if form.args[1 if returns else 0] == "off":
        imm = _AT  # no register has the address
        at = np.full(n, _AT, dtype=np.int64)
    args: list[Arg] = []
    data: list[int] = []
    dst: list[int] = []
    v = _DATA
    kinds = list(form.args)
    if returns:
        count = int(kinds.pop(0)[1:])
        dst = list(range(_DST, _DST + count))
        args.append(V(_DST, count))
    for i, kind in enumerate(kinds):
        if kind == "off":
            args.append(Sp("off"))
        elif kind[0] == "s":
            args.append(S(_BASE, 2))
        elif i == 0:
            args.append(V(_ADDRESS, int(kind[1:])))
        else:
            count = int(kind[1:])
            args.append(V(v, count))
            data += range(v, v + count)
            v += count
    mods = {k: bool(x) for k, x in form.mods if k == "glc"}
    inst = Inst(op, tuple(args), imm, **mods)  # type: ignore[arg-type]
    floats = "f32" in op or "f64" in op
    group = 1 if floats else 0
    words = vectors[group].reshape(-1)
    slots = np.resize(np.roll(words, chance.randrange(len(words))), n * SLOT // 4)
    memory = slots.astype("<u4").view(np.uint8).reshape(n, SLOT).copy()
    _some_equal(op, size, at, memory, vectors[group], len(data))
    return Plan(form, inst, space, at, tuple(data), tuple(dst), floats, memory)


def _some_equal(
    op: str, size: int, at: NDArray[np.int64], memory: Bytes, words: NDArray[np.uint32], count: int
) -> None:
    """Compare-and-swap finds its comparand in every second lane."""
    if "cmp" not in op:
        return
    half = count // 2
    for lane in range(0, len(at), 2):
        raw = words[lane, half : half + size // 4].astype("<u4").tobytes()
        memory[lane, at[lane] : at[lane] + size] = np.frombuffer(raw, dtype=np.uint8)


def _lane_address(p: Plan, vector: int) -> int:
    """The contents of the address register, without the part added for the whole wave."""
    lane = vector % LANES
    base = lane * SLOT if p.space == "l" else 0 if p.space == "s" else vector * SLOT
    return base + int(p.at[vector]) - p.inst.imm


def _program(plans: list[Plan]) -> list[Item]:
    """Six pointers a plan in the kernarg: addresses (low, high), region, EXEC, words, results."""
    items: list[Item] = [
        Inst("s_lshl_b32", (S(15), S(14), I(7))),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
        Inst("v_add_nc_u32", (V(1), S(15), V(1))),  # 4 * vector
        Inst("v_lshlrev_b32", (V(2), I(4), V(1))),  # SLOT * vector
        Inst("v_lshlrev_b32", (V(3), I(6), V(0))),  # SLOT * lane
        Inst("v_mov_b32", (V(4), I(0))),
        Inst("s_lshl_b32", (S(15), S(14), I(2))),
    ]

    def pointer(k: int, to: int = 2) -> Inst:
        return Inst("s_load_b64", (S(to, 2), S(0, 2), Sp("null")), 8 * k)

    following = (Inst("s_add_u32", (S(2), S(2), S(18))), Inst("s_addc_u32", (S(3), S(3), I(0))))
    column = 0
    for p in plans:
        low, high, region, execs, words, out = range(column, column + 6)
        column += 6
        for r, k in ((_ADDRESS, low), (_ADDRESS + 1, high)):
            items += [pointer(k), Inst("global_load_b32", (V(r), V(1), S(2, 2)))]
        items.append(pointer(words))
        for r in (*p.data, *p.dst):
            items += [Inst("global_load_b32", (V(r), V(1), S(2, 2))), *following]
        items += [pointer(region, _BASE)]
        for i in range(4 if p.space != "g" else 0):
            items.append(Inst("global_load_b128", (V(60, 4), V(2), S(_BASE, 2)), 16 * i))
            items.append(_own(p, "store", i))
        items += [
            pointer(execs),
            Inst("s_add_u32", (S(2), S(2), S(15))),
            Inst("s_addc_u32", (S(3), S(3), I(0))),
            Inst("s_load_b32", (S(6), S(2, 2), Sp("null"))),
            Inst("s_mov_b32", (Sp("exec_lo"), S(6))),
            p.inst,
            Inst("s_mov_b32", (Sp("exec_lo"), I(0xFFFFFFFF))),
            pointer(out),
        ]
        for r in p.dst:
            items += [Inst("global_store_b32", (V(1), V(r), S(2, 2))), *following]
        for i in range(4 if p.space != "g" else 0):
            items.append(_own(p, "load", i))
            items.append(Inst("global_store_b128", (V(2), V(60, 4), S(_BASE, 2)), 16 * i))
    # s18 is the size of a column: loaded first.
    first = [pointer(column, 18)]
    return [*first, *items, Inst("s_endpgm")]


def _own(p: Plan, what: str, i: int) -> Inst:
    """A quarter of a lane's slot between v60 and LDS or scratch."""
    if p.space == "l":
        args: tuple[Arg, ...] = (V(3), V(60, 4)) if what == "store" else (V(60, 4), V(3))
        return Inst(f"ds_{what}_b128", args, 16 * i)
    args = (V(4), V(60, 4), Sp("off")) if what == "store" else (V(60, 4), V(4), Sp("off"))
    return Inst(f"scratch_{what}_b128", args, 16 * i)


def run(
    plans: list[Plan], vectors: Vectors, execs: NDArray[np.uint32]
) -> list[tuple[list[Difference], list[Difference]]]:
    """The lanes of each plan whose registers or memory differ from the description's: as it
    stands, and as the manual's words complete it."""
    n = vectors.shape[1]
    program = assemble(_program(plans))
    options = CompileOptions(scratch=256)
    loaded = LoadedImage(compile_kernel(program.data, 0, options))
    device = EmulatedDevice(len(plans) * n * (SLOT + 100) * 2 + (1 << 20))
    pointers: list[int] = []
    regions: list[tuple[int, int]] = []
    for p in plans:
        region = device.alloc(p.slots.tobytes())
        absolute = region if p.space == "g" and S(_BASE, 2) not in p.inst.args else 0
        where = [_lane_address(p, k) + absolute & (1 << 64) - 1 for k in range(n)]
        columns = [
            struct.pack(f"<{n}I", *(a & 0xFFFFFFFF for a in where)),
            struct.pack(f"<{n}I", *(a >> 32 for a in where)),
        ]
        words = vectors[1 if p.floats else 0]
        extra = np.ascontiguousarray(words.T[: len(p.data) + len(p.dst)]).tobytes()
        out = device.alloc(n * 4 * max(1, len(p.dst)))
        pointers += [device.alloc(c) for c in columns]
        pointers += [region, device.alloc(execs.tobytes()), device.alloc(extra), out]
        regions.append((region, out))
    pointers.append(4 * n)
    kernarg = struct.pack(f"<{len(pointers)}Q", *pointers)
    setup = Setup(kernarg_sgpr=0, wg_sgpr=(14, None, None), lds_size=4096, scratch_size=256)
    run_image(loaded, setup, n // LANES, LANES, kernarg, device)
    found: list[tuple[list[Difference], list[Difference]]] = []
    for p, (region, out) in zip(plans, regions, strict=True):
        memory = np.frombuffer(device.read(region, n * SLOT), dtype=np.uint8).reshape(n, SLOT)
        raw = device.read(out, n * 4 * len(p.dst))
        got = np.frombuffer(raw, dtype=np.uint32).reshape(len(p.dst), n).T
        plain = _differences(p, vectors, execs, memory, got, read=False)
        rest = _differences(p, vectors, execs, memory, got, read=True) if plain else []
        found.append((plain, rest))
    return found


def _differences(
    p: Plan,
    vectors: Vectors,
    execs: NDArray[np.uint32],
    memory: Bytes,
    got: NDArray[np.uint32],
    *,
    read: bool,
) -> list[Difference]:
    words = vectors[1 if p.floats else 0]
    found: list[Difference] = []
    for w in range(vectors.shape[1] // LANES):
        lanes = range(w * LANES, (w + 1) * LANES)
        wave = Wave(exec=int(execs[w]), completed=read)
        wave.memory = wave.lds = bytearray(p.slots[lanes.start : lanes.stop].tobytes())
        wave.private = SLOT if p.space == "s" else 0
        if p.space == "g":
            wave.origin = lanes.start * SLOT
        where = [_lane_address(p, k) for k in lanes]
        wave.vgprs[_ADDRESS] = [a & 0xFFFFFFFF for a in where]
        wave.vgprs[_ADDRESS + 1] = [a >> 32 & 0xFFFFFFFF for a in where]
        wave.sgprs |= {_BASE: 0, _BASE + 1: 0}
        for i, r in enumerate((*p.data, *p.dst)):
            wave.vgprs[r] = words[lanes.start : lanes.stop, i].tolist()
        step(wave, p.inst)
        for lane, k in enumerate(lanes):
            theirs = bytes(wave.memory[lane * SLOT : (lane + 1) * SLOT])
            ours = memory[k].tobytes()
            a, b = (
                int.from_bytes(m, "little") | _joined(d) << 8 * SLOT
                for m, d in (
                    (ours, got[k].tolist() if p.dst else []),
                    (theirs, [wave.vgprs[r][lane] for r in p.dst]),
                )
            )
            if a != b and not (p.floats and _equal_floats(ours, theirs)):
                inputs = (int(p.at[k]), *(wave.vgprs[r][lane] for r in p.data))
                found.append(Difference(k, "memory", inputs, a, b))
    return found


def _equal_floats(ours: bytes, theirs: bytes) -> bool:
    a, b = (np.frombuffer(m, dtype="<f4") for m in (ours, theirs))
    return bool(((a == b) | (np.isnan(a) & np.isnan(b))).all())


def _joined(words: list[int]) -> int:
    return sum(n << 32 * i for i, n in enumerate(words))
