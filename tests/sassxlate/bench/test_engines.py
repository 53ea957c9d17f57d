"""`bench engines`: a program with the rules' code and with the optimising tier's, in turn."""

from __future__ import annotations

import ctypes
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sassxlate.bench import engines, engines_child
from sassxlate.bench.figures import Figure
from sassxlate.cli import cli
from sassxlate.errors import ShimError, UsageError
from sassxlate.lowering.trace.recording import MAGIC, Recorded
from sassxlate.runtime_shim import paths

pytestmark = pytest.mark.usefixtures("valid_documents")

PROGRAMS = Path(__file__).resolve().parents[3] / "fixtures" / "programs"


def test_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("SASSXLATE_SERVICE_IDLE", "10")
    asked = ["bench", "engines", str(PROGRAMS), "--only", "saxpy", "--repeat", "1"]
    done = CliRunner().invoke(cli, [*asked, "--format", "json"])
    assert done.exit_code == 0, done.output
    program, mean, *_ = json.loads(done.stdout)["figures"]
    assert program["name"] == "saxpy: rules / llvm (CPU)"
    assert (program["repeats"], program["median"] > 0) == (1, True)
    assert mean["name"] == "geometric mean of the 1"
    assert mean["median"] == pytest.approx(program["median"])
    assert re.fullmatch(r"[\d.e-]+ and [\d.e-]+ ms, \d+ replays", program["note"])


def test_what_is_rated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are; too little work is not in the mean of those that compute."""
    for name in ("idle", "little", "much"):
        (tmp_path / name).write_text("#!/bin/true")
        (tmp_path / name).chmod(0o700)
    times = {"much": (0.03, 0.02), "little": (0.00004, 0.00008)}

    def record(program: Path, *_: object) -> Path | None:
        return program if program.name in times else None

    def replay(program: Path, *_: object, turned: bool) -> engines.Times:
        return engines.Times(times[program.name], 7, (0, 3 if program.name == "much" else 0))

    monkeypatch.setattr(engines, "recorded", record)
    monkeypatch.setattr(engines, "codes_of", record)
    monkeypatch.setattr(engines, "replayed", replay)
    found = engines.measure(tmp_path, ("rules", "llvm"), 3)

    def shown(figure: Figure) -> tuple[float, float | None]:
        return round(figure.median, 3), figure.target

    assert [shown(f) for f in found] == [(0.5, 1.0), (1.5, 1.0), (0.866, None), (1.5, 1.15)]
    assert found[0].note == "0.04 and 0.08 ms, 7 replays"
    assert found[1].note.endswith("7 replays; llvm: 3 words of memory other than recorded")
    with pytest.raises(UsageError, match="no executable"):
        engines.measure(tmp_path, ("rules", "llvm"), 1, "idle")


def test_the_sum_over_launches() -> None:
    rows = [
        {"seconds": [1.0, 2.0], "weight": 1, "words": [0, 1], "replays": 9},
        {"seconds": [0.5, 0.25], "weight": 4, "words": [0, 2], "replays": 7},
    ]
    assert engines.times_of(rows) == engines.Times((3.0, 3.0), 7, (0, 3))


def test_which_launches_are_replayed(tmp_path: Path) -> None:
    """Some of each kernel that has code, each standing for as many; none that faulted."""
    record = tmp_path / "launches-1"
    with record.open("wb") as file:
        file.write(MAGIC + b"piece 4096 8\n")
        for n in range(30):
            key, name = ("other", "g") if n == 5 else ("key", "f")
            file.write(f"launch {key} 1 1 1 32 1 1 0 0 64 4 {name}\n".encode())
            file.write(n.to_bytes(4, "little"))
            file.write(f"end {int(n == 0)}\n".encode())
    launches = engines_child.Launches(record, {"key": []})
    found = [int.from_bytes(one.kernarg, "little") for one in launches]
    assert engines_child.picked(29) == [0, 2, 4, 7, 9, 12, 14, 16, 19, 21, 24, 26]
    assert found == [2, 4, 8, 10, 13, 15, 17, 20, 22, 25, 27]  # the kernel's, after its first
    assert {launches.weight(one) for one in launches} == {29 / 12}
    assert engines_child.picked(3) == [0, 1, 2]


def test_memory_is_restored() -> None:
    """The pages that any code changed; words that it left otherwise than recorded are counted."""
    memory = ctypes.create_string_buffer(10000)
    base = ctypes.addressof(memory)
    before = np.arange(10000, dtype=np.uint8)
    after = before.copy()
    after[5] ^= 1
    where = {base: before}, {base: after}
    one = Recorded(0, "f", "key", (1, 1, 1), (32, 1, 1), 0, False, b"", *where, 0)
    state = engines_child.State(one)
    assert memory.raw == before.tobytes()
    memory[5] = bytes([before[5] ^ 1])
    assert state.differing() == 0
    memory[9998] = memory[9999] = b"?"
    assert state.differing() == 1
    state.restore()
    assert memory.raw == before.tobytes()
