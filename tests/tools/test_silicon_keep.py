"""Writing measured words: the files that the tests read, and their exact inverse."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from tests.lowering.rules.silicon import FOLDER, forms, measured
from tools.silicon import keep
from tools.silicon.forms import Word


def test_reads_what_the_tests_read() -> None:
    kept = keep.read(FOLDER)
    assert [word for word, _, _ in kept.forms] == [form.word for form in forms()]
    assert (kept.results == measured()).all()


def test_written_and_read_again(tmp_path: Path) -> None:
    for name in ("forms.txt", "inputs.xz", "results.xz"):
        shutil.copy(FOLDER / name, tmp_path / name)
    old = keep.read(tmp_path)
    more = keep.joined(old, [
        Word(old.forms[0][0], "floats", "-", "there already"), Word(1, "halves", "-", "new"),
        Word(2, "words", "U", "uniform registers: not for this template"),
    ])  # fmt: skip
    assert more == (*old.forms, (1, "halves", "new"))
    chance = np.random.default_rng(1)
    some = chance.integers(0, 1 << 32, (512, 3), dtype=np.uint32)
    changed = keep.Kept(more, np.concatenate([old.results, some[None]]))
    keep.write(tmp_path, changed)
    again = keep.read(tmp_path)
    assert again.forms == more
    assert (again.results == changed.results).all()
