"""What an engine wrote before a program's start is known at the next one without translating."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sassxlate.disasm.containers import Cubin, FatbinEntry, load
from sassxlate.disasm.containers.host import LoadedFile, Origin
from sassxlate.errors import LoweringError, ModelError
from sassxlate.runtime_shim.cache.store import Cache
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.writer import Writer, writer
from sassxlate.runtime_shim.written_before import write_before

ROOT = Path(__file__).resolve().parents[3]
TARGET = "gfx1100"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "fixtures" / "programs" / "saxpy", tmp_path / "saxpy"))


def _engines(root: Path) -> Writer:
    made = writer("llvm", None, 1, TARGET)
    made.place = made.keeps_in(root)
    return made


def _start(root: Path, program: Path, capability: str = "") -> Writer:
    engines = _engines(root)
    assert engines.place is not None
    write_before(program, engines, capability, Cache(engines.place, cache_tag(TARGET)))
    return engines


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that a start has looked at, each of which costs a translation by the rules."""
    names: list[str] = []
    done = Writer.done

    def spy(self: Writer, *what: object) -> bool:
        names.append(str(what[1]))
        return done(self, *what)  # type: ignore[arg-type]

    monkeypatch.setattr(Writer, "done", spy)
    return names


def test_a_second_start_translates_nothing(
    tmp_path: Path, program: Path, looked: list[str]
) -> None:
    root = tmp_path / "cache"
    root.mkdir(mode=0o700)
    first = _start(root, program)
    assert len(looked) == len(first.entries) / 2 == 1  # of the engine, and the cheapest
    _start(root, program)
    assert len(looked) == 1
    # Another capability may select another architecture's code.
    _start(root, program, "8.0")
    assert len(looked) == 2
    # What is gone from the cache is looked for, and made again.
    (folder,) = root.glob("engine-*")
    for entry in folder.rglob("*.hybrid"):
        entry.unlink()
    again = _start(root, program)
    assert (len(looked), len(again.entries)) == (3, 2)
    assert len(list(folder.rglob("*.hybrid"))) == 2
    # So is a file that has changed.
    os.utime(program, ns=(1, 1))
    _start(root, program)
    assert len(looked) == 4
    _start(root, program)
    assert len(looked) == 4


def test_the_code_is_for_the_device_that_will_run(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device is sm_90 at most unless it is asked for, also if the program has sm_120's code.
    Others' cubins are not read."""
    loaded = load(program)
    images, rows = list(loaded.cubins()), list(loaded.entries())
    images += [(origin, replace(c, arch=120)) for origin, c in images if c.arch == 90]
    rows += [(origin, replace(e, arch=120)) for origin, e in rows if e.arch == 90]
    seen: list[int] = []
    read: list[int] = []

    def entries(_: LoadedFile) -> Iterator[tuple[Origin, FatbinEntry]]:
        return iter(rows)

    def cubins(_: LoadedFile, *, arch: int | None = None) -> Iterator[tuple[Origin, Cubin]]:
        for origin, cubin in images:
            if arch in (None, cubin.arch):
                read.append(cubin.arch)
                yield origin, cubin

    def done(_: Writer, cubin: Cubin, _name: str) -> bool:
        seen.append(cubin.arch)
        return True

    monkeypatch.setattr(LoadedFile, "entries", entries)
    monkeypatch.setattr(LoadedFile, "cubins", cubins)
    monkeypatch.setattr(Writer, "done", done)
    root = tmp_path / "cache"
    root.mkdir(mode=0o700)
    for capability in ("", "8.0", "12.0"):
        _start(root, program, capability)
    assert seen == [90, 80, 120]
    assert list(dict.fromkeys(read)) == seen


def test_a_refusal_is_not_repeated_but_a_failure_is(
    tmp_path: Path, program: Path, looked: list[str], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    root = tmp_path / "cache"
    root.mkdir(mode=0o700)
    for error, kept in ((ModelError("SX1014", "it failed"), False),
                        (LoweringError("SX0404", "no rule"), True)):  # fmt: skip

        def fails(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(Writer, "translate", fails)
        _start(root, program)
        before = len(looked)
        _start(root, program)
        assert (len(looked) == before) is kept
    said = capsys.readouterr().err
    assert (said.count("SX1014"), said.count("SX0404")) == (2, 1)
