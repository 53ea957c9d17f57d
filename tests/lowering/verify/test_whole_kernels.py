"""Kernels of the optimising tier, from SASS to the final machine code: proved, refuted, unknown."""

from __future__ import annotations

import os
import random
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.rdna3.instruction import Inst, V
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.lowering.tier import translate
from sassxlate.lowering.tier.backend import MachineCode, compiled
from sassxlate.lowering.verify.kernel.verify import (
    ASSUMED,
    Guesses,
    KernelPair,
    on_numbers,
    pair_of,
    verify,
)
from sassxlate.lowering.verify.verdict import Proved, Refuted, Undecided, Unknown, Verdict
from tests.lowering.emulated import load
from tests.lowering.tier.test_wrong_passes import PASSES

pytest.importorskip("z3", reason="z3-solver is not installed")

# Their operations see other lanes, which is not decided here.
OTHER_LANES = frozenset({"global_atomics", "shuffle_forms"})
SOURCE = Path(__file__).with_name("whole.cu")
SAMPLE = 2  # wrong passes that every run of the tests has


def _pair(kernel: str, cubin: Cubin | None = None) -> KernelPair:
    rules = translate_kernel(cubin or load(kernel, 80), kernel)
    return pair_of(rules, translate.by_tier(rules, DEFAULT), DEFAULT)


def _on_numbers(pair: KernelPair) -> Refuted | None:
    return on_numbers(pair, Guesses(), 512)


@pytest.mark.parametrize(
    "kernel",
    [
        "half_pairs",
        *(
            pytest.param(name, marks=pytest.mark.sweep)
            for name in ("byte_lanes", "float_rules", "funnel_shifts", "multiply_high",
                         "permute_bytes", "predicated_stores", "wide_constants")
        ),
    ],
)  # fmt: skip
def test_proved(kernel: str) -> None:
    found = verify(_pair(kernel), limit_s=300)
    assert isinstance(found, Proved), found
    assert set(ASSUMED) <= set(found.modulo)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [("jump_table", "a loop"), ("dynamic_shared", "BAR"), ("shuffle_forms", "SHFL")],
)
def test_unknown_with_a_reason(kernel: str, reason: str) -> None:
    found: Verdict = verify(_pair(kernel))
    assert isinstance(found, Unknown), found
    assert reason in found.reason


@pytest.fixture(scope="module")
def compiled_here(tmp_path_factory: pytest.TempPathFactory) -> Cubin:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, no NVIDIA wheels")
    out = tmp_path_factory.mktemp("whole") / "whole.cubin"
    command = [*nvcc.command, "-arch=sm_80", "-cubin", "-o", str(out), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True)
    return parse_cubin(out.read_bytes())


def test_a_word_that_a_whole_wave_loads(compiled_here: Cubin) -> None:
    """Of a lane that has ended SASS loads nothing, its wave does: once right code was refuted.  It
    may only where a lane is active."""
    pair = _pair("block_sums", compiled_here)
    found = verify(pair, limit_s=300)
    assert isinstance(found, Proved), found
    ops = [placed.inst.op for placed in pair.code]
    assert ops.index("s_cbranch_execz") < ops.index("s_load_b32", ops.index("s_cbranch_execz"))
    wrong = _on_numbers(_changed(pair, ops.index("s_cbranch_execz"), Inst("s_nop")))
    assert wrong is not None
    assert wrong.where == "a scalar load of a wave without active lanes"


def test_the_nan_of_a_double_that_is_only_stored(compiled_here: Cubin) -> None:
    """It may be any: that is neither a fault nor proved."""
    found = verify(_pair("rounded", compiled_here))
    assert isinstance(found, Unknown), found
    assert "data of store" in found.reason


def _changed(pair: KernelPair, n: int, to: Inst) -> KernelPair:
    code = list(pair.code)
    code[n] = replace(code[n], inst=to)
    return replace(pair, code=code)


def test_wrong_machine_code_is_refuted() -> None:
    """Each store, load and compare in turn left out or changed, after LLVM."""
    pair = _pair("predicated_stores")
    assert _on_numbers(pair) is None
    tried = 0
    for n, placed in enumerate(pair.code):
        inst = placed.inst
        wrong: list[Inst] = []
        if inst.op.startswith(("global_store", "global_load")):
            wrong = [replace(inst, imm=inst.imm + 4)]
        if inst.op.startswith("global_store") or inst.op.startswith("v_cmpx"):
            wrong.append(Inst("s_nop"))
        for other in wrong:
            tried += 1
            try:
                assert _on_numbers(_changed(pair, n, other)) is not None, (n, inst)
            except Undecided:  # what is left is no code that can be followed
                assert other.op == "s_nop"
    assert tried >= 8


def test_an_access_of_its_own_is_refuted() -> None:
    """A load whose result nothing reads may fault where SASS loads nothing."""
    pair = _pair("half_pairs")
    n, load_ = next((i, p.inst) for i, p in enumerate(pair.code) if p.inst.op == "global_load_b32")
    unread = (V(200), *load_.args[1:])
    extra = replace(pair.code[n], inst=replace(load_, args=unread, imm=load_.imm + 64))
    code = [*pair.code[:n], extra, *pair.code[n:]]
    found = _on_numbers(replace(pair, code=code))
    assert found is not None
    assert found.where == "access to global that SASS does not make"


def _refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, pattern, by = PASSES[name]
    changed: list[bool] = []

    def wrong(text: str, target: Target) -> MachineCode:
        new = re.sub(pattern, by, text, flags=re.MULTILINE)
        changed.append(new != text)
        return compiled(new, target)

    monkeypatch.setattr(translate, "compiled", wrong)
    found = _on_numbers(_pair(kernel))
    assert changed == [True]
    assert found is not None, name


_SEEN = sorted(name for name, (kernel, _, _) in PASSES.items() if kernel not in OTHER_LANES)


def test_some_wrong_passes_are_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others with each CI seed."""
    chance = random.Random(int(os.environ.get("SASSXLATE_TEST_SEED", "1")))
    for name in chance.sample(_SEEN, SAMPLE):
        with monkeypatch.context() as patch:
            _refuted(name, patch)


@pytest.mark.sweep
@pytest.mark.parametrize("name", _SEEN)
def test_wrong_passes_are_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _refuted(name, monkeypatch)
