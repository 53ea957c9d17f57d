"""Loads that follow each other by one vector of addresses share a branch: what lanes get, and which
access and lane a fault names, is what each load alone would give."""

from __future__ import annotations

import itertools
import random
import struct

import pytest

from sassxlate.cfg.rdna3_flow import discover
from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.compiler import ATTRIBUTES, compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.wave.wave import build

from .baseline import ISAS

_EXEC, _OFF = Sp("exec_lo"), Sp("off")
_WAIT = (Inst("s_waitcnt", (), 0), Inst("s_waitcnt_vscnt", (Sp("null"),), 0))
_SIZE, _THREADS = 4096, 70
_KERNARG = 40
_SHAPES = ((16, 2, 1), (5, 7, 1), (32, 1, 1), (64, 1, 1), (16, 4, 1), (3, 1, 1), (1, 32, 1))


def _program(between: tuple[Inst, ...]) -> bytes:
    """out[thread] = the dwords at x + k * y + n, one after and before it, and s13 after it, of the
    lanes of a mask; ``between`` the first loads."""
    return assemble(
        [
            Inst("s_load_b128", (S(4, 4), S(0, 2)), 0),
            Inst("s_load_b128", (S(8, 4), S(0, 2)), 16),
            Inst("s_load_b64", (S(12, 2), S(0, 2)), 32),
            *_WAIT,
            Inst("v_and_b32", (V(1), I(1023), V(0))),
            Inst("v_bfe_u32", (V(2), V(0), I(10), I(10))),
            Inst("v_mul_lo_u32", (V(3), V(2), S(9))),  # threads in x
            Inst("v_add_nc_u32", (V(3), V(3), V(1))),
            Inst("v_mul_lo_u32", (V(2), V(2), S(8))),
            Inst("v_add_nc_u32", (V(2), V(2), V(1))),
            Inst("v_add_nc_u32", (V(2), S(10), V(2))),
            Inst("v_mad_i64_i32", (V(18, 2), S(15), V(3), I(16), S(6, 2))),
            Inst("v_mad_i64_i32", (V(4, 2), S(15), V(2), I(4), S(4, 2))),
            Inst("s_and_b32", (_EXEC, _EXEC, S(11))),
            Inst("global_load_b32", (V(8), V(4, 2), _OFF), 4),
            *between,
            Inst("global_load_b32", (V(9), V(4, 2), _OFF), -4),
            Inst("v_mad_i64_i32", (V(6, 2), S(15), S(13), I(4), V(4, 2))),
            Inst("global_load_b32", (V(10), V(6, 2), _OFF)),
            Inst("global_load_b32", (V(11), V(4, 2), _OFF)),
            *_WAIT,
            Inst("global_store_b128", (V(18, 2), V(8, 4), _OFF)),
            *_WAIT,
            Inst("s_endpgm"),
        ]
    ).data


_BETWEEN = {
    "nothing": (),
    "numbers": (Inst("v_add_nc_u32", (V(12), V(1), V(2))), Inst("v_xor_b32", (V(13), V(12), V(1)))),
    "what_is_loaded": (_WAIT[0], Inst("v_add_nc_u32", (V(12), V(8), V(8)))),
    "sums": (_WAIT[0], Inst("v_add_f32", (V(12), V(8), V(8)))),
}


def _options(isa: Isa | None = None) -> CompileOptions:
    return CompileOptions(isa=isa, kernarg=(0, _KERNARG))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", ["nothing", "what_is_loaded"])
def test_as_each_load_alone(name: str, isa: Isa) -> None:
    rng, code = random.Random(f"{name} {isa}"), _program(_BETWEEN[name])
    loaded = LoadedImage(compile_kernel(code, 0, _options(isa)))
    steps = [step for block in discover(code, 0, ()).blocks.values() for step in block.steps]
    loads = [step.pc for step in steps if step.inst.op == "global_load_b32"]
    device = EmulatedDevice(1 << 17)
    out = device.alloc(16 * _THREADS)
    memory = device.base + device.size - _SIZE
    content = rng.randbytes(_SIZE)
    device.write(memory, content)
    faults = 0
    for (nx, ny, nz), _ in itertools.product(_SHAPES, range(6)):
        pitch, row = rng.choice((16, 16, nx, 0, 17)), rng.choice((0, 1, 16, 33))
        mask = rng.choice((0xFFFFFFFF, 0xFFFFFFFF, 0, 0x8000FFFF, rng.getrandbits(32)))
        last = nx - 1 + pitch * (ny - 1)
        n = rng.choice((1, 5, _SIZE // 4 - last - row + rng.randrange(-2, 4)))
        kernarg = struct.pack("<QQIIIIII", memory, out, pitch, nx, n, mask, 0, row)
        device.write(out, bytes(16 * _THREADS))
        threads = list(itertools.product(range(nz), range(ny), range(nx)))
        expected, wrong = bytearray(16 * _THREADS), None
        for wave in range(0, len(threads), 32):
            lanes = [
                (lane, n + threads[wave + lane][2] + pitch * threads[wave + lane][1])
                for lane in range(min(32, len(threads) - wave))
                if mask >> lane & 1
            ]
            for number, offset in enumerate((1, -1, row, 0)):
                for lane, place in lanes:
                    at = 4 * (place + offset)
                    if at >= _SIZE:
                        wrong = wrong or (loads[number], lane)
                        break
                    to = 16 * (wave + lane) + 4 * number
                    expected[to : to + 4] = content[at : at + 4]
                if wrong is not None:
                    break
            if wrong is not None:
                break
        launch = (loaded, Setup(kernarg_size=_KERNARG), 1, (nx, ny, nz), kernarg, device)
        if wrong is None:
            run_image(*launch)
            assert device.read(out, 16 * _THREADS) == expected, (nx, ny, pitch, row, mask, n)
            continue
        with pytest.raises(EmulatorError, match=rf"lane {wrong[1]}:") as caught:
            run_image(*launch)
        assert caught.value.where is not None
        assert caught.value.where.offset == wrong[0]
        faults += 1
    assert faults > 3


@pytest.mark.parametrize("name", _BETWEEN)
def test_one_branch(name: str) -> None:
    """Where nothing that has been loaded, and no sum, is between the loads."""
    flow = discover(_program(_BETWEEN[name]), 0, ())
    text = build(flow, _options(), "avx512", ATTRIBUTES["avx512"])[0].functions["wave"]
    branches = text.count("label %fast.m")
    assert branches == (3 if name == "sums" else 2)  # the store has one of its own


@pytest.mark.parametrize("isa", ISAS)
def test_a_store_stays_after_a_load(isa: Isa) -> None:
    """Of the stack, whose known places are loaded without a branch."""
    code = assemble(
        [
            Inst("s_load_b128", (S(4, 4), S(0, 2)), 0),
            *_WAIT,
            Inst("v_lshlrev_b32", (V(4), I(2), V(0))),
            Inst("v_add_nc_u32", (V(2), I(100), V(0))),
            Inst("scratch_store_b32", (_OFF, V(2), S(6))),
            Inst("scratch_load_b32", (V(5), _OFF, _OFF), 8),
            Inst("scratch_store_b32", (_OFF, V(0), S(6))),
            *_WAIT,
            Inst("global_store_b32", (V(4), V(5), S(4, 2))),
            *_WAIT,
            Inst("s_endpgm"),
        ]
    ).data
    options = CompileOptions(isa=isa, kernarg=(0, 16), scratch=64)
    loaded = LoadedImage(compile_kernel(code, 0, options))
    device = EmulatedDevice(1 << 16)
    out = device.alloc(128)
    for place, first in ((8, 100), (12, 0)):
        setup = Setup(kernarg_size=16, scratch_size=64)
        run_image(loaded, setup, 1, (32, 1, 1), struct.pack("<QII", out, place, 0), device)
        found = struct.unpack("<32I", device.read(out, 128))
        assert found == (tuple(range(first, first + 32)) if first else (0,) * 32)
