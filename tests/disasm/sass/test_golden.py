"""Texts of real words, one of each form, as nvdisasm printed them; rewritten by ``--bless``."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate.disasm.sass import BadWord, decode, decode_section
from sassxlate.disasm.sass.tables.spec import GENERATION_OF
from tools.generate import sass_golden
from tools.witness.nvdisasm import witness as sass_witness

FILES = sorted(sass_golden.GOLDEN.glob("sm_*.txt"))


def _arch(path: Path) -> int:
    return int(path.stem.removeprefix("sm_"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_text(path: Path, request: pytest.FixtureRequest) -> None:
    """Every word prints as nvdisasm prints it."""
    arch = _arch(path)
    rows = sass_golden.read_golden(path)
    if request.config.getoption("--bless", default=False):
        witness: sass_witness.Witness = request.getfixturevalue("witness")
        words = [word for word, _ in rows]
        texts = witness.texts(arch, words, at_zero=True)
        kept = [(w, t) for w, t in zip(words, texts, strict=True) if t is not None]
        sass_golden.write_golden(path, kept)
        rows = kept
    wrong = [
        f"{word:#034x}\n  want {want}\n  got  {got}"
        for word, want in rows
        if (got := decode(word, 0, arch).text) != want
    ]
    assert not wrong, "\n".join(wrong)


def test_every_generation_has_golden_words() -> None:
    """No encoding generation is without a file, and none is too large to review."""
    generations = {GENERATION_OF[_arch(path)] for path in FILES}
    assert generations == set(GENERATION_OF.values())
    for path in FILES:
        assert path.stat().st_size < 200_000, path.name
        assert len(sass_golden.read_golden(path)) > 500, path.name


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_section_is_its_words(path: Path) -> None:
    """Decoding a section gives what decoding its words one by one gives."""
    arch = _arch(path)
    words = [word for word, _ in sass_golden.read_golden(path)]
    section = decode_section(b"".join(w.to_bytes(16, "little") for w in words), arch)
    assert not section.errors
    for i, (word, item) in enumerate(zip(words, section.instructions, strict=True)):
        assert not isinstance(item, BadWord)
        assert item == decode(word, 16 * i, arch)
