"""s_waitcnt if, and only if, a register with a pending load is accessed."""

from __future__ import annotations

from sassxlate.disasm.rdna3 import waitcnt_fields
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.lowering.passes.waitcnt import insert_waitcnt

OFF = Sp("off")


def load(dst: int) -> Inst:
    return Inst("global_load_b32", (V(dst), V(10, 2), OFF))


def shown(items: list[Item]) -> list[str]:
    out: list[str] = []
    for item in items:
        if isinstance(item, Label):
            out.append("mark")
        elif item.op == "s_waitcnt":
            vm, lgkm, _ = waitcnt_fields(item.imm)
            out.append(f"wait {vm} {lgkm}")
        else:
            out.append(item.op)
    return out


def test_reader_waits_for_its_load_only() -> None:
    use = Inst("v_mov_b32", (V(3), V(0)))
    assert shown(insert_waitcnt([load(0), load(1), use])) == [
        "global_load_b32",
        "global_load_b32",
        "wait 1 63",
        "v_mov_b32",
    ]


def test_overwriting_waits_too() -> None:
    kill = Inst("v_mov_b32", (V(0), I(1)))
    assert shown(insert_waitcnt([load(0), kill]))[1] == "wait 0 63"


def test_scalar_loads_come_out_of_order() -> None:
    one = Inst("s_load_b32", (S(4), S(0, 2), Sp("null")))
    two = Inst("s_load_b32", (S(5), S(0, 2), Sp("null")))
    use = Inst("s_mov_b32", (S(6), S(4)))
    assert shown(insert_waitcnt([one, two, use]))[2] == "wait 63 0"


def test_lds_in_order() -> None:
    one = Inst("ds_load_b32", (V(4), V(0)))
    two = Inst("ds_load_b32", (V(5), V(0)))
    use = Inst("v_mov_b32", (V(6), V(4)))
    assert shown(insert_waitcnt([one, two, use]))[2] == "wait 63 1"


def test_nothing_unfinished_crosses_a_label_or_branch() -> None:
    branch = Inst("s_branch", (LabelRef("x"),))
    assert shown(insert_waitcnt([load(0), branch, Label("x")])) == [
        "global_load_b32",
        "wait 0 63",
        "s_branch",
        "mark",
    ]
    assert shown(insert_waitcnt([load(0), Label("x")]))[1] == "wait 0 63"


def test_store_needs_no_wait_but_its_data_does() -> None:
    store = Inst("global_store_b32", (V(10, 2), V(0), OFF))
    assert shown(insert_waitcnt([load(0), store])) == [
        "global_load_b32",
        "wait 0 63",
        "global_store_b32",
    ]
    assert shown(insert_waitcnt([store, load(0)])) == ["global_store_b32", "global_load_b32"]
