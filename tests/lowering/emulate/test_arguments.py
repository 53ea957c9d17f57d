"""Scalar loads of a launch's arguments, which need no check; and all others, which keep theirs.

Here they are the last bytes of the arena, so that what leaves them is a fault.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from sassxlate.cfg import rdna3_flow
from sassxlate.disasm.rdna3.codec.assemble import Label, assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, Sp, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.compiler import ATTRIBUTES, compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.wave.wave import build

from .baseline import ISAS

_SIZE = 256
_PAIR = S(0, 2)


def _load(at: int, words: int = 2, to: int = 4) -> Inst:
    return Inst(f"s_load_b{32 * words}", (S(to, words), _PAIR), at)


def _add(register: int, what: int) -> Inst:
    return Inst("s_add_u32", (S(register), S(register), I(what)))


# What leaves the arguments, or might: nothing of it may go without a check.
_OUTSIDE: dict[str, list[Inst | Label]] = {
    "past the end": [_load(_SIZE - 4)],
    "at the end": [_load(_SIZE, 1)],
    "before": [_load(-8192, 1)],
    "moved": [_add(0, 8), _load(_SIZE - 8)],
    "moved above": [_add(1, 1), _load(0)],
    "by a register": [
        Inst("s_mov_b32", (S(6), I(8))),
        Inst("s_load_b64", (S(4, 2), _PAIR, S(6)), _SIZE - 8),
    ],
    "moved in a later block": [
        Inst("s_mov_b32", (S(6), I(1))),
        Inst("s_cmp_eq_u32", (S(6), I(1))),
        Inst("s_cbranch_scc0", (LabelRef("same"),)),
        _add(0, 8),
        Label("same"),
        _load(_SIZE - 8),
    ],
    "again": [
        Label("again"),
        _load(_SIZE - 8),
        _add(0, 8),
        Inst("s_branch", (LabelRef("again"),)),
    ],
}


def _code(items: Sequence[Inst | Label]) -> bytes:
    return assemble([*items, Inst("s_endpgm")]).data


def _run(code: bytes, options: CompileOptions, kernarg: bytes) -> bytes:
    device = EmulatedDevice(4096 + _SIZE)
    device.alloc(4096 - 256)  # the first 256 bytes are not given out
    loaded = LoadedImage(compile_kernel(code, 0, options))
    setup = Setup(kernarg_sgpr=0, kernarg_size=_SIZE, sgpr=((2, device.base & 0xFFFFFFFF),
                                                           (3, device.base >> 32)))  # fmt: skip
    run_image(loaded, setup, 1, 32, kernarg, device)
    return device.read(device.base, 128)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", _OUTSIDE)
def test_outside(name: str, isa: Isa) -> None:
    options = CompileOptions(isa=isa, kernarg=(0, _SIZE))
    with pytest.raises(EmulatorError, match="fault in workgroup"):
        _run(_code(_OUTSIDE[name]), options, bytes(_SIZE))


@pytest.mark.parametrize("isa", ISAS)
def test_inside(isa: Isa) -> None:
    """Each width up to the last byte: the words are there, and nothing is checked."""
    words = struct.pack(f"<{_SIZE // 4}I", *range(7, 7 + _SIZE // 4))
    for count in (1, 2, 4, 8, 16):
        at = _SIZE - 4 * count
        code = _code(
            [
                _load(at, count, 16),
                Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
                Inst("s_waitcnt", (), 0),
                Inst("v_mov_b32", (V(2), S(16 + count - 1))),
                Inst("global_store_b32", (V(1), V(2), S(2, 2)), 0),
                Inst("s_waitcnt_vscnt", (Sp("null"),), 0),
            ]
        )
        options = CompileOptions(isa=isa, kernarg=(0, _SIZE))
        assert _run(code, options, words) == words[-4:] * 32
        flow = rdna3_flow.discover(code, 0)
        for known in (options, CompileOptions(isa=isa), CompileOptions(isa=isa, kernarg=(2, 256))):
            text = build(flow, known, isa, ATTRIBUTES[isa])[0].text()
            assert ("@resolve" in text) == (known is not options)
