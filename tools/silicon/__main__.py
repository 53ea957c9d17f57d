"""The meanings of SASS against an NVIDIA GPU.

::

    python -m tools.silicon words -o WORDS        # needs nvdisasm: the words to measure
    python -m tools.silicon run WORDS -o RESULTS  # needs the GPU: runs and compares them
    python -m tools.silicon keep [WORDS]          # needs the GPU: measures fixtures/silicon again
    python -m tools.silicon refused               # kept words that the translator refuses, and why

``run`` prints a table by mnemonic: words equal to their meaning to the bit (or, for the
multi-function unit, within its bounds), differing, not described, not executable.  RESULTS names
those that are not equal.  ``keep`` measures the words of ``fixtures/silicon`` and those of WORDS,
prints which results are new or changed, and writes them if all were executed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tools.silicon import forms

from .report import print_table

ROOT = Path(__file__).resolve().parents[2]


VERDICTS = ("equal", "differ", "undescribed", "illegal", "began", "late")


def _words(options: argparse.Namespace) -> int:
    from tools.witness.nvdisasm import witness as sass_witness

    candidates = forms.words(options.arch, options.combinations, options.seed)
    texts = sass_witness.find().texts(options.arch, candidates, at_zero=True)
    chosen = forms.legal(options.arch, candidates, texts)
    lines = [f"{w.word:032x} {w.kind} {w.place} {w.text}" for w in chosen]
    Path(options.output).write_text("\n".join(lines) + "\n")
    print(f"{len(chosen)} words of {len(candidates)}")
    return 0


def _read_words(path: Path) -> list[forms.Word]:
    words: list[forms.Word] = []
    for line in path.read_text().splitlines():
        word, kind, place, text = line.split(" ", 3)
        words.append(forms.Word(int(word, 16), kind, place, text))
    return words


def _keep(options: argparse.Namespace) -> int:
    from tools.silicon import keep

    from .device import Device

    folder = Path(options.folder)
    old = keep.read(folder)
    wanted = keep.joined(old, _read_words(Path(options.words)) if options.words else [])
    with tempfile.TemporaryDirectory() as scratch:
        new, others = keep.measured(wanted, folder, Path(scratch), options.processes,
                                    options.seconds)  # fmt: skip
    for text in others:
        print(text)
    before = dict(zip((word for word, _, _ in old.forms), old.results, strict=True))
    changed = [
        text for (word, _, text), result in zip(new.forms, new.results, strict=True)
        if word in before and (before[word] != result).any()
    ]  # fmt: skip
    for text in changed:
        print(f"other than before: {text}")
    added = len(new.forms) - sum(word in before for word, _, _ in new.forms)
    print(f"{len(new.forms)} words measured, {added} new, {len(changed)} other than before")
    if others:
        print("nothing is written: not all could be measured")
        return 1
    if not options.dry_run:
        print(Device().describe())
        keep.write(folder, new)
    return int(bool(changed))


def _refused(options: argparse.Namespace) -> int:
    from tools.silicon import keep

    from .refused import refused, single_words, warp_words

    for words, what in (
        (single_words(keep.FOLDER), "measured forms"),
        (warp_words(), "measured words that reach other lanes or memory"),
    ):
        found = list(refused(words))
        why = Counter((r.mnemonic, r.reason) for r in found)
        for (name, reason), count in sorted(why.items(), key=lambda item: (-item[1], item[0])):
            print(f"{count:6} {name:10} {reason}")
        if options.verbose:
            print(*(f"{r.text}: {r.reason}" for r in found), sep="\n")
        print(f"{len(found)} of {len(words)} {what} are refused")
    return 0


def _run(options: argparse.Namespace) -> int:
    from .device import Device
    from .measure import measure

    words = _read_words(Path(options.words))
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options.arch, words, options.vectors, options.seed, Path(folder),
                        options.processes, options.seconds)  # fmt: skip
    verdicts: list[tuple[str, str]] = []
    for word, result in zip(words, found, strict=True):
        name = word.text.split()[0].partition(".")[0]
        verdicts.append((name, str(result["verdict"])))
    rest = [
        {"word": f"{w.word:032x}", "kind": w.kind, "place": w.place, "text": w.text, **r}
        for w, r in zip(words, found, strict=True)
        if r["verdict"] != "equal"
    ]
    Path(options.output).write_text("\n".join(json.dumps(r) for r in rest) + "\n")
    print(Device().describe(), f"{options.vectors} vectors a word, seed {options.seed}")
    total = print_table(verdicts, VERDICTS)
    return int(total["differ"] > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("words")
    command.add_argument("-o", "--output", required=True)
    command.add_argument("--combinations", type=int, default=60)
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--arch", type=int, default=90)
    command = commands.add_parser("run")
    command.add_argument("words")
    command.add_argument("-o", "--output", required=True)
    command.add_argument("--vectors", type=int, default=1 << 17)
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--processes", type=int, default=14)
    command.add_argument("--seconds", type=float, default=1e9, help="stop after that long")
    command.add_argument("--arch", type=int, default=90)
    command = commands.add_parser("keep")
    command.add_argument("words", nargs="?", help="more words, as `words` writes them")
    command.add_argument("--folder", default=str(ROOT / "fixtures" / "silicon" / "sm_90"))
    command.add_argument("--processes", type=int, default=14)
    command.add_argument("--seconds", type=float, default=1e9, help="stop after that long")
    command.add_argument("--dry-run", action="store_true", help="compare, write nothing")
    command = commands.add_parser("refused")
    command.add_argument("-v", "--verbose", action="store_true", help="each word")
    options = parser.parse_args()
    does = {"words": _words, "run": _run, "keep": _keep, "refused": _refused}
    return does[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
