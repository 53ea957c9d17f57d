"""A folder with our runtime and detour over a recording driver, and how programs run there."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Result:
    """The results of a program: its status, its own output, the driver's calls, our messages."""

    status: int
    out: str
    calls: list[str]
    messages: list[str]


@dataclass(frozen=True, slots=True)
class Stage:
    """A folder with our libraries and a recording driver beside them."""

    folder: Path

    def run(self, *command: object, shared: bool = False, **variables: str) -> Result:
        """Runs a program as `sassxlate run` does, without the service."""
        environment = {
            **os.environ,
            "SASSXLATE_PRELOAD_TRACE": "1",
            "LD_PRELOAD": str(self.folder / "libsassxlate_preload.so"),
            **variables,
        }
        if shared:
            environment["LD_LIBRARY_PATH"] = str(self.folder)
        done = subprocess.run(
            [str(c) for c in command],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            timeout=60,
        )
        lines = done.stderr.splitlines()
        return Result(
            done.returncode,
            done.stdout,
            [line[5:] for line in lines if line.startswith("CALL ")],
            [line for line in lines if line.startswith("sassxlate: ")],
        )


def stripped(path: Path) -> Path:
    """A copy of the program without any symbols."""
    target = path.with_name(path.name + "_stripped")
    subprocess.run(["strip", "-o", str(target), str(path)], check=True)
    return target
