"""tools.corpus: the names in the repository, a draw, and finding the kernels again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from sassxlate.errors import UsageError
from tools import corpus
from tools.corpus import ARCHITECTURES, SOURCES, Source

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "programs"


def test_the_corpus_has_a_thousand_kernels_of_its_sources() -> None:
    names = corpus.read()
    assert len(set(names)) == len(names) == 1000
    assert {name.arch for name in names} == ARCHITECTURES
    counts = Counter((name.wheel, name.file) for name in names)
    for wheel, file in counts:
        sources = [one for one in SOURCES if (one.wheel, one.file) == (wheel, file)]
        assert counts[wheel, file] == sum(one.count for one in sources)
        some = [name.kernel for name in names if name.file == file]
        assert all(any(one.part in kernel for one in sources) for kernel in some)


def test_what_is_drawn_is_found_again(tmp_path: Path) -> None:
    sources = (Source("none==1", "collatz", 2), Source("none==1", "saxpy", 1, "saxpy"))
    drawn = corpus.draw(PROGRAMS, sources, 3)
    assert drawn == corpus.draw(PROGRAMS, sources, 3)
    assert Counter(name.file for name in drawn) == {"collatz": 2, "saxpy": 1}
    file = tmp_path / "names.tsv"
    file.write_text("".join(f"{name.line()}\n" for name in drawn))
    assert corpus.read(file) == drawn
    for name, (found, cubin, kernel) in zip(drawn, corpus.kernels(PROGRAMS, drawn), strict=True):
        assert (found, f"sm_{cubin.arch}", kernel) == (name.file, name.arch, name.kernel)
        assert kernel in {one.name for one in cubin.kernels}


def test_another_version_of_a_wheel_is_refused() -> None:
    drawn = corpus.draw(PROGRAMS, (Source("none==1", "saxpy", 1),), 1)
    with pytest.raises(UsageError, match="SX0802"):
        corpus.kernels(PROGRAMS, [replace(drawn[0], kernel="another")])
    with pytest.raises(UsageError, match="SX0802"):
        corpus.kernels(PROGRAMS, [replace(drawn[0], module=99)])
