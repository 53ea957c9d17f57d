"""Reductions over a warp of values that LLVM knows, of which it took one for the lanes' sum."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass import decode_section
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import by_tier
from tests.lowering.tier.sweep_case import line_of
from tools.sweep import plan

COUNT, RESULTS = 32, 6
SOURCE = r"""
extern "C" __global__ void reduced(unsigned *o, unsigned n) {
    unsigned t = threadIdx.x, *p = o + 6 * t, seven = 7;
    p[0] = __reduce_add_sync(~0u, seven);
    p[1] = __reduce_xor_sync(~0u, seven);
    p[2] = __reduce_or_sync(~0u, seven);
    p[3] = __reduce_max_sync(~0u, seven);
    if (t < n) {
        unsigned m = (1u << n) - 1;
        p[4] = __reduce_add_sync(m, n > 32 ? t : seven);
        p[5] = __reduce_xor_sync(m, n > 32 ? t : seven);
    }
}
"""


@pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")
def test_constants(tmp_path: Path) -> None:
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    source, out = tmp_path / "reduced.cu", tmp_path / "reduced.cubin"
    source.write_text(SOURCE)
    command = [*nvcc.command, "-arch=sm_80", "-cubin", "-o", out, source]
    subprocess.run(command, check=True, capture_output=True)
    cubin = parse_cubin(out.read_bytes())
    instructions = decode_section(cubin.kernels[0].code, 80).instructions
    found = [i for i in instructions if isinstance(i, Instruction) and i.mnemonic == "REDUX"]
    assert len(found) == RESULTS
    rules = translate_kernel(cubin, "reduced")
    device = EmulatedDevice(1 << 16)
    place = device.alloc(bytes(4 * RESULTS * COUNT))
    lanes = 5
    given = struct.pack("<QI", place, lanes)
    segment = rules.launch.kernarg(given, (COUNT, 1, 1), (1, 1, 1), {}, 0)
    code = by_tier(rules, DEFAULT).code_object
    run_code_object(code, "reduced", 1, COUNT, segment, device, CompileOptions())
    got = np.frombuffer(device.read(place, 4 * RESULTS * COUNT), np.uint32).reshape(COUNT, RESULTS)
    assert (got[:, :4] == [7 * COUNT, 0, 7, 7]).all()
    assert (got[:lanes, 4:] == [7 * lanes, 7]).all()
    assert (got[lanes:, 4:] == 0).all()


@pytest.mark.sweep
@pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")
def test_a_sum_that_becomes_one_of_a_constant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """warps_0272 of the random kernels, with 16 registers on sm_90: LLVM finds in a later pass that
    the running lanes all have 7."""
    monkeypatch.setitem(plan.FLAGS, "O3", ("-O3", "-maxrregcount=16"))
    llvm = line_of(tmp_path / "llvm", "warps_0272", 90, shape="warps")
    rules = line_of(tmp_path / "rules", "warps_0272", 90, shape="warps", engine="")
    assert llvm["t"] == "llvm"
    assert llvm["d"] == rules["d"]
