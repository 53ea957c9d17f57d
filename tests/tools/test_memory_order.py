"""Memory order: for each atomic and fence of PTX, and each thread of the litmus tests, what the
rules write has what LLVM's memory model for gfx1100 asks for, and docs/memory-order.md shows it."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import module_text
from tools.witness.memory_order import litmus, orders
from tools.witness.memory_order.__main__ import HEADS, PAGE, placed
from tools.witness.memory_order.litmus import THREADS, Thread
from tools.witness.memory_order.orders import OPERATIONS, Operation


@cache
def cubin() -> Cubin:
    found = orders.compiled()
    if found is None:
        pytest.skip("no nvcc")
    return found


@cache
def threads() -> Cubin:
    found = litmus.compiled()
    if found is None:
        pytest.skip("no nvcc")
    return found


@pytest.mark.parametrize("op", OPERATIONS, ids=str)
def test_nothing_that_llvm_writes_is_missing(op: Operation) -> None:
    assert orders.missing(op, orders.by_llvm(op), orders.by_rules(cubin(), op)) == ()


@pytest.mark.parametrize("thread", THREADS, ids=str)
def test_litmus_tests_have_what_llvm_writes(thread: Thread) -> None:
    assert litmus.missing(litmus.by_llvm(thread), litmus.by_rules(threads(), thread)) == ()


def test_page_shows_every_row() -> None:
    page = PAGE.read_text(encoding="utf-8")
    fresh = page
    for head, rows in zip(HEADS, (orders.table(cubin()), litmus.table(threads())), strict=True):
        assert len(rows) > 30
        fresh = placed(fresh, head, list(rows))
    assert fresh == page


def test_the_tier_keeps_an_acquire_of_shared_memory() -> None:
    """Of it SASS has a NOP that waits; without a fence the load of the data may be done first."""
    (reader,) = (
        t for t in THREADS if "shared" in t.test and (t.name, t.scope) == ("reader", "cta")
    )
    text = module_text(translate_kernel(threads(), reader.symbol), DEFAULT)
    flag, data = text.index("load i32, ptr addrspace(3)"), text.index("load i32, ptr addrspace(1)")
    assert flag < text.index('fence syncscope("workgroup") acquire') < data


# ptxas for sm_80 waits in the comparison, so the NOP after it has no wait mask.
TESTED = """.version 8.0
.target sm_80
.address_size 64
.visible .entry tested(.param .u64 flag, .param .u64 data, .param .u64 out) {
.reg .pred %p<2>;
.reg .b32 %r<3>;
.reg .b64 %d<4>;
ld.param.u64 %d1, [flag];
ld.param.u64 %d2, [data];
ld.param.u64 %d3, [out];
ld.acquire.cta.global.u32 %r1, [%d1];
setp.eq.s32 %p1, %r1, 0;
@%p1 bra DONE;
ld.global.u32 %r2, [%d2];
st.global.u32 [%d3], %r2;
DONE:
ret;
}
"""


def test_the_tier_keeps_an_acquire_whose_value_is_tested(tmp_path: Path) -> None:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc")
    source, out = tmp_path / "a.ptx", tmp_path / "a.cubin"
    source.write_text(TESTED)
    words = [*nvcc.command, "-cubin", "-arch=sm_80", "-o", str(out), str(source)]
    subprocess.run(words, check=True, capture_output=True)
    text = module_text(translate_kernel(parse_cubin(out.read_bytes()), "tested"), DEFAULT)
    fence = text.index('fence syncscope("workgroup") acquire')
    assert text.index("load atomic") < fence < text.rindex("load i32, ptr addrspace(1)")


ACQUIRE = Operation("ld", "acquire", "gpu")
ACQUIRED = ("ld glc", "vmcnt(0)", "buffer_gl1_inv", "buffer_gl0_inv")


def test_what_the_model_asks_for_is_noticed() -> None:
    assert orders.by_llvm(ACQUIRE) == ACQUIRED
    assert orders.missing(ACQUIRE, ACQUIRED, ACQUIRED) == ()


@pytest.mark.parametrize("gone", range(1, len(ACQUIRED)))
def test_one_instruction_less_is_noticed(gone: int) -> None:
    assert orders.missing(ACQUIRE, ACQUIRED, ACQUIRED[:gone] + ACQUIRED[gone + 1 :])


def test_another_access_or_order_is_noticed() -> None:
    assert orders.missing(ACQUIRE, ACQUIRED, ("ld", *ACQUIRED[1:]))
    late = ("ld glc", "buffer_gl1_inv", "buffer_gl0_inv", "vmcnt(0)")
    assert orders.missing(ACQUIRE, ACQUIRED, late)
    early = ("vmcnt(0)", "buffer_gl1_inv", "buffer_gl0_inv", "ld glc")
    assert orders.missing(ACQUIRE, ACQUIRED, early)


def test_a_wait_less_between_accesses_is_noticed() -> None:
    good = litmus.Code(("ld", "ld"), (("lgkmcnt(0)",),))
    assert litmus.missing(good, litmus.Code(("ld", "ld"), (("vmcnt(0)", "lgkmcnt(0)"),))) == ()
    assert litmus.missing(good, litmus.Code(("ld", "ld"), (("vmcnt(0)",),)))
    assert litmus.missing(good, litmus.Code(("ld", "ld glc"), (("lgkmcnt(0)",),)))
