"""Sections decoded in columns are what their words are one by one, errors included."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sassxlate.disasm.listing.sass_section import lines
from sassxlate.disasm.sass import BadWord, decode_section, decode_sections
from sassxlate.disasm.sass.codec import bulk_text
from sassxlate.disasm.sass.codec.accesses import FILES, accesses
from sassxlate.disasm.sass.codec.columns import Columns
from sassxlate.disasm.sass.codec.decode import decode_or_bad, generation_of, index, opcode_bits
from sassxlate.disasm.sass.codec.operand_parser import put
from sassxlate.disasm.sass.codec.section import Item, Section, address_of
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.tables.spec import Mod
from tools.generate import sass_golden

FILES_OF_WORDS = sorted(sass_golden.GOLDEN.glob("sm_*.txt"))


@pytest.fixture(autouse=True)
def all_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms that occur once are printed as those that occur often."""
    monkeypatch.setattr(bulk_text, "_FEW", 1)


def _arch(path: Path) -> int:
    return int(path.stem.removeprefix("sm_"))


def _golden(path: Path) -> list[int]:
    return [word for word, _ in sass_golden.read_golden(path)]


def _mutants(words: list[int], count: int, seed: int) -> list[int]:
    """Words with one to three bits flipped anywhere, and noise after real opcodes."""
    rng = random.Random(seed)
    out: list[int] = []
    for _ in range(count):
        word = rng.choice(words)
        if rng.random() < 0.1:
            word = rng.getrandbits(128) & ~0xFFF | word & 0xFFF
        for _ in range(rng.choice((1, 1, 2, 3))):
            word ^= 1 << rng.randrange(128)
        out.append(word)
    return out


def _filled(arch: int, fillings: int, choices: int, seed: int) -> list[int]:
    """Words of every form: operands of random bits, each under several choices of modifiers."""
    rng = random.Random(seed)
    out: list[int] = []
    for rows in index(generation_of(arch)).values():
        for row in rows:
            base = opcode_bits(row.row.opcode) | row.match_value | 7 << 12 | 0x7E0 << 105
            operands = 0
            for mask in row.operand_masks.values():
                operands |= mask
            settled = row.match_mask
            mods = [0] * choices
            for mod in row.row.mods:
                if isinstance(mod, Mod):
                    settled |= mod.field.mask
                    values = rng.choices(list(mod.names), k=choices)
                    mods = [m | put(mod.field, v) for m, v in zip(mods, values, strict=True)]
            for _ in range(fillings):
                filling = rng.getrandbits(128) & operands & ~settled
                out += [base | filling | chosen for chosen in mods]
    return out


def _code(words: list[int]) -> bytes:
    return b"".join(word.to_bytes(16, "little") for word in words)


def _same(got: Item, want: Item) -> bool:
    if isinstance(got, BadWord) and isinstance(want, BadWord):
        return (got.offset, got.word, str(got.error)) == (want.offset, want.word, str(want.error))
    return got == want


def _check(words: list[int], arch: int, strict: bool) -> None:
    """Everything that columns tell against the words one by one."""
    code = _code(words)
    columns = Columns(code, arch, strict, [0])
    section = Section(arch, strict, code, columns)
    table = index(generation_of(arch))
    want = [decode_or_bad(table, w, 16 * i, arch, strict) for i, w in enumerate(words)]
    assert len(section) == len(section.instructions) == len(want)
    wrong = [(a, b) for a, b in zip(section.instructions, want, strict=True) if not _same(a, b)]
    assert not wrong
    bad = [item for item in want if isinstance(item, BadWord)]
    assert len(bad) == len(section.errors)
    assert all(map(_same, section.errors, bad))
    rows = index(columns.generation)
    texts = section.texts()
    numbers: list[int] = columns.form.tolist()
    for item, text, number in zip(want, texts, numbers, strict=True):
        if isinstance(item, BadWord):
            assert text is None
            assert number == -1
        else:
            assert text == item.text
            assert rows.form(number).row.mnemonic == item.mnemonic
    named = {i: address_of(item) for i, item in enumerate(want)}
    assert section.addresses() == {i: at for i, at in named.items() if at is not None}
    _check_accesses(columns, want)


def _check_accesses(columns: Columns, want: list[Item]) -> None:
    found = accesses(columns, 0, len(columns))
    reads: list[set[RegRef]] = [set() for _ in want]
    writes: list[set[RegRef]] = [set() for _ in want]
    last = 0
    for i in range(len(found.word)):
        word, file = int(found.word[i]), FILES[int(found.file[i])]
        first, count = int(found.first[i]), int(found.count[i])
        assert last <= word
        last = word
        into = writes if found.write[i] else reads
        into[word].update(RegRef(file, at) for at in range(first, first + count))
    for item, read, written in zip(want, reads, writes, strict=True):
        if isinstance(item, Instruction):
            assert read == item.reads, item.text
            assert written == item.writes, item.text
        else:
            assert not read | written


@pytest.mark.parametrize("path", FILES_OF_WORDS, ids=lambda p: p.stem)
def test_golden_words(path: Path) -> None:
    """One word of each form, some of them many times."""
    words = _golden(path)
    _check(words + random.Random(1).choices(words, k=50), _arch(path), strict=True)


@pytest.mark.parametrize("path", FILES_OF_WORDS, ids=lambda p: p.stem)
def test_every_form(path: Path) -> None:
    """Operands and modifiers of every form, most of which no compiler writes."""
    arch = _arch(path)
    _check(_filled(arch, 2, 2, arch), arch, strict=False)


@pytest.mark.parametrize("path", FILES_OF_WORDS, ids=lambda p: p.stem)
def test_mutants(path: Path) -> None:
    """Words that are mostly wrong in one way or another."""
    _check(_mutants(_golden(path), 200, _arch(path)), _arch(path), strict=True)


@pytest.mark.sweep
@pytest.mark.parametrize("path", FILES_OF_WORDS, ids=lambda p: p.stem)
def test_every_form_at_length(path: Path) -> None:
    """The same with many operands and modifiers."""
    arch = _arch(path)
    for seed in range(3):
        _check(_filled(arch, 6, 6, 100 * seed + arch), arch, strict=False)


@pytest.mark.sweep
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("path", FILES_OF_WORDS, ids=lambda p: p.stem)
def test_many_mutants(path: Path, strict: bool) -> None:
    """The same at length."""
    for seed in range(5):
        _check(_mutants(_golden(path), 20_000, 1000 + seed), _arch(path), strict)


@pytest.mark.parametrize("arch", [75, 90, 121])
def test_noise(arch: int) -> None:
    """Random bits."""
    rng = random.Random(arch)
    _check([rng.getrandbits(128) for _ in range(800)], arch, strict=False)


def test_batch_is_its_sections() -> None:
    """Sections decoded together are what they are alone: offsets, labels and errors."""
    path = FILES_OF_WORDS[0]
    arch, words = _arch(path), _golden(path)
    rng = random.Random(3)
    codes = [_code(rng.choices(words, k=k) + [0xFFF] * (k % 2)) for k in (0, 7, 300, 1, 900, 0)]
    together = decode_sections(codes, arch)
    for code, section in zip(codes, together, strict=True):
        alone = decode_section(code, arch)
        want = [i.error.code if isinstance(i, BadWord) else i for i in alone.instructions]
        got = [i.error.code if isinstance(i, BadWord) else i for i in section.instructions]
        assert got == want
        assert section.texts() == alone.texts()
        assert section.addresses() == alone.addresses()
        assert list(lines(section)) == list(lines(alone))
        assert [bad.offset for bad in section.errors] == [bad.offset for bad in alone.errors]


def test_items() -> None:
    """Instructions taken by index and by slice, from either end."""
    path = FILES_OF_WORDS[1]
    words = _golden(path)[:600]
    section = decode_section(_code(words), _arch(path))
    made = section.made()
    assert len(made) == 600
    assert section.instructions == made
    assert section.instructions[-1] == made[-1]
    assert section.instructions[5:9] == made[5:9]
    assert section.instructions[::100] == made[::100]
    with pytest.raises(IndexError):
        section.instructions[600]
    assert section.columns.word(3) == words[3]
    control = section.columns.control(0, 600).tolist()
    for raw, item in zip(control, made, strict=True):
        assert isinstance(item, Instruction)
        assert raw & 15 == item.control.stall
        assert raw >> 11 & 63 == item.control.wait_mask
