"""HMMA of halves and bfloat16 by one v_wmma, if the target asks for it (``--matrix fast``).

The sum of the products is rounded as v_wmma rounds it, which no manual describes, and the addend is
added to it, rounded to nearest; the exact code is in ``matrix_float.py``.

v_wmma computes 16 x 16 results.  HMMA has 16 x 8, so each column of B is there twice, and rows and
columns are numbered so that few words cross the wave.  With lane 4 q + t, and a = q mod 4:

* lane l mod 16 = 4 a + t of v_wmma's A has HMMA's row a + 4 t.  That row is in the quads a and
  a + 4; half of the lanes get theirs from the other half of the wave.
* lane l mod 16 = 4 a + t of v_wmma's B has HMMA's column 2 t + a mod 2.
* So register 2 p + u of the result has HMMA's row 4 (l / 16) + p + 8 u: the rows that the quads of
  this half of the wave want, in lanes of the same row of 16, which DPP reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.lowering.builder.canonical_nan import one_nan
from sassxlate.lowering.builder.lane_id import lane_id
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.nans.reads import Nan
from sassxlate.lowering.rules.warp.matrix_sums import BF16, F16, Kind
from sassxlate.lowering.target import EXEC, ZERO

PRODUCTS: Final = {F16: "v_wmma_f32_16x16x16_f16", BF16: "v_wmma_f32_16x16x16_bf16"}
FAST: Final = "hmma_fast"  # what reports call it
_WORDS: Final = 8  # of a row of v_wmma's A: sixteen elements
_FIRST, _LAST = 0x33333333, 0xCCCCCCCC  # lanes 0 and 1, or 2 and 3, of each quad
_FROM_OTHER_HALF = 0x5555AAAA  # odd lanes of the wave's lower half, even ones of the upper
_SAME_LANES = (0x76543210, 0xFEDCBA98)  # v_permlanex16: the lane of the same number
_ALL = "row_mask:0xf bank_mask:0xf"


def _quad(a: int, b: int, c: int, d: int) -> str:
    return f"quad_perm:[{a},{b},{c},{d}] {_ALL}"


def _constant(c: RuleEmitter, value: int) -> S:
    out = c.stemp()
    c.raw(Inst("s_mov_b32", (out, I(value))))
    return out


def _rows(c: RuleEmitter, words: Sequence[V]) -> V:
    """v_wmma's A.  ``words``: of rows q and q + 8, and the same of the next elements, if any."""
    out = c.vtemp(_WORDS)
    with c.scope():
        first, last = _constant(c, _FIRST), _constant(c, _LAST)
        for at in range(0, len(words), 2):
            upper, lower = words[at : at + 2]
            for pair, (moved, kept, mask, lanes) in enumerate((
                (lower, upper, first, _quad(0, 1, 0, 1)),  # words 0 and 1 of both rows
                (upper, lower, last, _quad(2, 3, 2, 3)),  # words 2 and 3
            )):  # fmt: skip
                with c.scope():
                    both = c.vtemp()
                    c.raw(Inst("v_cndmask_b32", (both, moved, kept, mask), dpp=lanes))
                    for odd in (0, 1):
                        to = V(out.index + 2 * at + 2 * pair + odd)
                        which = _quad(odd, odd, 2 + odd, 2 + odd)
                        c.raw(Inst("v_mov_b32", (to, both), dpp=which))
        low, high = (_constant(c, lanes) for lanes in _SAME_LANES)
        saved = c.stemp()
        c.raw(Inst("s_and_saveexec_b32", (saved, I(_FROM_OTHER_HALF))))
        for k in range(2 * len(words)):
            word = V(out.index + k)
            c.raw(Inst("v_permlanex16_b32", (word, word, low, high), op_sel=1))
        c.raw(Inst("s_mov_b32", (EXEC, saved)))
    _nothing(c, out, 2 * len(words))
    return out


def _columns(c: RuleEmitter, words: Sequence[V]) -> V:
    """v_wmma's B; the lanes of column n have four words each."""
    out = c.vtemp(_WORDS)
    with c.scope():
        lane, base = lane_id(c), c.vtemp()
        c.emit("v_lshlrev_b32", base, I(5), lane)
        c.emit("v_and_b32", base, I(0x60), base)
        c.emit("v_lshlrev_b32", lane, I(2), lane)
        c.emit("v_and_or_b32", base, lane, I(0x10), base)
        for k in range(4 * len(words)):
            to = V(out.index + k)
            c.raw(Inst("ds_bpermute_b32", (to, base, words[k // 4]), imm=4 * (k % 4)))
    _nothing(c, out, 4 * len(words))
    return out


def _nothing(c: RuleEmitter, words: V, first: int) -> None:
    """Zeros for the elements that the shape does not have."""
    for k in range(first, _WORDS):
        c.emit("v_mov_b32", V(words.index + k), ZERO)


def fast(
    c: RuleEmitter, kind: Kind, a: Sequence[V], b: Sequence[V], addends: Sequence[V], half: bool
) -> None:
    """Writes Rd.  ``half``: addends and results are pairs of halves."""
    sums = c.vtemp(_WORDS)
    with c.scope():
        left, right = _rows(c, a), _columns(c, b)
        c.raw(Inst(PRODUCTS[kind], (sums, left, right, ZERO)))
    terms = _wide(c, addends) if half else addends
    out = [c.vtemp() for _ in terms]
    for k, (to, more) in enumerate(zip(out, terms, strict=True)):
        for bank in range(4):
            own = bank % 2 == k % 2
            control = "quad_perm:[0,1,2,3]" if own else "row_xmask:4"
            # The first one writes all lanes, of which the others replace some.
            lanes = f"{control} row_mask:0xf bank_mask:{1 << bank if bank else 15:#x}"
            word = V(sums.index + 2 * bank + k // 2)
            c.raw(Inst("v_add_f32", (to, word, more), dpp=lanes))
    if half:
        for word in out:
            c.emit("v_cvt_f16_f32", word, word)
        for i in (0, 1):
            c.emit("v_pack_b32_f16", out[i], out[2 * i], out[2 * i + 1])
        out = out[:2]
    target = c.dst_last()
    for i, word in enumerate(out):
        one_nan(c, V(target.index + i), word, Nan.HALVES if half else Nan.SINGLE)


def _wide(c: RuleEmitter, words: Sequence[V]) -> list[V]:
    """The halves of words, as binary32."""
    out: list[V] = []
    for word in words:
        low, high = c.vtemp(), c.vtemp()
        c.emit("v_cvt_f32_f16", low, word)
        c.emit("v_lshrrev_b32", high, I(16), word)
        c.emit("v_cvt_f32_f16", high, high)
        out += [low, high]
    return out


__all__ = ["FAST", "PRODUCTS", "fast"]
