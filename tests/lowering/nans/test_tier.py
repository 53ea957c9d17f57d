"""The NaN that the optimising tier leaves as they are are never read as bits, though it leaves more
of them than the rules do."""

from __future__ import annotations

import random

import numpy as np
import pytest

from sassxlate.cfg import liveness
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import Const, Instruction, Reg, Special
from sassxlate.disasm.sass.semantics import semantics_table
from sassxlate.disasm.sass.semantics.rows import evaluate
from sassxlate.domain.integers import Bits, Reference
from sassxlate.lowering.kernel_graph import kernel_cfg
from sassxlate.lowering.nans.bits import NanBits, nan_bits
from sassxlate.lowering.nans.halves import halves_of
from sassxlate.lowering.nans.reads import Nan
from tests.disasm.sass.interpreter.launches import assembled, with_code
from tests.lowering.nans import generated_nans


def _same(seed: int, arch: int) -> None:
    prepared = generated_nans.of_seed(seed, arch, generated_nans.Chains)
    ours, theirs = prepared.interpreted(), prepared.translated(tier=True)
    wrong = np.flatnonzero(ours != theirs)
    assert [(int(i), hex(ours[i]), hex(theirs[i])) for i in wrong[:4]] == []


@pytest.mark.parametrize(("seed", "arch"), [(1, 80), (4, 90)])
def test_random_kernels(seed: int, arch: int) -> None:
    _same(seed, arch)


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("seed", range(150))
def test_more_random_kernels(seed: int, arch: int) -> None:
    _same(seed, arch)


# --- moves of halves -----------------------------------------------------------------------------


class _Registers:
    """Registers of an instruction, for its semantics."""

    def __init__(self, words: dict[int, int]) -> None:
        self.words = words

    def reg(self, file: str, index: int) -> Bits:
        return Bits(self.words[index], 32)

    def pred(self, file: str, index: int) -> Bits:
        return Bits(0, 1)

    def const(self, operand: Const, word: int) -> Bits:
        raise NotImplementedError

    def special(self, operand: Special) -> Bits:
        raise NotImplementedError


def _decoded(text: str, arch: int = 80) -> Instruction:
    ins = decode(assemble(f"{text} ;", arch), 0, arch)
    assert isinstance(ins, Instruction)
    return ins


@pytest.mark.parametrize(
    "text",
    [
        *(f"PRMT R3, {a}, {how}, {c}" for a in ("R4", "RZ") for c in ("R5", "RZ")
          for how in ("0x5410", "0x7610", "0x1054", "0x7632", "0x3232", "0x1076", "0x3210")),
        "IMAD.U32 R3, R4, 0x10000, RZ", "IMAD R3, R4, 0x10000, RZ", "SHF.L.U32 R3, R4, 0x10, RZ",
        "SHF.R.U32.HI R3, RZ, 0x10, R5", "LOP3.LUT R3, R4, 0xffff0000, RZ, 0xc0, !PT",
        "LOP3.LUT R3, R4, 0xffff, R5, 0xc0, !PT",
    ],
)  # fmt: skip
def test_what_moves_halves_moves_these(text: str) -> None:
    """As the semantics compute it."""
    ins = _decoded(text)
    parts = halves_of(ins)
    assert parts is not None
    chance = random.Random(1)
    for _ in range(20):
        words = {n: chance.getrandbits(32) for n in (4, 5, 255)} | {255: 0}
        expected = 0
        for place, part in zip((0, 16), parts, strict=True):
            if isinstance(part, int):
                expected |= part << place
                continue
            operand = ins.operands[part[0]]
            assert isinstance(operand, Reg)
            expected |= (words[operand.index] >> 16 * part[1] & 0xFFFF) << place
        row = semantics_table()[ins.mnemonic]
        (out,) = (v.n for v in evaluate(Reference(), row, ins, _Registers(words)).values())
        assert out == expected


@pytest.mark.parametrize(
    "text",
    [
        "PRMT R3, R4, 0x2143, R5", "PRMT R3, R4, 0x123, R5", "PRMT R3, R4, 0xba98, R5",
        "PRMT R3, R4, 0x9910, R5", "PRMT R3, R4, R6, R5", "PRMT.B4E R3, R4, 0x5410, R5",
        "IMAD.U32 R3, R4, 0x10000, R5", "IMAD.HI.U32 R3, R4, 0x10000, RZ",
        "IMAD R3, R4, 0x10001, RZ", "SHF.L.U32 R3, R4, 0xf, RZ",
        "SHF.L.U64.HI R3, R4, 0x10, R5", "SHF.R.S32.HI R3, RZ, 0x10, R5",
        "SHF.R.U32 R3, R4, 0x10, R5", "LOP3.LUT R3, R4, 0xffff0000, RZ, 0xfc, !PT",
        "LOP3.LUT R3, R4, 0xfffff000, RZ, 0xc0, !PT",
        "LOP3.LUT P0, R3, R4, 0xffff0000, RZ, 0xc0, !PT", "IADD3 R3, R4, R5, RZ",
    ],
)  # fmt: skip
def test_what_does_not(text: str) -> None:
    assert halves_of(_decoded(text)) is None


# --- where results are put right -----------------------------------------------------------------

_HEAD = "MOV R2, 0x1000 ;\nMOV R3, 0x0 ;\nLDG.E R4, [R2.64] ;\nLDG.E R5, [R2.64+0x4] ;\n"
_PRODUCT = "HFMA2.BF16_V2 R6, R4, R5, -RZ.H0_H0"


def _repaired(*lines: str) -> list[str]:
    """The instructions of a kernel before or after which a NaN is repaired, for the tier."""
    text = "".join(f"{line} ;\n" for line in (*lines, "EXIT"))
    (kernel,) = with_code(assembled(_HEAD + text, 80), 80).kernels
    cfg = kernel_cfg(kernel)
    texts = {i.offset: i.text for b in cfg.blocks for i in b.instructions}
    found: NanBits = nan_bits(cfg, liveness(cfg), tier=True)
    assert all(kind is not Nan.BRAIN for some in found.before.values() for _, kind in some)
    return [texts[at] for at in sorted({*found.before, *found.after})]


@pytest.mark.parametrize(
    "move",
    [
        "PRMT R7, RZ, 0x5410, R6", "PRMT R7, RZ, 0x7610, R6", "IMAD.U32 R7, R6, 0x10000, RZ",
        "SHF.L.U32 R7, R6, 0x10, RZ", "LOP3.LUT R7, R6, 0xffff0000, RZ, 0xc0, !PT",
    ],
)  # fmt: skip
def test_bf16_that_become_binary32(move: str) -> None:
    """A sum sees of them that they are NaN; a store or an integer's sum sees more, as
    does a sum that takes the pair for one number."""
    total = "FADD.FTZ R8, R7, R4"
    stored = "STG.E [R2.64], R8"
    assert _repaired(_PRODUCT, move, total, stored) == [stored]
    for reader in ("STG.E [R2.64], R7", "IADD3 R8, R7, 0x1, RZ", "FADD R8, R6, R4"):
        assert _repaired(_PRODUCT, move, total, reader, stored)[0] == _PRODUCT


def test_bf16_that_stay_a_pair() -> None:
    moved = "PRMT R7, R6, 0x7632, R6"
    again = "HFMA2.BF16_V2 R8, R7, R6.H0_H0, -RZ.H0_H0"
    stored = "STG.E [R2.64], R8"
    assert _repaired(_PRODUCT, moved, again, stored) == [again]
    assert _repaired(_PRODUCT, moved, "FADD R8, R7, R4", stored) == [_PRODUCT, stored]


def test_halves_of_a_binary32_number_are_bits() -> None:
    total = "FADD R6, R4, R5"
    moved = "PRMT R7, RZ, 0x7610, R6"
    assert _repaired(total, moved, "FADD R8, R7, R4", "STG.E [R2.64], RZ") == [moved]


def test_what_is_shuffled_is_the_same_value() -> None:
    total, moved = "FADD R6, R4, R5", "SHFL.DOWN PT, R7, R6, 0x1, 0x1f"
    more = "FADD R8, R7, R6"
    stored = "STG.E [R2.64], R8"
    assert _repaired(total, moved, more, stored) == [stored]
    assert _repaired(total, moved, "STG.E [R2.64], R7") == ["STG.E [R2.64], R7"]
    place = "SHFL.IDX PT, R7, R4, R6, 0x1f"  # a number of a lane is bits
    assert _repaired(total, place, "STG.E [R2.64], R7") == [place]
    both = "SHFL.IDX PT, R7, R6, R6, 0x1f"
    assert _repaired(total, both, "STG.E [R2.64], R7") == [both]


def test_what_is_read_under_the_guard_that_it_was_written_under() -> None:
    total, number = "FADD R6, R4, R5", "@P0 MOV R6, R4"
    read = "@P0 IADD3 R7, R6, 0x1, RZ"
    assert _repaired(total, number, read, "STG.E [R2.64], R7") == []
    for between in (
        "ISETP.GT.AND P0, PT, R5, RZ, PT", "FADD R6, R4, R4", "@P1 FADD R6, R4, R4",
        "@P1 ISETP.GT.AND P0, PT, R5, RZ, PT",
    ):  # fmt: skip
        assert _repaired(total, number, between, read, "STG.E [R2.64], R7"), between
    other = "@!P0 FADD R6, R4, R4"  # of other lanes
    assert _repaired(total, number, other, read, "STG.E [R2.64], R7") == []
    assert _repaired(total, number, "@!P0 IADD3 R7, R6, 0x1, RZ", "STG.E [R2.64], R7")
