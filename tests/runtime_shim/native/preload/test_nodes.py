"""Device nodes and the driver's version, which programs look for before they ask CUDA."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths

HERE = Path(__file__).parent
Tool = Callable[..., str]
Run = Callable[..., str]

pytestmark = pytest.mark.skipif(
    os.path.exists("/dev/nvidiactl"), reason="this machine has NVIDIA's driver"
)


@pytest.fixture(scope="module")
def run() -> Run:
    """The output of a command with the preloaded library, environment in keywords."""
    try:
        libraries = paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    preload = libraries / "libsassxlate_preload.so"

    def go(*command: object, **variables: str) -> str:
        done = subprocess.run(
            [*map(str, command)],
            env={**os.environ, "LD_PRELOAD": str(preload), **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout + done.stderr

    return go


@pytest.mark.parametrize("options", [(), ("-D_FORTIFY_SOURCE=2", "-O2")])
def test_every_function(run: Run, gxx: Tool, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Nodes that open and know no ioctl; all other paths and errors are the system's."""
    program = tmp_path / "nodes"
    gxx("-std=c++17", *options, HERE / "nodes.cpp", "-o", program)
    assert run(program, tmp_path) == "PASS\n"
    bare = subprocess.run([program, tmp_path], capture_output=True, text=True, check=False)
    assert "not !stat(device, &s)" in bare.stdout


_LOOK = """
import os
found = [n for n in range(4) if os.path.exists(f"/dev/nvidia{n}")]
print(found, os.path.isdir("/proc/driver/nvidia"))
print(open("/proc/driver/nvidia/version").read().split()[:2], os.access("/dev/nvidiactl", os.R_OK))
"""


def test_python(run: Run) -> None:
    """As JAX looks for a GPU; one node for each card."""
    assert run(sys.executable, "-c", _LOOK) == "[0] True\n['NVRM', 'version:'] True\n"
    cards = "1 0000:03:00.0 00 A\n2 0000:04:00.0 00 B"
    text = run(sys.executable, "-c", _LOOK, SASSXLATE_DEVICES=cards)
    assert text.startswith("[0, 1] True\n")


def test_other_programs(run: Run) -> None:
    assert run("sh", "-c", "test -c /dev/nvidia0 && cat /proc/driver/nvidia/version").startswith(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04 "
    )
    # Listings are the system's.
    assert "nvidia" not in run("ls", "/dev")


def test_run_sets_it() -> None:
    command = [sys.executable, "-P", "-m", "sassxlate", "run", "--", sys.executable, "-c", _LOOK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith("[0] True\n"), done.stderr
    here = subprocess.run(
        [sys.executable, "-c", "import os; print(os.path.exists('/dev/nvidia0'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert here.stdout == "False\n"  # for the program alone
