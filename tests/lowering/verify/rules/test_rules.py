"""Rules of single instructions: proved, never refuted; and broken ones are refuted."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.errors import DecodeError, LoweringError
from sassxlate.lowering.verify import BlockPair, Placed, Proved, Refuted, Unknown, verify
from tests.lowering.verify.one import block_of

ROOT = Path(__file__).resolve().parents[4]


def words() -> list[tuple[int, str]]:
    lines = (ROOT / "fixtures" / "silicon" / "sm_90" / "forms.txt").read_text().splitlines()[1:]
    split = [line.split(" ", 2) for line in lines]
    return [(int(word, 16), text) for word, _, text in split]


def _verdicts(chosen: list[tuple[int, str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word, text in chosen:
        try:
            block = block_of(word)
        except (LoweringError, DecodeError):
            counts["refused"] += 1
            continue
        verdict = verify(block, timeout_ms=5000)
        counts[type(verdict).__name__] += 1
        assert not isinstance(verdict, Refuted), f"{text}: {verdict}"
    print(dict(counts))
    return counts


def test_some_rules() -> None:
    """Forty forms, others with each seed."""
    chance = random.Random(int(os.environ.get("SASSXLATE_TEST_SEED", "1")))
    counts = _verdicts(chance.sample(words(), 40))
    assert counts["Proved"] > 20


def test_wide_integers_that_are_immediates() -> None:
    """To the silicon an immediate is the high word of a 64-bit integer."""
    chosen = [(w, t) for w, t in words() if re.match(r"(words )?I2F\S*[SU]64\S* R\d+, -?0x", t)]
    assert len(chosen) > 10
    assert _verdicts(chosen[::6]).keys() == {"Proved"}


def test_carries_of_64_bit_sums() -> None:
    """UIADD3.64 of sm_100 and later: sources that are complemented, negated or left out."""
    chosen = [
        (assemble(f"UIADD3.64{text} ;", 120), text)
        for text in (
            " UR8, UP0, UP1, UR10, UR6, UR12",
            " UR8, UP0, UP1, -UR10, -UR6, UR12",
            ".X UR8, UP0, UP1, UR10, UR6, UR12, UP2, UP3",
            ".X UR8, UP0, UP1, UR10, -0x140, ~UR12, UP2, !UP3",
            ".X UR8, UPT, UPT, UR8, ~UR6, UR12, UP2, !UPT",
        )
    ]
    assert _verdicts(chosen) == {"Proved": len(chosen)}


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(8))
def test_all_rules(part: int) -> None:
    _verdicts(words()[part::8])


def _word(start: str) -> int:
    return next(word for word, text in words() if text.startswith(start))


def _changed(block: BlockPair, change: Callable[[Inst], Inst | None]) -> BlockPair:
    """The block with the first instruction that ``change`` takes replaced by what it gives."""
    code = list(block.rdna[0])
    for i, step in enumerate(code):
        other = change(step.inst)
        if other is not None and other != step.inst:
            code[i] = Placed(other, step.pc, step.next)
            return replace(block, rdna=[code])
    raise AssertionError("nothing to change")


def _op(old: str, new: str) -> Callable[[Inst], Inst | None]:
    return lambda inst: replace(inst, op=new) if inst.op == old else None


def _arg(op: str, index: int, value: I | V) -> Callable[[Inst], Inst | None]:
    def change(inst: Inst) -> Inst | None:
        if inst.op != op:
            return None
        return replace(inst, args=(*inst.args[:index], value, *inst.args[index + 1 :]))

    return change


def _swapped(op: str, i: int, j: int) -> Callable[[Inst], Inst | None]:
    def change(inst: Inst) -> Inst | None:
        if inst.op != op:
            return None
        args = list(inst.args)
        args[i], args[j] = args[j], args[i]
        return replace(inst, args=tuple(args))

    return change


BROKEN: list[tuple[str, Callable[[Inst], Inst | None]]] = [
    ("IADD3", _op("s_or_b32", "s_and_b32")),
    ("IADD3", _op("v_add_co_ci_u32", "v_sub_co_ci_u32")),
    ("LOP3", _op("v_and_b32", "v_or_b32")),
    ("LOP3", _swapped("v_bfi_b32", 2, 3)),
    ("SEL", _swapped("v_cndmask_b32", 1, 2)),
    ("IMAD.WIDE", _op("v_mad_u64_u32", "v_mad_i64_i32")),
    ("ISETP.LT", _op("v_cmp_lt_i32", "v_cmp_le_i32")),
    ("ISETP.GE.U32", _op("v_cmp_ge_u32", "v_cmp_ge_i32")),
    ("IABS", _op("v_max_i32", "v_max_u32")),
    ("POPC", _arg("v_bcnt_u32_b32", 2, I(1))),
    ("BREV", _op("v_bfrev_b32", "v_not_b32")),
    ("SHF", _arg("v_min_u32", 1, I(31))),
    ("LEA", _op("v_alignbit_b32", "v_alignbyte_b32")),
    ("FADD", _op("v_add_f32", "v_sub_f32")),
    ("FMUL", _op("v_mul_f32", "v_add_f32")),
    ("FSETP.LT", _op("v_cmp_lt_f32", "v_cmp_nge_f32")),
    ("DADD", _op("v_add_f64", "v_mul_f64")),
    ("DMUL", lambda inst: replace(inst, neg=inst.neg ^ 1) if "f64" in inst.op else None),
    ("FFMA.RM", lambda i: replace(i, imm=0) if i.op == "s_round_mode" and i.imm else None),
    ("FADD.FTZ", lambda i: replace(i, imm=15) if i.op == "s_denorm_mode" else None),
]


@pytest.mark.parametrize(
    ("text", "change"), BROKEN, ids=[f"{text}-{n}" for n, (text, _) in enumerate(BROKEN)]
)
def test_broken_rules(text: str, change: Callable[[Inst], Inst | None]) -> None:
    """A translation with one thing wrong in it is refuted, by an input that was replayed."""
    found = [w for w, t in words() if t.startswith(text)]
    for word in found:
        try:
            block = block_of(word)
            broken = _changed(block, change)
        except (AssertionError, LoweringError, DecodeError):
            continue
        if not isinstance(verify(block), Proved):
            continue
        assert isinstance(verify(broken), Refuted)
        return
    pytest.fail("no form of the fixture has the instruction")


def test_undecided_is_unknown() -> None:
    block = block_of(_word("IADD3"))
    step = block.rdna[0][0]
    odd = Inst("v_permlane16_b32", (V(10), V(4), S(2), S(3)))
    verdict = verify(replace(block, rdna=[[Placed(odd, step.pc, step.next)]]))
    assert isinstance(verdict, Unknown)
    assert "v_permlane16_b32" in verdict.reason


def test_fixed_places() -> None:
    """A body that overwrites what the kernel keeps for itself: thread numbers, arguments, lanes."""
    block = block_of(_word("IADD3"))
    first = block.rdna[0][0]
    for op, place in (
        ("v_mov_b32", block.regs.tid), ("s_mov_b32", S(0)), ("s_mov_b32", block.regs.live),
    ):  # fmt: skip
        step = Placed(Inst(op, (place, I(1))), first.pc, first.pc)
        verdict = verify(replace(block, rdna=[[step, *block.rdna[0]]]))
        assert isinstance(verdict, Refuted)


def test_lost_lane() -> None:
    """A write that forgets EXEC changes lanes that are not active."""
    block = block_of(_word("IADD3"))
    wide = Inst("s_mov_b32", (Sp("exec_lo"), I(0xFFFFFFFF)))
    first = block.rdna[0][0]
    code = [[Placed(wide, first.pc, first.pc), *block.rdna[0]]]
    assert isinstance(verify(replace(block, rdna=code)), Refuted)
