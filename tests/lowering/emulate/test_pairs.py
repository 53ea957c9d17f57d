"""Pairs of registers that blocks take as 64-bit values: random programs, and the same without."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import llvmlite.binding as llvm
import pytest

from sassxlate.cfg.rdna3_flow import discover
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.lowering.emulate.compiler import (
    ATTRIBUTES,
    compile_kernel,
    optimize,
    target_machine,
)
from sassxlate.lowering.emulate.options import CompileOptions, host_isa
from sassxlate.lowering.emulate.runner import LoadedImage
from sassxlate.lowering.emulate.wave.addresses.pairs import Pairs
from sassxlate.lowering.emulate.wave.masks import predicates
from sassxlate.lowering.emulate.wave.wave import build
from tests.lowering.emulate.packed import FULL, ROWS, content_of, load, program, run

_PAIRS = ((2, 3), (4, 5), (14, 15), (16, 17), (18, 19))
_APART = ((21, 7), (22, 23), (10, 11))  # their halves are copied to be addresses
_WORDS = (7, 12, 13, 24)
_EXEC = Sp("exec_lo")


def _advanced(rng: random.Random, to: tuple[int, int], pair: tuple[int, int]) -> list[Inst]:
    """A pair plus a number, with the carry in a mask of its own or among bits of other lanes."""
    low = Inst("v_add_co_u32", (V(to[0]), S(31), V(pair[0]), I(rng.choice((0, 4, 64)))))
    carry, between = 31, list[Inst]()
    if rng.random() < 0.5:
        carry = 27
        between = [
            Inst("s_and_not1_b32", (S(27), S(27), _EXEC)),
            Inst("s_or_b32", (S(27), S(27), S(31))),
        ]
        if rng.random() < 0.2:
            del between[0]  # bits that were there are carries, too
    if rng.random() < 0.1:
        between.append(Inst("s_mov_b32", (_EXEC, S(6))))  # lanes that had none
    high = Inst("v_add_co_ci_u32", (V(to[1]), S(30), V(pair[1]), I(0), S(carry)))
    return [low, *between, high]


def _step(rng: random.Random) -> list[Inst]:
    pair, other = rng.sample((*_PAIRS, *_APART), 2)
    word = rng.choice(_WORDS)
    moves = [Inst("v_mov_b32", (V(a), V(b))) for a, b in zip(pair, other, strict=True)]
    rng.shuffle(moves)
    return rng.choice([
        _advanced(rng, pair, pair),
        _advanced(rng, pair, pair),
        _advanced(rng, pair, other),
        moves,
        moves[:1],
        [Inst("v_mad_i64_i32", (V(rng.choice(_PAIRS)[0], 2), S(30), V(12), I(4), S(20, 2)))],
        [Inst("v_add_nc_u32", (V(pair[0]), V(pair[0]), I(4)))],
        [load(word, rng.choice((0, 4, 8)), rng.choice(_PAIRS)[0]), Inst("s_waitcnt", (), 0)],
        [load(word, rng.choice((0, 4, 8)), rng.choice(_PAIRS)[0]), Inst("s_waitcnt", (), 0)],
        [Inst("v_xor_b32", (V(13), V(13), V(word)))],
        [Inst("v_and_b32", (V(12), I(63), V(word)))],
        [Inst("s_mov_b32", (S(27), S(22)))],
    ])  # fmt: skip


def _body(rng: random.Random, depth: int, names: list[int]) -> list[Item]:
    out: list[Item] = []
    for _ in range(rng.randrange(2, 6)):
        kind = rng.random()
        names[0] += 1
        label = f"l{names[0]}"
        if depth == 2 or kind < 0.6:
            out += _step(rng)
        elif kind < 0.8:
            saved, mask = S(36 + depth), S(24)
            out += [
                Inst("v_cmp_gt_u32", (mask, V(rng.choice((0, 12))), I(rng.randrange(40)))),
                Inst("s_mov_b32", (saved, _EXEC)),
                Inst("s_and_b32", (_EXEC, _EXEC, mask)),
                Inst("s_cbranch_execz", (LabelRef(label),)),
                *_body(rng, depth + 1, names),
                Label(label),
                Inst("s_mov_b32", (_EXEC, saved)),
            ]
        else:
            count, saved = S(40 + depth), S(44 + depth)
            less = [
                Inst("v_cmp_ne_u32", (S(24), I(rng.randrange(32)), V(0))),
                Inst("s_and_b32", (_EXEC, _EXEC, S(24))),
            ]
            out += [
                Inst("s_mov_b32", (count, I(rng.randrange(1, 4)))),
                Inst("s_mov_b32", (saved, _EXEC)),
                Label(label),
                *_body(rng, depth + 1, names),
                *(less if rng.random() < 0.5 else ()),
                Inst("s_sub_u32", (count, count, I(1))),
                Inst("s_cmp_lg_u32", (count, I(0))),
                Inst("s_cbranch_scc1", (LabelRef(label),)),
                Inst("s_mov_b32", (_EXEC, saved)),
            ]
    return out


def _random(rng: random.Random) -> list[Item]:
    """Each pair is an address at first."""
    start: list[Item] = [
        Inst("v_mov_b32", (V(a), V(b)))
        for pair in (*_PAIRS[1:], *_APART[:2])
        for a, b in zip(pair, rng.choice(((2, 3), (10, 11))), strict=True)
    ]
    names = [0]
    return [*start, *_body(rng, 0, names), *_body(rng, 0, names)]


def _text(middle: Sequence[Item]) -> str:
    flow = discover(program(middle), 0)
    return build(flow, CompileOptions(), "avx512", ATTRIBUTES["avx512"])[0].text()


def _nothing(*_: object) -> None:
    return None


def _images(middle: Sequence[Item]) -> tuple[LoadedImage, LoadedImage]:
    """With pairs, and without."""
    if host_isa() != "avx512":
        pytest.skip("pairs are for AVX-512")
    code = program(middle)
    made = LoadedImage(compile_kernel(code, 0, CompileOptions()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pairs, "whole", _nothing)
        patch.setattr(predicates, "among", _nothing)
        return made, LoadedImage(compile_kernel(code, 0, CompileOptions()))


def _same(seed: int, times: int) -> tuple[int, int]:
    """How many of so many waves had a fault, if all are the same with pairs and without."""
    rng = random.Random(f"pairs {seed}")
    middle = _random(rng)
    text = _text(middle)
    if "load <32 x i64>, ptr %v" not in text:
        return 0, 0
    llvm.parse_assembly(text).verify()
    made, plain = _images(middle)
    faults = 0
    for _ in range(times):
        content = content_of(rng)
        rows = [rng.randrange(0, ROWS - 1024, 4) for _ in range(64)]
        if rng.random() < 0.2:
            rows[rng.randrange(64)] = rng.choice((ROWS, 1 << 40))
        mask = rng.choice((FULL, 0xFF, 1 << 31, 0, rng.getrandbits(32)))
        bits = rng.getrandbits(32)
        expected = run(plain, content, rows, 0, mask, bits)
        assert run(made, content, rows, 0, mask, bits) == expected, (seed, middle)
        faults += isinstance(expected, str)
    return faults, times


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int) -> None:
    _same(seed, 10)


@pytest.mark.sweep
def test_many_random_programs() -> None:
    faults = done = 0
    for seed in range(6, 600):
        some, of = _same(seed, 10)
        faults, done = faults + some, done + of
    assert done > 3000
    assert 0.05 < faults / done < 0.9


_ROUNDS = 40


def _advancing() -> list[Item]:
    """A loop that loads by an address in two registers that are apart, and adds to it."""
    return [
        Inst("v_mov_b32", (V(40), V(2))),
        Inst("v_mov_b32", (V(42), V(3))),
        Inst("s_mov_b32", (S(36), I(_ROUNDS))),
        Label("again"),
        Inst("v_mov_b32", (V(44), V(40))),
        Inst("v_mov_b32", (V(45), V(42))),
        load(46, 0, 44),
        Inst("v_add_co_u32", (V(40), S(31), V(40), I(4))),
        Inst("v_add_co_ci_u32", (V(42), S(30), V(42), I(0), S(31))),
        Inst("s_waitcnt", (), 0),
        Inst("v_xor_b32", (V(7), V(7), V(46))),
        Inst("s_sub_u32", (S(36), S(36), I(1))),
        Inst("s_cmp_lg_u32", (S(36), I(0))),
        Inst("s_cbranch_scc1", (LabelRef("again"),)),
    ]


def test_a_loop_adds_to_addresses_as_a_whole() -> None:
    """Neither halves nor carries are left in it."""
    module = llvm.parse_assembly(_text(_advancing()))
    module.verify()
    optimize(module, target_machine("avx512", 2))
    [loop] = re.findall(r"^(b\d+):[^\n]*\n((?:  [^\n]*phi[^\n]*\n)+)", str(module), re.MULTILINE)
    vectors = re.findall(r"phi (<32 x i\d+>)", loop[1])
    assert vectors.count("<32 x i64>") == 1
    assert vectors.count("<32 x i32>") == 1  # v7: neither of the halves
    made, plain = _images(_advancing())
    rng = random.Random("advancing")
    rows = [rng.randrange(0, ROWS - 1024, 4) for _ in range(64)]
    content = content_of(rng)
    for mask in (FULL, 0x5555AAAA, 0):
        expected = run(plain, content, rows, 0, mask, 0)
        assert isinstance(expected, bytes)
        assert run(made, content, rows, 0, mask, 0) == expected
