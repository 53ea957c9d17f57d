"""Calls of __assertfail, the code addresses that are read for them, and traps: as by the rules."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from sassxlate.disasm.containers.values import Cubin, Reloc
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.errors import SassxlateError
from sassxlate.lowering.abi.hostcalls import FUNCTIONS
from sassxlate.lowering.abi.link import address_words, bank4_size
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT, target_named
from sassxlate.lowering.tier.refusal import Refused
from sassxlate.lowering.tier.translate import by_tier, module_text
from tests.lowering.emulated import load

BLOCK, GRID, HEAD, UNIT = (8, 4, 2), (3, 2, 1), 64, 64
THREADS = 64
RELOC = {80: 0x3A, 90: 0x4B}  # of a call's target
PARAMS = {80: 0x160, 90: 0x210}
# R3: the thread in its block; R9 = out + 16 * (the thread in the grid); c[0x0][out] is out.
START = """
S2R R0, SR_TID.X ;
S2R R1, SR_TID.Y ;
S2R R2, SR_TID.Z ;
IMAD R3, R1, 0x8, R0 ;
IMAD R3, R2, 0x20, R3 ;
S2R R12, SR_CTAID.X ;
S2R R13, SR_CTAID.Y ;
IMAD R12, R13, 0x3, R12 ;
IMAD R12, R12, 0x40, R3 ;
MOV R13, 0x10 ;
IMAD.WIDE.U32 R14, R12, R13, c[0x0][{out:#x}] ;
MOV R4, 0x1234 ;
MOV R5, 0x1 ;
MOV R6, R0 ;
MOV R7, R1 ;
MOV R8, R12 ;
MOV R10, R2 ;
MOV R20, R3 ;
MOV R21, R0 ;
IADD3 R11, R12, 0x7, RZ ;
LOP3.LUT R16, R3, 0x5, RZ, 0xc0, !PT ;
ISETP.EQ.AND P0, PT, R16, 0x5, PT ;
"""
END = """
STG.E [R14], R20 ;
STG.E [R14+0x4], R21 ;
STG.E [R14+0x8], R4 ;
STG.E [R14+0xc], R12 ;
EXIT ;
"""
CALL = "@P0 CALL.ABS.NOINC 0x0 ;\n"


def _kernel(arch: int, middle: str, function: str = "__assertfail") -> Cubin:
    lines = [s for s in f"{START.format(out=PARAMS[arch] + 16)}{middle}{END}".splitlines() if s]
    code = assemble_listing(lines, arch)[""]
    cubin = load("lane_flags", arch)
    (kernel,) = cubin.kernels
    section = f".text.{kernel.name}"
    calls = [n for n, line in enumerate(lines) if "CALL" in line]
    relocs = tuple(Reloc(section, 16 * n, RELOC[arch], function, 0) for n in calls)
    externs = (function,) if calls else ()
    return replace(cubin, kernels=(replace(kernel, code=code, relocs=relocs, externs=externs),))


def _ran(
    done: Translated, cubin: Cubin, ring: int, next_: int
) -> tuple[bytes, Counter[bytes], int]:
    """What it stored, the records, and how many were lost."""
    device = EmulatedDevice(1 << 20)
    records = device.alloc(bytes(ring), 64)
    head = struct.pack("<IIQQQQ", FUNCTIONS["__assertfail"].number, 0, next_, next_ + ring,
                       records, ring - 1)  # fmt: skip
    queue = device.alloc(head.ljust(HEAD, b"\0"))
    bank = bytearray(bank4_size(cubin) or 8)
    for (_, _), at in address_words(cubin).items():
        bank[at : at + 8] = queue.to_bytes(8, "little")
    out = device.alloc(bytes(16 * THREADS * GRID[0] * GRID[1]))
    segment = done.launch.kernarg(
        struct.pack("<QQQi", 0, 0, out, 0), BLOCK, GRID, {"bank4": device.alloc(bytes(bank))}
    )
    run_code_object(
        done.code_object, "lane_flags", GRID, BLOCK, segment, device, CompileOptions(strict=True)
    )
    left = np.frombuffer(device.read(queue, HEAD), np.uint64)
    image = device.read(records, ring)
    whole = [image[at : at + UNIT] for at in range(0, ring, UNIT)]
    written = [r[:56] for r in whole if any(r)]
    assert len(written) == (int(left[1]) - next_) // UNIT
    return device.read(out, 16 * THREADS * 6), Counter(written), int(left[0] >> np.uint64(32))


def _both(cubin: Cubin) -> tuple[Translated, Translated]:
    rules = translate_kernel(cubin, "lane_flags", target=DEFAULT)
    return rules, by_tier(rules, DEFAULT)


@pytest.mark.parametrize("arch", [80, 90])
def test_records_are_those_of_the_rules(arch: int) -> None:
    place = "LEPC R20 ;\n" if arch == 80 else "LEPC R20, 0x40 ;\n"
    cubin = _kernel(arch, place + CALL)
    rules, made = _both(cubin)
    for ring, room in ((1 << 14, 96), (1 << 11, 32)):
        wanted, got = (_ran(done, cubin, ring, (1 << 32) - 128) for done in (rules, made))
        assert got[0] == wanted[0]
        assert sum(wanted[1].values()) == min(room, 96)
        assert got[2] == wanted[2] == 96 - min(room, 96)
        if room == 96:  # otherwise any of the calls may have been first
            assert got[1] == wanted[1]
    lines = Counter(int.from_bytes(r[4:8], "little") for r in got[1])
    assert set(lines.values()) == {1}
    assert all(line & 5 == 5 and line < 384 for line in lines)


def test_a_trap_ends_the_launch() -> None:
    cubin = _kernel(80, "ISETP.EQ.AND P1, PT, R12, 0x55, PT ;\n@P1 BPT.TRAP 0x1 ;\n")
    for done in _both(cubin):
        with pytest.raises(SassxlateError, match="trap"):
            _ran(done, cubin, 1 << 10, 0)
    cubin = _kernel(80, "ISETP.EQ.AND P1, PT, R12, 0x5555, PT ;\n@P1 BPT.TRAP 0x1 ;\n")
    rules, made = _both(cubin)
    assert _ran(made, cubin, 1 << 10, 0) == _ran(rules, cubin, 1 << 10, 0)


@pytest.mark.parametrize("function", ["malloc", "free"])
def test_other_functions_are_refused(function: str) -> None:
    rules = translate_kernel(_kernel(80, CALL, function), "lane_flags", target=DEFAULT)
    with pytest.raises(Refused, match="the driver's functions"):
        by_tier(rules, DEFAULT)


@pytest.mark.parametrize("name", ["gfx1030", "gfx1201"])
def test_of_other_processors(name: str) -> None:
    """The number that makes a record whole is stored for all, after the rest."""
    target = target_named(name)
    rules = translate_kernel(_kernel(80, CALL), "lane_flags", target=target.of_rules)
    assert "release" in module_text(rules, target)
    text = by_tier(rules, target).text.splitlines()
    stores = [n for n, line in enumerate(text) if "global_store_" in line]
    waits = [n for n, line in enumerate(text) if "vscnt" in line or "storecnt" in line]
    assert any(stores[0] < wait < stores[-1] for wait in waits)
