"""Matrices of a warp by the optimising tier, word for word as the rules give them."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT, TARGETS
from sassxlate.lowering.tier.translate import by_tier
from tests.lowering.tier.test_families import listed, text_section

SOURCE = Path(__file__).with_name("matrices.cu")
BLOCKS = 12
Words = NDArray[Any]
# Parts of words that are edges of some format: zeros, denormal numbers, infinities, NaN.
EDGES = (0, 0x8000, 1, 0x3FF, 0x7C00, 0xFC00, 0x7E01, 0x7BFF, 0x7F80, 0xFF80, 0x7FC1, 0x0080)

pytestmark = pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")


@pytest.fixture(scope="module")
def cubins(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Cubin]:
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    out = tmp_path_factory.mktemp("matrices") / "matrices.cubin"
    found: dict[int, Cubin] = {}
    for arch in (80, 90):
        command = [*nvcc.command, f"-arch=sm_{arch}", "-cubin", "-o", str(out), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True)
        found[arch] = parse_cubin(out.read_bytes())
    return found


def _given(seed: int) -> Words:
    """16 words of each lane: of the first blocks numbers near each other, then any, then edges."""
    chance = random.Random(seed)
    words = np.array([chance.getrandbits(32) for _ in range(BLOCKS * 512)], np.uint32)
    halves = words.reshape(BLOCKS, 512).view(np.uint16)
    halves[:4] = halves[:4] & 0x83FF | 0x3800 | (halves[:4] & 7) << 7
    for block in range(8, BLOCKS):
        for n in range(1024):
            if chance.random() < 0.03 * (block - 7):
                halves[block, n] = chance.choice(EDGES)
    return words


def _words(made: Translated, given: Words) -> Words:
    size = BLOCKS * 32 * 16
    device = EmulatedDevice((size + given.nbytes + (1 << 16)) // 4096 * 4096)
    out, into = device.alloc(size), device.alloc(given.tobytes())
    segment = made.launch.kernarg(struct.pack("<QQ", out, into), (32, 1, 1), (BLOCKS, 1, 1), {}, 0)
    run_code_object(
        made.code_object, made.kernel.name, BLOCKS, 32, segment, device, CompileOptions()
    )
    return np.frombuffer(device.read(out, size), np.uint32)


@pytest.mark.parametrize(
    ("name", "arch"),
    [("f16", 90), ("halves", 80), ("moves", 80), ("moves", 90), ("many", 80)],
)
def test_words_are_those_of_the_rules(cubins: dict[int, Cubin], name: str, arch: int) -> None:
    rules = translate_kernel(cubins[arch], name)
    given = _given(1)
    wanted = _words(rules, given)
    assert len(np.unique(wanted)) > 100
    assert np.array_equal(_words(by_tier(rules, DEFAULT), given), wanted)


@pytest.mark.parametrize("target", ["gfx1030", "gfx1100", "gfx1201"])
def test_each_form_is_one_function(cubins: dict[int, Cubin], target: str) -> None:
    """It is called sixteen times, and no address is made for that."""
    processor = TARGETS[target]
    made = by_tier(translate_kernel(cubins[80], "many", target=processor.of_rules), processor)
    said = made.assembly
    assert said.count("s_call_b64") == 16
    assert said.count("s_setpc_b64") == 2
    assert "s_getpc_b64" not in said
    assert "s_swappc_b64" not in said
    assert "s_round_mode" in said
    if toolchain.clang() is not None:
        assert text_section(listed(made), processor) == made.program.data


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(2, 4))
@pytest.mark.parametrize("name", ["f16", "bf16", "tf32", "halves", "many"])
@pytest.mark.parametrize("arch", [80, 90])
def test_more_words(cubins: dict[int, Cubin], name: str, arch: int, seed: int) -> None:
    rules = translate_kernel(cubins[arch], name)
    given = _given(seed)
    assert np.array_equal(_words(by_tier(rules, DEFAULT), given), _words(rules, given))
