"""Numbers of bits and of architectures as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sassxlate.disasm.sass.tables.spec import GENERATION_OF, GENERATIONS, Bits, Row


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


def named_values(names: Mapping[int, str]) -> str:
    """``0 `A`, 1 -``."""
    shown = (f"{value} `{name}`" if name else f"{value} -" for value, name in sorted(names.items()))
    return ", ".join(shown)
