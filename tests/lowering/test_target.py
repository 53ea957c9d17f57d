"""The targets, against what LLVM says of them, the emulated device's table and their code."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sassxlate import toolchain
from sassxlate.cfg.rdna3_flow import discover
from sassxlate.disasm.amdgpu_machines import CODE_FOR, RDNA3
from sassxlate.disasm.rdna3 import assemble, waitcnt_imm
from sassxlate.disasm.rdna3.instruction import Inst, S, V
from sassxlate.errors import LoweringError
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.emulate.strict_hazards import Check, findings
from sassxlate.lowering.passes import made_safe
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import (
    DEFAULT,
    GFX1100,
    TARGETS,
    Counters,
    HazardWindows,
    Target,
    target_named,
)
from sassxlate.runtime_shim.cache.tag import cache_tag
from tests.lowering import emulated

NATIVE = Path(__file__).parents[2] / "runtime_shim" / "native" / "hip" / "target.h"
# Registers are given in multiples of 8, so all between have the occupancy of one of these.
REGISTERS = [n for end in range(8, 257, 8) for n in (end - 7, end)]
WITH_RULES = [t for t in TARGETS.values() if t.has_rules]


def test_names() -> None:
    assert tuple(TARGETS) == CODE_FOR
    assert tuple(t.name for t in WITH_RULES) == RDNA3
    assert DEFAULT.name == RDNA3[0]
    assert all(target_named(name).name == name for name in CODE_FOR)
    with pytest.raises(LoweringError) as caught:
        target_named("gfx1010")
    assert caught.value.code == "SX0416"


def test_two_targets_share_no_cache_entry() -> None:
    assert len({cache_tag(name) for name in CODE_FOR}) == len(CODE_FOR)


def test_the_emulated_device_has_the_same_table() -> None:
    rows = re.findall(r'\{"([\w-]+)", (0x\w+), (\d+), (\d+)\}', NATIVE.read_text())
    assert [(name, int(flags, 16), int(all_), int(step)) for name, flags, all_, step in rows] == [
        (t.name, t.machine, t.vgprs_of_simd, t.vgpr_step) for t in WITH_RULES
    ]


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_occupancy_and_flags_are_llvms(target: Target, tmp_path: Path) -> None:
    """For the first and last number of VGPRs of each granule; clang says the waves of a SIMD."""
    tool = toolchain.clang()
    if tool is None:
        pytest.skip("there is no clang")
    clang = [*tool.command[:-1], "clang"] if tool.command[-1] == "cc" else list(tool.command)
    source, out = tmp_path / "k.ll", tmp_path / "k.o"
    kernels = "".join(
        f'define amdgpu_kernel void @k{n}() #0 {{ call void asm sideeffect "", "~{{v{n - 1}}}"()\n'
        " ret void }\n"
        for n in REGISTERS
    )
    settings = '"amdgpu-waves-per-eu"="1,16" "target-features"="+wavefrontsize32,+cumode"'
    source.write_text(f"{kernels}attributes #0 = {{ {settings} }}\n")
    done = subprocess.run(
        [*clang, "-cc1", "-triple", "amdgcn-amd-amdhsa", "-target-cpu", target.name, "-x", "ir",
         "-emit-obj", "-O2", "-Rpass-analysis=kernel-resource-usage", "-o", str(out), str(source)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    said = [int(n) for n in re.findall(r"Occupancy \[waves/SIMD\]: (\d+)", done.stderr)]
    assert said == [target.waves_of_simd(n) for n in REGISTERS]
    assert int.from_bytes(out.read_bytes()[48:52], "little") == target.flags


def test_code_objects_say_which() -> None:
    """The same instructions; the file, its metadata and the largest block are the target's."""
    cubin = emulated.load("double_math", 90)
    usual = translate_kernel(cubin, "double_math")
    for target in WITH_RULES:
        done = translate_kernel(cubin, "double_math", target=target)
        obj = read(done.code_object)
        assert obj.target == target
        assert obj.metadata["amdhsa.target"] == target.isa
        assert obj.version == (6 if "generic" in target.name else 5)
        assert done.program.data == usual.program.data
        assert (done.code_object == usual.code_object) == (target == GFX1100)
        assert done.launch.max_threads <= target.most_threads(done.report.vgprs)


def test_hazards_are_the_targets() -> None:
    """A longer window needs a wait where the usual one is over."""
    code = [Inst("v_rcp_f32", (V(0), V(1)))]
    code += [Inst("v_mov_b32", (V(n), V(n + 1))) for n in range(2, 8)]
    code += [Inst("v_mov_b32", (V(9), V(0)))]
    longer = Target("gfx1100", 1536, 24, hazards=HazardWindows(trans_valu=9))
    waits = [[i for i in made_safe(code, t) if isinstance(i, Inst) and "depctr" in i.op]
             for t in (GFX1100, longer)]  # fmt: skip
    assert [len(found) for found in waits] == [0, 1]


def test_strict_mode_checks_the_targets_hazards() -> None:
    """Code that is right for one target is not for another whose window is longer."""
    code = [Inst("v_rcp_f32", (V(0), V(1)))]
    code += [Inst("v_mov_b32", (V(n), V(n + 1))) for n in range(2, 8)]
    code += [Inst("v_mov_b32", (V(9), V(0))), Inst("s_endpgm")]
    longer = replace(GFX1100, hazards=HazardWindows(trans_valu=9))
    flow = discover(assemble(code).data, 0)
    assert findings(flow, target=GFX1100) == []
    assert [found.check for found in findings(flow, target=longer)] == [Check.TRANS]


def test_strict_mode_checks_the_targets_counters() -> None:
    """The largest number of a counter waits for nothing."""
    loads = [Inst("global_load_b32", (V(n), V(20), S(4, 2))) for n in range(2)]
    wait = Inst("s_waitcnt", (), waitcnt_imm(vm=1))
    code = [*loads, wait, Inst("v_mov_b32", (V(9), V(0))), Inst("s_endpgm")]
    flow = discover(assemble(code).data, 0)
    assert findings(flow, target=GFX1100) == []
    few = replace(GFX1100, counters=Counters(vm=1))
    assert [found.check for found in findings(flow, target=few)] == [Check.VM]


def test_a_wave_has_the_lanes_of_its_operands() -> None:
    """A mask of lanes is one scalar register, so another wave size is no field of a target."""
    assert {target.lanes for target in TARGETS.values()} == {32}
    with pytest.raises(TypeError):
        Target("gfx1100", 1536, 24, lanes=64)  # type: ignore[call-arg]
