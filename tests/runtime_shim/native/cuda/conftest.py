"""The driver test program, its kernels, and a way to run it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths

HERE = Path(__file__).parent
Tool = Callable[..., str]


@pytest.fixture(scope="session")
def libraries() -> Path:
    """The directory of the native libraries; skips where they are not built."""
    try:
        return paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))


@dataclass(frozen=True, slots=True)
class Built:
    """The program and, by name, its images: cubins, fat binaries, PTX."""

    program: Path
    images: dict[str, Path]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, nvcc: Tool, libraries: Path) -> Built:
    """driver*.cpp against NVIDIA's own header, kernels.cu in every form of a module."""
    directory = tmp_path_factory.mktemp("driver")
    program = directory / "driver"
    sources = sorted((HERE / "programs").glob("driver*.cpp"))
    options = ("-std=c++17", "-cudart", "none", f"-L{libraries}", "-l:libcuda.so.1")
    nvcc(*sources, "-o", program, *options)
    kernels = HERE / "programs" / "kernels.cu"
    forms: dict[str, list[str]] = {
        "sm_80": ["-cubin", "-arch=sm_80"],
        "sm_90": ["-cubin", "-arch=sm_90"],
        "fatbin": [
            "-fatbin",
            "-gencode=arch=compute_80,code=sm_80",
            "-gencode=arch=compute_90,code=[sm_90,compute_90]",
            "--compress-mode=size",
        ],
        "ptx": ["-ptx", "-arch=compute_80"],
        "ptx_lineinfo": ["-ptx", "-arch=compute_80", "-lineinfo"],
        "ptx_debug": ["-ptx", "-arch=compute_80", "-G"],
        "ptx_fatbin": ["-fatbin", "-gencode=arch=compute_80,code=compute_80"],
        "ptx_compressed": [
            "-fatbin",
            "-gencode=arch=compute_75,code=compute_75",
            "--compress-mode=size",
        ],
        "rdc": ["-cubin", "-rdc=true", "-arch=sm_80"],
    }
    images: dict[str, Path] = {}
    for name, form in forms.items():
        images[name] = directory / f"{name}.image"
        nvcc(*form, kernels, "-o", images[name])
    return Built(program, images)


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of this session's own."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(cache: Path, libraries: Path) -> Run:
    """`sassxlate run OPTIONS -- COMMAND` in the session's cache; environment in keywords."""

    def go(
        *command: object, options: tuple[object, ...] = (), **env: str
    ) -> subprocess.CompletedProcess[str]:
        arguments = [sys.executable, "-P", "-m", "sassxlate", "run", *map(str, options), "--"]
        return subprocess.run(
            [*arguments, *map(str, command)],
            env={
                **os.environ,
                "SASSXLATE_CACHE_DIR": str(cache),
                "SASSXLATE_SERVICE_IDLE": "20",
                **env,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return go
