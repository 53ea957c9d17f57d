"""The meanings of RDNA3 against AMD's pseudocode, through the emulator and from encoded bytes.

::

    python -m tools.witness.pcode forms FILE... [--add]  # records what translations consist of
    python -m tools.witness.pcode compare [FORMS] [--vectors N] [--seed N] [--only TEXT]

FILE is a program, a library or a cubin.  The pseudocode is the one in tinygrad's tables (in the
``test`` extra), which are made from AMD's manual; `machine.py` runs it, with floating point of its
own, on the edge-biased inputs of `tools/silicon`.  ``compare`` prints the opcodes that are emitted,
those with a second witness, and those that differ: by the pseudocode alone, and after what the
manual says beside it (`readings.py`).  Exit status 1: a difference without an explanation.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.witness.pcode import cases, compare, control, memory, readings

from .cases import Form
from .values import NotDescribed

ROOT = Path(__file__).resolve().parents[3]


FORMS = ROOT / "tests" / "lowering" / "emulate" / "emitted.txt"

# What has no value to compare: order, time, the end of a wave, traps, caches, the MODE register
# (each compared case sets it).
NO_VALUE = frozenset(
    "s_waitcnt s_waitcnt_vscnt s_waitcnt_depctr s_nop v_nop s_delay_alu s_barrier s_sleep s_endpgm "
    "s_trap s_code_end buffer_gl0_inv buffer_gl1_inv s_round_mode s_denorm_mode s_getreg_b32 "
    "s_sendmsg_rtn_b64".split()
)


@dataclass(slots=True)
class Tally:
    """Verdicts by opcode, and the first lanes that differ."""

    verdicts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    lanes: Counter[str] = field(default_factory=Counter[str])
    shown: list[str] = field(default_factory=list[str])

    def add(self, form: Form, plain: Sequence[compare.Difference],
            rest: Sequence[compare.Difference], lanes: int) -> None:  # fmt: skip
        verdict = "differs" if rest else "explained" if plain else "equal"
        self.verdicts.setdefault(form.op, Counter())[verdict] += 1
        self.lanes["compared"] += lanes
        self.lanes["explained"] += len(plain) - len(rest)
        self.lanes["differing"] += len(rest)
        for d in rest[:2]:
            inputs = " ".join(f"{n:x}" for n in d.inputs)
            self.shown.append(
                f"{form.text}: {d.what} of {inputs} is {d.ours:x} here, {d.theirs:x} in AMD's text"
            )

    def skip(self, form: Form, why: str) -> None:
        self.verdicts.setdefault(form.op, Counter())[f"no witness: {why}"] += 1


def _values(tally: Tally, forms: list[Form], vectors: cases.Vectors) -> None:
    waves = vectors.shape[1] // cases.LANES
    made: list[cases.Case] = []
    for form in forms:
        variants = 4 if "i" in form.args else 1
        try:
            made += [
                cases.make(form, cases.seed(f"{form.text} {k}"), vectors) for k in range(variants)
            ]
        except NotDescribed as e:
            tally.skip(form, str(e))
    order = {id(c): k for k, c in enumerate(made)}
    for at in range(0, len(made), 40):
        part = made[at : at + 40]
        for case, outcome in zip(part, cases.emulated(part, vectors), strict=True):
            form = case.form
            # The variants of a form (its immediates) share the vectors.
            share = range(order[id(case)] % 4, waves, 4) if "i" in form.args else range(waves)
            try:
                plain = compare.compare(case, vectors, outcome, share)
                again = sorted({d.vector // cases.LANES for d in plain})
                rest = compare.compare(case, vectors, outcome, again, read=True) if plain else []
            except NotDescribed as e:
                tally.skip(form, str(e))
                continue
            tally.add(form, plain, rest, len(share) * cases.LANES)


def _memory(tally: Tally, forms: list[Form], vectors: cases.Vectors) -> None:
    execs = cases.scalars(vectors)[:, cases.EXEC].copy()
    plans = [memory.plan(form, vectors) for form in forms]
    for at in range(0, len(plans), 20):
        part = plans[at : at + 20]
        for plan, (plain, rest) in zip(part, memory.run(part, vectors, execs), strict=True):
            tally.add(plan.form, plain, rest, vectors.shape[1])


def measured(forms: Iterable[Form], vectors: cases.Vectors) -> Tally:
    """The verdicts of the forms on the vectors."""
    tally = Tally()
    wanted = list(dict.fromkeys(forms))
    rest: list[Form] = []
    for form in wanted:
        if control.is_branch(form.op):
            tally.add(form, *control.differences(form.op))
        elif control.is_load(form.op):
            tally.add(form, *control.load_differences(form.op))
        elif form.op not in NO_VALUE:
            rest.append(form)
    _memory(tally, [f for f in rest if memory.is_memory(f.op)], vectors)
    _values(tally, [f for f in rest if not memory.is_memory(f.op)], vectors)
    return tally


def _compare(options: argparse.Namespace) -> int:
    from tools.silicon.inputs import inputs

    recorded = [f for f, _ in cases.forms(Path(options.forms))]
    emitted = {f.op for f in recorded}
    others = [f for f in (*cases.meaning_forms(), *cases.memory_forms()) if f not in recorded]
    chosen = [f for f in (*recorded, *others) if options.only in f.text]
    start = time.perf_counter()
    tally = measured(chosen, inputs(options.vectors, options.seed))
    ops = sorted(emitted & {f.op for f in chosen})
    _table("emitted by the lowering", tally, ops)
    _table("only in the table of meanings", tally, sorted(set(tally.verdicts) - set(ops)))
    print(f"forms: {len(chosen)}; vectors: {options.vectors}; {time.perf_counter() - start:.0f} s")
    print("lanes: " + ", ".join(f"{n:,} {k}" for k, n in tally.lanes.items()))
    for line in tally.shown:
        print(line)
    return 1 if any("differs" in tally.verdicts.get(op, ()) for op in ops) else 0


def _table(title: str, tally: Tally, ops: list[str]) -> None:
    none = [op for op in ops if op in NO_VALUE]
    seen = {op: tally.verdicts[op] for op in ops if op in tally.verdicts}
    counts = Counter(
        "differ" if v["differs"] else "explained" if v["explained"] else
        "equal" if v["equal"] else "without a witness"
        for v in seen.values()
    )  # fmt: skip
    print(f"{title}: {len(ops)} opcodes, {len(none)} without a value, {len(seen)} compared: "
          + ", ".join(f"{counts[k]} {k}" for k in ("equal", "explained", "differ",
                                                    "without a witness")))  # fmt: skip
    for op, v in seen.items():
        if v["explained"] or v["differs"]:
            why = "; ".join(f"{r.reason} ({r.where})" for r in readings.reasons(op))
            print(f"  {op}: {dict(v)}: {why or 'no explanation'}")
        elif not v["equal"]:
            print(f"  {op}: {', '.join(v)}")


def _forms(options: argparse.Namespace) -> int:
    from tools.witness.pcode import emitted

    counts = emitted.count([Path(f) for f in options.files])
    if options.add:
        known = dict(cases.forms(Path(options.output)))
        counts = Counter({form: known.get(form) or n for form, n in {**counts, **known}.items()})
    Path(options.output).write_text(emitted.HEADER + cases.dump(counts))
    print(f"{len(counts)} forms of {len({f.op for f in counts})} opcodes")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="pcode", description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    forms = commands.add_parser("forms", help="record what translations consist of")
    forms.add_argument("files", nargs="+")
    forms.add_argument("-o", "--output", default=str(FORMS))
    forms.add_argument("--add", action="store_true", help="to those that are recorded already")
    forms.set_defaults(run=_forms)
    comparing = commands.add_parser("compare", help="compare with AMD's pseudocode")
    comparing.add_argument("forms", nargs="?", default=str(FORMS))
    comparing.add_argument("--vectors", type=int, default=4096, help="a multiple of 32")
    comparing.add_argument("--seed", type=int, default=1)
    comparing.add_argument("--only", default="", help="forms whose text contains this")
    comparing.set_defaults(run=_compare)
    options = parser.parse_args()
    status: int = options.run(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
