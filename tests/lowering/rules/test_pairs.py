"""Sums and products of pairs of floats, beside exact fractions rounded once; accesses of 256 bits.

The code is sm_100's, whose silicon was not at hand: what an instruction means is what PTX says of
add, mul and fma of f32x2, and how ptxas writes their signs and exchanges.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.errors import LoweringError
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.verify.rules.verify import RuleCheckSettings, verify_word
from tests.disasm.sass.interpreter.launches import Prepared, Words, assembled, with_code

ARCH = 100
NAN, INFINITE, SIGN, LEAST = 0x7FFFFFFF, 0x7F800000, 0x80000000, 0x00800000
THREADS = 256
EDGES = [
    0, SIGN, 1, SIGN | 1, LEAST - 1, LEAST, SIGN | LEAST, 0x3F800000, 0xBF800000, 0x3F7FFFFF,
    0x3F800001, 0x7F7FFFFF, 0xFF7FFFFF, INFINITE, SIGN | INFINITE, 0x7FC00000, 0xFFC01234,
    0x7F800001, 0x00FFFFFF, 0x20000000, 0x1FFFFFFF, 0x5F000000, 0x33800000, 0xB3800000,
]  # fmt: skip


# --- exact numbers, rounded once ------------------------------------------------------------------


def _number(bits: int) -> Fraction:
    size = bits & ~SIGN
    exponent, fraction = size >> 23, size & 0x7FFFFF
    value = Fraction(fraction | (bool(exponent) << 23)) * Fraction(2) ** (max(exponent, 1) - 150)
    return -value if bits & SIGN else value


def _rounded(exact: Fraction, mode: str, zero: int, ftz: bool) -> int:
    """The bits of a finite exact value; ``zero`` are those of an exact zero."""
    if not exact:
        return zero
    sign, size = (SIGN if exact < 0 else 0), abs(exact)

    def at(unit: Fraction) -> Fraction:
        steps = size / unit
        whole = steps.numerator // steps.denominator
        rest = steps - whole
        away = {
            "": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1),
            "RZ": False,
            "RP": bool(rest) and not sign,
            "RM": bool(rest) and bool(sign),
        }
        return (whole + bool(away[mode])) * unit

    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    # .FTZ looks at the value that is rounded to 24 bits, however small it is.
    if ftz and at(Fraction(2) ** (exponent - 23)) < Fraction(2) ** -126:
        return sign
    value = at(Fraction(2) ** (max(exponent, -126) - 23))
    if value >= Fraction(2) ** 128:
        infinite = mode == "" or (mode == "RP" and not sign) or (mode == "RM" and bool(sign))
        return sign | (INFINITE if infinite else 0x7F7FFFFF)
    bits = int(np.float32(float(value)).view(np.uint32))  # exact
    return sign | bits


def _exact(op: str, mode: str, ftz: bool, args: list[int]) -> int:
    if ftz:
        args = [a & SIGN if a & ~SIGN < LEAST else a for a in args]
    a, b, *rest = args
    c = rest[0] if rest else 0
    if op == "FADD2":
        a, b, c = a, 0x3F800000, b
    elif op == "FMUL2":
        c = (a ^ b) & SIGN | 0  # keeps the sign of a product that is zero
    if any(x & ~SIGN > INFINITE for x in (a, b, c)):
        return NAN
    product = (a ^ b) & SIGN
    if INFINITE in (a & ~SIGN, b & ~SIGN):
        if not (a & ~SIGN and b & ~SIGN) or c == (product ^ SIGN | INFINITE):
            return NAN
        return product | INFINITE
    if c & ~SIGN == INFINITE:
        return c
    zero_product = not (a & ~SIGN and b & ~SIGN)
    zero = SIGN if mode == "RM" else 0
    if zero_product and not c & ~SIGN and product == c & SIGN:
        zero = product
    return _rounded(_number(a) * _number(b) + _number(c), mode, zero, ftz)


# --- kernels --------------------------------------------------------------------------------------


def _kernel(lines: list[str], words: int, results: int) -> list[str]:
    return [
        "S2R R0, SR_TID.X ;", "LDCU.64 UR6, c[0x0][0x358] ;", "LDC.64 R2, c[0x0][0x380] ;",
        "LDC.64 R4, c[0x0][0x390] ;", f"IMAD.WIDE.U32 R2, R0, {4 * words:#x}, R2 ;",
        f"IMAD.WIDE.U32 R4, R0, {4 * results:#x}, R4 ;", "UMOV UR8, 0x3fc00000 ;",
        "UMOV UR9, 0x800001 ;", "ISETP.GT.U32.AND P0, PT, R0, 0x80, PT ;",
        *(line.replace("+0x0]", "]") for line in lines), "EXIT ;",
    ]  # fmt: skip


def _prepared(lines: list[str], data: Words, results: int) -> Prepared:
    words = data.shape[1]
    code = assembled("\n".join(_kernel(lines, words, results)), ARCH)
    cubin = with_code(code, ARCH)
    out = np.zeros(THREADS * results, np.uint32)
    inputs = (data.ravel().copy(), np.zeros(4, np.uint32), out)
    return Prepared(cubin, cubin.kernels[0].name, (1, 1, 1), (THREADS, 1, 1), inputs, THREADS)


# A pair's place in the row of inputs (8, 10, 12 are registers), or both numbers.
_U = (0x3FC00000, 0x00800001)
_ONE = (0x3F800000, 0x3F800000)
Half = Callable[[list[int]], tuple[int, int]]


def _of(first: int, *, swap: bool = False, both: bool = False, neg: int = 0, size: bool = False,
        given: tuple[int, int] | None = None) -> Half:  # fmt: skip
    """Low and high number; bit 0 of ``neg`` is the low one's sign."""

    def values(row: list[int]) -> tuple[int, int]:
        low, high = given or (row[first - 8], row[first - 7])
        if swap:
            low, high = high, low
        if both:
            high = low
        if size:
            low, high = low & ~SIGN, high & ~SIGN
        return low ^ (SIGN * (neg & 1)), high ^ (SIGN * (neg >> 1))

    return values


_A, _B, _C = _of(8), _of(10), _of(12)
FORMS: list[tuple[str, tuple[Half, ...]]] = [
    *((f"{op}{ftz}{mode} R16, R8.F32x2.HI_LO, R10.F32x2.HI_LO{more}", (_A, _B, _C)[:n])
      for op, n, more in (("FADD2", 2, ""), ("FMUL2", 2, ""), ("FFMA2", 3, ", R12.F32x2.HI_LO"))
      for ftz in ("", ".FTZ") for mode in ("", ".RM", ".RP", ".RZ")),
    ("FADD2 R8, R8.F32x2.LO_HI, R10.F32x2.HI_LO", (_of(8, swap=True), _B)),
    ("FADD2 R8, R10.F32x2.HI_LO, R8.F32x2.LO_HI", (_B, _of(8, swap=True))),
    ("FADD2 R8, R8.F32x2.HI_LO, R8.F32x2.LO_HI", (_A, _of(8, swap=True))),
    ("FMUL2 R10, R8.F32x2.HI_LO, R10.F32", (_A, _of(10, both=True))),
    ("FFMA2 R12, -R8.F32x2.HI_LO, |R10|.F32x2.HI_LO, R12.F32x2.LO_HI",
     (_of(8, neg=3), _of(10, size=True), _of(12, swap=True))),
    ("FFMA2 R12, -R8.F32x2.HI_LO.NP, R10.F32x2.HI_LO, R12.F32x2.HI_LO", (_of(8, neg=1), _B, _C)),
    ("FFMA2 R12, R8.F32x2.HI_LO.NP, R10.F32x2.HI_LO, R12.F32x2.HI_LO", (_of(8, neg=2), _B, _C)),
    ("FFMA2 R10, R8.F32x2.LO_HI.NP, R10.F32x2.HI_LO, R12.F32x2.HI_LO",
     (_of(8, swap=True, neg=2), _B, _C)),
    ("FADD2 R8, R8.F32x2.HI_LO, -R10.F32x2.HI_LO.NP", (_A, _of(10, neg=1))),
    ("FADD2 R8, R8.F32x2.HI_LO, 1", (_A, _of(8, given=_ONE))),
    ("FADD2 R8, R8.F32x2.HI_LO, UR8.F32x2.HI_LO", (_A, _of(8, given=_U))),
    ("FFMA2 R8, R8.F32x2.HI_LO, UR8.F32, R12.F32x2.HI_LO", (_A, _of(8, given=_U, both=True), _C)),
    ("FFMA2 R8, R8.F32x2.HI_LO, R10.F32x2.HI_LO, UR8.F32x2.HI_LO", (_A, _B, _of(8, given=_U))),
    ("FMUL2 R16, RZ.F32x2.HI_LO, R10.F32x2.HI_LO", (_of(8, given=(0, 0)), _B)),
]  # fmt: skip
_GUARDED = "@P0 FADD2 R8, R8.F32x2.LO_HI, R10.F32x2.HI_LO"


def _inputs() -> Words:
    rng = np.random.default_rng(5)
    data = rng.integers(0, 1 << 32, (THREADS, 6), dtype=np.uint32)
    edges = rng.choice(np.array(EDGES, np.uint32), (THREADS, 6))
    near = data & np.uint32(0x80FFFFFF) | np.uint32(0x3F000000)  # sums that round and cancel
    kind = rng.integers(0, 10, (THREADS, 6))
    return np.where(kind < 5, edges, np.where(kind < 8, near, data))


def test_pairs() -> None:
    """Each form's words are the exact ones, NaN as 0x7fffffff, as translated and as interpreted."""
    data = _inputs()
    lines: list[str] = []
    for n, text in enumerate([*(text for text, _ in FORMS), _GUARDED]):
        rd = text.removeprefix("@P0 ").split()[1].rstrip(",")
        lines += [f"LDG.E.64 R{r}, desc[UR6][R2.64+{4 * (r - 8):#x}] ;" for r in (8, 10, 12)]
        lines += [f"{text} ;", f"STG.E.64 desc[UR6][R4.64+{8 * n:#x}], {rd} ;"]
    made = _prepared(lines, data, 2 * len(FORMS) + 2)
    found = made.translated(strict=True).reshape(THREADS, -1)
    for n, (text, sources) in enumerate(FORMS):
        op, *modifiers = text.split()[0].split(".")
        mode = next((m for m in modifiers if m != "FTZ"), "")
        want = np.zeros((THREADS, 2), np.uint32)
        for t, row in enumerate(data.tolist()):
            for half, args in enumerate(zip(*(s(row) for s in sources), strict=True)):
                want[t, half] = _exact(op, mode, "FTZ" in modifiers, list(args))
        wrong = np.flatnonzero((found[:, 2 * n : 2 * n + 2] != want).any(axis=1))
        assert not wrong.size, (text, data[wrong[0]], found[wrong[0], 2 * n :][:2], want[wrong[0]])
    guarded = found[:, -2:]
    swapped = [text for text, _ in FORMS].index(_GUARDED.removeprefix("@P0 "))
    assert (guarded[:129] == data[:129, :2]).all()
    assert (guarded[129:] == found[129:, 2 * swapped : 2 * swapped + 2]).all()
    assert (made.interpreted().reshape(THREADS, -1) == found).all()


def test_a_product_that_is_zero_before_it_is_multiplied_is_refused() -> None:
    """.FMZ, which PTX has no word for."""
    with pytest.raises(LoweringError, match="FMZ"):
        _prepared(["FMUL2.FMZ R8, R8.F32x2.HI_LO, R10.F32x2.HI_LO ;"], _inputs(), 2).translated()


@pytest.mark.parametrize(
    ("text", "arch"),
    [
        ("FADD2.FTZ.RM R8, R8.F32x2.LO_HI, -R10.F32x2.HI_LO.NP", 100),
        ("FFMA2.RZ R10, R8.F32x2.LO_HI, |R10|.F32, R12.F32x2.HI_LO", 103),
        ("FHADD.BF16 R8, -R8.H1, R9", 120),
        ("FHFMA.RP.SAT R8, R8, R9.H1, -R10", 100),
        ("FMNMX3.FTZ.NAN R8, R8, -R9, R10, !PT", 100),
        ("MUFU.EX2.F16x2 R8, -R9", 103),
        ("LDG.E.ENL2.256 R12, R8, desc[UR6][R8.64+0x20], 0xd5", 100),
        ("STG.E.ENL2.256 desc[UR6][R4.64+0x20], R8, R12, 0xff", 120),
    ],
)
def test_proved(text: str, arch: int) -> None:
    word = assemble(f"{text} ;", arch)
    settings = RuleCheckSettings(arch=arch, vectors=1 << 12)
    assert verify_word(decode(word, 0, arch), settings)[0] == "proved"


# --- 256 bits -------------------------------------------------------------------------------------


MASKS = (0xFF, 0xD5, 0xC3, 0x8F, 0xF1)


@pytest.mark.parametrize("own", [False, True], ids=["apart", "over its own address"])
def test_256_bits(own: bool) -> None:
    """A mask names words; they go to registers that follow each other, and no other is written."""
    rng = np.random.default_rng(1)
    data = rng.integers(0, 1 << 32, (THREADS, 16), dtype=np.uint32)
    lines: list[str] = []
    masks = MASKS[:-1] if own else MASKS  # the last leaves half of that address there
    for n, mask in enumerate(masks):
        lines += [f"MOV R{r}, {0xA0 + r:#x} ;" for r in range(8, 16)]
        if own:  # the low words over the address, which the second half still needs
            lines += ["MOV R8, R2 ;", "MOV R9, R3 ;"]
        address = "R8" if own else "R2"
        lines.append(f"LDG.E.ENL2.256 R12, R8, desc[UR6][{address}.64+0x20], {mask:#x} ;")
        lines.append(f"STG.E.ENL2.256 desc[UR6][R4.64+{32 * n:#x}], R8, R12, 0xff ;")
    made = _prepared(lines, data, 8 * len(masks))
    found = made.translated(strict=True).reshape(THREADS, -1, 8)
    assert (made.interpreted().reshape(found.shape) == found).all()
    for n, mask in enumerate(masks):
        for first in (0, 4):
            words = [first + i for i in range(4) if mask >> (first + i) & 1]
            assert (
                found[:, n, first : first + len(words)] == data[:, [8 + w for w in words]]
            ).all()
            for r in range(first + len(words), first + 4):
                assert (found[:, n, r] == 0xA0 + 8 + r).all(), (mask, r)


def test_a_store_of_some_words_is_refused() -> None:
    """How its registers lie was not derived, and compilers do not write it."""
    text = "STG.E.ENL2.256 desc[UR6][R4.64], R8, R12, 0xf3 ;"
    made = _prepared([text], np.zeros((THREADS, 16), np.uint32), 8)
    with pytest.raises(LoweringError, match="a store of some of eight words"):
        translate_kernel(made.cubin, made.name)
