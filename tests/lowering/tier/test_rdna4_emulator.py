"""RDNA4's code, run by an emulator that is not ours: the one in tinygrad's repository.

It is no part of tinygrad's wheel: ``TINYGRAD_CHECKOUT`` names a checkout (revision a9069c1 was
tried), ``CC`` a clang.  Where its result is not the contract's, RDNA3's code of the same kernel,
which the emulated device runs rightly, must give the same words there: then the difference is the
emulator's (`tools/witness/executor/tinygrad.toml`), and none of the code for RDNA4.
"""

from __future__ import annotations

import os
import struct
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.rdna3.tables.kernel_descriptor import SIZE
from sassxlate.lowering.emulate.runner import EmulatedDevice
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import TARGETS, Target
from sassxlate.lowering.tier.refusal import Refused
from sassxlate.lowering.tier.translate import by_tier
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS
from tests.lowering.emulated import KERNELS, Words, constant_banks, load
from tools.witness.executor.tinygrad import emulator, user_data

CHECKOUT = os.environ.get("TINYGRAD_CHECKOUT", "")
# What stops the emulator.
STOPS = {
    "cas64_loop": "global_atomic_cmpswap_b64 never succeeds",
    "function_pointers": "flat accesses are not known",
    "shared_atomics": "its process ends, with RDNA3's code, too",
}
_LDS_SHIFT, _LDS_STEP = 15, 512  # rsrc2's field, which the command processor fills in
_AFTER = bytes.fromhex("00009fbf") * 64  # s_code_end

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(not CHECKOUT, reason="TINYGRAD_CHECKOUT names no checkout of tinygrad"),
]


@cache
def executor() -> Any:
    """The emulator; it reads ``glc``, where RDNA4's atomics that give back a value have ``th``."""
    emu = emulator(Path(CHECKOUT))
    known = emu._iattr

    def attribute(inst: Any, name: str, default: int = 0) -> int:
        if name == "glc" and "rdna4" in type(inst).__module__:
            return int(getattr(inst, "th", 0)) & 1
        return int(known(inst, name, default))

    emu._iattr = attribute
    return emu


@cache
def result(name: str, target: Target) -> Words:
    """What a kernel leaves in its output."""
    contract, cubin = CONTRACTS[name], load(name, 80)
    made = by_tier(translate_kernel(cubin, name, target=target.of_rules), target)
    device = EmulatedDevice(1 << 22)  # its addresses are the host's
    out = np.full(contract.out_words, contract.start, np.uint32)
    places = [device.alloc(x.tobytes()) for x in (*contract.inputs(0), out)]
    banks = constant_banks(cubin, made.kernel.constant2, device)
    given = struct.pack("<QQQi", *places, contract.n)
    block, grid = (contract.block, 1, 1), (contract.grid, 1, 1)
    shared = contract.shared_bytes
    kernarg = device.alloc(bytes(made.launch.kernarg(given, block, grid, banks, shared)))
    descriptor = next(s.data for s in Elf(made.code_object).sections if s.name == ".rodata")
    lds, scratch = struct.unpack_from("<II", descriptor[:SIZE])
    rsrc2, properties = struct.unpack_from("<IH", descriptor, 52)
    steps = -(-(lds + shared) // _LDS_STEP)
    code = made.program.data + _AFTER
    dispatch: Any = SimpleNamespace(address=0, kernarg=kernarg, scratch=scratch)
    executor().run_asm(
        device.alloc(code), len(code), *grid, *block, kernarg,
        rsrc2 & ~(0x1FF << _LDS_SHIFT) | steps << _LDS_SHIFT, scratch,
        target.instructions.lower(), user_data(dispatch, properties),
    )  # fmt: skip
    return np.frombuffer(device.read(places[2], out.nbytes), np.uint32)


@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_results_are_those_of_the_contract(name: str) -> None:
    if name in STOPS or not (KERNELS / "sm_80" / f"{name}.cubin").exists():
        pytest.skip(STOPS.get(name, "no such kernel for sm_80"))
    try:
        found = result(name, TARGETS["gfx1201"])
    except Refused as why:
        pytest.skip(str(why))
    contract = CONTRACTS[name]
    if contract.differences(found, contract.expected(*contract.inputs(0))):
        assert np.array_equal(found, result(name, TARGETS["gfx1100"]))
