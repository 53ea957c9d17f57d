"""Probes nvdisasm bit by bit: which words of each row of the SASS tables are instructions.

::

    python tools/sass_probe.py STATE [FILE...] [--arch A ...]  # probe what STATE lacks
    python tools/sass_probe.py STATE --check                   # sample again, list disagreements

The rows of ``disasm/sass/tables`` are written by hand: roles, widths and templates are nothing
that nvdisasm could tell.  What it can tell is found here, for each row and generation, from
real words (of the golden files and of FILE) and from words made up from the row:

* what each of the 128 bits is: part of an operand or a modifier, ignored, or rejecting;
* every value of each modifier, part selector and sign;
* which of these combine: pairs are tried, then the product of those that depend on each other;
* which scheduling information the form takes: barriers, reuse and stall.

STATE keeps what was found by row, so that only new or changed rows are probed again.  The result is
``disasm/sass/tables/legal.json``, which :mod:`sassxlate.disasm.sass.legal` reads.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import itertools
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import sass_golden
import sass_witness
from sass_sweep import place, runs

from sassxlate.disasm.sass import legal
from sassxlate.disasm.sass.compiler import value_bits
from sassxlate.disasm.sass.decode import CompiledRow, index, opcode_bits, row_of
from sassxlate.disasm.sass.spec import GENERATION_OF, GENERATIONS, Idiom, Mod, R
from sassxlate.errors import DecodeError

_OPCODE = 0xFFF | 1 << 91
_FULL = (1 << 128) - 1
_CONTROL = (1 << 126) - (1 << 105)
_SIMPLE = 0x7E1 << 105  # no barriers, one cycle
_USCHED = (0, 1, 8, 15, 16, 17, 22, 27, 28, 31)
_PRODUCT = 4096  # values of a group that are all tried
_LARGEST = 13  # bits of a group
_SEED = 20


def pext(word: int, mask: int) -> int:
    """The bits of a mask, put together."""
    return legal.gather(word, mask)


@dataclass(slots=True)
class Target:
    """A row of a generation, with what nvdisasm said about its words."""

    row: CompiledRow
    name: str
    signature: str
    parts: list[int] = field(default_factory=lambda: list[int]())  # masks of what can combine
    values: dict[int, list[int]] = field(default_factory=lambda: dict[int, list[int]]())
    good: dict[int, str] = field(default_factory=lambda: dict[int, str]())
    bad: set[int] = field(default_factory=lambda: set[int]())
    bases: list[int] = field(default_factory=lambda: list[int]())
    # By the mask of parts that were varied by themselves: whether their values were ever printed.
    tests: dict[int, dict[int, bool]] = field(
        default_factory=lambda: collections.defaultdict(dict[int, bool])
    )
    reserved: int = 0
    ignored: int = 0
    control: str = ""
    groups: list[tuple[int, int]] = field(default_factory=lambda: list[tuple[int, int]]())
    notes: list[str] = field(default_factory=lambda: list[str]())


def name_of(row: CompiledRow) -> str:
    """What identifies a row within a generation: its opcode and its fixed bits."""
    return legal.name_of(row.row.opcode, row.match_mask, row.match_value)


def signature(row: CompiledRow) -> str:
    """Changes where the row does."""
    body = repr((
        row.row.mnemonic,
        row.row.text,
        row.match_mask,
        [(m.name, m.field, sorted(m.names.items()) if isinstance(m, Mod) else "")
         for m in row.row.mods],
        sorted((role, repr(replace(slot, reuse=None) if isinstance(slot, R) else slot))
               for role, slot in row.row.operands.items()),
        row.row.free, row.row.ones,
    ))  # fmt: skip
    body = re.sub(r" at 0x[0-9a-f]+>", ">", body)  # functions stand at another place each time
    return hashlib.sha256(body.encode()).hexdigest()[:12]


def choosers(row: CompiledRow) -> tuple[list[int], dict[int, list[int]]]:
    """The parts of a word that may combine, with the values that the row gives a meaning."""
    parts: list[int] = []
    values: dict[int, list[int]] = {}
    operand_values = 0
    for slot in row.row.operands.values():
        operand_values |= value_bits(slot, row.generation)
    taken = operand_values | row.match_mask | _OPCODE | 0xF000 | _CONTROL
    for mod in row.row.mods:
        mask = mod.field.mask & ~taken
        if not mask:
            continue
        taken |= mask
        parts.append(mask)
        if isinstance(mod, Idiom) or mask != mod.field.mask:
            values[mask] = list(range(1 << min(mask.bit_count(), 8)))
        else:
            named = {pext(_spread(mod, v), mask) for v in mod.names}
            values[mask] = sorted(named)
    for mask in row.operand_masks.values():
        for part in runs(mask & ~taken):
            parts.append(part)
            values[part] = list(range(1 << part.bit_count()))
        taken |= mask
    return parts, values


def _spread(mod: Mod, value: int) -> int:
    word = shift = 0
    for lo, width in mod.field.parts:
        word |= (value >> shift & (1 << width) - 1) << lo
        shift += width
    return word


# ---- asking in bulk


class Questions:
    """Words to ask about, with what to do with each answer."""

    def __init__(self, witness: sass_witness.Witness, arch: int) -> None:
        self.witness = witness
        self.arch = arch
        self.known: dict[int, str | None] = {}
        self.count = 0

    def ask(self, words: Iterable[int]) -> None:
        """Make the answers known."""
        new = [w for w in dict.fromkeys(words) if w not in self.known]
        self.count += len(new)
        for word, text in zip(
            new, self.witness.texts(self.arch, new, at_zero=True), strict=True
        ):
            self.known[word] = text

    def learn(self, target: Target, word: int, varied: int) -> None:
        """File the answer about a target's word, in which the bits ``varied`` were changed."""
        text = self.known[word]
        good = text is not None and not sass_witness.doubtful(text)
        if good:
            target.good[word] = text or ""
        else:
            target.bad.add(word)
        if varied:
            tests, value = target.tests[varied], pext(word, varied)
            tests[value] = tests.get(value, False) or good


Question: TypeAlias = tuple[int, int]  # a word, the bits that were varied by themselves


def each(
    questions: Questions,
    targets: Sequence[Target],
    make: Callable[[Target], Iterable[Question]],
) -> None:
    """Ask and file what ``make`` wants to know about each target."""
    wanted = [
        (target, word, varied)
        for target in targets
        for word, varied in make(target)
        if row_of(word, questions.arch) is target.row
    ]
    questions.ask(word for _, word, _ in wanted)
    for target, word, varied in wanted:
        questions.learn(target, word, varied)


# ---- words


def usual(row: CompiledRow) -> int:
    """The row's opcode and fixed bits, PT and RZ where nothing is chosen."""
    word = opcode_bits(row.row.opcode) | row.match_value | 7 << 12 | _SIMPLE
    for part in row.row.ones:
        word |= part.mask
    return word


def invent(target: Target, rng: random.Random, count: int) -> Iterator[Question]:
    """Words of the row with any modifiers and operands."""
    base = usual(target.row)
    operands = 0
    for slot in target.row.row.operands.values():
        operands |= value_bits(slot, target.row.generation)
    operands &= ~target.row.match_mask
    for i in range(count):
        word = base
        fill = (0, -1, rng.getrandbits(128), rng.getrandbits(128))[i % 4] & operands
        word = word & ~operands | fill
        for mask in target.parts:
            word = word & ~mask | place(mask, rng.choice(target.values[mask] or [0]))
        if word & target.row.match_mask == target.row.match_value:
            yield word, 0


def chosen(target: Target, rng: random.Random, count: int) -> Iterator[Question]:
    """Base words with any combination of what can combine."""
    for _ in range(count if target.bases and target.parts else 0):
        word = rng.choice(target.bases)
        for mask in target.parts:
            word = word & ~mask | place(mask, rng.choice(target.values[mask] or [0]))
        yield word, 0


def single_words(target: Target) -> Iterator[Question]:
    """Every value of each part, in base words."""
    for base in target.bases[:3]:
        for mask in target.parts:
            for value in range(1 << min(mask.bit_count(), 9)):
                yield base & ~mask | place(mask, value), mask


def spread(target: Target, count: int) -> None:
    """Keep some base words, as different in what they choose as can be."""
    union = 0
    for mask in target.parts:
        union |= mask
    by_choice: dict[int, int] = {}
    for word in target.bases:
        by_choice.setdefault(word & union, word)
    different = list(by_choice.values())
    target.bases = (different + [w for w in target.bases if w not in different])[:count]


# ---- what is found


def bits_of(questions: Questions, targets: Sequence[Target]) -> None:
    """Each bit by itself: what a row does not name is ignored or not."""
    wanted = [(t, b) for t in targets for b in t.bases[:2]]
    flips = [1 << i for i in range(128) if not _OPCODE >> i & 1 and not _CONTROL >> i & 1]
    questions.ask(base ^ bit for _, base in wanted for bit in flips)
    for target, base in wanted:
        row = target.row
        unnamed = row.zero_mask
        for part in (*row.row.free, *row.row.ones):
            unnamed |= part.mask
        for bit in flips:
            if bit & row.match_mask:
                continue
            text = questions.known[base ^ bit]
            plain = text is not None and not sass_witness.doubtful(text)
            if bit & unnamed:
                if text != questions.known[base]:
                    target.reserved |= bit
                    target.notes.append(f"bit {bit.bit_length() - 1}: {text}")
                else:
                    target.ignored |= bit
            elif not plain and not any(bit & mask for mask in target.parts):
                target.notes.append(f"operand bit {bit.bit_length() - 1} rejects")
            if bit & ~unnamed:
                (target.good.__setitem__(base ^ bit, text or "") if plain
                 else target.bad.add(base ^ bit))  # fmt: skip
        target.ignored &= ~target.reserved


def control_of(questions: Questions, targets: Sequence[Target]) -> None:
    """Barriers, stall and reuse: sets of values that are taken."""
    clear = ~_CONTROL & _FULL

    def words(base: int) -> dict[tuple[str, int], int]:
        base &= clear
        out: dict[tuple[str, int], int] = {}
        for v in range(8):
            out["w", v] = base | (0x701 | v << 5) << 105
            out["r", v] = base | (0x0E1 | v << 8) << 105
            for u in _USCHED:
                out["o", v << 5 | u] = base | (0x7E0 | u) << 105 | v << 122
        return out

    questions.ask(w for t in targets for base in t.bases[:3] for w in words(base).values())
    for target in targets:
        found: set[tuple[str, int]] = set()
        every: list[set[tuple[str, int]]] = []
        for base in target.bases[:3]:
            good = {key for key, word in words(base).items() if questions.known[word] is not None}
            every.append(good)
            found |= good
        if any(good != found for good in every):
            target.notes.append("scheduling depends on modifiers")
        taken = 0
        for v in range(8):
            for u in range(32):
                like = u if u in _USCHED else 8 if u < 16 else 22 if u < 28 else 28
                if ("o", v << 5 | like) in found:
                    taken |= 1 << (v << 5 | u)
        write = sum(1 << v for v in range(8) if ("w", v) in found)
        read = sum(1 << v for v in range(8) if ("r", v) in found)
        target.control = f"{write:02x}{read:02x}{taken:x}"


def projections(words: Iterable[int], mask: int) -> set[int]:
    """The values of a part in words."""
    return {pext(w & mask, mask) for w in {w & mask for w in words}}


def predicted(groups: Sequence[tuple[int, int]], word: int) -> bool:
    """Whether the groups found so far take a word."""
    return all(bitmap >> pext(word, mask) & 1 for mask, bitmap in groups)


def unexplained(target: Target) -> list[int]:
    """Rejected words that the groups take."""
    return [w for w in target.bad if predicted(target.groups, w)]


def pair_words(target: Target, rng: random.Random) -> Iterator[Question]:
    """For each pair of parts, their values in base words."""
    for a, b in itertools.combinations(target.parts, 2):
        product = list(itertools.product(target.values[a], target.values[b]))
        if len(product) > 256:
            product = rng.sample(product, 256)
        for base in target.bases[:3]:
            for va, vb in product:
                yield base & ~(a | b) | place(a, va) | place(b, vb), a | b


def never(target: Target, union: int) -> set[int]:
    """The values of some bits that were asked about by themselves and never printed."""
    asked = {value for value, good in target.tests[union].items() if not good}
    return asked - projections(target.good, union) if asked else asked


def fit(target: Target) -> None:
    """Groups that take everything printed: single parts, then what these leave of larger ones."""
    target.groups = []
    for union in sorted(target.tests, key=lambda mask: (mask.bit_count(), mask)):
        inside = [(mask, taken) for mask, taken in target.groups if not mask & ~union]
        left = {v for v in never(target, union) if predicted(inside, place(union, v))}
        if left and union.bit_count() <= _LARGEST:
            bitmap = (1 << (1 << union.bit_count())) - 1
            for value in left:
                bitmap &= ~(1 << value)
            target.groups.append((union, bitmap))


def joined(target: Target) -> list[list[int]]:
    """Parts that depend on each other, by the groups of pairs."""
    parent = {mask: mask for mask in target.parts}

    def root(mask: int) -> int:
        while parent[mask] != mask:
            mask = parent[mask]
        return mask

    pairs = {a | b: (a, b) for a, b in itertools.combinations(target.parts, 2)}
    for union, _ in target.groups:
        if union in pairs:
            a, b = pairs[union]
            parent[root(a)] = root(b)
    sets: dict[int, list[int]] = collections.defaultdict(list)
    for mask in target.parts:
        sets[root(mask)].append(mask)
    return [masks for masks in sets.values() if len(masks) > 2]


def product_words(target: Target, rng: random.Random) -> Iterator[Question]:
    """Every combination of values that depend on each other, in base words, or a sample."""
    for masks in joined(target):
        alone = [
            sorted(projections(target.good, mask) & set(target.values[mask])) for mask in masks
        ]
        total = 1
        for values in alone:
            total *= len(values)
        combos: Iterable[tuple[int, ...]] = itertools.product(*alone)
        if total > _PRODUCT:
            combos = {tuple(rng.choice(v) for v in alone) for _ in range(_PRODUCT)}
        union = sum(masks)
        for combo in combos:
            bits = sum(place(m, v) for m, v in zip(masks, combo, strict=True))
            if predicted(target.groups, bits | target.bases[0] & ~union):
                for base in target.bases[:2]:
                    yield base & ~union | bits, union


def probe(
    witness: sass_witness.Witness, generation: int, targets: list[Target], real: Sequence[int]
) -> None:
    """Find everything about the rows of a generation."""
    questions = Questions(witness, generation)
    rng = random.Random(_SEED + generation)
    by_row = {id(t.row): t for t in targets}
    for word in real:
        row = row_of(word, generation)
        target = by_row.get(id(row))
        if target and len(target.bases) < 40:
            target.bases.append(word & ~_CONTROL | _SIMPLE)
    each(questions, targets, lambda t: ((base, 0) for base in t.bases))
    each(questions, targets, lambda t: invent(t, rng, 64))
    each(questions, [t for t in targets if not t.good], lambda t: invent(t, rng, 1000))
    for target in targets:
        real_ones = [w for w in target.bases if w in target.good]
        target.bases = real_ones + [w for w in target.good if w not in real_ones]
        spread(target, 6)
        if not target.bases:
            target.notes.append("no word found that nvdisasm prints")
    targets = [t for t in targets if t.bases]
    log(f"sm_{generation}: {len(targets)} rows have words", questions)
    bits_of(questions, targets)
    log("bits", questions)
    control_of(questions, targets)
    log("scheduling", questions)
    each(questions, targets, single_words)
    each(questions, targets, lambda t: chosen(t, rng, 96 * min(len(t.parts), 4)))
    for target in targets:
        fit(target)
    hard = [t for t in targets if unexplained(t)]
    log(f"single values; {len(hard)} rows have values that depend on each other", questions)
    for _ in range(2):
        for target in hard:
            more = [w for w in target.good if w not in target.bases]
            target.bases = target.bases[:1] + rng.sample(more, min(3, len(more)))
        each(questions, hard, lambda t: pair_words(t, rng))
        for target in hard:
            fit(target)
        each(questions, hard, lambda t: product_words(t, rng))
        each(questions, hard, lambda t: chosen(t, rng, 400))
        for target in hard:
            fit(target)
        hard = [t for t in hard if unexplained(t)]
        log(f"combinations; {len(hard)} rows are left with some", questions)
    for target in hard:
        left = unexplained(target)
        target.notes.append(f"{len(left)} of {len(target.bad)} rejected words are taken")


def log(what: str, questions: Questions) -> None:
    """Progress."""
    print(f"  {what} ({questions.count} words)", file=sys.stderr, flush=True)


# ---- state and result


def targets_of(generation: int) -> list[Target]:
    """All rows of a generation."""
    out: list[Target] = []
    for rows in index(generation).values():
        for row in rows:
            parts, values = choosers(row)
            out.append(Target(row, name_of(row), signature(row), parts, values))
    return out


def words_of(generation: int, files: Sequence[Path]) -> list[int]:
    """Real words: golden ones, then one of each kind of a file's."""
    words: dict[int, None] = {}
    for path in sorted(sass_golden.GOLDEN.glob("sm_*.txt")):
        if GENERATION_OF[int(path.stem[3:])] == generation:
            words |= dict.fromkeys(word for word, _ in sass_golden.read_golden(path))
    kinds: set[int] = set()
    for arch, code in sass_witness.sections(files):
        if GENERATION_OF[arch] == generation:
            for i in range(0, len(code), 16):
                word = int.from_bytes(code[i : i + 16], "little")
                row = row_of(word, generation)
                kind = word & (row.mod_mask | _OPCODE | row.match_mask) if row else 0
                if row and kind not in kinds:
                    kinds.add(kind)
                    words[word] = None
    return list(words)


def _state(path: Path) -> dict[str, dict[str, Any]]:
    """What was found so far, by row."""
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def run(state: Path, files: Sequence[Path], archs: Sequence[int], new: bool) -> None:
    """Probe what the state lacks, or its ``new`` rows alone, and write the result."""
    witness = sass_witness.find()
    state.mkdir(parents=True, exist_ok=True)
    for generation in archs:
        path = state / f"{generation}.json"
        known = _state(path)
        everything = targets_of(generation)
        names = {t.name for t in everything}
        todo = [t for t in everything if known.get(t.name, {}).get("signature") != t.signature]
        if new:
            todo = [t for t in todo if t.name not in known]
        if todo:
            print(f"sm_{generation}: {len(todo)} rows", file=sys.stderr, flush=True)
            probe(witness, generation, todo, words_of(generation, files))
        known = {name: entry for name, entry in known.items() if name in names}
        for t in todo:
            known[t.name] = {
                "mnemonic": t.row.row.mnemonic,
                "signature": t.signature,
                "reserved": f"{t.reserved:x}",
                "ignored": f"{t.ignored:x}",
                "control": t.control,
                "groups": [[f"{mask:x}", f"{bitmap:x}"] for mask, bitmap in t.groups],
                "notes": sorted(set(t.notes)),
            }
        path.write_text(json.dumps(known, indent=0, sort_keys=True))
    write(state, witness)


def write(state: Path, witness: sass_witness.Witness) -> None:
    """The shipped file: groups, profiles, and rows by name with each generation's profile."""
    groups: dict[str, str] = {}
    found: dict[str, dict[int, str]] = collections.defaultdict(dict)
    for generation in GENERATIONS:
        path = state / f"{generation}.json"
        for name, entry in _state(path).items():
            if entry["control"]:
                own = sorted(f'["{mask}", "{taken}"]' for mask, taken in entry["groups"])
                groups |= dict.fromkeys(own, "")
                found[name][generation] = json.dumps(
                    [entry["reserved"], entry["ignored"], entry["control"], own]
                )
    group_number = {text: i for i, text in enumerate(sorted(groups))}

    def profile(text: str) -> str:
        reserved, ignored, control, own = json.loads(text)
        return json.dumps([reserved, ignored, control, *(group_number[g] for g in own)])

    profiles = sorted({profile(text) for by in found.values() for text in by.values()})
    number = {text: i for i, text in enumerate(profiles)}
    rows: list[str] = []
    for name in sorted(found):
        by: dict[str, list[int]] = collections.defaultdict(list)
        for generation, text in found[name].items():
            by[str(number[profile(text)])].append(generation)
        rows.append(f"{json.dumps(name)}: {json.dumps(by, sort_keys=True)}")
    temporary = legal.PATH.with_suffix(".tmp")
    temporary.write_text(
        f'{{\n"witness": "nvdisasm {witness.version}, sha256 {witness.sha256}",\n'
        + '"groups": [\n' + ",\n".join(sorted(groups)) + '\n],\n"profiles": [\n'
        + ",\n".join(profiles) + '\n],\n"rows": {\n' + ",\n".join(rows) + "\n}}\n"
    )  # fmt: skip
    temporary.rename(legal.PATH)
    print(f"{legal.PATH.name}: {len(rows)} rows, {len(profiles)} profiles, {len(groups)} groups, "
          f"{legal.PATH.stat().st_size} bytes")  # fmt: skip


def check(archs: Sequence[int], count: int, seed: int) -> int:
    """Words of every row, made up anew: disagreements with nvdisasm by row; their number."""
    witness = sass_witness.find()
    print(f"file: {legal.load()['witness']}\nhere: nvdisasm {witness.version}")
    wrong = 0
    for generation in archs:
        rng = random.Random(f"{seed} {generation}")
        questions = Questions(witness, generation)
        asked: list[tuple[Target, int]] = []
        for target in targets_of(generation):
            for word, _ in invent(target, rng, count):
                if row_of(word, generation) is target.row:
                    asked.append((target, word))
        questions.ask(word for _, word in asked)
        found: dict[tuple[str, str, str], list[str]] = collections.defaultdict(list)
        for target, word in asked:
            text = questions.known[word]
            try:
                got: str | None = target.row.decode(word, 0, generation, False).text
            except DecodeError:
                got = None
            doubt = text is not None and sass_witness.doubtful(text)
            if got == text or (doubt and got is None):
                continue
            what = "accepted" if text is None or doubt else "refused" if got is None else "text"
            key = (what, target.row.row.mnemonic, target.name)
            found[key].append(f"    {word:#034x} {text} | {got}")
        total = sum(map(len, found.values()))
        print(f"sm_{generation}: {len(asked)} words, {total} disagreements")
        for key, lines in sorted(found.items(), key=lambda item: -len(item[1])):
            print(" ", *key, len(lines))
            print("\n".join(lines[:2]))
        wrong += total
    return wrong


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("state", type=Path)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--arch", type=int, nargs="+", default=list(GENERATIONS))
    parser.add_argument("--new", action="store_true", help="leave out rows that only changed")
    parser.add_argument("--check", action="store_true", help="compare a fresh sample")
    parser.add_argument("--words", type=int, default=24, help="of each row, with --check")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        if options.check:
            return int(check(options.arch, options.words, options.seed) > 0)
        run(options.state, options.files, options.arch, options.new)
    except sass_witness.NoWitness as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
