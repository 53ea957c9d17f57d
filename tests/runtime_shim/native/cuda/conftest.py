"""The driver test program, its kernels, and a way to run it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths

from .driver_program import Built, SharedBuild, Tool, driver_program

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def libraries() -> Path:
    """The directory of the native libraries; skips where they are not built."""
    try:
        return paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def built(shared_build: SharedBuild, nvcc: Tool, libraries: Path) -> Built:
    """driver*.cpp against NVIDIA's own header, kernels.cu in every form of a module."""
    return driver_program(shared_build, nvcc, libraries)


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
