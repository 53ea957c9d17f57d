"""Words that were decoded before give the same as if they were not."""

from __future__ import annotations

import pytest

from sassxlate.disasm.sass.codec import decode as module
from sassxlate.disasm.sass.codec.decode import Index, decode_or_bad, index
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import Instruction, Label

TEXTS = ("IADD3 R1, R2, R3, R4 ;", "@!P1 FADD R7, -R5, |R6| ;", "LDG.E.64 R2, [R4.64+0x10] ;")


def _decoded(table: Index, word: int, offset: int, arch: int) -> Instruction:
    made = decode_or_bad(table, word, offset, arch, True)
    assert isinstance(made, Instruction)
    return made


@pytest.mark.parametrize("text", TEXTS)
def test_at_another_place(text: str) -> None:
    """Of sm_86 after sm_80, whose table it shares: offset and architecture are its own."""
    word = assemble(text, 80, 0)
    table, fresh = Index(80), Index(80)
    _decoded(table, word, 0x10, 80)
    again = _decoded(table, word, 0x40, 86)
    assert again == _decoded(fresh, word, 0x40, 86)
    assert (again.offset, again.arch, again.word) == (0x40, 86, word)


def test_a_branch_counts_from_its_place() -> None:
    word = assemble("BRA 0x100 ;", 80, 0x20)
    table = Index(80)
    targets = [_decoded(table, word, at, 80).operands["target"] for at in (0x20, 0x60, 0x20)]
    assert targets == [Label(0x100), Label(0x140), Label(0x100)]


def test_a_lax_word_is_not_remembered_as_a_strict_one() -> None:
    """Bits that only nvdisasm ignores refuse a word, whether it was decoded without ``strict`` or
    not."""
    word = assemble("NOP ;", 80, 0) | 1 << 40
    table = Index(80)
    assert isinstance(decode_or_bad(table, word, 0, 80, False), Instruction)
    assert not isinstance(decode_or_bad(table, word, 0, 80, True), Instruction)


def test_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last ones are known, and never more than twice as many."""
    monkeypatch.setattr(module, "_WORDS", 4)
    table = Index(80)
    words = [assemble(f"MOV R{n}, R0 ;", 80, 0) for n in range(20)]
    for n, word in enumerate(words):
        made = _decoded(table, word, 0, 80)
        assert table.known(word) is made
        held = [w for w in words if table.known(w) is not None and w != words[0]]
        assert len(held) <= 8
        assert n < 1 or table.known(words[n - 1]) is not None
    assert index(80) is index(80)
