"""The model of the counters: early uses are found, others are not."""

from __future__ import annotations

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.rdna3 import encode
from sassxlate.disasm.rdna3.codec.text.parse import parse
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.rdna3.wait_counters import waits
from sassxlate.lowering.verify.verdict import Undecided


def placed(*lines: str | Inst) -> list[Placed]:
    out: list[Placed] = []
    at = 0
    for line in lines:
        inst = parse(line) if isinstance(line, str) else line
        size = 4 if inst.op.startswith("s_cbranch") else len(encode(inst))
        out.append(Placed(inst, at, at + size))
        at += size
    return out


def early(*lines: str | Inst) -> str | None:
    """The register that is used too early."""
    found = waits(placed(*lines)).early
    return None if found is None else found.register


LOAD1 = "global_load_b32 v1, v[8:9], off"
LOAD2 = "global_load_b32 v2, v[8:9], off"
STORE = "global_store_b32 v[8:9], v3, off"
SHARED = "ds_load_b32 v1, v8"
SCALAR = "s_load_b32 s4, s[0:1], null"
FLAT = "flat_load_b32 v1, v[8:9]"
USE1, USE2, USES = "v_mov_b32_e32 v5, v1", "v_mov_b32_e32 v5, v2", "s_mov_b32 s5, s4"


@pytest.mark.parametrize(
    ("lines", "register"),
    [
        ((LOAD1, "s_waitcnt vmcnt(0)", USE1), None),
        ((LOAD1, USE1), "v1"),
        ((LOAD1, "v_mov_b32_e32 v1, v7"), "v1"),
        ((LOAD1, "s_waitcnt lgkmcnt(0)", USE1), "v1"),
        ((LOAD1, LOAD2, "s_waitcnt vmcnt(1)", USE1, "s_waitcnt vmcnt(0)", USE2), None),
        ((LOAD1, LOAD2, "s_waitcnt vmcnt(1)", USE2), "v2"),
        # Stores have a counter of their own, and what they read may be overwritten.
        ((LOAD1, STORE, "s_waitcnt vmcnt(0)", USE1, "v_mov_b32_e32 v3, 0"), None),
        ((LOAD1, "s_waitcnt_vscnt null, 0x0", USE1), "v1"),
        ((SHARED, "s_waitcnt lgkmcnt(0)", USE1), None),
        ((SHARED, "s_waitcnt vmcnt(0)", USE1), "v1"),
        ((SHARED, "ds_load_b32 v2, v8", "s_waitcnt lgkmcnt(1)", USE1, USE2), "v2"),
        # Scalar loads come in any order.
        ((SCALAR, "s_load_b32 s6, s[0:1], 0x4", "s_waitcnt lgkmcnt(1)", USES), "s4"),
        ((SCALAR, "s_waitcnt lgkmcnt(0)", USES), None),
        ((SCALAR, SHARED, "s_waitcnt lgkmcnt(1)", USES), "s4"),
        ((SHARED, SCALAR, "s_waitcnt lgkmcnt(1)", USE1), "v1"),
        # A flat access is in both.
        ((FLAT, "s_waitcnt vmcnt(0)", USE1), "v1"),
        ((FLAT, "s_waitcnt vmcnt(0) lgkmcnt(0)", USE1), None),
        # Loads of one kind write in order.
        ((LOAD1, LOAD1, "s_waitcnt vmcnt(0)", USE1), None),
        ((SHARED, LOAD1, "s_waitcnt vmcnt(0) lgkmcnt(0)"), "v1"),
        ((LOAD1,), "v1"),
    ],
)
def test_registers(lines: tuple[str, ...], register: str | None) -> None:
    assert early(*lines) == register


def test_paths() -> None:
    """A load outstanding on either path is outstanding where they meet."""
    skip = Inst("s_cbranch_execz", (), imm=2)  # over a load
    assert early(skip, LOAD1, USE1) == "v1"
    assert early(LOAD1, skip, "s_waitcnt vmcnt(0)", "s_nop 0", USE1, "s_waitcnt vmcnt(0)") == "v1"
    assert early(skip, LOAD1, "s_waitcnt vmcnt(0)", USE1) is None


def test_loops() -> None:
    back = Inst("s_cbranch_execnz", (), imm=-4)
    assert early(LOAD1, "s_waitcnt vmcnt(0)", back) is None
    with pytest.raises(Undecided):
        waits(placed(LOAD1, back))


def test_done() -> None:
    """Waits after which nothing is outstanding: no stores, not even those of earlier blocks."""
    code = placed("s_waitcnt vmcnt(0) lgkmcnt(0)", "s_waitcnt_vscnt null, 0x0", STORE,
                  "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_waitcnt_vscnt null, 0x0")  # fmt: skip
    assert waits(code).done == {code[1].pc, code[4].pc}
