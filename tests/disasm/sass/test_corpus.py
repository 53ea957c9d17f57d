"""The tools that judge many files: what they count, and words read back from their texts."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from tools.coverage import corpus
from tools.witness.nvdisasm import roundtrip

ROOT = Path(__file__).resolve().parents[3]


KERNELS = ROOT / "fixtures" / "kernels"
CUBINS = sorted((KERNELS / "sm_80").glob("c*.cubin"))


def test_counts(tmp_path: Path) -> None:
    """Equal sections are kept once and counted as often as they occur, in wheels too."""
    once = corpus.read(CUBINS)
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in CUBINS:
            archive.write(path, path.name)
        archive.writestr("no_code.so", b"text")
    twice = corpus.read([KERNELS / "sm_80", wheel])
    assert not twice.errors
    assert twice.files["some.whl"] == len(CUBINS)
    target = (80, "")
    words, counts = once.words(target)
    total = sum(group[target] for group in once.instructions.values())
    assert counts.sum() == total == twice.instructions["some.whl"][target]
    assert len(np.unique(words, axis=0)) == len(words)
    more, often = twice.words(target)
    where = {word: count for word, count in zip(corpus.integers(more), often, strict=True)}
    for word, count in zip(corpus.integers(words), counts, strict=True):
        assert where[word] >= 2 * count


def test_words_are_read_back() -> None:
    """Each distinct word from its text, with its scheduling information and without."""
    words, _ = corpus.read(CUBINS[:4]).words((80, ""))
    tally = roundtrip.Tally()
    roundtrip.check(80, words, tally, roundtrip.Reader(80))
    assert not tally.failed
    assert tally.control == tally.words == len(words)
    assert tally.plain + tally.hidden == tally.words
