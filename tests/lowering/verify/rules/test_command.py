"""`sassxlate verify rules`: words of every form, immediates for all values, broken rules."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.target import Target
from sassxlate.lowering.verify import Refuted
from sassxlate.lowering.verify.block.block import BlockPair
from sassxlate.lowering.verify.block.rule_evidence import TRIED, rule_evidence
from sassxlate.lowering.verify.rules import immediates, verify
from sassxlate.lowering.verify.rules.forms import FormCase, cases
from sassxlate.lowering.verify.rules.one_instruction import Surroundings, translated
from sassxlate.lowering.verify.rules.verify import RuleCheckSettings, form_of, rule_of, verify_word

SMALL = RuleCheckSettings(combinations=2, timeout_ms=2000, vectors=1 << 12)


def word(text: str) -> Instruction:
    return decode(assemble(text + " ;", 90, 0), 0, 90)


def test_one_rule() -> None:
    done = CliRunner().invoke(
        cli, ["verify", "rules", "iabs", "--combinations", "2", "-j", "1", "--format", "json"]
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 0, done.output
    assert {f["status"] for f in found} <= {"proved", "refused"}
    assert any(f["immediates"] == "all" for f in found)
    forms = {f["form"] for f in found if f["status"] == "proved"}
    assert {"IABS R,R", "IABS R,imm", "IABS R,c", "IABS R,UR"} <= forms


def test_no_such_rule() -> None:
    done = CliRunner().invoke(cli, ["verify", "rules", "nothing"])
    assert done.exit_code == 2
    assert "SX0803" in done.stderr


def test_words_of_a_row() -> None:
    """Signs, RZ, registers that coincide and guards are among them."""
    (row,) = (r for r in verify.chosen(["iadd3"], SMALL) if r.opcode == 0x210)
    found = [c.ins for c in cases(row, 90, 90, 0, 1, lambda _: True)]
    texts = {i.text for i in found}
    assert len(texts) > 60
    assert any("~R4" in t for t in texts) or any("-R4" in t for t in texts)
    assert any(t.startswith("@!P") for t in texts)
    assert any(" R4, P3, P4, R4" in t for t in texts)
    assert any("RZ" in t for t in texts)


def test_what_a_word_is() -> None:
    ins = word("IADD3 R16, P3, P4, R4, 0x5, R12")
    assert (rule_of(ins), form_of(ins)) == ("iadd3", "IADD3 R,R,imm,R,P,P,P,P")


def _wrong(ins: Instruction, surroundings: Surroundings, target: Target) -> BlockPair:
    """Its translation with another operation."""
    block = translated(ins, surroundings, target)
    changed = [
        replace(s, inst=replace(s.inst, op=s.inst.op.replace("v_and_b32", "v_or_b32")))
        for s in block.rdna[0]
    ]
    assert changed != list(block.rdna[0])
    return replace(block, rdna=(changed,))


def test_broken_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    ins = word("LOP3.LUT R16, R4, R8, RZ, 0xc0, !PT")
    assert verify_word(ins, SMALL)[0] == "proved"
    monkeypatch.setattr(verify, "translated", _wrong)
    assert verify_word(ins, SMALL)[0] == "refuted"


def test_broken_literal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that confuses two values of an immediate is found among all values."""
    ins = word("LOP3.LUT R16, R4, 0x12345678, RZ, 0xc0, !PT")
    (row,) = (r for r in verify.chosen(["lop3"], SMALL) if r.opcode == ins.word & 0xFFF)
    case = next(c for c in cases(row, 90, 90, 0, 1, lambda _: True) if c.immediate)
    case = FormCase(ins, case.immediate, case.field)
    found = immediates.for_all(case, "together", 2000)
    assert found == ("", "all", "")

    def off(other: Instruction, surroundings: Surroundings, target: Target) -> BlockPair:
        block = translated(other, surroundings, target)
        if other.word >> 32 & 0xFFFFFFFF == 0x8000:
            nothing = Inst("v_mov_b32", block.rdna[0][0].inst.args[:1] * 2)
            block = replace(block, rdna=([replace(block.rdna[0][0], inst=nothing)],))
        return block

    monkeypatch.setattr(immediates, "translated", off)
    found = immediates.for_all(case, "together", 2000)
    assert found is not None
    assert re.fullmatch(
        r"LOP3.LUT R16, R4, 0x8000, .*: R16: SASS 0x\w+, RDNA3 0x\w+ with .*R4 = 0x\w+.*", found[0]
    ), found[0]


def test_a_defect_is_what_is_shown() -> None:
    """It holds for every input, so there is none to show."""
    assert Refuted(where="R4", defect="missing wait: R4").summary == "missing wait: R4"
    assert Refuted({"R4": 0}, "R5", 1, 2).summary == "R5: SASS 0x1, RDNA3 0x2 with all inputs 0"


def test_evidence() -> None:
    tried = rule_evidence(word("@P0 SHFL.IDX PT, R16, R4, R8, 0x1f"))
    assert tried is not None
    assert tried.vectors >= 1_000_000
    assert rule_evidence(word("IADD3 R16, R4, R8, RZ")) is None
    assert all(t.vectors >= 1_000_000 for t in TRIED.values())


def test_masks_of_more_than_a_byte() -> None:
    """Once translated wrongly; never measured."""
    assert verify_word(word("P2R R16, PR, R4, 0x4000"), SMALL)[0] == "refused"
    assert verify_word(word("P2R R16, PR, R4, 0x7f"), SMALL)[0] == "proved"
