"""The 769 recorded gfx1100 programs of the shared oracles: equal, or different for a known reason.

They are tinygrad's RDNA3 instruction tests with what its emulator left in memory; what the tests
assert was confirmed on hardware by their authors.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import struct
import zlib
from collections import Counter
from pathlib import Path

import pytest

from sassxlate.errors import SassxlateError
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

_INVALID = (
    "the sign of the NaN of an invalid operation is the recording host's; MODE has no say (3.4.2), "
    "and the section gives none"
)
_MATRIX = "sums in binary16 are refused by name"
# By a part of the test's name, with the section of AMD's RDNA3 ISA manual.
REASONS = {
    "test_v_fract_f32_inf": _INVALID,
    "inf_minus_inf": _INVALID,
    "zero_times_inf": _INVALID,
    "inf_by_zero": _INVALID,
    "test_div_fixup_f32_inf_div_inf": "0xffc00000 in the pseudocode (16.12, V_DIV_FIXUP_F32)",
    "test_div_fixup_f32_zero_div_zero": "0xffc00000 in the pseudocode (16.12, V_DIV_FIXUP_F32)",
    "test_omod_ignored": "output modifiers are ignored where output denormals are kept (7.2.3.1): "
    "recorded as if they were, though other programs flush",
    "test_s_fmamk_f32": "an instruction of RDNA3.5",
    "test_v_interp_p10": "interpolation of SGPRs, which are not VGPRs (16.10)",
    "wmma_f16": _MATRIX,
}
_MODE = 0xC0  # the recording emulator flushes binary32 and keeps binary16's denormals


def _programs(folder: Path) -> list[tuple[str, list[int], bytes, bytes]]:
    path = folder / "oracles" / "rdna3_golden.jsonl.gz"
    if not path.is_file():
        pytest.skip("the recorded programs are absent")
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [
        (r["t"], r["l"], base64.b64decode(r["code"]), zlib.decompress(base64.b64decode(r["out"])))
        for r in rows
    ]


def _verdict(local: list[int], code: bytes, wanted: bytes) -> str:
    options = CompileOptions(float_mode=_MODE, align="unaligned", scratch=1 << 16)
    setup = Setup(lds_size=1 << 16, scratch_size=1 << 16)
    device = EmulatedDevice(1 << 22)
    out = device.alloc(len(wanted) + 4096)
    try:
        loaded = LoadedImage(compile_kernel(code, 0, options))
        run_image(loaded, setup, 1, local, struct.pack("<Q", out), device)
    except SassxlateError as e:
        return e.code
    return "equal" if device.read(out, len(wanted)) == wanted else "differs"


def _check(programs: list[tuple[str, list[int], bytes, bytes]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    unexplained: list[str] = []
    for name, local, code, wanted in programs:
        verdict = _verdict(local, code, wanted)
        counts[verdict] += 1
        if verdict != "equal" and not any(part in name for part in REASONS):
            unexplained.append(f"{name}: {verdict}")
    print(dict(counts))
    assert not unexplained
    return counts


def test_some_programs(shared_dir: Path) -> None:
    chance = random.Random(int(os.environ.get("SASSXLATE_TEST_SEED", "1")))
    _check(chance.sample(_programs(shared_dir), 16))


@pytest.mark.sweep
def test_all_programs(shared_dir: Path) -> None:
    assert _check(_programs(shared_dir))["equal"] == 747
