"""A word that is not an instruction is a typed error with its place, and the rest is still read."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cli.disasm import command
from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.listing.sass_section import lines
from sassxlate.disasm.sass import BadWord, decode, decode_filled, decode_section
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.errors import EXIT_BAD_WORDS, DecodeError

KERNELS = Path(__file__).resolve().parents[3] / "fixtures" / "kernels"
NOP = 0x000FC00000000000_0000000000007918
UNKNOWN = 0xFFF
ARCHS = (75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121)


@pytest.mark.parametrize(
    ("word", "code"),
    [
        (UNKNOWN, "SX0201"),
        (NOP | 1 << 40, "SX0203"),
        (0x000FC000000000FF_0000000004F57424 | 3 << 76, "SX0203"),
        # A floating-point comparison whose combination has no name.
        (0x000FC00003F0D000_000000000000720B | 3 << 74, "SX0202"),
    ],
)
def test_codes(word: int, code: str) -> None:
    """Unknown opcode, reserved bits, undefined field: each has its code, offset and word."""
    with pytest.raises(DecodeError) as caught:
        decode(word, 0x120, 80)
    assert caught.value.code == code
    assert caught.value.where is not None
    assert caught.value.where.offset == 0x120
    assert caught.value.where.word == word


def test_unknown_architecture() -> None:
    """An architecture without a table is refused by name."""
    with pytest.raises(DecodeError) as caught:
        decode_section(b"", 70)
    assert caught.value.code == "SX0204"
    assert "sm_70" in str(caught.value)


@pytest.mark.parametrize("length", [1, 8, 15, 17, 31])
def test_odd_length(length: int) -> None:
    """A section that ends within a word is refused whole."""
    with pytest.raises(DecodeError) as caught:
        decode_section(bytes(length), 80)
    assert caught.value.code == "SX0205"


def test_empty() -> None:
    """No code is not an error."""
    assert decode_section(b"", 80).instructions == ()


@pytest.mark.parametrize("arch", ARCHS)
def test_bad_word_between_good_ones(arch: int) -> None:
    """The words around one that is not an instruction are still decoded."""
    code = b"".join(w.to_bytes(16, "little") for w in (NOP, UNKNOWN, NOP))
    section = decode_section(code, arch)
    before, bad, after = section.instructions
    assert isinstance(before, Instruction)
    assert isinstance(bad, BadWord)
    assert isinstance(after, Instruction)
    assert (bad.offset, bad.word, bad.error.code) == (16, UNKNOWN, "SX0201")
    assert section.errors == (bad,)
    printed = list(lines(section))
    assert "NOP" in printed[0]
    assert "NOP" in printed[2]
    assert "SX0201" in printed[1]
    assert "/*0010*/" in printed[1]


def test_command_prints_the_rest(tmp_path: Path) -> None:
    """``sassxlate disasm`` of a cubin with one damaged word: status 3, all other lines."""
    data = (KERNELS / "sm_80" / "early_exit.cubin").read_bytes()
    (kernel,) = parse_cubin(data).kernels
    at = data.index(kernel.code)
    place = at + 16 * 5
    damaged = tmp_path / "damaged.cubin"
    damaged.write_bytes(data[:place] + UNKNOWN.to_bytes(16, "little") + data[place + 16 :])
    whole = CliRunner().invoke(command, [str(KERNELS / "sm_80" / "early_exit.cubin")])
    result = CliRunner().invoke(command, [str(damaged)])
    assert whole.exit_code == 0
    assert result.exit_code == EXIT_BAD_WORDS
    differing = [
        (good, bad)
        for good, bad in zip(whole.output.splitlines(), result.output.splitlines(), strict=True)
        if good != bad
    ]
    assert len(differing) == 1
    assert "/*0050*/ error SX0201" in differing[0][1]


@pytest.mark.parametrize("arch", ARCHS)
def test_random_words_raise_nothing_else(arch: int) -> None:
    """Noise, and real opcodes followed by noise: an instruction or a DecodeError."""
    rng = random.Random(arch)
    words = [rng.getrandbits(128) for _ in range(250)]
    words += [rng.getrandbits(105) & ~0x7000 | 0x7000 for _ in range(250)]
    code = b"".join(w.to_bytes(16, "little") for w in words)
    for strict in (True, False):
        section = decode_section(code, arch, strict=strict)
        assert len(section.instructions) == len(words)
        for item in section.errors:
            assert item.error.code in ("SX0201", "SX0202", "SX0203")


def test_not_strict_ignores_what_means_nothing() -> None:
    """Without ``strict`` a bit that belongs to no field may be set, as nvdisasm has it."""
    assert decode(NOP | 1 << 40, 0, 80, strict=False).text == "NOP"


def test_json(tmp_path: Path) -> None:
    """``--json``: the same instructions with registers, labels, scheduling and errors."""
    data = (KERNELS / "sm_80" / "early_exit.cubin").read_bytes()
    (kernel,) = parse_cubin(data).kernels
    place = data.index(kernel.code) + 16 * 5
    damaged = tmp_path / "damaged.cubin"
    damaged.write_bytes(data[:place] + UNKNOWN.to_bytes(16, "little") + data[place + 16 :])
    result = CliRunner().invoke(command, [str(damaged), "--format", "json"])
    assert result.exit_code == EXIT_BAD_WORDS
    (listed,) = json.loads(result.output)["kernels"]
    records = listed["instructions"]
    assert len(records) == len(kernel.code) // 16
    assert records[5]["error"]["code"] == "SX0201"
    for i, record in enumerate(records):
        if i != 5:
            inst = decode(int(record["word"], 16), 16 * i, 80)
            assert record["offset"] == f"{16 * i:#06x}"
            assert record["mnemonic"] == inst.mnemonic
            assert len(record["reads"]) == len(inst.reads)
            assert record["control"]["stall"] == inst.control.stall


def test_decoding_without_gaps() -> None:
    """The instructions of a section with zeros between functions; a bad word stays an error."""
    words = [NOP, 0, 0, NOP, UNKNOWN, 0, NOP]
    code = b"".join(word.to_bytes(16, "little") for word in words)
    whole = decode_section(code, 80)
    filled = decode_filled(code, 80)
    assert [i.offset for i in filled] == [0, 48, 64, 96]
    assert [str(i) for i in filled] == [str(whole.instructions[i]) for i in (0, 3, 4, 6)]
    with pytest.raises(DecodeError, match="SX0205"):
        decode_filled(code[:-8], 80)
