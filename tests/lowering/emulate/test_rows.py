"""Accesses by thread numbers in blocks of any shape: what is known of rows before a launch's waves
run must be what a comparison of their addresses would say."""

from __future__ import annotations

import itertools
import random
import struct

import pytest

from sassxlate.cfg.rdna3_flow import discover
from sassxlate.disasm.rdna3.codec.assemble import Label, assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.lowering.emulate.compiler import ATTRIBUTES, compile_kernel
from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.wave.wave import build

from .baseline import ISAS

_WAIT = (Inst("s_waitcnt", (), 0), Inst("s_waitcnt_vscnt", (Sp("null"),), 0))
_EXEC = Sp("exec_lo")
_FULL = 0xFFFFFFFF
_MIDDLE = 2048  # of the memory's dwords: where thread 0 is
_SHAPES = (
    (16, 16, 1), (32, 2, 1), (8, 4, 1), (24, 2, 1), (5, 7, 1), (64, 1, 1), (48, 1, 1), (1, 64, 1),
    (16, 3, 1), (4, 4, 4), (16, 1, 2), (31, 3, 1), (17, 1, 1), (1, 1, 1), (15, 1, 5), (40, 1, 1),
)  # fmt: skip


def _program(rows: bool, all_lanes: bool, depth: bool) -> bytes:
    """out[i] = in[i] for i = x + pitch * y (or z), of the lanes of a mask, by thread 0's place."""
    number = Inst("v_bfe_u32", (V(3), V(0), I(20 if depth else 10), I(10)))
    items: list[Inst | Label] = [
        Inst("s_mov_b32", (S(12), _EXEC)),
        Inst("s_load_b128", (S(4, 4), S(0, 2)), 0),
        Inst("s_load_b64", (S(8, 2), S(0, 2)), 16),
        *_WAIT,
    ]
    if all_lanes:
        items.append(Inst("s_mov_b32", (_EXEC, I(-1))))
    items.append(Inst("v_and_b32", (V(2), I(1023), V(0))))
    if rows:
        items += [
            number,
            Inst("v_bfe_u32", (V(9), V(0), I(10), I(10))),  # by which a block has rows
            Inst("v_mul_lo_u32", (V(3), V(3), S(9))),
            Inst("v_add_nc_u32", (V(2), V(2), V(3))),
        ]
    items += [
        Inst("s_and_b32", (_EXEC, _EXEC, S(8))),
        Inst("v_mad_i64_i32", (V(4, 2), S(10), V(2), I(4), S(4, 2))),
        Inst("v_mad_i64_i32", (V(6, 2), S(10), V(2), I(4), S(6, 2))),
        Inst("global_load_b32", (V(8), V(4, 2), Sp("off"))),
        *_WAIT,
        Inst("global_store_b32", (V(6, 2), V(8), Sp("off"))),
        *_WAIT,
        Inst("s_endpgm"),
    ]
    return assemble(items).data


@pytest.mark.parametrize("isa", ISAS)
def test_blocks_of_any_shape(isa: Isa) -> None:
    rng = random.Random(isa)
    device = EmulatedDevice(1 << 18)
    source, target = device.alloc(4 * 2 * _MIDDLE), device.alloc(4 * 2 * _MIDDLE)
    content = rng.randbytes(4 * 2 * _MIDDLE)
    device.write(source, content)
    for rows, all_lanes, depth in ((1, 0, 0), (0, 0, 0), (1, 0, 1), (1, 1, 0), (0, 1, 0)):
        code = _program(bool(rows), bool(all_lanes), bool(depth))
        loaded = LoadedImage(compile_kernel(code, 0, CompileOptions(isa=isa)))
        for (nx, ny, nz), mask in itertools.product(_SHAPES, (_FULL, rng.getrandbits(32))):
            pitch = rng.choice((0, 1, nx, 16, 37))
            device.write(target, bytes(len(content)))
            at = 4 * _MIDDLE
            kernarg = struct.pack("<QQII", source + at, target + at, mask, pitch)
            run_image(loaded, Setup(), 1, (nx, ny, nz), kernarg, device)
            threads = list(itertools.product(range(nz), range(ny), range(nx)))
            places = [x + (rows and pitch * (z if depth else y)) for z, y, x in threads]
            if all_lanes:  # the others' numbers are 0
                places += [0] * (-len(places) % 32)
            expected = bytearray(len(content))
            for i, place in enumerate(places):
                if mask >> i % 32 & 1:
                    where = at + 4 * place
                    expected[where : where + 4] = content[where : where + 4]
            assert device.read(target, len(content)) == expected, (rows, depth, nx, ny, nz, pitch)


@pytest.mark.parametrize("rows", [True, False])
def test_rows_are_not_compared(rows: bool) -> None:
    text = dict[bool, str]()
    for lanes in (False, True):
        flow = discover(_program(rows, lanes, False), 0, ())
        built = build(flow, CompileOptions(), "avx512", ATTRIBUTES["avx512"])[0]
        text[lanes] = built.functions["wave"]
    known = f"getelementptr i8, ptr %w, i64 {int(WaveLayout.ROWS)}"
    compared = "icmp eq <32 x i32>"
    assert known in text[False]
    assert compared not in text[False]
    assert known not in text[True]  # lanes that no thread has may have any numbers
    assert compared in text[True]
