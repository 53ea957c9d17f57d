"""Starting the service on demand, from any application."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import HERE, Script
from .hip_api import library

LAUNCH = """
m = hip.load(build([Kernel('k')]))
print(hip.launch(hip.function(m, 'k'), 1, 1, b''))
"""


class Place:
    """A directory with an interpreter that runs the fake service for any command."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.python = directory / "python-of-tests"
        self.python.write_text(
            f'#!/bin/sh\nexec {sys.executable} {HERE / "fake_service.py"} "$@"\n'
        )
        self.python.chmod(self.python.stat().st_mode | stat.S_IXUSR)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "SASSXLATE_SOCKET": str(self.directory / "s.sock"),
            "SASSXLATE_PYTHON": str(self.python),
            "SASSXLATE_CACHE_DIR": str(self.directory / "cache"),
        }

    @property
    def starts(self) -> list[dict[str, Any]]:
        path = self.directory / "starts"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    for start in made.starts:
        try:
            command = Path(f"/proc/{start['pid']}/cmdline").read_bytes()
        except OSError:
            continue
        if b"fake_service" in command:
            os.kill(start["pid"], signal.SIGTERM)


def test_the_service_is_apart_from_the_application(script: Script, place: Place) -> None:
    body = (
        "import signal\n"
        "caught = []; signal.signal(signal.SIGCHLD, lambda *a: caught.append(a))\n"
        "extra = os.open('/dev/null', os.O_RDONLY); os.set_inheritable(extra, True)\n"
        + LAUNCH
        + "try:\n    os.wait()\nexcept ChildProcessError:\n    print('no child', caught)\n"
    )
    done = script(body, **place.environment, CUDA_VISIBLE_DEVICES="0", LD_LIBRARY_PATH="/nowhere")
    assert (done.stdout, done.stderr) == ("801\nno child []\n", "sassxlate: SX0601: refused\n")
    (start,) = place.starts
    assert start["argv"][:3] == ["-P", "-m", "sassxlate.runtime_shim.service"]
    assert start["argv"][3:] == [
        *("--socket", str(place.directory / "s.sock")),
        *("--cache", str(place.directory / "cache")),
    ]
    assert start["cwd"] == "/"
    assert start["descriptors"][:3] == [0, 1, 2]
    assert len(start["descriptors"]) == 4  # and that of the listing itself
    assert start["session"] not in (start["pid"], os.getsid(0))
    names = set(start["environment"])
    assert not names & {"LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "CUDA_VISIBLE_DEVICES"}
    assert {"SASSXLATE_SOCKET", "PATH"} <= names


def test_the_python_path_of_the_service_has_a_variable_of_its_own(
    script: Script, place: Place
) -> None:
    script(LAUNCH, **place.environment, SASSXLATE_PYTHONPATH="/some/where")
    assert place.starts[0]["environment"]["PYTHONPATH"] == "/some/where"


def test_processes_that_start_at_once_start_one_service(place: Place) -> None:
    text = (
        "from hip_api import Hip\nfrom hip_code_objects import Kernel, build\nhip = Hip()\n"
        + LAUNCH
    )
    environment = {
        **os.environ,
        **place.environment,
        "PYTHONPATH": str(HERE),
        "SASSXLATE_LIB": str(library().parent),
    }
    if not library().is_file():
        pytest.skip("libamdhip64.so is not built (runtime_shim/native/build.sh)")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", text], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(5)
    ]
    assert [process.communicate(timeout=120)[0] for process in running] == ["801\n"] * 5
    assert len(place.starts) == 1


@pytest.mark.parametrize("python", ["/nonexistent/python", "/bin/false"])
def test_an_interpreter_that_does_not_work_is_an_error(
    script: Script, place: Place, python: str
) -> None:
    began = time.monotonic()
    done = script(LAUNCH, **{**place.environment, "SASSXLATE_PYTHON": python})
    assert done.stdout == "304\n"
    assert "SX0651: kernel k: no service to compile it: " in done.stderr
    assert python in done.stderr
    assert time.monotonic() - began < 19  # a service that starts has 20 s


@pytest.mark.parametrize("kind", ["text", "link"])
def test_the_interpreter_may_be_named_beside_the_library(
    script: Script, place: Place, kind: str
) -> None:
    directory = place.directory / "lib"
    directory.mkdir()
    shutil.copy(library(), directory)
    if kind == "text":
        (directory / "python").write_text(f"{place.python}\n")
    else:
        (directory / "python").symlink_to(place.python)
    environment = {**place.environment, "SASSXLATE_PYTHON": ""}
    text = f"os.environ['SASSXLATE_LIB'] = {str(directory)!r}; hip = Hip()\n"
    assert script(text + LAUNCH, **environment).stdout == "801\n"
    assert len(place.starts) == 1


def test_a_connection_that_breaks_is_made_again(script: Script, place: Place) -> None:
    done = script(LAUNCH, **place.environment, SASSXLATE_TEST_DROP="2")
    assert (done.stdout, done.stderr) == ("801\n", "sassxlate: SX0601: refused\n")


def test_directories_that_others_may_write_are_not_used(script: Script, place: Place) -> None:
    shared = place.directory / f"sassxlate-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    environment = {
        **place.environment,
        "SASSXLATE_SOCKET": "",
        "XDG_RUNTIME_DIR": str(place.directory),
    }
    done = script(LAUNCH, **environment)
    assert done.stdout == "304\n"
    assert "not a private directory" in done.stderr
    assert place.starts == []
