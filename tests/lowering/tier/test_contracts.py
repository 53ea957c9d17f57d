"""The kernels of the fixtures by the optimising tier: right, or refused for a listed reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.codeobject.source_map import find, parse
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT, GFX11_GENERIC, GFX1103, GFX1151, Target
from sassxlate.lowering.tier.refusal import FLOW, FORM, Refused
from sassxlate.lowering.tier.report import chosen
from sassxlate.lowering.tier.translate import by_tier
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS
from tests.lowering.emulated import KERNELS, check, load

# On sm_80.
REFUSED = {"named_barriers": FORM, "arrive_barriers": FORM, "mutual_recursion": FLOW}
SAMPLE = (
    "divergent_if", "carry_chains", "local_array", "shuffle_after_division", "jump_table",
    "float_rules", "shuffle_forms", "async_copies", "function_pointers", "global_atomics",
    "conversions", "far_breaks", "cas64_loop", "double_math", "exit_in_regions", "shared_atomics",
    "barrier_reduce", "uniform_barrier",
)  # fmt: skip


def _right(name: str, arch: int, *, strict: bool = False) -> bool:
    """Whether the tier takes a kernel; its results are compared."""
    try:
        check(load(name, arch), name, change=by_tier, strict=strict)
    except Refused:
        return False
    return True


@pytest.mark.parametrize("name", SAMPLE)
def test_results_are_those_of_the_contract(name: str) -> None:
    assert _right(name, 80)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_not_known_to_be_right_is_refused(name: str) -> None:
    rules = translate_kernel(load(name, 80), name)
    with pytest.raises(Refused) as why:
        by_tier(rules, DEFAULT)
    assert why.value.code == REFUSED[name]
    made, report = chosen(rules, DEFAULT, "llvm")
    assert made is rules
    assert report.blocks[0].outcome == "refused"
    assert why.value.message in report.blocks[0].detail


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90, 120])
@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_every_kernel(name: str, arch: int) -> None:
    if (KERNELS / f"sm_{arch}" / f"{name}.cubin").exists():
        _right(name, arch, strict=True)


def test_the_code_object_says_where_its_code_came_from() -> None:
    rules = translate_kernel(load("divergent_if", 80), "divergent_if")
    made = by_tier(rules, DEFAULT)
    named = {i.origin.offset for i in made.items if isinstance(i, Inst) and i.origin is not None}
    offsets = {i.offset for b in rules.cfg.blocks for i in b.instructions}
    assert named <= offsets
    assert len(named) > len(offsets) // 4
    note = find(made.code_object)
    assert note is not None
    assert "divergent_if" in parse(note)
    assert str(made.launch) == str(rules.launch)


@pytest.mark.parametrize("target", [GFX1103, GFX1151, GFX11_GENERIC], ids=lambda t: t.name)
def test_another_target(target: Target) -> None:
    """LLVM writes scalar instructions for floats for gfx1151 itself, which gfx1100 has not."""
    made = check(load("double_math", 80), "double_math", target=target, change=by_tier)
    assert read(made.code_object).target == target


def test_a_whole_kernel_has_no_blocks_to_prove(tmp_path: Path) -> None:
    """They were judged with the rules' registers, and refuted."""
    pytest.importorskip("z3", reason="z3-solver is not installed")
    cubin = str(KERNELS / "sm_80" / "divergent_if.cubin")
    asked = ["translate", "--engine", "llvm", "--verify", cubin, "-o", str(tmp_path)]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    assert "by LLVM as a whole" in done.output
    assert "blocks: no blocks" in done.output
    assert list(tmp_path.glob("*.hsaco"))
