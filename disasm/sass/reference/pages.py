"""A page per mnemonic, an index of all, and the page about the common layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from sassxlate.disasm.sass import tables
from sassxlate.disasm.sass.reference.examples import example
from sassxlate.disasm.sass.reference.layout import layout_page
from sassxlate.disasm.sass.reference.numbers import (
    field_text,
    generations,
    named_values,
    ranges,
    span,
)
from sassxlate.disasm.sass.reference.picture import bitmap, fields, picture
from sassxlate.disasm.sass.tables.spec import GENERATIONS, Idiom, Mod, Row

EFFECTS = {
    "p2r": "Reads the predicates of its mask as well.",
    "r2p": "Writes the predicates of its mask as well.",
    "up2ur": "Reads the uniform predicates of its mask as well.",
    "ur2up": "Writes the uniform predicates of its mask as well.",
}


@dataclass(frozen=True, slots=True)
class Category:
    """A module of tables: its name, its docstring, its rows."""

    name: str
    sentence: str
    rows: tuple[Row, ...]


@cache
def categories() -> tuple[Category, ...]:
    """The modules of tables in the order of their rows."""
    return tuple(
        Category(
            module.__name__.rpartition(".")[2],
            " ".join((module.__doc__ or "").split("\n\n")[0].split()),
            tuple(module.ROWS),
        )
        for module in tables.MODULES
    )


@cache
def _all() -> Mapping[str, tuple[Category, tuple[Row, ...]]]:
    """Mnemonic to its category, that of its first form, and its forms."""
    found: dict[str, tuple[Category, list[Row]]] = {}
    for category in categories():
        for row in category.rows:
            found.setdefault(row.mnemonic, (category, []))[1].append(row)
    return {name: (category, tuple(rows)) for name, (category, rows) in sorted(found.items())}


def _where(row: Row, only: int | None) -> tuple[int, ...]:
    """The generations that have a row, of the requested ones."""
    return tuple(g for g in generations(row) if only in (None, g))


def mnemonics(only: int | None = None) -> tuple[str, ...]:
    """All mnemonics, or those of one generation, sorted."""
    return tuple(name for name, (_, rows) in _all().items() if any(_where(r, only) for r in rows))


def _modifier(mod: Mod | Idiom) -> str:
    """Bits and values of a modifier, as cells of a table."""
    if isinstance(mod, Idiom):
        return f"{ranges(mod.field.mask)} | several fields decide together"
    if not mod.field.parts:
        return f"- | always `{mod.names[0]}`"
    return f"{field_text(mod.field)} | {named_values(mod.names)}{_counts(mod)}"


def labels(rows: Iterable[Row]) -> dict[tuple[str, str], str]:
    """(name, cells) of the distinct modifiers of a mnemonic to their names on the page: those of
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
    """The lines of the section on the distinct modifiers of a mnemonic and their values; none if it
    has no modifier.  ``named`` is what :func:`labels` gives."""
    if not named:
        return []
    rows = [f"| {label} | {cells} |" for (_, cells), label in named.items()]
    return ["## Modifiers", "", "| modifier | bits | values |", "|---|---|---|", *rows, ""]


def _counts(mod: Mod) -> str:
    if not mod.widths:
        return ""
    shown = (f"{value}: {count}" for value, count in sorted(mod.widths.items()))
    return f"; registers by value {', '.join(shown)}"


def _form(
    row: Row, only: int | None, heading: int, named: Mapping[tuple[str, str], str]
) -> list[str]:
    """One form: text, architectures, bits, operands, examples."""
    found = _where(row, only)
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
    examples: dict[tuple[int, str], list[int]] = {}
    for generation in found:
        if made := example(row, generation):
            examples.setdefault(made, []).append(generation)
    if examples:
        body = [f"{word:032x} {text}" for word, text in examples]
        if len(examples) > 1:
            body = [
                f"{line}  // {span(w)}" for line, w in zip(body, examples.values(), strict=True)
            ]
        out += ["For example:", "", "```", *body, "```", ""]
    return out


def page(mnemonic: str, only: int | None = None, *, linked: bool = False) -> str:
    """The page of a mnemonic, of one generation or of all; ``linked`` to the index.

    KeyError if there is no such mnemonic; an empty text if the generation lacks it.
    """
    category, every = _all()[mnemonic]
    rows = [row for row in every if _where(row, only)]
    if not rows:
        return ""
    everywhere = span({g for row in rows for g in _where(row, only)})
    plural = "1 form" if len(rows) == 1 else f"{len(rows)} forms"
    name = f"[{category.name}](README.md#{category.name})" if linked else category.name
    out = [f"# {mnemonic}", "", f"{name}; {plural}; {everywhere}.", ""]
    named = labels(rows)
    out += modifier_table(named)
    for heading, row in enumerate(rows, 1):
        out += _form(row, only, heading, named)
    return "\n".join(out).rstrip("\n") + "\n"


def architectures(mnemonic: str) -> str:
    """The architectures that have a mnemonic: ``sm_75 to sm_90``."""
    return span({g for row in _all()[mnemonic][1] for g in generations(row)})


def example_words(mnemonic: str) -> Iterator[tuple[int, int, str]]:
    """(generation, word, text) of every example of a mnemonic."""
    for row in _all()[mnemonic][1]:
        for generation in generations(row):
            if made := example(row, generation):
                yield generation, *made


def index(only: int | None = None) -> str:
    """The mnemonics by category as Markdown: the index of the written pages."""
    names = mnemonics(only)
    forms = sum(bool(_where(row, only)) for row in tables.ROWS)
    everywhere = span([only] if only else GENERATIONS)
    out = [
        "# SASS instructions",
        "",
        f"{len(names)} mnemonics in {forms:,} forms, {everywhere}: a page each, with its bits,",
        "operands, modifiers, architectures and examples. [The common layout](layout.md) says how",
        "to read them. `sassxlate isa -o DIR` makes the pages of the encoding tables that",
        "decoder and assembler run on.",
        "",
    ]
    for category, rows in _listed(only):
        out += [f"## {category.name}", "", category.sentence, ""]
        out += ["| mnemonic | forms | |", "|---|---|---|"]
        out += [f"| [{name}]({name}.md) | {count} | {where} |" for name, count, where in rows]
        out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


def listing(only: int | None = None) -> str:
    """The mnemonics by category in columns, for a terminal."""
    out: list[str] = []
    width = max(map(len, mnemonics(only)), default=0)
    for category, rows in _listed(only):
        out += [f"{category.name}: {category.sentence}"]
        out += [f"  {name:<{width}}  {count:3}  {where}" for name, count, where in rows]
        out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


def _listed(only: int | None) -> Iterator[tuple[Category, list[tuple[str, int, str]]]]:
    """Categories with (mnemonic, number of forms, architectures)."""
    for category in categories():
        rows: list[tuple[str, int, str]] = []
        for name in mnemonics(only):
            home, every = _all()[name]
            if home is category:
                found = [g for g in (_where(row, only) for row in every) if g]
                rows.append((name, len(found), span({g for some in found for g in some})))
        if rows:
            yield category, rows


def all_pages(only: int | None = None) -> dict[str, str]:
    """File name to text of all pages, the index (README.md) and the layout."""
    out = {f"{name}.md": page(name, only, linked=True) for name in mnemonics(only)}
    return {**out, "README.md": index(only), "layout.md": layout_page()}
