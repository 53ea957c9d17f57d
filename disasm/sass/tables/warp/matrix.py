"""Matrix multiply-accumulate, matrix moves, and packing conversions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sassxlate.disasm.sass.tables.arithmetic.forms import FTZ, Src, alu, rd
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    C,
    Count,
    Fixed,
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

_UP = P(87, 90, "UP", flip=7)
_NO_UP = Fixed("UP")

# A tile of m x k times one of k x n.  The name is spelled without ``x``, except for DMMA.
_Shape = tuple[int, int, int]
_NAMES: Mapping[str, _Shape] = {
    "1684": (16, 8, 4), "1688": (16, 8, 8), "16816": (16, 8, 16), "16832": (16, 8, 32),
    "16864": (16, 8, 64), "168128": (16, 8, 128), "168256": (16, 8, 256), "8816": (8, 8, 16),
    "8832": (8, 8, 32), "8864": (8, 8, 64), "88128": (8, 8, 128),
}  # fmt: skip


def _registers(elements: int, width: int) -> int:
    """The number of registers per lane in which a warp holds ``elements`` of ``width`` bits."""
    return max(1, elements * width // 1024)


def _fragments(
    field: Bits, names: Mapping[int, str], types: Bits, widths: tuple[Mapping[int, int], ...],
    sparse: bool = False,
) -> tuple[Mod, Count, Count]:  # fmt: skip
    """The modifier of the shape, and the registers of A and B.

    ``widths`` gives the bits of an element of A and of B by the value of ``types``.  Of a sparse
    A every other element is present.
    """
    of_a, of_b = widths[0], widths[-1]

    def shape(word: int) -> _Shape:
        return _NAMES.get(names.get(field.get(word), ""), (8, 8, 4))

    def a(word: int) -> int:
        m, _, k = shape(word)
        return _registers(m * k >> sparse, of_a.get(types.get(word), 8))

    def b(word: int) -> int:
        _, n, k = shape(word)
        return _registers(k * n, of_b.get(types.get(word), 8))

    used = Bits((*field.parts, *types.parts))
    return Mod("shape", field, names), Count(used, a), Count(used, b)


def _sparse_operands(since: int, *, extra: str = "") -> tuple[dict[str, Operand], str]:
    """The register with the places of A's elements, and the selector of its part."""
    reuse = 50 if since < 120 else None
    return {"Re": R(40, 1, reuse=reuse), "selector": I(bits(48, 2))}, f"{extra}, Re, selector"


# Generations that agree: sm_86 and later have a predicate, sm_120 has no reuse of the sparse
# places.
_SPANS = ((75, 75), (80, 80), (86, 110), (120, 999))
_HMMA = ({0: "1688", 1: "16816", 2: "1684"}, {0: "1688", 1: "16816", 3: "16832"})
_ACC = enum("acc", 76, 1, "F16 F32", {"F16": 2, "F32": 4})


def _hmma() -> list[Row]:
    rows: list[Row] = []
    place, types = join((75, 1), (78, 1)), bits(82, 2)
    for since, until in _SPANS:
        for sparse in (False, True):
            if sparse and since == 75:
                continue
            shape, a, b = _fragments(place, _HMMA[sparse], types, ({0: 16, 1: 16, 2: 32},), sparse)
            mods: tuple[Mod, ...] = (shape, _ACC, enum("type", 82, 2, "_ BF16 TF32 -"))
            fixed: tuple[tuple[Bits, int], ...] = ((bits(73), int(sparse)),)
            if since == 75:
                mods, fixed = (shape, _ACC, flag("SATFINITE", 77)), ((types, 0),)
            operands: dict[str, Operand] = {
                "Rd": rd(width="acc"), "Ra": R(24, a, neg=72, reuse=122),
                "Rb": R(32, b, neg=63, reuse=123), "Rc": R(64, "acc", reuse=124),
                "Pp": _UP if since >= 86 else _NO_UP,
            }  # fmt: skip
            text = "Rd, Ra, Rb, Rc, Pp?" if since >= 86 else "Rd, Ra, Rb, Rc"
            if sparse:
                more, tail = _sparse_operands(since)
                operands |= more
                text += tail
                mods = (const("SP"), *mods)
            rows.append(
                Row("HMMA", 0x23C, operands, text, mods, since, until, fixed=fixed,
                    reserved=(bits(81),) * sparse)
            )  # fmt: skip
    return rows


def _quad_pairs() -> list[Row]:
    """8 x 8 x 4 for each quad pair, in two steps or, into single precision, in four."""
    layouts = {0: "ROW", 1: "COL"}
    operands: dict[str, Operand] = {
        "Rd": rd(width=2), "Ra": R(24, 2, neg=72, select=Select(bits(73), layouts), reuse=122),
        "Rb": R(32, 2, neg=63, select=Select(bits(74), layouts), reuse=123),
        "Rc": R(64, 2, reuse=124), "Pp": _NO_UP,
    }  # fmt: skip
    return [
        Row("HMMA", 0x236, operands, "Rd, Ra, Rb, Rc",
            (const("884"), const(name), enum("addend", 78, 1, kinds),
             enum("step", 79, 2, steps), flag("SATFINITE", 77)), 75, 75,
            fixed=((bits(75), 0), (bits(76), code)))
        for code, name, kinds, steps in (
            (0, "F16", "F16 -", "STEP0 STEP1 - -"),
            (1, "F32", "F16 F32", "STEP0 STEP1 STEP2 STEP3"),
        )
    ]  # fmt: skip


_DENSE_8, _DENSE_10 = {0: "8816", 4: "16816", 5: "16832"}, {4: "16816", 5: "16832"}
_ALL = {**_DENSE_8, 2: "8832", 6: "16864"}
_SP_8, _SP_10 = {2: "8832", 5: "16832", 6: "16864"}, {5: "16832", 6: "16864"}
_SP_ALL = {**_SP_8, 3: "8864", 7: "168128"}
_OF_A = join((76, 1), (83, 1))
_OF_B = join((78, 1), (84, 1))


def _imma() -> list[Row]:
    """Up to sm_89 elements have eight or four bits, later eight."""
    rows: list[Row] = []
    for since, until, names, sparse in (
        (80, 80, _ALL, False), (86, 89, _ALL, False), (90, 90, _DENSE_8, False),
        (100, 999, _DENSE_10, False), (80, 80, _SP_ALL, True), (86, 89, _SP_ALL, True),
        (90, 90, _SP_8, True), (100, 110, _SP_10, True), (120, 999, _SP_10, True),
    ):  # fmt: skip
        place, widths = join((75, 1), (85, 2)), Bits((*_OF_A.parts, *_OF_B.parts))
        kinds = "U8 S8 U4 S4" if since < 90 else "U8 S8"
        of_a = {v: 4 if v >> 1 & 1 else 8 for v in range(16)}
        of_b = {v: 4 if v >> 3 & 1 else 8 for v in range(16)}
        shape, a, b = _fragments(place, names, widths, (of_a, of_b), sparse)
        mods = [shape, _kind("ta", _OF_A, kinds), _kind("tb", _OF_B, kinds), flag("SAT", 82)]
        operands: dict[str, Operand] = {
            **_integers(Count(place, lambda word: 2 if word >> 86 & 1 == word >> 75 & 1 == 0
                              else 4), a, b),
            "Pp": _UP if since >= 86 else _NO_UP,
        }  # fmt: skip
        text = "Rd, Ra, Rb, Rc, Pp?" if since >= 86 else "Rd, Ra, Rb, Rc"
        if sparse:
            more, tail = _sparse_operands(since)
            operands |= more
            text += tail
            mods.insert(0, const("SP"))
        rows.append(
            Row("IMMA", 0x237, operands, text, tuple(mods), since, until,
                fixed=((bits(72), int(sparse)), (bits(73, 2), 2)),
                reserved=(bits(81),) * sparse)
        )  # fmt: skip
    for name, code, width in (("8816", 0, 8), ("8832", 1, 4)):
        types = enum("ta", 76, 1, f"U{width} S{width}"), enum("tb", 78, 1, f"U{width} S{width}")
        rows.append(
            Row("IMMA", 0x237, {**_integers(2, 1, 1), "Pp": _NO_UP}, "Rd, Ra, Rb, Rc",
                (const(name), *types, flag("SAT", 82)), 75, 75,
                fixed=((bits(85), code), (bits(73, 2), 2), (bits(83, 2), 3 * (width == 4))),
                reserved=(bits(77),))
        )  # fmt: skip
    return rows


def _kind(name: str, field: Bits, spellings: str) -> Mod:
    return Mod(name, field, dict(enumerate(spellings.split())))


def _integers(c: int | Count, a: int | Count, b: int | Count) -> dict[str, Operand]:
    return {
        "Rd": R(16, c, write=True), "Ra": R(24, a, suffix="ROW", reuse=122),
        "Rb": R(32, b, suffix="COL", reuse=123), "Rc": R(64, c, reuse=124),
    }  # fmt: skip


def _bmma() -> list[Row]:
    rows: list[Row] = []
    shapes = enum("shape", 75, 2, "88128 168128 168256 -", {"88128": 2, "168128": 4, "168256": 4})
    place = bits(75, 2)
    for since, until, ops in ((75, 75, "XOR XOR"), (80, 80, "XOR AND"), (86, 89, "XOR AND"),
                              (90, 90, "- AND")):  # fmt: skip
        _, a, b = _fragments(place, shapes.names, Bits(()), ({0: 1},))
        shape = shapes
        if since == 75:
            shape = enum("shape", 75, 2, "88128 - - -", {"88128": 2})
        rows.append(
            Row("BMMA", 0x23D,
                {"Rd": rd(width="shape"), "Ra": R(24, a, suffix="ROW", reuse=122),
                 "Rb": R(32, b, suffix="COL", reuse=123), "Rc": R(64, "shape", reuse=124),
                 "Pp": _UP if since >= 86 else _NO_UP},
                "Rd, Ra, Rb, Rc, Pp?" if since >= 86 else "Rd, Ra, Rb, Rc",
                (shape, enum("op", 78, 1, ops), const("POPC")), since, until,
                fixed=((bits(77), 0), (bits(80), 1)), free=(bits(73), bits(79)),
                ones=(bits(74),))
        )  # fmt: skip
    return rows


_DROUND = enum("round", 78, 2, "_ RM RP RZ")


def _dmma() -> list[Row]:
    rows: list[Row] = []
    for since, until, shape, code, a, b, c in (
        (80, 80, "884", 0, 2, 2, 4), (86, 89, "884", 0, 2, 2, 4), (90, 999, "8x8x4", 0, 2, 2, 4),
        (90, 90, "16x8x4", 1, 4, 2, 8), (90, 90, "16x8x8", 2, 8, 4, 8),
        (90, 90, "16x8x16", 3, 16, 8, 8),
    ):  # fmt: skip
        operands: dict[str, Operand] = {
            "Rd": rd(width=c), "Ra": R(24, a, neg=72, abs=73, reuse=122),
            "Rb": R(32, b, neg=63, abs=62, reuse=123),
            "Rc": R(64, c, neg=75, abs=74, reuse=124),
            "Pp": _UP if since >= 86 else _NO_UP,
        }  # fmt: skip
        rows.append(
            Row("DMMA", 0x23F, operands,
                "Rd, Ra, Rb, Rc, Pp?" if since >= 86 else "Rd, Ra, Rb, Rc",
                (const(shape), _DROUND), since, until,
                fixed=((bits(76, 2), code),) if since >= 90 else ())
        )  # fmt: skip
    return rows


# Elements of eight, six and four bits, from sm_120 on in any combination; all fill a byte.
_BYTES = {0: "E4M3", 1: "E5M2", 3: "E3M2", 4: "E2M3", 5: "E2M1"}
_KINDS = Mod("ta", join((78, 1), (82, 2)), _BYTES), Mod("tb", join((79, 1), (84, 2)), _BYTES)
_NIBBLES = {0: "E2M1", 1: "E0M3"}
# The uniform register that selects the bytes of the scales.
_SCALE_BYTES = R(60, 1, "UR", split=join((60, 3), (73, 5)))


def _qmma() -> list[Row]:
    rows: list[Row] = []
    acc = enum("acc", 77, 1, "F16 F32", {"F16": 2, "F32": 4})
    for since, until in ((89, 89), (120, 999)):
        for sparse in (False, True):
            names = {1: "16832", 2: "16864"} if sparse else {0: "16816", 1: "16832"}
            shape, a, b = _fragments(bits(75, 2), names, Bits(()), ({0: 8},), sparse)
            old = since == 89
            layouts = ("ROW", "COL") if old else ("", "")
            kinds: tuple[Mod, ...] = (
                enum("ta", 78, 1, "E4M3 E5M2"), enum("tb", 79, 1, "E4M3 E5M2"),
            ) if old else _KINDS  # fmt: skip
            operands: dict[str, Operand] = {
                "Rd": rd(width="acc"), "Ra": R(24, a, neg=72, suffix=layouts[0], reuse=122),
                "Rb": R(32, b, neg=63, suffix=layouts[1], reuse=123),
                "Rc": R(64, "acc", reuse=124), "Pp": _UP,
            }  # fmt: skip
            text = "Rd, Ra, Rb, Rc, Pp?"
            lead: tuple[Mod, ...] = ()
            fixed: tuple[tuple[Bits, int], ...] = ((bits(80), int(sparse)),)
            free, ones = () if old else (bits(73),), () if old else (bits(74),)
            if old:
                fixed += ((bits(73, 2), 2),)
            if sparse:
                more, tail = _sparse_operands(since)
                operands |= more
                text += tail
                lead = (const("SP"), flag("REGOFFSET", 81)) if old else (const("SP"),)
                fixed += () if old else ((bits(81), 0),)
            rows.append(
                Row("QMMA", 0x27A, operands, text, (*lead, shape, acc, *kinds), since, until,
                    fixed=fixed, free=free, ones=ones)
            )  # fmt: skip
    return rows


def _scaled() -> list[Row]:
    """Products whose blocks of elements have scales, on sm_120."""
    rows: list[Row] = []
    for sparse in (False, True):
        operands: dict[str, Operand] = {
            "Rd": rd(width=4), "Ra": R(24, 4, neg=72, reuse=122),
            "Rb": R(32, 4 if sparse else 2, neg=63, reuse=123), "Rc": R(64, 4, reuse=124),
            "Pp": _UP,
            # The places of a sparse A's elements precede the scales of A.
            "Re": R(40, 2 if sparse else 1), "Rs": R(52, reuse=51), "Us": _SCALE_BYTES,
        }  # fmt: skip
        text = "Rd, Ra, Rb, Rc, Pp?, Re, Rs, Us"
        lead: tuple[Mod, ...] = (const("SF"),)
        fixed: tuple[tuple[Bits, int], ...] = ((bits(80), int(sparse)),)
        if sparse:
            operands["selector"] = I(bits(48, 2))
            text += ", selector"
            lead += (const("SP"),)
            fixed += ((bits(81), 0),)
        nibbles = Mod("ta", bits(78), _NIBBLES), Mod("tb", bits(79), _NIBBLES)
        rows += [
            Row("QMMA", 0x47A, operands, text,
                (*lead, const("16864" if sparse else "16832"), const("F32"), *_KINDS, const("E8")),
                since=120, fixed=fixed),
            Row("OMMA", 0x47F, operands, text,
                (*lead, const("168128" if sparse else "16864"), const("F32"), *nibbles,
                 enum("scales", 82, 1, "E8 UE4M3"), enum("blocks", 83, 1, "4X _")),
                since=120, fixed=fixed),
        ]  # fmt: skip
    return rows


MOVES = [
    Row("MOVM", 0x23A, {"Rd": rd(), "Ra": R(24, reuse=122)}, "Rd, Ra",
        (const("16"), enum("shape", 78, 2, "MT88 M832 M864 -")), until=90),
    Row("MOVM", 0x23A, {"Rd": rd(width="size"), "Ra": R(24, reuse=122)}, "Rd, Ra",
        (enum("size", 75, 3, "16 U4TO8 - - - - - -", {"U4TO8": 2}),
         enum("shape", 78, 2, "MT88 M832 M864 -")), since=100),
]  # fmt: skip

# ---- F2FP: packing two floats into one register

_ROUND = enum("round", 79, 2, "_ - - RZ")
_H1_C = Select(bits(72), {0: "", 1: "H1"})
_H1_B = Select(bits(88), {0: "", 1: "H1"})
_OLD = Mod("types", bits(76), {0: "", 1: "BF16"})
_DST = {0: "F16", 1: "BF16", 3: "TF32", 4: "E5M2", 5: "E4M3"}


def _f2fp() -> list[Row]:
    rows: list[Row] = []
    sat, relu = flag("SATFINITE", 77), flag("RELU", 75)
    ra, rb = R(24, reuse=122, neg=None), R(32, reuse=123)
    rc = R(64, reuse=124, select=_H1_C)
    for since, until in ((80, 87), (89, 90)):
        old = since == 80

        def types(src: str, since: int = since) -> Mod:
            if since == 80:
                return _OLD
            return Mod("types", join((76, 1), (86, 2)), {k: f"{v}.{src}" for k, v in _DST.items()})

        none: tuple[tuple[Bits, int], ...] = ((bits(73, 2), 0), (bits(89, 2), 0))
        unused: tuple[Bits, ...] = ()
        if old:  # only one kind of source: its fields have no meaning
            none, unused = (), (bits(73, 2), bits(89, 2))
        rows += alu("F2FP", 0x03E, "Rd, Ra, Rb",
                    {"Ra": Src(), "Rb": Src(imm="f32")}, forms=(1, 4, 5, 6), layout="ab",
                    mods=(sat, relu, types("F32"), const("PACK_AB"), _ROUND),
                    extra={"Rc": Fixed("R", 255)}, since=since, until=until,
                    fixed=(*none, (bits(78), 0)), ones=(bits(64, 8),), free=unused)  # fmt: skip
        rows += [
            row.with_(operands={**row.operands, "Rc": rc})
            for row in alu("F2FP", 0x03E, "Rd, Rb, Rc", {"Rb": Src(imm="f32"), "Rc": Src()},
                           forms=(1, 4, 5, 6),
                           mods=(sat, relu, types("F32"), const("MERGE_C"), _ROUND), since=since,
                           until=until, fixed=(*none, (bits(78), 1)), ones=(bits(24, 8),),
                           free=unused)
        ]  # fmt: skip
        if old:
            continue
        rows += [
            Row("F2FP", 0x23E, {"Rd": rd(), "Rb": R(32, reuse=123, select=_H1_B)}, "Rd, Rb",
                (relu,
                 Mod("types", join((76, 1), (86, 2), (73, 1)),
                     {d | s << 3: f"{_DST[d]}.{('E5M2', 'E4M3')[s]}" for d in _DST
                      for s in (0, 1)}), const("UNPACK_B")),
                since, until, fixed=((bits(74), 1), (bits(78), 0), (bits(89, 2), 1)),
                ones=(bits(24, 8), bits(64, 8))),
            Row("F2FP", 0x23E, {"Rd": rd(), "Rb": R(32, reuse=123)}, "Rd, Rb",
                (relu, const("TF32.F32.PACK_B"), _ROUND), since, until,
                fixed=((bits(73, 2), 0), (join((76, 1), (86, 2)), 3), (bits(78), 1),
                       (bits(89, 2), 1)), ones=(bits(24, 8), bits(64, 8))),
            Row("F2FP", 0x1C3E, {"Rd": rd(), "Rb": R(32, 1, "UR", select=_H1_B)}, "Rd, Rb",
                (relu,
                 Mod("types", join((76, 1), (86, 2), (73, 1)),
                     {d | s << 3: f"{_DST[d]}.{('E5M2', 'E4M3')[s]}" for d in _DST
                      for s in (0, 1)}), const("UNPACK_B")),
                since, until, fixed=((bits(74), 1), (bits(78), 0), (bits(89, 2), 1)),
                ones=(bits(24, 8), bits(64, 8))),
            Row("F2FP", 0x23E, {"Rd": rd(), "Ra": ra, "Rb": rb, "Rc": rc}, "Rd, Ra, Rb, Rc",
                (sat, relu, types("F32"), const("PACK_AB_MERGE_C"), _ROUND), since, until,
                fixed=((bits(73, 2), 0), (bits(78), 1), (bits(89, 2), 2))),
        ]  # fmt: skip
        rows += [
            row.with_(operands={**row.operands, "Rc": rc})
            for row in alu("F2FP", 0x03E, "Rd, Rb, Rc", {"Rb": Src(imm="f32"), "Rc": Src()},
                           forms=(1, 4, 5, 6),
                           mods=(sat, relu, types("F16"), const("UNPACK_B_MERGE_C")), since=since,
                           until=until, fixed=((bits(73, 2), 1), (bits(78), 0), (bits(89, 2), 2)),
                           ones=(bits(24, 8),))
        ]  # fmt: skip
        rows += [
            row.with_(operands={**row.operands, "Rb": replace(constant, gap=True)})
            if isinstance(constant := row.operands["Rb"], C)
            else row
            for row in alu("F2FP", 0x03E, "Rd, Rb", {"Rb": Src(imm="f32")}, forms=(4, 5),
                    mods=(relu,
                          Mod("types", join((76, 1), (86, 2), (73, 1)),
                              {d | s << 3: f"{_DST[d]}.{('E5M2', 'E4M3')[s]}" for d in _DST
                               for s in (0, 1)}), const("UNPACK_B")),
                    since=since, until=until, ones=(bits(24, 8), bits(64, 8)),
                    fixed=((bits(74), 1), (bits(78), 0), (bits(88), 0), (bits(89, 2), 1)),
                    )
        ]  # fmt: skip
    return rows


# Its fields are in other places than F2FP's; the form that compilers write.
UNIFORM = [
    Row("UF2FP", 0x12BA,
        {"Rd": rd(file="UR"), "Ra": R(24, 1, "UR"), "Rb": R(32, 1, "UR"),
         "Rc": R(64, 1, "UR", select=_H1_C)}, "Rd, Ra, Rb, Rc",
        (flag("SATFINITE", 82), flag("RELU", 74),
         Mod("types", bits(75, 3), {4: "E5M2.F32", 5: "E4M3.F32"}), const("PACK_AB_MERGE_C")),
        since=100, fixed=((bits(78), 1), (bits(84, 2), 2), (bits(89, 2), 2)), guard="UP",
        reserved=(bits(79, 3),)),
]  # fmt: skip

ROWS: list[Row] = [
    *UNIFORM, *_hmma(), *_quad_pairs(), *_imma(), *_bmma(), *_dmma(), *_qmma(), *_scaled(),
    *MOVES, *_f2fp(),
]  # fmt: skip
__all__ = ["FTZ", "ROWS"]
