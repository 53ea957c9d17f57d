"""Bit flips of real words, judged by nvdisasm: three verdicts are counted and printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.generate import sass_golden
from tools.witness.nvdisasm import witness as sass_witness

FILES = sorted(sass_golden.GOLDEN.glob("sm_*.txt"))
SEED = 20
QUICK = ("sm_80", "sm_90", "sm_120")  # the others with -m sweep

# Of the words that nvdisasm prints without marks of doubt, the share that we print alike; each
# golden form weighs the same, so rare forms count as much as frequent ones.
FLOOR = 0.90


def _flip(path: Path, count: int, witness: sass_witness.Witness) -> sass_witness.Tally:
    arch = int(path.stem.removeprefix("sm_"))
    words = [word for word, _ in sass_golden.read_golden(path)]
    tally = sass_witness.Tally()
    sass_witness.flips(witness, arch, words, count, SEED, tally)
    return tally


def _check(path: Path, count: int, witness: sass_witness.Witness) -> None:
    tally = _flip(path, count, witness)
    counts = tally.counts
    printed = counts["equal"] + counts["text"] + counts["unknown"]
    print(
        f"{path.stem}: equal {counts['equal']}, text differs {counts['text']}, "
        f"only nvdisasm prints {counts['unknown']}; "
        f"with marks of doubt {counts['lenient']}, only we print {counts['accepted']}, "
        f"neither {counts['rejected']}"
    )
    sass_witness.report({int(path.stem.removeprefix("sm_")): tally})
    assert counts["equal"] / printed > FLOOR
    assert sum(counts.values()) == count


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.stem in QUICK], ids=lambda p: p.stem
)
def test_flips(path: Path, witness: sass_witness.Witness) -> None:
    """A few hundred mutants."""
    _check(path, 400, witness)


@pytest.mark.sweep
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_many_flips(path: Path, witness: sass_witness.Witness) -> None:
    """As above, at length."""
    _check(path, 50_000, witness)


def test_a_word_that_hides_the_rest(witness: sass_witness.Witness) -> None:
    """nvdisasm prints nothing if one word is bad; the witness still gives the others."""
    nop = 0x000FC00000000000_0000000000007918
    assert witness.texts(80, [nop, 0xFFF, nop]) == ["NOP", None, "NOP"]
