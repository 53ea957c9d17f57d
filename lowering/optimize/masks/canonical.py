"""The code between blocks as text: what its shortening depends on, and its result.

Two kernels with one canonical text get the same shorter code.  The text has the operations on
masks, jumps and labels as they are, labels by number; of every other instruction only the scalar
registers that it reads and writes.  The result says which instructions stay, by place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sassxlate.cfg import Cfg
from sassxlate.cfg.graph import label_of
from sassxlate.disasm.rdna3.instruction import (
    Arg,
    I,
    Inst,
    InstOrigin,
    Item,
    Label,
    LabelRef,
    S,
    Sp,
)
from sassxlate.errors import EncodeError
from sassxlate.lowering.codeobject.source_map import NEXT
from sassxlate.lowering.optimize.masks.edges import parts
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.verify.masks.operations import Opaque
from sassxlate.lowering.verify.masks.rows import Row, rows_of

Words = tuple[str, ...]
_NEXT = "next"  # the origin of an addition before a loop


def canonical(items: Sequence[Item], regs: RegisterMap, cfg: Cfg) -> str:
    """Raises Unfollowed for code that goes anywhere."""
    labels = _labels(items)
    rows = rows_of(items)
    ready = sorted(
        f"{_name(slot)}:{labels.get(label_of(key), '-') if key > 0 else '-'}"
        for key, slot in regs.ready.items()
    )
    head = (
        f"live {_name(regs.live)}", f"temporaries {' '.join(map(str, regs.stemps))}",
        f"ready {' '.join(ready)}", f"regions {' '.join(map(_name, regs.regions))}",
    )  # fmt: skip
    every = zip(rows, parts(rows, cfg), strict=True)
    return "\n".join((*head, *(_line(row, part, labels) for row, part in every)))


def _name(place: object) -> str:
    return f"s{place.index}" if isinstance(place, S) else "elsewhere"


def _labels(items: Sequence[Item]) -> dict[str, int]:
    names = (item.name for item in items if isinstance(item, Label))
    return {name: n for n, name in enumerate(names)}


def _line(row: Row, part: str, labels: dict[str, int]) -> str:
    if row.old is None:
        return f"L{labels[row.label]}:"
    what = row.was
    if isinstance(what, Opaque) and not part:
        read, written = (",".join(map(str, sorted(refs))) for refs in (what.reads, what.writes))
        return f"? {read} > {written}{' of lanes' * what.per_lane}"
    text = " ".join(_said(arg, labels) for arg in row.old.args)
    more = f" of {what}" if isinstance(what, Opaque) else ""
    return f"{part} {row.old.op} {text} {row.old.imm}{more}"


def _said(arg: Arg, labels: dict[str, int]) -> str:
    match arg:
        case S():
            return f"s{arg.index}:{arg.n}"
        case Sp():
            return f"{arg.name}:{arg.n}"
        case I():
            return f"#{arg.value}"
        case LabelRef():
            return f"L{labels.get(arg.name, '-')}"
        case _:
            return str(arg)


def result_words(new: Sequence[Item], old: Sequence[Item]) -> Words:
    """The result for ``old``.  EncodeError SX0544 for one that cannot be said."""
    labels = _labels(old)
    places = {id(item): n for n, item in enumerate(old)}
    origins: dict[InstOrigin, int] = {}
    for n, item in enumerate(old):
        if isinstance(item, Inst) and item.origin is not None:
            origins.setdefault(item.origin, n)
    return tuple(_word(item, labels, places, origins) for item in new)


def _word(
    item: Item, labels: dict[str, int], places: dict[int, int], origins: dict[InstOrigin, int]
) -> str:
    if id(item) in places:
        return f"={places[id(item)]}"
    if isinstance(item, Label) or item.origin is None:
        raise EncodeError("SX0544", f"{item} is not in the code")
    at = origins.get(item.origin)
    if at is None and item.origin != InstOrigin(NEXT):
        raise EncodeError("SX0544", f"{item.op} of {item.origin.text}")
    made = "|".join(
        (item.op, _NEXT if at is None else str(at), *(_said(a, labels) for a in item.args))
    )
    return made


def read_result(words: Words, old: Sequence[Item]) -> tuple[Item, ...]:
    """The code that words say.  EncodeError SX0544 for words that say none."""
    try:
        return tuple(_read(words, old))
    except (ValueError, IndexError, KeyError) as error:
        raise EncodeError("SX0544", f"no result: {error}") from None


def _read(words: Words, old: Sequence[Item]) -> Iterator[Item]:
    names = [item.name for item in old if isinstance(item, Label)]
    for word in words:
        if word.startswith("="):
            yield old[int(word[1:])]
            continue
        op, at, *args = word.split("|")
        origin: InstOrigin | None = InstOrigin(NEXT)
        if at != _NEXT:
            item = old[int(at)]
            origin = item.origin if isinstance(item, Inst) else None
        yield Inst(op, tuple(_operand(text, names) for text in args), origin=origin)


def _operand(text: str, names: Sequence[str]) -> Arg:
    if text.startswith("#"):
        return I(int(text[1:]))
    if text.startswith("L"):
        return LabelRef(names[int(text[1:])])
    name, n = text.split(":")
    if name[0] == "s" and name[1:].isdigit():
        return S(int(name[1:]), int(n))
    return Sp(name, int(n))


__all__ = ["Words", "canonical", "read_result", "result_words"]
