"""Uniform predicates that a block makes itself: other lanes have the same bit as this one.

A wave in which they differ cannot exist, so it refutes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

import z3

from sassxlate.disasm.rdna3 import assemble, decode
from sassxlate.disasm.rdna3.codec.text.parse import parse
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, LabelRef
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.verify import BlockPair, Placed, Proved, Refuted, Unknown, verify
from sassxlate.lowering.verify.block.counterexample import explain_counterexample
from sassxlate.lowering.verify.block.from_text import block_of, read_texts
from sassxlate.lowering.verify.rdna3.execute import execute
from sassxlate.lowering.verify.rdna3.registers import Registers
from sassxlate.lowering.verify.solver.terms import Terms
from sassxlate.lowering.verify.verdict import Undecided, Verdict

_REGISTERS = {
    "R0": "v0", "R1": "v1", "R2": "v2", "R3": "v3", "R4": "v4", "R5": "v5",
    "P0": "s20", "P1": "s21", "UP0": "s29", "UR4": "s30", "UR6": "s32", "UR8": "s34", "UR10": "s36",
}  # fmt: skip
Change: TypeAlias = Callable[[str], str]

_COMPARED = """
    UISETP.GE.U32.AND UP0, UPT, UR8, 0x5, UPT
    v_cmp_le_u32_e64 s29, 5, s34
"""
_CARRIED = """
    UIADD3 UR6, UP0, URZ, -UR10, URZ
    v_not_b32_e32 v40, s36
    s_mov_b32 s27, -1
    v_add_co_ci_u32_e64 v41, s29, v40, 0, s27
    v_readfirstlane_b32 s32, v41
"""
_GUARDED = """
    @UP0 UIADD3 UR8, UR8, 0x7, URZ
    s_and_saveexec_b32 s2, s29
    v_add_nc_u32_e64 v40, s34, 7
    v_readfirstlane_b32 s27, v40
    s_cmp_lg_u32 exec_lo, 0
    s_cselect_b32 s34, s27, s34
    s_mov_b32 exec_lo, s2
"""
_READ = """
    IADD3 R0, R1, UR8, RZ
    v_add_nc_u32_e32 v0, s34, v1
"""
# Twice a number, in two ways: equal for all inputs, which the solver cannot prove here.
_TWICE = """
    FADD R2, R3, R3
    v_mul_f32_e32 v2, 2.0, v3
"""
_SIGNED = """
    @P0 HADD2.F32 R4, -RZ, R5.H0_H0
    s_and_saveexec_b32 s2, s20
    v_bfrev_b32_e32 v40, 1
    v_cvt_f32_f16_e32 v41, v5.l
    v_add_f32_e32 v4, v40, v41
    s_mov_b32 exec_lo, s2
"""


def _block(*parts: str, change: Change | None = None) -> BlockPair:
    """A block of instructions, each with its code.  Each v_readfirstlane is known to read a value
    shared by all lanes: it follows a computation from scalars."""
    sass: list[str] = []
    rdna: list[str] = []
    for part in parts:
        head, *code = [line.strip() for line in part.strip().splitlines()]
        mark = f"/*{16 * len(sass):04x}*/"
        sass.append(f"{mark} {head} ;")
        rdna += [f"{line} ; {mark}" for line in code]
    text = "\n".join(rdna)
    made = text if change is None else change(text)
    assert change is None or made != text, "nothing was changed"
    names = "\n".join(f'{name} = "{place}"' for name, place in _REGISTERS.items())
    written = (
        f'arch = 90\nsass = """\n{chr(10).join(sass)}\n"""\nrdna3 = """\n{made}\n"""\n'
        f"[registers]\n{names}\n"
    )
    block = block_of(read_texts(written))
    marked = [
        [replace(s, inst=replace(s.inst, uniform=s.inst.op == "v_readfirstlane_b32")) for s in code]
        for code in block.rdna
    ]
    return replace(block, rdna=marked)


def _verdict(*parts: str, change: Change | None = None) -> Verdict:
    block = _block(*parts, change=change)
    verdict = verify(block, vectors=512)
    if isinstance(verdict, Refuted):  # the inputs shown do refute
        left = f"SASS {verdict.sass:#x}, RDNA3 {verdict.rdna:#x}"
        assert any(left in line for line in explain_counterexample(block, verdict))
    return verdict


@pytest.mark.parametrize("made", [_COMPARED, _CARRIED], ids=["compared", "carried"])
def test_after_what_is_open(made: str) -> None:
    """The predicate is made before or after an instruction that the solver leaves open."""
    assert isinstance(_verdict(made, _GUARDED, _READ), Proved)
    for order in ((made, _GUARDED, _READ, _TWICE), (_TWICE, made, _GUARDED, _READ)):
        verdict = _verdict(*order)
        assert isinstance(verdict, Unknown), verdict
        assert "floating point" in verdict.reason


@pytest.mark.parametrize("made", [_COMPARED, _CARRIED], ids=["compared", "carried"])
def test_guard_of_some_lanes_as_well(made: str) -> None:
    """A pattern of two generated kernels."""
    assert isinstance(_verdict(made, _GUARDED, _READ, _SIGNED), Proved)
    assert isinstance(_verdict(_SIGNED, made, _GUARDED, _READ), Proved)


_WRONG: dict[str, Change] = {
    "another number": lambda t: t.replace("v_cmp_le_u32_e64 s29, 5", "v_cmp_le_u32_e64 s29, 6"),
    "other way round": lambda t: t.replace("v_cmp_le", "v_cmp_gt"),
    "of the lane": lambda t: t.replace("s29, 5, s34", "s29, 5, v1"),
    "in some lanes only": lambda t: t.replace(
        "v_cmp_le_u32_e64 s29, 5, s34 ; /*",
        "s_and_saveexec_b32 s2, s20\nv_cmp_le_u32_e64 s29, 5, s34\ns_mov_b32 exec_lo, s2 ; /*",
    ),
    "inverted guard": lambda t: t.replace("s_and_saveexec_b32", "s_and_not0_saveexec_b32"),
    "no choice": lambda t: t.replace("s_cselect_b32 s34, s27, s34", "s_mov_b32 s34, s27"),
    "chosen the other way": lambda t: t.replace("s34, s27, s34", "s34, s34, s27"),
    "EXEC kept": lambda t: t.replace("s_mov_b32 exec_lo, s2", "s_nop 0"),
}


@pytest.mark.parametrize("name", _WRONG)
def test_wrong(name: str) -> None:
    """Refuted with and without what the solver leaves open, before it and after it."""
    change = _WRONG[name]
    assert isinstance(_verdict(_COMPARED, _GUARDED, _READ, change=change), Refuted)
    for order in ((_COMPARED, _GUARDED, _READ, _TWICE), (_TWICE, _COMPARED, _GUARDED, _READ)):
        assert isinstance(_verdict(*order, change=change), Refuted)


_TEMPORARY = """
    @P0 IADD3 R0, R1, R2, RZ
    s_and_saveexec_b32 s2, s20
    v_mov_b32_e32 v40, v1
    {between}
    v_add_nc_u32_e32 v0, v40, v2
    s_mov_b32 exec_lo, s2
"""


@pytest.mark.parametrize(
    ("between", "right"),
    [
        ("s_nop 0", True),
        ("s_and_b32 exec_lo, s2, s20", True),
        ("s_mov_b32 exec_lo, s2", False),  # lanes excluded by the guard write, too
        ("s_and_b32 exec_lo, s2, s21", False),  # lanes other than those that wrote the temporary
    ],
)
def test_temporary_of_some_lanes(between: str, right: bool) -> None:
    """A temporary's value counts in the lanes that wrote it."""
    verdict = _verdict(_TEMPORARY.format(between=between))
    assert isinstance(verdict, Proved if right else Refuted)


def test_temporary_of_other_lanes() -> None:
    """Written under one guard, read under another."""
    text = """
    @P0 IADD3 R0, R1, R2, RZ
    s_and_saveexec_b32 s2, s21
    v_mov_b32_e32 v40, v1
    s_mov_b32 exec_lo, s2
    s_and_saveexec_b32 s2, s20
    v_add_nc_u32_e32 v0, v40, v2
    s_mov_b32 exec_lo, s2
    """
    assert isinstance(_verdict(text), Refuted)


def test_compared_in_a_temporary() -> None:
    """A mask that is not a predicate's: lanes that compare scalars make one bit."""
    chosen = """
    USEL UR6, UR8, UR10, UP0
    v_cmp_le_u32_e64 s28, 5, s34
    s_cmp_lg_u32 s28, 0
    s_cselect_b32 s32, s34, s36
    """
    assert isinstance(_verdict(_COMPARED, chosen), Proved)
    assert isinstance(_verdict(_TWICE, _COMPARED, chosen), Unknown)
    for wrong in ("s28, 6, s34", "s28, 5, v1"):
        change = partial(_replaced, "s28, 5, s34", wrong)
        assert isinstance(_verdict(_COMPARED, chosen, change=change), Refuted)


def _replaced(old: str, new: str, text: str) -> str:
    return text.replace(old, new)


def test_after_what_is_wrong() -> None:
    """A proof after an open instruction assumes equal values, which these are not:
    the wrong sum shows in a result computed from it alone."""
    one_nan = "v_max3_f32 v2, 0x7fffffff, v2, 0x7fffffff"  # what IADD3 reads of a NaN
    then = (
        f"IADD3 R0, R1, R2, RZ\n{one_nan}\nv_add_nc_u32_e32 v0, v1, v2",
        "IMAD.MOV.U32 R2, RZ, RZ, RZ\nv_mov_b32_e32 v2, 0",
    )
    assert isinstance(_verdict(_TWICE, *then), Unknown)
    assert isinstance(_verdict(_TWICE, *then, change=partial(_replaced, "2.0", "4.0")), Refuted)
    assert isinstance(_verdict(_TWICE, *then, change=partial(_replaced, one_nan, "")), Refuted)


@pytest.mark.parametrize(
    ("skipped", "read", "right"),
    [
        ("s_mov_b32 s40, s20", "s40", False),  # a number if the branch is taken
        ("s_mov_b32 s40, s20", "s20", True),
        ("s_mov_b32 s41, s20", "s41", True),  # whose value is never read
        ("buffer_gl0_inv", "s20", False),
    ],
)
def test_masks_where_ways_meet(skipped: str, read: str, right: bool) -> None:
    """A register that is a lane mask on one path and a number on the other is neither."""
    lines = ["s_cmp_eq_u32 s34, 0", "s_mov_b32 s40, 1", skipped]
    code: list[Item] = [parse(line) for line in lines]
    code.insert(2, Inst("s_cbranch_scc1", (LabelRef("there"),)))
    code += [Label("there"), parse(f"v_cndmask_b32_e64 v0, 0, 1, {read}")]
    program = assemble(code)
    placed: list[Placed] = []
    at = 0
    while at < len(program.data):
        inst, size = decode(program.data, at)
        placed.append(Placed(inst, at, at + size))
        at += size
    regs = Registers(Terms(), z3.BitVec, DEFAULT)
    regs.put_mask(20, z3.BitVec("P0", 32))
    if right:
        execute(placed, regs)
        return
    with pytest.raises(Undecided):
        execute(placed, regs)
