"""What the compiler takes for the probable stride of an access's addresses."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sassxlate.cfg.rdna3_flow import discover
from sassxlate.disasm.rdna3.codec.assemble import Label, assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, Sp, V
from sassxlate.lowering.emulate.wave.addresses.lane_strides import SCATTERED, strides

_X = Inst("v_and_b32", (V(1), I(0x3FF), V(0)))
_Y = Inst("v_bfe_u32", (V(2), V(0), I(10), I(10)))
_LOAD = Inst("global_load_b32", (V(9), V(4), S(4, 2)))
_END = (_LOAD, Inst("s_endpgm"))


def _found(items: Sequence[Inst | Label]) -> int | None:
    """The stride of the last access."""
    flow = discover(assemble(items).data, 0)
    steps = [s for at in sorted(flow.blocks) for s in flow.blocks[at].steps]
    last = [s.pc for s in steps if s.inst.op.startswith(("global_", "ds_"))][-1]
    return strides(flow).get(last)


def _shift(dst: int, by: int, src: int) -> Inst:
    return Inst("v_lshlrev_b32", (V(dst), I(by), V(src)))


@pytest.mark.parametrize(
    ("items", "stride"),
    [
        ((_X, _shift(4, 2, 1)), 4),
        ((_Y, _shift(4, 2, 2)), 0),
        ((_X, _Y, Inst("v_lshl_add_u32", (V(3), V(2), I(4), V(1))), _shift(4, 3, 3)), 8),
        ((_X, Inst("v_mul_lo_u32", (V(4), V(1), S(6)))), None),
        ((_Y, Inst("v_mul_lo_u32", (V(4), V(2), S(6)))), 0),
        ((_X, Inst("v_mov_b32", (V(3), I(12))), Inst("v_mul_lo_u32", (V(4), V(1), V(3)))), 12),
        ((_X, Inst("v_sub_nc_u32", (V(3), S(6), V(1))), _shift(4, 2, 3)), 2**32 - 4),
        ((_X, Inst("v_mad_i64_i32", (V(4, 2), S(8), V(1), I(4), S(6, 2)))), 4),
        # Of a sum of 64 bits, whose upper half nothing has written, the lower one.
        ((Inst("v_mad_u64_u32", (V(4, 2), Sp("null"), S(8), S(9), V(0, 2))),), 1),
        ((Inst("v_mad_u64_u32", (V(4, 2), Sp("null"), S(8), V(7), V(0, 2))),), None),
        ((Inst("v_mbcnt_lo_u32_b32", (V(1), I(-1), I(0))), _shift(4, 2, 1)), 4),
        ((_X, Inst("v_xor_b32", (V(4), I(1), V(1)))), None),
        ((_Y, Inst("v_xor_b32", (V(4), I(1), V(2)))), 0),
        # Loaded from different addresses, then whatever is done with it; and from one.
        (
            (
                _X,
                Inst("global_load_b32", (V(3), V(1), S(4, 2))),
                Inst("v_add_nc_u32", (V(3), V(8), V(3))),
                _shift(4, 2, 3),
            ),
            None,  # v8 was never written
        ),
        ((_X, Inst("global_load_b32", (V(3), V(1), S(4, 2))), _shift(4, 2, 3)), SCATTERED),
        ((_Y, Inst("ds_load_b32", (V(3), V(2))), _shift(4, 2, 3)), 0),
        ((_X, Inst("ds_bpermute_b32", (V(4), V(1), V(1)))), None),
        ((_Y, Inst("v_mov_b32", (V(4), V(2)), dpp="row_shr:1 row_mask:0xf bank_mask:0xf")), None),
        ((_Y, Inst("v_cndmask_b32", (V(4), V(2), V(2), Sp("vcc_lo")))), None),
    ],
)
def test_straight_code(items: tuple[Inst, ...], stride: int | None) -> None:
    assert _found([*items, *_END]) == stride


def test_a_dual_instruction_reads_before_it_writes() -> None:
    both = Inst("v_dual_mov_b32", (V(4), V(1)), y=Inst("v_dual_mov_b32", (V(1), V(2))))
    assert _found([_X, _Y, both, *_END]) == 1
    again = Inst("v_dual_mov_b32", (V(7), V(1)), y=Inst("v_dual_mov_b32", (V(4), V(7))))
    assert _found([_X, _Y, Inst("v_mov_b32", (V(7), V(2))), again, *_END]) == 0


def _loop(*body: Inst) -> list[Inst | Label]:
    back = Inst("s_cbranch_scc1", (LabelRef("again"),))
    return [_X, _Y, _shift(4, 2, 1), Label("again"), *body, _LOAD, back, Inst("s_endpgm")]


def test_loops_and_joins() -> None:
    assert _found(_loop(Inst("v_add_nc_u32", (V(4), I(64), V(4))))) == 4
    assert _found(_loop(Inst("v_add_nc_u32", (V(4), V(1), V(4))))) is None
    skip = Inst("s_cbranch_scc1", (LabelRef("there"),))
    # A register that one of the ways never wrote is what the other one made of it.
    assert _found([_X, skip, _shift(4, 2, 1), Label("there"), *_END]) == 4
    other = _shift(4, 3, 1)
    assert _found([_X, other, skip, _shift(4, 2, 1), Label("there"), *_END]) is None
