"""The meanings of SASS against an H200: every measured word, every vector, to the bit.

Exceptions: the multi-function unit is compared within PTX's bounds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.ir import Const, PredFile, RegFile, Special
from sassxlate.disasm.sass.meaning import NoMeaning, evaluate, meanings
from sassxlate.errors import DecodeError
from sassxlate.vectors import Vec, Vectors, vec

from .silicon import VECTORS, Form, Words, differing, forms, inputs, measured

# Where the template's values stand: register -> word of the input.
_REGISTERS = {4: 0, 5: 1, 2: 2, 3: 3, 8: 4, 9: 5, 10: 6, 11: 7}
# What is left undescribed, and refused; a form that becomes described lowers its number.
_UNDESCRIBED = 126


@dataclass(frozen=True, slots=True)
class _Lanes:
    """The values of 512 lanes."""

    words: Words

    def reg(self, file: RegFile, index: int) -> Vec:
        assert file == "R"
        return vec(self.words[:, _REGISTERS[index]], 32)

    def pred(self, file: PredFile, index: int) -> Vec:
        assert file == "P"
        return vec(self.words[:, 8] >> np.uint32(index) & 1, 1)

    def const(self, operand: Const, word: int) -> Vec:
        raise NotImplementedError

    def special(self, operand: Special) -> Vec:
        raise NotImplementedError


def meant(form: Form) -> Words:
    """(vector, word) as the meaning computes it; NoMeaning or DecodeError where there is none."""
    ins = decode(form.word, 0, 90, strict=False)  # some words have a bit that means nothing
    meaning = meanings().get(ins.mnemonic)
    if meaning is None:
        raise NoMeaning(ins.mnemonic)
    before = inputs()[form.kind]
    out = np.array(before[:, 6:9])
    for ref, value in evaluate(Vectors(), meaning, ins, _Lanes(before)).items():
        lanes = np.broadcast_to(value.v, (VECTORS,)).astype(np.uint32)
        if ref.file == "R":
            out[:, ref.index - 10] = lanes
        else:
            at = np.uint32(ref.index)
            out[:, 2] = out[:, 2] & ~np.uint32(1 << ref.index) | lanes << at
    return out


def test_all_measured_words() -> None:
    verdicts: Counter[str] = Counter()
    wrong: list[str] = []
    for form in forms():
        try:
            actual = meant(form)
        except (NoMeaning, DecodeError):
            verdicts["undescribed"] += 1
            continue
        real = measured()[form.number]
        loose = meanings()[form.parts[0]].approximate
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
