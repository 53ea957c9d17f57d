"""Records of runs that no run of an application made: they name files and kernels."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sassxlate.errors import ServiceError
from sassxlate.runtime_shim.cache import runs
from sassxlate.runtime_shim.cache.store import Cache

GOOD: dict[str, Any] = {
    "schema": 1, "application": ["/bin/a"], "tag": "t", "compiled": True,
    "used": [{"file": "/bin/a", "size": 1, "modified_ns": 2, "cc": 80, "kernels": ["k"]}],
}  # fmt: skip


def _with(**used: Any) -> dict[str, Any]:
    return {**GOOD, "used": [{**GOOD["used"][0], **used}]}


@pytest.mark.parametrize(
    "made",
    [
        _with(size=float("inf")), _with(size=float("nan")), _with(size=-1), _with(cc=1000),
        _with(cc=10**300), _with(modified_ns=1 << 63), _with(file="a\0b"), _with(file="\ud800"),
        _with(file=5), _with(kernels=["a\0"]), _with(kernels=[["k"]]), _with(kernels=7),
        {**GOOD, "application": ["\0"]}, {**GOOD, "used": {"file": 1}}, {**GOOD, "schema": [1]},
    ],
    ids=repr,
)  # fmt: skip
def test_values_that_no_run_has(made: dict[str, Any], tmp_path: Path) -> None:
    """An infinite size ended the service at its start, and a NUL in a name any run."""
    Cache(tmp_path, runs.TAG).write(runs.AREA, f"{runs.key(['x'])}.json", json.dumps(made).encode())
    assert runs.find(tmp_path, ["x"]) is None
    copied = tmp_path / "copied"
    copied.write_text(json.dumps(made))
    with pytest.raises(ServiceError, match="SX0917"):
        runs.read(copied)


def test_a_record_that_is_good(tmp_path: Path) -> None:
    """The one that the bad ones differ from."""
    Cache(tmp_path, runs.TAG).write(runs.AREA, f"{runs.key(['x'])}.json", json.dumps(GOOD).encode())
    found = runs.find(tmp_path, ["x"])
    assert found is not None
    assert found.names() == {"k"}


@pytest.mark.parametrize("how", ["endless", "large", "pipe", "writable", "link"])
def test_files_that_are_none_of_the_caches(how: str, tmp_path: Path) -> None:
    """They are not read, or not to their end."""
    path = runs.record_path(tmp_path, runs.key(["x"]))
    path.parent.mkdir(parents=True, mode=0o700)
    if how == "endless":
        path.symlink_to("/dev/zero")
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "link":
        (tmp_path / "else").write_text(json.dumps(GOOD))
        path.symlink_to(tmp_path / "else")
    else:
        size = 1 << 32 if how == "large" else 0
        path.write_text(json.dumps(GOOD))
        path.chmod(0o666 if how == "writable" else 0o600)
        if size:
            os.truncate(path, size)  # a hole
    assert runs.find(tmp_path, ["x"]) is None


def test_a_large_copy(tmp_path: Path) -> None:
    with open(tmp_path / "record", "wb") as file:
        file.truncate(1 << 32)
    with pytest.raises(ServiceError, match="too large"):
        runs.read(tmp_path / "record")
