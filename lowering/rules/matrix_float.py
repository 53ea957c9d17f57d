"""HMMA: sums of products as NVIDIA's tensor cores make them, bit for bit.

Each product of a group, and the addend, is cut towards zero to some bits below the unit of the
group's largest exponent (of products the sum of both factors'); the terms are added exactly, and
the sum is rounded: to binary32 towards zero, to binary16 to nearest
(``disasm/sass/meaning/matrix.py``, measured).  AMD's v_wmma adds in a way of its own that no manual
states, so each lane computes its four results with plain instructions:

1. The exponents of all factors become small integers, of whose sums the largest is found.
2. Each product is exact (of halves in binary32, of others in binary64).  A power of two makes an
   integer of what is to be kept of it, and v_cvt_i32 cuts the rest.
3. Integers are added, and the sum is rounded once.

Infinities and NaN spoil results that they are part of.  A wave that has any puts those right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sassxlate.disasm.rdna3.ir import I, Inst, Lbl, S, V
from sassxlate.disasm.sass.ir import Instruction

from ..context import Ctx, Rule
from .matrix import addend, columns, give, whole_warp, words_of
from .matrix_sums import (
    BF16,
    CORES,
    F16,
    TF32,
    Kind,
    Product,
    correct,
    exponents,
    narrow,
    scale64,
    shifts_of,
    specials,
    sums64,
    sums_of,
    wide,
)


def _signed(c: Ctx, kind: Kind, role: str) -> list[V]:
    """A's or B's words, with the printed sign; TF32's have only the bits that count."""
    words = words_of(c, role)
    for i, word in enumerate(words):
        if c.flag(role, "neg"):
            words[i] = c.vtemp()
            c.emit("v_xor_b32", words[i], I(0x80008000 if kind.each == 2 else 0x80000000), word)
        if kind is TF32:
            cut = c.vtemp()
            c.emit("v_and_b32", cut, I(0xFFFFE000), words[i])
            words[i] = cut
    return words


def _grouped(p: Product, group: range, addends: list[V]) -> list[V]:
    """The four results of a group of words and addends."""
    c = p.c
    out = [c.vtemp() for _ in addends]
    with c.scope():
        shifts = shifts_of(p, group, addends)
        if p.kind is F16:
            totals = sums_of(p, group, shifts)
            many = len(group) > 4
            for total, shift, word, result in zip(totals, shifts, addends, out, strict=True):
                narrow(p, total, shift, word, result, many=many)
        else:
            scales = [scale64(c, shift) for shift in shifts]
            totals = sums64(p, group, scales)
            for total, scale, word, result in zip(totals, scales, addends, out, strict=True):
                wide(p, total, scale, word, result)
    with c.scope():
        correct(p, group, addends, out)
    return out


@dataclass(frozen=True, slots=True)
class _Form:
    """What decides the code of an instruction, its registers apart."""

    kind: Kind
    half: bool  # addend and result are binary16
    size: int  # words of a group
    extra: int


def _form(c: Ctx) -> _Form:
    kind = BF16 if c.ins.has("BF16") else TF32 if c.ins.has("TF32") else F16
    half = not c.ins.has("F32")
    core = CORES.get(c.arch)
    if core is None:
        raise c.refuse(f"sums of matrix products on sm_{c.arch}")
    if half and kind is not F16:
        raise c.refuse("a result of halves for this type")
    return _Form(kind, half, *core)


def hmma(c: Ctx) -> None:
    """Where a kernel has several, their code is behind it, and called with sources and results in
    the first temporaries."""
    form = _form(c)
    widths = [c.reg(role).width for role in ("Ra", "Rb", "Rc")]
    if widths[0] != 2 * widths[1]:
        raise c.refuse("this shape of HMMA")
    if not c.k.sharing:
        a, b, last = _signed(c, form.kind, "Ra"), _signed(c, form.kind, "Rb"), addend(c)
        with whole_warp(c):
            give(c, _product(c, form, a, b, last))
        return
    label = "Lhmma_" + "_".join((*c.ins.modifiers, *(str(n) for n in widths)))
    c.k.shared.setdefault(label, partial(_shared, form, widths))
    frame, back = _frame(c, widths)
    sources = [*_signed(c, form.kind, "Ra"), *_signed(c, form.kind, "Rb"), *addend(c)]
    with whole_warp(c):
        for place, word in zip([w for part in frame for w in part], sources, strict=True):
            c.emit("v_mov_b32", place, word)
        c.raw(Inst("s_call_b64", (back, Lbl(label))))
        give(c, frame[2])


def _frame(c: Ctx, widths: Sequence[int]) -> tuple[list[list[V]], S]:
    """Where caller and callee have A, B and C, in whose place the results come back, and the
    address to go back to: the first temporaries of both."""
    words = [[c.vtemp() for _ in range(n)] for n in widths]
    return words, c.stemp(2)


def _shared(form: _Form, widths: Sequence[int], c: Ctx) -> None:
    (a, b, last), back = _frame(c, widths)
    for place, word in zip(last, _product(c, form, a, b, last), strict=True):
        c.emit("v_mov_b32", place, word)
    c.raw(Inst("s_setpc_b64", (back,)))


def _product(c: Ctx, form: _Form, a: list[V], b: list[V], words: list[V]) -> list[V]:
    """The registers of the result; ``words`` are those of the addend."""
    kind, half = form.kind, form.half
    base = columns(c)
    ea, peak = exponents(c, kind, a, None)
    eb, peak = exponents(c, kind, b, peak)
    p = Product(c, kind, half, form.extra, base, a, b, ea, eb, specials(c, kind, peak))
    if half:
        words = _unpacked(c, words)
    for first in range(0, 4 * len(b), form.size):
        words = _grouped(p, range(first, min(first + form.size, 4 * len(b))), words)
    if not half:
        return words
    for i in (0, 1):
        c.emit("v_perm_b32", words[i], words[2 * i + 1], words[2 * i], I(0x05040100))
    return words[:2]


def _unpacked(c: Ctx, words: Sequence[V]) -> list[V]:
    """Two halves a word, each in a register."""
    out: list[V] = []
    for word in words:
        low, high = c.vtemp(), c.vtemp()
        c.emit("v_and_b32", low, I(0xFFFF), word)
        c.emit("v_lshrrev_b32", high, I(16), word)
        out += [low, high]
    return out


def _dense(ins: Instruction) -> bool:
    return not ins.has("SP") and not ins.has("884")


RULES: tuple[Rule, ...] = (Rule("hmma", "HMMA", hmma, _dense),)
