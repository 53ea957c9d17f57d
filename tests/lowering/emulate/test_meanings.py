"""The LLVM domain against the integer domain, opcode by opcode, on edge-biased inputs."""

from __future__ import annotations

import random
import zlib
from typing import Any

import pytest

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.rdna3.semantics import Mode, Semantics, semantics_table
from sassxlate.domain.integers import Bits, Reference
from sassxlate.domain.interface import Fp, Round, exponent_bits, mantissa_bits
from sassxlate.lowering.emulate.options import CompileOptions, Isa

from .baseline import ISAS, each_with_an_isa
from .harness import LANES, WIDTH, Case, run_cases, value, vector_case

REF: Any = Reference()
ROWS = semantics_table()
VECTOR = sorted(
    op
    for op, row in ROWS.items()
    if op.startswith("v_")
    and row.dst[0] not in ("execm", "p16", "pf16")
    and not {"vcc", "mix", "pair"} & set(row.src)
)
PACKED = sorted(op for op, row in ROWS.items() if row.dst[0] in ("p16", "pf16"))
SCALAR = sorted(op for op in ROWS if op.startswith("s_") and "exec" not in ROWS[op].src)
MODES = {
    "ieee": (0xF0, Mode()),
    "flush": (0x00, Mode(Fp(Round.NEAREST, True, True), Fp(Round.NEAREST, True, True))),
    "up": (0xF5, Mode(Fp(Round.UP), Fp(Round.UP))),
    "down": (0xFA, Mode(Fp(Round.DOWN), Fp(Round.DOWN))),
    "zero_flush": (0x0F, Mode(Fp(Round.ZERO, True, True), Fp(Round.ZERO, True, True))),
}


def _seed(text: str) -> random.Random:
    return random.Random(zlib.crc32(text.encode()))


def is_nan(n: int, w: int) -> bool:
    m = mantissa_bits(w)
    return n & ((1 << (w - 1)) - 1) > ((1 << exponent_bits(w)) - 1) << m


def close(kind: str, got: int, want: int, ulps: int) -> bool:
    """Equal, or both NaN; approximations may be some units in the last place apart."""
    w = WIDTH[kind]
    if got == want:
        return True
    if kind[0] != "f" or w == 1:
        return False
    if is_nan(got, w) and is_nan(want, w):
        return True
    if not ulps or is_nan(got, w) or is_nan(want, w):
        return False
    top = 1 << (w - 1)
    got, want = (-(v & ~top) if v & top else v for v in (got, want))  # both zeros are one
    return abs(got - want) <= ulps


def expected(row: Semantics, mode: Mode, inputs: tuple[int, ...], lane: int) -> tuple[int, ...]:
    values = iter(inputs)
    args: list[Bits] = []
    for kind in row.src:
        if kind.startswith("acc:"):
            w = WIDTH[kind[4:]]
            args.append(Bits(0x5A5A5A5A5A5A5A5A & ((1 << w) - 1), w))
        elif kind == "lane":
            args.append(Bits(lane, 32))
        elif kind == "neg":
            args.append(Bits(0, 8))
        else:
            args.append(Bits(next(values) & ((1 << WIDTH[kind]) - 1), WIDTH[kind]))
    out: Bits | tuple[Bits, ...]
    out = row.fn(REF, mode, *args) if row.mode else row.fn(REF, *args)
    return tuple(v.n for v in (out if isinstance(out, tuple) else (out,)))


def check(rows: list[Semantics], mode: str, options: CompileOptions, exec_mask: int = -1) -> None:
    bits, static = MODES[mode]
    exec_mask &= 0xFFFFFFFF
    cases = [vector_case(row, _seed(f"{row.op} {mode}")) for row in rows]
    del bits
    results = run_cases(cases, options, exec_mask)
    for row, case, lanes in zip(rows, cases, results, strict=True):
        ulps = 1 if row.approximate else 0
        for lane in range(LANES):
            if exec_mask >> lane & 1:
                want = expected(row, static, case.inputs[lane], lane)
            else:
                want = tuple(
                    0 if k == "m" else 0x5A5A5A5A5A5A5A5A & ((1 << WIDTH[k]) - 1) for k in row.dst
                )
            for kind, got, wanted in zip(row.dst, lanes[lane], want, strict=True):
                assert close(kind, got, wanted, ulps), (
                    f"{row.op} {mode} lane {lane}: {[hex(v) for v in case.inputs[lane]]} gives "
                    f"{got:#x}, not {wanted:#x}"
                )


def _chunks(names: list[str], n: int) -> list[list[str]]:
    return [names[i : i + n] for i in range(0, len(names), n)]


@pytest.mark.parametrize(
    ("names", "isa"), each_with_an_isa((names,) for names in _chunks(VECTOR, 48))
)
def test_vector(names: list[str], isa: Isa) -> None:
    check([ROWS[n] for n in names], "ieee", CompileOptions(isa=isa))


@pytest.mark.parametrize("names", _chunks(VECTOR, 96)[::3], ids=lambda names: names[0])
def test_inactive_lanes_keep_their_values(names: list[str]) -> None:
    check([ROWS[n] for n in names], "ieee", CompileOptions(), 0xF00FA5C3)


FLOATS = [n for n in VECTOR if ROWS[n].mode and not n.startswith("v_cmp_")]


@pytest.mark.parametrize("mode", [m for m in MODES if m != "ieee"])
@pytest.mark.parametrize("names", _chunks(FLOATS, 64), ids=lambda names: names[0])
def test_modes(names: list[str], mode: str) -> None:
    check([ROWS[n] for n in names], mode, CompileOptions(float_mode=MODES[mode][0]))


@pytest.mark.parametrize("isa", ISAS)
def test_packed(isa: Isa) -> None:
    rows = [ROWS[n] for n in PACKED]
    cases = [vector_case(row, _seed(row.op)) for row in rows]
    results = run_cases(cases, CompileOptions(isa=isa))
    for row, case, lanes in zip(rows, cases, results, strict=True):
        kind = row.dst[0][1:]
        for lane in range(LANES):
            for at in (0, 16):
                halves = [Bits(v >> at & 0xFFFF, 16) for v in case.inputs[lane]]
                if any(k.startswith("acc:") for k in row.src):
                    halves.append(Bits(0x5A5A, 16))
                out = row.fn(REF, Mode(), *halves) if row.mode else row.fn(REF, *halves)
                got = lanes[lane][0] >> at & 0xFFFF
                name = "f16" if kind == "f16" else "b16"
                assert close(name, got, out.n, 0), (row.op, lane, at, hex(got), hex(out.n))


def _scalar_case(row: Semantics, rng: random.Random) -> tuple[list[Inst], tuple[int, ...]]:
    """Loads constants, runs the instruction with SCC set as wanted, and keeps result and SCC."""
    items: list[Inst] = []
    inputs: list[int] = []
    srcs: list[Arg] = []
    scc = rng.getrandbits(1)
    imm = rng.choice([0, 1, -1, 0x7FFF, -0x8000, rng.randint(-0x8000, 0x7FFF)])
    for i, kind in enumerate(row.src):
        if kind in ("scc", "imm", "immz") or kind.startswith("acc:"):
            inputs.append({"scc": scc, "imm": imm, "immz": imm & 0xFFFF}.get(kind, -1))
            continue
        n = 2 if kind == "b64" else 1
        v = value(rng, kind)
        inputs.append(v)
        for j in range(n):
            items.append(Inst("s_mov_b32", (S(20 + 2 * i + j), I(v >> 32 * j & 0xFFFFFFFF))))
        srcs.append(S(20 + 2 * i, n))
    old = value(rng, "b64")
    inputs = [old if v == -1 and k.startswith("acc:") else v
              for k, v in zip(row.src, inputs, strict=True)]  # fmt: skip
    for j in range(2):
        items.append(Inst("s_mov_b32", (S(10 + j), I(old >> 32 * j & 0xFFFFFFFF))))
    items.append(Inst("s_cmp_eq_u32", (I(scc), I(1))))
    n = 2 if row.dst[0] == "b64" else 1
    dst: tuple[Arg, ...] = () if row.dst[0] == "scc" else (S(10, n),)
    items.append(Inst(row.op, (*dst, *srcs), imm if {"imm", "immz"} & set(row.src) else 0))
    return items, tuple(inputs)


@pytest.mark.parametrize("isa", ISAS[:1])
@pytest.mark.parametrize("names", _chunks(SCALAR, 60), ids=lambda names: names[0])
def test_scalar(names: list[str], isa: Isa) -> None:
    picked: list[tuple[Semantics, tuple[int, ...]]] = []
    cases: list[Case] = []
    preludes: list[list[Inst]] = []
    for name in names:
        rng = _seed(name)
        for _ in range(6):
            items, inputs = _scalar_case(ROWS[name], rng)
            preludes.append(items)
            picked.append((ROWS[name], inputs))
    results = _run_scalars(preludes, CompileOptions(isa=isa))
    del cases
    for (row, inputs), (low, high, scc) in zip(picked, results, strict=True):
        args = [Bits(v & ((1 << _w(k)) - 1), _w(k)) for k, v in zip(row.src, inputs, strict=True)]
        out: Bits | tuple[Bits, ...] = row.fn(REF, *args)
        outs = out if isinstance(out, tuple) else (out,)
        for kind, v in zip(row.dst, outs, strict=True):
            got = scc if kind == "scc" else low | high << 32 if kind == "b64" else low
            assert got == v.n, (row.op, kind, [hex(x) for x in inputs], hex(got), hex(v.n))


def _w(kind: str) -> int:
    if kind == "scc":
        return 1
    return WIDTH[kind[4:]] if kind.startswith("acc:") else WIDTH.get(kind, 32)


def _run_scalars(preludes: list[list[Inst]], options: CompileOptions) -> list[tuple[int, int, int]]:
    """(low, high, SCC) after each prelude: lanes 0 to 2 of a stored VGPR."""
    out: list[tuple[int, int, int]] = []
    for chunk in [preludes[i : i + 64] for i in range(0, len(preludes), 64)]:
        out += _run_chunk(chunk, options)
    return out


def _run_chunk(chunk: list[list[Inst]], options: CompileOptions) -> list[tuple[int, int, int]]:
    from sassxlate.disasm.rdna3.instruction import Sp
    from sassxlate.lowering.emulate.compiler import compile_flow
    from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

    from .harness import flow_of

    items = [
        Inst("s_load_b64", (S(2, 2), S(0, 2)), 0),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
    ]
    for i, prelude in enumerate(chunk):
        items += prelude
        items += [
            Inst("s_cselect_b32", (S(12), I(1), I(0))),
            *(Inst("v_writelane_b32", (V(2), S(10 + j), I(j))) for j in range(3)),
            Inst("global_store_b32", (V(1), V(2), S(2, 2)), 128 * i),
        ]
    items.append(Inst("s_endpgm"))
    del Sp
    loaded = LoadedImage(compile_flow(flow_of(items), options))
    device = EmulatedDevice(1 << 20)
    target = device.alloc(128 * len(chunk))
    run_image(loaded, Setup(), 1, 32, target.to_bytes(8, "little"), device)
    raw = device.read(target, 128 * len(chunk))
    words = [int.from_bytes(raw[i : i + 4], "little") for i in range(0, len(raw), 4)]
    return [(words[32 * i], words[32 * i + 1], words[32 * i + 2]) for i in range(len(chunk))]
