"""The four hazards of wave32 gfx1100: for each a pattern that needs help and one that does not."""

from __future__ import annotations

import pytest

from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, S, Sp, V
from sassxlate.errors import LoweringError
from sassxlate.lowering.passes.hazards import insert_hazards


def ops(items: list[Item]) -> list[str]:
    return [i.op if isinstance(i, Inst) else "mark" for i in items]


def mov(dst: int, src: int) -> Inst:
    return Inst("v_mov_b32", (V(dst), V(src)))


RCP = Inst("v_rcp_f32", (V(0), V(1)))


@pytest.mark.parametrize("between", range(8))
def test_trans_use(between: int) -> None:
    items: list[Item] = [RCP, *(mov(20 + i, 30) for i in range(between)), mov(2, 0)]
    assert ("s_waitcnt_depctr" in ops(insert_hazards(items))) == (between <= 5)


def test_trans_use_ends_at_memory_and_is_settled_at_labels() -> None:
    load = Inst("global_load_b32", (V(5), V(10, 2), Sp("off")))
    assert "s_waitcnt_depctr" not in ops(insert_hazards([RCP, load, mov(2, 0)]))
    assert ops(insert_hazards([RCP, Label("x"), mov(2, 0)])) == [
        "v_rcp_f32",
        "s_waitcnt_depctr",
        "mark",
        "v_mov_b32",
    ]


def test_cmpx_permlane() -> None:
    cmpx = Inst("v_cmpx_eq_u32", (V(0), V(1)))
    perm = Inst("v_permlane16_b32", (V(2), V(3), S(4), S(5)))
    assert ops(insert_hazards([cmpx, perm])) == ["v_cmpx_eq_u32", "v_mov_b32", "v_permlane16_b32"]
    assert len(insert_hazards([cmpx, mov(7, 8), perm])) == 3


def test_mad_overlap_is_refused() -> None:
    bad = Inst("v_mad_u64_u32", (V(0, 2), Sp("null"), V(0), V(3), V(4, 2)))
    good = Inst("v_mad_u64_u32", (V(6, 2), Sp("null"), V(0), V(3), V(4, 2)))
    insert_hazards([good])
    with pytest.raises(LoweringError, match="SX0430"):
        insert_hazards([bad])
