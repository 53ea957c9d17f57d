"""Memory order: for each atomic and fence of PTX, and each thread of the litmus tests, what the
rules write has what LLVM's memory model for gfx1100 asks for, and docs/memory-order.md shows it."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.errors import LoweringError
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


# Waits at barriers in memory and at a cluster's barrier; every kernel then reads data of others.
WAITS = {
    f"{op}_{scope}": f"W: mbarrier.{op}.parity.acquire.{scope}.shared::cta.b64 %p1, [%r1], 0; "
    "@!%p1 bra W;"
    for op in ("test_wait", "try_wait")
    for scope in ("cta", "cluster")
} | {
    f"cluster_{order}": f"st.weak.global.u32 [%rd2], %r3; barrier.cluster.arrive.{order}; "
    "barrier.cluster.wait.acquire;"
    for order in ("release", "relaxed")
}
_WAITS_PTX = """
.visible .entry {name}(.param .u64 a, .param .u64 b) {{
.reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<4>;
.shared .align 8 .b64 bar[4]; .shared .align 16 .b32 data[256];
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
mov.u32 %r1, bar; mov.u32 %r2, data; mov.u32 %r3, %tid.x;
mad.lo.u32 %r2, %r3, 4, %r2; mul.wide.u32 %rd3, %r3, 4;
add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
{what}
ld.weak.global.u32 %r5, [%rd1]; ld.weak.shared.u32 %r6, [%r2];
add.u32 %r5, %r5, %r6; st.weak.global.u32 [%rd2], %r5;
ret; }}
"""


@cache
def waits_90() -> Cubin:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc")
    text = ".version 8.0\n.target sm_90\n.address_size 64\n"
    text += "".join(_WAITS_PTX.format(name=name, what=what) for name, what in WAITS.items())
    with TemporaryDirectory() as folder:
        source, out = Path(folder, "a.ptx"), Path(folder, "a.cubin")
        source.write_text(text)
        words = [*nvcc.command, "-cubin", "-arch=sm_90", "-o", str(out), str(source)]
        subprocess.run(words, check=True, capture_output=True)
        return parse_cubin(out.read_bytes())


def after_waits(name: str) -> list[list[str]]:
    """For each place where the kernel looks at the barrier, or waits at it: the waits and cache
    controls between that and the next access to memory, in the order of the text."""
    found: list[list[str]] = []
    open_ = False
    for line in translate_kernel(waits_90(), name).assembly.splitlines():
        op = line.split()[0] if line.strip() else ""
        if op == "s_barrier" or (op == "ds_load_b32" and "offset:4" in line):
            found.append([])
            open_ = True
        elif op.startswith(("ds_", "global_")):
            open_ = False
        elif open_:
            found[-1] += orders.waits_of(line)
    return found


@pytest.mark.parametrize("name", WAITS)
def test_a_wait_at_a_barrier_acquires(name: str) -> None:
    """SASS has no trace of an acquire of CTA scope there: the phase is used as soon as it is read,
    and what is issued after that use comes later.  Wider scopes have CCTL.IVALL."""
    places = after_waits(name)
    assert places
    if "wait" in name:
        assert all(waits[:1] == ["lgkmcnt(0)"] for waits in places), places
    else:
        places = places[:1]  # the other one is for launches without clusters: BAR.SYNC
    if not name.endswith("cta"):
        caches = [[w for w in waits if w.startswith("buffer")] for waits in places]
        assert all(c == ["buffer_gl1_inv", "buffer_gl0_inv"] for c in caches), places


@pytest.mark.parametrize("name", ["test_wait_cta", "try_wait_cluster"])
def test_the_tier_leaves_barriers_in_memory_to_the_rules(name: str) -> None:
    """Its code would have to say that the phase's load acquires."""
    with pytest.raises(LoweringError):
        module_text(translate_kernel(waits_90(), name), DEFAULT)


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
