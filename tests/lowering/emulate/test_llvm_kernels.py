"""The emulated device has every instruction that LLVM's backend writes for random kernels."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from sassxlate.cfg.rdna3_flow import discover
from sassxlate.errors import SassxlateError
from sassxlate.lowering.emulate.compiler import ATTRIBUTES, build
from sassxlate.lowering.emulate.options import CompileOptions, host_isa

from .llvm_kernels import code_of, kernel_text

SEED = int(os.environ.get("SASSXLATE_TEST_SEED", "1"))
# LLVM's GCNDPPCombine gives some instructions a scalar second source, which gfx11.0 does not have:
# the device refuses them.
_KNOWN = ("with DPP src1 must be a VGPR",)
_OPTIONS = CompileOptions(align="unaligned")


def _refused(seeds: range) -> tuple[Counter[str], dict[str, str]]:
    """(mnemonics and how often they occur; for each refusal, the first kernel that has it)"""
    isa, names = host_isa(), Counter[str]()
    found: dict[str, str] = {}
    for seed in seeds:
        code, entry = code_of(kernel_text(seed), 1 + seed % 3)
        if not code:
            continue  # LLVM found that the kernel divides by zero or the like
        try:
            flow = discover(code, entry)
            build(flow, _OPTIONS, isa, ATTRIBUTES[isa])
        except SassxlateError as error:
            if any(text in str(error) for text in _KNOWN):
                continue
            found.setdefault(f"{error.code} {error.where.inst}", f"kernel_text({seed}): {error}")
            continue
        names.update(s.inst.op for b in flow.blocks.values() for s in b.steps)
    return names, found


def test_some_kernels() -> None:
    names, found = _refused(range(1000 * SEED, 1000 * SEED + 24))
    assert not found, "\n".join(found.values())
    assert len(names) > 200


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(20))
def test_many_kernels(part: int) -> None:
    first = 100_000 * SEED + 1000 * part
    names, found = _refused(range(first, first + 1000))
    print(len(names), "mnemonics")
    assert not found, "\n".join(found.values())
