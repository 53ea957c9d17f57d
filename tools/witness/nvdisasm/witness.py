"""nvdisasm as a witness of the SASS decoder: many words per call, comparison of whole files.

::

    # every instruction of executables, libraries,
    python -m tools.witness.nvdisasm.witness compare FILE...
                                                      # objects, cubins, wheels and folders
    # N words per architecture made from theirs
    python -m tools.witness.nvdisasm.witness flips FILE... --words N

Both print a table by architecture and the words that differ: ``equal`` text, another ``text``,
``unknown`` to us, ``lenient`` (nvdisasm prints INVALID or question marks), ``accepted`` by us
alone, and ``rejected`` by both.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import lzma
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from sassxlate import toolchain
from sassxlate.disasm.sass import BadWord, decode_section
from sassxlate.disasm.sass.tables.spec import GENERATION_OF
from tools.coverage import corpus as sass_corpus

ROOT = sass_corpus.ROOT

# A word of no architecture; its error message, which has an address, bounds those that have none.
_SENTINEL = 0xFFF
BATCH = 24_000
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*(?:/\*|$)")
_ADDRESS = re.compile(r"at address 0x([0-9a-f]+)")
# Some releases print sm_120's waits and barriers after the instruction.
_CONTROL = re.compile(r"\s+[&?](?:req|rd|wr|trans|WAIT).*$")
_MARKS = re.compile(r"INVALID|\?\?\?|UNDEFINED")
Verdict: TypeAlias = Literal["equal", "text", "unknown", "lenient", "accepted", "rejected"]


class NoWitness(Exception):
    """nvdisasm is absent."""


@dataclass(frozen=True, slots=True)
class Witness:
    """One nvdisasm."""

    path: str
    version: str

    @property
    def sha256(self) -> str:
        """The hash of the executable, to identify the witness exactly."""
        return hashlib.sha256(Path(self.path).read_bytes()).hexdigest()

    def _run(self, arch: int, words: Sequence[int]) -> subprocess.CompletedProcess[str]:
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            file.write(b"".join(w.to_bytes(16, "little") for w in words))
            file.flush()
            return subprocess.run(
                [self.path, "--binary", f"SM{arch}", file.name],
                capture_output=True, text=True, check=False,
            )  # fmt: skip

    def _valid(self, arch: int, words: Sequence[int], at_zero: bool) -> list[str | None] | None:
        """The texts of words that are all instructions, otherwise None: one bad word hides all.

        A few words print nothing at all, although none is reported as bad.
        """
        done = self._run(arch, words)
        if done.returncode:
            return None
        out: dict[int, str] = {}
        for line in done.stdout.splitlines():
            match = _LINE.match(line)
            if match:
                place = int(match[1], 16)
                text = _CONTROL.sub("", match[2]).rstrip()
                out[place // 16] = _moved(text, place) if at_zero else text
        return [out.get(i) for i in range(len(words))]

    def _rejected(self, arch: int, words: Sequence[int]) -> set[int]:
        """The indices that nvdisasm's messages name; may lack some."""
        mixed = [w for word in words for w in (word, _SENTINEL)]
        bad: set[int] = set()
        bare = addressed = False
        for line in self._run(arch, mixed).stderr.splitlines():
            match = _ADDRESS.search(line)
            if match:
                place, sentinel = divmod(int(match[1], 16) // 16, 2)
                addressed = True
                if not sentinel or bare:
                    bad.add(place)
                bare = False
            elif "llegal instruction" in line:
                bare, addressed = (bare, False) if addressed else (True, False)
        return bad

    def texts(self, arch: int, words: Sequence[int], *, at_zero: bool = False) -> list[str | None]:
        """What nvdisasm prints for each word, None if it rejects it.

        Code addresses in the texts are as if the words were contiguous, which holds
        only if none is rejected; with ``at_zero``, as if each were at address 0.
        """
        out: list[str | None] = []
        for first in range(0, len(words), BATCH):
            out += self._texts(arch, words[first : first + BATCH], at_zero)
        return out

    def _texts(self, arch: int, words: Sequence[int], at_zero: bool) -> list[str | None]:
        plain = self._valid(arch, words, at_zero)
        if plain is not None:
            return plain
        bad = self._rejected(arch, words)
        out: list[str | None] = [None] * len(words)
        pending = [[i for i in range(len(words)) if i not in bad]]
        while pending:
            part = pending.pop()
            found = self._valid(arch, [words[i] for i in part], at_zero) if part else []
            if found is not None:
                for i, text in zip(part, found, strict=True):
                    out[i] = text
            elif len(part) > 1:
                half = len(part) // 2
                pending += [part[:half], part[half:]]
        return out


_TARGETS = re.compile(
    r"^((?:@\S+ )?(?:BRA|BSSY|CALL\.REL|WARPSYNC\.COLLECTIVE|RET\.REL|LEPC|ULEPC)\b.* )"
    r"(-?)0x([0-9a-f]+)$"
)


def _moved(text: str, place: int) -> str:
    """The text with its code address, if any, reduced by ``place``."""
    match = _TARGETS.match(text)
    if not match:
        return text
    target = int(match[3], 16) * (-1 if match[2] else 1) - place
    return f"{match[1]}{'-' if target < 0 else ''}{abs(target):#x}"


def find() -> Witness:
    """nvdisasm as the tool chain finds it; raises NoWitness."""
    tool = toolchain.TOOLS["nvdisasm"]()
    if tool is None:
        raise NoWitness("nvdisasm is absent (pip install triton)")
    return Witness(tool.command[0], tool.version)


@dataclass(slots=True)
class Tally:
    """Counts of verdicts, and the words of those that are not equal."""

    counts: collections.Counter[Verdict] = field(
        default_factory=lambda: collections.Counter[Verdict]()
    )
    samples: dict[str, list[tuple[int, str, str]]] = field(
        default_factory=lambda: collections.defaultdict(list)
    )

    def add(self, word: int, want: str | None, got: str | BadWord) -> Verdict:
        """Count one word.

        ``lenient``: nvdisasm prints it with marks of its own doubt; ``accepted``: only we do.
        """
        verdict = judge(want, got)
        self.counts[verdict] += 1
        if verdict in ("text", "unknown"):
            shown = got if isinstance(got, str) else f"{got.error.code} {got.error.message}"
            name = re.sub(r"^@\S+ ", "", want or shown).split(" ")[0].partition(".")[0]
            self.samples[f"{verdict} {name}"].append((word, want or "rejected", shown))
        return verdict


def doubtful(text: str) -> bool:
    """Whether nvdisasm marks something in its text as undefined."""
    return _MARKS.search(text) is not None


def judge(want: str | None, got: str | BadWord) -> Verdict:
    """How our reading of a word compares with nvdisasm's."""
    if isinstance(got, BadWord):
        if want is None:
            return "rejected"
        return "lenient" if _MARKS.search(want) else "unknown"
    if want is None:
        return "accepted"
    if got != want and _MARKS.search(want):
        return "lenient"
    return "equal" if got == want else "text"


def read(code: bytes, arch: int, *, strict: bool = True) -> list[str | BadWord]:
    """Our text of each word of a section, or why there is none."""
    section = decode_section(code, arch, strict=strict)
    bad = {item.offset: item for item in section.errors}
    texts = section.texts()
    return [bad[16 * i] if text is None else text for i, text in enumerate(texts)]


def sections(paths: Iterable[Path]) -> Iterator[tuple[int, bytes]]:
    """The distinct code sections of files; folders and wheels are opened."""
    corpus = sass_corpus.read(list(paths))
    for (arch, _), found in corpus.sections.items():
        for code, _ in found.values():
            yield arch, code


@dataclass(slots=True)
class Agreement:
    """How the distinct words of one architecture compare, and how often they occur."""

    words: int = 0
    tally: Tally = field(default_factory=Tally)
    occurrences: collections.Counter[Verdict] = field(
        default_factory=lambda: collections.Counter[Verdict]()
    )


def compare(paths: Sequence[Path], listed: int = 1000, kept: Path | None = None) -> int:
    """Every instruction of the files; the number of those that differ.

    Each distinct word is compared once and counted as often as it occurs.  ``kept`` is a folder
    for the witness's answers.
    """
    witness = find()
    print(f"nvdisasm {witness.version}, sha256 {witness.sha256}")
    corpus = sass_corpus.read(paths)
    print_contents(corpus)
    agreements: dict[sass_corpus.Target, Agreement] = {}
    for target in sorted(corpus.sections):
        agreements[target] = agreement = Agreement()
        words, counts = corpus.words(target)
        agreement.words = len(words)
        for first in range(0, len(words), BATCH):
            part = words[first : first + BATCH]
            wanted, ours = _texts(witness, target[0], part, kept)
            many = counts[first : first + BATCH].tolist()
            for word, want, got, count in zip(
                sass_corpus.integers(part), wanted, ours, many, strict=True
            ):
                agreement.occurrences[agreement.tally.add(word, want, got)] += count
    return _report_agreement(agreements, listed)


def _texts(
    witness: Witness, arch: int, words: sass_corpus.Halves, kept: Path | None
) -> tuple[list[str | None], list[str | BadWord]]:
    """Their texts and ours."""
    numbers = sass_corpus.integers(words)
    wanted = _remembered(witness, arch, words, numbers, kept)
    if None not in wanted:
        return wanted, read(words.tobytes(), arch)
    # Where one is rejected, places are not those of the words: as if each were at 0.
    ours = [read(word.to_bytes(16, "little"), arch)[0] for word in numbers]
    return witness.texts(arch, numbers, at_zero=True), ours


def _remembered(
    witness: Witness,
    arch: int,
    words: sass_corpus.Halves,
    numbers: Sequence[int],
    kept: Path | None,
) -> list[str | None]:
    """The witness's texts, from the folder where it was asked before."""
    if kept is None:
        return witness.texts(arch, numbers)
    name = hashlib.sha256(f"{witness.version} {arch}".encode() + words.tobytes()).hexdigest()
    place = kept / f"{name}.txt.xz"
    if place.exists():
        return [line or None for line in lzma.decompress(place.read_bytes()).decode().split("\n")]
    texts = witness.texts(arch, numbers)
    kept.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(text or "" for text in texts).encode()
    place.write_bytes(lzma.compress(lines, preset=0))
    return texts


def print_contents(corpus: sass_corpus.Corpus) -> None:
    """The corpus: instructions by file (or folder) and architecture."""
    for group, counts in corpus.instructions.items():
        inside = {t: n for t, n in counts.items() if t[0] in GENERATION_OF}
        archs = ", ".join(f"{t[0]}{t[1]}" for t in sorted(inside))
        print(
            f"{group}: {corpus.files[group]} files, {sum(inside.values()):,} instructions ({archs})"
        )
        older = sum(counts.values()) - sum(inside.values())
        if older:
            print(f"    and {older:,} of older architectures, not compared")
    for error in corpus.errors:
        print(f"unreadable: {error}")


def _report_agreement(agreements: dict[sass_corpus.Target, Agreement], listed: int) -> int:
    print(
        f"{'arch':8}{'instructions':>14}{'words':>12}{'differ':>10}{'unknown':>10}{'equal %':>12}"
    )
    total = Agreement()
    for target, agreement in agreements.items():
        _print_row(sass_corpus.name(target), agreement)
        total.words += agreement.words
        total.occurrences.update(agreement.occurrences)
    _print_row("all", total)
    for target, agreement in agreements.items():
        for verdict, found in agreement.tally.samples.items():
            print(f"{sass_corpus.name(target)} {verdict}: {len(found)} words")
            for word, want, got in found[:listed]:
                print(f"    {word:#034x}\n      {want}\n      {got}")
    return sum(total.occurrences.values()) - total.occurrences["equal"]


def _print_row(title: str, agreement: Agreement) -> None:
    counts = agreement.occurrences
    count = sum(counts.values())
    unknown = counts["unknown"] + counts["lenient"]
    differ = count - counts["equal"] - unknown
    share = 100 * counts["equal"] / count if count else 100.0
    print(f"{title:8}{count:14,}{agreement.words:12,}{differ:10,}{unknown:10,}{share:12.6f}")


def mutants(words: Sequence[int], count: int, seed: int) -> list[int]:
    """Words made from real ones by flipping one to three bits below the scheduling fields."""
    rng = random.Random(seed)
    out: list[int] = []
    for _ in range(count):
        word = rng.choice(words)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            word ^= 1 << rng.randrange(12, 102)
        out.append(word)
    return out


def flips(
    witness: Witness, arch: int, words: Sequence[int], count: int, seed: int, tally: Tally
) -> None:
    """Compare ``count`` mutants of ``words``; bits that mean nothing may be set."""
    changed = mutants(words, count, seed)
    for first in range(0, count, BATCH):
        part = changed[first : first + BATCH]
        wanted = witness.texts(arch, part, at_zero=True)
        for word, want in zip(part, wanted, strict=True):
            (got,) = read(word.to_bytes(16, "little"), arch, strict=False)
            tally.add(word, want, got)


def report(tallies: dict[int, Tally], samples: int = 3) -> int:
    """Print the table and samples of what differs; the number of words that do."""
    names: tuple[Verdict, ...] = (
        "equal", "text", "unknown", "lenient", "accepted", "rejected",
    )  # fmt: skip
    print("arch " + "".join(f"{name:>10}" for name in names))
    wrong = 0
    for arch, tally in sorted(tallies.items()):
        print(f"{arch:4} " + "".join(f"{tally.counts[name]:10}" for name in names))
        wrong += tally.counts["text"] + tally.counts["unknown"]
    for arch, tally in sorted(tallies.items()):
        for name, found in sorted(tally.samples.items(), key=lambda item: -len(item[1])):
            print(f"sm_{arch} {name}: {len(found)}")
            for word, want, got in found[:samples]:
                print(f"    {word:#034x}\n      {want}\n      {got}")
    return wrong


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("compare")
    command.add_argument("files", nargs="+", type=Path)
    command.add_argument("--listed", type=int, default=1000, help="words shown of each verdict")
    command.add_argument("--kept", type=Path, help="a folder for nvdisasm's answers")
    command = commands.add_parser("flips")
    command.add_argument("files", nargs="+", type=Path)
    command.add_argument("--words", type=int, default=20_000, help="mutants an architecture")
    command.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        if options.command == "compare":
            return int(compare(options.files, options.listed, options.kept) > 0)
        tallies: dict[int, Tally] = {}
        real: dict[int, list[int]] = collections.defaultdict(list)
        for arch, code in sections(options.files):
            real[arch] += [int.from_bytes(code[i : i + 16], "little")
                           for i in range(0, len(code), 16)]  # fmt: skip
        for arch, words in real.items():
            tallies[arch] = Tally()
            flips(find(), arch, words, options.words, options.seed, tallies[arch])
        report(tallies)
    except NoWitness as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
