"""Matrix products of a warpgroup (sm_90): four warps multiply tiles in shared memory, A
in shared memory or in registers."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.sass.tables.arithmetic.forms import rd
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    I,
    Mod,
    Operand,
    P,
    R,
    Row,
    Select,
    bits,
    const,
    enum,
    flag,
    join,
)

_GSB = Mod("gsb", bits(84, 3), {0: "", 7: ""})
_SPARSE = bits(73)
_NS = tuple(range(8, 257, 8))
# Integers lack every other multiple of eight above 32, and number the rest.
_INTEGER_NS = (8, 16, 24, 32, *range(48, 257, 16))

# The signs and transpositions of A and B, if both follow one descriptor, or of B alone.
_BOTH: Mapping[int, str] = {
    i: ".".join(n for b, n in enumerate(("negA", "negB", "tnspA", "tnspB")) if i >> b & 1)
    for i in range(16)
}
_SHARED = Select(join((72, 1), (63, 1), (61, 1), (62, 1)), _BOTH)
_SHARED_B = Select(join((63, 1), (62, 1)), {0: "", 1: "negB", 2: "tnspB", 3: "negB.tnspB"})
_SIGNED = Select(join((72, 1), (63, 1)), {i: _BOTH[i] for i in range(4)})
_SIGNED_B = Select(bits(63), {0: "", 1: "negB"})


def _shape(field: Bits, codes: Mapping[int, tuple[int, int]], fraction: int) -> Mod:
    """64 x N x k; the accumulator takes N / ``fraction`` registers."""
    return Mod("shape", field, {i: f"64x{n}x{k}" for i, (n, k) in codes.items()},
               {i: shape[0] // fraction for i, shape in codes.items()})  # fmt: skip


def _forms(
    name: str, code: int, shape: Mod, mods: tuple[Mod, ...], fixed: tuple[tuple[Bits, int], ...],
    selects: tuple[Select | None, Select | None], sparse: bool = False, shown: bool = False,
) -> list[Row]:  # fmt: skip
    """A from shared memory or from registers; ``shown``: the selector prints even when it is 0."""
    group: dict[str, Operand] = {
        "Rd": rd(width="shape"), "Rc": R(64, "shape"),
        "Pp": P(87, 90, "UP", flip=7),
    }  # fmt: skip
    text = "Rc, Pp?, 'gsb0':!gsb"
    lead: tuple[Mod, ...] = (shape, *mods, _GSB)
    if sparse:
        group |= {"Re": R(40), "selector": I(bits(48, 2), elide=None if shown else 0)}
        text = f"Rc, Pp?, Re, selector{'' if shown else '?'}, 'gsb0':!gsb"
        lead = (const("SP"), flag("REGOFFSET", 74), *lead)
    if name != "BGMMA":
        fixed = ((_SPARSE, int(sparse)), *fixed)
    both, b_only = selects
    return [
        Row(name, 0x1900 | code,
            {**group, "Ra": R(24, 4, "UR", wrap="gdesc[{}]", select=both)},
            f"Rd, Ra, {text}", lead, 90, 90, fixed=fixed),
        Row(name, 0x1D00 | code,
            {**group, "Ra": R(24, 4, neg=72 if both else None),
             "Rb": R(32, 4, "UR", wrap="gdesc[{}]", select=b_only)},
            f"Rd, Ra, Rb, {text}", lead, 90, 90, fixed=fixed),
    ]  # fmt: skip


def _products() -> list[Row]:
    rows: list[Row] = []
    for sparse in (False, True):
        ks = ((0, 16), (64, 32)) if sparse else ((0, 16), (32, 8))
        halves = {i | code: (n, k) for code, k in ks for i, n in enumerate(_NS)}
        byte = {i | sparse << 5: (n, 32 << sparse) for i, n in enumerate(_NS)}
        whole = {3 * i + sparse: (n, 32 << sparse) for i, n in enumerate(_INTEGER_NS)}
        for acc, name, fraction in ((0, "F16", 4), (1, "F32", 2)):
            of = (bits(75), acc)
            rows += _forms("HGMMA", 0xF0, _shape(bits(53, 7), halves, fraction),
                           (const(name), enum("type", 76, 2, "_ BF16 TF32 -")), (of,),
                           (_SHARED, _SHARED_B), sparse, True)  # fmt: skip
            types = enum("ta", 76, 1, "E4M3 E5M2"), enum("tb", 77, 1, "E4M3 E5M2")
            rows += _forms("QGMMA", 0xF3, _shape(bits(53, 6), byte, fraction),
                           (const(name), *types), (of,), (_SIGNED, _SIGNED_B), sparse)  # fmt: skip
        types = enum("ta", 76, 2, "U8 S8 - -"), enum("tb", 82, 2, "U8 S8 - -")
        rows += _forms("IGMMA", 0xF1, _shape(bits(53, 6), whole, 2), (*types, flag("SAT", 75)),
                       (), (None, None), sparse)  # fmt: skip
    bit = {i: (n, 256) for i, n in enumerate(_INTEGER_NS)}
    rows += _forms("BGMMA", 0xF2, _shape(bits(53, 6), bit, 2), (const("AND.POPC"),),
                   ((bits(77, 2), 2), (bits(80), 1)), (None, None))  # fmt: skip
    return rows


CONTROL = [
    Row("WARPGROUP", 0x9C5, {}, "", (const("ARRIVE"),), 90, 90, fixed=((bits(79, 2), 0),)),
    Row("WARPGROUP", 0x9C5, {}, "", (const("WAIT"),), 90, 90, fixed=((bits(79, 2), 1),)),
    Row("WARPGROUP", 0x9C5, {"count": I(bits(72, 3))}, "'gsb0', count", (const("DEPBAR.LE"),), 90,
        90, fixed=((bits(79, 2), 2), (bits(47), 1), (bits(84, 3), 0))),
    Row("WARPGROUPSET", 0x1D5E, {"Rb": R(32, 1, "UR")}, "Rb", (const("AC"),), 90, 90,
        fixed=((bits(79), 0),)),
    Row("WARPGROUPSET", 0x1D5E, {"Rb": R(32, 1, "UR")}, "Rb, 'gsb0'", (const("SB"),), 90, 90,
        fixed=((bits(79), 1), (bits(84, 3), 0))),
]  # fmt: skip

ROWS: list[Row] = [*_products(), *CONTROL]
