"""Traits of instructions: derived from rows and semantics, and written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.interpreter.control_transfer import Transfers
from sassxlate.disasm.sass.semantics import semantics_table
from sassxlate.disasm.sass.semantics.memory import atomic, memory
from sassxlate.disasm.sass.semantics.whole_warps import has_meaning, warp_meanings
from sassxlate.disasm.sass.tables import ROWS
from sassxlate.disasm.sass.tables.effects import EFFECTS
from sassxlate.disasm.sass.tables.spec import B, L, M, S, When
from sassxlate.disasm.sass.traits import Traits, acquires, traits, traits_of

NAMES = sorted({row.mnemonic for row in ROWS})


def slots(name: str) -> list[object]:
    every = (s for r in ROWS if r.mnemonic == name for s in r.operands.values())
    return [s.slot if isinstance(s, When) else s for s in every]


def has(name: str, *kinds: type) -> bool:
    return any(isinstance(s, kinds) for s in slots(name))


def of(text: str, arch: int = 90) -> Traits:
    return traits(decode(assemble(f"{text} ;", arch), 0, arch))


def test_something_is_known_of_every_row() -> None:
    assert not EFFECTS.keys() - set(NAMES)
    assert not [n for n in NAMES if n not in EFFECTS and not has_meaning(n)]
    assert not [n for n, e in EFFECTS.items() if e.other == "no meaning yet" and has_meaning(n)]


def test_rows_and_effects_agree() -> None:
    """A target is only of what transfers control (or arms a barrier, or is an address that is
    computed), a memory operand of what accesses or orders memory."""
    for name in NAMES:
        t = traits_of(name)
        if has(name, L):
            assert t.transfer or t.barrier == "arm" or name in ("LEPC", "ULEPC"), name
        if has(name, M):
            assert t.memory is not None or t.order or name == "CCTLT", name
        if has(name, B):
            assert t.barrier or t.transfer == "wait", name
        if has(name, S):
            assert not t.pure, name


def test_meanings_and_effects_agree() -> None:
    """What reads other lanes or memory has its meaning over whole warps; what has one over a lane
    alone is pure, but for special registers."""
    for name in warp_meanings():
        t = traits_of(name)
        # USETSHMSZ says how much shared memory a block keeps: no value of lanes.
        assert t.memory is not None or t.lanes or name in ("S2UR", "USETSHMSZ"), name
    for name in semantics_table():
        t = traits_of(name)
        assert t.pure or has(name, S), name
        assert (t.transfer, t.order, t.lanes) == ("", "", ""), name
    for name in NAMES:
        assert not traits_of(name).pure or name in semantics_table(), name


def test_meanings_and_effects_name_the_same_memory() -> None:
    for name, (space, store) in memory.SPACES.items():
        assert traits_of(name).reaches(("store" if store else "load",), space), name
    for name, space in atomic.SPACES.items():
        assert traits_of(name).reaches(("atomic", "reduction"), space), name


def test_the_interpreter_transfers_control_as_traits_say() -> None:
    known = set(Transfers.transfers(object.__new__(Transfers)))
    said = {n for n in NAMES if traits_of(n).transfer or traits_of(n).barrier in ("arm", "leave")}
    assert known <= said
    # Absolute jumps and the end of a pixel have no meaning yet.
    assert said - known == {"BRXU", "JMP", "JMXU", "KILL"}


@pytest.mark.parametrize(
    "text", ["HADD2 R0, R1, R2", "FSET.BF.LT.AND R0, R1, R2, PT", "P2R R0, PR, RZ, 0x7f",
             "IDP.4A.U8.U8 R0, R1, R2, R3", "LDC R0, c[0x0][R1]", "MUFU.RCP R0, R1"],
)  # fmt: skip
def test_pure(text: str) -> None:
    assert of(text).pure


@pytest.mark.parametrize(
    "text", ["LDG.E R0, desc[UR4][R2.64]", "S2R R0, SR_TID.X", "SHFL.IDX PT, R0, R1, R2, R3",
             "VOTE.ANY R0, PT, P0", "NOP", "EXIT", "BAR.SYNC.DEFER_BLOCKING 0x0"],
)  # fmt: skip
def test_not_pure(text: str) -> None:
    assert not of(text).pure


def test_memory() -> None:
    t = of("ATOMG.E.ADD.STRONG.GPU PT, R0, desc[UR4][R2.64], R5")
    assert t.reaches(("atomic",), "global")
    assert t.reaches(("atomic",))
    assert not t.reaches(("atomic",), "shared")
    assert not t.reaches(("load", "store"))
    copy = of("LDGSTS.E [R1], desc[UR4][R2.64]").memory
    assert copy is not None
    assert copy.asynchronous
    assert copy.kind == "copy"
    assert of("IADD3 R0, R1, R2, R3").memory is None


def test_lanes_and_uniform_results() -> None:
    assert of("VOTE.ANY R0, PT, P0").uniform  # a general register, the same in all lanes
    assert of("UIADD3 UR4, UR5, UR6, URZ").uniform
    assert not of("MATCH.ANY R0, R1").uniform
    assert not of("R2UR P0, UR4, R1").uniform  # the predicate is each lane's own
    assert of("R2UR UR4, R1").lanes == "first"
    assert of("HMMA.16816.F32 R4, R8, R12, R4").lanes == "whole"


def test_clocks_are_told_by_the_special_register() -> None:
    assert of("CS2R R0, SR_CLOCKLO").clock
    assert not of("CS2R R0, SRZ").clock
    assert of("S2UR UR4, SR_GLOBALTIMERLO").clock


def test_others() -> None:
    assert of("MUFU.EX2 R0, R1").approximate
    assert not of("FADD R0, R1, R2").approximate
    assert of("F2I.TRUNC.NTZ R0, R1").converts
    assert not of("FADD R0, R1, R2").converts
    assert of("R2P PR, R0, 0x7f").masked
    assert not of("MOV R0, R1").masked
    assert (of("USEL UR4, UR5, UR6, UP0").base, of("SEL R0, R1, R2, P0").base) == ("SEL", "SEL")
    assert of("YIELD").yields
    assert of("YIELD").order == "schedule"
    assert of("BREAK B0").barrier == "leave"
    assert not of("BREAK B0").ends_block
    assert of("BSYNC B0").ends_block


def test_numbers() -> None:
    """Number formats that semantics add, compare or convert; instructions that only move floats
    read bits."""
    said = {n: traits_of(n).number for n in ("HADD2", "UFFMA", "DSETP", "F2I", "MUFU", "F2FP")}
    assert list(said.values()) == ["f16", "f32", "f64", "f32", "f32", "f32"]
    assert {traits_of(n).number for n in ("FSEL", "MOV", "I2F", "IADD3", "LDG", "HMMA")} == {""}
    for name in NAMES:
        assert not traits_of(name).number or traits_of(name).pure, name


def test_a_name_without_rows_has_no_traits() -> None:
    assert traits_of("UNHEARD") == Traits("UNHEARD", base="UNHEARD")


def _code(*texts: str, arch: int = 80, masked: tuple[int, ...] = ()) -> list[Instruction]:
    out: list[Instruction] = []
    for n, text in enumerate(texts):
        ins = decode(assemble(f"{text} ;", arch), 16 * n, arch)
        mask = 1 if n in masked else 0
        out.append(replace(ins, control=replace(ins.control, wait_mask=mask)))
    return out


@pytest.mark.parametrize(
    "access",
    ["LDS R2, [R4]", "LDG.E.STRONG.SM R2, [R4.64]", "LD.E.STRONG.SM R2, [R4.64]",
     "ATOMS.ADD R2, [R4], R3", "ATOMG.E.ADD.STRONG.SM PT, R2, [R4.64], R3"],
)  # fmt: skip
def test_a_nop_without_a_wait_acquires_after_what_may_acquire(access: str) -> None:
    """Another instruction has waited for the scoreboard: ptxas writes no mask then."""
    code = _code(access, "IADD3 R8, R9, R10, RZ", "NOP", "NOP", masked=(1,))
    assert acquires(code, earlier=False) == {32}


@pytest.mark.parametrize("access", ["LDG.E R2, [R4.64]", "STS [R4], R2", "LDL R2, [R1]"])
def test_other_nops_are_padding(access: str) -> None:
    assert acquires(_code(access, "NOP"), earlier=False) == set()
    assert acquires(_code(access, "NOP"), earlier=True) == {16}
    assert acquires(_code(access, "NOP", masked=(1,)), earlier=False) == {16}


def test_a_fence_leaves_nothing_to_acquire() -> None:
    code = _code("LDS R2, [R4]", "MEMBAR.ALL.CTA", "NOP")
    assert acquires(code, earlier=False) == set()
