"""Vector registers with spilled scalar ones, which LLVM would spill themselves."""

from __future__ import annotations

import pytest

from sassxlate.disasm.rdna3 import encode
from sassxlate.disasm.rdna3.instruction import I, Inst, S
from sassxlate.lowering.target import DEFAULT, EXEC, target_named
from sassxlate.lowering.tier import backend
from sassxlate.lowering.tier.backend import compiled, llvm_file
from sassxlate.lowering.tier.module import NAME, TRIPLE
from sassxlate.lowering.tier.refusal import BACKEND, Refused
from sassxlate.lowering.tier.spills import of_all_lanes

_ALL = I(0xFFFFFFFF)


def _kernel(scalars: int, vectors: int, registers: int) -> str:
    """Values that are kept over a loop, in a kernel that may have few vector registers."""
    kept = [
        f"%a{n} = add i32 %l, {n}\n %s{n} = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %a{n})"
        for n in range(scalars)
    ]
    kept += [f"%v{n} = load volatile i32, ptr addrspace(1) %p" for n in range(vectors)]
    turn: list[str] = []
    for kind, count in (("s", scalars), ("v", vectors)):
        last = "%i"
        for n in range(count):
            how = "add" if n % 2 else "xor"  # which LLVM cannot put together
            turn.append(f"%{kind}x{n} = {how} i32 %{kind}{n}, {last}")
            last = f"%{kind}x{n}"
        turn.append(f"store volatile i32 {last}, ptr addrspace(1) %p")
    body = "\n ".join((
        "%l = load volatile i32, ptr addrspace(1) %p", *kept, "br label %loop\nloop:",
        "%i = phi i32 [0, %entry], [%j, %loop]", *turn, "%j = add i32 %i, 1",
        "%c = icmp eq i32 %j, 9", "br i1 %c, label %end, label %loop\nend:", "ret void",
    ))  # fmt: skip
    return (
        f'target triple = "{TRIPLE}"\ndeclare i32 @llvm.amdgcn.readfirstlane.i32(i32)\n'
        f"define amdgpu_kernel void @{NAME}(ptr addrspace(1) %p) #0 {{\nentry:\n {body}\n}}\n"
        f'attributes #0 = {{ "amdgpu-num-vgpr"="{registers}" }}\n'
    )


@pytest.mark.parametrize("name", ["gfx1100", "gfx1201"])
def test_they_have_registers_of_their_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, target = _kernel(460, 2, 24), target_named(name)
    first = llvm_file(text, target)
    assert of_all_lanes(first.found.code, first.texts)
    made = compiled(text, target)
    assert made.metadata[".sgpr_spill_count"] > 300
    assert not of_all_lanes(made.code, made.texts)
    monkeypatch.setattr(backend, "apart", str)
    with pytest.raises(Refused, match="spilled scalar registers") as why:
        compiled(text, target)
    assert why.value.code == BACKEND


def test_both_kinds_of_spills_alone_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "apart", None)
    made = compiled(_kernel(150, 40, 20), DEFAULT)
    assert made.metadata[".sgpr_spill_count"]
    assert made.metadata[".vgpr_spill_count"]


@pytest.mark.parametrize(
    ("inst", "all_lanes"),
    [
        (Inst("s_or_saveexec_b32", (S(105), _ALL)), True),
        (Inst("s_mov_b32", (EXEC, _ALL)), True),
        (Inst("s_or_saveexec_b32", (S(105), S(3))), False),
        (Inst("s_mov_b32", (EXEC, S(105))), False),
        (Inst("s_mov_b32", (S(105), _ALL)), False),
    ],
)
def test_instructions_that_let_all_lanes_run(inst: Inst, all_lanes: bool) -> None:
    assert of_all_lanes(encode(Inst("s_nop", (), imm=0)) + encode(inst)) is all_lanes


@pytest.mark.parametrize(
    ("text", "all_lanes"),
    [
        ("s_or_saveexec_b32 s105, -1", True),
        ("s_mov_b32 exec_lo, -1", True),
        ("s_or_saveexec_b32 s105, s3", False),
        ("s_mov_b32 s105, -1", False),
    ],
)
def test_the_same_as_text(text: str, all_lanes: bool) -> None:
    assert of_all_lanes(b"", ("s_nop 0", text)) is all_lanes
