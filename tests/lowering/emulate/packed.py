"""Programs with a run of instructions that is executed in packs, and the same without packs."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Mapping, Sequence

import pytest

from sassxlate.cfg.rdna3_flow import Flow, discover
from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, S, Sp, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.compiler import ATTRIBUTES, compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, host_isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.wave.packs import runs as packed_runs
from sassxlate.lowering.emulate.wave.packs.runs import Run
from sassxlate.lowering.emulate.wave.wave import build

_WAIT = Inst("s_waitcnt", (), 0)
SIZE, ROWS = 1 << 16, 4096
FULL = 0xFFFFFFFF


def load(dst: int, offset: int, address: int = 2, glc: bool = False) -> Inst:
    return Inst("global_load_b32", (V(dst), V(address, 2), Sp("off")), offset, glc=glc)


def indexed(dst: int, index: int) -> tuple[Inst, Inst]:
    """A dword of the table at s[20:21], by the index in a register."""
    return (
        Inst("v_mad_i64_i32", (V(28, 2), S(30), V(index), I(4), S(20, 2))),
        load(dst, 0, 28),
    )


OUT = (4, 5, 7, 14, 15, 16, 17, 18, 19, 21, 22, 23, 2, 24)
MASKS = (24, 25, 26, 22)


def program(middle: Sequence[Item]) -> bytes:
    return assemble([
        Inst("s_load_b256", (S(16, 8), S(0, 2)), 0),  # rows, out, table, and two numbers
        Inst("s_load_b64", (S(6, 2), S(0, 2)), 32),
        _WAIT,
        Inst("s_mov_b32", (S(27), S(7))),
        Inst("v_lshlrev_b32", (V(9), I(4), V(0))),
        Inst("global_load_b64", (V(2, 2), V(9), S(16, 2)), 0),
        Inst("global_load_b64", (V(10, 2), V(9), S(16, 2)), 8),
        *(Inst("v_mov_b32", (V(register), I(register))) for register in (4, 5, 7, *range(12, 25))),
        _WAIT,
        Inst("s_mov_b32", (Sp("exec_lo"), S(6))),
        *middle,
        _WAIT,
        Inst("s_mov_b32", (Sp("exec_lo"), I(-1))),
        Inst("v_lshlrev_b32", (V(9), I(2), V(0))),
        *(
            Inst("global_store_b32", (V(9), V(register), S(18, 2)), 128 * n)
            for n, register in enumerate(OUT)
        ),
        *(
            step
            for n, register in enumerate(MASKS)
            for step in (
                Inst("v_mov_b32", (V(8), S(register))),
                Inst("global_store_b32", (V(9), V(8), S(18, 2)), 128 * (n + len(OUT))),
            )
        ),
        _WAIT,
        Inst("s_endpgm"),
    ]).data  # fmt: skip


def run(
    image: LoadedImage, content: bytes, rows: Sequence[int], start: int, mask: int, bits: int
) -> object:
    """What the lanes have, or the fault."""
    device = EmulatedDevice(SIZE)
    table, out = device.alloc(512), device.alloc(128 * (len(OUT) + len(MASKS)))
    memory = device.base + SIZE - len(content)  # the device's last bytes
    device.write(memory, content)
    device.write(table, struct.pack("<64Q", *((memory + at) % (1 << 64) for at in rows)))
    given = struct.pack("<QQQIIII", table, out, memory + start, bits ^ 5, 7, mask, bits)
    try:
        run_image(image, Setup(), 1, 32, given, device)
    except EmulatorError as error:
        return str(error)
    return device.read(out, 128 * (len(OUT) + len(MASKS)))


def _none(_flow: Flow, _strides: Mapping[int, int]) -> dict[int, list[Run]]:
    return {}


def images(middle: Sequence[Item]) -> tuple[LoadedImage, LoadedImage]:
    """In packs, and without."""
    if host_isa() != "avx512":
        pytest.skip("packs are for AVX-512")
    code = program(middle)
    in_packs = LoadedImage(compile_kernel(code, 0, CompileOptions()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_runs, "runs", _none)
        return in_packs, LoadedImage(compile_kernel(code, 0, CompileOptions()))


def in_packs_of(middle: Sequence[Item]) -> int:
    flow = discover(program(middle), 0)
    text = build(flow, CompileOptions(), "avx512", ATTRIBUTES["avx512"])[0].text()
    return len(re.findall(r"^loop\.p\d+:", text, re.MULTILINE))


def content_of(rng: random.Random) -> bytes:
    """Dwords that are indices of the rows' and of one another."""
    return struct.pack(f"<{ROWS // 4}i", *(rng.randrange(ROWS // 4 - 8) for _ in range(ROWS // 4)))


PLACES = (
    0,
    4,
    ROWS - 24,
    ROWS - 20,
    ROWS - 16,
    ROWS - 8,
    ROWS,
    ROWS - 6,
    1 << 40,
    -(1 << 62),
)
