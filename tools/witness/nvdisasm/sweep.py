"""The mutation sweep: words made from real ones by changing fields, our reading against nvdisasm's.

::

    # slow: asks nvdisasm
    python -m tools.witness.nvdisasm.sweep ask FOLDER FILE... --words N --arch A ...
    # fast: from the answers
    python -m tools.witness.nvdisasm.sweep compare FOLDER --arch A ...
    # mutants read back
    python -m tools.witness.nvdisasm.sweep round FOLDER --arch A ... --words N

``ask`` takes base words evenly from all forms of the golden files and of FILE (executables,
libraries, cubins, wheels), changes bits and whole fields, and keeps nvdisasm's answers in FOLDER,
so that ``compare`` can be repeated after the tables changed.  ``compare`` prints, by architecture,
how many of the words that nvdisasm prints without a mark of its own doubt have the same text here,
how many of those that it rejects are rejected here, and what is left by form.  ``round`` assembles
the text of each mutant that can be decoded and compares the bits that mean something.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.control_brackets import control_text, differing, hidden_text
from sassxlate.disasm.sass.codec.decode import opcode_of, row_of
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.tables.spec import GENERATION_OF, GENERATIONS
from sassxlate.errors import DecodeError
from tools.generate import sass_golden
from tools.witness.nvdisasm import witness as sass_witness

CHUNK = 100_000
_PER_FORM = 6  # base words
_SEED = 20
_OPCODE = 0xFFF | 1 << 91
# Fields outside the row's own: guard, the bits above the operands, scheduling.
_COMMON = tuple(
    (1 << w) - 1 << lo
    for lo, w in ((12, 4), (102, 3), (105, 5), (110, 3), (113, 3), (116, 6), (122, 4), (126, 2))
)


# ---- base words and mutants


def bases(arch: int, files: Iterable[Path]) -> list[list[int]]:
    """Real words by form, at most ``_PER_FORM`` each, the golden ones first."""
    forms: dict[str, list[int]] = {}
    seen: set[int] = set()

    def add(word: int) -> None:
        if word in seen:
            return
        seen.add(word)
        try:
            inst = decode(word, 0, arch)
            name = f"{opcode_of(word):x} {inst.mnemonic}.{'.'.join(inst.modifiers)}"
        except DecodeError:
            name = f"{opcode_of(word):x}"
        found = forms.setdefault(name, [])
        if len(found) < _PER_FORM:
            found.append(word)

    golden = sass_golden.GOLDEN / f"sm_{arch}.txt"
    for word, _ in sass_golden.read_golden(golden) if golden.exists() else ():
        add(word)
    for other, code in sass_witness.sections(files):
        if GENERATION_OF[other] == GENERATION_OF[arch]:
            for i in range(0, len(code), 16):
                add(int.from_bytes(code[i : i + 16], "little"))
    return [forms[name] for name in sorted(forms)]


def runs(mask: int) -> Iterator[int]:
    """The contiguous parts of a mask, of eight bits at most: registers share no part."""
    while mask:
        low = mask & -mask
        part = low
        while part.bit_count() < 8 and mask & (part << 1 | low) == part << 1 | low:
            part = part << 1 | low
        yield part
        mask &= ~part


def fields(word: int, arch: int) -> tuple[list[int], list[int]]:
    """The masks of a word's fields: those that choose what it is, and all."""
    row = row_of(word, GENERATION_OF[arch])
    if row is None:
        parts = list(runs((1 << 105) - 1 & ~0xFFFF & ~_OPCODE))
        return parts, [*parts, *_COMMON]
    chosen = [mod.field.mask for mod in row.row.mods if mod.field.mask]
    chosen += [mask.mask for mask, _ in row.row.fixed]
    rest = [part for mask in row.operand_masks.values() for part in runs(mask)]
    rest += runs(row.zero_mask & (1 << 102) - 1)
    return chosen or rest, [*chosen, *rest, *_COMMON]


def place(mask: int, value: int) -> int:
    """The low bits of a value dealt to the bits of a mask."""
    out = 0
    while mask:
        low = mask & -mask
        if value & 1:
            out |= low
        value >>= 1
        mask &= ~low
    return out


def mutant(rng: random.Random, word: int, chosen: Sequence[int], every: Sequence[int]) -> int:
    """A word with one or two fields changed; never the same word."""
    out = word
    while out == word:
        kind = rng.random()
        if kind < 0.35:
            out ^= 1 << rng.choice((*range(12, 91), *range(92, 128)))
        elif kind < 0.60:
            mask = rng.choice(every)
            out = out & ~mask | place(mask, rng.getrandbits(128))
        elif kind < 0.75:
            mask = rng.choice(every)
            value = rng.choice((0, -1, 1, -2, 1 << mask.bit_count() - 1))
            out = out & ~mask | place(mask, value)
        elif kind < 0.93:
            for mask in (rng.choice(chosen), rng.choice(chosen)):
                out = out & ~mask | place(mask, rng.getrandbits(128))
        elif kind < 0.97:
            for _ in range(rng.randrange(2, 5)):
                out ^= 1 << rng.choice((*range(12, 91), *range(92, 105)))
        else:
            out ^= 1 << rng.choice((*range(12), 91))
    return out


def mutants(forms: Sequence[Sequence[int]], arch: int, count: int, seed: str) -> list[int]:
    """Mutants of the base words, the forms in turn."""
    rng = random.Random(seed)
    known: dict[int, tuple[list[int], list[int]]] = {}
    order: list[Sequence[int]] = []
    out: list[int] = []
    while len(out) < count:
        if not order:
            order = list(forms)
            rng.shuffle(order)
        word = rng.choice(order.pop())
        if word not in known:
            known[word] = fields(word, arch)
        out.append(mutant(rng, word, *known[word]))
    return out


# ---- answers on disk


@dataclass(frozen=True, slots=True)
class Chunk:
    """Words and what nvdisasm prints for each, None if it rejects it."""

    words: list[int]
    texts: list[str | None]
    bases: frozenset[int]  # opcodes of the base words


def write_chunk(path: Path, chunk: Chunk) -> None:
    """Compressed: counts, words, opcodes of the base words, texts a line."""
    head = struct.pack("<II", len(chunk.words), len(chunk.bases))
    words = b"".join(w.to_bytes(16, "little") for w in chunk.words)
    opcodes = b"".join(struct.pack("<H", o) for o in sorted(chunk.bases))
    texts = "\n".join("\0" if t is None else t for t in chunk.texts).encode()
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(zstandard.compress(head + words + opcodes + texts, 6))
    temporary.rename(path)


def read_chunk(path: Path) -> Chunk:
    """The inverse of :func:`write_chunk`."""
    data = zstandard.decompress(path.read_bytes(), 1 << 30)
    count, opcodes = struct.unpack_from("<II", data)
    at = 8 + 16 * count
    words = [int.from_bytes(data[i : i + 16], "little") for i in range(8, at, 16)]
    known = struct.unpack_from(f"<{opcodes}H", data, at)
    texts = data[at + 2 * opcodes :].decode().split("\n")
    return Chunk(words, [None if t == "\0" else t for t in texts], frozenset(known))


def chunks(folder: Path, arch: int) -> list[Path]:
    """The answers about an architecture."""
    return sorted(folder.glob(f"sm_{arch}.*.zst"))


def ask(folder: Path, archs: Sequence[int], files: Sequence[Path], count: int) -> None:
    """Make mutants and keep nvdisasm's answers."""
    witness = sass_witness.find()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "witness").write_text(f"{witness.version} {witness.sha256}\n")
    for arch in archs:
        missing = [i for i in range(-(-count // CHUNK))
                   if not (folder / f"sm_{arch}.{i:03}.zst").exists()]  # fmt: skip
        if not missing:
            continue
        forms = bases(arch, files)
        opcodes = frozenset(opcode_of(word) for words in forms for word in words)
        print(f"sm_{arch}: {len(forms)} forms, {sum(map(len, forms))} base words", flush=True)
        for i in missing:
            words = mutants(forms, arch, min(CHUNK, count - i * CHUNK), f"{_SEED} {arch} {i}")
            texts = witness.texts(arch, words, at_zero=True)
            write_chunk(folder / f"sm_{arch}.{i:03}.zst", Chunk(words, texts, opcodes))
            print(f"sm_{arch}: {(i + 1) * CHUNK} words", flush=True)


# ---- comparison


@dataclass(slots=True)
class Result:
    """Counts of verdicts, and words by verdict and form."""

    counts: collections.Counter[str] = field(default_factory=lambda: collections.Counter[str]())
    left: dict[tuple[str, str], list[tuple[int, str, str]]] = field(
        default_factory=lambda: collections.defaultdict(list)
    )


def reading(word: int, arch: int) -> tuple[str | None, str]:
    """Our text, otherwise None; and why."""
    try:
        return decode(word, 0, arch, strict=False).text, ""
    except DecodeError as error:
        return None, f"{error.code} {error.message}"


def form_of(word: int, arch: int, text: str | None) -> str:
    """The opcode and the mnemonic."""
    row = row_of(word, GENERATION_OF[arch])
    name = row.row.mnemonic if row else "?"
    if text is not None:
        name = re.sub(r"^@\S+ ", "", text).split(" ")[0].partition(".")[0]
    return f"{opcode_of(word):04x} {name}"


def judge(chunk: Chunk, arch: int, result: Result) -> None:
    """Count the verdicts of a chunk."""
    for word, want in zip(chunk.words, chunk.texts, strict=True):
        got, why = reading(word, arch)
        if want is None:
            verdict = "rejected" if got is None else "accepted"
        elif want == got:
            verdict = "equal"
        elif sass_witness.doubtful(want):
            verdict = "lenient"
        else:
            verdict = "unknown" if got is None else "text"
        result.counts[verdict] += 1
        if verdict in ("accepted", "text", "unknown"):
            result.left[verdict, form_of(word, arch, want)].append(
                (word, want or "rejected", got or why)
            )


def percent(part: int, other: int) -> str:
    """The share of ``part`` in both."""
    return f"{100 * part / (part + other):8.3f}" if part + other else "       -"


def compare(folder: Path, archs: Sequence[int], samples: int, count: int) -> None:
    """Print the table and the remaining differences, by form."""
    print(f"nvdisasm {(folder / 'witness').read_text().strip()}")
    print("arch    words    equal  text unknown equal%   lenient rejected accepted rejected%")
    results: dict[int, Result] = {}
    for arch in archs:
        result = results[arch] = Result()
        for path in chunks(folder, arch)[: -(-count // CHUNK)]:
            judge(read_chunk(path), arch, result)
        c = result.counts
        print(
            f"{arch:4} {c.total():8} {c['equal']:8} {c['text']:5} {c['unknown']:7}"
            f" {percent(c['equal'], c['text'] + c['unknown'])} {c['lenient']:7} {c['rejected']:8}"
            f" {c['accepted']:8}  {percent(c['rejected'], c['accepted'])}",
            flush=True,
        )
    for arch, result in results.items():
        for (verdict, form), found in sorted(result.left.items(), key=lambda i: -len(i[1])):
            print(f"sm_{arch} {verdict} {form}: {len(found)}")
            for word, want, got in found[:samples]:
                print(f"    {word:#034x}\n      {want}\n      {got}")


# ---- there and back


def back(folder: Path, archs: Sequence[int], count: int, samples: int) -> None:
    """Assemble what mutants read, with scheduling; the bits that mean something must be equal."""
    for arch in archs:
        done = wrong = 0
        left: dict[str, list[tuple[int, str, str]]] = collections.defaultdict(list)
        for path in chunks(folder, arch):
            for word in read_chunk(path).words:
                if done >= count:
                    break
                try:
                    inst = decode(word, 0, arch, strict=False)
                except DecodeError:
                    continue
                done += 1
                line = f"{control_text(inst.control)[:-1]}{hidden_text(inst)}] {inst.text} ;"
                try:
                    made = assemble(line, arch)
                    differs = differing(word, made, GENERATION_OF[arch])
                    why = f"bits {[i for i in range(128) if differs >> i & 1]}" if differs else ""
                except DecodeError as error:
                    why = f"{error.code} {error.message}"
                if why:
                    wrong += 1
                    left[form_of(word, arch, inst.text)].append((word, line, why))
        print(f"sm_{arch}: {done} mutants, {done - wrong} identical", flush=True)
        for form, found in sorted(left.items(), key=lambda i: -len(i[1])):
            print(f"sm_{arch} {form}: {len(found)}")
            for word, line, why in found[:samples]:
                print(f"    {word:#034x}\n      {line}\n      {why}")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (("ask", 1_000_000), ("compare", 1_000_000), ("round", 100_000)):
        command = commands.add_parser(name)
        command.add_argument("folder", type=Path)
        if name == "ask":
            command.add_argument("files", nargs="*", type=Path)
        command.add_argument("--words", type=int, default=words, help="of each architecture")
        command.add_argument("--arch", type=int, nargs="+", default=list(GENERATIONS))
        command.add_argument("--samples", type=int, default=2, help="words shown of each form")
    options = parser.parse_args()
    try:
        if options.command == "ask":
            ask(options.folder, options.arch, options.files, options.words)
        elif options.command == "compare":
            compare(options.folder, options.arch, options.samples, options.words)
        else:
            back(options.folder, options.arch, options.words, options.samples)
    except sass_witness.NoWitness as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
