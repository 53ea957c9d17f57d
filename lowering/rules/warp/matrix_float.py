"""HMMA and QMMA: sums of products as NVIDIA's tensor cores compute them, bit for bit.

Each product of a group, and the addend, is truncated towards zero some bits below the unit of the
group's largest exponent (a product's is the sum of both factors'); the terms are added exactly, and
the sum is rounded: to binary32 towards zero, to binary16 to nearest
(``disasm/sass/semantics/warp/matrix.py``, measured).  AMD's v_wmma adds in a way that no manual
documents, so each lane computes its four results with plain instructions:

1. The exponents of all factors become small integers; the largest of their sums is found.
2. Each product is exact (of halves in binary32, of others in binary64).  A power of two makes an
   integer of the bits to keep, and v_cvt_i32 truncates the rest.
3. Integers are added, and the sum is rounded once.

Infinities and NaN spoil the results that they contribute to.  A wave with any repairs those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, V
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.semantics.warp.matrix_formats import CORES, Core
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic.convert.float8 import LEAST, halves_of
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.rules.warp.matrix import (
    addend,
    columns,
    give,
    laid_out,
    whole_warp,
    words_of,
)
from sassxlate.lowering.rules.warp.matrix_fast import FAST, PRODUCTS, fast
from sassxlate.lowering.rules.warp.matrix_sums import (
    BF16,
    F16,
    TF32,
    Kind,
    Product,
    correct,
    exponents,
    narrow,
    parts,
    scale64,
    shifts_of,
    specials,
    sums64,
    sums_of,
    wide,
)


def _signed(c: RuleEmitter, form: MatrixForm, role: str) -> list[V]:
    """A's or B's words, with the printed sign; TF32's have only the significant bits."""
    words = words_of(c, role)
    signs = 0x80808080 if form.bytes else 0x80008000 if form.kind.each == 2 else 0x80000000
    for i, word in enumerate(words):
        if c.flag(role, "neg"):
            words[i] = c.vtemp()
            c.emit("v_xor_b32", words[i], I(signs), word)
        if form.kind is TF32:
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
            sums = [sums_of(p, part, shifts) for part in parts(group)]
            totals = list(zip(*sums, strict=True))
            many = len(group) > 4 and p.core.extra > 20
            for some, shift, word, result in zip(totals, shifts, addends, out, strict=True):
                narrow(p, some, shift, word, result, many=many)
        else:
            scales = [scale64(c, shift) for shift in shifts]
            wholes = sums64(p, group, scales)
            for total, scale, word, result in zip(wholes, scales, addends, out, strict=True):
                wide(p, total, scale, word, result)
    with c.scope():
        correct(p, group, addends, out)
    return out


@dataclass(frozen=True, slots=True)
class MatrixForm:
    """The parameters of an instruction's code, apart from its registers."""

    kind: Kind
    half: bool  # addend and result are binary16
    core: Core
    bytes: tuple[str, ...] = ()  # QMMA: the types of A's and B's elements

    @property
    def size(self) -> int:
        """Words of a group; two of halves are a word of bytes."""
        return self.core.group // self.kind.each


def _core(c: RuleEmitter, width: int) -> Core:
    core = CORES.get(c.arch, {}).get(width)
    if core is None:
        raise c.refuse(f"sums of matrix products on sm_{c.arch}")
    return core


def _form(c: RuleEmitter) -> MatrixForm:
    half = not c.ins.has("F32")
    if c.ins.mnemonic == "QMMA":
        sorts = tuple(m for m in c.ins.modifiers if m in LEAST)
        if len(sorts) != 2:
            raise c.refuse("these elements of QMMA")
        return MatrixForm(F16, half, _core(c, 8), sorts)
    kind = BF16 if c.ins.has("BF16") else TF32 if c.ins.has("TF32") else F16
    if half and kind is not F16:
        raise c.refuse("a result of halves for this type")
    return MatrixForm(kind, half, _core(c, 32 // kind.each))


def hmma(c: RuleEmitter) -> None:
    """HMMA and QMMA.  If a kernel has several, their code is placed after the kernel, and is called
    with sources and results in the first temporaries."""
    form = _form(c)
    laid_out(c)
    widths = [c.reg(role).width for role in ("Ra", "Rb", "Rc")]
    if widths[0] != 2 * widths[1]:
        raise c.refuse(f"this shape of {c.ins.mnemonic}")
    if c.k.regs.target.matrix == "fast" and form.kind in PRODUCTS and not form.bytes:
        c.k.rules_used[FAST] = c.k.rules_used.get(FAST, 0) + 1
        a, b, last = _signed(c, form, "Ra"), _signed(c, form, "Rb"), addend(c)
        with whole_warp(c):
            fast(c, form.kind, a, b, last, form.half)
        return
    if not c.k.outlining:
        a, b, last = _signed(c, form, "Ra"), _signed(c, form, "Rb"), addend(c)
        with whole_warp(c):
            give(c, product(c, form, a, b, last))
        return
    label = f"L{c.ins.mnemonic.lower()}_" + "_".join((*c.ins.modifiers, *(str(n) for n in widths)))
    c.outline(label, partial(_shared, form, widths))
    frame, back = _frame(c, widths)
    sources = [*_signed(c, form, "Ra"), *_signed(c, form, "Rb"), *addend(c)]
    with whole_warp(c):
        for place, word in zip([w for part in frame for w in part], sources, strict=True):
            c.emit("v_mov_b32", place, word)
        c.raw(Inst("s_call_b64", (back, LabelRef(label))))
        give(c, frame[2])


def _frame(c: RuleEmitter, widths: Sequence[int]) -> tuple[list[list[V]], S]:
    """The places of A, B and C in caller and callee, where the results are returned, and the
    return address: the first temporaries of both."""
    words = [[c.vtemp() for _ in range(n)] for n in widths]
    return words, c.stemp(2)


def _shared(form: MatrixForm, widths: Sequence[int], c: RuleEmitter) -> None:
    (a, b, last), back = _frame(c, widths)
    for place, word in zip(last, product(c, form, a, b, last), strict=True):
        c.emit("v_mov_b32", place, word)
    c.raw(Inst("s_setpc_b64", (back,)))


def product(c: RuleEmitter, form: MatrixForm, a: list[V], b: list[V], words: list[V]) -> list[V]:
    """The registers of the result; ``words`` are those of the addend."""
    kind, half = form.kind, form.half
    base = columns(c)
    least = [1, 1]
    if form.bytes:
        least = [LEAST[sort] for sort in form.bytes]
        a, b = halves_of(c, form.bytes[0], a, 2), halves_of(c, form.bytes[1], b, 1)
    ea, peak = exponents(c, kind, a, None, least[0])
    eb, peak = exponents(c, kind, b, peak, least[1])
    p = Product(c, kind, half, form.core, base, a, b, ea, eb, specials(c, kind, peak))
    if half:
        words = _unpacked(c, words)
    for first in range(0, 4 * len(b), form.size):
        words = _grouped(p, range(first, min(first + form.size, 4 * len(b))), words)
    if not half:
        return words
    for i in (0, 1):
        c.emit("v_perm_b32", words[i], words[2 * i + 1], words[2 * i], I(0x05040100))
    return words[:2]


def _unpacked(c: RuleEmitter, words: Sequence[V]) -> list[V]:
    """Two halves per word, each in a register."""
    out: list[V] = []
    for word in words:
        low, high = c.vtemp(), c.vtemp()
        c.emit("v_and_b32", low, I(0xFFFF), word)
        c.emit("v_lshrrev_b32", high, I(16), word)
        out += [low, high]
    return out


def _dense(ins: Instruction) -> bool:
    return not ins.has("SP") and not ins.has("884")


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "HMMA": "1684 1688 16816 F16 F32 BF16 TF32",
    "QMMA": "16816 16832 F16 F32 E4M3 E5M2",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("hmma", "HMMA", hmma, _dense, temporaries=92),
    Rule("qmma", "QMMA", hmma, _dense, temporaries=108),
)
