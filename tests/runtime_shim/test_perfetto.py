"""`run --trace-format perfetto`: calls, launches and translations with their times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths, perfetto

SAXPY = Path(__file__).resolve().parents[2] / "fixtures" / "programs" / "saxpy"


def test_lines_of_a_record(tmp_path: Path) -> None:
    """What a killed process left unfinished is left out; a note may hold anything."""
    (tmp_path / "cuda-7.times").write_text(
        "1000 500 8 cuInit 0 \n"
        "2000 9000 8 cuLaunchKernel 0 grid 1 1 1 block 32 1 1 shared 0 k<a b>\n"
        "2500 3000 8 (service) 0 translate _Z1kv\n"
        "3000 1 9 cuMemAlloc_v2 -1 \n"
        "4000 12\n"
        "4000 12 8 cuMemcpy"
    )
    (tmp_path / "other.txt").write_text("kept")
    out = perfetto.write(tmp_path, "app")
    document = json.loads(out.read_text())
    name, *events = document["traceEvents"]
    assert (name["ph"], name["pid"], name["args"]) == ("M", 7, {"name": "app"})
    shown = [(e["name"], e["cat"], e["ts"], e["dur"], e["tid"], e["args"]) for e in events]
    launch = "grid 1 1 1 block 32 1 1 shared 0 k<a b>"
    assert shown == [
        ("cuInit", "call", 1.0, 0.5, 8, {"result": 0}),
        ("cuLaunchKernel", "launch", 2.0, 9.0, 8, {"result": 0, "note": launch}),
        ("service: translate", "translation", 2.5, 3.0, 8, {"result": 0, "note": "_Z1kv"}),
        ("cuMemAlloc_v2", "call", 3.0, 0.001, 9, {"result": -1}),
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.txt", "trace.json"]


def test_a_run(tmp_path: Path) -> None:
    """With an empty cache: what the calls waited for lies inside them."""
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    folder = tmp_path / "trace"
    command = [sys.executable, "-P", "-m", "sassxlate", "run", "--trace", str(folder)]
    environment = {**os.environ, "SASSXLATE_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [*command, "--trace-format", "perfetto", "--", str(SAXPY)], text=True, check=False,
        env={**environment, "SASSXLATE_SERVICE_IDLE": "1"}, capture_output=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [path.name for path in folder.iterdir()] == ["trace.json"]
    document: dict[str, Any] = json.loads((folder / "trace.json").read_text())
    events = [e for e in document["traceEvents"] if e["ph"] == "X"]
    assert {e["cat"] for e in events} == {"call", "launch", "translation"}
    assert {e["args"]["result"] for e in events} <= {0, 4}  # 4: called at exit
    (launch,) = (e for e in events if e["cat"] == "launch")
    assert "block 256 1 1" in launch["args"]["note"]
    for asked in (e for e in events if e["cat"] == "translation"):
        around = [
            e
            for e in events
            if e is not asked
            and e["tid"] == asked["tid"]
            and e["ts"] <= asked["ts"]
            and asked["ts"] + asked["dur"] <= e["ts"] + e["dur"]
        ]
        assert around, asked  # fmt: skip


def test_a_format_needs_a_folder() -> None:
    command = [sys.executable, "-P", "-m", "sassxlate", "run", "--trace-format", "perfetto", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "SX0719" in done.stderr) == (2, True)
