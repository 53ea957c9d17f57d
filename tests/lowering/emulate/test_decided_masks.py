"""Branches by comparisons of thread numbers, which a whole workgroup may decide: the lanes that go
on must be those of a model that compares each thread's number by itself, with every wrap."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from sassxlate.cfg.rdna3_flow import discover
from sassxlate.disasm.rdna3.codec.assemble import Label, assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, Sp, V
from sassxlate.lowering.emulate.compiler import ATTRIBUTES, compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image
from sassxlate.lowering.emulate.wave.wave import build

from .baseline import each_with_an_isa

_EXEC, _FULL, _SIGN = Sp("exec_lo"), 0xFFFFFFFF, 1 << 31
_WAIT = (Inst("s_waitcnt", (), 0), Inst("s_waitcnt_vscnt", (Sp("null"),), 0))
_SHAPES = (
    (16, 16, 1), (64, 1, 1), (5, 7, 1), (4, 4, 4), (1, 1, 1), (33, 2, 1), (8, 2, 3), (3, 1, 20),
)  # fmt: skip
_GROUPS = 3
_KERNARG = 32


@dataclass(frozen=True, slots=True)
class _Number:
    """What is compared: code that makes it of x, y and z in v1 to v3, with scalars in s8 and s9 and
    the workgroup's number in s2, in v4; and the same of one thread."""

    items: tuple[Inst, ...]
    of: Callable[[int, int, int, int, int, int], int]  # x, y, z, s8, s9, the workgroup's


_NUMBERS = {
    "x": _Number((Inst("v_mov_b32", (V(4), V(1))),), lambda x, y, z, a, b, g: x),
    "y": _Number((Inst("v_add_nc_u32", (V(4), S(8), V(2))),), lambda x, y, z, a, b, g: y + a),
    "z": _Number((Inst("v_sub_nc_u32", (V(4), V(3), S(8))),), lambda x, y, z, a, b, g: z - a),
    "index": _Number(
        (Inst("v_lshl_add_u32", (V(4), S(2), I(4), V(1))),), lambda x, y, z, a, b, g: 16 * g + x
    ),
    "from": _Number((Inst("v_sub_nc_u32", (V(4), S(8), V(1))),), lambda x, y, z, a, b, g: a - x),
    "sum": _Number(
        (
            Inst("v_lshlrev_b32", (V(4), I(3), V(1))),
            Inst("v_mul_lo_u32", (V(5), V(2), I(5))),
            Inst("v_sub_nc_u32", (V(4), V(4), V(5))),
            Inst("v_add_nc_u32", (V(4), S(8), V(4))),
        ),
        lambda x, y, z, a, b, g: 8 * x - 5 * y + a,
    ),
    "all": _Number(
        (Inst("v_add_nc_u32", (V(4), S(8), V(0))),),
        lambda x, y, z, a, b, g: (x | y << 10 | z << 20) + a,
    ),
    "wide": _Number(
        (
            Inst("v_mov_b32", (V(5), I(-7 & _FULL))),
            Inst("v_mov_b32", (V(4), V(0))),
            Inst("v_mad_u64_u32", (V(4, 2), Sp("null"), S(8), S(2), V(4, 2))),
        ),
        lambda x, y, z, a, b, g: (x | y << 10 | z << 20) + a * g,
    ),
    "great": _Number(
        (Inst("v_lshlrev_b32", (V(4), I(27), V(1))),), lambda x, y, z, a, b, g: x << 27
    ),
}  # fmt: skip
# Where sums leave the numbers with a sign, or those without.
_FIRST = {"y": "lt_i32", "z": "ge_u32", "from": "lt_u32", "sum": "ge_i32"}
_BY: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def _signed(x: int) -> int:
    return (x & _FULL) - (x << 1 & 1 << 32)


def _program(number: _Number, one: str, other: str, how: str) -> bytes:
    """out[thread] = 1 where `number ONE s9 HOW x OTHER s10`; workgroups are 1,024 dwords apart."""
    return assemble(
        [
            Inst("s_load_b128", (S(4, 4), S(0, 2)), 0),
            Inst("s_load_b128", (S(8, 4), S(0, 2)), 16),
            *_WAIT,
            Inst("v_and_b32", (V(1), I(1023), V(0))),
            Inst("v_bfe_u32", (V(2), V(0), I(10), I(10))),
            Inst("v_lshrrev_b32", (V(3), I(20), V(0))),
            *number.items,
            Inst(f"v_cmp_{one}", (S(12), V(4), S(9))),
            Inst(f"v_cmp_{other}", (S(13), V(1), S(10))),
            Inst(f"s_{how}_b32", (S(12), S(12), S(13))),
            Inst("s_and_saveexec_b32", (S(14), S(12))),
            Inst("s_cbranch_execz", (LabelRef("end"),)),
            Inst("v_mul_lo_u32", (V(3), V(3), S(7))),  # rows in z
            Inst("v_add_nc_u32", (V(2), V(2), V(3))),
            Inst("v_mul_lo_u32", (V(2), V(2), S(6))),  # threads in x
            Inst("v_add3_u32", (V(2), S(11), V(1), V(2))),
            Inst("s_mul_i32", (S(15), S(2), I(1024))),
            Inst("v_add_lshl_u32", (V(2), V(2), S(15), I(2))),
            Inst("v_mov_b32", (V(6), I(1))),
            Inst("global_store_b32", (V(2), V(6), S(4, 2))),
            Label("end"),
            *_WAIT,
            Inst("s_endpgm"),
        ]
    ).data


def _scalar(rng: random.Random) -> int:
    near = rng.choice((0, 0, _SIGN, _SIGN, 1 << 27, 15))
    return near + rng.randrange(-12, 30) & _FULL


@pytest.mark.parametrize(("name", "isa"), each_with_an_isa((name,) for name in _NUMBERS))
def test_as_each_thread_alone(name: str, isa: Isa) -> None:
    rng, number = random.Random(f"{name} {isa}"), _NUMBERS[name]
    kinds = [f"{by}_{kind}32" for by in _BY for kind in "iu"]
    one = _FIRST.get(name) or rng.choice(kinds)
    other, how = rng.choice(kinds), rng.choice(("and", "or", "or", "and_not1"))
    device = EmulatedDevice(1 << 16)
    out = device.alloc(4 * 1024 * _GROUPS)
    options = CompileOptions(isa=isa, kernarg=(0, _KERNARG), workgroup=2)
    loaded = LoadedImage(compile_kernel(_program(number, one, other, how), 0, options))
    setup = Setup(kernarg_size=_KERNARG, wg_sgpr=(2, None, None))
    some = 0
    for shape, _ in itertools.product(_SHAPES, range(4)):
        a, b, bound = _scalar(rng), _scalar(rng), _scalar(rng)
        kernarg = struct.pack("<QIIIIII", out, shape[0], shape[1], a, b, bound, 0)
        device.write(out, bytes(4 * 1024 * _GROUPS))
        run_image(loaded, setup, _GROUPS, shape, kernarg, device)
        expected = [0] * 1024 * _GROUPS
        threads = list(itertools.product(*(range(n) for n in reversed(shape))))
        for group, (place, (z, y, x)) in itertools.product(range(_GROUPS), enumerate(threads)):
            left = _holds(one, number.of(x, y, z, a, b, group), b)
            right = _holds(other, x, bound) != (how == "and_not1")
            expected[1024 * group + place] = int(left or right if how == "or" else left and right)
        found = struct.unpack(f"<{1024 * _GROUPS}I", device.read(out, 4096 * _GROUPS))
        assert list(found) == expected, (one, other, how, shape, a, b, bound)
        some += any(expected)
    assert some


def _holds(comparison: str, a: int, b: int) -> bool:
    by, _, kind = comparison.partition("_")
    return _BY[by](a & _FULL, b & _FULL) if kind == "u32" else _BY[by](_signed(a), _signed(b))


@pytest.mark.parametrize("name", _NUMBERS)
def test_whole_workgroups_decide(name: str) -> None:
    """Otherwise the other test has nothing to test."""
    code = _program(_NUMBERS[name], "lt_i32", "ne_u32", "and")
    flow = discover(code, 0, ())
    for kernarg in ((0, _KERNARG), None):
        options = CompileOptions(kernarg=kernarg, workgroup=2)
        text = build(flow, options, "avx512", ATTRIBUTES["avx512"])[0].functions["wave"]
        # Of numbers that a wave loads nothing is known before.
        assert ("label %each.d" in text) == (kernarg is not None)
