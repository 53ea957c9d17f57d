"""Functions of a module that can be called through pointers, and are too many for each kernel."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from sassxlate.disasm.containers.values import Cubin, Function, Reloc
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.errors import EmulatorError, LoweringError
from sassxlate.lowering.abi import link
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from tests.lowering.emulated import load

# Calls the function at the parameter's address unless that is zero, then stores R5.
KERNEL = """\
MOV R5, 0x11 ;
MOV R4, c[0x0][0x218] ;
MOV R20, 0x70 ;
MOV R21, RZ ;
ISETP.NE.AND P0, PT, R4, RZ, PT ;
@!P0 BRA 0x70 ;
CALL.ABS.NOINC R4 ;
MOV R2, c[0x0][0x210] ;
MOV R3, c[0x0][0x214] ;
ULDC.64 UR4, c[0x0][0x208] ;
STG.E desc[UR4][R2.64], R5 ;
EXIT ;
"""
FUNCTION = "MOV R5, 0x22 ;\nRET.ABS.NODEC R20 0x0 ;\n"


def _code(text: str) -> bytes:
    return assemble_listing(text.splitlines(), 90)[""]


def _module() -> Cubin:
    cubin = load("lane_flags", 90)
    (kernel,) = cubin.kernels
    kernel = replace(kernel, code=_code(KERNEL), relocs=())
    function = Function("f", "f", _code(FUNCTION), 0, b"", (), {}, (), (), (), (), ())
    taken = Reloc(".nv.constant4", 0, 2, "f", 0)
    return replace(cubin, kernels=(kernel,), functions=(function,), relocs=(taken,))


def _stored(cubin: Cubin, pointer: int) -> int:
    (kernel,) = cubin.kernels
    done = translate_kernel(cubin, kernel.name)
    device = EmulatedDevice(1 << 20)
    out = device.alloc(bytes(4))
    segment = done.launch.kernarg(
        struct.pack("<QQ", out, pointer).ljust(kernel.param_size, b"\0"), (32, 1, 1), (1, 1, 1), {}
    )
    run_code_object(done.code_object, kernel.name, 1, 32, segment, device)
    return int.from_bytes(device.read(out, 4), "little")


@pytest.mark.sources
def test_a_call_of_one_that_was_left_out_traps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel runs as long as it does not call one."""
    cubin = _module()
    place = link.function_addresses(cubin)["f"]
    assert (_stored(cubin, 0), _stored(cubin, place)) == (0x11, 0x22)
    monkeypatch.setattr(link, "MOST", 1)
    assert link.link_kernel(cubin.kernels[0], cubin).left_out == 1
    assert _stored(cubin, 0) == 0x11
    with pytest.raises(EmulatorError, match="0x57"):
        _stored(cubin, place)


def test_multicast_memory_traps() -> None:
    """LDGMC; there is no such memory."""
    cubin = load("lane_flags", 90)
    (kernel,) = cubin.kernels
    text = KERNEL.replace("CALL.ABS.NOINC R4", "LDGMC.E.ADD.F32.RN.STRONG.SYS R5, [R2.64+URZ]")
    cubin = replace(cubin, kernels=(replace(kernel, code=_code(text), relocs=()),))
    assert _stored(cubin, 0) == 0x11
    with pytest.raises(EmulatorError, match="0x58"):
        _stored(cubin, 1)


def test_a_copy_to_another_block_traps() -> None:
    """The call with which sm_120's code copies to shared memory that is not its block's."""
    cubin = load("lane_flags", 90)
    (kernel,) = cubin.kernels
    code = _code(KERNEL)
    call = 16 * [line.startswith("CALL") for line in KERNEL.splitlines()].index(True)
    name = "__cuda_syscall_cp_async_bulk_unicast"
    kernel = replace(kernel, code=code, relocs=(), externs=(name,), syscall_offsets=(call,))
    cubin = replace(cubin, kernels=(kernel,))
    assert _stored(cubin, 0) == 0x11
    with pytest.raises(EmulatorError, match="0x59"):
        _stored(cubin, 1)
    cubin = replace(cubin, kernels=(replace(kernel, externs=(name, "vprintf")),))
    with pytest.raises(LoweringError, match=name):
        _stored(cubin, 0)
