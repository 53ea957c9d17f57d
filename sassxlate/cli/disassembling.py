"""What `sassxlate disasm` lists of each cubin of a file, in one process or in several."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sassxlate.cli.groups import groups
from sassxlate.disasm.inputs import arch_name
from sassxlate.disasm.listing.cubin import Document, ListingOptions
from sassxlate.disasm.listing.find import find, opcodes
from sassxlate.errors import DecodeError, SassxlateError, UsageError

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin, Origin
    from sassxlate.disasm.listing.source_lines import Mode

_TEXT_PART, _PART = 4 << 20, 512 * 1024  # bytes of cubins for which another process pays
_TOGETHER = 8  # cubins per process that are read before they are listed

Print = Callable[[Iterable[str]], None]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A cubin and its bytes, and those of its functions that are listed: demangled by mangled
    name."""

    origin: Origin
    data: bytes | memoryview
    cubin: Cubin
    names: dict[str, str]


@dataclass(frozen=True, slots=True)
class Terms:
    """How cubins are listed: the options of `disasm`.  ``headed``: a comment names each cubin."""

    file: str
    headed: bool
    encoding: bool = False
    control: bool = False
    source: Mode | None = None
    find: Sequence[str] = ()
    count: bool = False
    as_json: bool = False


@dataclass(slots=True)
class Listed:
    """What came of a cubin: ``rows`` of JSON, or ``lines`` if they are not printed yet; words that
    cannot be decoded; matches of --find and --count; the error of an unknown architecture, which
    ends only this cubin, and one that ends all."""

    rows: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    lines: list[str] = field(default_factory=list[str])
    bad: int = 0
    matches: int = 0
    unknown: SassxlateError | None = None
    error: SassxlateError | None = None


def listed(terms: Terms, chosen: Iterable[Chosen], jobs: int, show: Print) -> Iterator[Listed]:
    """What came of each cubin, in order; ``jobs`` processes, 0: one per core, but fewer where there
    is little to do.  In this process lines go to ``show`` as they are made.

    Raises:
        UsageError: SX0888, the process that read a cubin died, again when it was alone.
    """
    many = jobs or len(os.sched_getaffinity(0))
    if many == 1:
        for one in chosen:
            yield _one(terms, one, show)
        return
    part = _PART if terms.as_json or terms.count or terms.find else _TEXT_PART
    for group in groups(chosen, _TOGETHER * many):
        size = sum(len(one.data) for one in group)
        if len(group) == 1 or (jobs == 0 and size < 2 * part):
            yield from (_one(terms, one, show) for one in group)
            continue
        from sassxlate.processes import processes_for  # which a small file need not wait for

        yield from _several(terms, group, processes_for(jobs, len(group), size, part), show)


def _several(terms: Terms, group: list[Chosen], jobs: int, show: Print) -> Iterator[Listed]:
    from sassxlate.executors import Begin, Place, in_order

    # Forked processes find the cubins in memory; only a cubin's number is sent to them.
    begin = Begin(_take, (terms, group))
    lost = UsageError("SX0888", "the process that read a cubin died")
    work = in_order(Place(jobs), _numbered, range(len(group)), lost=lost, begin=begin)
    with contextlib.closing(work):
        for one in work:
            show(one.lines)
            yield one


@dataclass(slots=True)
class _Shared:
    """State that forked processes inherit."""

    terms: Terms | None = None
    group: list[Chosen] = field(default_factory=list[Chosen])


_shared = _Shared()


def _take(terms: Terms, group: list[Chosen]) -> None:
    _shared.terms, _shared.group = terms, group


def _numbered(number: int) -> Listed:
    assert _shared.terms is not None
    lines: list[str] = []
    made = _one(_shared.terms, _shared.group[number], lines.extend)
    made.lines = lines
    return made


def _one(terms: Terms, one: Chosen, show: Print) -> Listed:
    made = Listed()
    options = ListingOptions(terms.encoding, terms.control, one.names.__contains__, terms.source)
    try:
        text = Document(one.data, options, one.cubin)
    except DecodeError as error:
        made.bad, made.unknown = 1, error.at(file=terms.file, kernel=min(one.names))
        return made
    except SassxlateError as error:
        made.error = error.at(file=terms.file)
        return made
    made.bad = text.bad
    try:
        _fill(made, terms, one, text, show)
    except SassxlateError as error:
        made.error = error.at(file=terms.file)
    return made


def _fill(made: Listed, terms: Terms, one: Chosen, text: Document, show: Print) -> None:
    target = arch_name(one.cubin.arch, one.cubin.variant)
    row: dict[str, object]
    if terms.count:
        for counted in opcodes(text, terms.find):
            made.matches += 1
            plain = one.names[counted.name]
            if terms.as_json:
                row = {"name": counted.name, "demangled": plain, "arch": target}
                row |= {"total": counted.total, "opcodes": dict(counted.opcodes)}
                made.rows.append(row)
                continue
            head = f"{plain}, {target}: {counted.total} instructions"
            show([head, *counted.lines()])
    elif terms.find:
        for found in find(text, terms.find):
            made.matches += len(found.records)
            plain = one.names[found.name]
            if terms.as_json:
                row = {"name": found.name, "demangled": plain, "arch": target}
                made.rows.append(row | {"instructions": list(found.records)})
                continue
            count = f"{len(found.records)} of {found.total} instructions"
            show([f"{plain}, {target}: {count}", *found.lines()])
    elif terms.as_json:
        for name, records in text.functions():
            row = {"name": name, "demangled": one.names[name], "arch": target}
            made.rows.append(row | {"instructions": records})
    else:
        if terms.headed:
            show([f"// {terms.file}, {one.origin}, {target}"])
        show(text.lines())


__all__ = ["Chosen", "Listed", "Terms", "listed"]
