"""Matrix multiply-accumulate, matrix moves, and packing conversions."""

from __future__ import annotations

from collections.abc import Mapping

from ..spec import Fixed, I, Mod, Operand, P, R, Row, Select, bits, const, enum, flag, join
from .forms import FTZ, Src, alu, rd

_UP = P(87, 90, "UP", flip=7)


def _abc(a: str | int, b: str | int, c: str | int, *, signs: bool = True) -> dict[str, Operand]:
    """Rd, Ra, Rb and Rc, their widths given by modifiers; HMMA may negate A and B."""
    return {
        "Rd": rd(width=c),
        "Ra": R(24, a, neg=72 if signs else None, reuse=122),
        "Rb": R(32, b, neg=63 if signs else None, reuse=123),
        "Rc": R(64, c, reuse=124),
    }


# HMMA's shape and element type together decide how many registers each fragment takes:
# name -> (A, B) for the shape and type; C and D take 2 for F16 and 4 for F32.
_HMMA: Mapping[tuple[str, str], tuple[int, int]] = {
    ("1688", ""): (2, 1), ("1688", "BF16"): (2, 1), ("1688", "TF32"): (4, 2),
    ("16816", ""): (4, 2), ("16816", "BF16"): (4, 2), ("1684", "TF32"): (2, 1),
}  # fmt: skip
_SPARSE: Mapping[tuple[str, str], tuple[int, int]] = {
    ("16832", ""): (4, 4), ("16832", "BF16"): (4, 4), ("16816", ""): (2, 2),
    ("16816", "BF16"): (2, 2), ("16816", "TF32"): (4, 4), ("1688", "TF32"): (2, 2),
}  # fmt: skip
_SHAPE_CODE = {"1688": 0, "16816": 1, "1684": 2}
_SPARSE_CODE = {"1688": 0, "16816": 1, "16832": 3}
_TYPE_CODE = {"": 0, "BF16": 1, "TF32": 2}
_ACC = enum("acc", 76, 1, "F16 F32", {"F16": 2, "F32": 4})


def _hmma() -> list[Row]:
    rows: list[Row] = []
    for since, until, sat, pred in ((75, 75, True, False), (80, 89, False, False),
                                    (90, 999, False, True)):  # fmt: skip
        for sparse, table, code in ((False, _HMMA, _SHAPE_CODE), (True, _SPARSE, _SPARSE_CODE)):
            for (shape, kind), (a, b) in table.items():
                if since == 75 and (sparse or kind):
                    continue
                at = code[shape]
                mods = [const(shape), _ACC]
                if sparse:
                    mods.insert(0, const("SP"))
                if sat:
                    mods.append(flag("SATFINITE", 77))
                if kind:
                    mods.append(const(kind))
                operands = _abc(a, b, "acc")
                text = "Rd, Ra, Rb, Rc"
                if pred:
                    operands["Pp"] = _UP
                    text += ", Pp?"
                else:
                    operands["Pp"] = Fixed("UP")
                if sparse:
                    operands["Re"] = R(40, 1, reuse=50)
                    operands["selector"] = I(bits(48, 2))
                    text += ", Re, selector"
                rows.append(
                    Row("HMMA", 0x23C, operands, text, tuple(mods), since, until,
                        fixed=((bits(75), at & 1), (bits(78), at >> 1), (bits(73), int(sparse)),
                               (bits(82, 2), _TYPE_CODE[kind])))
                )  # fmt: skip
    return rows


# IMMA: name -> (code of the shape in bits 75, 85, 86; bits an element; A, B, C).
_IMMA: tuple[tuple[str, int, int, int, int, int], ...] = (
    ("8816", 0, 8, 1, 1, 2), ("16816", 4, 8, 2, 1, 4), ("16832", 5, 8, 4, 2, 4),
    ("8832", 2, 4, 1, 1, 2), ("16832", 5, 4, 2, 1, 4), ("16864", 6, 4, 4, 2, 4),
)  # fmt: skip
# Sparse, where A holds every other element.
_IMMA_SP: tuple[tuple[str, int, int, int, int, int], ...] = (
    ("16832", 5, 8, 2, 2, 4), ("16864", 6, 8, 4, 4, 4), ("16864", 6, 4, 2, 2, 4),
    ("168128", 7, 4, 4, 4, 4),
)  # fmt: skip
_IMMA_75 = (("8816", 0, 8, 1, 1, 2), ("8832", 1, 4, 1, 1, 2))


def _imma() -> list[Row]:
    rows: list[Row] = []
    for since, until, shapes, sparse in (
        (75, 75, _IMMA_75, False), (80, 89, _IMMA, False), (90, 90, _IMMA, False),
        (100, 999, _IMMA[1:3], False), (80, 89, _IMMA_SP, True), (90, 999, _IMMA_SP, True),
    ):  # fmt: skip
        for shape, code, width, a, b, c in shapes:
            if width == 4 and since >= 90:
                continue
            types = enum("ta", 76, 1, f"U{width} S{width}"), enum("tb", 78, 1, f"U{width} S{width}")
            operands: dict[str, Operand] = {
                "Rd": rd(width=c), "Ra": R(24, a, suffix="ROW", reuse=122),
                "Rb": R(32, b, suffix="COL", reuse=123), "Rc": R(64, c, reuse=124),
                "Pp": _UP if since >= 90 else Fixed("UP"),
            }  # fmt: skip
            where = bits(85) if since == 75 else join((75, 1), (85, 2))
            text = "Rd, Ra, Rb, Rc, Pp?" if since >= 90 else "Rd, Ra, Rb, Rc"
            name = const(f"SP.{shape}" if sparse else shape)
            if sparse:
                operands |= {"Re": R(40, reuse=50 if since < 90 else None),
                             "selector": I(bits(48, 2))}  # fmt: skip
                text += ", Re, selector"
            rows.append(
                Row("IMMA", 0x237, operands, text, (name, *types, flag("SAT", 82)), since, until,
                    fixed=((where, code), (bits(72), int(sparse)), (bits(73, 2), 2),
                           (bits(83, 2), 3 if width == 4 else 0)))
            )  # fmt: skip
    return rows


def _bmma() -> list[Row]:
    rows: list[Row] = []
    for since, until, op in ((80, 89, enum("op", 78, 1, "XOR AND")),
                             (90, 90, enum("op", 78, 1, "- AND"))):  # fmt: skip
        for shape, code, a, b, c in (("88128", 0, 1, 1, 2), ("168256", 2, 4, 2, 4),
                                     ("168128", 1, 2, 1, 4)):  # fmt: skip
            operands: dict[str, Operand] = {
                "Rd": rd(width=c), "Ra": R(24, a, suffix="ROW", reuse=122),
                "Rb": R(32, b, suffix="COL", reuse=123), "Rc": R(64, c, reuse=124),
                "Pp": _UP if since >= 90 else Fixed("UP"),
            }  # fmt: skip
            rows.append(
                Row("BMMA", 0x23D, operands,
                    "Rd, Ra, Rb, Rc, Pp?" if since >= 90 else "Rd, Ra, Rb, Rc",
                    (const(shape), op, const("POPC")), since, until,
                    fixed=((bits(75, 2), code), (bits(73, 2), 2), (bits(77), 0),
                           (bits(79, 2), 2)))
            )  # fmt: skip
    return rows


_DROUND = enum("round", 78, 2, "_ RM RP RZ")


def _dmma() -> list[Row]:
    rows: list[Row] = []
    for since, until, shape, code, a, b, c in (
        (80, 89, "884", 0, 2, 2, 4),
        (90, 999, "8x8x4", 0, 2, 2, 4), (90, 90, "16x8x4", 1, 4, 2, 8),
        (90, 90, "16x8x8", 2, 8, 4, 8), (90, 90, "16x8x16", 3, 16, 8, 8),
    ):  # fmt: skip
        operands: dict[str, Operand] = {
            "Rd": rd(width=c), "Ra": R(24, a, neg=72, abs=73, reuse=122),
            "Rb": R(32, b, neg=63, abs=62, reuse=123),
            "Rc": R(64, c, neg=75, abs=74, reuse=124),
            "Pp": _UP if since >= 90 else Fixed("UP"),
        }  # fmt: skip
        rows.append(
            Row("DMMA", 0x23F, operands,
                "Rd, Ra, Rb, Rc, Pp?" if since >= 90 else "Rd, Ra, Rb, Rc",
                (const(shape), _DROUND), since, until,
                fixed=((bits(76, 2), code),) if since == 90 and until == 90 else ())
        )  # fmt: skip
    return rows


def _qmma() -> list[Row]:
    """FP8 on sm_89 and sm_120.  Elements of six and four bits are not decoded."""
    rows: list[Row] = []
    acc = enum("acc", 77, 1, "F16 F32", {"F16": 2, "F32": 4})
    kinds = enum("ta", 78, 1, "E4M3 E5M2"), enum("tb", 79, 1, "E4M3 E5M2")
    for shape, code, a, b in (("16816", 0, 2, 1), ("16832", 1, 4, 2)):
        plain: dict[str, Operand] = {
            "Rd": rd(width="acc"), "Ra": R(24, a, suffix="ROW", reuse=122),
            "Rb": R(32, b, suffix="COL", reuse=123), "Rc": R(64, "acc", reuse=124),
            "Pp": Fixed("UP"),
        }  # fmt: skip
        rows += [
            Row("QMMA", 0x27A, plain, "Rd, Ra, Rb, Rc", (const(shape), acc, *kinds), 89, 89,
                fixed=((bits(75, 2), code), (bits(73, 2), 2), (bits(80), 0))),
            Row("QMMA", 0x27A, {**_abc(a, b, "acc"), "Pp": _UP}, "Rd, Ra, Rb, Rc, Pp?",
                (const(shape), acc, *kinds), 120, 999,
                fixed=((bits(75, 2), code), (bits(80), 0)), free=(bits(73),), ones=(bits(74),)),
        ]  # fmt: skip
    sparse: dict[str, Operand] = {"Re": R(40, reuse=50), "selector": I(bits(48, 2))}
    for shape, code, a, b in (("16832", 1, 2, 2), ("16864", 2, 4, 4)):
        plain = {
            "Rd": rd(width="acc"), "Ra": R(24, a, neg=72, suffix="ROW", reuse=122),
            "Rb": R(32, b, neg=63, suffix="COL", reuse=123), "Rc": R(64, "acc", reuse=124),
            "Pp": _UP, **sparse,
        }  # fmt: skip
        text = "Rd, Ra, Rb, Rc, Pp?, Re, selector"
        mods = (const(f"SP.{shape}"), acc, *kinds)
        rows += [
            Row("QMMA", 0x27A, plain, text, mods, 89, 89,
                fixed=((bits(75, 2), code), (bits(73, 2), 2), (bits(80), 1))),
            Row("QMMA", 0x27A, {**_abc(a, b, "acc"), "Pp": _UP, **sparse}, text, mods, 120, 999,
                fixed=((bits(75, 2), code), (bits(80), 1)), free=(bits(73),), ones=(bits(74),)),
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
_WORD, _FP8 = (0, 1), (4, 5)  # what sm_100 and later still pack alone, and merge


def _f2fp() -> list[Row]:
    rows: list[Row] = []
    sat, relu = flag("SATFINITE", 77), flag("RELU", 75)
    ra, rb = R(24, reuse=122, neg=None), R(32, reuse=123)
    rc = R(64, reuse=124, select=_H1_C)
    for since, until in ((80, 87), (89, 90), (100, 999)):
        old = since == 80

        def types(src: str, late: tuple[int, ...], since: int = since) -> Mod:
            if since == 80:
                return _OLD
            return Mod("types", join((76, 1), (86, 2)),
                       {k: f"{v}.{src}" for k, v in _DST.items() if since < 100 or k in late})

        none = (bits(73, 2), 0), (bits(89, 2), 0)
        rows += alu("F2FP", 0x03E, "Rd, Ra, Rb",
                    {"Ra": Src(), "Rb": Src(imm="f32")}, forms=(1, 4, 5, 6), layout="ab",
                    mods=(sat, relu, types("F32", _WORD), const("PACK_AB"), _ROUND),
                    extra={"Rc": Fixed("R", 255)}, since=since, until=until,
                    fixed=(*none, (bits(78), 0)), ones=(bits(64, 8),))  # fmt: skip
        rows += [
            Row("F2FP", 0x23E, {"Rd": rd(), "Rb": rb, "Rc": rc}, "Rd, Rb, Rc",
                (sat, relu, types("F32", _WORD), const("MERGE_C"), _ROUND), since, until,
                fixed=(*none, (bits(78), 1)), ones=(bits(24, 8),)),
        ]  # fmt: skip
        if old:
            continue
        rows += [
            Row("F2FP", 0x23E, {"Rd": rd(), "Rb": R(32, reuse=123, select=_H1_B)}, "Rd, Rb",
                (relu,
                 Mod("types", join((76, 1), (86, 2), (73, 1)),
                     {d | s << 3: f"{_DST[d]}.{('E5M2', 'E4M3')[s]}" for d in (0, 1)
                      for s in (0, 1)}), const("UNPACK_B")),
                since, until, fixed=((bits(74), 1), (bits(78), 0), (bits(89, 2), 1)),
                ones=(bits(24, 8), bits(64, 8))),
            Row("F2FP", 0x23E, {"Rd": rd(), "Rb": R(32, reuse=123)}, "Rd, Rb",
                (sat, relu, const("TF32.F32.PACK_B")), since, until,
                fixed=((bits(73, 2), 0), (join((76, 1), (86, 2)), 3), (bits(78), 1),
                       (bits(89, 2), 1)), ones=(bits(24, 8), bits(64, 8))),
            Row("F2FP", 0x1C3E, {"Rd": rd(), "Rb": R(32, 1, "UR", select=_H1_B)}, "Rd, Rb",
                (relu,
                 Mod("types", join((76, 1), (86, 2), (73, 1)),
                     {d | s << 3: f"{_DST[d]}.{('E5M2', 'E4M3')[s]}" for d in (0, 1)
                      for s in (0, 1)}), const("UNPACK_B")),
                since, until, fixed=((bits(74), 1), (bits(78), 0), (bits(89, 2), 1)),
                ones=(bits(24, 8), bits(64, 8))),
            Row("F2FP", 0x23E, {"Rd": rd(), "Rb": rb, "Rc": rc}, "Rd, Rb, Rc",
                (sat, relu, types("F16", _FP8), const("UNPACK_B_MERGE_C")), since, until,
                fixed=((bits(73, 2), 1), (bits(78), 0), (bits(89, 2), 2)), ones=(bits(24, 8),)),
            Row("F2FP", 0x23E, {"Rd": rd(), "Ra": ra, "Rb": rb, "Rc": rc}, "Rd, Ra, Rb, Rc",
                (sat, relu, types("F32", _FP8), const("PACK_AB_MERGE_C"), _ROUND), since, until,
                fixed=((bits(73, 2), 0), (bits(78), 1), (bits(89, 2), 2))),
        ]  # fmt: skip
    return rows


# Its fields stand elsewhere than F2FP's; the form that compilers write.
UNIFORM = [
    Row("UF2FP", 0x12BA,
        {"Rd": rd(file="UR"), "Ra": R(24, 1, "UR"), "Rb": R(32, 1, "UR"),
         "Rc": R(64, 1, "UR", select=_H1_C)}, "Rd, Ra, Rb, Rc",
        (flag("SATFINITE", 82), flag("RELU", 74),
         Mod("types", bits(75, 3), {4: "E5M2.F32", 5: "E4M3.F32"}), const("PACK_AB_MERGE_C")),
        since=100, fixed=((bits(78), 1), (bits(84, 2), 2), (bits(89, 2), 2)), guard="UP",
        reserved=(bits(79, 3),)),
]  # fmt: skip

ROWS: list[Row] = [*UNIFORM, *_hmma(), *_imma(), *_bmma(), *_dmma(), *_qmma(), *MOVES, *_f2fp()]
__all__ = ["FTZ", "ROWS"]
