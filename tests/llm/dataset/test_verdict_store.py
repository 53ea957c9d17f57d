"""Verdicts on disk: what is stored, and the handling of a damaged file."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from sassxlate.llm.dataset.verdict_store import VerdictStore
from sassxlate.lowering.verify import Proved, Refuted, Unknown

VERDICTS = (Proved(), Proved(("NaN payload", "uniform values")), Unknown("time"))


def _filled(path: Path) -> VerdictStore:
    made = VerdictStore(path, "tag")
    for n in range(2000):
        made.write(f"step {n}", VERDICTS[n % 3])
    made.flush()
    return made


def test_verdicts_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "proofs.sqlite3"
    _filled(path)
    again = VerdictStore(path, "tag")
    assert again.read("step 3") == VERDICTS[0]
    assert again.read("step 4") == VERDICTS[1]
    assert isinstance(again.read("step 5"), Unknown)
    assert again.read("step 2000") is None
    assert VerdictStore(path, "other sources").read("step 3") is None
    again.write("r", Refuted(defect="it writes too much"))
    again.flush()
    assert isinstance(again.read("r"), Refuted)


def test_no_database_at_all(tmp_path: Path) -> None:
    path = tmp_path / "proofs.sqlite3"
    path.write_bytes(b"this is something else" * 1000)
    made = _filled(path)
    assert made.read("step 3") == VERDICTS[0]
    (tmp_path / "folder.sqlite3").mkdir()
    nowhere = _filled(tmp_path / "folder.sqlite3")
    assert nowhere.read("step 3") is None


def _damage(path: Path) -> None:
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


@pytest.mark.parametrize("first", ["read", "flush"])
def test_damaged_while_it_is_open(tmp_path: Path, first: str) -> None:
    """A process that finds it begins a new one.  (A build of thirty processes ended with "database
    disk image is malformed", after 120 seconds.)"""
    path = tmp_path / "proofs.sqlite3"
    _filled(path).close()
    made = VerdictStore(path, "tag")
    _damage(path)
    if first == "read":
        assert made.read("step 3") is None
    else:
        made.write("r", Proved())
        made.flush()
    assert made.read("step 4") is None
    made.write("s", Proved())
    made.flush()
    other = VerdictStore(path, "tag")
    assert other.read("s") == Proved()


def test_who_is_late_leaves_the_new_one(tmp_path: Path) -> None:
    """If two processes have a damaged file open, the second does not remove the first one's new
    file."""
    path = tmp_path / "proofs.sqlite3"
    _filled(path).close()
    one, two = VerdictStore(path, "tag"), VerdictStore(path, "tag")
    _damage(path)
    assert one.read("step 3") is None
    one.write("new", Proved())
    one.flush()
    number = path.stat().st_ino
    assert two.read("step 3") is None
    assert path.stat().st_ino == number
    assert two.read("new") == Proved()


def test_only_damage_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "proofs.sqlite3"
    made = _filled(path)
    caught: list[BaseException] = []

    def elsewhere() -> None:
        try:
            made.read("step 3")
        except sqlite3.ProgrammingError as error:
            caught.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert made.read("step 3") == VERDICTS[0]
