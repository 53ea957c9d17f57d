"""A target that no hardware is, with less of everything: its numbers reach every pass.

Its code has the instruction set's meaning, so the emulated device runs it, and the results must be
right: with few registers most kernels keep some in scratch, with short counters and long hazard
windows waits are at other places, and the workgroup's numbers arrive in other registers.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from sassxlate.disasm.rdna3 import RRef, decode_program, reads, writes
from sassxlate.disasm.rdna3.tables.operand_codes import SGPRS
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import GFX1100, Counters, HazardWindows
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS
from tests.lowering import emulated

NARROW = replace(
    GFX1100,
    sgprs=60,
    vgprs=40,
    user_sgprs=14,
    counters=Counters(vm=7, lgkm=7, vs=7),
    hazards=HazardWindows(trans_valu=9, trans_trans=4),
)
SAMPLE = random.Random(1).sample(sorted(CONTRACTS), 6)


def registers(done: Translated, kind: str) -> int:
    """One more than the highest register of a kind that any instruction names."""
    most = {"v": 256, "s": SGPRS}[kind]
    found: set[RRef] = set()
    for _, inst in decode_program(done.program.data):
        found |= reads(inst) | writes(inst)
    return 1 + max(r.number for r in found if r.kind == kind and r.number < most)


def check(name: str) -> bool:
    """Runs a kernel in strict mode; whether the few registers made it keep more in scratch."""
    cubin = emulated.load(name, 90)
    done = emulated.check(cubin, name, target=NARROW, strict=True)
    assert registers(done, "s") <= NARROW.sgprs
    assert registers(done, "v") <= NARROW.vgprs
    descriptor = read(done.code_object).kernel(name).descriptor
    assert descriptor.user_sgpr_count == NARROW.user_sgprs
    usual = translate_kernel(cubin, name)
    assert done.program.data != usual.program.data
    return len(done.selected.regs.spilled) > len(usual.selected.regs.spilled)


def test_a_sample_is_right() -> None:
    assert any([check(name) for name in SAMPLE])


@pytest.mark.sweep
@pytest.mark.parametrize("name", CONTRACTS)
def test_all_are_right(name: str) -> None:
    check(name)
