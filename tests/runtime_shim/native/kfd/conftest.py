"""The emulated card: its library, and AMD's userland where it has been fetched."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths, rocm

ROOT = Path(__file__).parents[4]
VERSIONS = ("6.4.3", "7.2.4")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def libraries() -> Path:
    """The directory of the native libraries; skips where they are not built."""
    try:
        folder = paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    if not (folder / "libsassxlate_kfd.so").is_file():
        pytest.skip("libsassxlate_kfd.so is not built (runtime_shim/native/build.sh)")
    return folder


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of this session's own."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest, libraries: Path) -> str:
    """A version of ROCm that has been fetched; skips where it has not."""
    assert libraries
    name = str(request.param)
    if name not in [userland.name for userland in rocm.fetched()]:
        pytest.skip(f"ROCm {name} is not in {rocm.base()} (python -m tools.rocm fetch {name})")
    return name


@pytest.fixture
def on_amd(version: str, cache: Path) -> Run:
    """Runs ``sassxlate ARGUMENTS`` with a version of ROCm; environment in keywords."""

    def go(
        *arguments: object, timeout: float = 300, **env: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "sassxlate", *map(str, arguments)],
            env={
                **os.environ,
                "SASSXLATE_ROCM": version,
                "SASSXLATE_CACHE_DIR": str(cache),
                "SASSXLATE_SERVICE_IDLE": "20",
                **env,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return go


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Lines on standard error, without AMD's own at the process's end."""
    return [line for line in done.stderr.splitlines() if "SharedSignalPool" not in line]


def bundle(code_object: bytes) -> bytes:
    """An offload bundle of gfx1100's code, as clang-offload-bundler writes it."""
    entries = [
        (b"host-x86_64-unknown-linux-gnu-", b""),
        (b"hipv4-amdgcn-amd-amdhsa--gfx1100", code_object),
    ]
    magic = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
    begin = -(-(len(magic) + sum(24 + len(name) for name, _ in entries)) // 4096) * 4096
    table = b"".join(
        struct.pack("<3Q", begin, len(data), len(name)) + name for name, data in entries
    )
    return (magic + table).ljust(begin, b"\0") + code_object
