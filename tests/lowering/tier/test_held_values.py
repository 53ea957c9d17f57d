"""Free instructions before phis are held where they are: LLVM's structurizer moved them wrongly."""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding as llvm
import pytest

from sassxlate import toolchain
from sassxlate.lowering.tier.compiler.held_values import held
from tests.lowering.tier.sweep_case import line_of

_TRIPLE = "amdgcn-amd-amdhsa"
_NAME, _SEED = "programs_s10_0065", 10
_H100 = "cec60cc8aed8b6f390183d03b8148bbef167d6dd696aacc5"  # its slots' CRCs there


def _module(kind: str, free: str, given: str) -> str:
    """Three ways to one phi, of which two give a free instruction's value."""
    return str(
        llvm.parse_assembly(
            f"""target triple = "{_TRIPLE}"
define amdgpu_kernel void @kernel(i32 %n, {given} %v, {kind} %w, ptr addrspace(1) %out) {{
entry:
  switch i32 %n, label %b [
    i32 1, label %a
    i32 2, label %a
    i32 3, label %c
  ]
a:
  %x = {free}
  br label %end
b:
  %y = {free}
  %again = icmp eq i32 %n, 7
  br i1 %again, label %b, label %end
c:
  br label %end
end:
  %r = phi {kind} [ %x, %a ], [ %y, %b ], [ %w, %c ]
  %s = phi {kind} [ %x, %a ], [ %w, %b ], [ %w, %c ]
  store {kind} %r, ptr addrspace(1) %out
  store {kind} %s, ptr addrspace(1) %out
  ret void
}}
"""
        )
    )


@pytest.mark.parametrize(
    ("kind", "free", "given"),
    [
        ("i32", "zext i16 %v to i32", "i16"),
        ("i16", "trunc i32 %v to i16", "i32"),
        ("i8", "trunc i32 %v to i8", "i32"),
        ("i1", "trunc i32 %v to i1", "i32"),
        ("i64", "zext i32 %v to i64", "i32"),
        ("float", "bitcast i32 %v to float", "i32"),
        ("half", "bitcast i16 %v to half", "i16"),
        ("<2 x half>", "bitcast i32 %v to <2 x half>", "i32"),
        ("ptr addrspace(1)", "inttoptr i64 %v to ptr addrspace(1)", "i64"),
        ("i32", "extractelement <4 x i32> %v, i32 1", "<4 x i32>"),
        ("double", "fneg double %v", "double"),
        ("<4 x i8>", "bitcast i32 %v to <4 x i8>", "i32"),
        (
            "<3 x i8>",
            "shufflevector <4 x i8> %v, <4 x i8> poison, <3 x i32> <i32 0, i32 1, i32 2>",
            "<4 x i8>",
        ),
        ("<16 x i8>", "bitcast <4 x i32> %v to <16 x i8>", "<4 x i32>"),
    ],
)
def test_each_is_copied_once_in_its_block(kind: str, free: str, given: str) -> None:
    text = held(_module(kind, free, given))
    assert text.count("= call ") == 2, text
    ways = text.split("\nend:", 1)[1].split("\n  store", 1)[0]
    assert "[ %x," not in ways
    assert "[ %y," not in ways
    assert ways.count("%held.") == 3
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.parse_assembly(text).verify()
    machine = llvm.Target.from_triple(_TRIPLE).create_target_machine(cpu="gfx1100", opt=3)
    assert machine.emit_object(llvm.parse_assembly(text))


def test_what_costs_something_stays() -> None:
    text = _module("i32", "add i32 %v, 1", "i32")
    assert held(text).strip() == text.strip()


def test_a_value_without_a_register() -> None:
    with pytest.raises(RuntimeError, match="type i96 where paths come together"):
        held(_module("i96", "zext i32 %v to i96", "i32"))


def test_a_phi_of_an_array() -> None:
    with pytest.raises(RuntimeError, match="a phi of another type: %r = phi \\[2 x i32"):
        held(_module("[2 x i32]", "insertvalue [2 x i32] poison, i32 %v, 0", "i32"))


def test_a_block_without_a_name() -> None:
    text = "define void @f(i16 %v) {\n  br label %b\n\nb:\n  %x = zext i16 %v to i32\n"
    text += "  br label %c\n\nc:\n  %r = phi i32 [ %x, %7 ]\n  ret void\n}\n"
    with pytest.raises(RuntimeError, match="no end of %7"):
        held(text)


@pytest.mark.sweep
@pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")
@pytest.mark.parametrize("arch", [75, 90])
def test_a_switch_whose_ways_give_one_cast(tmp_path: Path, arch: int) -> None:
    line = line_of(tmp_path, _NAME, arch, shape="programs", seed=_SEED)
    assert (line["t"], line["d"]) == ("llvm", _H100)
