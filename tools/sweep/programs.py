"""Shape ``programs``: whole programs of integer code, all of it defined by C++.

Types of 8 to 64 bits, structures with bit fields, arrays, pointers that are set at run time, calls,
loops, switches, gotos forward and back.  Arithmetic wraps in unsigned types, divisors are never
zero, shift counts are masked, indices are in range; a pointer has the type of what it points to.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from .kernel import Kernel, named

TYPES = ("u32", "i32", "u32", "i32", "u64", "i64", "u16", "i16", "u8", "i8")
BITS = {"u8": 8, "i8": 8, "u16": 16, "i16": 16, "u32": 32, "i32": 32, "u64": 64, "i64": 64}
_CONSTANTS = (
    0, 1, 2, 3, 5, 7, 8, 10, 15, 31, 63, 100, 127, 128, 255, 256, 1000, 0x7FFF, 0x8000, 0xFFFF, 0x10000,
    0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x9E3779B9, 0x01010101, 0x123456789, 0x7FFFFFFFFFFFFFFF,
    0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 0xFEDCBA9876543210,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure's name and its members: declaration, path and type."""

    name: str
    declared: tuple[str, ...]
    paths: tuple[tuple[str, str], ...]  # (".a", "u32"), (".b[%]", "u8") with % for an index below 4

    def text(self) -> str:
        return f"struct {self.name} {{ {' '.join(self.declared)} }};"


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    result: str
    parameters: tuple[str, ...]  # types; "u32 *" for pointers, "S0 *" for structures


@dataclass(slots=True)
class Body:
    """A function that is being written."""

    rng: random.Random
    functions: list[Function]
    structures: list[Structure]
    readable: list[tuple[str, str]]  # text and type; % is an index below 4
    writable: list[tuple[str, str]]
    pointers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    objects: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    plain: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    lines: list[str] = field(default_factory=list[str])
    depth: int = 1
    loops: int = 0
    count: int = 0
    calls: int = 0

    def put(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # --- expressions -------------------------------------------------------------------------

    def constant(self, kind: str) -> str:
        rng = self.rng
        value = rng.choice(_CONSTANTS) if rng.random() < 0.85 else rng.getrandbits(64)
        value &= (1 << BITS[kind]) - 1
        return f"({kind}){value}{'ull' if value >> 32 else 'u'}"

    def filled(self, text: str, depth: int) -> str:
        """A place with its index."""
        if "%" not in text:
            return text
        index = str(self.rng.randrange(4)) if self.rng.random() < 0.3 else (
            f"({self.value('u32', depth + 1)}) & 3"
        )  # fmt: skip
        return text.replace("%", index)

    def leaf(self, kind: str, depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.18:
            return self.constant(kind)
        same = [t for t, k in self.readable if k == kind]
        pool = same if same and rng.random() < 0.6 else [t for t, _ in self.readable]
        text = rng.choice(pool)
        return f"({kind}){self.filled(text, max(depth, 2))}"

    def condition(self, depth: int) -> str:
        rng = self.rng
        kind = rng.choice(TYPES)
        op = rng.choice(("<", ">", "<=", ">=", "==", "!="))
        text = f"{self.value(kind, depth + 1)} {op} {self.value(kind, depth + 1)}"
        r = rng.random()
        if r < 0.12 and depth < 2:
            text = f"(({text}) {rng.choice(('&&', '||'))} ({self.condition(depth + 1)}))"
        elif r < 0.3:
            text = f"({self.leaf('u32', 2)} & {rng.choice((1, 2, 4, 8, 0x80))}u) != 0"
        return text

    def value(self, kind: str, depth: int = 0) -> str:
        """An expression of a type, in brackets or cast."""
        rng = self.rng
        if depth > 2 or rng.random() < 0.15 * (depth + 1):
            return self.leaf(kind, depth)
        d = depth + 1
        wide = rng.choice(("u64", "i64")) if BITS[kind] == 64 else rng.choice(("u32", "i32"))
        w = kind if BITS[kind] >= 32 and rng.random() < 0.6 else wide
        u, bits = "u" + w[1:], BITS[w]
        r = rng.randrange(30)
        if r < 9:
            op = rng.choice("+-*&|^+-")
            text = f"({w})(({u}){self.value(w, d)} {op} ({u}){self.value(w, d)})"
        elif r < 11:
            text = f"{rng.choice(('div', 'rem'))}_{w}({self.value(w, d)}, {self.value(w, d)})"
        elif r < 14:
            by = (
                rng.randrange(bits)
                if rng.random() < 0.5
                else f"({self.leaf('u32', d)} & {bits - 1})"
            )
            text = (
                f"({w})(({u}){self.value(w, d)} << {by})"
                if rng.random() < 0.5
                else f"({w})(({w}){self.value(w, d)} >> {by})"
            )
        elif r < 16:
            text = rng.choice(
                (f"({w})~({u}){self.value(w, d)}", f"({w})(0 - ({u}){self.value(w, d)})")
            )
        elif r < 18:
            text = f"({self.condition(d)} ? {self.value(w, d)} : {self.value(w, d)})"
        elif r < 20:
            text = f"({w})({self.condition(d)})"
        elif r < 22:
            text = f"{rng.choice(('min', 'max'))}(({w}){self.value(w, d)}, ({w}){self.value(w, d)})"
        elif r < 24:
            other = rng.choice(TYPES)
            text = f"({w})({other})({self.value(other, d)})"
        elif r < 27:
            text = f"({w}){self.intrinsic(bits, d)}"
        elif r == 27 and self.pure() and self.calls < 4:
            text = f"({w}){self.call(d, self.pure())}"
        else:
            return self.leaf(kind, d)
        return text if w == kind else f"({kind})({text})"

    def intrinsic(self, bits: int, d: int) -> str:
        rng = self.rng
        if bits == 64:
            a = self.value("u64", d)
            return rng.choice((
                f"__popcll({a})", f"__clzll({a})", f"__ffsll({a})", f"__brevll({a})",
                f"__umul64hi({a}, {self.value('u64', d)})", f"__mul64hi({a}, {self.leaf('i64', d)})",
                f"((u64){self.value('u32', d)} * {self.value('u32', d)})",
                f"((i64){self.value('i32', d)} * {self.value('i32', d)})",
            ))  # fmt: skip
        a, b, c = self.value("u32", d), self.leaf("u32", d), self.leaf("u32", d)
        return rng.choice((
            f"__popc({a})", f"__clz({a})", f"__ffs({a})", f"__brev({a})", f"__byte_perm({a}, {b}, {c})",
            f"__byte_perm({a}, {b}, {rng.choice((0x3210, 0x0123, 0x5410, 0x7632, 0x4040, 0x3715))})",
            f"__umulhi({a}, {b})", f"__mulhi({a}, {b})", f"__funnelshift_l({a}, {b}, {c})",
            f"__funnelshift_r({a}, {b}, {c})", f"__funnelshift_rc({a}, {b}, {c})",
            f"__sad({a}, {b}, {c})", f"__usad({a}, {b}, {c})", f"__umul24({a}, {b})",
            f"__mul24({a}, {b})", f"__uhadd({a}, {b})", f"__rhadd({a}, {b})", f"__vadd4({a}, {b})",
            f"__vmaxs2({a}, {b})", f"__dp4a({a}, {b}, {c})", f"__vabsdiffu4({a}, {b})",
        ))  # fmt: skip

    def pure(self) -> list[Function]:
        """Functions that change nothing here: C++ leaves open when, within an expression."""
        return [f for f in self.functions if not any(p.endswith("*") for p in f.parameters)]

    def call(self, depth: int, functions: list[Function]) -> str:
        """A call of an earlier function; objects that it changes are this one's."""
        rng = self.rng
        self.calls += 1
        f = rng.choice(functions[-3:])
        given: list[str] = []
        for p in f.parameters:
            if not p.endswith("*"):
                given.append(self.value(p, max(depth, 2)))
                continue
            kind = p[:-2]
            if kind[0] == "S":
                given.append(next(t for t, k in self.objects if k == kind))
            else:
                mine = [t for t, k in self.pointers if k == kind]
                mine += [f"&{t}" for t, k in self.plain if k == kind]
                given.append(rng.choice(mine) if mine else f"&spare_{kind}")
        return f"{f.name}({', '.join(given)})"

    # --- statements --------------------------------------------------------------------------

    def assign(self) -> None:
        rng = self.rng
        text, kind = rng.choice(self.writable)
        place = self.filled(text, 1)
        if rng.random() < 0.25 and BITS[kind] >= 32 and kind[0] == "u":
            self.put(
                f"{place} {rng.choice(('+=', '^=', '-=', '|=', '*=', '&='))} {self.value(kind, 1)};"
            )
        else:
            self.put(f"{place} = {self.value(kind)};")

    def aim(self) -> None:
        """A pointer is set, perhaps by a condition."""
        text, kind = self.rng.choice(self.pointers)
        targets = [t for t, k in self.plain if k == kind]
        if len(targets) < 2:
            return self.assign()
        a, b = self.rng.choice(targets), self.rng.choice(targets)
        self.put(f"{text} = {self.condition(2)} ? &{a} : &{b};")
        return None

    def copy(self) -> None:
        kinds = [k for _, k in self.objects]
        twice = [k for k in kinds if kinds.count(k) > 1]
        if not twice:
            return self.assign()
        kind = self.rng.choice(twice)
        a, b = self.rng.sample([t for t, k in self.objects if k == kind], 2)
        star = [f"*{t}" if t.startswith("p") else t[1:] for t in (a, b)]
        self.put(f"if ({self.condition(2)}) {star[0]} = {star[1]};")
        return None

    def nested(self, most: int) -> None:
        self.depth += 1
        self.body(most)
        self.depth -= 1

    def body(self, most: int) -> None:
        rng = self.rng
        for _ in range(rng.randrange(1, most + 1)):
            r = rng.random()
            if r < 0.5 or self.depth > 3 or len(self.lines) > 55:
                self.assign()
            elif r < 0.56 and self.pointers:
                self.aim()
            elif r < 0.6:
                self.copy()
            elif r < 0.74:
                self.put(f"if ({self.condition(0)}) {{")
                self.nested(3)
                if rng.random() < 0.5:
                    self.put("} else {")
                    self.nested(3)
                self.put("}")
            elif r < 0.84 and self.loops < 2:
                self.loop()
            elif r < 0.9:
                self.switch()
            elif r < 0.95 and self.functions and self.calls < 4:
                self.put(
                    f"{rng.choice([t for t, _ in self.plain])} ^= {self.call(1, self.functions)};"
                )
            elif self.loops and rng.random() < 0.6:
                self.put(f"if ({self.condition(1)}) {rng.choice(('break', 'continue'))};")
            else:
                self.jump()

    def loop(self) -> None:
        rng = self.rng
        i = self.fresh("k")
        bound = rng.choice((str(rng.randrange(1, 7)), f"(int)({self.leaf('u32', 2)} & 7)"))
        self.loops += 1
        if rng.random() < 0.7:
            if rng.random() < 0.3:
                self.put("#pragma unroll 1")
            self.put(f"for (int {i} = 0; {i} < {bound}; {i} += {rng.choice((1, 1, 2, 3))}) {{")
            self.readable.append((i, "i32"))
            self.nested(3)
            self.readable.remove((i, "i32"))
            self.put("}")
        else:
            self.put(f"{{ int {i} = {bound}; do {{")
            self.nested(3)
            self.put(f"}} while (--{i} > 0 && {self.condition(1)}); }}")
        self.loops -= 1

    def switch(self) -> None:
        rng = self.rng
        dense = rng.random() < 0.7
        self.put(f"switch ({self.value('u32', 1)}{' & 7' if dense else ''}) {{")
        cases = (
            rng.sample(range(8), rng.randrange(3, 8)) if dense else rng.sample(_CONSTANTS[:27], 5)
        )
        loops, self.loops = self.loops, self.loops and 2
        for case in cases:
            self.put(f"case {case & 0xFFFFFFFF}u:")
            inner, self.loops = self.loops, 0
            at = self.depth
            self.depth = max(self.depth, 3)
            self.nested(2)
            self.depth, self.loops = at, inner
            if rng.random() < 0.75:
                self.put("  break;")
        if rng.random() < 0.6:
            self.put("default:")
            self.depth += 1
            self.assign()
            self.depth -= 1
        self.loops = loops
        self.put("}")

    def jump(self) -> None:
        """A goto past some statements, or back as often as a counter lets it."""
        label = self.fresh("L")
        if self.rng.random() < 0.6:
            self.put(f"if ({self.condition(1)}) goto {label};")
            self.nested_block()
            self.put(f"{label}: ;")
        else:
            self.put(f"{label}: ;")
            self.nested_block()
            self.put(
                f"if (++turns < {self.rng.randrange(3, 9)} && {self.condition(1)}) goto {label};"
            )

    def nested_block(self) -> None:
        loops, self.loops = self.loops, 0
        at = self.depth
        self.depth = max(self.depth, 2)
        self.put("{")
        self.nested(2)
        self.put("}")
        self.depth, self.loops = at, loops


def _structure(rng: random.Random, name: str) -> Structure:
    declared: list[str] = []
    paths: list[tuple[str, str]] = []
    for n in range(rng.randrange(2, 6)):
        kind, member = rng.choice(TYPES), "abcdef"[n]
        r = rng.random()
        if r < 0.2:
            bits = rng.randrange(1, BITS[kind] + 1)
            declared.append(f"{kind} {member} : {bits};")
            paths.append((f".{member}", kind))
        elif r < 0.4:
            declared.append(f"{kind} {member}[4];")
            paths.append((f".{member}[%]", kind))
        else:
            declared.append(f"{kind} {member};")
            paths.append((f".{member}", kind))
    return Structure(name, tuple(declared), tuple(paths))


SAFE = "".join(
    f"static __device__ __forceinline__ {t} div_{t}({t} a, {t} b) {{ return {guard} ? a : a / b; }}\n"
    f"static __device__ __forceinline__ {t} rem_{t}({t} a, {t} b) {{ return {guard} ? b : a % b; }}\n"
    for t, guard in (
        ("u32", "b == 0"),
        ("u64", "b == 0"),
        ("i32", "(b == 0 || (b == -1 && a == (i32)0x80000000u))"),
        ("i64", "(b == 0 || (b == -1 && a == (i64)0x8000000000000000ull))"),
    )
)


def _tables(rng: random.Random, name: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Read-only arrays: their definitions, and how they are read."""
    lines: list[str] = []
    read: list[tuple[str, str]] = []
    for n in range(rng.randrange(1, 4)):
        kind = rng.choice(TYPES)
        where = rng.choice(("__constant__", "__device__ const", "__device__"))
        values = ", ".join(
            f"({kind}){rng.choice((*_CONSTANTS, rng.getrandbits(64)))}ull" for _ in range(4)
        )
        lines.append(f"{where} {kind} {name}_t{n}[4] = {{ {values} }};")
        read.append((f"{name}_t{n}[%]", kind))
    return lines, read


def _function(
    rng: random.Random, name: str, functions: list[Function], structures: list[Structure],
    tables: list[tuple[str, str]],
) -> tuple[Function, str]:  # fmt: skip
    parameters: list[str] = []
    for _ in range(rng.randrange(1, 5)):
        r = rng.random()
        kind = rng.choice(TYPES)
        if r < 0.25:
            parameters.append(f"{rng.choice(('u32', 'i32', 'u64', 'i16', 'u8'))} *")
        elif r < 0.45:
            parameters.append(f"{rng.choice(structures).name} *")
        else:
            parameters.append(kind)
    made = Function(name, rng.choice(TYPES), tuple(parameters))
    said: list[str] = []
    body = Body(rng, functions, structures, list(tables), [])
    for n, p in enumerate(parameters):
        said.append(f"{p}p{n}" if p.endswith("*") else f"{p} p{n}")
        if not p.endswith("*"):
            body.plain.append((f"p{n}", p))
        elif p[0] == "S":
            body.objects.append((f"p{n}", p[:-2]))
        else:
            body.pointers.append((f"p{n}", p[:-2]))
    lines = _locals(body)
    body.body(6)
    inline = rng.choice(("__noinline__ ", "__noinline__ ", ""))
    head = f"static __device__ {inline}{made.result} {name}({', '.join(said)}) {{"
    back = f"  return {body.value(made.result, 1)};\n}}"
    return made, "\n".join([head, *lines, *body.lines, back])


def _locals(body: Body, first: str = "") -> list[str]:
    """Declares variables of every needed kind and makes all places known."""
    rng = body.rng
    lines = ["  int turns = 0; (void)turns;"]
    for kind in ("u32", "i32", "u64", "i16", "u8"):
        lines.append(f"  {kind} spare_{kind} = 3; (void)spare_{kind};")
    seeds = [t for t, _ in body.plain] or [first or "1u"]
    for n in range(rng.randrange(3, 7)):
        kind = rng.choice(TYPES)
        lines.append(f"  {kind} v{n} = ({kind}){rng.choice([*seeds, first or '7u'])};")
        body.plain.append((f"v{n}", kind))
    if rng.random() < 0.5:
        kind = rng.choice(TYPES)
        lines.append(f"  {kind} own[4] = {{ 1, 2, ({kind}){rng.choice(seeds)}, 0 }};")
        body.readable.append(("own[%]", kind))
        body.writable.append(("own[%]", kind))
    have = {k for _, k in body.objects}
    for s in body.structures:
        copies = 1 if s.name in have else rng.randrange(1, 3)
        for c in range(copies):
            name = f"s{s.name[1:]}_{c}"
            lines.append(f"  {s.name} {name} = {s.name}(); ")
            body.objects.append((f"&{name}", s.name))
    for kind in ("u32", "i32", "u64"):
        targets = [t for t, k in body.plain if k == kind]
        if len(targets) > 1 and rng.random() < 0.7:
            q = body.fresh("q")
            lines.append(f"  {kind} *{q} = &{targets[0]};")
            body.pointers.append((q, kind))
    places = list(body.plain) + [(f"(*{t})", k) for t, k in body.pointers]
    for text, kind in body.objects:
        of = next(s for s in body.structures if s.name == kind)
        stem = f"(*{text})" if text.startswith("p") else text[1:]
        places += [(stem + path, k) for path, k in of.paths]
        if not text.startswith("p"):
            lines += [
                f"  {stem}{p.replace('%', '1')} = ({k}){rng.choice(seeds)};" for p, k in of.paths
            ]
    body.readable += places
    body.writable += places
    return lines


def program(rng: random.Random, name: str) -> Kernel:
    """A kernel with its structures, tables and functions."""
    stem = f"S{name.rpartition('_')[2]}"
    structures = [_structure(rng, f"{stem}{c}") for c in "xy"[: rng.randrange(1, 3)]]
    parts = [s.text() for s in structures]
    lines, tables = _tables(rng, name)
    parts += lines
    functions: list[Function] = []
    for n in range(rng.randrange(0, 4)):
        made, text = _function(rng, f"{name}_f{n}", functions, structures, tables)
        parts.append(text)
        functions.append(made)
    body = Body(rng, functions, structures, list(tables), [])
    body.plain += [("a", "u32"), ("b", "i32"), ("c", "u64")]
    head = [f'extern "C" __global__ void {name}(const u32 *in, u32 *out, u32 n) {{',
            "  u32 t = blockIdx.x * blockDim.x + threadIdx.x;",
            "  u32 a = IN(0); i32 b = (i32)IN(1); u64 c = IN64(2);"]  # fmt: skip
    own = _locals(body, "IN(4)")
    body.readable += [("t", "u32"), ("n", "u32"), ("IN(5)", "u32")]
    body.body(9)
    while len(body.lines) < 12:
        body.body(6)
    ends = ["  u64 h = 1469598103934665603ull;"]
    for text, _ in [*body.plain[:12]]:
        ends.append(f"  h = (h ^ (u64){text}) * 1099511628211ull;")
    for text, kind in body.objects:
        of = next(s for s in structures if s.name == kind)
        for path, _ in of.paths:
            for index in range(4) if "%" in path else (0,):
                ends.append(
                    f"  h = (h ^ (u64){text[1:]}{path.replace('%', str(index))}) * 1099511628211ull;"
                )
    ends += ["  PUT64(0, h)", "  PUT(2, a); PUT(3, (u32)b); PUT64(4, c)", "}"]
    text = "\n".join([*parts, *head, *own, *body.lines, *ends])
    return Kernel(name, "programs", text, "rrrrrr", "iil-rs", helpers=SAFE)


def kernels(seed: int, first: int, count: int) -> list[Kernel]:
    """Programs ``first`` to ``first + count``."""
    return [
        program(random.Random(f"programs {seed} {n}"), named("programs", seed, n))
        for n in range(first, first + count)
    ]
