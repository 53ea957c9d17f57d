"""Questions read back from their text: the same question, of instructions that mean the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sassxlate.disasm.rdna3.instruction import S, V
from sassxlate.disasm.sass.instruction import (
    Const,
    Imm,
    Instruction,
    Mem,
    Operand,
    Pred,
    Reg,
    RegRef,
)
from sassxlate.errors import EncodeError
from sassxlate.llm.language.question import read_question
from sassxlate.lowering.region.places import place_of, words_of
from sassxlate.lowering.region.text import RegionText
from tests.llm.questions import questions

_LEFT_OUT = ("P2R", "R2P", "UP2UR", "UR2UP", "LEPC")  # their text does not say what they do


def _name(ref: RegRef, here: RegionText) -> str | None:
    kind, at = place_of(ref, here.regs)
    return here.names.name.get(V(at) if kind in "vl" else S(at))


def _lows(here: RegionText) -> set[int | None]:
    """The low words of the windows' bases, which are 0."""
    windows = here.block.around.layout
    return {windows.shared_window, windows.local_window}


def _plain(operand: Operand | None, here: RegionText) -> object:
    """An operand by the names of its registers."""
    match operand:
        case Reg() if operand.is_zero:
            return "zero", operand.neg, operand.abs, operand.inv
        case Reg():
            refs = [RegRef(operand.file, operand.index + i) for i in range(operand.width)]
            flags = operand.neg, operand.abs, operand.inv, operand.select
            return [_name(r, here) for r in refs], flags
        case Pred():
            known = operand.index != 7
            name = _name(RegRef(operand.file, operand.index), here) if known else "T"
            return name, operand.inv
        case Mem():
            parts = _plain(operand.base, here), _plain(operand.ureg, here)
            return parts, operand.offset, operand.scale
        case Const() if operand.bank == 0 and operand.place in _lows(here):
            return "zero", operand.neg, operand.abs, operand.inv
        case Const():
            known_ = _lows(here)
            places: list[object] = []
            for at in words_of(operand):
                own = operand.bank == 0 and not known_.isdisjoint({at, at - 4})
                place = here.regs.consts.get((operand.bank, at))
                places.append(at if own or place is None else here.names.name.get(S(place.index)))
            flags_ = operand.neg, operand.abs, operand.inv, operand.select, operand.width
            bank = operand.bank if operand.index is not None else None
            return places, bank, _plain(operand.index, here), flags_
        case Imm():
            return replace(operand, value=operand.value & (1 << operand.bits) - 1)
        case _:
            return operand


def _meaning(ins: Instruction, here: RegionText) -> object:
    described = [o.desc for o in ins.operands.values() if isinstance(o, Mem)]
    hidden = {RegRef("UR", d.index + i) for d in described if d is not None for i in (0, 1)}
    return (
        ins.mnemonic,
        ins.modifiers,
        _plain(ins.guard, here),
        {role: _plain(o, here) for role, o in ins.operands.items()},
        {_name(r, here) for r in ins.reads - hidden} - {None},
        {_name(r, here) for r in ins.writes},
    )


@pytest.mark.parametrize("arch", [80, 90, 120])
def test_what_is_read_back_is_what_was_asked(arch: int) -> None:
    read = left = 0
    for question in questions(arch, 6):
        if any(i.mnemonic in _LEFT_OUT for i in question.block.instructions):
            with pytest.raises(EncodeError):
                read_question(question.text, arch)
            continue
        try:
            again = read_question(question.text, arch)
        except EncodeError:
            left += 1
            continue
        read += 1
        assert again.text == question.text
        for a, b in zip(again.block.instructions, question.block.instructions, strict=True):
            assert _meaning(a, again) == _meaning(b, question), b.text
    assert left * 50 <= read > 50


@pytest.mark.parametrize("line", ["R2P v0 #127", "P2R v1 v0 #127", "LEPC v0", "IADD3 v0 v1", "R9"])
def test_what_the_text_does_not_say_is_refused(line: str) -> None:
    with pytest.raises(EncodeError, match="SX0549"):
        read_question(f"gfx1100\nin v0\nout\nfree t24 s20\n{line}", 80)


def test_other_words_are_refused_or_another_question() -> None:
    rng = np.random.default_rng(7)
    codes: list[str] = []
    for question in questions(90, 6)[:60] * 3:
        words = [line.split(" ") for line in question.text.split("\n")]
        here = words[int(rng.integers(len(words)))]
        there = words[int(rng.integers(len(words)))]
        here[int(rng.integers(len(here)))] = there[int(rng.integers(len(there)))]
        text = "\n".join(map(" ".join, words))
        try:
            assert read_question(text, 90).text == text
        except EncodeError as error:
            codes.append(error.code)
    assert set(codes) == {"SX0549"}
    assert len(codes) > 20
