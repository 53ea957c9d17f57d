"""Writes ``docs/sass``: a page a mnemonic, an index and the common layout, from the tables alone.

::

    python tools/sass_docs.py [--check]

``--check`` writes nothing and exits with 1 where a page is not what the tables say;
``pytest tests/sass --bless`` writes the pages as well.  No tool of NVIDIA's is asked: the examples
are those of ``tests/sass/golden``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from sassxlate.disasm.sass import tables  # noqa: E402
from sassxlate.disasm.sass.compiler import operand_bits, ureg_bits  # noqa: E402
from sassxlate.disasm.sass.spec import (  # noqa: E402
    GENERATION_OF,
    GENERATIONS,
    SB,
    B,
    Bits,
    C,
    Count,
    Fixed,
    I,
    Idiom,
    L,
    M,
    Mask,
    Mod,
    N,
    P,
    R,
    Row,
    S,
    Select,
    When,
    bits,
)
from sassxlate.disasm.sass.specials import special_name  # noqa: E402
from sassxlate.disasm.sass.tables import forms as arithmetic  # noqa: E402

PAGES = ROOT / "docs" / "sass"
GOLDEN = ROOT / "tests" / "sass" / "golden"
OPCODE, GUARD, CONTROL = (0xFFF | 1 << 91, 0xF << 12, 0x1FFFFF << 105)
KEYS = "abcdefghijklmnpqrstuvwxyzABDEFHIJKLMNPQRSTUVWXYZ"  # not o, C, G, O
EFFECTS = {
    "p2r": "Reads the predicates of its mask as well.",
    "r2p": "Writes the predicates of its mask as well.",
    "up2ur": "Reads the uniform predicates of its mask as well.",
    "ur2up": "Writes the uniform predicates of its mask as well.",
}
Field = tuple[str, int, str]  # what it is called, its bits, what it says


def categories() -> list[tuple[str, str, tuple[Row, ...]]]:
    """(short name, sentence, rows) of each module of tables, in their order."""
    found: list[tuple[str, str, tuple[Row, ...]]] = []
    for name, module in vars(tables).items():
        rows = getattr(module, "ROWS", None)
        if isinstance(module, ModuleType) and rows:
            paragraph = (module.__doc__ or "").split("\n\n")[0].split()
            found.append((name, " ".join(paragraph), tuple(rows)))
    order = {id(row): i for i, row in enumerate(tables.ROWS)}
    return sorted(found, key=lambda item: order.get(id(item[2][0]), 0))


def generations(row: Row) -> tuple[int, ...]:
    """The encoding generations that have a row."""
    return tuple(g for g in GENERATIONS if row.of(g))


def span(found: Iterable[int]) -> str:
    """Generations as architectures: ``sm_80 to sm_90, sm_110``."""
    places = sorted(GENERATIONS.index(g) for g in found)
    out: list[str] = []
    while places:
        end = 0
        while end + 1 < len(places) and places[end + 1] == places[end] + 1:
            end += 1
        first, last = GENERATIONS[places[0]], GENERATIONS[places[end]]
        last = max(arch for arch, g in GENERATION_OF.items() if g == last)
        out.append(f"sm_{first}" if first == last else f"sm_{first} to sm_{last}")
        places = places[end + 1 :]
    return ", ".join(out)


def ranges(mask: int) -> str:
    """A mask as bit numbers: ``16-23, 72``."""
    out: list[str] = []
    at = 0
    while mask >> at:
        if not mask >> at & 1:
            at += 1
            continue
        end = at
        while mask >> end + 1 & 1:
            end += 1
        out.append(str(at) if at == end else f"{at}-{end}")
        at = end + 1
    return ", ".join(out)


def field_text(field: Bits) -> str:
    """A field's bits, the least significant piece first."""
    parts = [str(lo) if w == 1 else f"{lo}-{lo + w - 1}" for lo, w in field.parts]
    return " then ".join(parts) or "-"


def _names(names: Mapping[int, str]) -> str:
    shown = (f"{value} `{name}`" if name else f"{value} -" for value, name in sorted(names.items()))
    return ", ".join(shown)


def _signs(slot: R | C | P) -> list[str]:
    out: list[str] = []
    if isinstance(slot, P):
        return [f"`!` {slot.inv}"] if slot.inv is not None else []
    inverted = f" (`~` with .{slot.inv_if})" if slot.inv_if else ""
    for sign, bit in (("-", slot.neg), ("|x|", slot.abs), ("~", slot.inv)):
        if bit is not None:
            out.append(f"`{sign}` {bit}" + inverted * (sign == "-"))
    if slot.select is not None:
        out.append(_select(slot.select))
    return out


def _select(select: Select) -> str:
    return f"part {field_text(select.field)}: {_names(select.names)}"


def _width(width: object) -> str:
    if isinstance(width, Count):
        return f"as many registers as bits {ranges(width.field.mask)} say"
    if isinstance(width, str):
        return f"as many registers as .{width} says"
    return "" if width == 1 else f"{width} registers"


def _register(slot: R, uniform: int) -> list[str]:
    number = slot.split or bits(slot.lo, uniform if slot.file == "UR" else 8)
    way = "read and written" if slot.both else "written" if slot.write else "read"
    reuse = f"reuse {slot.reuse}" if slot.reuse is not None else ""
    extra = [f"printed `{slot.wrap}`"] if slot.wrap else []
    extra += [f"part `{slot.suffix}`"] if slot.suffix else []
    where = f"{slot.file} in {field_text(number)}"
    return [f"{way}: {where}", _width(slot.width), *_signs(slot), *extra, reuse]


def _constant(slot: C, uniform: int) -> list[str]:
    scale = f" times {slot.scale}" if slot.scale != 1 else ""
    parts = [f"read: c[bank][offset], offset {field_text(slot.offset)}{scale}"]
    if slot.bindless is None:
        parts.append(f"bank {field_text(slot.bank)}")
    else:
        parts.append(f"descriptor UR in {field_text(bits(slot.bindless, uniform))}")
    if slot.index is not None:
        width = uniform if slot.index_file == "UR" else 8
        parts.append(f"index {slot.index_file} in {field_text(bits(slot.index, width))}")
    return [*parts, _width(slot.width), *_signs(slot)]


def _memory(slot: M, uniform: int) -> list[str]:
    parts = ["written: memory" if slot.write else "memory" + f" {slot.space}" * bool(slot.space)]
    if slot.base is not None:
        parts.append(f"base R in {field_text(bits(slot.base, 8))}")
    if slot.ureg is not None:
        parts.append(f"UR in {field_text(bits(slot.ureg, uniform))}")
    kind = "signed" if slot.signed else "unsigned"
    parts.append(f"offset {field_text(slot.offset)} ({kind})" if slot.offset.parts else "")
    named = (("64-bit base", slot.wide), ("64-bit UR base", slot.uwide), ("descriptor", slot.desc))
    parts += [f"{what} {bit}" for what, bit in named if bit is not None and bit > 1]
    parts += [f"descriptor printed {slot.desc_shown}"] if slot.desc_shown is not None else []
    parts += [f"scale {field_text(slot.scale)}"] if slot.scale else []
    return parts


def describe(slot: object, generation: int) -> str:
    """What an operand is, where its parts stand, and whether it is read or written."""
    uniform = ureg_bits(generation)
    match slot:
        case R():
            parts = _register(slot, uniform)
        case C():
            parts = _constant(slot, uniform)
        case M():
            parts = _memory(slot, uniform)
        case P():
            way = "written" if slot.write else "read"
            flip = f", number xor {slot.flip}" if slot.flip else ""
            where = f"{slot.file} in {field_text(bits(slot.lo, 3))}{flip}"
            default = "usually !PT" if slot.default_inv else ""
            parts = [f"{way}: {where}", *_signs(slot), default]
        case I():
            kind = {"f16x2": "two halves", "f32": "binary32", "f64": "high half of a binary64"}
            what = kind.get(slot.kind, "signed integer" if slot.signed else "integer")
            scale = f"times {slot.scale}" if slot.scale != 1 else ""
            parts = [f"immediate: {what} in {field_text(slot.field)}", scale]
        case L():
            what = "displacement" if slot.displacement else "code address"
            base = "from the next instruction" if slot.relative else "absolute"
            parts = [f"{what} in {field_text(slot.field)}", f"times {slot.scale}", base]
        case S():
            parts = [f"read: special register in {field_text(slot.field)}"]
        case B():
            ways = ("read " * slot.read + "written " * slot.write).split()
            what = "thread state" if slot.names else "convergence barrier B"
            parts = [f"{' and '.join(ways)}: {what} in {field_text(slot.field)}"]
            parts += [_names(slot.names)] if slot.names else []
        case N():
            parts = [f"word in {field_text(slot.field)}: {_names(slot.names)}"]
        case SB():
            parts = [f"scoreboard in {field_text(slot.field)}"]
        case Mask():
            parts = [f"set in {field_text(slot.field)}"]
        case When():
            other = describe(slot.other, generation)
            parts = [f"with .{slot.mod} {describe(slot.slot, generation)}", f"else {other}"]
        case Fixed():
            inverted = "!" * slot.inv
            top = {"P": (7, "PT"), "UP": (7, "UPT"), "R": (255, "RZ")}.get(slot.kind)
            text = top[1] if top and slot.value == top[0] else f"{slot.kind} {slot.value}"
            parts = [f"always {inverted}{text}"]
        case _:
            raise TypeError(f"an operand slot of another kind: {slot!r}")
    return "; ".join(part for part in parts if part)


def fields(row: Row, generation: int) -> list[Field]:
    """Modifiers and operands with bits of their own, in this order; no two share a bit.

    Where several say what a bit means, it is shown as the first one's, and the text of each lists
    all of its bits.
    """
    constant = 0
    for fixed, _ in row.fixed:
        constant |= fixed.mask
    taken = OPCODE | GUARD | CONTROL | constant
    out: list[Field] = []
    plain = [m for m in row.mods if isinstance(m, Mod)]
    rest: list[tuple[str, int, str]] = [
        (f".{m.name}", m.field.mask, "modifier") for m in plain if m.field.parts
    ]
    for role, slot in row.operands.items():
        rest.append((role, operand_bits(slot, generation), describe(slot, generation)))
    idioms = [m for m in row.mods if isinstance(m, Idiom)]
    rest += [(f".{m.name}", m.field.mask, f"modifier; of {ranges(m.field.mask)}") for m in idioms]
    for name, mask, text in rest:
        out.append((name, mask & ~taken, text))
        taken |= mask
    return out


def bitmap(row: Row, generation: int) -> tuple[str, dict[str, str]]:
    """(128 characters, bit 127 first; key of each field that has bits of its own)."""
    cells = ["."] * 128

    def fill(mask: int, key: str) -> None:
        for i in range(128):
            if mask >> i & 1:
                cells[i] = key

    for free, key in ((row.free, "-"), (row.ones, "+"), (row.reserved, "!")):
        for field in free:
            fill(field.mask, key)
    keys: dict[str, str] = {}
    names = iter(KEYS)
    for name, mask, _ in fields(row, generation):
        if mask:
            keys[name] = next(names)
            fill(mask, keys[name])
    fill(CONTROL, "C")
    fill(GUARD, "G")
    for i in range(12):
        cells[i] = str(row.opcode >> i & 1)
    cells[91] = str(row.opcode >> 12 & 1)
    for fixed, value in row.fixed:
        place = 0
        for lo, width in fixed.parts:
            for i in range(width):
                cells[lo + i] = str(value >> place & 1)
                place += 1
    return "".join(reversed(cells)), keys


def picture(row: Row, generation: int) -> list[str]:
    """The bits in four lines of 32, the highest first, in groups of eight."""
    text, _ = bitmap(row, generation)
    lines: list[str] = []
    for i in range(4):
        part = text[32 * i : 32 * i + 32]
        groups = " ".join(part[j : j + 8] for j in range(0, 32, 8))
        lines.append(f"{127 - 32 * i:3} {groups} {96 - 32 * i:2}")
    return lines


@cache
def examples() -> dict[int, dict[int, tuple[str, str]]]:
    """Row (its place in ROWS) to architecture to (word in hexadecimal, text)."""
    found: dict[int, dict[int, tuple[str, str]]] = {}
    for path in sorted(GOLDEN.glob("sm_*.txt"), key=lambda p: int(p.stem[3:])):
        arch = int(path.stem[3:])
        table = _by_opcode(GENERATION_OF[arch])
        for line in path.read_text(encoding="utf-8").splitlines():
            digits, _, text = line.partition(" ")
            word = int(digits, 16)
            for number, mask, value in table.get(word & 0xFFF | word >> 79 & 0x1000, ()):
                if word & mask == value:
                    found.setdefault(number, {}).setdefault(arch, (digits, text))
                    break
    return found


def _by_opcode(generation: int) -> dict[int, list[tuple[int, int, int]]]:
    """Opcode to (place in ROWS, fixed bits, their values), the most specific first."""
    table: dict[int, list[tuple[int, int, int]]] = {}
    for number, row in enumerate(tables.ROWS):
        if not row.of(generation):
            continue
        mask = value = 0
        for fixed, constant in row.fixed:
            mask |= fixed.mask
            place = 0
            for lo, width in fixed.parts:
                value |= (constant >> place & (1 << width) - 1) << lo
                place += width
        table.setdefault(row.opcode, []).append((number, mask, value))
    return {k: sorted(v, key=lambda item: -item[1].bit_count()) for k, v in table.items()}


def _modifier(mod: Mod | Idiom) -> str:
    """Bits and values of a modifier, as cells of a table."""
    if isinstance(mod, Idiom):
        return f"{ranges(mod.field.mask)} | several fields decide together"
    if not mod.field.parts:
        return f"- | always `{mod.names[0]}`"
    return f"{field_text(mod.field)} | {_names(mod.names)}{_counts(mod)}"


def labels(rows: Iterable[Row]) -> dict[tuple[str, str], str]:
    """(name, cells) of the distinct modifiers of a mnemonic to what the page calls them: those of
    the same name are numbered."""
    out: dict[tuple[str, str], str] = {}
    counts: dict[str, int] = {}
    for row in rows:
        for mod in row.mods:
            key = mod.name, _modifier(mod)
            if key not in out:
                counts[mod.name] = number = counts.get(mod.name, 0) + 1
                out[key] = mod.name if number == 1 else f"{mod.name} ({number})"
    return out


def modifier_table(named: Mapping[tuple[str, str], str]) -> list[str]:
    """Each distinct modifier of a mnemonic once, with its values."""
    if not named:
        return []
    rows = [f"| {label} | {cells} |" for (_, cells), label in named.items()]
    return ["## Modifiers", "", "| modifier | bits | values |", "|---|---|---|", *rows, ""]


def _counts(mod: Mod) -> str:
    if not mod.widths:
        return ""
    shown = (f"{value}: {count}" for value, count in sorted(mod.widths.items()))
    return f"; registers by value {', '.join(shown)}"


def form(number: int, row: Row, heading: int, named: Mapping[tuple[str, str], str]) -> list[str]:
    """One form: text, architectures, bits, operands, an example an architecture."""
    found = generations(row)
    always = [m.names[0] for m in row.mods if isinstance(m, Mod) and not m.field.parts]
    name = ".".join([row.mnemonic, *always])
    out = [f"## {heading}. `{f'{name} {row.text}'.strip()}`", ""]
    kind = "uniform guard; " if row.guard == "UP" else ""
    out += [f"{span(found)}; {kind}opcode {row.opcode & 0xFFF:#05x}, bit 91 {row.opcode >> 12}", ""]
    if row.effect:
        out += [f"{EFFECTS[row.effect]}", ""]
    pictures: dict[tuple[str, ...], list[int]] = {}
    for generation in found:
        pictures.setdefault(tuple(picture(row, generation)), []).append(generation)
    for lines, where in pictures.items():
        if len(pictures) > 1:
            out += [f"{span(where)}:", ""]
        out += ["```", *lines, "```", ""]
    _, keys = bitmap(row, found[-1])
    out += ["| | field | bits | |", "|---|---|---|---|"]
    mods = {f".{m.name}": m for m in row.mods}
    for label, mask, text in fields(row, found[-1]):
        mod = mods.get(label)
        place = field_text(mod.field) if isinstance(mod, Mod) else ranges(mask) or "-"
        shown = f".{named[mod.name, _modifier(mod)]}" if mod else label
        out.append(f"| {keys.get(label, '')} | {shown} | {place} | {text} |")
    out.append("")
    rows = examples().get(number, {})
    if rows:
        body = [f"sm_{arch:<3} {word} {text}" for arch, (word, text) in sorted(rows.items())]
        out += ["```", *body, "```", ""]
    return out


def page(mnemonic: str, category: str, rows: list[tuple[int, Row]]) -> str:
    """The page of a mnemonic."""
    everywhere = span({g for _, row in rows for g in generations(row)})
    plural = "1 form" if len(rows) == 1 else f"{len(rows)} forms"
    out = [f"# {mnemonic}", "", f"[{category}](README.md#{category}); {plural}; {everywhere}.", ""]
    named = labels(row for _, row in rows)
    out += modifier_table(named)
    for heading, (number, row) in enumerate(rows, 1):
        out += form(number, row, heading, named)
    return "\n".join(out).rstrip("\n") + "\n"


LAYOUT = """\
# The common layout

Every instruction is a word of 128 bits, little-endian; bit 0 is the lowest of the first byte.

```
127 ..CCCCCC CCCCCCCC CCCCCCC. ....0... 96
 95 ........ ........ ........ ........ 64
 63 ........ ........ ........ ........ 32
 31 ........ ........ GGGG0000 00000000  0
```

| | bits | |
|---|---|---|
| 0, 1 | 0-11, 91 | the opcode; other fixed bits of a form are shown in the same way |
| G | 12-14, 15 | the guard: P0 to P6 or PT (7), and `!`; of uniform instructions of the file UP |
| C | 105-125 | scheduling, see below |
| letters | | modifiers and operands; the table below a picture names them |
| `.` | | zero in what compilers write; strict decoding refuses ones |
| `-` | | no meaning, compilers write zeros |
| `+` | | no meaning, compilers write ones |
| `!` | | reserved: refused even without strict decoding |

## Scheduling

| bits | |
|---|---|
| 105-108 | stall: cycles until the next instruction of the warp may issue |
| 109 | yield; where it is clear the reuse bits mean something else |
| 110-112 | the scoreboard that is released when the result is written; 7 for none |
| 113-115 | the scoreboard that is released when the operands have been read; 7 for none |
| 116-121 | the scoreboards to wait for, one bit each |
| 122-125 | reuse: the operand's register is kept in the operand cache |

## How to read a form

The heading is the template of the text. `Pu?` is left out where it has its default value, `Pp:X` is
printed only with the modifier X, words in quotation marks stand for themselves. Modifiers print
behind the mnemonic, each with a dot; those of one name that differ from form to form are numbered.
`-` among their values prints nothing, and values that are not listed are undefined.

Operands are named by role: `Rd` is the destination, `Ra`, `Rb`, `Rc` are the sources, `Pu` and `Pv`
predicates that are written, `Pp` and `Pq` those that are read; `UR` and `UP` are the uniform files.
A role exists whether or not the text shows it. Uniform registers have six bits up to sm_90, eight
from sm_100 on. The same bit may belong to several operands, or to a modifier that is decided by
them: the picture shows the first.

Arithmetic instructions share where their sources stand; bits 9 to 11 choose the form, the numbers
are the lowest bits of the operands (see `disasm/sass/tables/forms.py`):

{forms}

## Special registers

What S2R, CS2R and S2UR read, by number; a name that not all architectures have with those that do.

{specials}
"""


def _forms_table() -> str:
    lines = (arithmetic.__doc__ or "").splitlines()
    rows = [line for line in lines if re.match(r"form|\d  ", line)]
    return "\n".join(["```", *rows, "```"])


def _specials_table() -> str:
    out = ["| number | name |", "|---|---|"]
    for number in range(256):
        known: dict[str, list[int]] = {}
        for generation in GENERATIONS:
            known.setdefault(special_name(number, generation), []).append(generation)
        known.pop(f"SR{number}", None)
        if known:
            everywhere = len(GENERATIONS)
            shown = (
                f"`{name}`" + f" ({span(where)})" * (len(where) < everywhere)
                for name, where in known.items()
            )
            out.append(f"| {number} | {', '.join(shown)} |")
    return "\n".join(out)


def index(pages: Mapping[str, str], members: Mapping[str, list[str]]) -> str:
    """The index: mnemonics by category."""
    out = [
        "# SASS instructions",
        "",
        f"{len(pages)} mnemonics in {len(tables.ROWS):,} forms, sm_75 to sm_121: a page each, with",
        "its bits, operands, modifiers, architectures and examples. [The common layout](layout.md)",
        "says how to read them. `tools/sass_docs.py` writes the pages from the encoding tables",
        "(`disasm/sass/tables`) that decoder and assembler run on.",
        "",
    ]
    for name, sentence, _ in categories():
        if not members.get(name):
            continue
        out += [f"## {name}", "", sentence, "", "| mnemonic | forms | |", "|---|---|---|"]
        for mnemonic in members[name]:
            rows = [row for row in tables.ROWS if row.mnemonic == mnemonic]
            where = span({g for row in rows for g in generations(row)})
            out.append(f"| [{mnemonic}]({mnemonic}.md) | {len(rows)} | {where} |")
        out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


def make() -> dict[str, str]:
    """File name to text of all pages."""
    numbers = {id(row): i for i, row in enumerate(tables.ROWS)}
    by_name: dict[str, list[tuple[int, Row]]] = {}
    category: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    for name, _, rows in categories():
        for row in rows:
            by_name.setdefault(row.mnemonic, []).append((numbers[id(row)], row))
            if category.setdefault(row.mnemonic, name) == name:
                known = members.setdefault(name, [])
                known += [row.mnemonic] if row.mnemonic not in known else []
    pages = {name: page(name, category[name], by_name[name]) for name in sorted(by_name)}
    for names in members.values():
        names.sort()
    out = {f"{name}.md": text for name, text in pages.items()}
    out["README.md"] = index(pages, members)
    layout = LAYOUT.replace("{forms}", _forms_table())
    out["layout.md"] = layout.replace("{specials}", _specials_table())
    return out


def stale(pages: Mapping[str, str], folder: Path = PAGES) -> Iterator[str]:
    """The names of pages that are missing, differ, or are there without need."""
    there = {path.name for path in folder.glob("*.md")}
    yield from sorted(there - set(pages))
    for name, text in pages.items():
        if name not in there or (folder / name).read_text(encoding="utf-8") != text:
            yield name


def write(pages: Mapping[str, str], folder: Path = PAGES) -> None:
    """Write all pages, and remove those that are no more."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in list(stale(pages, folder)):
        if name in pages:
            (folder / name).write_text(pages[name], encoding="utf-8")
        else:
            (folder / name).unlink()


def main() -> int:
    """Write or check; exit status 1 where --check finds a page that is not up to date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    pages = make()
    old = list(stale(pages))
    if args.check:
        print("\n".join(old))
        return int(bool(old))
    write(pages)
    size = sum(len(text.encode()) for text in pages.values())
    print(f"{len(pages)} pages, {size:,} bytes, {len(old)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
