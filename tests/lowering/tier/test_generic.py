"""Generic addresses: atomics, QSPC, and the address of the parameters, with the rules' results."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.lowering.abi.kernarg import bank_layout
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import by_tier
from tests.lowering.emulated import load

THREADS, WORDS = 64, 8
# R2 = 8 bytes of a thread's own: in shared memory at R0 & 1, or at the end of `out`.  R4 and R6 are
# operands, R14 = out + 32 * thread.
START = """
S2R R0, SR_TID.X ;
SHF.L.U32 R1, R0, 0x3, RZ ;
MOV R16, 0x20 ;
IMAD.WIDE.U32 R14, R0, R16, c[0x0][0x170] ;
LOP3.LUT R17, R0, 0x1, RZ, 0xc0, !PT ;
ISETP.EQ.AND P1, PT, R17, 0x1, PT ;
IADD3 R2, P0, R1, c[0x0][0x170], RZ ;
IMAD.X R3, RZ, RZ, c[0x0][0x174], P0 ;
IADD3 R2, P0, R2, 0x800, RZ ;
IMAD.X R3, RZ, RZ, R3, P0 ;
@P1 MOV R2, R1 ;
@P1 MOV R3, c[0x0][0x1c] ;
IMAD R4, R0, 0x3c01, R1 ;
IMAD R5, R0, 0x7f, R16 ;
IMAD R6, R0, 0x1234567, R1 ;
LOP3.LUT R7, R0, 0x3, RZ, 0xc0, !PT ;
ST.E.64 [R2], R6 ;
MOV R8, 0x77 ;
MOV R9, 0x78 ;
"""
END = """
LD.E.64 R12, [R2] ;
SEL R10, RZ, 0x1, !P2 ;
STG.E [R14], R8 ;
STG.E [R14+0x4], R9 ;
STG.E [R14+0x8], R10 ;
STG.E [R14+0xc], R12 ;
STG.E [R14+0x10], R13 ;
EXIT ;
"""


def _kernel(middle: str) -> Cubin:
    lines = [s for s in f"{START}{middle}{END}".splitlines() if s]
    cubin = load("lane_flags", 80)
    (kernel,) = cubin.kernels
    code = assemble_listing(lines, 80)[""]
    made = replace(kernel, code=code, relocs=(), shared_size=8 * THREADS, local_size=64)
    return replace(cubin, kernels=(made,))


def _ran(done: Translated) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
    device = EmulatedDevice(1 << 20)
    size = (4 * WORDS + 8) * THREADS
    out = device.alloc(bytes(size))
    given = struct.pack("<QQQi", 0x1234, 0, out, 5)
    segment = done.launch.kernarg(given, (THREADS, 1, 1), (1, 1, 1), {})
    run_code_object(done.code_object, "lane_flags", 1, THREADS, segment, device, CompileOptions())
    words = np.frombuffer(device.read(out, 4 * WORDS * THREADS), np.uint32)
    return words.reshape(THREADS, WORDS)


def _same(middle: str) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
    rules = translate_kernel(_kernel(middle), "lane_flags", target=DEFAULT)
    wanted = _ran(rules)
    got = _ran(by_tier(rules, DEFAULT))
    assert np.array_equal(got, wanted), middle
    assert len(np.unique(got[:, 3])) > THREADS // 2
    return got


@pytest.mark.parametrize(
    "text",
    [
        "ATOM.E.ADD.64.STRONG.GPU P2, R8, [R2], R4 ;",
        "ATOM.E.CAS.STRONG.GPU PT, R8, [R2], R6, R4 ;",
        "@P1 ATOM.E.MAX.S32.STRONG.GPU P2, R8, [R2+0x4], R4 ;",
        "ATOM.E.ADD.F16x2.RN.STRONG.GPU P2, RZ, [R2], R4 ;",
        "ATOM.E.ADD.F32.FTZ.RN.STRONG.GPU P2, R8, [R2], R4 ;",
    ],
)
def test_atomics(text: str) -> None:
    """Of shared and global memory in one instruction."""
    got = _same(text)
    if " P2" in text and "@" not in text:
        assert (got[:, 2] == 1).all()


def test_an_atomic_on_the_stack_is_not_done() -> None:
    got = _same(
        "@P1 MOV R2, 0x10 ;\n@P1 IADD3 R2, R2, c[0x0][0x20], RZ ;\n@P1 MOV R3, c[0x0][0x24] ;\n"
        "ST.E.64 [R2], R6 ;\nATOM.E.ADD.STRONG.GPU P2, R8, [R2], R4 ;"
    )
    assert (got[:, 2] == np.tile([1, 0], THREADS // 2)).all()
    assert (got[1::2, 0] == 0x77).all()


def test_qspc() -> None:
    """Which memory an address is in: a bit each of S, L and G."""
    got = _same(
        "ISETP.GT.AND P3, PT, R0, 0x28, PT ;\n@P3 MOV R2, c[0x0][0x20] ;\n"
        "@P3 MOV R3, c[0x0][0x24] ;\nST.E.64 [R2], R6 ;\nMOV R8, RZ ;\nPLOP3.LUT P2, PT, PT, PT, "
        "PT, 0x8, 0x0 ;\n"
        + "".join(
            f"QSPC.E.{space} P0, RZ, [R2] ;\n@P0 IADD3 R8, R8, {1 << n:#x}, RZ ;\n"
            for n, space in enumerate("SLG")
        )
    )
    thread = np.arange(THREADS)
    assert (got[:, 0] == np.where(thread > 0x28, 2, np.where(thread % 2, 1, 4))).all()


def test_the_address_of_the_parameters() -> None:
    got = _same("ULDC.64 UR4, c[0x0][0x40] ;\nMOV R20, UR4 ;\nMOV R21, UR5 ;\n"
                "LD.E.64 R8, [R20+0x160] ;")  # fmt: skip
    assert (got[:, 0] == 0x1234).all()


def test_where_the_parameters_begin_and_end() -> None:
    """From sm_90 on these are words of constant bank 0."""
    layout = bank_layout(90)
    begin, end = layout.param_pointer, layout.param_end
    assert begin is not None
    text = f"""
S2R R0, SR_TID.X ;
MOV R16, 0x20 ;
IMAD.WIDE.U32 R14, R0, R16, c[0x0][{layout.param_base + 16:#x}] ;
MOV R2, c[0x0][{begin:#x}] ;
MOV R3, c[0x0][{begin + 4:#x}] ;
LD.E R8, [R2] ;
IADD3 R9, -R2, c[0x0][{end:#x}], RZ ;
MOV R10, c[0x0][{end + 4:#x}] ;
IADD3 R10, R10, -R3, RZ ;
STG.E [R14], R8 ;
STG.E [R14+0x4], R9 ;
STG.E [R14+0x8], R10 ;
EXIT ;
"""
    cubin = load("lane_flags", 90)
    (kernel,) = cubin.kernels
    code = assemble_listing([s for s in text.splitlines() if s], 90)[""]
    made = replace(kernel, code=code, relocs=())
    rules = translate_kernel(replace(cubin, kernels=(made,)), "lane_flags", target=DEFAULT)
    got = _ran(by_tier(rules, DEFAULT))
    assert np.array_equal(got, _ran(rules))
    assert (got[:, :3] == [0x1234, kernel.param_size - 1, 0]).all()
