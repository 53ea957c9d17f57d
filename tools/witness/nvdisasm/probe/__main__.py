"""Probes nvdisasm bit by bit: which words of each row of the SASS tables are instructions.

::

    python -m tools.witness.nvdisasm.probe STATE [FILE...] [--arch A ...]  # probe what STATE lacks
    # sample again, list disagreements
    python -m tools.witness.nvdisasm.probe STATE --check
    # after a probe: ask again about what legal.json excludes, and mend it
    python -m tools.witness.nvdisasm.probe STATE --excluded [--mnemonic M ...]

The rows of ``disasm/sass/tables`` are written by hand: roles, widths and templates are nothing
that nvdisasm could tell.  What it can tell is found here, for each row and generation, from
real words (of the golden files and of FILE) and from words made up from the row:

* what each of the 128 bits is: part of an operand or a modifier, ignored, or rejecting;
* every value of each modifier, part selector and sign;
* which of these combine: pairs are tried, then the product of those that depend on each other;
* which scheduling information the form takes: barriers, reuse and stall.

STATE keeps what was found by row, so that only new or changed rows are probed again.  The result is
``disasm/sass/tables/legal.json``, which :mod:`sassxlate.disasm.sass.codec.legality` reads.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from sassxlate.disasm.sass.codec import legality
from sassxlate.disasm.sass.codec.decode import row_of
from sassxlate.disasm.sass.tables.spec import GENERATION_OF, GENERATIONS
from sassxlate.errors import DecodeError
from tools.generate import sass_golden
from tools.witness.nvdisasm import witness as sass_witness

from .excluded import Excluded, wrongly_excluded
from .fit import probe
from .rows import OPCODE, Questions, Target, invent, targets_of


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
                kind = word & (row.mod_mask | OPCODE | row.match_mask) if row else 0
                if row and kind not in kinds:
                    kinds.add(kind)
                    words[word] = None
    return list(words)


def _state(path: Path) -> dict[str, dict[str, Any]]:
    """The results so far, by row."""
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
    write(probed(state), witness)


Entries: TypeAlias = dict[str, dict[int, tuple[str, str, str, tuple[tuple[str, str], ...]]]]


def probed(state: Path) -> Entries:
    """What was found of each row in each generation: reserved and ignored bits, scheduling, and
    groups, as written in the file."""
    found: Entries = collections.defaultdict(dict)
    for generation in GENERATIONS:
        for name, entry in _state(state / f"{generation}.json").items():
            if entry["control"]:
                own = tuple(sorted((mask, taken) for mask, taken in entry["groups"]))
                head = (entry["reserved"], entry["ignored"], entry["control"])
                found[name][generation] = (*head, own)
    return found


def shipped() -> Entries:
    """The same, of the shipped file."""
    file, found = legality.load(), collections.defaultdict[str, Any](dict)
    for name, profiles in file["rows"].items():
        for number, generations in profiles.items():
            reserved, ignored, control, *groups = file["profiles"][int(number)]
            own = tuple(sorted((m, t) for m, t in (file["groups"][g] for g in groups)))
            for generation in generations:
                found[name][generation] = (reserved, ignored, control, own)
    return found


def mended(entries: Entries, wrong: Sequence[Excluded]) -> Entries:
    """Entries whose groups take what was wrongly excluded."""
    out: Entries = {name: dict(by) for name, by in entries.items()}
    for one in wrong:
        *head, own = out[one.row][one.generation]
        groups: list[tuple[str, str]] = []
        for mask, taken in own:
            bitmap = int(taken, 16)
            if int(mask, 16) == one.group.mask:
                bitmap |= 1 << one.value
            if bitmap != (1 << (1 << int(mask, 16).bit_count())) - 1:
                groups.append((mask, f"{bitmap:x}"))
        out[one.row][one.generation] = (head[0], head[1], head[2], tuple(groups))
    return out


def write(entries: Entries, witness: sass_witness.Witness) -> None:
    """The shipped file: groups, profiles, and rows by name with each generation's profile."""
    groups: dict[str, str] = {}
    found: dict[str, dict[int, str]] = collections.defaultdict(dict)
    for name, by_generation in entries.items():
        for generation, (*head, pairs) in by_generation.items():
            own = sorted(f'["{mask}", "{taken}"]' for mask, taken in pairs)
            groups |= dict.fromkeys(own, "")
            found[name][generation] = json.dumps([*head, own])
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
    temporary = legality.PATH.with_suffix(".tmp")
    temporary.write_text(
        f'{{\n"witness": "nvdisasm {witness.version}, sha256 {witness.sha256}",\n'
        + '"groups": [\n' + ",\n".join(sorted(groups)) + '\n],\n"profiles": [\n'
        + ",\n".join(profiles) + '\n],\n"rows": {\n' + ",\n".join(rows) + "\n}}\n"
    )  # fmt: skip
    temporary.rename(legality.PATH)
    print(
        f"{legality.PATH.name}: {len(rows)} rows, {len(profiles)} profiles, "
        f"{len(groups)} groups, {legality.PATH.stat().st_size} bytes"
    )


def excluded(archs: Sequence[int], mnemonics: Sequence[str]) -> list[Excluded]:
    """What the shipped file excludes although nvdisasm prints it, by generation."""
    witness = sass_witness.find()
    found: list[Excluded] = []
    for generation in archs:
        some = wrongly_excluded(generation, witness, mnemonics)
        print(f"sm_{generation}: {len(some)} combinations are wrongly excluded")
        for one in some[:8]:
            print(f"  {one.mnemonic} {one.group.mask:x} {one.value}: {one.word:#034x} {one.text}")
        found += some
    return found


def check(archs: Sequence[int], count: int, seed: int) -> int:
    """Words of every row, made up again: disagreements with nvdisasm by row; their number."""
    witness = sass_witness.find()
    print(f"file: {legality.load()['witness']}\nhere: nvdisasm {witness.version}")
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
    parser.add_argument("--excluded", action="store_true", help="mend false exclusions")
    parser.add_argument("--mnemonic", action="append", default=[], help="with --excluded: these")
    parser.add_argument("--words", type=int, default=24, help="of each row, with --check")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        if options.excluded:
            wrong = excluded(options.arch, options.mnemonic)
            if wrong:
                write(mended(shipped(), wrong), sass_witness.find())
            return int(bool(wrong))
        if options.check:
            return int(check(options.arch, options.words, options.seed) > 0)
        run(options.state, options.files, options.arch, options.new)
    except sass_witness.NoWitness as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
