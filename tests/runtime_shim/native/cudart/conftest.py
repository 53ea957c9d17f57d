"""The recording driver's folder, and programs with a statically linked runtime."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from .stage import Stage

Tool = Callable[..., str]
HERE = Path(__file__).parent
LIBRARIES = ("libcudart.so.12", "libcudart.so.13", "libsassxlate_preload.so")


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory, gxx: Tool) -> Stage:
    """Our runtime and detour over the recording driver; skips where they are not built."""
    folder = tmp_path_factory.mktemp("stage")
    for name in LIBRARIES:
        with resources.as_file(resources.files("sassxlate.runtime_shim") / "lib" / name) as path:
            if not path.is_file():
                pytest.skip(f"{name} is not built (runtime_shim/native/build.sh)")
            shutil.copy(path, folder)
    soname = "-Wl,-soname,libcuda.so.1"
    target = folder / "libcuda.so.1"
    gxx("-std=c++17", "-shared", "-fPIC", soname, HERE / "fake_driver.cpp", "-o", target)
    return Stage(folder)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, nvcc: Tool) -> Path:
    """The folder with flow, flow_shared, flow_own_stream and liblibrary.so."""
    folder = tmp_path_factory.mktemp("programs")
    source = HERE / "programs" / "flow.cu"
    nvcc("-arch=sm_80", source, "-o", folder / "flow")
    nvcc("-arch=sm_80", "-cudart", "shared", source, "-o", folder / "flow_shared")
    nvcc("-arch=sm_80", "-default-stream", "per-thread", source, "-o", folder / "flow_own_stream")
    library = HERE / "programs" / "library.cu"
    flags = ("-Xcompiler", "-fPIC", "-shared")
    nvcc("-arch=sm_80", *flags, library, "-o", folder / "liblibrary.so")
    return folder
