"""Accesses to memory at any byte, as the hardware has them, and CUDA's rule for the same code."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

from .baseline import baseline, each_with_an_isa

_BYTES = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "b16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}
_LOADS = ("u16", "i16", "b32", "b64", "b96", "b128")
_STORES = ("b16", "b32", "b64", "b96", "b128")
_SIZE = 4096  # bytes of the memory that the accesses are in
_STEPS = (1, 2, 3, 4, 5, 8, 12, 16, 20, 0)  # bytes from one lane's address to the next one's
_SPACES = ("global", "flat", "ds", "scratch")
_WAIT = (Inst("s_waitcnt", (), 0), Inst("s_waitcnt_vscnt", (Sp("null"),), 0))
_OPTIONS = CompileOptions(align="unaligned")


def _addresses(space: str, step: int, at: int) -> list[Inst]:
    """v[2:3] and, for the global ones, s[4:5]: where the lanes' accesses go."""
    items = [Inst("v_mul_lo_u32", (V(2), V(0), I(step)))]
    if space == "scratch" and step == 0:
        items = [Inst("s_movk_i32", (S(6),), at)]
    elif space != "flat":
        items.append(Inst("v_add_nc_u32", (V(2), I(at), V(2))))
    else:
        items += [
            Inst("v_add_co_u32", (V(2), Sp("vcc_lo"), S(4), V(2))),
            Inst("v_add_co_ci_u32", (V(3), Sp("vcc_lo"), S(5), I(0), Sp("vcc_lo"))),
            Inst("v_add_co_u32", (V(2), Sp("vcc_lo"), I(at), V(2))),
            Inst("v_add_co_ci_u32", (V(3), Sp("vcc_lo"), I(0), V(3), Sp("vcc_lo"))),
        ]
    return items


def _access(space: str, kind: str, what: str, data: Arg, step: int) -> Inst:
    name = f"{space}_{kind}_{what}"
    address: tuple[Arg, ...] = (V(2), S(4, 2)) if space == "global" else (V(2, 2),)
    if space == "ds":
        address = (V(2),)
    elif space == "scratch":
        address = (Sp("off"), S(6)) if step == 0 else (V(2), Sp("off"))
    if kind == "load":
        return Inst(name, (data, *address))
    return Inst(name, (address[0], data, *address[1:]))


def _filled(space: str, at: str) -> list[Inst]:
    """Copies between memory at s[4:5] and the lanes' LDS or scratch (`at`: "in" or "out"): lane i
    has scratch of its own, bytes 0 to 127, from byte 128 i on; LDS has all of the bytes."""
    items: list[Inst] = []
    if space not in ("ds", "scratch"):
        return items
    items += [*_WAIT, Inst("v_lshlrev_b32", (V(9), I(7), V(0)))]
    for i in range(0, 128, 4):
        near = (V(9),) if space == "ds" else (Sp("off"), Sp("off"))
        if at == "in":
            items += [Inst("global_load_b32", (V(8), V(9), S(4, 2)), i), *_WAIT]
            put = (near[0], V(8), *near[1:])
            items.append(Inst("ds_store_b32" if space == "ds" else "scratch_store_b32", put, i))
        else:
            name = "ds_load_b32" if space == "ds" else "scratch_load_b32"
            items += [Inst(name, (V(8), *near), i), *_WAIT]
            items.append(Inst("global_store_b32", (V(9), V(8), S(4, 2)), i))
    return items


@dataclass(frozen=True, slots=True)
class _Case:
    """An access: bytes from one lane's address to the next one's, the first address, EXEC."""

    kind: str
    what: str
    step: int
    at: int
    mask: int


def _program(space: str, cases: Sequence[_Case]) -> bytes:
    """The accesses in turn, each with 512 bytes of registers in memory of its own."""
    items = [
        Inst("s_load_b64", (S(4, 2), S(0, 2)), 0),
        Inst("s_load_b64", (S(8, 2), S(0, 2)), 8),
        *_WAIT,
        *_filled(space, "in"),
        Inst("v_lshlrev_b32", (V(9), I(4), V(0))),
    ]
    for case in cases:
        n = max(1, _BYTES[case.what] // 4)
        items += [
            Inst("global_load_b128", (V(4, 4), V(9), S(8, 2))),
            *_WAIT,
            *_addresses(space, case.step, case.at),
            Inst("s_mov_b32", (Sp("exec_lo"), I(case.mask))),
            _access(space, case.kind, case.what, V(4, n), case.step),
            *_WAIT,
            Inst("s_mov_b32", (Sp("exec_lo"), I(-1))),
            Inst("global_store_b128", (V(9), V(4, 4), S(8, 2))),
            Inst("v_add_nc_u32", (V(9), I(512), V(9))),
        ]
    items += [*_filled(space, "out"), *_WAIT, Inst("s_endpgm")]
    return assemble(items).data


def _run(
    code: bytes, options: CompileOptions, *, stencils: bool = False, cases: int = 1
) -> tuple[bytes, bytes]:
    """(the memory, 16 bytes per lane of each case's registers)"""
    rng = random.Random(1)
    device = EmulatedDevice(1 << 17)
    memory, registers = device.alloc(_SIZE), device.alloc(512 * cases)
    device.write(memory, rng.randbytes(_SIZE))
    device.write(registers, rng.randbytes(512 * cases))
    loaded = baseline(code, options) if stencils else LoadedImage(compile_kernel(code, 0, options))
    setup = Setup(lds_size=_SIZE, scratch_size=128)
    run_image(loaded, setup, 1, 32, struct.pack("<QQ", memory, registers), device)
    return device.read(memory, _SIZE), device.read(registers, 512 * cases)


def _expected(space: str, cases: Sequence[_Case]) -> tuple[bytes, bytes]:
    rng = random.Random(1)
    memory, registers = bytearray(rng.randbytes(_SIZE)), bytearray(rng.randbytes(512 * len(cases)))
    for number, case in enumerate(cases):
        size = _BYTES[case.what]
        for lane in range(32):
            if not case.mask >> lane & 1:
                continue
            where = case.at + case.step * lane + (128 * lane if space == "scratch" else 0)
            row = 512 * number + 16 * lane
            if case.kind == "store":
                memory[where : where + size] = registers[row : row + size]
                continue
            got = int.from_bytes(memory[where : where + size], "little", signed=case.what[0] == "i")
            wide = max(size, 4)
            registers[row : row + wide] = (got & ((1 << 8 * wide) - 1)).to_bytes(wide, "little")
    return bytes(memory), bytes(registers)


@pytest.mark.parametrize(
    ("space", "tier", "isa"),
    each_with_an_isa(itertools.product(_SPACES, ("compiled", "strict", "stencils"))),
)
def test_any_byte(space: str, isa: Isa, tier: str) -> None:
    rng = random.Random(f"{space} {isa} {tier}")
    cases: list[_Case] = []
    for kind, what in [("load", w) for w in _LOADS] * 2 + [("store", w) for w in _STORES] * 2:
        step, at = rng.choice(_STEPS), rng.randrange(1, 4)
        if space == "scratch":
            step, at = rng.choice((((0, 0, 1, 2)[at], at), (0, rng.randrange(100))))
        cases.append(_Case(kind, what, step, at, rng.choice((0xFFFFFFFF, 0xF00FA5C3, 1, 0))))
    options = replace(_OPTIONS, isa=isa, strict=tier == "strict")
    code = _program(space, cases)
    memory, registers = _run(code, options, stencils=tier == "stencils", cases=len(cases))
    want_memory, want = _expected(space, cases)
    for i, case in enumerate(cases):
        row = slice(512 * i, 512 * i + 512)
        assert registers[row] == want[row], case
    assert memory == want_memory


@pytest.mark.parametrize("space", _SPACES)
@pytest.mark.parametrize("stencils", [False, True])
def test_cudas_rule_remains(space: str, *, stencils: bool) -> None:
    for what in ("b32", "b64", "b128"):
        code = _program(space, [_Case("load", what, 0, _BYTES[what] // 2, 0xFFFFFFFF)])
        with pytest.raises(EmulatorError, match=r"misaligned fault"):
            _run(code, CompileOptions(), stencils=stencils)


@pytest.mark.parametrize("stencils", [False, True])
def test_atomics_are_aligned_in_every_mode(*, stencils: bool) -> None:
    items = [
        Inst("s_load_b64", (S(4, 2), S(0, 2)), 0),
        Inst("v_mov_b32", (V(2), I(2))),
        Inst("global_atomic_add_u32", (V(2), V(4), S(4, 2))),
        Inst("s_endpgm"),
    ]
    with pytest.raises(EmulatorError, match=r"misaligned fault"):
        _run(assemble(items).data, _OPTIONS, stencils=stencils)


@pytest.mark.parametrize("stencils", [False, True])
def test_code_says_itself_that_an_address_is_misaligned(*, stencils: bool) -> None:
    code = assemble([Inst("s_trap", (), 16), Inst("s_endpgm")]).data
    with pytest.raises(EmulatorError, match=r"misaligned fault"):
        _run(code, CompileOptions(), stencils=stencils)
