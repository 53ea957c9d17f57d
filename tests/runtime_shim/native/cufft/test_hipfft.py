"""Transforms on a card: what hipFFT is called with, by a library of ours in its place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .cufft_api import library_folder

Tool = Callable[..., str]
HERE = Path(__file__).parent

EXPECTED = """\
memory MEMORY
hipfftCreate 1
hipfftXtGetSizeMany 1 n 100 in null 1 0 type 4 out null 1 0 type 4 batch 2 execution 4
hipfftDestroy 1
cufftEstimate1d -> 0
size 8192
cufftSetAutoAllocation -> 0
hipfftCreate 2
hipfftSetAutoAllocation 2 0
hipfftXtMakePlanMany 2 n 8,16 in null 1 0 type 0 out null 1 0 type 4 batch 1 execution 4
cufftMakePlan2d -> 0
size 4096
hipfftSetWorkArea 2 MEMORY
cufftSetWorkArea -> 0
cufftSetStream -> 0
hipfftSetStream 2 (nil)
hipfftXtExec 2 MEMORY OTHER -1
cufftExecR2C -> 0
cufftExecC2C -> 4
hipfftDestroy 2
cufftDestroy -> 0
hipfftCreate 3
hipfftSetAutoAllocation 3 1
hipfftXtMakePlanMany 3 n 4,5 in 6,7 1 42 type 5 out 6,7 2 84 type 5 batch 3 execution 5
cufftPlanMany -> 0
hipfftSetStream 3 (nil)
hipfftXtExec 3 MEMORY MEMORY 1
cufftExecZ2Z -> 0
hipfftCreate 4
hipfftSetAutoAllocation 4 1
hipfftXtMakePlanMany 4 n 9 in null 1 0 type 4 out null 1 0 type 0 batch 1 execution 4
cufftPlan1d -> 0
cufftSetStream -> 0
hipfftSetStream 4 0x2
hipfftXtExec 4 MEMORY OTHER 1
cufftExecC2R -> 0
cufftSetStream -> 0
cufftExecC2R -> 16
cufftPlan1d -> 8
"""


@pytest.fixture
def card(tmp_path: Path, gxx: Tool) -> Path:
    """A folder with a HIP library that is not the emulated device's file, and our hipFFT."""
    device = library_folder() / "libamdhip64.so"
    if not device.is_file():
        pytest.skip("libamdhip64.so is not built (runtime_shim/native/build.sh)")
    shutil.copy(device, tmp_path)
    make(gxx, tmp_path)
    return tmp_path


def make(gxx: Tool, folder: Path, *options: str) -> None:
    """The library in place of hipFFT."""
    gxx("-shared", "-fPIC", *options, HERE / "fake_hipfft.cpp", "-o", folder / "libhipfft.so.0")


def run(card: Path, **variables: str) -> tuple[str, str]:
    """What the program prints, with addresses by name, and our messages."""
    environment = {
        **os.environ,
        "SASSXLATE_HIP": str(card / "libamdhip64.so"),
        **variables,
    }
    # Unbuffered: the library and Python each have a buffer of their own.
    done = subprocess.run(
        ["stdbuf", "-oL", sys.executable, HERE / "on_a_card.py"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0].split()[1]
    text = done.stdout.replace(hex(int(first, 16) + 2048), "OTHER").replace(first, "MEMORY")
    return text, done.stderr


def test_calls(card: Path) -> None:
    text, messages = run(card)
    assert text == EXPECTED
    assert messages.count("SX0780") == 1  # the graph


def test_results_are_passed_on(card: Path) -> None:
    text, _ = run(card, FAKE_FAILS="hipfftXtMakePlanMany", FAKE_RESULT="2")
    assert "cufftMakePlan2d -> 2" in text
    assert text.count("hipfftCreate") == text.count("hipfftDestroy")
    text, _ = run(card, FAKE_FAILS="hipfftXtExec", FAKE_RESULT="6")
    assert "cufftExecR2C -> 6" in text


def test_no_hipfft(card: Path) -> None:
    (card / "libhipfft.so.0").unlink()
    nowhere = str(card / "missing.so")
    text, messages = run(card, SASSXLATE_HIPFFT=nowhere)
    assert "cufftMakePlan2d -> 7" in text
    assert "cufftPlan1d -> 8" in text  # arguments are judged before
    assert messages.count("SX0781") == 1
    assert nowhere in messages


def test_a_hipfft_that_is_too_old(card: Path, gxx: Tool) -> None:
    make(gxx, card, "-DOLD")
    text, messages = run(card)
    assert "cufftMakePlan2d -> 7" in text
    assert "hipfftXtGetSizeMany" in messages
