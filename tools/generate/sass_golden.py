"""Chooses the words of ``tests/sass/golden``: one for each form that compiled code was seen with.

::

    python -m tools.generate.sass_golden FILE...

Each file of the folder holds one architecture: ``<word> <nvdisasm's text>`` a line, the word in
hexadecimal, code addresses as if it stood at offset 0.  Words already there stay.
``pytest tests/disasm/sass --bless`` writes the texts again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from tools.witness.nvdisasm import witness as sass_witness

GOLDEN = sass_witness.ROOT / "tests" / "disasm" / "sass" / "golden"
_LIMIT = 190_000  # bytes per file


def read_golden(path: Path) -> list[tuple[int, str]]:
    """Words and texts of a golden file."""
    rows: list[tuple[int, str]] = []
    for line in path.read_text().splitlines():
        word, _, text = line.partition(" ")
        rows.append((int(word, 16), text))
    return rows


def write_golden(path: Path, rows: Iterable[tuple[int, str]]) -> None:
    """Sorted by mnemonic, then by word."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ordered = sorted(rows, key=lambda row: (_mnemonic(row[1]), row[0]))
    path.write_text("".join(f"{word:032x} {text}\n" for word, text in ordered))


def _mnemonic(text: str) -> str:
    return re.sub(r"^@\S+ ", "", text).partition(" ")[0]


def form(word: int, text: str) -> str:
    """The form of an instruction: opcode, modifiers and the shape of its operands."""
    shape = re.sub(r"^@\S+ ", "", text)
    shape = re.sub(r"\b(U?[RPB])(\d+|Z|T)\b", r"\1", shape)
    shape = re.sub(r"\bSR\w+(\.\w)?", "SR", shape)
    shape = re.sub(r"-?(0x[0-9a-f]+|\b\d+(\.\d+)?(e[+-]?\d+)?)(?=[\]\s,+;]|$)", "n", shape)
    return f"{word & 0xFFF | word >> 79 & 0x1000:x} {shape.replace('.reuse', '')}"


def choose(files: Iterable[Path]) -> None:
    """Add the first word of each form that the golden files lack."""
    witness = sass_witness.find()
    words: dict[int, dict[int, None]] = {}
    for arch, code in sass_witness.sections(files):
        known = words.setdefault(arch, {})
        for i in range(0, len(code), 16):
            known[int.from_bytes(code[i : i + 16], "little")] = None
    rows: dict[int, list[tuple[int, str]]] = {}
    for arch, known in words.items():
        path = GOLDEN / f"sm_{arch}.txt"
        rows[arch] = read_golden(path) if path.exists() else []
        seen = {form(word, text) for word, text in rows[arch]}
        texts = witness.texts(arch, list(known), at_zero=True)
        for word, text in zip(known, texts, strict=True):
            if text is not None and form(word, text) not in seen:
                seen.add(form(word, text))
                rows[arch].append((word, text))
    for arch, found in rows.items():
        size = sum(len(text) + 34 for _, text in found)
        print(f"sm_{arch}: {len(found)} forms, {size} bytes")
        if size > _LIMIT:
            raise SystemExit(f"sm_{arch} takes more than {_LIMIT} bytes")
        write_golden(GOLDEN / f"sm_{arch}.txt", found)


if __name__ == "__main__":
    choose(Path(name) for name in sys.argv[1:])
