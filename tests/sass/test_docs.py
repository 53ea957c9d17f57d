"""The pages of docs/sass are what the tables say; ``--bless`` writes them anew."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))

if TYPE_CHECKING:
    from tools import sass_docs
else:
    import sass_docs

LIMIT = 3_000_000  # bytes of all pages


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """All pages by file name."""
    made: dict[str, str] = sass_docs.make()
    return made


def test_pages_are_up_to_date(pages: dict[str, str], request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--bless", default=False):
        sass_docs.write(pages)
    old = list(sass_docs.stale(pages))
    assert old == [], "python tools/sass_docs.py writes them"


def test_there_is_a_page_for_each_mnemonic(pages: dict[str, str]) -> None:
    mnemonics = {row.mnemonic for row in sass_docs.tables.ROWS}
    assert set(pages) == {f"{name}.md" for name in mnemonics} | {"README.md", "layout.md"}
    for name in mnemonics:
        assert f"[{name}]({name}.md)" in pages["README.md"]
    assert sum(len(text.encode()) for text in pages.values()) < LIMIT


def test_bits_add_up() -> None:
    """Each of the 128 bits is shown once, and each field has as many as it says."""
    for row in sass_docs.tables.ROWS:
        for generation in sass_docs.generations(row):
            text, keys = sass_docs.bitmap(row, generation)
            assert len(text) == 128
            for label, mask, _ in sass_docs.fields(row, generation):
                shown = sum(1 << i for i, key in enumerate(text[::-1]) if key == keys.get(label))
                assert shown == mask, (row.mnemonic, label)
            rest = {key for key in text if key not in keys.values()}
            assert rest <= set("01GC.-+!"), row.mnemonic


def test_examples_are_the_golden_words(pages: dict[str, str]) -> None:
    """Nine of ten golden mnemonics of every architecture have an example on their page."""
    for path in sorted(sass_docs.GOLDEN.glob("sm_*.txt")):
        names: set[str] = set()
        for line in path.read_text().splitlines():
            text = re.sub(r"^@\S+ ", "", line.partition(" ")[2])
            names.add(re.split(r"[. ;]", text)[0])
        with_one = [n for n in names if f"\n{path.stem:<6} " in pages.get(f"{n}.md", "")]
        assert len(with_one) > 0.9 * len(names), path.stem
