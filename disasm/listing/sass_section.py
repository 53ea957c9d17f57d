"""A decoded section as text in nvdisasm's shape: offsets, labels, one instruction per line."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count

from sassxlate.disasm.sass.codec.control_brackets import control_text, hidden_text, hides
from sassxlate.disasm.sass.codec.decode import BadWord, control_of, generation_of
from sassxlate.disasm.sass.codec.section import AWAITED, CONTROL, Section, address_of
from sassxlate.disasm.sass.instruction import Control, Instruction, RegRef

MNEMONIC_COLUMN = 35
_GUARDS = ("@P", "@!P")
_ENCODING_COLUMN = 90
CONTROL_WIDTH = 27
_BLANK = ("INF", "QNAN", "SNAN", " -0.0")
_WINDOW = 1 << 12  # words printed at a time


def targets(section: Section) -> list[int]:
    """The code addresses inside the section that instructions name, in order of first mention."""
    end = 16 * len(section)
    return list(dict.fromkeys(t for t in section.addresses().values() if 0 <= t < end))


def labels(section: Section, symbols: Mapping[int, str], first: int = 0) -> dict[int, str]:
    """A name for every target: a function's name if one starts there, otherwise ``.L_x_<n>``.

    ``first`` is the number of the first label, so that numbers can continue through a file.
    """
    names = dict(symbols)
    for target in targets(section):
        if target not in names:
            names[target] = f".L_x_{first}"
            first += 1
    return names


def _named(text: str, name: str) -> str:
    """The text with its target's name in place of the address."""
    head, _, _ = text.rpartition(" ")
    return f"{head} `({name})"


def instruction_text(inst: Instruction, names: Mapping[int, str]) -> str:
    """The instruction's text with its target's name in place of the address."""
    target = address_of(inst)
    return inst.text if target is None or target not in names else _named(inst.text, names[target])


def aligned(text: str, lead: int) -> str:
    """Guards are right-aligned before the mnemonic's column; uniform ones are not."""
    width = MNEMONIC_COLUMN - lead - 1
    if text.startswith(_GUARDS):
        guard, blank, rest = text.partition(" ")
        if blank:
            return f"{guard:>{width}} {rest}"
    return f"{'':{width}} {text}"


def ending(text: str, word: int) -> str:
    """nvdisasm puts a space before the semicolon unless nothing is awaited, as in padding."""
    end = " ;" if word & AWAITED else ";"
    # Numbers without digits, and -0.0, have their own trailing space.
    return f" {end}" if text.endswith(_BLANK) else end


def plain_lines(section: Section, start: int, texts: Sequence[str | None]) -> list[str]:
    """The lines of instructions from an index on, without words and scheduling.

    ``texts`` are the instructions' texts, which may differ from :meth:`.Section.texts`; None if the
    word could not be decoded.
    """
    out: list[str] = []
    append = out.append
    awaited = section.awaited(start, start + len(texts))
    width, limit = 0, -1  # width of the guard; the offset up to which it holds
    pad = ""
    for offset, text, apart in zip(count(16 * start, 16), texts, awaited, strict=False):
        if offset > limit:
            digits = max(4, len(f"{offset:x}"))
            width, limit = MNEMONIC_COLUMN - 13 - digits, (1 << 4 * digits) - 1
            pad = " " * (width + 1)
        if text is None:
            append(f"        /*{offset:04x}*/ {bad_text(section.instructions[offset // 16])}")
            continue
        end = " ;" if apart else ";"
        if text.endswith(_BLANK):
            end = f" {end}"
        if text[0] == "@" and text.startswith(_GUARDS):
            guard, _, rest = text.partition(" ")
            append(f"        /*{offset:04x}*/{guard:>{width}} {rest}{end}")
        else:
            append(f"        /*{offset:04x}*/{pad}{text}{end}")
    return out


@lru_cache(1 << 14)
def _known_brackets(scheduling: int) -> str:
    return control_text(control_of(scheduling << CONTROL))


def control_brackets(section: Section, i: int, word: int, text: str) -> str:
    """The brackets of :func:`control_text`, with the bits that the text does not determine."""
    known = _known_brackets(word >> CONTROL & 0x1FFFFF)
    # Memory operands follow a space and may have a descriptor that is not printed.
    memory = " [" in text and "desc[" not in text
    batch = word >> 122 & 7 and ".reuse" not in text
    usual = not memory and "NAN" not in text and not batch
    if usual and not hides(word, generation_of(section.arch)):
        return known
    item = section.instructions[i]
    return f"{known[:-1]}{hidden_text(item)}]" if isinstance(item, Instruction) else known


def lines(
    section: Section,
    symbols: Mapping[int, str] | None = None,
    *,
    first_label: int = 0,
    encoding: bool = False,
    control: bool = False,
) -> Iterator[str]:
    """The listing's lines.  ``symbols`` names code addresses; bad words print their error.

    A symbol at the section's start is named by the section itself.
    ``encoding`` adds the words in hexadecimal, the high half on a separate line as nvdisasm
    has it; ``control`` adds the scheduling information before each instruction.
    """
    names = labels(section, symbols or {}, first_label)
    addresses = section.addresses()
    named = {i: names[at] for i, at in addresses.items() if at in names}
    keys = list(named)
    marks = sorted(at for at in names if at % 16 == 0 and 0 < at < 16 * len(section))
    for start in range(0, len(section), _WINDOW):
        texts = section.texts(start, min(start + _WINDOW, len(section)))
        for i in keys[bisect_left(keys, start) : bisect_left(keys, start + len(texts))]:
            text = texts[i - start]
            if text is not None:
                texts[i - start] = _named(text, named[i])
        found = plain_lines(section, start, texts)
        if encoding or control:
            found = list(_with_words(section, start, texts, found, encoding, control))
        end = 16 * (start + len(texts))
        for mark in reversed(marks[bisect_left(marks, 16 * start) : bisect_left(marks, end)]):
            found.insert(mark // 16 - start, f"{names[mark]}:")
        yield from "\n".join(found).split("\n") if encoding else found


def _with_words(
    section: Section,
    start: int,
    texts: Sequence[str | None],
    plain: Sequence[str],
    encoding: bool,
    control: bool,
) -> Iterator[str]:
    """Lines with the scheduling information before the instruction and the words after it."""
    column = _ENCODING_COLUMN + (CONTROL_WIDTH if control else 0)
    words = section.words(start, start + len(texts))
    for i, (word, text, line) in enumerate(zip(words, texts, plain, strict=True), start):
        if text is None:
            yield line
            continue
        if control:
            place = line.index("*/") + 2
            line = f"{line[:place]}  {control_brackets(section, i, word, text)}{line[place:]}"
        if encoding:
            line = f"{line:<{column}} /* {word & (1 << 64) - 1:#018x} */"
            line += f"\n{'':<{column}} /* {word >> 64:#018x} */"
        yield line


def bad_text(item: Instruction | BadWord) -> str:
    assert isinstance(item, BadWord)
    return f"error {item.error.code}: {item.error.message}: {item.word:#034x}"


def records(
    section: Section, symbols: Mapping[int, str] | None = None, *, first_label: int = 0
) -> list[dict[str, object]]:
    """The listing as values for JSON: one dictionary per word.

    Registers are named as in text (``R4``, ``UR2``, ``P0``, ``B1``); words and offsets are in
    hexadecimal, scoreboards are null if none is set.
    """
    names = labels(section, symbols or {}, first_label)
    out: list[dict[str, object]] = []
    for item in section.instructions:
        record: dict[str, object] = {"offset": f"{item.offset:#06x}", "word": f"{item.word:#034x}"}
        if item.offset in names and item.offset:
            record["label"] = names[item.offset]
        if isinstance(item, BadWord):
            record["error"] = {"code": item.error.code, "message": item.error.message}
        else:
            record |= {
                "text": instruction_text(item, names),
                "mnemonic": item.mnemonic,
                "modifiers": list(item.modifiers),
                "reads": _register_names(item.reads),
                "writes": _register_names(item.writes),
                "control": _control_record(item.control),
            }
        out.append(record)
    return out


def _register_names(refs: Iterable[RegRef]) -> list[str]:
    return [f"{r.file}{r.index}" for r in sorted(refs, key=lambda r: (r.file, r.index))]


def _control_record(control: Control) -> dict[str, object]:
    return {
        "stall": control.stall,
        "yield": not control.yield_,
        "write_barrier": None if control.write_barrier == 7 else control.write_barrier,
        "read_barrier": None if control.read_barrier == 7 else control.read_barrier,
        "wait": [i for i in range(6) if control.wait_mask >> i & 1],
        "reuse": control.reuse,
    }


def next_label(names: Iterable[str]) -> int:
    """The number after the last ``.L_x_<n>`` of a listing."""
    numbers = [int(n[5:]) for n in names if n.startswith(".L_x_")]
    return max(numbers, default=-1) + 1
