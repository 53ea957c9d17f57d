"""Which opcode forms occur, and which of them have a meaning, confirmed on silicon, and a rule.

::

    python -m tools.coverage count -o FORMS GROUP=PATH...   # forms of executables, wheels, folders
    python -m tools.coverage merge -o FORMS FORMS...        # several counts as one
    python -m tools.coverage confirmed RESULT...            # words that silicon computes as we do
    python -m tools.coverage rules --arch 90                # what becomes of each form's rule
    python -m tools.coverage findings JSONL...      # sassxlate verify rules --format json, summed
    python -m tools.coverage table                          # docs/coverage.md, from these

An opcode form is a mnemonic with its modifiers and kinds of operands.  ``fixtures/coverage`` keeps
one synthetic word of each, with registers and immediates of ours, and how often it occurs.
"""

from __future__ import annotations

import argparse
import collections
import json
import lzma
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.columns import Columns, plan, word_of
from sassxlate.disasm.sass.codec.decode import generation_of, index
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.tables.spec import Bits, C, I, L, M, R, Row, When, bits
from sassxlate.errors import DecodeError
from sassxlate.executors import Place, work_through
from tools.coverage import corpus as sass_corpus

from .tables import (
    CONFIRMED,
    FINDINGS,
    FORMS,
    OTHERS,
    PAGE,
    Counts,
    Form,
    read_confirmed,
    read_findings,
    read_forms,
    read_launched,
    read_rules,
    summed,
    write_findings,
    write_forms,
    write_rules,
)

ROOT = Path(__file__).resolve().parents[2]


_CONTROL = 0x7E0 | 15
_REGISTERS = {"Ra": 4, "Rb": 8, "Rc": 12, "Rd": 16, "src": 24, "size": 28}  # others: 20

# --- counting ----------------------------------------------------------------------------------


def _put(word: int, field: Bits, value: int) -> int:
    for lo, width in field.parts:
        ones = (1 << width) - 1
        word = word & ~(ones << lo) | (value & ones) << lo
        value >>= width
    return word


def _zero(slot: R, word: int, width: int) -> bool:
    """Whether a register is RZ: an unused result may make another instruction."""
    field = slot.split or bits(slot.lo, width if slot.file == "UR" else 8)
    return field.get(word) == (1 << field.width) - 1


def synthetic(word: int, row: Row, arch: int) -> int:
    """The word with registers, immediates and places of ours, of the same form."""
    generation = generation_of(arch)

    def form(candidate: int) -> tuple[object, ...] | None:
        try:
            ins = decode(candidate, 0, arch, strict=False)
        except DecodeError:
            return None
        kinds = tuple((role, type(o)) for role, o in ins.operands.items())
        return ins.mnemonic, ins.modifiers, kinds

    word = word & ~(((1 << 23) - 1) << 105) | _CONTROL << 105
    word = word & ~(15 << 12) | 7 << 12
    want = form(word)
    width = 8 if generation >= 100 else 6
    for role, operand in row.operands.items():
        slot = operand.slot if isinstance(operand, When) else operand
        changes: list[tuple[Bits, int]] = []
        match slot:
            case R() if slot.write and _zero(slot, word, width):
                pass
            case R():
                field = slot.split or bits(slot.lo, width if slot.file == "UR" else 8)
                changes = [(field, _REGISTERS.get(role, 20))]
                changes += [(bits(b), 0) for b in (slot.neg, slot.abs, slot.inv) if b is not None]
            case I() if slot.field.width <= 8:  # tables and masks are part of what it does
                pass
            case I() | L():
                changes = [(slot.field, 0)]
            case C():
                changes = [(slot.offset, 0x240 // slot.scale), (slot.bank, 0)]
            case M():
                changes = [(slot.offset, 0)]
                if slot.base is not None:
                    changes.append((bits(slot.base, 8), 4))
                if slot.ureg is not None:
                    changes.append((bits(slot.ureg, width), 4))
            case _:
                pass
        for field, value in changes:
            candidate = _put(word, field, value)
            if form(candidate) == want:
                word = candidate
    return word


def count(groups: Sequence[str]) -> list[Form]:
    """The forms of files; each group is NAME=PATH."""
    found: dict[tuple[int, int], tuple[int, Counts]] = {}
    for text in groups:
        name, _, path = text.partition("=")
        corpus = sass_corpus.read([Path(path)])
        for error in corpus.errors:
            print(error, file=sys.stderr)
        for target in corpus.sections:
            arch = target[0]
            halves, weights = corpus.words(target)
            columns = Columns(np.ascontiguousarray(halves).tobytes(), arch, False, [0])
            low, high = columns.words[:, 0], columns.words[:, 1]
            for number, where in columns.by_form(0, len(columns)):
                if number < 0:
                    continue
                keys = plan(columns.generation, number).keys(low[where], high[where])
                _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
                sums = np.bincount(inverse, weights=weights[where].astype(float))
                row = index(columns.generation).form(number).row
                for f, s in zip(first.tolist(), sums.tolist(), strict=True):
                    word = synthetic(word_of(low, high, int(where[f])), row, arch)
                    _, counts = found.setdefault((word, columns.generation), (arch, {}))
                    key = f"{arch} {name}"
                    counts[key] = counts.get(key, 0) + int(s)
    return [Form(word, arch, counts) for (word, _), (arch, counts) in found.items()]


# --- what is known of a form -------------------------------------------------------------------


def key_of(ins: Instruction) -> str:
    """Mnemonic and modifiers."""
    return ".".join([ins.mnemonic, *ins.modifiers])


def confirmed(paths: Sequence[Path]) -> dict[str, int]:
    """Words by mnemonic and modifiers that silicon (sm_90) computes as their semantics do: from
    lists of (word, verdict), from objects, one per line, or from a fixture of equal ones."""
    out: collections.Counter[str] = collections.Counter()
    for path in paths:
        if path.suffix == ".xz":
            for line in lzma.decompress(path.read_bytes()).decode().splitlines():
                out[key_of(decode(int(line[1:33], 16), 0, 90, strict=False))] += 1
            continue
        text = path.read_text()
        if text.startswith("["):
            pairs = [(w, v) for w, v, *_ in json.loads(text)]
        else:
            records = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
            pairs = [(r.get("word"), r.get("verdict")) for r in records]
        for word, verdict in pairs:
            if word is not None and verdict == "equal":
                out[key_of(decode(int(word, 16), 0, 90, strict=False))] += 1
    return dict(out)


def rules(
    forms: Sequence[Form], arch: int, seconds: float, jobs: int
) -> Iterator[tuple[str, str, str]]:
    """(word, status, detail) of each form of an architecture, by its rule; in ``jobs`` processes,
    as they are done."""
    own = [f for f in forms if generation_of(f.arch) == generation_of(arch)]
    work = [(form.word, form.arch, arch, seconds) for form in own]
    for done in work_through(Place(jobs), _rule, work):
        yield done.result or (f"{done.job[0]:032x}", "unknown", "the process that proved it died")


def _rule(work: tuple[int, int, int, float]) -> tuple[str, str, str]:
    from sassxlate.lowering.verify.rules.verify import RuleCheckSettings, verify_word

    word, form_arch, arch, seconds = work
    settings = RuleCheckSettings(arch=arch, timeout_ms=int(1000 * seconds))
    status, detail = verify_word(decode(word, 0, form_arch, strict=False), settings)
    return f"{word:032x}", status, detail


# --- main --------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("count")
    command.add_argument("groups", nargs="+", metavar="GROUP=PATH")
    command.add_argument("-o", "--output", type=Path, default=FORMS)
    command = commands.add_parser("merge")
    command.add_argument("forms", nargs="+", type=Path)
    command.add_argument("-o", "--output", type=Path, default=FORMS)
    command = commands.add_parser("confirmed")
    command.add_argument("results", nargs="+", type=Path)
    command = commands.add_parser("findings")
    command.add_argument("results", nargs="+", type=Path)
    command.add_argument("--others", action="store_true", help="of forms that sm_90 has not")
    command.add_argument("--some", action="store_true", help="of these rules alone")
    command = commands.add_parser("rules")
    command.add_argument("--arch", type=int, default=90)
    command.add_argument("--timeout", type=float, default=4)
    command.add_argument("-j", "--jobs", type=int, default=1)
    commands.add_parser("table")
    options = parser.parse_args()
    match options.command:
        case "count":
            write_forms(count(options.groups), options.output)
        case "merge":
            write_forms((f for p in options.forms for f in read_forms(p)), options.output)
        case "confirmed":
            found = confirmed(options.results)
            CONFIRMED.write_text("".join(f"{k} {n}\n" for k, n in sorted(found.items())))
            print(f"{sum(found.values())} words of {len(found)} forms")
        case "findings":
            lines = (line for p in options.results for line in p.read_text().splitlines())
            path = OTHERS if options.others else FINDINGS
            write_findings(summed(lines, read_findings(path), some=options.some), path)
        case "rules":
            known = read_rules()
            judged = rules(read_forms(), options.arch, options.timeout, options.jobs)
            for n, (word, status, detail) in enumerate(judged):
                known[options.arch, word] = status, detail
                if n % 100 == 0:  # an interrupted run loses little
                    write_rules(known)
            write_rules(known)
        case _:
            from tools.coverage import page as coverage_page

            text = coverage_page.page(
                read_forms(), read_confirmed(), read_rules(), read_findings(), read_launched(),
                read_findings(OTHERS),
            )  # fmt: skip
            PAGE.write_text(text)
            print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
