"""The emulated device's library in this process, fed by a service of prepared images."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .hip_api import Hip, library
from .hip_images import StubService, compile_waves

HERE = Path(__file__).resolve().parent


Script = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> StubService:
    """A service of prepared images."""
    if not library().is_file():
        pytest.skip("libamdhip64.so is not built (runtime_shim/native/build.sh)")
    if not all(shutil.which(tool) for tool in ("g++", "objcopy", "nm")):
        pytest.skip("no g++ and binutils to make host images with")
    directory = tmp_path_factory.mktemp("hip")
    code, offsets = compile_waves(directory)
    return StubService(directory, code, offsets)


@pytest.fixture(scope="module")
def environment(
    service: StubService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StubService]:
    """The service and a cache for the library in this process, while a module's tests run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASSXLATE_SOCKET", str(service.path))
        patch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("SASSXLATE_DEVICE_MEMORY", "256M")
        patch.setenv("SASSXLATE_TIER", "llvm")  # the service here has images, no stencils
        yield service


@pytest.fixture(scope="module")
def hip(environment: StubService) -> Hip:
    """The library; do nothing with it that leaves a sticky error: use ``script``."""
    return Hip()


@pytest.fixture
def script(environment: StubService) -> Script:
    """Runs Python text in a process of its own, with ``hip`` and ``build`` at hand."""

    def run(body: str, *, timeout: float = 30, **env: str) -> subprocess.CompletedProcess[str]:
        text = (
            "import ctypes, os, struct, sys, threading, time\n"
            "from ctypes import byref, c_int, c_size_t, c_uint, c_void_p\n"
            "from hip_api import CALLBACK, HOST_FUNCTION, Hip\n"
            "from hip_code_objects import Arg, Kernel, build\n"
            "hip = Hip()\n"
        )
        variables = {
            **os.environ,
            "PYTHONPATH": str(HERE),
            "SASSXLATE_LIB": str(library().parent),
            **env,
        }
        return subprocess.run(
            [sys.executable, "-c", text + body],
            env=variables,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run
