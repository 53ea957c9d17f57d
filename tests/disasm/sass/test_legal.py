"""Form tables and probed legality together; mutants and noise through decoder and assembler."""

from __future__ import annotations

import random

import pytest

from sassxlate.disasm.sass import BadWord, decode, decode_section
from sassxlate.disasm.sass.codec.control_brackets import control_text, differing, hidden_text
from sassxlate.disasm.sass.codec.decode import index, row_of
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.codec.legality import ANYTHING, CONTROL_BITS, gather, load
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.tables.spec import GENERATION_OF, GENERATIONS
from sassxlate.errors import DecodeError
from tools.generate import sass_golden
from tools.witness.nvdisasm import sweep

QUICK = (80, 90, 120)  # the others with -m sweep


def _code(words: list[int]) -> bytes:
    return b"".join(word.to_bytes(16, "little") for word in words)


def test_gather() -> None:
    """The bits of a mask, the lowest first."""
    assert gather(0b1011_0000, 0b1101_0000) == 0b101
    assert gather((1 << 128) - 1, 1 << 127 | 7) == 0b1111
    assert gather(1 << 90, 1 << 90 | 1 << 3) == 0b10


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_bit_is_accounted_for(generation: int) -> None:
    """Each of the 128 bits is the opcode's, an operand's, a modifier's ..., ignored or rejecting.

    What no field of a row names was found to be ignored or to be rejecting.
    """
    for rows in index(generation).values():
        for row in rows:
            unnamed = row.zero_mask & ~(CONTROL_BITS | 1 << 125)
            known = row.legal.reserved | row.legal.ignored
            name = f"{row.row.mnemonic} {row.row.opcode:#x}"
            assert row.legal is not ANYTHING, (
                f"{name}: run tools/witness/nvdisasm/probe/__main__.py"
            )
            assert not unnamed & ~known, name
            assert not row.legal.reserved & row.legal.ignored, name
            assert row.legal.stall >> 1 & 1, name  # one cycle, nothing kept
            assert row.legal.write >> 7 & row.legal.read >> 7 & 1, name


@pytest.mark.parametrize("generation", GENERATIONS)
def test_one_row_a_form(generation: int) -> None:
    """No two rows of a generation have the same opcode and fixed bits: the second would be dead."""
    for opcode, rows in index(generation).items():
        names = [(row.match_mask, row.match_value) for row in rows]
        assert len(names) == len(set(names)), f"{rows[0].row.mnemonic} {opcode:#x}"


def test_file_names_its_witness() -> None:
    """The witness: version and sha256."""
    assert load()["witness"].startswith("nvdisasm ")
    assert len(load()["witness"].rpartition(" ")[2]) == 64


@pytest.mark.parametrize(
    ("arch", "word", "text"),
    [
        # Scheduling: an undefined stall, a barrier set by a store's result, reuse of an immediate.
        (80, 0x000FE20000000F000000002000037202, "MOV R3, R32"),
        (80, 0x000FFA0000000F000000002000037202, ""),
        (80, 0x000562000C101904000000000C007986, ""),
        # Sizes and orders that do not go together.
        (90, 0x000EE2000C1E190000000004060E7981, "LDG.E R14, desc[UR4][R6.64]"),
        # Once refused: never drawn without something else that is illegal (a complex product of
        # halves; three selectors and signs beside a constant).
        (90, 0x040FE20000400C0A00000005000F7231, "HFMA2 R15, R0.reuse.H1_H1, R5.H0_NH1, R10"),
        (90, 0x000FE20000600C0400000007001D7231, "HFMA2.BF16_V2 R29, R0.H1_H1, R7.H0_NH1, R4"),
        (
            90,
            0x000FC200000E0AC3B25DC10081E37A31,
            "HFMA2 R227, |R129|.H0_H0, -c[0x9] [0x7704].H1_H1, |R195|.H1_H1",
        ),
        # No register is kept where the warp yields: the bits of reuse are something else.
        (80, 0x040FDA0003F05300000000FF0500720C, "ISETP.NE.AND.EX P0, PT, R5, RZ, PT, P0"),
        (80, 0x040FE20003F05300000000FF0500720C, "ISETP.NE.AND.EX P0, PT, R5.reuse, RZ, PT, P0"),
    ],
)
def test_by_hand(arch: int, word: int, text: str) -> None:
    """Words and their texts; no text where there is not an instruction."""
    if text:
        assert decode(word, 0, arch).text == text
        return
    with pytest.raises(DecodeError) as caught:
        decode(word, 0, arch)
    assert caught.value.code == "SX0202"


@pytest.mark.parametrize(
    ("arch", "word", "said"),
    [
        # The second of two optional carries; a predicate that is not printed; half a NaN; the
        # descriptor of a local access; a type that is spelled as another value of its field.
        (90, 0x000FE40000DFE4FFFFFFFFFF03037810, ":b82=0x1:b85=0x0"),
        (90, 0x000FE400079E0000000000190219C248, ":b85-86=0x0"),
        (90, 0x001FCC0000000000FF003E0008097430, ":0xff003e00"),
        (80, 0x0000A6000C1E91000000000622309983, ":UR6"),
        (120, 0x000FE40008010D000000002A00067C02, ":b73=0x0"),
    ],
)
def test_brackets(arch: int, word: int, said: str) -> None:
    """The bits that a text leaves open are in the brackets, and are read back."""
    inst = decode(word, 0, arch, strict=False)
    assert said in hidden_text(inst)
    line = f"{control_text(inst.control)[:-1]}{hidden_text(inst)}] {inst.text} ;"
    assert not differing(word, assemble(line, arch), GENERATION_OF[arch])


def _mutants(arch: int, count: int) -> list[int]:
    forms = sweep.bases(arch, ())
    return sweep.mutants(forms, arch, count, f"tests {arch}")


def _together(arch: int, words: list[int]) -> list[Instruction]:
    """All words decoded, alone and together, strict or not: instructions or DecodeErrors."""
    out: list[Instruction] = []
    for strict in (True, False):
        section = decode_section(_code(words), arch, strict=strict)
        assert len(section.instructions) == len(words)
        for i, item in enumerate(section.instructions):
            if isinstance(item, BadWord):
                assert item.error.code in ("SX0201", "SX0202", "SX0203")
            elif not strict:
                out.append(item)
            if i % 16 == 0:
                try:
                    alone = decode(words[i], 16 * i, arch, strict=strict).text
                except DecodeError:
                    alone = None
                assert (None if isinstance(item, BadWord) else item.text) == alone
    return out


def _back(items: list[Instruction], arch: int) -> list[str]:
    """The lines that do not give the bits that mean something again."""
    wrong: list[str] = []
    for inst in items:
        line = f"{control_text(inst.control)[:-1]}{hidden_text(inst)}] {inst.text} ;"
        try:
            made = assemble(line, arch, inst.offset)
        except DecodeError:
            wrong.append(line)
            continue
        if differing(inst.word, made, GENERATION_OF[arch]):
            wrong.append(f"{line} {inst.word:#034x}")
    return wrong


@pytest.mark.parametrize("arch", QUICK)
def test_mutants(arch: int) -> None:
    """Changed words: decoded, printed, and read back to the bits that mean something."""
    items = _together(arch, _mutants(arch, 700))
    assert len(items) > 300
    wrong = _back(items[:250], arch)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("arch", QUICK)
def test_noise(arch: int) -> None:
    """Random words, with a real opcode or without, raise nothing but DecodeErrors."""
    rng = random.Random(arch)
    opcodes = list(index(arch))
    words = [rng.getrandbits(128) for _ in range(300)]
    for _ in range(700):
        word = rng.getrandbits(128) & ~(0xFFF | 1 << 91)
        opcode = rng.choice(opcodes)
        words.append(word | opcode & 0xFFF | (opcode >> 12) << 91)
    _back(_together(arch, words), arch)


@pytest.mark.sweep
@pytest.mark.parametrize("arch", GENERATIONS)
def test_many(arch: int) -> None:
    """As above, 100,000 words per architecture: a tenth of them assembled again."""
    rng = random.Random(arch)
    words = _mutants(arch, 60_000) + [rng.getrandbits(128) for _ in range(10_000)]
    opcodes = list(index(arch))
    for _ in range(30_000):
        opcode = rng.choice(opcodes)
        noise = rng.getrandbits(128) & ~(0xFFF | 1 << 91)
        words.append(noise | opcode & 0xFFF | (opcode >> 12) << 91)
    items = _together(arch, words)
    some = items[: len(items) // 8]
    wrong = _back(some, arch)
    print(f"sm_{arch}: {len(items)} instructions of {len(words)}, {len(wrong)} of {len(some)} "
          "are not read back")  # fmt: skip
    assert len(wrong) < len(some) / 100, "\n".join(wrong[:20])


@pytest.mark.parametrize("arch", QUICK)
def test_golden_words_are_legal(arch: int) -> None:
    """Compilers' words are legal: groups, scheduling and reserved bits."""
    for word, text in sass_golden.read_golden(sass_golden.GOLDEN / f"sm_{arch}.txt"):
        row = row_of(word, GENERATION_OF[arch])
        assert row is not None, text
        row.legal.check(word, text)
        assert row.legal.takes_control(word >> 105 & CONTROL_BITS >> 105), text
