"""The command of the sanitizers' sweep, over the libraries as they are: it has to fit `run`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths

SAXPY = Path(__file__).resolve().parents[4] / "fixtures" / "programs" / "saxpy"
UNDER = Path(__file__).with_name("under.py")


def test_run_without_a_sanitizer(tmp_path: Path) -> None:
    """A build for UndefinedBehaviorSanitizer brings its own run time, so that nothing is loaded."""
    try:
        libraries = paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    command = [sys.executable, "-P", UNDER, libraries, tmp_path / "report", "ubsan"]
    done = subprocess.run(
        [*command, "run", "--", SAXPY],
        env={**os.environ, "SASSXLATE_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout.endswith("PASS\n")
