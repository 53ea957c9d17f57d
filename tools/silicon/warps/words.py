"""The words to measure, as texts of sm_90; operands are the template's registers."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.errors import DecodeError

# Written back late: they set barrier 0 (results) or 1 (sources), which the template waits for.
_LATE = (
    "SHFL MATCH REDUX R2UR S2R S2UR LDG LD LDS LDL LDC LDSM ATOM ATOMG ATOMS MOVM DMMA VOTEU "
    "ELECT SYNCS"
).split()  # fmt: skip
_LATE_SOURCES = ("LDGSTS", "STG", "ST", "STS", "STL", "STSM", "REDG", "RED")
_ORDERS = (
    "CONSTANT", "STRONG.SM", "STRONG.GPU", "STRONG.SYS", "MMIO.SYS", "STRONG.GPU.PRIVATE",
    "MMIO.GPU",
)  # fmt: skip
_EVICT = ("EF", "EL", "LU", "EU", "NA")
_SIZES = ("", "U8", "S8", "U16", "S16", "64", "128")
_GUARDS = ("", "@P0 ", "@!P1 ")


@dataclass(frozen=True, slots=True)
class Word:
    """``space``: the template; ``kind``: the class of its inputs; see :mod:`.inputs`."""

    word: int
    space: str
    kind: str
    text: str


def _dots(*parts: str) -> str:
    return ".".join(p for p in parts if p)


def _lanes() -> Iterator[str]:
    for mode, lane, clamp in itertools.product(
        ("IDX", "UP", "DOWN", "BFLY"),
        ("R8", "0x0", "0x1", "0x2", "0x7", "0x10", "0x1f"),
        ("R12", "0x1f", "0x0", "0x181f", "0x1c00", "0x7", "0x1e03", "0x1c07"),
    ):
        yield f"SHFL.{mode} P3, R16, R4, {lane}, {clamp}"
        if lane in ("R8", "0x1"):
            yield f"SHFL.{mode} PT, R16, R4, {lane}, {clamp}"
    for mode, p in itertools.product(("ALL", "ANY", "EQ"), ("P0", "!P1", "PT", "!PT", "P6")):
        yield f"VOTE.{mode} R16, P3, {p}"
        yield f"VOTE.{mode} R16, PT, {p}"
        yield f"VOTE.{mode} P3, {p}"
        yield f"VOTEU.{mode} UR10, UP3, {p}"
        yield f"VOTEU.{mode} UR10, UPT, {p}"
        yield f"VOTEU.{mode} UP3, {p}"
    for source in ("R4", "R8", "R12"):
        yield f"MATCH.ANY R16, {source}"
        yield f"MATCH.ANY.U64 R16, {source}"
        for p, size in itertools.product(("P3", "PT"), ("", ".U64")):
            yield f"MATCH.ALL{size} {p}, R16, {source}"
        for op, s in itertools.product(("", ".OR", ".XOR", ".SUM", ".MIN", ".MAX"), ("", ".S32")):
            yield f"REDUX{op}{s} UR10, {source}"
        yield f"R2UR UR10, {source}"
        yield f"R2UR P3, UR10, {source}"
        yield f"R2UR.OR P3, UR10, {source}"
    for p in ("P0", "!P1", "PT"):
        yield f"ELECT P3, UR10, {p}"
        yield f"ELECT PT, UR10, {p}"
        yield f"ELECT P3, URZ, {p}"
    for sr in ("SR_LANEID", "SR_TID.X", "SR_CTAID.X", "SR_EQMASK", "SR_LTMASK", "SR_LEMASK",
               "SR_GTMASK", "SR_GEMASK", "SR_TID.Y", "SR_NTID.X", "SRZ"):  # fmt: skip
        yield f"S2R R16, {sr}"
        yield f"S2UR UR10, {sr}"
    yield "CS2R R16, SRZ"
    yield "CS2R.32 R16, SRZ"


def _global_modes(full: bool) -> list[str]:
    d = "desc[UR12][R20.64{}]"
    modes = [d.format(o) for o in ("", "+0x10", "+-0x20", "+0x7c0", "+-0x400")]
    uniform = (
        "[R20.64+UR14]",
        "[R20.64+UR14+0x30]",
        "[R20.U32+UR14]",
        "[R20.U32+UR14+0x40]",
        "[R20.U32+UR14+-0x40]",
        "[R20.64+0x20]",
        "[R20.64]",
        "[UR14]",
        "[UR14+0x40]",
    )
    return [*modes, *uniform] if full else modes[:2]


_SHARED = (
    "[R20]", "[R20+0x40]", "[R20+-0x20]", "[R20+UR14]", "[R20+UR14+0x80]", "[R20.X4]",
    "[R20.X8+0x10]", "[R20.X16+UR14+0x20]", "[R20.X4+UR14]", "[UR14]", "[UR14+0x40]",
)  # fmt: skip
_LOCAL = ("[R20]", "[R20+0x10]", "[R20+-0x20]", "[R20+UR14]", "[R20+UR14+0x10]")


def _accesses(chance: random.Random) -> Iterator[tuple[str, str, str]]:
    """(template, class, text)"""
    policies = [("", ""), *((e, "") for e in _EVICT), *(("", o) for o in _ORDERS),
                ("EF", "STRONG.GPU"), ("EL", "CONSTANT"), ("NA", "STRONG.SYS")]  # fmt: skip
    prefetch = ("", "LTC64B", "LTC128B", "LTC256B")
    for size in _SIZES:
        for mode in _global_modes(True):
            yield "", "load", f"{_dots('LDG.E', size)} R16, {mode}"
            yield "", "load", f"{_dots('LD.E', size)} R16, {mode}"
            yield "", "store", f"{_dots('STG.E', size)} {mode}, R8"
            yield "", "store", f"{_dots('ST.E', size)} {mode}, R8"
        for evict, order in policies:
            mode = chance.choice(_global_modes(False))
            pre = chance.choice(prefetch)
            yield "", "load", f"{_dots('LDG.E', evict, pre, size, order)} R16, {mode}"
            yield "", "load", f"{_dots('LD.E', evict, pre, size, order)} R16, {mode}"
            yield "", "store", f"{_dots('STG.E', evict, size, order)} {mode}, R8"
            yield "", "store", f"{_dots('ST.E', evict, size, order)} {mode}, R8"
        for mode in _SHARED:
            yield "shared", "load", f"{_dots('LDS', size)} R16, {mode}"
            kind = "same" if mode[1] == "U" else "store"
            yield "shared", kind, f"{_dots('STS', size)} {mode}, R8"
        for mode in _LOCAL:
            yield "local", "load", f"{_dots('LDL', size)} R16, {mode}"
            yield "local", "store", f"{_dots('STL', size)} {mode}, R8"
            yield "local", "load", f"{_dots('LDL', chance.choice(_EVICT), size)} R16, {mode}"
            yield "local", "store", f"{_dots('STL', chance.choice(_EVICT), size)} {mode}, R8"
        for p in ("P0", "!P1", "!PT"):
            yield "", "load", f"{_dots('LDG.E', size)} R16, desc[UR12][R20.64+0x10], {p}"
            yield "", "load", f"{_dots('LD.E', size)} R16, desc[UR12][R20.64], {p}"
        yield "", "load", f"{_dots('LDG.E', size)} P3, R16, desc[UR12][R20.64+0x10]"
        if size == "128":
            continue
        for at in ("c[0x0][0x230]", "c[0x0][R21+0x230]", "c[0x0][R21+0x240]", "c[0x0][R20]"):
            yield "", "constant", f"{_dots('LDC', size)} R16, {at}"
        yield "", "constant", f"{_dots('ULDC', size)} UR10, c[0x0][0x240]"
        yield "", "constant", f"{_dots('ULDC', size)} UR10, c[0x0][UR14+0x230]"
    for count, shape in itertools.product(("", "2", "4"), ("M88", "MT88")):
        for mode in ("[R20]", "[R20+0x40]", "[R20+UR14]", "[R20+UR14+0x80]"):
            yield "shared", "rows", f"{_dots('LDSM.16', shape, count)} R16, {mode}"
            yield "shared", "whole", f"{_dots('STSM.16', shape, count)} {mode}, R8"
    yield "", "whole", "MOVM.16.MT88 R16, R4"


_FLOATS = (
    "F16x2.RN", "F16x4.RN", "F16x8.RN", "BF16x2.RN", "BF16x4.RN", "BF16x8.RN", "F32.FTZ.RN",
    "F32.RN", "F32x2.FTZ.RN", "F32x4.FTZ.RN", "F32x2.RN", "F32x4.RN", "F64.RN",
)  # fmt: skip
_OPS = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "SAFEADD")


def _atomics() -> Iterator[tuple[str, str, str]]:
    at = ("desc[UR12][R20.64]", "desc[UR12][R20.64+0x10]")
    for name, op, kind, where in itertools.product(
        ("ATOMG", "ATOM", "REDG"), _OPS, ("", "S32", "64", "S64", "128"), at
    ):
        signed_only = ("S32", "64", "S64") if op in ("INC", "DEC") else ()
        if kind in signed_only or (kind == "S64" and op in ("ADD", "AND", "OR", "XOR", "EXCH")):
            continue  # no such instruction: the GPU refuses it
        if (kind == "128") > (op == "EXCH") or (kind == "128" and where != at[0]):
            continue
        if op == "SAFEADD":
            continue
        target = "" if name == "REDG" else "PT, R16, "
        text = f"{_dots(name + '.E', op, kind, 'STRONG.GPU')} {target}{where}, R8"
        yield "", "update", text
        if name != "REDG" and where == at[0]:
            yield "", "update", text.replace("PT, R16", "P3, R16")
            yield "", "update", text.replace("PT, R16", "PT, RZ")
        if name == "REDG" and op in ("ADD", "MIN", "MAX", "AND", "OR", "XOR"):
            yield "", "collide", text
    for name, op, kind, where in itertools.product(
        ("ATOMG", "ATOM", "REDG"), ("ADD", "MIN", "MAX"), _FLOATS, at
    ):
        target = "" if name == "REDG" else "PT, R16, "
        if op != "ADD" and (kind[0] == "F" and kind[1:3] != "16"):
            continue  # no such instruction
        short = re.match(r"[A-Z]+\d\d", kind)
        text = f"{_dots(name + '.E', op, kind, 'STRONG.GPU')} {target}{where}, R8"
        yield "", f"update {short[0] if short else ''}", text
    for name, kind, where in itertools.product(
        ("ATOMG", "ATOM"), ("", "64", "128"), ("[R20]", "[R20+0x10]")
    ):
        text = f"{_dots(name + '.E.CAS', kind, 'STRONG.GPU')} PT, R16, {where}, R8, R12"
        yield "", "swap", text
        yield "", "swap", text.replace("PT, R16", "P3, R16")
    for kind in ("", "64"):
        yield "", "swap", f"{_dots('ATOM.E.CAST.SPIN', kind, 'STRONG.GPU')} P3, R16, [R20], R8, R12"
    for order in ("", "STRONG.SM", "STRONG.SYS", "STRONG.GPU.PRIVATE"):
        yield "", "update", f"{_dots('ATOMG.E.ADD', order)} PT, R16, {at[0]}, R8"
        yield "", "update", f"{_dots('REDG.E.MAX.S32', order)} {at[0]}, R8"
    for op, kind, mode in itertools.product(_OPS[:-1], ("", "S32", "64"), _SHARED):
        if (kind == "S32" and op in ("INC", "DEC")) or (kind == "64" and op not in ("ADD", "EXCH")):
            continue  # no such instruction
        if mode not in ("[R20]", "[UR14]") and (kind == "64" or op not in ("ADD", "MAX")):
            continue
        text = f"{_dots('ATOMS', op, kind)} R16, {mode}, R8"
        if mode.startswith("[UR"):  # all lanes at one place
            yield "shared", "collide", text.replace("R16", "RZ")
            continue
        yield "shared", "update", text
        if mode == "[R20]":
            yield "shared", "update", text.replace("R16", "RZ")
            if op in ("ADD", "MIN", "MAX", "AND", "OR", "XOR"):
                yield "shared", "collide", text.replace("R16", "RZ")
    for op, kind, mode in itertools.product(
        ("CAS", "CAST", "CAST.SPIN"), ("", "64"), ("[R20]", "[R20+0x40]", "[R20.X4]")
    ):
        yield "shared", "swap", f"{_dots('ATOMS', op, kind)} R16, {mode}, R8, R12"
    for mode in ("[R20+UR14]", "[R20+UR14+0x40]", "[UR14]"):
        if mode != "[UR14]":
            yield "shared", "update", f"ATOMS.POPC.INC.32 R16, {mode}"
            yield "shared", "update", f"ATOMS.POPC.INC.32 RZ, {mode}"
        yield "shared", "collide", f"ATOMS.POPC.INC.32 RZ, {mode}"
        yield "shared", "collide", f"ATOMS.POPC.INC.32 R16, {mode}"


# Shapes, accumulators and elements that there are.
_HMMA = (
    ("1688", "F16", ""), ("1688", "F32", ""), ("16816", "F16", ""), ("16816", "F32", ""),
    ("1688", "F32", "BF16"), ("16816", "F32", "BF16"), ("1684", "F32", "TF32"),
    ("1688", "F32", "TF32"),
)  # fmt: skip
_SPARSE = (
    ("16816", "F16", ""), ("16816", "F32", ""), ("16832", "F16", ""), ("16832", "F32", ""),
    ("16816", "F32", "BF16"), ("16832", "F32", "BF16"), ("1688", "F32", "TF32"),
    ("16816", "F32", "TF32"),
)  # fmt: skip
_ELEMENT = {"": "f16", "BF16": "bf16", "TF32": "tf32"}


def _matrices() -> Iterator[tuple[str, str]]:
    """(class, text); the class names the elements of A and B, then of C."""
    for shape, acc, kind in _HMMA:
        name = f"matrix {_ELEMENT[kind]} {acc.lower()}"
        for tail in ("R4, R8, R12", "-R4, R8, R12", "R4, -R8, R12", "R4, R8, RZ",
                     "R4, R8, R12, !UPT"):  # fmt: skip
            yield name, f"{_dots('HMMA', shape, acc, kind)} R16, {tail}"
    for (shape, acc, kind), which in itertools.product(_SPARSE, range(4)):
        if which > 1 and (shape == "16832" or (shape, kind) == ("16816", "TF32")):
            continue
        text = f"{_dots('HMMA.SP', shape, acc, kind)} R16, R4, R8, R12, R20, {which:#x}"
        yield f"matrix {_ELEMENT[kind]} {acc.lower()}", text
    for shape, a, b, which in itertools.product(
        ("16832", "16864"), ("U8", "S8"), ("U8", "S8"), range(2)
    ):
        if which and shape == "16864":
            continue
        text = f"IMMA.SP.{shape}.{a}.{b} R16, R4.ROW, R8.COL, R12, R20, {which:#x}"
        yield "matrix int int", text
    for shape, a, b, sat in itertools.product(("8816", "16816", "16832"), ("U8", "S8"),
                                              ("U8", "S8"), ("", "SAT")):  # fmt: skip
        for c, up in (("R12", ""), ("R12", ", !UPT")):
            text = f"{_dots('IMMA', shape, a, b, sat)} R16, R4.ROW, R8.COL, {c}{up}"
            yield "matrix int int", text
    for shape, mode in itertools.product(("8x8x4",), ("", "RM", "RP", "RZ")):
        for text in ("R4, R8, R12", "-R4, R8, R12", "R4, -R8, -R12", "|R4|, R8, R12"):
            if mode and text[0] == "-":
                continue
            yield "matrix f64 f64", f"{_dots('DMMA', shape, mode)} R16, {text}"
    for shape in ("88128", "168128", "168256"):
        yield "matrix int int", f"BMMA.{shape}.AND.POPC R16, R4.ROW, R8.COL, R12"


_MISALIGNED = (
    ("", "LDG.E.64 R16, desc[UR12][R20.64]"), ("", "LDG.E.U16 R16, desc[UR12][R20.64]"),
    ("", "LDG.E R16, desc[UR12][R20.64]"), ("", "STG.E.128 desc[UR12][R20.64], R8"),
    ("", "ATOMG.E.ADD.64.STRONG.GPU PT, R16, desc[UR12][R20.64], R8"),
    ("", "REDG.E.ADD.STRONG.GPU desc[UR12][R20.64], R8"), ("", "LD.E.128 R16, [R20.64]"),
    ("shared", "LDS.64 R16, [R20]"), ("shared", "STS.U16 [R20], R8"),
    ("shared", "LDS.128 R16, [R20]"), ("shared", "ATOMS.ADD R16, [R20], R8"),
    ("shared", "LDSM.16.M88 R16, [R20]"), ("local", "LDL.128 R16, [R20]"),
    ("local", "STL.64 [R20], R8"),
)  # fmt: skip


_MISALIGNED_COPIES = (
    "LDGSTS.E [R26], desc[UR12][R20.64]", "LDGSTS.E.64 [R26], desc[UR12][R20.64]",
    "LDGSTS.E.BYPASS.128 [R26], desc[UR12][R20.64]",
)  # fmt: skip


def _barriers() -> Iterator[tuple[str, str]]:
    """(class, text)"""
    for action in ("A1T0", "OPTOUT.A1T0"):
        yield "barrier", f"SYNCS.ARRIVE.TRANS64.{action} R16, [R20+URZ], RZ"
        yield "barrier", f"SYNCS.ARRIVE.TRANS64.{action} RZ, [R20+URZ+0x10], RZ"
    yield "barrier", "SYNCS.ARRIVE.TRANS64.RED.A1T0 RZ, [R20+URZ], RZ"
    for rd in ("R16", "RZ"):
        yield "barrier count", f"SYNCS.ARRIVE.TRANS64.ART0 {rd}, [R20+URZ], R8"
        yield "barrier", f"SYNCS.ARRIVE.TRANS64 {rd}, [R20+URZ], R8"
    yield "barrier", "SYNCS.ARRIVE.TRANS64.RED.A0TR RZ, [R20+URZ], R8"
    yield "barrier", "SYNCS.ARRIVE.TRANS64.RED.A0TX RZ, [R20+URZ], R8"
    yield "barrier count", "SYNCS.ARRIVE.TRANS64.RED.ART0 RZ, [R20+URZ], R8"
    for wait in ("", ".TRYWAIT"):
        yield "barrier phase", f"SYNCS.PHASECHK.TRANS64{wait} P3, [R20+URZ+0x8], R8"
    yield "barrier", "SYNCS.EXCH.64 UR10, [UR14], UR8"
    yield "barrier", "SYNCS.EXCH.64 URZ, [UR14+0x8], UR8"
    yield "barrier", "SYNCS.LD.64 R16, [R20+URZ]"


def _windows() -> Iterator[tuple[str, str]]:
    """Generic addresses of shared memory."""
    for size in _SIZES:
        yield "load", f"{_dots('LD.E', size)} R16, [R20.64]"
        yield "load", f"{_dots('LD.E', size)} R16, desc[UR12][R20.64+0x10]"
        yield "store", f"{_dots('ST.E', size)} desc[UR12][R20.64], R8"
    for op, kind in itertools.product(_OPS[:-1], ("", "S32", "64")):
        if kind == "64" and op in ("ADD", "MIN", "EXCH", "AND"):
            yield "update", f"ATOM.E.{op}.64.STRONG.GPU P3, R16, desc[UR12][R20.64], R8"
        if kind == "" or (kind == "S32" and op in ("MIN", "MAX")) or op == "EXCH":
            yield "update", f"{_dots('ATOM.E', op, kind, 'STRONG.GPU')} P3, R16, [R20], R8"
            text = f"{_dots('ATOM.E', op, kind, 'STRONG.GPU')} P3, R16, desc[UR12][R20.64], R8"
            yield "update", text
    yield "update F64", "ATOM.E.ADD.F64.RN.STRONG.GPU P3, R16, desc[UR12][R20.64], R8"
    yield "update F16", "ATOM.E.ADD.F16x2.RN.STRONG.GPU P3, R16, desc[UR12][R20.64], R8"
    yield "update F32", "ATOM.E.ADD.F32.FTZ.RN.STRONG.GPU P3, R16, desc[UR12][R20.64], R8"
    for op, kind in itertools.product(("CAS", "CAST.SPIN", "CAST"), ("", "64")):
        yield "swap", f"{_dots('ATOM.E', op, kind, 'STRONG.GPU')} P3, R16, [R20], R8, R12"


def _copies() -> Iterator[str]:
    """From global to shared memory."""
    for size, bypass, p in itertools.product(("", "64", "128"), ("", "BYPASS"), ("P0", "!PT", "")):
        if bypass and size != "128":
            continue
        for zfill in ("", "ZFILL"):
            tail = f", {p}" if p else ""
            text = f"{_dots('LDGSTS.E', bypass, size, zfill)} [R26], desc[UR12][R20.64]{tail}"
            yield text
            yield text.replace("[R26]", "[R26+0x10]").replace("R20.64", "R20.64+0x20")
    yield "LDGSTS.E.BYPASS.LTC128B.128 [R26], desc[UR12][R20.64], P0"
    yield "LDGSTS.E.LTC128B.64 [R26], desc[UR12][R20.64], P0"


def _fills() -> Iterator[str]:
    """Copies with .ZFILL whose addresses are not aligned: so many of the last bytes are zeros."""
    for size, bypass, p in itertools.product(("", "64", "128"), ("", "BYPASS"), ("P0", "!P1", "")):
        if bypass and size != "128":
            continue
        tail = f", {p}" if p else ""
        text = f"{_dots('LDGSTS.E', bypass, size, 'ZFILL')} [R26], desc[UR12][R20.64]{tail}"
        yield text
        for more in ("+0x3", "+0x8", "+0x20", "+-0xd"):
            yield text.replace("[R26]", "[R26+0x10]").replace("R20.64", "R20.64" + more)
    yield "LDGSTS.E.64.ZFILL [R26], [R20.64+UR14+0x5]"
    yield "LDGSTS.E.128.ZFILL [R26], [R20.64+UR14]"
    yield "LDGSTS.E.128.ZFILL [R26], [R20.U32+UR14+0x7]"


def _texts(seed: int) -> Iterator[tuple[str, str, str]]:
    for text in _lanes():
        yield "", "lanes", text
    yield from _accesses(random.Random(seed))
    yield from _atomics()
    for kind, text in _matrices():
        yield "", kind, text
    for kind, text in _barriers():
        yield "barrier", kind, text
    for kind, text in _windows():
        yield "window", kind, text
    for text in _copies():
        yield "copy", "copy", text
    for text in _fills():
        yield "copy", "fill", text
    for text in _MISALIGNED_COPIES:
        yield "copy", "misaligned", text
        yield "copy", "misaligned to", text
    yield "copy", "misaligned to", "LDGSTS.E.128.ZFILL [R26], desc[UR12][R20.64]"
    for space, text in _MISALIGNED:
        yield space, "misaligned", text


def _control(name: str) -> str:
    if name in _LATE:
        return "[B------:R-:W0:Y:S15]"
    if name in _LATE_SOURCES:
        return "[B------:R1:W-:Y:S15]"
    return "[B------:R-:W-:Y:S15]"


def _guarded(kind: str, text: str) -> bool:
    """Whether it is measured under predicates too."""
    if kind == "lanes":
        return "PT" not in text and ("SHFL" not in text or text.endswith(("R8, R12", "0x1, 0x1f")))
    return kind == "update" and text.endswith(("[R20], R8", "P3, R16, desc[UR12][R20.64], R8"))


def words(arch: int = 90, seed: int = 1) -> tuple[list[Word], list[str]]:
    """Those that there are, and the texts that no form has."""
    found: dict[tuple[int, str, str], Word] = {}
    missing: list[str] = []
    for space, kind, text in _texts(seed):
        name = text.split()[0].partition(".")[0]
        guards = _GUARDS if _guarded(kind, text) else _GUARDS[:1]
        for guard in guards:
            try:
                code = assemble_listing([f"{_control(name)} {guard}{text} ;"], arch)[""]
            except (DecodeError, ValueError):
                missing.append(text)
                break
            word = int.from_bytes(code, "little")
            found.setdefault((word, kind, space), Word(word, space, kind, guard + text))
    return list(found.values()), missing
