"""Lanes of a warp that exchange data through shared memory without a barrier."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from sassxlate import toolchain
from sassxlate.cfg import analyse
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import by_tier, module_text
from sassxlate.lowering.tier.warp.together import together

# Each lane loads what the lane before it has put there, after its own store to the same word: LLVM
# knows that a lane's own two stores are to different words.
SOURCE = r"""
extern "C" __global__ void exchanged(const int *a, int *o) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    s[t] = a[t];
    s[t + 1] = 3 * t;
    int first = s[t], second = s[t + 1];
    s[t + 1] = first + t;
    o[2 * t] = s[t];
    o[2 * t + 1] = second;
}
"""


def test_fences_keep_the_order_of_a_warps_accesses(tmp_path: Path) -> None:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, no NVIDIA wheels")
    source, out = tmp_path / "exchanged.cu", tmp_path / "exchanged.cubin"
    source.write_text(SOURCE)
    command = [*nvcc.command, "-arch=sm_80", "-cubin", "-o", out, source]
    subprocess.run(command, check=True, capture_output=True)
    rules = translate_kernel(parse_cubin(out.read_bytes()), "exchanged")
    facts = together(rules.cfg, analyse(rules.cfg))
    some = [i for b in rules.cfg.blocks for i in b.instructions if i.mnemonic in ("LDS", "STS")]
    assert [i.mnemonic for i in some] == ["STS", "STS", "LDS", "LDS", "STS", "LDS"]
    assert facts.ordered_shared
    assert not facts.volatile
    # Before each store that follows an access, and before a load that follows a store.
    assert facts.exchanges == {some[n].offset for n in (1, 2, 4, 5)}
    text = module_text(rules, DEFAULT)
    assert "volatile" not in text
    assert text.count('fence syncscope("wavefront") acq_rel') == 4
    given = np.random.default_rng(1).integers(-1000, 1000, 32, np.int32)
    device = EmulatedDevice(1 << 16)
    places = device.alloc(given.tobytes()), device.alloc(bytes(256))
    segment = rules.launch.kernarg(struct.pack("<2Q", *places), (32, 1, 1), (1, 1, 1), {}, 0)
    code = by_tier(rules, DEFAULT).code_object
    run_code_object(code, "exchanged", 1, 32, segment, device, CompileOptions())
    got = np.frombuffer(device.read(places[1], 256), np.int32).reshape(32, 2)
    lanes = np.arange(32)
    first = np.where(lanes == 0, given, 3 * (lanes - 1))
    before = np.roll(first + lanes, 1)
    assert np.array_equal(got[:, 0], np.where(lanes == 0, given, before))
    assert np.array_equal(got[:, 1], 3 * lanes)
