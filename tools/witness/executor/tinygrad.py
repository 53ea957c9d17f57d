"""The emulator of RDNA3 in tinygrad's repository, as another executor.

It is no part of tinygrad's wheel: a checkout of the repository is needed
(test/mockgpu/amd/emu.py).  It compiles each instruction from AMD's pseudocode for the host.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tools.witness.executor.record import Dispatch
from tools.witness.executor.single import Registers, Singles
from tools.witness.pcode.machine import LANES

EMULATOR = "test/mockgpu/amd/emu.py"
_SCC = 253
_LDS_SHIFT, _LDS_STEP = 15, 512  # rsrc2's field of LDS, which the command processor fills in
_MODE_SHIFT = 12  # of FLOAT_MODE in rsrc1


def emulator(checkout: Path) -> Any:
    """The module.  Raises ImportError."""
    sys.path.insert(0, str(checkout))
    return importlib.import_module("test.mockgpu.amd.emu")


def user_data(dispatch: Dispatch, properties: int) -> list[int]:
    """The SGPRs that a wave begins with (LLVM, AMDGPUUsage: Initial Kernel Execution State)."""
    parts = (
        (0, 4, 0),  # the private segment's buffer
        (1, 2, dispatch.address),
        (2, 2, 0),  # the queue
        (3, 2, dispatch.kernarg),
        (4, 2, 0),  # the dispatch's number
        (5, 2, 0),  # flat scratch
        (6, 1, dispatch.scratch),
    )
    out: list[int] = []
    for bit, count, value in parts:
        if properties >> bit & 1:
            out += [value >> 32 * i & 0xFFFFFFFF for i in range(count)]
    return out


def run(dispatch: Dispatch, checkout: Path, singles: Singles) -> None:
    """Run a dispatch whose memory is in place; ``singles`` sees its instructions."""
    emu = emulator(checkout)
    descriptor = dispatch.bytes_at(dispatch.descriptor, 64)
    (entry,) = struct.unpack_from("<q", descriptor, 16)
    rsrc1, rsrc2, properties = struct.unpack_from("<IIH", descriptor, 48)
    lds = -(-dispatch.lds // _LDS_STEP)
    rsrc2 = rsrc2 & ~(0x1FF << _LDS_SHIFT) | lds << _LDS_SHIFT
    if singles.often or singles.correct or singles.attribute:
        _watch(emu, singles, rsrc1 >> _MODE_SHIFT & 0xFF)
    code = dispatch.descriptor + entry
    end = next(r.end for r in dispatch.ranges if r.begin <= code < r.end)
    emu.run_asm(
        code, end - code, *dispatch.groups, *dispatch.workgroup, dispatch.kernarg, rsrc2,
        dispatch.scratch, "rdna3", user_data(dispatch, properties),
    )  # fmt: skip


def _watch(emu: Any, singles: Singles, mode: int) -> None:
    """Have each instruction looked at before and after it runs."""
    waves: dict[int, Registers] = {}
    alive: list[Any] = []
    number = itertools.count()
    begin, decode_at = emu._init_wave, emu._decode_at

    def init_wave(*args: Any) -> Any:
        state = begin(*args)
        alive[:] = [*alive[-64:], state]  # its buffers' addresses are keys below
        at = state.sgpr_buf._buf.va_addr
        vectors = (ctypes.c_uint32 * (256 * LANES)).from_address(state.vgpr_buf._buf.va_addr)
        scalars = (ctypes.c_uint32 * emu.SGPR_COUNT).from_address(at)
        waves[at] = Registers(scalars, vectors, _SCC, mode, next(number))
        return state

    def watched(pc: int, arch: str) -> Any:
        (program, runtime), inst = decode_at(pc, arch)
        ours = singles.instruction(pc)

        def fxn(*pointers: Any) -> None:
            registers = waves[pointers[0].value]
            if singles.attribute:
                singles.note_store(pc, registers)
            wanted = singles.expected(pc, registers)
            given = registers.wave(ours) if wanted is not None else None
            runtime.fxn(*pointers)
            if wanted is not None and given is not None:
                singles.look(pc, given, wanted, registers)
            if ours.op == "s_round_mode":
                registers.mode = registers.mode & ~0xF | ours.imm & 0xF
            elif ours.op == "s_denorm_mode":
                registers.mode = registers.mode & 0xF | (ours.imm & 0xF) << 4

        return (program, SimpleNamespace(fxn=fxn)), inst

    emu._init_wave, emu._decode_at = init_wave, watched
