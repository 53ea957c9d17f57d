"""The names and types in sight while a program is generated."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from sassxlate.llm.dataset.generate import unusual

FLOATS = ("float", "double", "__half")

# The frequency of each type of variable.
_TYPES = (
    ["int"] * 30 + ["unsigned"] * 16 + ["float"] * 30 + ["double"] * 8 + ["long long"] * 5
    + ["unsigned long long"] * 6 + ["__half"] * 3 + ["short", "unsigned char", "unsigned short"]
)  # fmt: skip

_CONSTANTS = (
    1, 2, 3, 4, 5, 7, 8, 10, 12, 15, 16, 17, 24, 31, 32, 33, 63, 64, 100, 127, 128, 255, 256, 511,
    1000, 1023, 1024, 4096, 0xFFFF, 0x10000, 0x5DEECE6, 0x7FFFFFFF, 0x9E3779B9, 0x85EBCA6B,
    1664525, 1013904223, 0x01010101, 0x80808080, 0xF0F0F0F0, 0x55555555,
)  # fmt: skip


def wide(kind: str) -> bool:
    """Whether a type has 64 bits."""
    return "long" in kind or kind == "double"


@dataclass(slots=True)
class Scope:
    """The names in scope, by type."""

    rng: random.Random
    names: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    lines: list[str] = field(default_factory=list[str])
    depth: int = 0
    count: int = 0
    together: bool = True  # whether all threads of a warp certainly execute this

    def add(self, kind: str, name: str) -> None:
        self.names.setdefault(kind, []).append(name)

    def fresh(self, stem: str = "v") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("  " * (self.depth + 1) + text)

    def kind(self) -> str:
        return self.rng.choice(_TYPES)

    # --- expressions -------------------------------------------------------------------------

    def leaf(self, kind: str) -> str:
        rng = self.rng
        known = self.names.get(kind)
        if known and rng.random() < 0.8:
            return rng.choice(known[-12:])
        if kind in FLOATS and rng.random() < 0.35:
            return self.constant(kind)
        others = [n for k, ns in self.names.items() for n in ns[-4:] if k != kind]
        if others and rng.random() < 0.6:
            return f"({kind}){self._plain(rng.choice(others))}"
        return self.constant(kind)

    def _plain(self, name: str) -> str:
        """A half does not convert to an integer directly, only through float."""
        return f"__half2float({name})" if name in self.names.get("__half", ()) else name

    def constant(self, kind: str) -> str:
        rng = self.rng
        if kind in FLOATS:
            value = rng.choice((
                0.5, 1.0, 2.0, -1.0, 0.25, 3.0, 0.1, 1e-3, 1e-6, 3.14159265, 1.4426950, 0.6931472,
                255.0, 1e6, -0.5, 1.5, rng.uniform(-10, 10),
            ))  # fmt: skip
            if kind == "__half":
                return f"__float2half({value}f)"
            return f"({value}f)" if kind == "float" else f"({value})"
        value = rng.choice(_CONSTANTS) if rng.random() < 0.9 else rng.getrandbits(32)
        return f"({kind}){value}u"

    def shift(self, bits: int) -> str:
        if self.rng.random() < 0.7:
            return str(self.rng.randrange(1, bits))
        return f"({self.leaf('int')} & {bits - 1})"

    def condition(self, depth: int = 1) -> str:
        rng = self.rng
        kind = rng.choice(("int", "int", "unsigned", "float", "double", "long long"))
        op = rng.choice(("<", ">", "<=", ">=", "==", "!="))
        text = f"{self.expression(kind, depth + 1)} {op} {self.expression(kind, depth + 2)}"
        if depth < 2 and rng.random() < 0.25:
            joint = rng.choice(("&&", "||"))
            text = f"({text}) {joint} ({self.condition(depth + 1)})"
        return text

    def expression(self, kind: str, depth: int = 0) -> str:
        if depth > 2 or self.rng.random() < 0.12 * (depth + 1):
            return self.leaf(kind)
        if kind == "__half":
            return self._half(depth + 1)
        return self._float(kind, depth + 1) if kind in FLOATS else self._integer(kind, depth + 1)

    def _half(self, d: int) -> str:
        a, b, c = (self.expression("__half", d) for _ in range(3))
        return self.rng.choice((
            f"__hadd({a}, {b})", f"__hmul({a}, {b})", f"__hfma({a}, {b}, {c})", f"__hsub({a}, {b})",
            f"__hmax({a}, {b})", f"__float2half({self.expression('float', d)})", f"__hneg({a})",
            f"(__hlt({a}, {b}) ? {a} : {c})",
        ))  # fmt: skip

    def _float(self, kind: str, d: int) -> str:
        s = "f" if kind == "float" else ""
        a, b, c = (self.expression(kind, d) for _ in range(3))
        usual = [
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} * {b} + {c})", f"({a} + {b})",
            f"fma{s}({a}, {b}, {c})", f"({a} * {b} - {c})", f"fmin{s}({a}, {b})", f"({a} * {b})",
            f"fmax{s}({a}, {b})", f"fabs{s}({a})", f"(-{a})", f"({self.condition(d)} ? {a} : {b})",
            f"({kind}){self.leaf('int')}", f"({kind}){self.leaf('unsigned')}", f"({a} - {b} * {c})",
            f"fmax{s}({kind}(0), {a})", f"floor{s}({a})", f"({a} + {self.constant(kind)})",
            f"({a} * {self.constant(kind)})", f"fmin{s}(fmax{s}({a}, {b}), {c})",
            f"({kind})({self.leaf('float' if kind == 'double' else 'double')})",
        ]  # fmt: skip
        rare = [
            f"({a} / {b})", f"sqrt{s}({a})", f"rsqrt{s}({a})", f"ceil{s}({a})", f"trunc{s}({a})",
            f"rint{s}({a})", f"copysign{s}({a}, {b})", f"({kind}){self.leaf('long long')}",
        ]  # fmt: skip
        if kind == "float":
            usual += [
                f"__expf({a})", f"__fdividef({a}, {b})", f"__sinf({a})", f"__cosf({a})",
                f"__saturatef({a})", f"__logf({a})", f"__uint_as_float({self.leaf('unsigned')})",
                f"table_f[{self.leaf('int')} & 63]", f"__half2float({self.leaf('__half')})",
                f"__frcp_rn({a})", f"__fmul_rz({a}, {b})", f"__fadd_ru({a}, {b})",
            ]  # fmt: skip
            rare += [f"expf({a})", f"logf({a})", f"sinf({a})", f"powf({a}, {b})", f"tanhf({a})",
                     f"erff({a})", f"exp2f({a})", f"atan2f({a}, {b})", f"cbrtf({a})"]  # fmt: skip
        elif self.rng.random() < 0.1:
            rare += [f"exp({a})", f"log({a})", f"sin({a})"]
        return self.rng.choice(rare if self.rng.random() < 0.06 else usual)

    def _integer(self, kind: str, d: int) -> str:
        a, b, c = (self.expression(kind, d) for _ in range(3))
        bits = 64 if wide(kind) else 32
        k = self.constant(kind)
        w = kind if bits == 64 or kind == "unsigned" else "int"
        usual = [
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} & {b})", f"({a} | {b})",
            f"({a} ^ {b})", f"(~{a})", f"({a} << {self.shift(bits)})", f"({a} >> {self.shift(bits)})",
            f"({a} * {b} + {c})", f"({a} + {b} + {c})", f"(({a} ^ {b}) & {c})", f"({a} + {k})",
            f"({a} & {k})", f"({a} * {k})", f"({a} ^ ({b} >> {self.shift(bits)}))",
            f"({self.condition(d)} ? {a} : {b})", f"min(({w}){a}, ({w}){b})", f"max(({w}){a}, ({w}){b})", f"(-{a})",
            f"(({a} >> {self.shift(bits)}) & {k})", f"(({a} << {self.shift(bits)}) | {b})",
            f"(({a} & {b}) | (~{a} & {c}))", f"({a} * {k} + {k})", f"(({a} + {b}) << 2)",
            f"({kind})({self.condition(d)})", f"({a} - {k})", f"min(max(({w}){a}, ({w}){b}), ({w}){c})",
        ]  # fmt: skip
        rare = [
            f"({a} / {k})", f"({a} % {k})", f"({a} / ({b} | 1))", f"({a} % ({b} | 1))",
            f"({kind}){self.leaf('float')}", f"({kind}){self.leaf('double')}",
        ]  # fmt: skip
        if bits == 64:
            usual += [
                f"__popcll({a})", f"__clzll({a})", f"__ffsll({a})", f"__brevll({a})",
                f"({kind})__umul64hi({a}, {b})", f"({kind})__double_as_longlong({self.leaf('double')})",
                f"(({kind}){self.leaf('unsigned')} * {self.leaf('unsigned')})",
                f"(({kind}){self.leaf('int')} << 32 | {self.leaf('unsigned')})",
            ]  # fmt: skip
        else:
            usual += [
                f"__popc({a})", f"__clz({a})", f"__ffs({a})", f"__brev({a})", f"abs((int){a})",
                f"__byte_perm({a}, {b}, {self.rng.choice(('0x3210', '0x0123', '0x5410', '0x7632'))})",
                f"__funnelshift_l({a}, {b}, {self.shift(32)})",
                f"__funnelshift_r({a}, {b}, {self.shift(32)})", f"__umulhi({a}, {b})",
                f"__mulhi({a}, {b})", f"__float_as_int({self.leaf('float')})",
                f"table_i[{self.leaf('int')} & 63]", f"__dp4a((int){a}, (int){b}, (int){c})",
                f"__usad({a}, {b}, {c})", f"__mul24({a}, {b})", f"({kind})((signed char){a})",
                f"({kind})((unsigned short){a})", f"({kind})(unsigned)({self.leaf('long long')} >> 32)",
                f"__vadd2({a}, {b})", f"__hadd({a}, {b})", f"__float2int_rn({self.leaf('float')})",
            ]  # fmt: skip
        return self.rng.choice(rare if self.rng.random() < 0.07 else usual)

    # --- statements --------------------------------------------------------------------------

    def declare(self) -> None:
        kind = self.kind()
        name = self.fresh()
        self.line(f"{kind} {name} = {self.cast(kind, self.expression(kind))};")
        self.add(kind, name)

    def cast(self, kind: str, text: str) -> str:
        return text if kind == "__half" else f"({kind})({text})"

    def change(self) -> None:
        kind = self.kind()
        known = [n for n in self.names.get(kind, ()) if n.startswith("v")]
        if not known:
            return self.declare()
        name = self.rng.choice(known[-8:])
        simple = kind not in FLOATS and self.rng.random() < 0.3
        op = self.rng.choice(("+=", "^=", "-=", "|=", "*=")) if simple else "="
        self.line(f"{name} {op} {self.cast(kind, self.expression(kind))};")
        return None

    def _inside(self, body: Callable[[], None], together: bool) -> None:
        before = {k: list(v) for k, v in self.names.items()}
        was, self.together = self.together, self.together and together
        self.depth += 1
        body()
        self.depth -= 1
        self.names, self.together = before, was
        self.line("}")

    def some(self, least: int = 1, most: int = 4) -> None:
        for _ in range(self.rng.randint(least, most)):
            self.statement()

    def branch(self) -> None:
        self.line(f"if ({self.condition()}) {{")
        self._inside(self.some, False)
        if self.rng.random() < 0.4:
            self.line("else {")
            self._inside(self.some, False)

    def loop(self) -> None:
        rng = self.rng
        i = self.fresh("i")
        bound = rng.choice(
            (str(rng.choice((2, 3, 4, 8, 16, 100))), "n", f"({self.leaf('int')} & 31)")
        )
        if rng.random() < 0.4:
            self.line(f"#pragma unroll {rng.choice((1, 1, 2, 4))}")
        self.line(f"for (int {i} = 0; {i} < {bound}; {i} += {rng.choice((1, 1, 1, 2))}) {{")

        def body() -> None:
            self.add("int", i)
            self.some(1, 4)

        self._inside(body, bound == "n" or bound.isdigit())

    def store(self) -> None:
        rng = self.rng
        kind = rng.choice(("int", "float", "float", "unsigned", "double", "unsigned char", "short"))
        index = rng.choice(("t", "t", "t + n", f"({self.leaf('int')} & 1023)", "t * 3 + 1"))
        space = {"int": "oi", "unsigned": "ou", "float": "of", "double": "od"}.get(kind, "ob")
        if space == "ob":
            self.line(f"ob[{index}] = (unsigned char)({self.expression('int')});")
        else:
            self.line(f"{space}[{index}] = {self.expression(kind)};")

    def load(self) -> None:
        rng = self.rng
        kind, space = rng.choice((
            ("int", "ai"), ("float", "af"), ("double", "ad"), ("unsigned", "au"), ("int", "ab"),
            ("__half", "ah"), ("long long", "al"), ("int", "as"),
        ))  # fmt: skip
        name = self.fresh()
        index = rng.choice(
            ("t", "t + 1", "t - 1", "t + n", f"({self.leaf('int')} & 4095)", "t * 4")
        )
        self.line(f"{kind} {name} = {space}[{index}];")
        self.add(kind, name)

    def vector(self) -> None:
        rng = self.rng
        kind, base, n = rng.choice((
            ("float4", "af", 4), ("float2", "af", 2), ("int4", "ai", 4), ("int2", "ai", 2),
            ("uint4", "au", 4), ("double2", "ad", 2), ("uchar4", "ab", 4),
        ))  # fmt: skip
        name = self.fresh("q")
        item = {"f": "float", "i": "int", "u": "unsigned", "d": "double"}[kind[0]]
        item = "int" if kind == "uchar4" else item
        self.line(f"{kind} {name} = ((const {kind}*){base})[t];")
        for part in "xyzw"[:n]:
            self.add(item, f"{name}.{part}")

    def structure(self) -> None:
        name = self.fresh("b")
        self.line(f"Body {name} = bodies[{self.rng.choice(('t', '(t & 255)', 't + n'))}];")
        for part in ("p.x", "p.y", "p.z", "m"):
            self.add("float", f"{name}.{part}")
        self.add("int", f"{name}.id")
        if self.rng.random() < 0.4:
            self.line(f"{name}.m = {self.expression('float')};")
            self.line(f"bodies_out[t] = {name};")

    def shared(self) -> None:
        rng = self.rng
        if not self.together:
            return self.change()
        name = self.fresh()
        kind, space = rng.choice((("float", "sf"), ("int", "si"), ("double", "sd")))
        self.line(f"{space}[threadIdx.x] = {self.expression(kind)};")
        self.line("__syncthreads();")
        other = rng.choice(("threadIdx.x ^ 1", "(threadIdx.x + 1) & 255", "threadIdx.x * 2 & 255",
                            f"{self.leaf('int')} & 255"))  # fmt: skip
        self.line(f"{kind} {name} = {space}[{other}];")
        self.line("__syncthreads();")
        self.add(kind, name)
        return None

    def atomic(self) -> None:
        rng = self.rng
        place = f"&oi[{self.leaf('int')} & 255]"
        self.line(rng.choice((
            f"atomicAdd({place}, {self.expression('int')});",
            f"atomicMax({place}, {self.expression('int')});",
            f"atomicAdd(&of[{self.leaf('int')} & 255], {self.expression('float')});",
            f"atomicXor(&ou[{self.leaf('int')} & 63], {self.expression('unsigned')});",
            f"atomicAdd(&si[{self.leaf('int')} & 255], {self.expression('int')});",
            f"atomicOr(&counter_u, {self.expression('unsigned')});",
        )))  # fmt: skip

    def lanes(self) -> None:
        if not self.together:
            return self.change()
        rng = self.rng
        name = self.fresh()
        kind = rng.choice(("int", "float", "unsigned"))
        call = rng.choice(("__shfl_xor_sync", "__shfl_down_sync", "__shfl_up_sync"))
        self.line(
            f"{kind} {name} = {call}(~0u, {self.leaf(kind)}, {rng.choice((1, 2, 4, 8, 16))});"
        )
        self.add(kind, name)
        return None

    def unusual(self) -> None:
        """A rare form: see :mod:`.generate_unusual`."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.1:
            self.line(unusual.atomic(rng, self.leaf))
            return
        kind, text = rng.choice((
            ("unsigned", unusual.integer), ("int", unusual.integer), ("unsigned", unusual.integer),
            ("float", unusual.real), ("double", unusual.double), ("long long", unusual.wide),
            ("unsigned long long", unusual.wide), ("half2", unusual.half2),
            ("bfloat2", unusual.bfloat2),
        ))  # fmt: skip
        name, made = self.fresh(), text(rng, self.leaf)
        if kind.endswith("2"):
            kind, made = "unsigned", f"as_unsigned({made})"
        self.line(f"{kind} {name} = ({kind})({made});")
        self.add(kind, name)

    def statement(self) -> None:
        rng = self.rng
        deep = self.depth > 2
        choices: list[tuple[int, Callable[[], None]]] = [
            (30, self.declare), (22, self.change), (7, self.store), (9, self.load),
            (3, self.vector), (2, self.structure), (2, self.atomic), (3, self.shared),
            (2, self.lanes), (10, self.unusual), (0 if deep else 8, self.branch), (0 if deep else 5, self.loop),
        ]  # fmt: skip
        weights = [w for w, _ in choices]
        rng.choices([c for _, c in choices], weights)[0]()
