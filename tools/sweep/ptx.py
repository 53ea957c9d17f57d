"""Shape ``ptx``: one PTX instruction per kernel, over edges of its operands' types, in rounds."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass

from .kernel import Kernel, named
from .ptx_forms import FORMS

ROUNDS = 4
# of a letter: the constraint, the C type, the profile of its stream, the slot's kind
_LETTERS = {
    "r": ("r", "u32", "i", "r"), "l": ("l", "u64", "l", "rr"), "h": ("h", "u16", "i", "r"),
    "f": ("r", "u32", "f", "f"), "d": ("l", "u64", "d", "d-"), "e": ("h", "u16", "E", "E"),
    "E": ("r", "u32", "E", "E"), "b": ("h", "u16", "B", "B"), "B": ("r", "u32", "B", "B"),
    "p": ("r", "u32", "s", "r"), "s": ("r", "u32", "s", "r"), "a": ("r", "u32", "a", "f"),
    "q": ("r", "u32", "i", "r"), "Q": ("l", "u64", "l", "rr"), "H": ("r", "u32", "i", "r"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """An instruction with the letters of its operands."""

    operation: str
    letters: tuple[str, ...]
    oldest: int
    bound: str


def _expanded(text: str) -> list[str]:
    parts = re.split(r"\{([^}]*)\}", text)
    choices = [p.split(",") if k % 2 else [p] for k, p in enumerate(parts)]
    return ["".join(c) for c in itertools.product(*choices)]


def forms() -> list[Form]:
    """All forms, in the order of the table."""
    found: list[Form] = []
    for line in FORMS.strip().splitlines():
        operation, *rest = line.split()
        oldest, bound = 75, ""
        letters: list[str] = []
        for word in rest:
            if word[0] == "@":
                oldest = int(word[1:])
            elif word[0] == "~":
                bound = word[1:]
            else:
                letters.append(word)
        found += [Form(o, tuple(letters), oldest, bound) for o in _expanded(operation)]
    return found


def _operands(letters: list[str]) -> tuple[list[str], str, int]:
    """Expressions for a round with ``@`` for its first stream, profiles, streams of a round."""
    texts: list[str] = []
    profiles = ""
    for letter in letters:
        _, kind, profile, _ = _LETTERS[letter]
        at = f"@+{len(profiles)}"
        wide = kind == "u64"
        text = f"{'IN64' if wide else 'IN'}({at})"
        text = f"({text} | 1)" if letter in "qQ" else f"(u16){text}" if kind == "u16" else text
        texts.append(text)
        profiles += profile + ("-" if wide else "")
    return texts, profiles, len(profiles)


def _statement(form: Form, rng: random.Random) -> tuple[str, str, str]:
    """The asm statement that sets ``d``, the result's letter and the operands' letters."""
    out, *ins = form.letters
    regs = [i for i in ins if i[0] != "#" and i != "M"]
    before, n = "", 1
    names: list[str] = []
    for letter in ins:
        if letter[0] == "#":
            names.append(str(rng.randrange(int(letter[1:]))))
            continue
        if letter == "M":
            names.append("0xffffffff")
            continue
        if letter == "p":
            before += f" setp.gt.u32 i{n}, %{n}, 19;"
            names.append(f"i{n}")
        else:
            names.append(f"%{n}")
        n += 1
    result = "q0" if out == "p" else "%0"
    declared = "".join(f" .reg .pred {p};" for p in ("q0", *(f"i{k}" for k in range(1, n))))
    after = " selp.u32 %0, 1, 0, q0;" if out == "p" else ""
    if out in "h" and form.operation.endswith(("s8", "u8")):
        result = "%0"
    text = f"{{{declared}{before} {form.operation} {', '.join([result, *names])};{after} }}"
    return text, out, "".join(regs)


_SELECT = ("b0", "b1", "b2", "b3", "h0", "h1")


def _special(form: Form, rng: random.Random) -> tuple[str, str, str]:
    """Statements whose operands have selectors, or that are several instructions."""
    kind, op = form.letters[0], form.operation
    types = [rng.choice(("u32", "s32")) for _ in range(3)]
    if kind in ("VIDEO", "VSET"):
        joint = rng.choice(("", "", "add", "min", "max"))
        name, dot, sat = op.partition(".")
        d, a, b = types
        if kind == "VSET":
            compare = rng.choice(("eq", "ne", "lt", "le", "gt", "ge"))
            text = f"vset.{a}.{b}.{compare}{'.' + joint if joint else ''}"
        else:
            text = f"{name}.{d}.{a}.{b}{dot}{sat}{'.' + joint if joint else ''}"
        text += f" %0, %1.{rng.choice(_SELECT)}, %2.{rng.choice(_SELECT)}{', %3' if joint else ''}"
        return f"{text};", "r", "rrr"
    if kind == "VSHIFT":
        name, dot, sat = op.partition(".")
        mode = rng.choice((".clamp", ".wrap"))
        text = (
            f"{name}.{types[0]}.{types[1]}.u32{dot}{sat}{mode} %0, %1.{rng.choice(_SELECT)}, %2.b0"
        )
        return f"{text};", "r", "rs"
    if kind == "VMAD":
        # s32 unless all are unsigned, as the instruction wants it
        d = "u32" if types[1:] == ["u32", "u32"] else "s32"
        sat, shift = rng.choice(("", ".sat")), rng.choice(("", ".shr7", ".shr15"))
        text = f"vmad.{d}.{types[1]}.{types[2]}{sat}{shift} %0, %1.{rng.choice(_SELECT)}, %2.{rng.choice(_SELECT)}, %3"
        return f"{text};", "r", "rrr"
    if kind in ("SIMD2", "SIMD4"):
        add = rng.choice(("", "", ".add"))
        name, dot, sat = op.partition(".")
        if add:
            dot = sat = ""
        return f"{name}.{types[0]}.{types[1]}.{types[2]}{dot}{sat}{add} %0, %1, %2, %3;", "r", "rrr"
    if kind in ("VSET2", "VSET4"):
        compare = rng.choice(("eq", "ne", "lt", "le", "gt", "ge"))
        add = rng.choice(("", ".add"))
        return f"{op}.{types[0]}.{types[1]}.{compare}{add} %0, %1, %2, %3;", "r", "rrr"
    if kind == "SHFL":
        limit = rng.choice(("31", "0", "0x1f1f", "0x181f", "0x1c1f", "0x1800", "%3", "7"))
        text = (
            f"{{ .reg .pred p; {op} %0|p, %1, %2, {limit}, 0xffffffff; @!p add.u32 %0, %0, 77; }}"
        )
        return text, "r", "r" + rng.choice("sr") + "r"
    if kind == "CARRY":
        w = rng.choice(("u32", "s32"))
        return f"add.cc.{w} %0, %1, %2; addc.cc.u32 %0, %0, %3; addc.u32 %0, %0, %1;", "r", "rrr"
    if kind == "BORROW":
        return "sub.cc.u32 %0, %1, %2; subc.cc.u32 %0, %0, %3; subc.u32 %0, %0, %1;", "r", "rrr"
    a, b = rng.choice(("lo", "hi")), rng.choice(("lo", "hi"))
    w = rng.choice(("u32", "s32"))
    return (f"{{ .reg .u32 k; mad.{a}.cc.{w} k, %1, %2, %3; madc.{b}.cc.u32 k, k, %2, %1;"
            f" madc.hi.{w} %0, k, %3, %2; }}"), "r", "rrr"  # fmt: skip


def _atomic(form: Form, name: str) -> Kernel:
    """Each lane has a word of its own; its old value and what is left are the results."""
    kind, letter = form.letters
    constraint, c, profile, slot = _LETTERS[letter]
    shared, cas, red = kind in ("ATOMS", "CASS"), kind.startswith("CAS"), kind == "RED"
    size = {"u32": 4, "u64": 8, "u16": 2}[c]
    cells = 64 if shared else 128
    streams = profile + ("-" if size == 8 else "")
    load = "IN64" if size == 8 else f"({c})IN"
    step = len(streams)
    asm = form.operation + (" " if red else " %0, ") + "[%1], %2" + (", %3" if cas else "") + ";"
    slots = ""
    body: list[str] = []
    for k in range(2):
        at = k * 3 * step
        body.append(f"  old = 0; cells[i] = {load}({at}); __syncthreads();")
        compare = (
            f'"{constraint}"(({c})(IN({at + step}) & 1 ? cells[i] : {load}({at + step}))), '
            if cas
            else ""
        )
        space = '"l"(__cvta_generic_to_shared(cells + i))' if shared else '"l"(cells + i)'
        body.append(f'  asm volatile("{asm}" : "+{constraint}"(old) : {space}, {compare}'
                    f'"{constraint}"({load}({at + 2 * step})) : "memory");')  # fmt: skip
        put = "PUT64" if size == 8 else "PUT"
        wide = 2 if size == 8 else 1
        base = len(slots)
        body.append(f"  {put}({base}, old); {put}({base + wide}, cells[i]);")
        slots += slot * 2
    home = (
        f"__shared__ {c} cells[{cells}]; const u32 i = threadIdx.x;"
        if shared
        else f"{c} *cells = {name}_cells; const u32 i = t;"
    )
    text = "\n".join([
        "" if shared else f"__device__ {c} {name}_cells[128];",
        f'extern "C" __global__ void {name}(const u32 *in, u32 *out, u32 n) {{',
        f"  u32 t = blockIdx.x * blockDim.x + threadIdx.x; {home} {c} old = 0;",
        *body, "}",
    ])  # fmt: skip
    return Kernel(name, "ptx", text, slots, streams * 6, oldest=form.oldest)


def instruction(form: Form, rng: random.Random, name: str) -> Kernel:
    """The kernel of a form; immediates and selectors are drawn."""
    if form.letters[0].startswith(("ATOM", "CAS", "RED")):
        return _atomic(form, name)
    special = form.letters[0].isupper() and len(form.letters[0]) > 1
    asm, out, ins = _special(form, rng) if special else _statement(form, rng)
    constraint, c, _, slot = _LETTERS[out]
    ins_letters = list(ins)
    if "p" in ins_letters and form.bound:  # floats from 0 to 8, not predicates
        ins_letters = ["a" if x == "p" else x for x in ins_letters]
        asm = re.sub(r" setp\.gt\.u32 i(\d), %\d, 19;", "", asm)
        asm = re.sub(r"\bi(\d)\b(?=[,;])", r"%\1", asm)
        asm = re.sub(r" \.reg \.pred %\d;", "", asm)
    texts, profiles, step = _operands(ins_letters)
    if form.bound and "p" in ins:
        profiles = profiles.replace("a", "p")
    constraints = ", ".join(
        f'"{_LETTERS[x][0]}"({text})' for x, text in zip(ins_letters, texts, strict=True)
    )
    put = "PUT64" if c == "u64" else "PUT"
    lines = [f'extern "C" __global__ void {name}(const u32 *in, u32 *out, u32 n) {{',
             f"  u32 t = blockIdx.x * blockDim.x + threadIdx.x; {c} d;"]  # fmt: skip
    early = "=&" if special else "="
    for k in range(ROUNDS):
        given = constraints.replace("@", str(k * step))
        lines.append(f'  asm volatile("{asm}" : "{early}{constraint}"(d) : {given});')
        lines.append(f"  {put}({k * len(slot)}, d);")
    lines.append("}")
    return Kernel(
        name, "ptx", "\n".join(lines), slot * ROUNDS, profiles * ROUNDS, bound=form.bound,
        oldest=form.oldest,
    )  # fmt: skip


def kernels(seed: int, first: int, count: int) -> list[Kernel]:
    """Kernels ``first`` to ``first + count``: the table from its beginning, again and again."""
    table = forms()
    return [
        instruction(table[n % len(table)], random.Random(f"ptx {seed} {n}"), named("ptx", seed, n))
        for n in range(first, first + count)
    ]
