"""Cuts at instructions of whole warps, arrival barriers and bulk copies; code that is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.verify import BlockPair, Proved, Refuted, Unknown, Verdict, verify
from sassxlate.lowering.verify.block.of_kernel import blocks
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.rules.one_instruction import SURROUNDINGS, Surroundings, translated
from sassxlate.lowering.verify.rules.verify import RuleCheckSettings, verify_word
from sassxlate.lowering.verify.rules.warps import tried
from tests.disasm.sass.interpreter.launches import assembled, with_code

from .defects import Change, drop, op

PRODUCT = "HMMA.16816.F32 R16, R4, R8, R12"
ARRIVAL = "SYNCS.ARRIVE.TRANS64.A1T0 R16, [R4+UR24], R8"


def _block(text: str, surroundings: Surroundings, arch: int = 90) -> BlockPair:
    return translated(decode(assemble(text + " ;", arch, 0), 0, arch), surroundings)


def _verdict(made: BlockPair) -> Verdict:
    return verify(made, tested=True)


@pytest.mark.parametrize("surroundings", SURROUNDINGS)
@pytest.mark.parametrize(
    "text",
    [
        PRODUCT,
        "@P5 HMMA.16816.F32.BF16 R4, R4, R8, R12",
        "IMMA.16832.S8.S8 R16, R4.ROW, R8.COL, R12, UP0",
        "BMMA.88128.AND.POPC R16, R4.ROW, R8.COL, R12, UP0",
        "DMMA.8x8x4.RP R16, -|R4|, R8, -R12",
        "MOVM.16.MT88 R4, R4",
        "LDSM.16.MT88.4 R16, [R4+UR4+0x10]",
        "STSM.16.M88.4 [R4], R8",
        ARRIVAL,
        "@P5 SYNCS.ARRIVE.TRANS64 R16, [R4+UR24], R8",
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P3, [R4+UR24], R8",
        "SYNCS.EXCH.64 UR16, [UR24], UR8",
        "ARRIVES.LDGSTSBAR.64.ARVCNT [R4+UR24]",
        "UBLKCP.S.G [UR20], [UR24], UR28",
        "@UP5 UBLKCP.G.S [UR20], [UR24], UR28",
        "REDG.E.ADD.F16x2.RN [R4.64+UR24], R8",
        "ATOMG.E.ADD.F32x2.RN PT, R16, [R4.64+UR24], R8",
    ],
)
def test_passed_over(text: str, surroundings: Surroundings) -> None:
    verdict = _verdict(_block(text, surroundings))
    assert isinstance(verdict, Proved), verdict
    assert any(reading.startswith("tested rule ") for reading in verdict.modulo)


@pytest.mark.parametrize("text", ["FENCE.VIEW.ASYNC.S", "UTMACMDFLUSH", "SYNCS.CCTL.IV [R4+UR24]"])
def test_order_of_copies(text: str) -> None:
    """Copies are done where they are issued: nothing is left to order."""
    assert _verdict(_block(text, "apart")) == Proved()


def _changed(made: BlockPair, change: Change) -> BlockPair:
    """The block with other code; for the routine, if there is one."""
    if not made.routines:
        return replace(made, rdna=[change(list(made.rdna[0]))])
    ((at, code),) = made.routines.items()
    return replace(made, routines={at: change(list(code))})


@pytest.mark.parametrize("text", [PRODUCT, ARRIVAL, "LDSM.16.M88.4 R16, [R4]"])
@pytest.mark.parametrize("surroundings", SURROUNDINGS)
def test_other_code(text: str, surroundings: Surroundings) -> None:
    made = _block(text, surroundings)
    assert bool(made.routines) == (text == PRODUCT and surroundings == "apart")
    verdict = _verdict(_changed(made, op("v_and_b32", "v_or_b32")))
    assert isinstance(verdict, Unknown)
    assert "is not its rule's" in verdict.reason


def _waits(code: list[Placed]) -> list[Placed]:
    return [step for step in code if not step.inst.op.startswith("s_waitcnt")]


def test_routines() -> None:
    made = _block(PRODUCT, "apart")
    assert "missing wait" in str(_verdict(_changed(made, _waits)))
    assert "not a routine" in str(_verdict(_changed(made, drop("s_setpc_b64"))))
    assert "not a routine" in str(_verdict(replace(made, routines={})))


def test_nothing_is_out_at_a_call() -> None:
    made = _block(PRODUCT, "apart")
    code = list(made.rdna[0])
    at = next(n for n, step in enumerate(code) if step.inst.op == "s_call_b64")
    late = Placed(Inst("ds_load_b32", (V(200), V(4))), code[at].pc, code[at].pc)
    verdict = _verdict(replace(made, rdna=[[*code[:at], late, *code[at:]]]))
    assert isinstance(verdict, Refuted)
    assert "missing wait" in verdict.defect


@pytest.mark.parametrize("text", [ARRIVAL, "UBLKCP.S.G [UR20], [UR24], UR28"])
def test_arrivals_release(text: str) -> None:
    """An arrival that does not wait for its lanes' earlier accesses."""
    assert isinstance(
        _verdict(_changed(_block(text, "together"), drop("s_waitcnt_vscnt"))), Refuted
    )


@pytest.mark.parametrize(
    "extra",
    [Inst("v_mov_b32", (V(16), I(0))), Inst("s_mov_b32", (S(88), I(0)))],
)
def test_lanes_outside(extra: Inst) -> None:
    """A copy has all lanes help, in temporaries and nothing else."""

    def change(code: list[Placed]) -> list[Placed]:
        return [*code[:12], Placed(extra, code[12].pc, code[12].pc), *code[12:]]

    made = _block("UBLKCP.S.G [UR20], [UR24], UR28", "together")
    assert not isinstance(_verdict(_changed(made, change)), Proved)


_TWICE = """
S2R R0, SR_TID.X ;
MOV R4, R0 ;
MOV R5, R0 ;
MOV R6, R0 ;
MOV R7, R0 ;
HMMA.16816.F32 R8, R4, R6, RZ ;
HMMA.16816.F32 R8, R4, R6, R8 ;
IADD3 R4, R8, R9, R10 ;
STS [R0], R4 ;
EXIT ;
"""


def _kernel(
    change: Callable[[Sequence[Placed]], Sequence[Placed]] = lambda code: code,
) -> list[Verdict]:
    cubin = with_code(assembled(_TWICE, 90), 90)
    found = blocks(translate_kernel(cubin, "divergent_if"))
    made = [
        replace(f.block, routines={at: change(code) for at, code in f.block.routines.items()})
        for f in found
    ]
    assert all(len(block.routines) == 1 for block in made)
    return [_verdict(block) for block in made]


def test_two_calls_of_one_routine() -> None:
    assert all(v == Proved(("tested rule HMMA.16816.F32",)) or v == Proved() for v in _kernel())
    wrong = _kernel(lambda code: op("v_and_b32", "v_or_b32")(list(code)))
    assert any(isinstance(v, Unknown) for v in wrong)


def test_a_trap_of_an_address() -> None:
    """An instruction that always traps is not tested, and the verdict reports it."""
    ins = decode(0xFDE0000000100000FFC08FF007844, 0, 90)  # STSM.16.M88.2 [0xffc], R8
    status, detail = verify_word(ins, RuleCheckSettings(vectors=1 << 10))
    assert status == "unknown"
    assert "not aligned" in detail


@pytest.mark.parametrize(
    "text",
    [
        "ATOMS.ARRIVE.64 R16, [R4.X16+UR24]",  # once outside of the wave's memory
        "LDSM.16.M88 R16, [R4+0x1004]",
        "UBLKCP.S.G [UR20], [UR24], UR28",
        "UBLKCP.G.S [UR20], [UR24], UR28",
        "DMMA.8x8x4 R3, R4, R8, R12",  # a NaN's two words begin at an odd register
    ],
)
@pytest.mark.parametrize("surroundings", SURROUNDINGS)
def test_waves(text: str, surroundings: Surroundings) -> None:
    arch = 80 if text.startswith("ATOMS.ARRIVE") else 90
    assert tried(decode(assemble(text + " ;", arch, 0), 0, arch), surroundings, 256) is None


@pytest.mark.parametrize(
    "text",
    [
        "IDP.2A.LO.S16.S8 R16, R4, R8, R12",  # products of fields that two shifts extend
        "IDP.2A.HI.S16.S8 R16, R4, R8, R12",
        "ULDC.U8 UR16, c[0x0][UR53+0x240]",
        "@P5 QSPC.E.S P0, RZ, [R4]",
        "QSPC.E.G P0, RZ, [R4.64+UR4]",
        "LDL.EU.U8 R16, [R4]",
        "CS2R R16, SR_CLOCKLO",
        "@P1 IADD3 R16, P3, P4, -R4, -R8, R12",  # two carries under a guard
        "@P3 DMUL R4, RZ, R4",
    ],
)
def test_once_unknown(text: str) -> None:
    ins = decode(assemble(text + " ;", 90, 0), 0, 90)
    assert verify_word(ins, RuleCheckSettings(vectors=0))[0] == "proved"


def test_once_wrong() -> None:
    """A PAND with false is false; a carry-in counts where Rc is RZ, too (and is proved since)."""
    ins = decode(0xFDE000F87140C0000000804107C12, 0, 90)
    assert ins.text == "LOP3.LUT.PAND P3, R16, R4, UR8, R12, 0x14, !PT"
    assert verify_word(ins, RuleCheckSettings(vectors=0))[0] == "proved"
    ins = decode(0xFDE00038E04FF0000900004103A27, 0, 90)
    assert ins.text == "@P3 IMAD.HI.U32.X R16, R4, c[0x0][0x240], RZ, PT"
    assert verify_word(ins, RuleCheckSettings(vectors=0))[0] == "proved"
