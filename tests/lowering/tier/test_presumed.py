"""Branches that whole warps take alike: tested where code depends on it, and trapping otherwise."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate import toolchain
from sassxlate.cfg import analyse
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import by_tier
from sassxlate.lowering.tier.warp.presumed import presumed
from tests.lowering.tier.test_votes import graph

SOURCE = Path(__file__).with_name("whole_warps.cu")
Shape = tuple[int, int, int]

needs_nvcc = pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")


@pytest.fixture(scope="module")
def cubin(tmp_path_factory: pytest.TempPathFactory) -> Cubin:
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    out = tmp_path_factory.mktemp("warps") / "whole_warps.cubin"
    command = [*nvcc.command, "-arch=sm_80", "-cubin", "-o", str(out), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True)
    return parse_cubin(out.read_bytes())


def _words(made: Translated, block: Shape, n: int) -> NDArray[Any]:
    grid = (2, 1, 1)
    count = 2 * block[0] * block[1] * block[2]
    device = EmulatedDevice(1 << 20)
    out = device.alloc(4 * count)
    given = device.alloc(struct.pack("<64I", 0, *range(5, 68)))
    segment = made.launch.kernarg(struct.pack("<QQi", out, given, n), block, grid, {}, 0)
    run_code_object(
        made.code_object, made.kernel.name, grid, block, segment, device, CompileOptions()
    )
    return np.frombuffer(device.read(out, 4 * count), np.uint32)


@needs_nvcc
@pytest.mark.parametrize("name", ["turns", "arms"])
def test_words_are_those_of_the_rules(cubin: Cubin, name: str) -> None:
    rules = translate_kernel(cubin, name)
    made = by_tier(rules, DEFAULT)
    shapes: list[Shape] = [(96, 1, 1), (32, 3, 1), (64, 2, 1), (40, 1, 1)]
    for block in shapes:
        for n in (0, 1, 33, 200):
            wanted = _words(rules, block, n)
            assert np.array_equal(_words(made, block, n), wanted), (block, n)


@needs_nvcc
@pytest.mark.parametrize(
    ("name", "block", "n"), [("turns", (16, 4, 1), 40), ("arms", (48, 2, 1), 3)]
)
def test_lanes_that_do_not_agree_trap(cubin: Cubin, name: str, block: Shape, n: int) -> None:
    """Rows of the block are no whole warps, so the lanes of one go different ways."""
    made = by_tier(translate_kernel(cubin, name), DEFAULT)
    with pytest.raises(EmulatorError, match="trap"):
        _words(made, block, n)


@needs_nvcc
def test_rows_of_half_warps_that_agree(cubin: Cubin) -> None:
    """All are in the first arm: nothing is presumed of a shape, only of a branch."""
    rules = translate_kernel(cubin, "arms")
    block = (16, 6, 1)
    assert np.array_equal(_words(by_tier(rules, DEFAULT), block, 5), _words(rules, block, 5))


# A branch whose condition is P0, with both arms' instructions of no matter.
HEAD = "S2R R0, SR_TID.X\nS2R R1, SR_LANEID\nS2R R9, SR_CTAID.X\n"
TAIL = "@P0 BRA `(.OTHER)\nIADD3 R4, R4, 0x1, RZ\n.OTHER:\nSTG.E [R2], R4\nEXIT\n"
ALIKE = [
    "IADD3 R5, R1, R9, RZ\nISETP.GE.AND P0, PT, R0, R5, PT\n",
    "IMAD R5, R9, c[0x0][0x0], R0\nIADD3 R6, R1, 0x7, RZ\nISETP.LT.AND P0, PT, R5, R6, PT\n",
    "IADD3 R5, R0, -R1, RZ\nISETP.NE.AND P0, PT, R5, RZ, PT\n",
    "LOP3.LUT R5, R0, 0xffffffe0, RZ, 0xc0, !PT\nISETP.NE.AND P0, PT, R5, RZ, PT\n",
    "SHF.R.U32.HI R5, RZ, 0x5, R0\nISETP.NE.AND P0, PT, R5, 0x1, PT\n",
    "LDG.E R5, [R8.64]\nISETP.NE.AND P0, PT, R5, 0x1, PT\n",
    "SHFL.IDX PT, R5, R0, RZ, 0x1f\nISETP.NE.AND P0, PT, R5, 0x1, PT\n",
]
APART = [
    "ISETP.GE.AND P0, PT, R0, R9, PT\n",
    "IADD3 R5, R1, R1, RZ\nISETP.GE.AND P0, PT, R0, R5, PT\n",
    "IADD3 R5, R0, R1, RZ\nISETP.GE.AND P0, PT, R5, R0, PT\n",
    "IADD3 R5, -R1, R9, RZ\nISETP.GE.AND P0, PT, R0, R5, PT\n",
    "IMAD R5, R1, 0x2, R9\nISETP.GE.AND P0, PT, R0, R5, PT\n",
    "LOP3.LUT R5, R0, 0xfffffff0, RZ, 0xc0, !PT\nISETP.NE.AND P0, PT, R5, RZ, PT\n",
    "LOP3.LUT R5, R0, 0xffffffe0, RZ, 0xfc, !PT\nISETP.NE.AND P0, PT, R5, RZ, PT\n",
    "IADD3 R5, R0, 0x1, RZ\nSHF.R.U32.HI R5, RZ, 0x5, R5\nISETP.NE.AND P0, PT, R5, 0x1, PT\n",
    "SHF.R.U32.HI R5, RZ, 0x4, R0\nISETP.NE.AND P0, PT, R5, 0x1, PT\n",
    "LDG.E R5, [R0.64]\nISETP.NE.AND P0, PT, R5, 0x1, PT\n",
    "LDG.E.STRONG.SYS R5, [R8.64]\nISETP.NE.AND P0, PT, R5, 0x1, PT\n",
    "SHFL.IDX PT, R5, R0, R1, 0x1f\nISETP.NE.AND P0, PT, R5, 0x1, PT\n",
    "SHFL.IDX PT, R5, R0, RZ, 0x101f\nISETP.NE.AND P0, PT, R5, 0x1, PT\n",
    "S2R R5, SR_TID.Y\nISETP.NE.AND P0, PT, R5, RZ, PT\n",
    "ISETP.GE.AND P1, PT, R0, 0x7, PT\n@P1 MOV R9, 0x1\nISETP.NE.AND P0, PT, R9, RZ, PT\n",
]


@pytest.mark.parametrize("text", ALIKE)
def test_taken_alike(text: str) -> None:
    cfg = graph(HEAD + text + TAIL)
    assert not analyse(cfg).uniform_branch[0]
    assert presumed(cfg).uniform_branch[0]


@pytest.mark.parametrize("text", APART)
def test_of_nothing_that_lanes_do_apart(text: str) -> None:
    assert not presumed(graph(HEAD + text + TAIL)).uniform_branch[0]


def test_a_value_of_two_arms_is_of_no_kind() -> None:
    apart = "ISETP.GE.AND P1, PT, R0, 0x7, PT\n@P1 BRA `(.MET)\nMOV R9, 0x1\n.MET:\n"
    cfg = graph(HEAD + apart + "ISETP.NE.AND P0, PT, R9, RZ, PT\n" + TAIL)
    assert not any(presumed(cfg).uniform_branch[n] for n in (0, 2))


def test_a_loop_that_is_left_by_a_far_jump() -> None:
    """nvcc writes it as a call."""
    loop = ".HEAD:\nIADD3 R0, R0, 0x20, RZ\nISETP.GE.AND P0, PT, R0, R1, PT\n"
    end = "@P0 CALL.REL.NOINC `(.OTHER)\nBRA `(.HEAD)\n.OTHER:\nEXIT\n"
    cfg = graph(HEAD + loop + end)
    assert not all(analyse(cfg).converged)
    assert all(presumed(cfg).converged)
