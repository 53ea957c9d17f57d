"""libnvidia-ml.so.1: a C client, one by ctypes, and the names without a version."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths

HERE = Path(__file__).parent
NAMES = Path(__file__).parents[4] / "runtime_shim" / "native" / "nvml" / "names.inc"
Tool = Callable[..., str]


@pytest.fixture(scope="module")
def libraries() -> Path:
    """The directory of the native libraries; skips where they are not built."""
    try:
        return paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, nvcc: Tool, libraries: Path) -> Path:
    """The C client; its kernel is beside it."""
    folder = tmp_path_factory.mktemp("nvml")
    link = (f"-L{libraries}", "-l:libcuda.so.1", "-l:libnvidia-ml.so.1")
    nvcc("-std=c++17", "-cudart", "none", HERE / "client.cpp", "-o", folder / "client", *link)
    nvcc("-cubin", "-arch=sm_80", HERE / "spin.cu", "-o", folder / "spin.cubin")
    return folder / "client"


def _run(*command: object, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", "run", "--", *map(str, command)],
        env={**os.environ, "SASSXLATE_SERVICE_IDLE": "20", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_facts(client: Path) -> None:
    """What NVML says is what the driver says, and mistakes have NVML's errors."""
    done = _run(client, "facts", SASSXLATE_CC="9.0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "capability 9.0\nversions 580.159.04 13.580.159.04\nPASS\n" in done.stdout
    assert "capability 8.0\n" in _run(client, "facts").stdout


def test_questions_before_a_fork(client: Path) -> None:
    """They initialise nothing: the children of a process that asked can use CUDA."""
    done = _run(client, "forks")
    assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stdout + done.stderr


def test_utilisation_is_measured(client: Path) -> None:
    done = _run(client, "busy", client.with_name("spin.cubin"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("PASS\n")


_ASK = """
import ctypes, sys
cuda, nvml = ctypes.CDLL("libcuda.so"), ctypes.CDLL("libnvidia-ml.so")
versioned = ctypes.CDLL("libcuda.so.1")
address = lambda function: ctypes.cast(function, ctypes.c_void_p).value
print(cuda.cuInit(0), address(cuda.cuInit) == address(versioned.cuInit))
count = ctypes.c_uint(9)
print(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)), nvml.nvmlInit_v2())
print(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)), count.value)
"""


def test_names_without_a_version() -> None:
    """Some programs load libcuda.so; it must be the library that others load as libcuda.so.1."""
    done = _run(sys.executable, "-c", _ASK)
    assert done.stdout == "0 True\n1 0\n0 1\n", done.stderr


def test_every_name(libraries: Path) -> None:
    """All are exported; those without an implementation say so, where NVML is initialised."""
    names = re.findall(r"SX_NAME\((\w+)\)", NAMES.read_text())
    assert len(names) == len(set(names)) >= 400
    nvml = ctypes.CDLL(str(libraries / "libnvidia-ml.so.1"))
    for name in names:
        assert getattr(nvml, name)
    assert nvml.nvmlDeviceGetFanSpeed(None, None) == 1
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetFanSpeed(None, None) == 3
    assert nvml.nvmlShutdown() == 0


_TOLD = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
print(nvml.nvmlInit_v2())
for index in range(2):
    device, text = ctypes.c_void_p(), ctypes.create_string_buffer(96)
    nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
    nvml.nvmlDeviceGetName(device, text, 96)
    print(text.value.decode())
    nvml.nvmlDeviceGetUUID(device, text, 96)
    print(text.value.decode())
    print(nvml.nvmlDeviceGetMemoryInfo(device, text))
    print(nvml.nvmlDeviceGetUtilizationRates(device, text))
print(nvml.nvmlDeviceGetHandleByPciBusId_v2(b"00000000:43:00.0", ctypes.byref(device)))
index = ctypes.c_uint()
nvml.nvmlDeviceGetIndex(device, ctypes.byref(index))
print(index.value)
"""


def test_cards_are_known_without_hip(libraries: Path) -> None:
    """`run` says what cards there are; what only AMD's library knows is not supported."""
    uuid = "0123456789abcdef0123456789abcdef"
    cards = (f"25757220864 0000:03:00.0 {uuid} AMD Radeon RX 7900 XTX",
             f"17163091968 0000:43:00.0 {'00' * 16} gfx1101 card")  # fmt: skip
    variables = {"LD_LIBRARY_PATH": str(libraries), "SASSXLATE_DEVICES": "\n".join(cards)}
    done = subprocess.run(
        [sys.executable, "-c", _TOLD],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "0",
        "AMD Radeon RX 7900 XTX",
        "GPU-01234567-89ab-cdef-0123-456789abcdef",
        "3",
        "3",
        "gfx1101 card",
        "GPU-00000000-0000-0000-0000-000000000000",
        "3",
        "3",
        "0",
        "1",
    ], done.stdout + done.stderr
