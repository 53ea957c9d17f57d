"""Every distinct word of files read back from its text.

::

    # executables, libraries, cubins, wheels, folders
    python -m tools.witness.nvdisasm.roundtrip FILE...

With its scheduling information (``--control``) the text must give the word itself; the plain text
the word outside bits 102 to 125.  What a text leaves out altogether counts apart: descriptors that
sm_80 to sm_89 do not print (``hidden``), and which NaN an immediate is.
"""

from __future__ import annotations

import argparse
import collections
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sassxlate.disasm.listing.sass_section import control_brackets
from sassxlate.disasm.sass import decode_section
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.errors import DecodeError
from tools.coverage import corpus as sass_corpus

BATCH = 24_000
_SCHEDULING = 0x1FFFF << 105  # stall, yield, barriers, what is waited for
_PLAIN = ~(0xFFFFFF << 102) & (1 << 128) - 1  # what a plain text must give
_BRACKETS = re.compile(r"\[(B.{6}:R.:W.:.:S\d\d)(:[^\]]*)?\]")


@dataclass(slots=True)
class Tally:
    """Counts of one architecture, and the words that are not read back."""

    words: int = 0
    control: int = 0
    plain: int = 0
    hidden: int = 0
    seconds: float = 0.0
    failed: dict[str, list[tuple[int, str, str]]] = field(
        default_factory=lambda: collections.defaultdict(list)
    )


class Reader:
    """The words of texts; a text that differs in its scheduling alone is assembled once."""

    def __init__(self, arch: int) -> None:
        self.arch = arch
        self._seen: dict[tuple[str, int], int | str] = {}
        self._scheduling: dict[str, int] = {}

    def _assembled(self, text: str, offset: int) -> int | str:
        try:
            return assemble(text, self.arch, offset)
        except DecodeError as error:
            return error.message

    def read(self, brackets: str, text: str, offset: int) -> int | str:
        """The word of a text with its scheduling in brackets, or why there is none."""
        match = _BRACKETS.fullmatch(brackets)
        assert match is not None, brackets
        schedule = match[1]
        if schedule not in self._scheduling:
            nop = self._assembled(f"[{schedule}] NOP", 0)
            if isinstance(nop, str):
                return nop
            self._scheduling[schedule] = nop & _SCHEDULING
        key = f"{match[2] or ''} {text}", offset
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._assembled(f"{brackets} {text}", offset)
        if isinstance(found, str):
            return found
        return found & ~_SCHEDULING | self._scheduling[schedule]

    def read_plain(self, text: str, offset: int) -> int | str:
        """The word of a text alone."""
        key = text, offset
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._assembled(text, offset)
        return found


def check(arch: int, words: sass_corpus.Halves, tally: Tally, reader: Reader) -> None:
    """Read the text of each word back."""
    section = decode_section(words.tobytes(), arch)
    named = section.addresses()
    texts = section.texts()
    for i, (word, text) in enumerate(zip(section.words(), texts, strict=True)):
        tally.words += 1
        if text is None:
            tally.failed["unknown"].append((word, "", ""))
            continue
        offset = 16 * i if i in named else 0
        brackets = control_brackets(section, i, word, text)
        whole = reader.read(brackets, text, offset)
        if whole == word:
            tally.control += 1
        else:
            shown = whole if isinstance(whole, str) else f"{whole:#034x}"
            tally.failed["control"].append((word, f"{brackets} {text}", shown))
        match = _BRACKETS.fullmatch(brackets)
        if match and match[2] and ":T" not in match[2]:
            tally.hidden += 1
            continue
        plain = reader.read_plain(text, offset)
        if isinstance(plain, int) and (plain ^ word) & _PLAIN == 0:
            tally.plain += 1
        else:
            shown = plain if isinstance(plain, str) else f"{plain:#034x}"
            tally.failed["plain"].append((word, text, shown))


def report(tallies: dict[sass_corpus.Target, Tally], listed: int) -> int:
    """Print the table and what was not read back; the number of failures."""
    print(
        f"{'arch':8}{'words':>12}{'control':>12}{'plain':>12}{'hidden':>10}{'failed':>8}{'words/s':>9}"
    )
    wrong = 0
    for target, tally in tallies.items():
        failed = sum(map(len, tally.failed.values()))
        wrong += failed
        print(
            f"{sass_corpus.name(target):8}{tally.words:12,}{tally.control:12,}{tally.plain:12,}"
            f"{tally.hidden:10,}{failed:8,}{tally.words / max(tally.seconds, 1e-9):9,.0f}"
        )
    for target, tally in tallies.items():
        for kind, found in tally.failed.items():
            print(f"{sass_corpus.name(target)} {kind}: {len(found)}")
            for word, text, shown in found[:listed]:
                print(f"    {word:#034x} {text}\n      {shown}")
    return wrong


def main(arguments: Sequence[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--listed", type=int, default=20, help="failures shown of each kind")
    options = parser.parse_args(arguments)
    corpus = sass_corpus.read(options.files)
    tallies: dict[sass_corpus.Target, Tally] = {}
    for target in sorted(corpus.sections):
        tally = tallies[target] = Tally()
        reader = Reader(target[0])
        words, _ = corpus.words(target)
        start = time.process_time()
        for first in range(0, len(words), BATCH):
            check(target[0], words[first : first + BATCH], tally, reader)
        tally.seconds = time.process_time() - start
    return int(report(tallies, options.listed) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
