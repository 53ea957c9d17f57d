"""Host machine code that runs a small Qwen2, made with LLVM.

Products read weights in panels of columns, in one of these kinds.  ``bf16``: pairs of bfloat16 go
into one float32 sum (AVX512_BF16), twice as many products per cycle; the other factors are rounded
to bfloat16, and everything between two products is float32.  ``exact``: the same weights, but each
other factor is two bfloat16s, the rounded number and its rounding error; that is float32 except for
the last bits.  ``f32``: float32 throughout.

The numbers of a row depend only on that row, not on how many rows are computed with it: each sum is
made in a fixed order.  All functions are void; pointers and 64-bit integers are their arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["bf16", "exact", "f32"]
Number: TypeAlias = str | int
LANES: Final = 16
_V: Final = f"<{LANES} x float>"
_I: Final = f"<{LANES} x i32>"
_HALF: Final = f"<{LANES} x bfloat>"
_PAIRS: Final = f"<{2 * LANES} x bfloat>"
_DOT: Final = "llvm.x86.avx512bf16.dpbf16ps.512"
_INTRINSICS: Final = (
    f"{_V} @{_DOT}({_V}, {_PAIRS}, {_PAIRS})",
    f"{_V} @llvm.fma.v16f32({_V}, {_V}, {_V})",
    f"{_V} @llvm.maxnum.v16f32({_V}, {_V})",
    f"{_V} @llvm.minnum.v16f32({_V}, {_V})",
    f"{_V} @llvm.rint.v16f32({_V})",
    f"float @llvm.vector.reduce.fadd.v16f32(float, {_V})",
    f"float @llvm.vector.reduce.fmax.v16f32({_V})",
    "float @llvm.sqrt.f32(float)",
)
# e**r for |r| <= ln(2)/2: 1 + r + r**2 * polynomial (Cephes' expf), highest power first.
_EXP: Final = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
               1.6666665459e-1, 5.0000001201e-1)  # fmt: skip
_LOG2E: Final = 1.44269504088896341
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4


@dataclass(frozen=True, slots=True)
class Tile:
    """The tile of a product: rows, and vectors of columns (those of a panel), computed at once."""

    rows: int
    vectors: int

    @property
    def panel(self) -> int:
        """Columns of a panel."""
        return self.vectors * LANES


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes for which code is generated."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head: int
    epsilon: float


def constant(value: float) -> str:
    """A float32 in LLVM's text, which has the bits of the double."""
    single = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"


def vector(value: float) -> str:
    """The constant in all lanes."""
    return f"<{', '.join([f'float {constant(value)}'] * LANES)}>"


class Function:
    """A function's text under construction.  Variables are in memory here; LLVM moves them into
    registers."""

    def __init__(self, name: str, arguments: Mapping[str, str]) -> None:
        said = ", ".join(
            f"{kind} {'noalias ' if kind == 'ptr' else ''}%{n}" for n, kind in arguments.items()
        )
        self._head = f"define void @{name}({said}) #0 {{"
        self._variables: list[str] = []
        self._lines: list[str] = []
        self._count = 0

    @property
    def text(self) -> str:
        """The complete function."""
        lines = [self._head, *self._variables, *self._lines, "ret void", "}"]
        return "\n".join(lines) + "\n"

    def _name(self) -> str:
        self._count += 1
        return f"%r{self._count}"

    def do(self, line: str) -> None:
        """Emits an instruction without a result."""
        self._lines.append(line)

    def __call__(self, line: str) -> str:
        """Emits an instruction; returns its result."""
        name = self._name()
        self._lines.append(f"{name} = {line}")
        return name

    def variable(self, kind: str, first: Number) -> str:
        """A variable with a value."""
        name = self._name()
        self._variables.append(f"{name} = alloca {kind}")
        self.do(f"store {kind} {first}, ptr {name}")
        return name

    @contextmanager
    def loop(self, first: Number, end: Number, step: int = 1) -> Generator[str]:
        """A loop over a counter, from ``first`` until ``end``."""
        self._count += 1
        n = self._count
        counter = self.variable("i64", first)
        self.do(f"br label %head{n}")
        self.do(f"head{n}:")
        at = self(f"load i64, ptr {counter}")
        more = self(f"icmp slt i64 {at}, {end}")
        self.do(f"br i1 {more}, label %body{n}, label %exit{n}")
        self.do(f"body{n}:")
        yield at
        then = self(f"add i64 {at}, {step}")
        self.do(f"store i64 {then}, ptr {counter}")
        self.do(f"br label %head{n}")
        self.do(f"exit{n}:")

    def sum(self, *terms: Number) -> str:
        """The sum of 64-bit integers."""
        out = self(f"add i64 {terms[0]}, {terms[1]}")
        for term in terms[2:]:
            out = self(f"add i64 {out}, {term}")
        return out

    def times(self, a: Number, b: Number) -> str:
        """A product of 64-bit integers."""
        return self(f"mul i64 {a}, {b}")

    def at(self, kind: str, place: str, index: Number) -> str:
        """The address of an element."""
        return self(f"getelementptr {kind}, ptr {place}, i64 {index}")

    def load(self, kind: str, place: str, index: Number = 0) -> str:
        """An element."""
        return self(f"load {kind}, ptr {self.at(_scalar(kind), place, index)}, align 2")

    def store(self, kind: str, value: str, place: str, index: Number = 0) -> None:
        """Sets an element."""
        self.do(f"store {kind} {value}, ptr {self.at(_scalar(kind), place, index)}, align 2")

    def get(self, kind: str, place: str) -> str:
        """A variable's value."""
        return self(f"load {kind}, ptr {place}")

    def put(self, kind: str, value: str, place: str) -> None:
        """Sets a variable."""
        self.do(f"store {kind} {value}, ptr {place}")

    def op(self, op: str, a: str, b: str) -> str:
        """An operation of vectors of floats."""
        return self(f"{op} {_V} {a}, {b}")

    def call(self, name: str, *values: str) -> str:
        """An intrinsic of vectors of floats."""
        return self(f"call {_V} @llvm.{name}.v16f32({', '.join(f'{_V} {v}' for v in values)})")

    def splat(self, kind: str, value: str) -> str:
        """A scalar in all lanes."""
        one = self(f"insertelement <{LANES} x {kind}> poison, {kind} {value}, i64 0")
        wide = f"<{LANES} x {kind}>"
        return self(f"shufflevector {wide} {one}, {wide} poison, {_I} zeroinitializer")

    def exp(self, x: str) -> str:
        """e to the power of each lane."""
        x = self.call("maxnum", self.call("minnum", x, vector(88.0)), vector(-87.0))
        n = self.call("rint", self.op("fmul", x, vector(_LOG2E)))
        r = self.call("fma", n, vector(-_LN2_HIGH), x)
        r = self.call("fma", n, vector(-_LN2_LOW), r)
        y = vector(_EXP[0])
        for factor in _EXP[1:]:
            y = self.call("fma", y, r, vector(factor))
        y = self.call("fma", y, self.op("fmul", r, r), self.op("fadd", r, vector(1.0)))
        bits = self(f"bitcast {_V} {y} to {_I}")
        power = self(f"fptosi {_V} {n} to {_I}")
        power = self(f"shl {_I} {power}, <{', '.join(['i32 23'] * LANES)}>")
        return self(f"bitcast {_I} {self(f'add {_I} {bits}, {power}')} to {_V}")


def _scalar(kind: str) -> str:
    return kind[1:-1].partition(" x ")[2] if kind[0] == "<" else kind


def _factors(f: Function, kind: Kind, value: str, row: str, width: int, column: Number) -> None:
    """Stores the factors of a product in ``out``."""
    if kind == "f32":
        f.store(_V, value, "%out", f.sum(f.times(row, width), column))
        return
    at = f.sum(f.times(row, width * parts(kind)), column)
    near = f(f"fptrunc {_V} {value} to {_HALF}")
    f.store(_HALF, near, "%out", at)
    if kind == "exact":
        rest = f.op("fsub", value, f(f"fpext {_HALF} {near} to {_V}"))
        f.store(_HALF, f(f"fptrunc {_V} {rest} to {_HALF}"), "%out", f.sum(at, width))


def parts(kind: Kind) -> int:
    """The number of rows of factors for one row of numbers."""
    return 2 if kind == "exact" else 1


def product(kind: Kind, tile: Tile, adds: bool) -> str:
    """``c = a @ b + bias``, or ``c += a @ b``.  ``a`` is rows of ``steps`` factors (pairs of
    bfloat16, or floats), ``b`` panels (steps, columns), ``c`` rows of ``panels`` panels.  There
    must be room for whole tiles of rows in ``a`` and ``c``."""
    f = Function(
        "add_product" if adds else "product",
        {"a": "ptr", "b": "ptr", "c": "ptr", "bias": "ptr", "rows": "i64", "steps": "i64",
         "panels": "i64"},
    )  # fmt: skip
    factor, wide = ("float", _V) if kind == "f32" else ("i32", _PAIRS)
    width = f.times("%panels", tile.panel)
    spots = [(i, j) for i in range(tile.rows) for j in range(tile.vectors)]
    sums = {spot: f.variable(_V, "zeroinitializer") for spot in spots}
    with f.loop(0, "%panels") as panel:
        begin = f.times(panel, tile.panel)
        # A step's columns have the same number of bytes in either kind: a pair of bfloat16s is as
        # large as a float.
        weights = f.at("i32", "%b", f.times(f.times(panel, "%steps"), tile.panel))
        with f.loop(0, "%rows", tile.rows) as row:
            a = f.at("i32", "%a", f.times(f.times(row, "%steps"), parts(kind)))
            c = f.at("float", "%c", f.sum(f.times(row, width), begin))
            rows = [i for i in range(tile.rows) for _ in range(parts(kind))]
            factors = [f.at("i32", a, f.times(n, "%steps")) for n in range(len(rows))]
            outs = [f.at("float", c, f.times(i, width)) for i in range(tile.rows)]
            start = f.at("float", "%bias", begin)
            for i, j in spots:
                f.put(_V, f.load(_V, outs[i] if adds else start, LANES * j), sums[i, j])
            with f.loop(0, "%steps") as step:
                b = f.at("i32", weights, f.times(step, tile.panel))
                columns = [
                    f(f"load {wide}, ptr {f.at('i32', b, LANES * j)}, align 4")
                    for j in range(tile.vectors)
                ]
                for i, part in zip(rows, factors, strict=True):
                    x = f.splat(factor, f(f"load {factor}, ptr {f.at('i32', part, step)}"))
                    if kind != "f32":
                        x = f(f"bitcast {_I} {x} to {_PAIRS}")
                    for j in range(tile.vectors):
                        old, column = f.get(_V, sums[i, j]), columns[j]
                        if kind == "f32":
                            new = f.call("fma", x, column, old)
                        else:
                            new = f(f"call {_V} @{_DOT}({_V} {old}, {wide} {x}, {wide} {column})")
                        f.put(_V, new, sums[i, j])
            for i, j in spots:
                f.store(_V, f.get(_V, sums[i, j]), outs[i], LANES * j)
    return f.text


def normed(kind: Kind, sizes: Sizes) -> str:
    """Rows divided by their root mean square, times ``weight``: factors of a product."""
    f = Function("normed", {"x": "ptr", "weight": "ptr", "out": "ptr", "rows": "i64"})
    total = f.variable(_V, "zeroinitializer")
    with f.loop(0, "%rows") as row:
        start = f.times(row, sizes.hidden)
        f.put(_V, "zeroinitializer", total)
        with f.loop(0, sizes.hidden, LANES) as j:
            x = f.load(_V, "%x", f.sum(start, j))
            f.put(_V, f.call("fma", x, x, f.get(_V, total)), total)
        whole = _added(f, f.get(_V, total))
        mean = f(f"fdiv float {whole}, {constant(sizes.hidden)}")
        mean = f(f"fadd float {mean}, {constant(sizes.epsilon)}")
        root = f.splat("float", f(f"call float @llvm.sqrt.f32(float {mean})"))
        with f.loop(0, sizes.hidden, LANES) as j:
            x = f.op("fdiv", f.load(_V, "%x", f.sum(start, j)), root)
            x = f.op("fmul", x, f.load(_V, "%weight", j))
            _factors(f, kind, x, row, sizes.hidden, j)
    return f.text


def _added(f: Function, x: str) -> str:
    """The sum of the lanes, in a fixed order."""
    zero = "float -0.0"
    return f(f"call reassoc float @llvm.vector.reduce.fadd.v16f32({zero}, {_V} {x})")


def gated(kind: Kind, sizes: Sizes) -> str:
    """silu of the first half of rows, times the second: factors of a product."""
    f = Function("gated", {"x": "ptr", "out": "ptr", "rows": "i64", "width": "i64"})
    size = sizes.intermediate
    with f.loop(0, "%rows") as row:
        start = f.times(row, "%width")
        with f.loop(0, size, LANES) as j:
            at = f.sum(start, j)
            gate, up = f.load(_V, "%x", at), f.load(_V, "%x", f.sum(at, size))
            less = f.exp(f.op("fsub", vector(-0.0), gate))
            gate = f.op("fdiv", gate, f.op("fadd", less, vector(1.0)))
            _factors(f, kind, f.op("fmul", gate, up), row, size, j)
    return f.text


def turned(sizes: Sizes) -> str:
    """Rotary embedding of queries (in place, scaled) and keys; keys and values go to their places.

    Keys are kept (slot, head, block of 16 places, number, place), values (slot, head, place,
    number); ``blocks`` of 16 places per slot."""
    f = Function(
        "turned",
        {"x": "ptr", "keys": "ptr", "values": "ptr", "cos": "ptr", "sin": "ptr", "slots": "ptr",
         "places": "ptr", "rows": "i64", "width": "i64", "blocks": "i64"},
    )  # fmt: skip
    s, half = sizes, sizes.head // 2
    scale = vector(s.head**-0.5)
    room = f.times("%blocks", s.head * LANES)  # numbers per slot and head
    with f.loop(0, "%rows") as row:
        start = f.times(row, "%width")
        slot, place = f.load("i64", "%slots", row), f.load("i64", "%places", row)
        turn = f.times(place, half)
        block, lane = f(f"lshr i64 {place}, 4"), f(f"and i64 {place}, 15")
        in_keys = f.sum(f.times(block, s.head * LANES), lane)
        in_values = f.times(place, s.head)
        for j in range(0, half, LANES):
            cos = f.load(_V, "%cos", f.sum(turn, j))
            sin = f.load(_V, "%sin", f.sum(turn, j))

            def both(at: str, cos: str = cos, sin: str = sin) -> tuple[str, str]:
                low, high = f.load(_V, "%x", at), f.load(_V, "%x", f.sum(at, half))
                first = f.op("fsub", f.op("fmul", low, cos), f.op("fmul", high, sin))
                return first, f.op("fadd", f.op("fmul", high, cos), f.op("fmul", low, sin))

            with f.loop(0, s.heads) as h:
                at = f.sum(start, f.times(h, s.head), j)
                first, second = both(at)
                f.store(_V, f.op("fmul", first, scale), "%x", at)
                f.store(_V, f.op("fmul", second, scale), "%x", f.sum(at, half))
            with f.loop(0, s.kv_heads) as h:
                made = both(f.sum(start, s.hidden + j, f.times(h, s.head)))
                of = f.times(f.sum(f.times(slot, s.kv_heads), h), room)
                to = f.sum(of, in_keys)
                for number, value in zip((j, j + half), made, strict=True):
                    for n in range(LANES):
                        one = f(f"extractelement {_V} {value}, i64 {n}")
                        f.store("float", one, "%keys", f.sum(to, (number + n) * LANES))
        value = f.sum(start, s.hidden + s.kv_heads * s.head)
        with f.loop(0, s.kv_heads) as h:
            of = f.times(f.sum(f.times(slot, s.kv_heads), h), room)
            for j in range(0, s.head, LANES):
                one = f.load(_V, "%x", f.sum(value, f.times(h, s.head), j))
                f.store(_V, one, "%values", f.sum(of, in_values, j))
    return f.text


def mixed(kind: Kind, sizes: Sizes) -> str:
    """Attention of rows ``chosen`` of queries to the keys up to their places, one after another:
    factors of a product.  ``scores`` has room for one head group's."""
    f = Function(
        "mixed",
        {"x": "ptr", "keys": "ptr", "values": "ptr", "slots": "ptr", "places": "ptr",
         "chosen": "ptr", "scores": "ptr", "out": "ptr", "rows": "i64", "width": "i64",
         "blocks": "i64"},
    )  # fmt: skip
    s, group = sizes, sizes.heads // sizes.kv_heads
    room, across = f.times("%blocks", s.head * LANES), f.times("%blocks", LANES)
    lanes = f"<{', '.join(f'i32 {n}' for n in range(LANES))}>"
    sums = [f.variable(_V, "zeroinitializer") for _ in range(group)]
    most = [f.variable(_V, "zeroinitializer") for _ in range(group)]
    outs = {
        (h, j): f.variable(_V, "zeroinitializer")
        for h in range(group) for j in range(0, s.head, LANES)
    }  # fmt: skip
    with f.loop(0, "%rows") as row:
        of = f.load("i64", "%chosen", row)
        start = f.times(of, "%width")
        slot, place = f.load("i64", "%slots", of), f.load("i64", "%places", of)
        seen = f.sum(place, 1)
        ends = f.splat("i32", f(f"trunc i64 {place} to i32"))
        limit = f(f"and i64 {f.sum(place, LANES)}, {-LANES}")
        with f.loop(0, s.kv_heads) as kv:
            base = f.times(f.sum(f.times(slot, s.kv_heads), kv), room)
            first = f.times(kv, group * s.head)
            queries = [f.sum(start, first, h * s.head) for h in range(group)]
            lines = [f.at("float", "%scores", f.times(h, across)) for h in range(group)]
            for h in range(group):
                f.put(_V, vector(-3e38), most[h])
            with f.loop(0, limit, LANES) as at:
                for h in range(group):
                    f.put(_V, "zeroinitializer", sums[h])
                keys = f.at("float", "%keys", f.sum(base, f.times(at, s.head)))
                with f.loop(0, s.head) as number:
                    key = f.load(_V, keys, f.times(number, LANES))
                    for h in range(group):
                        one = f.load("float", "%x", f.sum(queries[h], number))
                        new = f.call("fma", f.splat("float", one), key, f.get(_V, sums[h]))
                        f.put(_V, new, sums[h])
                here = f(f"add {_I} {f.splat('i32', f(f'trunc i64 {at} to i32'))}, {lanes}")
                known = f(f"icmp sle {_I} {here}, {ends}")
                for h in range(group):
                    kept = f(f"select <{LANES} x i1> {known}, {_V} {f.get(_V, sums[h])}, "
                             f"{_V} {vector(-3e38)}")  # fmt: skip
                    f.store(_V, kept, lines[h], at)
                    f.put(_V, f.call("maxnum", f.get(_V, most[h]), kept), most[h])
            for h in range(group):
                top = f(f"call float @llvm.vector.reduce.fmax.v16f32({_V} {f.get(_V, most[h])})")
                highest = f.splat("float", top)
                f.put(_V, "zeroinitializer", sums[h])
                with f.loop(0, limit, LANES) as at:
                    x = f.op("fsub", f.load(_V, lines[h], at), highest)
                    here = f(f"add {_I} {f.splat('i32', f(f'trunc i64 {at} to i32'))}, {lanes}")
                    known = f(f"icmp sle {_I} {here}, {ends}")
                    e = f(f"select <{LANES} x i1> {known}, {_V} {f.exp(x)}, "
                          f"{_V} zeroinitializer")  # fmt: skip
                    f.store(_V, e, lines[h], at)
                    f.put(_V, f.op("fadd", f.get(_V, sums[h]), e), sums[h])
            for spot in outs.values():
                f.put(_V, "zeroinitializer", spot)
            values = f.at("float", "%values", base)
            with f.loop(0, seen) as at:
                line = f.at("float", values, f.times(at, s.head))
                shares = [f.splat("float", f.load("float", lines[h], at)) for h in range(group)]
                for j in range(0, s.head, LANES):
                    value = f.load(_V, line, j)
                    for h in range(group):
                        new = f.call("fma", shares[h], value, f.get(_V, outs[h, j]))
                        f.put(_V, new, outs[h, j])
            for h in range(group):
                whole = f.splat("float", _added(f, f.get(_V, sums[h])))
                for j in range(0, s.head, LANES):
                    part = f.op("fdiv", f.get(_V, outs[h, j]), whole)
                    _factors(f, kind, part, row, s.hidden, f.sum(first, h * s.head + j))
    return f.text


def module(kind: Kind, tile: Tile, sizes: Sizes) -> str:
    """The text of all functions."""
    declared = _INTRINSICS[1:] if kind == "f32" else _INTRINSICS
    return "".join(
        (
            *(f"declare {d}\n" for d in declared),
            product(kind, tile, False),
            product(kind, tile, True),
            normed(kind, sizes),
            gated(kind, sizes),
            turned(sizes),
            mixed(kind, sizes),
            'attributes #0 = { nounwind "prefer-vector-width"="512" '
            '"min-legal-vector-width"="512" }\n',
        )
    )


__all__ = ["LANES", "Kind", "Sizes", "Tile", "module", "parts"]
