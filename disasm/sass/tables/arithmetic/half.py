"""Half precision: packed fp16 and bf16 arithmetic and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sassxlate.disasm.sass.tables.arithmetic.float import FCMP
from sassxlate.disasm.sass.tables.arithmetic.forms import (
    FTZ,
    HALF_PLACES,
    HALVES,
    HALVES_F32,
    SAT,
    Src,
    alu,
    pd,
    ps,
)
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    C,
    Idiom,
    Mod,
    R,
    Row,
    Select,
    bits,
    const,
    enum,
    flag,
    join,
)

_BF16: Mapping[int, str] = {0: "", 1: "BF16_V2"}
_F32 = Mod("type", bits(78), {0: "", 1: "F32"})
_UNTYPED = Mod("type", Bits(()), {0: ""})
_TYPE = Mod("type", bits(85), _BF16)
_TYPE_F32 = Mod("type", join((85, 1), (78, 1)), {0: "", 1: "BF16_V2", 2: "F32"})
_F16_F32 = Mod("type", bits(78), {0: "", 1: "F32"})
_FLUSH = Mod("flush", join((76, 1), (80, 1)), {0: "", 1: "FMZ", 2: "FTZ"})
_FLUSH_90 = Mod("flush", _FLUSH.field, {**_FLUSH.names, 3: "OOB"})  # only HFMA2
_ALL = (1, 2, 3, 4, 5, 6, 7)
_BOOL = enum("bool", 69, 2, "AND OR XOR -")
_SETP = {"Pu": pd(81), "Pv": pd(84), "Pp": ps(87)}
_FLAT = Src(neg=True, abs=True, imm="pair", bf16="type=1", tight=True)


def _negated_half(select: Select) -> Select:
    """With ``H0_NH1``: both halves are the lower one, the second with its sign changed."""
    return Select(join(*select.field.parts, (86, 1)), {**HALVES_F32, 4: "H0_NH1"})


def _fma(
    base: int,
    sources: Mapping[str, Src],
    types: Mod,
    lead: Sequence[Mod | Idiom],
    since: int,
    until: int,
) -> list[Row]:
    """HFMA2.  Clamping at zero (``.RELU``, from sm_80) brings a predicate."""
    flush = _FLUSH_90 if since >= 90 else _FLUSH
    rows = alu(
        "HFMA2", base, "Rd, Ra, Rb, Rc", sources, forms=_ALL, places=HALF_PLACES,
        mods=(*lead, types, flush, SAT), since=since, until=until, free=(bits(87, 4),),
        fixed=((bits(79), 0),) if until >= 80 else (),
    )  # fmt: skip
    if until >= 80:
        rows += alu(
            "HFMA2", base, "Rd, Ra, Rb, Rc, Pp?", sources, forms=_ALL, places=HALF_PLACES,
            mods=(*lead, types, flush, const("RELU")), extra={"Pp": ps()}, since=since,
            until=until, fixed=((bits(79), 1), (bits(77), 0)),
        )  # fmt: skip
    if since < 86:
        return rows
    return [
        r.with_(operands={**r.operands, "Rb": replace(slot, select=_negated_half(slot.select))})
        if isinstance(slot := r.operands["Rb"], R | C) and slot.select is not None
        else r
        for r in rows
    ]


def _rows(since: int, until: int) -> list[Row]:
    """Up to sm_89 any source may be an fp32 register (``.F32``), later only HFMA2's B.

    bf16 came to HFMA2 and HMNMX2 with sm_80, to the others with sm_90.
    """
    old = until < 90
    source = Src(
        neg=True, abs=True, imm="pair", select=HALVES_F32 if old else HALVES, bf16="type=1"
    )  # fmt: skip
    plain = replace(source, bf16="") if old else source  # bf16 came to these with sm_90
    two = {"Ra": plain, "Rb": plain}
    cmp = {"Ra": source, "Rb": replace(source, bf16="type=2")}
    summed = plain if until < 80 else source
    three = {"Ra": summed, "Rb": replace(summed, select=HALVES_F32), "Rc": summed}
    sums = _F32 if old else _TYPE_F32
    compared = _UNTYPED if old else Mod("type", bits(64, 2), {0: "", 2: "BF16_V2"})
    rows = [
        *alu("HADD2", 0x030, "Rd, Ra, Rb", two, forms=(1, 3, 7), layout="ab2",
             mods=(sums, FTZ, SAT), since=since, until=until),
        *alu("HADD2", 0x030, "Rd, Ra, Rb", two, forms=(2,), layout="ab2",
             mods=(_F32 if old else _TYPE, FTZ, SAT), since=since, until=until),
        *alu("HMUL2", 0x032, "Rd, Ra, Rb", two, forms=(1, 4, 5, 6), layout="ab",
             mods=(_F32 if old else _TYPE, _FLUSH, SAT), since=since, until=until),
        *_fma(0x031, three, _TYPE_F32 if until >= 80 else _F16_F32, (), since, until),
        *alu("HSET2", 0x033, "Rd, Ra, Rb, Pp", cmp, forms=(1, 2, 3, 7), layout="ab2",
             mods=(compared, flag("BF", 71), FCMP, FTZ, _BOOL), extra={"Pp": ps()}, since=since,
             until=until),
        *alu("HSETP2", 0x034, "Pu, Pv, Ra, Rb, Pp", cmp, forms=(1, 2, 3, 7), layout="ab2",
             mods=(compared, FCMP, flag("H_AND", 71), FTZ, _BOOL), dst={}, extra=_SETP,
             since=since, until=until),
    ]  # fmt: skip
    return rows


def _minmax(old: bool) -> list[Row]:
    source = Src(
        neg=True, abs=True, imm="pair", select=HALVES_F32 if old else HALVES, bf16="type=1"
    )  # fmt: skip
    mods: list[Mod] = [_TYPE_F32 if old else _TYPE, FTZ, flag("NAN", 81)]
    rows: list[Row] = []
    xorsign = flag("XORSIGN", 82)
    spans: list[tuple[int, int, list[Mod]]] = [(90, 999, [xorsign])]
    if old:
        spans = [(80, 80, []), (86, 89, [xorsign])]
    for since, until, extra in spans:
        rows += alu(
            "HMNMX2", 0x040, "Rd, Ra, Rb, Pp", {"Ra": source, "Rb": source}, forms=(1, 4, 5, 6),
            layout="ab", mods=(*mods, *extra), extra={"Pp": ps()}, since=since, until=until,
        )  # fmt: skip
    if not old:  # predicates: which of the two was chosen, for each half
        rows += alu(
            "HMNMX2", 0x040, "Rd, Pu, Pv, Ra, Rb, Pp", {"Ra": source, "Rb": source},
            forms=(1, 4, 5, 6), layout="ab", mods=(*mods, xorsign, const("IS_A")),
            extra={"Pu": pd(66), "Pv": pd(69), "Pp": ps()}, since=90, fixed=((bits(65), 1),),
        )  # fmt: skip
    return rows


_PART = Src(neg=True, abs=True, imm="pair", select=HALVES, bf16="type=1")
_VHMNMX = alu(
    "VHMNMX", 0x047, "Rd, Ra, Rb, Rc, Pp",
    {"Ra": _PART, "Rb": _PART, "Rc": replace(_PART, select_lo=76)}, forms=(1, 4, 5, 6),
    places=HALF_PLACES, mods=(_TYPE, FTZ, flag("NAN", 81), flag("XORSIGN", 82)),
    extra={"Pp": ps()}, since=90, until=103, reserved=(bits(78),),
)  # fmt: skip

ROWS: list[Row] = [
    *_rows(75, 75),
    *_rows(80, 80),
    *_rows(86, 89),
    *_rows(90, 999),
    *_VHMNMX,
    *_minmax(True),
    *_minmax(False),
    # On the tensor pipe; no part selectors.
    *_fma(0x035, {"Ra": _FLAT, "Rb": _FLAT, "Rc": _FLAT}, _UNTYPED, (const("MMA"),), 80, 89),
    *_fma(0x035, {"Ra": _FLAT, "Rb": _FLAT, "Rc": _FLAT}, _TYPE, (const("MMA"),), 90, 90),
]
