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
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
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


NEVER = 0xF << 12  # @!PT


def _compiled(folder: Path, text: str) -> bytes:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, no NVIDIA wheels")
    source, out = folder / "exchanged.cu", folder / "exchanged.cubin"
    source.write_text(text)
    command = [*nvcc.command, "-arch=sm_80", "-cubin", "-o", out, source]
    subprocess.run(command, check=True, capture_output=True)
    return out.read_bytes()


def _accesses(rules: Translated) -> list[Instruction]:
    return [i for b in rules.cfg.blocks for i in b.instructions if i.mnemonic in ("LDS", "STS")]


def _check(rules: Translated) -> None:
    """The results of the tier's code."""
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


def test_fences_keep_the_order_of_a_warps_accesses(tmp_path: Path) -> None:
    rules = translate_kernel(parse_cubin(_compiled(tmp_path, SOURCE)), "exchanged")
    facts = together(rules.cfg, analyse(rules.cfg))
    some = _accesses(rules)
    assert [i.mnemonic for i in some] == ["STS", "STS", "LDS", "LDS", "STS", "LDS"]
    assert facts.ordered_shared
    assert not facts.volatile
    # Before each store that follows an access, and before a load that follows a store.
    assert facts.exchanges == {some[n].offset for n in (1, 2, 4, 5)}
    text = module_text(rules, DEFAULT)
    assert "volatile" not in text
    assert text.count('fence syncscope("wavefront") acq_rel') == 4
    _check(rules)


def test_a_load_that_is_never_done_has_no_fence(tmp_path: Path) -> None:
    """nvcc writes such loads beside copies to shared memory.  The fence is before the next one."""
    more = SOURCE.replace("int first", "int other = s[t + 2]; int first")
    cubin = bytearray(_compiled(tmp_path, more))
    never = _accesses(translate_kernel(parse_cubin(bytes(cubin)), "exchanged"))[2]
    at = bytes(cubin).index(never.word.to_bytes(16, "little"))
    cubin[at : at + 16] = (never.word | NEVER).to_bytes(16, "little")
    rules = translate_kernel(parse_cubin(bytes(cubin)), "exchanged")
    some = _accesses(rules)
    assert [i.text.split()[0] for i in some] == ["STS", "STS", "@!PT", "LDS", "LDS", "STS", "LDS"]
    facts = together(rules.cfg, analyse(rules.cfg))
    assert facts.exchanges == {some[n].offset for n in (1, 3, 5, 6)}
    _check(rules)
