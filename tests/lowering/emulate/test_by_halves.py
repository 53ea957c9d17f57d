"""64-bit comparisons and shifts of pairs of registers, which host code computes by halves."""

from __future__ import annotations

import random
import struct
from itertools import product

import pytest

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.rdna3.semantics import Mode
from sassxlate.lowering.emulate.compiler import compile_flow
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

from .baseline import ISAS
from .harness import LANES, Case, flow_of, run_cases
from .test_meanings import ROWS, expected

_HALVES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_PREDICATES = ("lt", "eq", "le", "gt", "ne", "ge")
_COUNTS = (0, 1, 31, 32, 33, 63)


def _numbers(chance: random.Random) -> list[int]:
    """Of few halves, so that two often have one in common."""
    edges = [hi << 32 | lo for hi, lo in product(_HALVES, _HALVES)]
    return [chance.choice(edges) for _ in range(LANES)]


def _case(op: str, constants: dict[int, int]) -> tuple[Case, list[tuple[int, ...]]]:
    """An instruction whose operands are registers, but some constants; each lane's operands."""
    row, chance = ROWS[op], random.Random(f"{op} {constants}")
    columns: list[list[int]] = []
    for n, kind in enumerate(row.src):
        wide = _numbers(chance)
        mask = (1 << (64 if kind == "b64" else 32)) - 1
        columns.append(
            [constants[n] & mask] * LANES if n in constants else [x & mask for x in wide]
        )
    rows = list(zip(*columns, strict=True))
    given = [n for n in range(len(row.src)) if n not in constants]

    def build(dsts: list[Arg], srcs: list[Arg]) -> Inst:
        left = iter(srcs)
        args = (I(constants[n]) if n in constants else next(left) for n in range(len(row.src)))
        return Inst(op, (*dsts, *args))

    kinds = tuple(row.src[n] for n in given)
    return Case(row.dst, kinds, build, tuple(tuple(r[n] for n in given) for r in rows)), rows


_FORMS = [
    *((f"v_cmp_{p}_{t}64", c) for p in _PREDICATES for t in "ui" for c in ({}, {0: 1}, {1: -1})),
    *((f"v_{op}_b64", {0: n}) for op in ("lshrrev", "lshlrev") for n in _COUNTS),
    *(("v_ashrrev_i64", {0: n}) for n in _COUNTS),
    *(("v_alignbit_b32", {2: n}) for n in _COUNTS),
    *(("v_alignbyte_b32", {2: n}) for n in range(4)),
]


@pytest.mark.parametrize("isa", ISAS)
def test_pairs_of_registers(isa: Isa) -> None:
    """Lanes 0, 2 and so on; the others keep what they had."""
    made = [_case(op, constants) for op, constants in _FORMS]
    results = run_cases([case for case, _ in made], CompileOptions(isa=isa), 0x55555555)
    for (op, constants), (_, rows), lanes in zip(_FORMS, made, results, strict=True):
        for lane in range(0, LANES, 2):
            wanted = expected(ROWS[op], Mode(), rows[lane], lane)
            assert lanes[lane] == wanted, (op, constants, lane, [hex(x) for x in rows[lane]])


@pytest.mark.parametrize("isa", ISAS)
def test_pairs_beside_extended_numbers(isa: Isa) -> None:
    """Each comparison of a pair with a number of 32 bits whose upper half is 0, or its sign."""
    chance = random.Random(1)
    pairs = _numbers(chance)
    narrow = [chance.choice((x & 0xFFFFFFFF, chance.choice(_HALVES))) for x in pairs]
    ops = [f"v_cmp_{p}_{t}64" for p in _PREDICATES for t in "ui"]
    items = [Inst("s_load_b128", (S(4, 4), S(0, 2))), Inst("v_lshlrev_b32", (V(1), I(2), V(0)))]
    for n in range(3):
        items.append(Inst("global_load_b32", (V(2 + n), V(1), S(4, 2)), 128 * n))
    items += [Inst("v_mov_b32", (V(5), I(0))), Inst("v_mov_b32", (V(6), V(4)))]
    items.append(Inst("v_ashrrev_i32", (V(7), I(31), V(4))))
    questions = [(op, at, turned) for op in ops for at in (4, 6) for turned in (False, True)]
    for n, (op, at, turned) in enumerate(questions):
        sides = (V(at, 2), V(2, 2)) if turned else (V(2, 2), V(at, 2))
        items += [Inst(op, (S(10), *sides)), Inst("v_mov_b32", (V(8), S(10)))]
        items.append(Inst("global_store_b32", (V(1), V(8), S(6, 2)), 128 * n))
    items.append(Inst("s_endpgm"))
    device = EmulatedDevice(1 << 22)
    given = [[x & 0xFFFFFFFF for x in pairs], [x >> 32 for x in pairs], narrow]
    source = device.alloc(b"".join(struct.pack("<32I", *x) for x in given))
    target = device.alloc(bytes(128 * len(questions)))
    image = LoadedImage(compile_flow(flow_of(items), CompileOptions(isa=isa)))
    run_image(image, Setup(), 1, 32, struct.pack("<QQ", source, target), device)
    got = device.read(target, 128 * len(questions))
    for n, (op, at, turned) in enumerate(questions):
        (mask,) = struct.unpack_from("<I", got, 128 * n)
        for lane in range(LANES):
            wide = narrow[lane] | (-(narrow[lane] >> 31) << 32 & (1 << 64) - 1 if at == 6 else 0)
            sides = (wide, pairs[lane]) if turned else (pairs[lane], wide)
            (wanted,) = expected(ROWS[op], Mode(), sides, lane)
            assert mask >> lane & 1 == wanted, (op, at, turned, [hex(x) for x in sides])
