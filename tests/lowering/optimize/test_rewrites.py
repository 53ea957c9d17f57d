"""The table of rewrites: each row is proved for all operands, applies to its own instructions, and
computes the same on numbers; wrong rows are refuted, and none applies where it may not."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest

pytest.importorskip("z3", reason="the solver")

from sassxlate.disasm.rdna3 import reads, writes
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.semantics.apply import apply, lookup
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.domain.numpy_lanes import Vec
from sassxlate.lowering.optimize.draft import Draft, DraftLine, legal, source
from sassxlate.lowering.optimize.rewrites.match import rewritten
from sassxlate.lowering.optimize.rewrites.numbers import number, true
from sassxlate.lowering.optimize.rewrites.pattern import (
    SPECIALS,
    Line,
    Rewrite,
    kind,
    rewrite,
    rewrites,
    words,
)
from sassxlate.lowering.optimize.rewrites.prove import case_values, proved
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.verify import Proved, Refuted
from sassxlate.lowering.verify.block.replay import Numbers
from sassxlate.lowering.verify.rdna3.registers import Registers

from .test_search import register_map

_EDGES = (0, 1, 2, 3, 5, 8, 12, 16, 20, 24, 27, 31, 32, 40, 0xFF, 0xFE, 0xFFFF, 0x7FFFFF, 0xFF0000,
          0xF0000000, 0x80000000, 0xFF800000, 0xFFFFFFF6, 0xFFFFFFFF)  # fmt: skip
_LANES = 64


@pytest.mark.parametrize("rule", rewrites(), ids=lambda rule: rule.name)
def test_each_row_is_proved_for_all_operands(rule: Rewrite) -> None:
    verdict = proved(rule, 60_000)
    assert isinstance(verdict, Proved), (str(rule), verdict)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("v_sub_nc_u32 t x y; v_add_nc_u32 d t y -> v_mov_b32 d y", ""),
        # A count of 32 and more is its low five bits.
        ("v_lshlrev_b32 t k x; v_lshlrev_b32 d k1 t -> v_lshlrev_b32 d =k+k1 x", ""),
        ("v_lshlrev_b32 t k x; v_lshlrev_b32 d k1 t -> v_lshlrev_b32 d =k+k1 x",
         "k < 32 and k1 < 32"),
        # 24 bits are enough, 25 are not.
        ("v_and_b32 t k x; v_mul_lo_u32 d t k2 -> v_and_b32 t k x; v_mul_u32_u24 d k2 t",
         "k < 0x2000000 and k2 < 0x1000000"),
        # The remainder's comparison the other way round.
        ("v_cmp_lt_u32 m y x; v_sub_nc_u32 t x y; v_cndmask_b32 d t x m -> "
         "v_sub_nc_u32 t x y; v_min_u32 d x t", ""),
        # In lanes that wait the comparison gives 0, the mask may be 1.
        ("v_cndmask_b32 t 0 1 m; v_cmp_ne_u32 m1 0 t -> s_mov_b32 m1 m", ""),
        ("s_and_b32 m3 m1 m2; s_and_not1_b32 m m1 m3 -> s_and_b32 m m1 m2", ""),
        # A product with all constants but those of its cases.
        ("v_mul_lo_u32 d x k -> v_lshlrev_b32 d =ctz(k) x", ""),
        # Only the low word of the shift may be read.
        ("v_lshlrev_b64 p2 k p1 -> v_lshlrev_b32 p2.lo k p1.lo; v_mov_b32 p2.hi p1.hi", "k < 32"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_refuted(text: str, when: str) -> None:
    assert isinstance(proved(rewrite("wrong", text, when), 60_000), Refuted)


def test_cases_that_miss_a_constant_are_refuted() -> None:
    """Each case is right, but the condition allows more."""
    text = "v_mul_lo_u32 d x k -> v_lshlrev_b32 t =ctz(k) x; v_sub_nc_u32 d 0 t"
    good = rewrite("good", text, "popcount(-k) == 1 and -k < 0x100", "-(1 << a)")
    assert case_values(good) == [2**32 - 2**n for n in range(7, -1, -1)]
    assert isinstance(proved(good), Proved)
    few = rewrite("few", text, "popcount(-k) == 1 and -k < 0x100", "-(1 << (a & 3))")
    assert isinstance(proved(few), Refuted)
    wrong = rewrite("wrong", text, "popcount(k) == 1 and k < 0x100", "1 << a")
    assert isinstance(proved(wrong), Refuted)
    with pytest.raises(ValueError, match="one constant"):
        rewrite("none", "v_mov_b32 d x -> v_mov_b32 d x", "", "1 << a")


@pytest.mark.parametrize(
    "text",
    ["v_add_nc_u32 d x y", "v_nothing d x -> v_mov_b32 d x", "v_add_nc_u32 d x -> v_mov_b32 d x",
     "v_mov_b32 d x -> v_mov_b32 e x", "v_add_nc_u32 d x Y -> v_mov_b32 d x"],
)  # fmt: skip
def test_a_row_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"->|operand|no instruction|in common"):
        rewrite("bad", text)


def test_conditions_are_of_words() -> None:
    assert true("k + 1 == 0 and k > 5", {"k": 0xFFFFFFFF})
    assert number("1 << k", {"k": 32}) == 0
    assert number("popcount(k >> 4) | ctz(k) << 16", {"k": 0xFF0}) == 8 | 4 << 16
    for bad in ("k.real == 1", "f(k) == 1", "k", "k // 2 == 1"):
        with pytest.raises(ValueError, match=r"no (expression|condition|operator)"):
            true(bad, {"k": 1})


# --- applied to code -----------------------------------------------------------------------------


def _draft(code: Sequence[Inst], live: Sequence[Arg]) -> Draft:
    lines = [DraftLine(inst, 0, reads(inst), writes(inst)) for inst in code]
    out = frozenset(ref for arg in live for ref in source(arg))
    return Draft(lines, register_map(), 1, out, ())


def some_constants(rule: Rewrite) -> Iterator[dict[str, int]]:
    """Constants that a rewrite's condition allows."""
    chance = random.Random(rule.name)
    names = sorted(rule.constants)
    if rule.cases:
        yield from ({names[0]: n} for n in chance.sample(case_values(rule), 20))
        return
    for _ in range(20_000):
        made = {name: chance.choice(_EDGES) for name in names}
        if not rule.when or true(rule.when, made):
            yield made
        if not names:
            return


def _places(rule: Rewrite) -> dict[str, Arg]:
    """A register for each name, none of them the draft's temporaries."""
    lines = (*rule.old, *rule.new)
    scalar = {a for at in lines if at.op.startswith("s_") for a in at.args if kind(a) == "word"}
    out: dict[str, Arg] = {}
    for n, arg in enumerate(dict.fromkeys(arg for at in lines for arg in at.args)):
        match kind(arg):
            case "pair":
                out[arg] = V(60 + 2 * n, 2)
                out |= {word: V(60 + 2 * n + k) for k, word in enumerate(words(arg))}
            case "mask" | "scalar":
                out[arg] = S(40 + n)
            case "word" if "." not in arg:
                out[arg] = S(40 + n) if arg in scalar else V(10 + n)
            case _:
                pass
    return out


def stated(at: Line, places: Mapping[str, Arg], constants: Mapping[str, int]) -> Inst:
    args: list[Arg] = []
    for arg in at.args:
        if arg in SPECIALS:
            args.append(Sp(SPECIALS[arg]))
        elif kind(arg) == "number":
            args.append(_number(int(arg, 0)))
        elif kind(arg) == "constant":
            args.append(_number(constants[arg]))
        else:
            args.append(places[arg])
    return Inst(at.op, tuple(args))


def _number(n: int) -> I:
    n &= 0xFFFFFFFF
    return I(n - (n >> 31 << 32))


def _start(seed: int) -> Registers[Vec]:
    """Registers with the same values whatever reads them."""
    chance = np.random.default_rng(seed)
    edges = np.array(_EDGES, np.uint64)

    def free(_: str, width: int) -> Vec:
        raw = chance.integers(0, 1 << 32, _LANES, dtype=np.uint64)
        some = np.where(raw & np.uint64(3) == 0, chance.choice(edges, _LANES), raw)
        return Vec(some & np.uint64((1 << width) - 1), width)

    regs: Registers[Vec] = Registers(Numbers(), free, DEFAULT)
    regs.s[EXEC_LO] = Vec(np.full(1, 0xFFFFFFFF, np.uint64), 32)
    for n in range(120):
        regs.v[n] = free("", 32)
    for n in range(40, 80):
        regs.s[n] = free("", 32)
    return regs


def _execute(regs: Registers[Vec], code: Sequence[Inst], masks: frozenset[int]) -> None:
    regs.masks = set(masks) | {EXEC_LO}
    for inst in code:
        row = lookup(inst.op)
        assert row is not None
        apply(regs, inst, row)


@pytest.mark.parametrize("rule", rewrites(), ids=lambda rule: rule.name)
def test_each_row_applies_and_computes_the_same(rule: Rewrite) -> None:
    places = _places(rule)
    applied = 0
    for constants in some_constants(rule):
        code = [stated(at, places, constants) for at in rule.old]
        if not all(map(legal, code)):  # two literals
            continue
        results = [places[name] for name in rule.kept]
        d = _draft(code, results)
        if not rewritten(d, (rule,)):
            continue
        applied += 1
        made = [at.inst for at in d.lines]
        assert made != code
        masks = frozenset(
            a.index for name, a in places.items() if kind(name) == "mask" and isinstance(a, S)
        )
        old, new = _start(applied), _start(applied)
        _execute(old, code, masks)
        _execute(new, made, masks)
        for name in rule.kept:
            _assert_equal(name, places[name], old, new)
        if applied == 2:
            break
    assert applied, str(rule)


def _assert_equal(name: str, at: Arg, old: Registers[Vec], new: Registers[Vec]) -> None:
    if isinstance(at, V):
        a, b = old.v[at.index].v, new.v[at.index].v
    else:
        assert isinstance(at, S)
        a, b = old.s[at.index].v, new.s[at.index].v
        if kind(name) == "mask":  # the lane's own bit
            a, b = a & 1, b & 1
    assert (np.broadcast_to(a, _LANES) == np.broadcast_to(b, _LANES)).all()


_RULE = rewrite(
    "remainder",
    "v_cmp_gt_u32 m y x; v_sub_nc_u32 t x y; v_cndmask_b32 d t x m -> "
    "v_sub_nc_u32 t x y; v_min_u32 d x t",
)
X, Y, T, D, M = V(10), V(11), V(12), V(13), S(40)
_CODE = (
    Inst("v_cmp_gt_u32", (M, Y, X)), Inst("v_sub_nc_u32", (T, X, Y)),
    Inst("v_cndmask_b32", (D, T, X, M)),
)  # fmt: skip


def test_it_applies_across_other_code_and_in_either_order() -> None:
    other = Inst("v_xor_b32", (V(20), X, Y))
    code = [_CODE[1], other, Inst("v_cmp_lt_u32", (M, X, Y)), _CODE[2]]
    d = _draft(code, (D, T, V(20)))
    assert rewritten(d, (_RULE,)) == [("remainder", 18 + 18 - 17)]
    assert [at.inst.op for at in d.lines] == ["v_sub_nc_u32", "v_xor_b32", "v_min_u32"]


@pytest.mark.parametrize(
    ("code", "live"),
    [
        # The mask is read afterwards.
        (_CODE, (D, M)),
        ((*_CODE, Inst("v_cndmask_b32", (V(20), X, Y, M))), (D, V(20))),
        # An input is overwritten before the last line.
        ((*_CODE[:2], Inst("v_mov_b32", (X, I(0))), _CODE[2]), (D, X)),
        ((_CODE[0], Inst("v_mov_b32", (Y, I(0))), *_CODE[1:]), (D, Y)),
        # The difference is overwritten, or of other numbers.
        ((*_CODE[:2], Inst("v_mov_b32", (T, I(0))), _CODE[2]), (D,)),
        ((_CODE[0], Inst("v_sub_nc_u32", (T, Y, X)), _CODE[2]), (D,)),
        # One name, two values: the second x is the difference.
        ((_CODE[0], Inst("v_sub_nc_u32", (X, X, Y)), Inst("v_cndmask_b32", (D, X, X, M))), (D,)),
        # A sign is no part of the row.
        ((*_CODE[:2], Inst("v_cndmask_b32", (D, T, X, M), neg=1)), (D,)),
    ],
)  # fmt: skip
def test_it_does_not_apply(code: Sequence[Inst], live: Sequence[Arg]) -> None:
    d = _draft(code, live)
    assert rewritten(d, (_RULE,)) == []
    assert [at.inst for at in d.lines] == list(code)


@pytest.mark.parametrize(("high", "applies"), [(13, True), (21, False)])
def test_words_of_a_pair_are_adjacent(high: int, applies: bool) -> None:
    """Two words that are compared as one number may lie anywhere; the pair may not."""
    (rule,) = (rule for rule in rewrites() if rule.name == "wide-gt-u64")
    low, other = (V(12), V(high)), (V(30), V(31))
    code = (
        Inst("v_cmp_gt_u32", (S(50), low[0], other[0])),
        Inst("v_cmp_eq_u32", (S(51), low[1], other[1])),
        Inst("s_and_b32", (S(52), S(51), S(50))),
        Inst("v_cmp_gt_u32", (S(53), low[1], other[1])),
        Inst("s_or_b32", (S(54), S(53), S(52))),
    )
    d = _draft(code, (S(54),))
    assert bool(rewritten(d, (rule,))) is applies
    wide = Inst("v_cmp_gt_u64", (S(54), V(12, 2), V(30, 2)))
    assert [at.inst for at in d.lines] == ([wide] if applies else list(code))


def test_scc_is_not_overwritten() -> None:
    rule = rewrite("two", "s_and_b32 m3 m1 m2; s_and_b32 m m3 m2 -> s_and_b32 m m1 m2")
    code = (
        Inst("s_and_b32", (S(50), S(51), S(52))), Inst("s_and_b32", (S(53), S(50), S(52))),
        Inst("s_cselect_b32", (S(54), S(55), S(56))),
    )  # fmt: skip
    assert rewritten(_draft(code, (S(53), S(54))), (rule,)) == []
    assert rewritten(_draft(code[:2], (S(53),)), (rule,)) == [("two", 17)]


def test_the_search_uses_the_table() -> None:
    """A division's remainder: the comparison and the selection are a minimum."""
    from sassxlate.lowering.optimize.peephole.peephole import shortened

    d = _draft(_CODE, (D,))
    shortened(d)
    assert [at.inst.op for at in d.lines] == ["v_sub_nc_u32", "v_min_u32"]
    assert d.applied
