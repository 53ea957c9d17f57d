"""Loads by indices of 32 bits, against a model that computes each lane's address: indices reach the
arena's first and last dword and beyond, products wrap, factors are not what they seem to be."""

from __future__ import annotations

import random
import re
import struct

import pytest

from sassxlate.cfg import rdna3_flow
from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.compiler import ATTRIBUTES, compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.wave.wave import build

from .baseline import ISAS

_FULL, _FULL64 = 0xFFFFFFFF, (1 << 64) - 1
_WAIT = (Inst("s_waitcnt", (), 0), Inst("s_waitcnt_vscnt", (Sp("null"),), 0))
# How the index in v2, with the base in s[4:5] and the lanes' factors in v3, becomes v[4:5].
_FORMS = {
    "factor": (Inst("v_mad_i64_i32", (V(4, 2), S(10), V(2), V(3), S(4, 2))),),
    "four": (Inst("v_mad_i64_i32", (V(4, 2), S(10), V(2), I(4), S(4, 2))),),
}
# How the index becomes an offset from s[4:5], of 32 bits, in v4.
_OFFSETS = {
    "shifted": (Inst("v_lshlrev_b32", (V(4), I(2), V(2))),),
    "product": (Inst("v_mul_lo_u32", (V(4), V(2), V(3))),),
}


def _address(form: str) -> tuple[Inst, ...]:
    return _FORMS[form] if form in _FORMS else _OFFSETS[form]


def _program(form: str, offset: int) -> bytes:
    where = (V(4, 2), Sp("off")) if form in _FORMS else (V(4), S(4, 2))
    return assemble(
        [
            Inst("s_load_b64", (S(8, 2), S(0, 2)), 0),
            Inst("s_load_b128", (S(4, 4), S(0, 2)), 8),
            Inst("v_lshlrev_b32", (V(9), I(2), V(0))),
            *_WAIT,
            Inst("global_load_b32", (V(2), V(9), S(8, 2)), 0),
            Inst("global_load_b32", (V(3), V(9), S(8, 2)), 128),
            Inst("global_load_b32", (V(6), V(9), S(8, 2)), 256),
            *_WAIT,
            Inst("s_mov_b32", (Sp("exec_lo"), S(6))),
            *_address(form),
            Inst("global_load_b32", (V(6), *where), offset),
            *_WAIT,
            Inst("s_mov_b32", (Sp("exec_lo"), I(-1))),
            Inst("global_store_b32", (V(9), V(6), S(8, 2)), 384),
            *_WAIT,
            Inst("s_endpgm"),
        ]
    ).data


def _signed(x: int) -> int:
    return (x & _FULL) - (x << 1 & 1 << 32)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("form", [*_FORMS, *_OFFSETS])
def test_as_each_lane_alone(form: str, isa: Isa) -> None:
    rng = random.Random(f"{form} {isa}")
    size = 1 << 14
    # The arena's length is no multiple of four, so that its last dword is not at its end.
    device = EmulatedDevice(size + 2)
    row = device.alloc(512)
    content = rng.randbytes(size + 2)
    faults = clean = 0
    images = {
        offset: LoadedImage(compile_kernel(_program(form, offset), 0, CompileOptions(isa=isa)))
        for offset in (0, 16, -4)
    }
    for _ in range(400):
        offset, image = rng.choice(list(images.items()))
        device.write(device.base, content)
        start = rng.choice((0, 0, 4096, size - 4, size, -4, -(1 << 33), 1 << 33, 2))
        base = device.base + start - offset & _FULL64
        least, most = -(start // 4), (size - 4 - start) // 4
        if form in _OFFSETS:
            least = max(least, 0)
        indices = [rng.randint(least, max(least, most)) for _ in range(32)]
        if rng.random() < 0.4:
            what = (least, most, least - 1, most + 1, 1 << 30, -(1 << 30), 1 << 31, (1 << 31) - 1)
            indices[rng.randrange(32)] = rng.choice(what)
        if rng.random() < 0.1:
            indices = [rng.choice((indices[0], most + 1, least - 1))] * 32
        factors = [4] * 32
        if rng.random() < 0.3:
            factors[rng.randrange(32)] = rng.choice((0, 8, -4, 1, 1 << 31))
        if form in ("four", "shifted"):
            factors = [4] * 32
        mask = rng.choice((_FULL, _FULL, 0, 0xFFFF, 0x80000001, 1 << 31, rng.getrandbits(32)))
        old = rng.randbytes(128)
        device.write(row, struct.pack("<32I", *(i & _FULL for i in indices)))
        device.write(row + 128, struct.pack("<32I", *(f & _FULL for f in factors)) + old)
        kernarg = struct.pack("<QQII", row, base, mask, 0)
        device.write(device.base + 1024, kernarg)  # where the runner will put them
        device._next = 1024  # pyright: ignore[reportPrivateUsage]
        memory = device.read(device.base, size + 2)
        expected, wrong = bytearray(old), None
        for lane in range(32):
            if not mask >> lane & 1:
                continue
            product = _signed(indices[lane]) * _signed(factors[lane])
            if form in _OFFSETS:
                product &= _FULL
            at = (base + product + offset - device.base) & _FULL64
            if at + 4 > size + 2 or (device.base + at) % 4:
                wrong = lane
                break
            expected[4 * lane : 4 * lane + 4] = memory[at : at + 4]
        if wrong is None:
            run_image(image, Setup(), 1, 32, kernarg, device)
            assert device.read(row + 384, 128) == bytes(expected)
            clean += 1
            continue
        with pytest.raises(EmulatorError) as caught:
            run_image(image, Setup(), 1, 32, kernarg, device)
        found = re.search(r"fault .* lane (\d+):", str(caught.value))
        assert found is not None
        assert int(found[1]) == wrong, caught.value
        faults += 1
    assert faults > 40
    assert clean > 40


def test_the_forms_are_seen() -> None:
    """Otherwise the other test has nothing to test."""
    for form in (*_FORMS, *_OFFSETS):
        flow = rdna3_flow.discover(_program(form, 0), 0)
        text = build(flow, CompileOptions(), "avx512", ATTRIBUTES["avx512"])[0].text()
        assert "getelementptr i32, ptr" in text
        tested = re.search(r"icmp eq <32 x i32> %\w+, splat \(i32 4\)", text) is not None
        assert tested == (form == "factor")
