"""Finds the results that are one value for all lanes."""

from __future__ import annotations

import pytest

from sassxlate.cfg import analyse, build
from sassxlate.cfg.uniformity import result_uniform
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import Instruction


def instruction(text: str) -> Instruction:
    return decode(assemble(f"{text} ;", 90), 0, 90)


@pytest.mark.parametrize(
    "text", [
        "IADD3 R0, R1, R2, R3", "HADD2 R0, R1, R2", "HSETP2.LT.AND P0, PT, R1, R2, PT",
        "FSET.BF.LT.AND R0, R1, R2, PT", "P2R R0, PR, RZ, 0x7f", "R2P PR, R0, 0x7f",
        "IDP.4A.U8.U8 R0, R1, R2, R3", "F2FP.F16.F32.PACK_AB R0, R1, R2",
        "I2I.S8.S32.SAT R0, R1", "HMNMX2 R0, R1, R2, PT", "VABSDIFF4.U8.ACC R0, R1, R2, R3",
    ],
)  # fmt: skip
def test_what_is_computed_of_uniform_values_is_uniform(text: str) -> None:
    ins = instruction(text)
    assert result_uniform(ins, ins.reads)
    for ref in ins.reads:
        assert not result_uniform(ins, ins.reads - {ref})


@pytest.mark.parametrize(
    "text", ["LDG.E R0, desc[UR4][R2.64]", "LDS R0, [R1]", "SHFL.IDX PT, R0, R1, R2, R3",
             "S2R R0, SR_TID.X", "CS2R R0, SR_CLOCKLO", "MATCH.ANY R0, R1", "R2UR P0, UR4, R1",
             "ATOMS.ADD R0, [R1], R2", "HMMA.16816.F32 R4, R8, R12, R4", "LEPC R0, 0x20",
             "ISETP.EQ.AND P0, PT, R1, R2, PT"],
)  # fmt: skip
def test_what_is_not(text: str) -> None:
    ins = instruction(text)
    known = ins.reads if "ISETP" not in text else frozenset(list(ins.reads)[:1])
    assert not result_uniform(ins, known)


def test_a_branch_on_a_comparison_of_halves_is_uniform() -> None:
    text = (
        "LDC R1, c[0x0][0x210] ;\nHADD2 R2, R1, R1 ;\nHSETP2.LT.AND P0, PT, R1, R2, PT ;\n"
        "@P0 BRA `(.L) ;\nNOP ;\n.L:\nEXIT ;\n"
    )
    code = assemble_listing(text.splitlines(), 90)[""]
    words = [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]
    found = analyse(build("k", 90, [decode(w, 16 * i, 90) for i, w in enumerate(words)]))
    assert found.uniform_branch[0]
    assert found.converged == (True, True, True)


def test_a_guard_at_the_end_of_a_block_parts_no_lanes() -> None:
    text = (
        "S2R R0, SR_TID.X ;",
        "ISETP.GE.AND P1, PT, R0, 0x4, PT ;",
        "ISETP.NE.AND P0, PT, RZ, c[0x0][0x160], PT ;",
        "@P0 BRA `(.L) ;",
        "@P1 FADD R2, R2, 1 ;",
        ".L:",
        "BAR.SYNC 0x0 ;",
        "EXIT ;",
    )
    code = assemble_listing(list(text), 80)[""]
    words = [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]
    cfg = build("k", 80, [decode(w, 16 * i, 80) for i, w in enumerate(words)])
    assert all(analyse(cfg).converged)
