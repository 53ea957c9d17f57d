"""Generate ``lowering/idioms/known.json``: the names of nvcc's software quotients and roots.

``python -m tools.generate.idioms [PTXAS ...]`` assembles small kernels with each ptxas given (else
with the one on the path), for all architectures and levels that it takes, and writes the digest of
each site's expression.  Names that are in the file already stay.  Before a name is added its
expression is computed with the semantics of SASS (`Vectors`) and compared with the quotient or root
that NumPy gives.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassxlate.cfg import Cfg
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass.traits import INLINE_QUOTIENTS
from sassxlate.domain.interface import Fp, Round
from sassxlate.domain.numpy_lanes import Vec, Vectors, vec
from sassxlate.lowering.idioms.expressions import Expressions
from sassxlate.lowering.idioms.inline import Quotient, inline_quotients
from sassxlate.lowering.idioms.known import BY_WORD
from sassxlate.lowering.idioms.sites import Finder, Site, Unit
from sassxlate.lowering.pipeline import build_cfg, link
from sassxlate.lowering.select.stages import Source
from sassxlate.lowering.target import DEFAULT

TARGET = Path(__file__).resolve().parents[2] / "lowering" / "idioms" / "known.json"
ARCHES = (75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)
LEVELS = (("-O3",), ("-O1",), ("-O0",))
# nvcc tests before a 64-bit division whether 32 bits suffice.
_WIDE = """{{
.reg .b64 %both;
.reg .b32 %c, %d, %e;
.reg .pred %few;
or.b64 %both, %a, %b;
and.b64 %both, %both, -4294967296;
setp.{test}.b64 %few, %both, 0;
@%few bra {first};
{then}
DONE:
}}"""
_LONG = "LONG:\n{do}.{t} %x, %a, %b;\nbra.uni DONE;"
_SHORT = ("SHORT:\ncvt.u32.u64 %c, %a;\ncvt.u32.u64 %d, %b;\n{do}.u32 %e, %c, %d;\n"
          "cvt.u64.u32 %x, %e;\nbra.uni DONE;")  # fmt: skip


def _wide(do: str, t: str) -> str:
    then = "\n".join((_LONG, _SHORT)).format(do=do, t=t)
    return _WIDE.format(test="eq", first="SHORT", then=then)


# By name: the type, the instruction, its operands.
OPERATIONS: Mapping[str, tuple[str, str]] = {
    "FDIV": ("f32", "div.rn.f32 %x, %a, %b"),
    "FRCP": ("f32", "rcp.rn.f32 %x, %a"),
    "FSQRT": ("f32", "sqrt.rn.f32 %x, %a"),
    "DDIV": ("f64", "div.rn.f64 %x, %a, %b"),
    "DRCP": ("f64", "rcp.rn.f64 %x, %a"),
    "DSQRT": ("f64", "sqrt.rn.f64 %x, %a"),
    "UDIV64": ("u64", _wide("div", "u64")),
    "UREM64": ("u64", _wide("rem", "u64")),
    "SDIV64": ("s64", _wide("div", "s64")),
    "SREM64": ("s64", _wide("rem", "s64")),
    "UDIV64 BY 32": ("u64", _wide("div", "u64")),
    "UREM64 BY 32": ("u64", _wide("rem", "u64")),
    "UDIV32": ("u32", "div.u32 %x, %a, %b;"),
    "UREM32": ("u32", "rem.u32 %x, %a, %b;"),
    "SDIV32": ("s32", "div.s32 %x, %a, %b;"),
    "SREM32": ("s32", "rem.s32 %x, %a, %b;"),
}
# What surrounds the operation decides how ptxas schedules it and places registers.
_PLAIN = "{load}\n{do}\n{store}"
_LATER = "{load}\n{add}.{t} %a, %a, %b;\n{do}\n{mul}.{t} %x, %x, %b;\n{store}"
_TWICE = ("{load}\n{do}\nmov.{t} %y, %x;\n{add}.{t} %a, %a, %y;\n{do}\n"
          "{add}.{t} %x, %x, %y;\n{store}")  # fmt: skip
_LOOP = ("{load}\nmov.u32 %n, 0;\nL1:\n{do}\n{add}.{t} %a, %x, %b;\nadd.u32 %n, %n, 1;\n"
         "setp.lt.u32 %p, %n, %i;\n@%p bra L1;\n{store}")  # fmt: skip
_GUARD = "{load}\nsetp.lt.{t} %p, %a, %b;\n@!%p bra L2;\n{do}\nL2:\n{store}"
_SHARED = ("{load}\n{do}\nmov.{t} %y, %x;\n{add}.{t} %a, %a, %a;\n{do}\n"
           "{mul}.{t} %x, %x, %y;\n{store}")  # fmt: skip
_SUMS = ("{load}\n{mul}.{t} %x, %a, %b;\n{add}.{t} %a, %x, %a;\n{add}.{t} %b, %b, %b;\n"
         "{do}\n{store}")  # fmt: skip
SHAPES = (_PLAIN, _LATER, _TWICE, _LOOP, _GUARD, _SHARED, _SUMS)
# Of 32 bits too: both from one division, of sums, by a constant of the kernel, and in turn.
_BOTH = ("{load}\n{add}.{t} %a, %a, 3;\nsub.{t} %b, %b, %a;\ndiv.{t} %y, %a, %b;\n"
         "rem.{t} %x, %a, %b;\nxor.b32 %x, %x, %y;\n{store}")  # fmt: skip
_GIVEN = "{load}\nld.param.{t} %b, [px];\n{do}\n{store}"
_CHAIN = ("{load}\ndiv.{t} %y, %a, %b;\nsub.{t} %a, %a, %y;\nadd.{t} %b, %y, 5;\n{do}\n"
          "mul.lo.{t} %x, %x, %y;\n{store}")  # fmt: skip
SHAPES32 = (*SHAPES, _BOTH, _GIVEN, _CHAIN)
_TEXT = """.version 6.4
.target sm_{arch}
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 px)
{{
.reg .{t} %a, %b, %x, %y;
.reg .u64 %pa, %pb, %px, %o;
.reg .u32 %i, %n;
.reg .pred %p;
mov.u32 %i, %tid.x;
mul.wide.u32 %o, %i, {size};
ld.param.u64 %pa, [pa];
ld.param.u64 %pb, [pb];
ld.param.u64 %px, [px];
cvta.to.global.u64 %pa, %pa;
cvta.to.global.u64 %pb, %pb;
cvta.to.global.u64 %px, %px;
add.u64 %pa, %pa, %o;
add.u64 %pb, %pb, %o;
add.u64 %px, %px, %o;
mov.{t} %x, {zero};
{body}
ret;
}}
"""


def source(name: str, shape: str, arch: int) -> str:
    """A kernel that does the operation once or more."""
    t, do = OPERATIONS[name]
    size = 4 if t[1:] == "32" else 8
    load = f"ld.global.{t} %a, [%pa];\nld.global.{t} %b, [%pb];"
    if name.endswith(BY_WORD):
        load = load.replace("u64 %b, [%pb];", "u32 %n, [%pb];\ncvt.u64.u32 %b, %n;")
    real = t[0] == "f"
    add, mul = ("add.rn", "mul.rn") if real else ("add", "mul.lo")
    do += ";" if real else ""
    store = f"st.global.{t} [%px], %x;"
    body = shape.format(load=load, do=do, store=store, t=t, add=add, mul=mul)
    version = "7.8" if arch >= 90 else "6.4"
    version = "9.0" if arch in (110,) else "8.7" if arch >= 100 else version
    version = "7.4" if arch == 87 else version
    version = "7.1" if arch == 86 else "7.0" if arch == 80 else version
    version = "7.8" if arch == 89 else version
    zero = {"f32": "0f00000000", "f64": "0d0000000000000000"}.get(t, "0")
    text = _TEXT.format(arch=arch, t=t, size=size, body=body, zero=zero)
    return text.replace(".version 6.4", f".version {version}")


def graphs(
    ptxas: str, name: str, folder: Path, arches: Sequence[int], shapes: Sequence[str]
) -> Iterator[tuple[str, Cfg]]:
    """The graph of each kernel, and where it is from."""
    for arch in arches:
        for shape in shapes:
            for level in LEVELS:
                ptx, out = folder / "k.ptx", folder / "k.cubin"
                ptx.write_text(source(name, shape, arch))
                command = [ptxas, *level, f"-arch=sm_{arch}", "-o", str(out), str(ptx)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    continue
                cubin = parse_cubin(out.read_bytes())
                for kernel in cubin.kernels:
                    place = f"sm_{arch} {' '.join(level)} shape {shapes.index(shape)}"
                    yield place, build_cfg(link(Source(cubin, kernel.name, DEFAULT))).cfg


def sites(ptxas: str, name: str, folder: Path, arches: Sequence[int]) -> Iterator[tuple[str, Site]]:
    """Each site of each kernel, and where it is from."""
    shapes = SHAPES[:-1] if name.endswith(BY_WORD) else SHAPES  # the last divides by more
    for place, cfg in graphs(ptxas, name, folder, arches, shapes):
        calls = sum(b.last.mnemonic == "CALL" for b in cfg.blocks)
        finder = Finder(cfg)
        found = list(finder.sites())
        if OPERATIONS[name][0][0] != "f":
            found = [finder.opaque(site) or site for site in found]
        if len(found) < calls:
            print(f"{name} {place}: {len(found)} sites of {calls} calls")
        yield from ((place, site) for site in found)


# --- what an expression computes -----------------------------------------------------------------


def computed(graph: Expressions, roots: Sequence[int], inputs: Mapping[int, Vec]) -> list[Vec]:
    """The values of expressions in each lane."""
    d, done = Vectors(), dict(inputs)
    work = list(roots)
    while work:
        n = work[-1]
        if n in done:
            work.pop()
            continue
        missing = [a for a in graph.args[n] if a not in done]
        if missing:
            work += missing
            continue
        work.pop()
        done[n] = _one(d, graph, n, [done[a] for a in graph.args[n]])
    return [done[n] for n in roots]


def _one(d: Any, graph: Expressions, n: int, args: list[Vec]) -> Vec:
    op, width, given = graph.ops[n], graph.widths[n], graph.given[n]
    if op == "const":
        out: Vec = d.const(given[0], width)
    elif op == "neg":
        out = d.sub(d.const(0, width), *args)
    elif op in ("and", "or", "not"):
        out = getattr(d, op + "_")(*args)
    elif op in ("zext", "sext"):
        out = getattr(d, op)(args[0], width)
    elif op == "extract":
        out = d.extract(args[0], given[0], width)
    elif op in ("fadd", "fmul", "ffma"):
        out = getattr(d, op)(*args, _fp(given[0]))
    elif op.startswith("fcmp "):
        out = d.fcmp(op[5:], *args)
    elif op.startswith("approx "):
        out = d.approx(op[7:], *args)
    elif op == "itof":
        out = d.itof(args[0], width, bool(given[0]), _fp(given[1]))
    elif op == "ftoi":
        out = d.ftoi(args[0], width, bool(given[0]))
    elif op == "frint":
        out = d.frint(args[0], Round(given[0]))
    else:
        out = getattr(d, op)(*args)
    return out


def _fp(bits: int) -> Fp:
    return Fp(Round(bits >> 2), bool(bits & 2), bool(bits & 1))


def numbers(width: int, count: int, seed: int) -> NDArray[Any]:
    """Bit patterns: all kinds of numbers, many near the ends of the range and near 1."""
    chance: Any = np.random.default_rng(seed)
    kind: Any = np.uint32 if width == 32 else np.uint64
    mantissa, top = (23, 255) if width == 32 else (52, 2047)
    bits: NDArray[Any] = chance.integers(0, (1 << width) - 1, count, dtype=kind, endpoint=True)
    middle = top // 2
    exponents = [0, 1, 2, 24, 53, middle - 1, middle, middle + 1, top - 53, top - 2, top - 1, top]
    biased: NDArray[Any] = chance.choice(np.array(exponents, kind), count)
    low: NDArray[Any] = bits & kind((1 << mantissa) - 1)
    few = np.array([0, 1, (1 << mantissa) - 1, 1 << (mantissa - 1)], kind)
    some: NDArray[Any] = np.where(bits & kind(2), low, chance.choice(few, count))
    made: NDArray[Any] = (
        bits >> kind(width - 1) << kind(width - 1) | biased << kind(mantissa) | some
    )
    return np.where(bits & kind(1) == 0, bits, made).astype(kind)


def words32(count: int, seed: int) -> NDArray[Any]:
    """32-bit integers of all sizes, and their negatives; many next to powers of two."""
    chance: Any = np.random.default_rng(seed)
    low: NDArray[Any] = whole_numbers(count, seed) & np.uint64(0xFFFFFFFF)
    powers = np.uint64(1) << chance.choice(np.arange(32, dtype=np.uint64), count)
    powers += chance.integers(-2, 3, count).astype(np.uint64)
    return np.where(chance.random(count) < 0.4, powers & np.uint64(0xFFFFFFFF), low)


def divided32(name: str, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """What nvcc's code gives for 32-bit integers, those divided by 0 too: all bits."""
    ones, sign = np.uint64(0xFFFFFFFF), np.uint64(1 << 31)
    wide = [(v ^ sign) - sign if name[0] == "S" else v for v in (a, b)]
    out = divided(name[:4] + "64", *wide) & ones
    return np.where(b == 0, ones, out)


def whole_numbers(count: int, seed: int) -> NDArray[Any]:
    """64-bit integers of all sizes, and their negatives; many next to powers of two."""
    chance: Any = np.random.default_rng(seed)
    bits: NDArray[Any] = chance.integers(0, (1 << 64) - 1, count, dtype=np.uint64, endpoint=True)
    bits >>= chance.integers(0, 64, count, dtype=np.uint64)
    powers = np.uint64(1) << chance.choice(
        np.array([0, 1, 31, 32, 33, 52, 62, 63], np.uint64), count
    )
    powers += chance.integers(-2, 3, count).astype(np.uint64)
    bits = np.where(chance.random(count) < 0.4, powers, bits)
    return np.where(chance.random(count) < 0.3, ~bits + np.uint64(1), bits)


def divided(name: str, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """What nvcc's code gives for 64-bit integers, those divided by 0 too: all bits, of the low word
    alone if the dividend's high word is 0."""
    one, top = np.uint64(1), np.uint64(63)
    zero = b == 0
    y = np.where(zero, one, b)
    signs = [np.zeros_like(a)] * 2
    if name[0] == "S":
        signs = [np.uint64(0) - (v >> top) for v in (a, y)]
    x, y = ((v ^ sign) - sign for v, sign in zip((a, y), signs, strict=True))
    rest = name.endswith("REM64")
    sign = signs[0] if rest else signs[0] ^ signs[1]
    out = ((x % y if rest else x // y) ^ sign) - sign
    short = a >> np.uint64(32) == 0
    return np.where(zero, np.where(short, np.uint64(0xFFFFFFFF), ~np.uint64(0)), out)


def right(name: str, site: Site, order: tuple[Unit, ...], count: int) -> bool:
    """Whether a site's expression gives the quotient or root in every lane, bits of NaN apart."""
    t = OPERATIONS[name][0]
    width = 32 if t == "f32" else 64
    real = t[0] == "f"
    sides = [numbers(width, count, seed) if real else whole_numbers(count, seed) for seed in (1, 2)]
    if name.endswith(BY_WORD):
        sides[1] = words32(count, 2)
    inputs: dict[int, Vec] = {}
    for unit, bits in zip(order, sides, strict=False):
        for n, ref in enumerate(unit):
            word = bits >> (32 * n) & 0xFFFFFFFF if len(unit) > 1 else bits
            inputs[site.given[ref]] = vec(word, 32)
        if len(unit) > 1:
            low, high = (site.given[ref] for ref in unit)
            inputs[site.graph.concat(high, low)] = vec(bits, 64)
    if not real:
        got = _joined(computed(site.graph, site.outcome, inputs), count)
        return bool(np.array_equal(got, divided(name.removesuffix(BY_WORD), *sides)))
    a, b = (side.view(np.float32 if width == 32 else np.float64) for side in sides)
    with np.errstate(all="ignore"):
        wanted = a / b if name.endswith("DIV") else 1 / a if name.endswith("RCP") else np.sqrt(a)
        words = computed(site.graph, site.outcome, inputs)
    got = _joined(words, count)
    told = got.astype(np.uint32).view(np.float32) if width == 32 else got.view(np.float64)
    same = (told == wanted) & (np.signbit(told) == np.signbit(wanted))
    return bool(np.all(same | (np.isnan(told) & np.isnan(wanted))))


def _joined(words: Sequence[Vec], count: int) -> NDArray[Any]:
    got = sum(w.v.astype(np.uint64) << np.uint64(32 * n) for n, w in enumerate(words))
    return np.broadcast_to(np.asarray(got), (count,))


def found_by(ptxas: str, name: str, known: dict[str, str], arches: Sequence[int]) -> dict[str, str]:
    """The operation by digest, with those of one more assembler."""
    out = dict(known)
    t, do = OPERATIONS[name]
    size = 1 if t == "f32" else 2
    sizes = [size, 1 if name.endswith(BY_WORD) else size][: 1 + ("%b" in do)]
    with tempfile.TemporaryDirectory() as made:
        for place, site in sites(ptxas, name, Path(made), arches):
            digests = list(site.digests())
            if any(out.get(d) == name for d, _ in digests):
                continue
            for digest, order in digests:
                if [len(unit) for unit in order] != sizes:
                    continue
                if right(name, site, order, 400 if t == "f64" else 4000):
                    out[digest] = name
                    print(f"{digest} {name}: {place}", flush=True)
                    break
            else:
                print(f"not {name}: {place} at {site.call.offset:#x}", flush=True)
    return out


def right32(name: str, found: Quotient, dividend: int, count: int) -> bool:
    """Whether an expression gives the quotient or remainder in every lane."""
    sides = [words32(count, seed) for seed in (1, 2)]
    sides[1][::17] = 0
    inputs = {n: vec(v, 32) for n, v in zip((dividend, found.divisor), sides, strict=True)}
    got = _joined(computed(found.graph, (found.outcome,), inputs), count)
    return bool(np.array_equal(got, divided32(name, *sides)))


def found_inline(
    ptxas: str, name: str, known: dict[str, str], arches: Sequence[int]
) -> dict[str, str]:
    """As `found_by`, of 32-bit integers: each expression is computed as all four operations."""
    out = dict(known)
    with tempfile.TemporaryDirectory() as made:
        for place, cfg in graphs(ptxas, name, Path(made), arches, SHAPES32):
            some = inline_quotients(cfg)[1]
            seen = sum(i.mnemonic == "MUFU" for b in cfg.blocks for i in b.instructions)
            some = tuple(q for q in some if q.dividends)
            if len(some) < seen or not some:
                print(f"{name} {place}: {len(some)} quotients of {seen} reciprocals")
            for found in some:
                digests = [(d, n) for d, n in found.digests() if d]
                if any(out.get(d) in INLINE_QUOTIENTS for d, _ in digests):
                    continue
                fits = [
                    (digest, operation)
                    for digest, n in digests
                    for operation in sorted(INLINE_QUOTIENTS)
                    if right32(operation, found, n, 20000)
                ]
                if len(fits) == 1:
                    out[fits[0][0]] = fits[0][1]
                    print(*fits[0], place, flush=True)
                else:
                    print(f"not {name}: {place}, {len(fits)} fit", flush=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ptxas", nargs="*", default=[shutil.which("ptxas") or "ptxas"])
    parser.add_argument("--operation", action="append", choices=tuple(OPERATIONS))
    parser.add_argument("--arch", type=int, action="append", help="only this one")
    given = parser.parse_args()
    known: dict[str, str] = {}
    if TARGET.exists():
        data = json.loads(TARGET.read_text())
        known = {d: name for name, some in data["digests"].items() for d in some}
        assemblers = set(data["assemblers"])
    else:
        assemblers = set[str]()
    for ptxas in given.ptxas:
        said = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True)
        assemblers |= set(re.findall(r"V[\d.]+", said.stdout))
        for operation in given.operation or OPERATIONS:
            found = found_inline if operation in INLINE_QUOTIENTS else found_by
            known = found(ptxas, operation, known, given.arch or ARCHES)
            digests = {op: sorted(d for d, n in known.items() if n == op) for op in OPERATIONS}
            data = {"assemblers": sorted(assemblers), "digests": digests}
            TARGET.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
