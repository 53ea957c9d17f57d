"""Every pair of a dual instruction's halves, with literals, by both tiers.

The literal of half a dual instruction once took an operand's place: v_dual_fmaak_f32 in the second
half read SGPR 96 for its literal, v_dual_fmamk_f32 in the first the other's destination.
"""

from __future__ import annotations

import random
import struct

import pytest

from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.codec.encode.instruction import encode
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.rdna3.tables.layout import layouts
from sassxlate.disasm.rdna3.tables.opcodes import OPS
from sassxlate.errors import EncodeError
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.stencils.stencil import OPERANDS, slots

from .baseline import ISAS, baseline

_MODE = 0xF0
_SOURCES, _RESULTS = range(4, 20), range(20, 24)
_LEFT_OUT = "v_dual_dot2acc_f32_bf16"  # the emulated device has none for bfloat16
_LITERAL = ("fmaak", "fmamk")
_ROWS = 64  # of 32 words, from which instructions take their sources


def _half(rng: random.Random, op: str, literal: I, into: int) -> Inst:
    args: list[Arg] = []
    for operand in OPS[op].args:
        if operand.field == "vdst":
            args.append(V(into))
        elif operand.field == "lit":
            args.append(literal)
        elif operand.field == "src0":
            number = rng.choice(_SOURCES)
            args.append(rng.choice((V(number), V(number), S(20 + number % 4), literal)))
        else:
            args.append(V(rng.choice(_SOURCES)))
    return Inst(op, tuple(args))


def _pair(rng: random.Random, x: str, y: str) -> Inst:
    """A dual instruction whose registers are of different banks, as the encoding needs."""
    while True:
        literal = I(struct.unpack("<I", struct.pack("<f", rng.uniform(-9, 9)))[0])
        first, second = rng.choice(_RESULTS[::2]), rng.choice(_RESULTS[1::2])
        inst = Inst(x, _half(rng, x, literal, first).args, y=_half(rng, y, literal, second))
        try:
            encode(inst)
        except EncodeError:
            continue
        return inst


def _program(rng: random.Random, pairs: list[tuple[str, str]]) -> list[Inst]:
    s2 = S(2, 2)
    out = [
        Inst("s_load_b64", (s2, S(0, 2)), 8),
        Inst("s_load_b64", (S(0, 2), S(0, 2)), 0),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
        *(Inst("s_mov_b32", (S(s), I(0x3F800000 + (s << 16)))) for s in range(20, 100)),
    ]
    for x, y in pairs:
        pair = _pair(rng, x, y)
        assert pair.y is not None
        read = {arg.index for half in (pair, pair.y) for arg in half.args if isinstance(arg, V)}
        for v in sorted(read | {*_RESULTS}):
            at = 128 * rng.randrange(31)
            out.append(Inst("global_load_b32", (V(v), V(1), S(0, 2)), at))
        out.append(pair)
        for v in _RESULTS:
            out.append(Inst("global_store_b32", (V(1), V(v), s2), 128 * (v - _RESULTS.start)))
        out += [
            Inst("s_add_u32", (S(2), S(2), I(128 * len(_RESULTS)))),
            Inst("s_addc_u32", (S(3), S(3), I(0))),
        ]
    return [*out, Inst("s_endpgm")]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.sweep)])
def test_pairs(seed: int, isa: Isa) -> None:
    """Seed 0: the pairs with a literal."""
    rng = random.Random(seed)
    halves = {n: lay.info.op for n, lay in layouts("VOPD").items()}
    names = [(n, op) for n, op in halves.items() if not op.startswith(_LEFT_OUT)]
    pairs = [(x, y) for n, x in names if n < 16 for _, y in names]
    pairs = [
        p for p in pairs if seed or p[0][:-4].endswith(_LITERAL) or p[1][:-4].endswith(_LITERAL)
    ]
    code = assemble(_program(rng, pairs)).data
    options = CompileOptions(isa=isa, float_mode=_MODE)
    results: list[bytes] = []
    for image in (LoadedImage(compile_kernel(code, 0, options)), baseline(code, options)):
        device = EmulatedDevice(1 << 20)
        source, target = device.base + (1 << 15), device.base + (1 << 16)
        words = [random.Random(seed).uniform(-99, 99) for _ in range(32 * _ROWS)]
        device.write(source, struct.pack(f"<{len(words)}f", *words))
        kernarg = struct.pack("<QQ", source, target)
        run_image(image, Setup(kernarg_sgpr=0), 1, 32, kernarg, device)
        results.append(device.read(target, 512 * len(pairs)))
    for n, pair in enumerate(pairs):
        assert results[0][512 * n :][:512] == results[1][512 * n :][:512], pair


def test_operands_have_registers_of_their_own() -> None:
    """No two VGPRs and no two scalars of an instruction share a canonical register."""
    for op, row in OPS.items():
        if op.startswith("v_dual_"):
            vector = [s for s, a in zip(slots(op), row.args, strict=True) if a.cls == "v"]
            scalar = [s for s, a in zip(slots(op), row.args, strict=True) if a.cls != "v"]
            assert len(set(vector)) == len(vector)
            assert len(set(scalar)) == len(scalar)
            assert max(slots(op)) < OPERANDS // 2, op
        else:
            assert len(row.args) <= OPERANDS, op
