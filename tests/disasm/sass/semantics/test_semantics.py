"""The meanings of SASS against an H200: every measured word, every vector, to the bit.

Exceptions: the multi-function unit is compared within PTX's bounds.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from sassxlate.disasm.sass.semantics import NoSemantics, semantics_table
from sassxlate.errors import DecodeError
from tests.lowering.rules.silicon import differing, forms, inputs, measured
from tools.silicon.measure import meant

# What is left undescribed, and refused; a form that becomes described lowers its number.
_UNDESCRIBED = 0


def test_all_measured_words() -> None:
    verdicts: Counter[str] = Counter()
    wrong: list[str] = []
    for form in forms():
        try:
            actual = meant(form.word, 90, inputs()[form.kind])
        except (NoSemantics, DecodeError):
            verdicts["undescribed"] += 1
            continue
        real = measured()[form.number]
        loose = semantics_table()[form.parts[0]].approximate
        bad = differing(form, actual, real) if loose else np.flatnonzero((actual != real).any(1))
        verdicts["differ" if bad.size else "equal"] += 1
        if bad.size:
            at = int(bad[0])
            shown = (
                " ".join(f"{int(word):08x}" for word in words)
                for words in (inputs()[form.kind, at], real[at], actual[at])
            )
            wrong.append(f"{form.text}: {bad.size}: " + " | ".join(shown))
    print(dict(verdicts))
    assert not wrong, "\n".join(wrong)
    assert verdicts["undescribed"] <= _UNDESCRIBED
