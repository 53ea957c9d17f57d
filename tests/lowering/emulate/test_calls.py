"""Routines that code calls and that return by an address in registers, in both tiers."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

import pytest

from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, LabelRef, S, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import (
    BaselineKernel,
    EmulatedDevice,
    LoadedImage,
    Setup,
    run_image,
)
from tests.lowering.emulate.baseline import ISAS, baseline, first_pack, mode_of

_OUTER, _INNER, _LIMIT = S(20, 2), S(22, 2), 5


def _call(back: S, to: str) -> Inst:
    return Inst("s_call_b64", (back, LabelRef(to)))


def _work(rng: random.Random) -> Inst:
    """A step whose place in the order of all steps shows in the result."""
    op = rng.choice(("v_add_nc_u32", "v_mul_lo_u32", "v_xor_b32"))
    return Inst(op, (V(4), V(4), S(8)) if op == "v_mul_lo_u32" else (V(4), S(8), V(4)))


def _number(value: int) -> Inst:
    return Inst("s_mov_b32", (S(8), I(value)))


def _program(rng: random.Random) -> list[Item]:
    """Routines before and after the kernel's own code, each called from several places, one of them
    in a loop, and one from within another."""
    items: list[Item] = [Inst("s_branch", (LabelRef("start"),))]
    items += [Label("early"), _work(rng), _number(3), _work(rng), Inst("s_setpc_b64", (_OUTER,))]
    items += [
        Label("start"),
        Inst("s_load_b64", (S(2, 2), S(0, 2))),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
        Inst("v_mov_b32", (V(4), V(0))),
        Inst("s_mov_b32", (S(9), I(0))),
        _number(0x9E3779B1),
        Label("again"),
    ]
    for _ in range(rng.randrange(1, 7)):
        items += [_call(_OUTER, rng.choice(("early", "late"))), _number(rng.getrandbits(32))]
        items += [_work(rng)] * rng.randrange(2)
    items += [
        Inst("s_add_u32", (S(9), S(9), I(1))),
        Inst("s_cmp_lt_u32", (S(9), I(_LIMIT))),
        Inst("s_cbranch_scc1", (LabelRef("again"),)),
        _call(_OUTER, "early"),
        Inst("global_store_b32", (V(1), V(4), S(2, 2)), 0),
        Inst("s_endpgm"),
    ]
    items += [Label("late"), _call(_INNER, "inner"), _work(rng), Inst("s_setpc_b64", (_OUTER,))]
    return [*items, Label("inner"), _number(77), _work(rng), Inst("s_setpc_b64", (_INNER,))]


def _ran(loaded: LoadedImage | BaselineKernel) -> bytes | str:
    """The memory, or the fault's line."""
    device = EmulatedDevice(1 << 17)
    memory = device.alloc(128)
    try:
        run_image(loaded, Setup(), 1, 32, struct.pack("<Q", memory), device)
    except EmulatorError as error:
        return str(error)
    return device.read(memory, 128)


def _both(items: Sequence[Item], isa: Isa) -> tuple[bytes | str, bytes | str]:
    code = assemble(items).data
    options = CompileOptions(isa=isa)
    compiled = LoadedImage(compile_kernel(code, 0, options))
    return _ran(baseline(code, options)), _ran(compiled)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("seed", range(3))
def test_routines(seed: int, isa: Isa) -> None:
    copied, compiled = _both(_program(random.Random(seed)), isa)
    assert isinstance(copied, bytes)
    assert any(copied)
    assert copied == compiled


def test_a_place_that_no_call_returns_to() -> None:
    """The address of an instruction after no call: the same fault."""
    items: list[Item] = [
        _call(_OUTER, "routine"),
        Inst("s_endpgm"),
        Label("routine"),
        Inst("s_add_u32", (_low(_OUTER), _low(_OUTER), I(4))),
        Inst("s_setpc_b64", (_OUTER,)),
    ]
    copied, compiled = _both(items, ISAS[0])
    assert isinstance(copied, str)
    assert "0x8" in copied
    assert copied == compiled


def _low(pair: S) -> S:
    return S(pair.index)


def test_computed_addresses_are_compiled() -> None:
    """A tier without code for them says so."""
    items: list[Item] = [
        _call(_OUTER, "routine"),
        Inst("s_endpgm"),
        Label("routine"),
        Inst("s_getpc_b64", (_INNER,)),
        Inst("s_setpc_b64", (_OUTER,)),
    ]
    options = CompileOptions()
    code = assemble(items).data
    built = BaselineKernel([first_pack(ISAS[0])], code, 0, mode_of(options))
    assert built.entry is None
    assert "computes" in built.why
