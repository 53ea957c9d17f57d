"""AMD's header, the stand-in for AMD's library, and runs on it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
Tool = Callable[..., str]


def called_names() -> set[str]:
    """The HIP functions that the driver library resolves, from its own list."""
    text = (ROOT / "runtime_shim/native/cuda/hip_api.h").read_text()
    return set(re.findall(r"F\((hip\w+)\)", text))


@pytest.fixture(scope="session")
def amd_include() -> Path:
    """The directory of AMD's HIP header, which the triton wheel carries (HIP 7.1)."""
    spec = importlib.util.find_spec("triton")
    include = Path(spec.origin).parent / "backends/amd/include" if spec and spec.origin else None
    if include is None or not (include / "hip/hip_runtime_api.h").is_file():
        pytest.skip("AMD's HIP header is absent (pip install '.[test]')")
    return include


@pytest.fixture(scope="session")
def libraries() -> Path:
    """The directory of the native libraries; skips where they are not built."""
    try:
        return paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory, gxx: Tool, amd_include: Path) -> Path:
    """The stand-in, under the name that ROCm 6's library has."""
    library = tmp_path_factory.mktemp("hip") / "libamdhip64.so.6"
    options = ("-shared", "-fPIC", "-std=c++20", "-Wall", "-Wextra", "-Werror")
    gxx(*options, f"-I{amd_include}", HERE / "standin.cpp", "-o", library)
    return library


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a command, and its HIP calls in each process."""

    status: int
    output: str
    errors: str
    calls: list[dict[str, Any]]
    folder: Path

    def of(self, name: str) -> list[dict[str, Any]]:
        """The calls of one function in the processes that launched anything, in order."""
        return [call for call in self.application if call["call"] == name]

    @property
    def application(self) -> list[dict[str, Any]]:
        """The calls without those of the probe, which launches nothing."""
        busy = {call["pid"] for call in self.calls if "Launch" in call["call"]}
        return [call for call in self.calls if call["pid"] in busy]

    @property
    def violations(self) -> list[dict[str, Any]]:
        """Calls that AMD's library would have refused or treated differently."""
        return [call for call in self.calls if call["call"] == "VIOLATION"]


Standin = Callable[..., Outcome]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of this session's own."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def on_standin(standin: Path, libraries: Path, cache: Path, tmp_path: Path) -> Standin:
    """Runs ``sassxlate ARGUMENTS`` where the linker finds the stand-in; environment in keywords."""

    def go(*arguments: object, time_limit: float = 120.0, **env: str) -> Outcome:
        folder = tmp_path / "calls"
        folder.mkdir(exist_ok=True)
        log = folder / "calls.jsonl"
        log.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-P", "-m", "sassxlate", *map(str, arguments)],
            env={
                **os.environ,
                "LD_LIBRARY_PATH": str(standin.parent),
                "SX_STANDIN_DEVICE": str(libraries / "libamdhip64.so"),
                "SX_STANDIN_DIR": str(folder),
                "SASSXLATE_CACHE_DIR": str(cache),
                "SASSXLATE_SERVICE_IDLE": "20",
                **env,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=time_limit,
            check=False,
        )
        lines = log.read_text().splitlines() if log.exists() else []
        calls = [json.loads(line) for line in lines]
        return Outcome(done.returncode, done.stdout, done.stderr, calls, folder)

    return go
