"""LLVM may end its process: the kernel is refused, and all else goes on."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.lowering.tier import translate
from sassxlate.lowering.tier.backend import MachineCode, compiled
from sassxlate.lowering.tier.compiler.process import object_file, reason
from sassxlate.lowering.tier.module import TRIPLE, features
from sassxlate.lowering.tier.refusal import BACKEND, Refused
from sassxlate.lowering.tier.report import chosen
from tests.lowering.emulated import load

_KERNEL = "define amdgpu_kernel void @kernel(ptr addrspace(1) %p, i32 %i) {{\n{}\n ret void\n}}\n"
GOOD = _KERNEL.format("store i32 1, ptr addrspace(1) %p")
_LACKING = "declare float @llvm.amdgcn.cvt.f32.fp8(i32, i32 immarg)\n"
# What LLVM does with it, and the module.
DEATHS = {
    "SIGABRT: LLVM ERROR: Cannot select": _LACKING
    + _KERNEL.format(
        " %b = call float @llvm.amdgcn.cvt.f32.fp8(i32 3, i32 1)\n"
        " store float %b, ptr addrspace(1) %p"
    ),
    "exit status 1: error: .*local memory": "@g = addrspace(3) global [99999999 x i32] undef\n"
    + _KERNEL.format(
        " %q = getelementptr [99999999 x i32], ptr addrspace(3) @g, i32 0, i32 %i\n"
        " store i32 1, ptr addrspace(3) %q"
    ),
}


def _object(text: str) -> bytes:
    return object_file(text, TRIPLE, DEFAULT.name, features(DEFAULT))


@pytest.mark.parametrize("how", DEATHS)
def test_a_module_that_ends_llvm_is_refused(how: str) -> None:
    with pytest.raises(Refused, match=f"LLVM ended its process: {how}") as why:
        _object(DEATHS[how])
    assert why.value.code == BACKEND
    assert _object(GOOD)[:4] == b"\x7fELF"


_DUMP = "\n# Machine code for function kernel: NoPHIs, TracksLiveness\n" + 999 * "  S_NOP 0\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{_DUMP}python3: a.cpp:7: void f(): Assertion `x' failed.\nStack dump:\n",
         "Assertion `x' failed."),
        (f"{_DUMP}*** Bad machine code: Using an undefined register ***\nLLVM ERROR: Found 1\n",
         "*** Bad machine code: Using an undefined register ***"),
        (_DUMP, ""),
    ],
)  # fmt: skip
def test_the_reason_is_not_what_llvm_printed_before(text: str, why: str) -> None:
    assert reason(text) == why


def test_a_module_that_llvm_refuses() -> None:
    with pytest.raises(Refused, match="expected type"):
        _object("define x")


def test_the_rules_take_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tier's own IR, with one instruction that the processor lacks."""

    def wrong(text: str, target: Target) -> MachineCode:
        first = "  %lacking = call float @llvm.amdgcn.cvt.f32.fp8(i32 %word, i32 1)\n"
        kept = "  %word = load volatile i32, ptr addrspace(4) %karg\n"
        used = "  store volatile float %lacking, ptr addrspace(1) null\n"
        at = re.search(r"^  %karg = .*\n", text, re.MULTILINE)
        assert at is not None
        changed = text[: at.end()] + kept + first + used + text[at.end() :]
        return compiled(changed.replace("define amdgpu", _LACKING + "define amdgpu"), target)

    monkeypatch.setattr(translate, "compiled", wrong)
    rules = translate_kernel(load("divergent_if", 80), "divergent_if")
    made, report = chosen(rules, DEFAULT, "llvm")
    assert made is rules
    assert "SX0464" in report.blocks[0].detail
    assert "LLVM ended its process" in report.blocks[0].detail


def test_forks_and_threads() -> None:
    """A fork has a compiler of its own; threads share one."""
    whole = _object(GOOD)
    child = os.fork()
    if not child:
        os._exit(_object(GOOD) != whole)
    assert os.waitpid(child, 0)[1] == 0
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(_object, [GOOD] * 8)) == {whole}
