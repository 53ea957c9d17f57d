"""Which compute capability the device reports: the newest with code for it, 8.0 with cuDNN."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import HERE, Run
from .driver_program import Tool

_LIBRARIES = ("libcudnn.so.9", "libcudnn_ops.so.9", "libcudnnx.so")


@pytest.fixture(scope="module")
def folder(nvcc: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with code for sm_80 and sm_90, one for sm_90 alone, and stand-ins of libraries."""
    folder = tmp_path_factory.mktemp("capability")
    source = HERE / "programs" / "capability.cu"
    new = "-gencode=arch=compute_90,code=sm_90"
    nvcc("-gencode=arch=compute_80,code=sm_80", new, source, "-o", folder / "both")
    nvcc(new, source, "-o", folder / "newer")
    (folder / "empty.cpp").write_text("")
    nvcc("-shared", "-cudart", "none", folder / "empty.cpp", "-o", folder / _LIBRARIES[0])
    for name in _LIBRARIES[1:]:
        (folder / name).write_bytes((folder / _LIBRARIES[0]).read_bytes())
    return folder


@pytest.mark.parametrize(
    ("program", "library", "said"),
    [
        ("both", "", "9.0"),
        *(("both", name, "8.0") for name in _LIBRARIES[:2]),
        ("both", _LIBRARIES[2], "9.0"),
        ("newer", _LIBRARIES[0], "9.0"),
    ],
)
def test_what_is_reported(folder: Path, run: Run, program: str, library: str, said: str) -> None:
    done = run(folder / program, *([folder / library] if library else []))
    assert done.stdout == f"{said} cudaSuccess\n", done.stderr


def test_what_is_asked_for_is_reported(folder: Path, run: Run) -> None:
    done = run(folder / "both", folder / _LIBRARIES[0], options=("--arch", "sm_90"))
    assert done.stdout == "9.0 cudaSuccess\n", done.stderr
