"""Measured words that the translator refuses: ``python -m tools.silicon refused`` counts them."""

from __future__ import annotations

from tools.silicon.refused import refused, single_words, warp_words

from .silicon import FOLDER

# To be lowered when a rule is added, never raised: a rule that refuses more is a step back.
SINGLE = 0
WARPS = 60  # sparse matrices, atomics of 128 bits without locks, ATOM's predicate


def test_single_words() -> None:
    words = single_words(FOLDER)
    assert len(words) >= 2992
    found = list(refused(words))
    assert len(found) <= SINGLE, "\n".join(f"{r.text}: {r.reason}" for r in found)


def test_words_of_warps() -> None:
    words = warp_words()
    assert len(words) >= 2986
    found = list(refused(words))
    assert len(found) <= WARPS, "\n".join(f"{r.text}: {r.reason}" for r in found)


def test_unknown_words_count() -> None:
    """What cannot be decoded strictly, or has no rule, is counted."""
    word, text = single_words(FOLDER)[0]
    unused = [(word | 1 << 90, text), (0xFFF, "none"), (word, text)]
    assert [r.text for r in refused(unused)] == [text, "none"]
