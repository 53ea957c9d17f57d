"""Runs single instructions on lanes of chosen inputs, through the whole emulator."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sassxlate.cfg.rdna3_flow import DecodedStep, Flow, MachineBlock
from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.semantics import Semantics
from sassxlate.lowering.emulate.compiler import compile_flow
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import (
    BaselineKernel,
    EmulatedDevice,
    LoadedImage,
    Setup,
    run_image,
)

from .baseline import baseline

LANES = 32
WIDTH = {
    **{"b16": 16, "f16": 16, "b32": 32, "f32": 32, "b64": 64, "f64": 64, "m": 1, "raw": 32},
    **{"p16": 32, "pf16": 32, "pair": 32, "mix": 32, "f16lo": 16, "f16hi": 16},
}

_EDGES = {
    "b": [0, 1, 2, -1, -2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 31, 32, 33, 63, 64],
    16: [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0x3C00,
         0xBC00, 0x3C01, 0x3BFF, 0x3800, 0x6400, 0x77FF],
    32: [0, 1 << 31, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF,
         0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0x3F800000, 0xBF800000, 0x3F800001,
         0x3F7FFFFF, 0x3F000000, 0x4B000001, 0x4F000000, 0xCF000000, 0x4F800000, 0x33000000],
    64: [0, 1 << 63, 1, (1 << 52) - 1, 1 << 52, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF,
         0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000001, 0x7FF8000000000000,
         0x3FF0000000000000, 0xBFF0000000000000, 0x3FF0000000000001, 0x3FEFFFFFFFFFFFFF,
         0x41E0000000000000, 0xC1E0000000000000, 0x41F0000000000000, 0x0350000000000000],
}  # fmt: skip
_EXPONENT = {16: (10, 5), 32: (23, 8), 64: (52, 11)}


def value(rng: random.Random, kind: str) -> int:
    """A random operand of a kind, often at an edge; floats often of like exponents."""
    w = WIDTH[kind]
    mask = (1 << w) - 1
    if w == 1:
        return rng.getrandbits(1)
    if kind[0] == "f" and w in _EXPONENT:
        m, e = _EXPONENT[w]
        pick = rng.random()
        if pick < 0.3:
            return rng.choice(_EDGES[w])
        if pick < 0.75:
            exponent = max(0, min((1 << e) - 1, (1 << (e - 1)) - 1 + rng.randint(-4, 4)))
            return rng.getrandbits(1) << (w - 1) | exponent << m | rng.getrandbits(m)
        if pick < 0.85:  # denormal results
            return rng.getrandbits(1) << (w - 1) | rng.randint(0, 3) << m | rng.getrandbits(m)
        return rng.getrandbits(w)
    if rng.random() < 0.35:
        return rng.choice(_EDGES["b"]) & mask
    if rng.random() < 0.2:
        return 1 << rng.randrange(w)
    return rng.getrandbits(w)


@dataclass(frozen=True, slots=True)
class Case:
    """An instruction without registers: `build(dsts, srcs)` gives it; a row of inputs per lane."""

    dst: tuple[str, ...]
    src: tuple[str, ...]
    build: Callable[[list[Arg], list[Arg]], Inst]
    inputs: tuple[tuple[int, ...], ...]  # [lane][source]


def flow_of(items: Sequence[Inst]) -> Flow:
    steps = [DecodedStep(4 * i, 4 * i + 4, inst) for i, inst in enumerate(items)]
    return Flow(0, {0: MachineBlock(0, steps)}, ())


def _load(out: list[Inst], kind: str, at: int, register: int) -> Arg:
    if kind == "m":
        out.append(Inst("s_load_b32", (S(register, 1), S(0, 2)), at))
        return S(register, 1)
    n = 2 if WIDTH[kind] == 64 else 1
    for i in range(n):
        out.append(Inst("global_load_b32", (V(register + i), V(1), S(0, 2)), at + 128 * i))
    return V(register, n)


def _pack(kind: str, column: Sequence[int]) -> bytes:
    if kind == "m":
        mask = sum((v & 1) << i for i, v in enumerate(column))
        return struct.pack("<I", mask) + bytes(124)
    lows = struct.pack("<32I", *(v & 0xFFFFFFFF for v in column))
    if WIDTH[kind] < 64:
        return lows
    return lows + struct.pack("<32I", *(v >> 32 for v in column))


def run_cases(
    cases: Sequence[Case],
    options: CompileOptions,
    exec_mask: int = 0xFFFFFFFF,
    *,
    stencils: bool = False,
) -> list[list[tuple[int, ...]]]:
    """[case][lane][destination]: what the emulator computes, by `stencils` or compiled; inactive
    lanes keep a pattern."""
    items: list[Inst] = [
        Inst("s_load_b64", (S(2, 2), S(0, 2)), 8),
        Inst("s_load_b64", (S(0, 2), S(0, 2)), 0),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
    ]
    blob, at_out = bytearray(), 0
    places: list[list[int]] = []
    for case in cases:
        srcs: list[Arg] = []
        for i, kind in enumerate(case.src):
            at = len(blob)
            blob += _pack(kind, [lane[i] for lane in case.inputs])
            srcs.append(_load(items, kind, at, 20 + 2 * i))
        dsts: list[Arg] = []
        for i, kind in enumerate(case.dst):
            if kind == "m":
                dsts.append(S(60 + 2 * i))
                continue
            n = 2 if WIDTH[kind] == 64 else 1
            for j in range(n):
                items.append(Inst("v_mov_b32", (V(60 + 2 * i + j), I(0x5A5A5A5A))))
            dsts.append(V(60 + 2 * i, n))
        items.append(Inst("s_mov_b32", (Sp("exec_lo"), I(exec_mask))))
        items.append(case.build(dsts, srcs))
        items.append(Inst("s_mov_b32", (Sp("exec_lo"), I(0xFFFFFFFF))))
        rows: list[int] = []
        for i, kind in enumerate(case.dst):
            rows.append(at_out)
            words = [V(60 + 2 * i + j) for j in range(2 if WIDTH[kind] == 64 else 1)]
            if kind == "m":
                items.append(Inst("v_mov_b32", (V(60 + 2 * i), S(60 + 2 * i))))
            for word in words:
                items.append(Inst("global_store_b32", (V(1), word, S(2, 2)), at_out))
                at_out += 128
        places.append(rows)
    items.append(Inst("s_endpgm"))
    loaded: LoadedImage | BaselineKernel
    if stencils:
        loaded = baseline(assemble(_encodable(items)).data, options)
    else:
        loaded = LoadedImage(compile_flow(flow_of(items), options))
    device = EmulatedDevice(1 << 22)
    source, target = device.alloc(bytes(blob)), device.alloc(max(at_out, 128))
    run_image(loaded, Setup(), 1, 32, struct.pack("<QQ", source, target), device)
    raw = device.read(target, max(at_out, 128))
    return [
        [
            tuple(_unpack(raw, at, kind, lane) for at, kind in zip(rows, case.dst, strict=True))
            for lane in range(LANES)
        ]
        for case, rows in zip(cases, places, strict=True)
    ]


def _encodable(items: Sequence[Inst]) -> list[Inst]:
    """The same with offsets below 4096; v2 takes the rest of the address."""
    out: list[Inst] = []
    for inst in items:
        if inst.op.startswith("global_") and inst.imm > 0xFFF:
            out.append(Inst("v_add_nc_u32", (V(2), I(inst.imm & ~0xFFF), V(1))))
            args = tuple(V(2) if arg == V(1) else arg for arg in inst.args)
            inst = replace(inst, args=args, imm=inst.imm & 0xFFF)
        out.append(inst)
    return out


def _unpack(raw: bytes, at: int, kind: str, lane: int) -> int:
    word: int = struct.unpack_from("<I", raw, at + 4 * lane)[0]
    w = WIDTH[kind]
    if w == 1:
        return word >> lane & 1
    if w == 64:
        high: int = struct.unpack_from("<I", raw, at + 128 + 4 * lane)[0]
        return word | high << 32
    return word >> 16 if kind == "f16hi" else word & ((1 << w) - 1)


def vector_case(row: Semantics, rng: random.Random) -> Case:
    """A row of the semantics table on random lanes, without modifiers."""
    printed = tuple(k for k in row.src if not k.startswith("acc:") and k not in _IMPLICIT)
    inputs = tuple(tuple(value(rng, k) for k in printed) for _ in range(LANES))

    def build(dsts: list[Arg], srcs: list[Arg]) -> Inst:
        return Inst(row.op, (*dsts, *srcs))

    return Case(row.dst, printed, build, inputs)


_IMPLICIT = frozenset({"scc", "exec", "vcc", "lane", "imm", "immz", "neg"})
