"""docs/coverage.md, from ``fixtures/coverage`` and the tables of semantics."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.instruction import Const, Instruction, PredFile, RegFile, Special
from sassxlate.disasm.sass.semantics import NoSemantics, evaluate, semantics_table
from sassxlate.disasm.sass.semantics.warp_state import SemanticsFault
from sassxlate.disasm.sass.semantics.whole_warps import evaluate_warp, warp_meanings
from sassxlate.disasm.sass.tables.memory import surface, texture
from sassxlate.disasm.sass.tables.warp import tensor_memory
from sassxlate.domain.numpy_lanes import Vec, Vectors

from .tables import Findings, Form, Launched, Rules, normal, shape_key

LANES = 32
_CONTROL = frozenset(
    "BRA CALL RET BRX JMX EXIT BSSY BSYNC BREAK WARPSYNC ENDCOLLECTIVE BAR BMOV B2R BPT".split()
)
_NOTHING = frozenset(
    "NOP YIELD NANOSLEEP MEMBAR ERRBAR CGAERRBAR CCTL CCTLL DEPBAR LDGDEPBAR FENCE ACQBULK "
    "PREEXIT PMTRIG WARPGROUP".split()
)
_COPIES = frozenset({"LDGSTS"})  # whose meaning the interpreter has
_TMA = ("UTMA", "UBLK", "UTC", "UTMEM", "UCGABAR", "LDTM", "STTM")


@dataclass(frozen=True, slots=True)
class _Warp:
    """A warp whose registers, memory and predicates are all zero."""

    active: Any = field(default_factory=lambda: np.ones((1, LANES), dtype=np.bool_))

    def reg(self, file: RegFile, index: int) -> Any:
        return np.zeros((1, LANES if file == "R" else 1), dtype=np.uint32)

    def pred(self, file: PredFile, index: int) -> Any:
        return np.zeros((1, LANES if file == "P" else 1), dtype=np.bool_)

    def special(self, operand: Special) -> Any:
        return np.zeros((1, LANES), dtype=np.uint32)

    def constant(self, bank: int, offset: Any, size: int) -> Any:
        return np.zeros((*np.shape(offset), size), dtype=np.uint8)

    def load(self, space: str, address: Any, size: int, mask: Any) -> Any:
        return np.zeros((1, LANES, size), dtype=np.uint8)

    def store(self, space: str, address: Any, data: Any, mask: Any) -> None:
        pass

    def update(self, space: str, address: Any, size: int, mask: Any, change: Any) -> Any:
        return np.zeros((1, LANES, size), dtype=np.uint8)


class _Lane:
    """A lane whose values are all one."""

    def reg(self, file: RegFile, index: int) -> Vec:
        return Vec(np.ones(1, dtype=np.uint64), 32)

    def pred(self, file: PredFile, index: int) -> Vec:
        return Vec(np.ones(1, dtype=np.uint64), 1)

    def const(self, operand: Const, word: int) -> Vec:
        return Vec(np.ones(1, dtype=np.uint64), 32)

    def special(self, operand: Special) -> Vec:
        return Vec(np.ones(1, dtype=np.uint64), 32)


@cache
def _apart() -> frozenset[str]:
    rows = (*texture.ROWS, *surface.ROWS, *tensor_memory.ROWS)
    return frozenset(r.mnemonic for r in rows)


def kind_of(ins: Instruction) -> str:
    """The column of a form.  ``apart``: textures, surfaces, TMA, Blackwell's tensor memory."""
    name = ins.mnemonic
    if name in _apart() or name.startswith(_TMA):
        return "apart"
    if name in _CONTROL:
        return "control"
    if name in _NOTHING:
        return "nothing"
    return "warp" if name in warp_meanings() or name in _COPIES else "lane"


def without_meaning(ins: Instruction, kind: str) -> str | None:
    """Why a form has no semantics; None if it has."""
    if kind in ("control", "nothing") or ins.mnemonic in _COPIES:
        return None
    try:
        with np.errstate(all="ignore"):
            if kind == "warp":
                evaluate_warp(ins, _Warp())
                return None
            meaning = semantics_table().get(ins.mnemonic)
            if meaning is None:
                return "no meaning"
            evaluate(Vectors(), meaning, ins, _Lane())
    except NoSemantics as reason:
        return str(reason)
    except SemanticsFault:
        pass
    return None


@dataclass(slots=True)
class _Row:
    """One architecture."""

    forms: int = 0
    total: collections.Counter[str] = field(default_factory=lambda: collections.Counter[str]())
    meant: int = 0
    forms_meant: int = 0
    confirmed: int = 0
    forms_confirmed: int = 0
    launched: int = 0
    forms_launched: int = 0
    forms_control: int = 0
    rules: collections.Counter[str] = field(default_factory=lambda: collections.Counter[str]())
    forms_rules: collections.Counter[str] = field(
        default_factory=lambda: collections.Counter[str]()
    )
    missing: collections.Counter[str] = field(default_factory=lambda: collections.Counter[str]())
    open: collections.Counter[str] = field(default_factory=lambda: collections.Counter[str]())
    unreached: collections.Counter[str] = field(default_factory=lambda: collections.Counter[str]())
    unsettled: collections.Counter[tuple[str, str]] = field(
        default_factory=lambda: collections.Counter[tuple[str, str]]()
    )


def _rows(
    forms: Sequence[Form], confirmed: Mapping[str, int], rules: Rules, launched: Launched
) -> Mapping[int, _Row]:
    out: dict[int, _Row] = collections.defaultdict(_Row)
    known = {normal(decode_key(k)) for k in confirmed}
    for form in forms:
        ins = decode(form.word, 0, form.arch, strict=False)
        kind = kind_of(ins)
        why = None if kind == "apart" else without_meaning(ins, kind)
        name = ".".join([ins.mnemonic, *ins.modifiers])
        measured = normal((ins.mnemonic, ins.modifiers)) in known
        control = kind in ("control", "nothing")
        reached = shape_key(ins) if control else ""
        by_arch: collections.Counter[int] = collections.Counter()
        for key, n in form.counts.items():
            by_arch[int(key.split()[0])] += n
        for arch, n in by_arch.items():
            row = out[arch]
            row.forms += 1
            row.total[kind] += n
            if kind == "apart":
                continue
            row.forms_control += control
            if reached in launched:
                row.launched += n
                row.forms_launched += 1
            elif control:
                row.unreached[reached] += n
            if why is not None:
                row.missing[f"{name} ({why})"] += n
            else:
                row.meant += n
                row.forms_meant += 1
                if measured and kind in ("lane", "warp"):
                    row.confirmed += n
                    row.forms_confirmed += 1
                elif kind in ("lane", "warp"):
                    row.open[name] += n
            told = rules.get((arch, f"{form.word:032x}"))
            if told is not None and kind in ("lane", "warp"):
                status = told[0]
                row.rules[status] += n
                row.forms_rules[status] += 1
                if status in ("unknown", "refused", "refuted"):
                    row.unsettled[status, f"{name}: {told[1]}"] += n
    return out


def decode_key(key: str) -> tuple[str, tuple[str, ...]]:
    """``IADD3.X`` -> its mnemonic and modifiers."""
    head, *rest = key.split(".")
    return head, tuple(rest)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "-"


def page(
    forms: Sequence[Form],
    confirmed: Mapping[str, int],
    rules: Rules,
    findings: Findings,
    launched: Launched | None = None,
    others: Findings | None = None,
) -> str:
    """The page's text; ``others``: findings of forms that sm_90 does not have."""
    launched = launched or {}
    rows = _rows(forms, confirmed, rules, launched)
    words, keys = sum(confirmed.values()), len(confirmed)
    lines = [_HEAD.format(words=words, keys=keys, reached=len(launched))]
    lines += [
        "| architecture | occurrences | apart | control | hints | rest | meaning | measured "
        "| launched | confirmed |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for arch, row in sorted(rows.items()):
        whole = sum(row.total.values())
        rest = row.total["lane"] + row.total["warp"]
        cells = [f"sm_{arch}", f"{whole:,}", _share(row.total["apart"], whole)]
        cells += [_share(row.total[k], whole) for k in ("control", "nothing")]
        cells += [f"{rest:,}", _share(rest - sum(row.missing.values()), rest)]
        steer = row.total["control"] + row.total["nothing"]
        cells += [_share(row.confirmed, rest), _share(row.launched, steer)]
        cells += [_share(row.confirmed + row.launched, whole)]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", _FORMS, ""]
    lines += [
        "| architecture | forms | with a meaning | measured | control and hints | launched |",
        "|---|---|---|---|---|---|",
    ]
    for arch, row in sorted(rows.items()):
        cells = [f"sm_{arch}", str(row.forms), str(row.forms_meant), str(row.forms_confirmed)]
        cells += [str(row.forms_control), str(row.forms_launched)]
        lines.append("| " + " | ".join(cells) + " |")
    lines += _lists(rows)
    lines += _launches(rows, launched)
    lines += _rules(rows)
    lines += ["", "## Rules on every form that the tables know", "", _FINDINGS, ""]
    lines += _findings(findings, "")
    if others:
        lines += ["## Rules on forms that sm_90 has not", "", _OTHERS, ""]
        lines += _findings(others, ", forms that sm_90 has not")
    return "\n".join(lines).rstrip("\n") + "\n"


def _top(counter: Mapping[Any, int], count: int, whole: int) -> list[str]:
    ordered = sorted(counter.items(), key=lambda item: (-item[1], str(item[0])))
    out = [f"* {name}: {_share(n, whole)}" for name, n in ordered[:count]]
    rest = sum(n for _, n in ordered[count:])
    if rest:
        out.append(f"* {len(ordered) - count} others: {_share(rest, whole)}")
    return out


def _lists(rows: Mapping[int, _Row]) -> list[str]:
    row = rows.get(90, _Row())
    rest = row.total["lane"] + row.total["warp"]
    out = ["", "## sm_90: forms without a meaning, of the rest", ""]
    out += _top(row.missing, 25, rest)
    out += ["", "## sm_90: forms with a meaning that was not measured", ""]
    out += _top(row.open, 25, rest)
    return out


def _launches(rows: Mapping[int, _Row], launched: Launched) -> list[str]:
    out = ["", "## Control flow and hints that launches reached", "", _LAUNCHES, ""]
    out += ["| form | launches | all | apart | mixed | none |", "|---|---|---|---|---|---|"]
    for key, counts in sorted(launched.items()):
        out.append(f"| {key} | " + " | ".join(f"{n:,}" if n else "" for n in counts) + " |")
    row = rows.get(90, _Row())
    steer = row.total["control"] + row.total["nothing"]
    if row.unreached:
        out += ["", "sm_90, not reached:", "", *_top(row.unreached, 25, steer)]
    return out


def _rules(rows: Mapping[int, _Row]) -> list[str]:
    statuses = ("proved", "tested", "unknown", "refused", "refuted")
    out = ["", "## Rules of the forms that occur", "", _RULES, ""]
    out += ["| architecture | " + " | ".join(statuses) + " |", "|---" * 6 + "|"]
    for arch, row in sorted(rows.items()):
        whole = sum(row.rules.values())
        if whole:
            cells = [f"{_share(row.rules[s], whole)} ({row.forms_rules[s]})" for s in statuses]
            out.append(f"| sm_{arch} | " + " | ".join(cells) + " |")
    for arch, row in sorted(rows.items()):
        whole = sum(row.rules.values())
        for status in ("refuted", "unknown", "refused"):
            some = {text: n for (s, text), n in row.unsettled.items() if s == status}
            if some and (arch == 90 or status != "refused"):
                most = 25 if status == "refused" else len(some)
                out += ["", f"sm_{arch}, {status}:", "", *_top(some, most, whole)]
    return out


def _findings(findings: Findings, which: str) -> list[str]:
    out: list[str] = []
    names = ("proved", "tested", "unknown", "refuted", "refused")
    for arch, (rules, reasons, immediates) in sorted(findings.items()):
        out += [f"### sm_{arch}{which}", ""]
        out += ["| rule | " + " | ".join(names) + " |", "|---" * 6 + "|"]
        total: collections.Counter[str] = collections.Counter()
        for rule, counts in sorted(rules.items()):
            total.update(counts)
            cells = " | ".join(f"{counts.get(n, 0) or ''}" for n in names)
            out.append(f"| {rule} | {cells} |")
        out.append("| all | " + " | ".join(f"{total[n]:,}" for n in names) + " |")
        some = ", ".join(f"{n:,} {what}" for what, n in sorted(immediates.items()))
        out += ["", f"Words with an immediate of more than a byte, proved: {some or 'none'}.", ""]
        if reasons:
            out += ["Unknown, and why:", ""]
            out += [f"* {rule}: {why} ({n})" for (rule, why), n in sorted(reasons.items())]
            out.append("")
    return out


_HEAD = """# Coverage

Which opcode forms (a mnemonic with its modifiers and kinds of operands) occur in real code, how
often, and how well their translation is checked. `python -m tools.coverage table` writes this page
from `fixtures/coverage`: `forms.xz` (counts of 221 programs of three public suites built for sm_80
and sm_90, of ten wheels from PyPI, and of this repository's programs), `confirmed.txt` ({words:,}
words with {keys:,} different modifiers whose results on an H200 agree with our semantics),
`rules.txt` and `findings.txt` (`sassxlate verify rules`).

The columns: *Occurrences* counts instructions in the code. *Apart*: textures, surfaces, TMA and
Blackwell's tensor memory. *Control* (branches, barriers, convergence) and *hints* (fences, cache
control, NOP) have their semantics in the reference interpreter, and are confirmed by whole
launches. *Rest*: all others. *Meaning*: those of the rest for which semantics exist. *Measured*:
those of the rest whose mnemonic and modifiers were run on an H200, with results as the semantics
say, for some kinds of operands: a constant or uniform operand acts as a register with its value.
Cache and scope modifiers are ignored in this comparison. *Launched*: those of control and hints
whose form was executed in a launch that left the same memory on an H200 and in the reference
interpreter (`launched.txt`: {reached:,} forms). *Confirmed*: measured or launched, as a share of
all occurrences, including those apart. An H200 runs sm_90; on other architectures *measured* and
*launched* mean the same form with the same semantics as on sm_90.
"""
_FORMS = "Opcode forms:"
_LAUNCHES = """`tools/silicon/launches` runs whole kernels on an H200 and in the reference
interpreter (nvcc's and hand-written ones, random ones in SASS and CUDA; four on an H100 instead)
and compares all of their memory. For each form: the launches in which it was executed, and how many
warps executed it with *all* lanes that had not ended, with all lanes of a diverged part of the warp
(*apart*), with some of these, as a guard or predicate selects (*mixed*), or with *none*. For
branches this counts the lanes that take them. For hints and fences the comparison shows that memory
was right; the fences are part of messages between warps."""
_RULES = """Each form above (except control, hints and those apart), as one synthetic word: its
translation is proved, tested on inputs if the solver cannot decide (*tested*), unknown, or refused
with a typed error. Figures are shares of occurrences, and numbers of forms. For sm_75, sm_80 and
sm_120: forms that sm_90 does not have; for sm_75 and sm_80 the most frequent of these. A tested
form had 2**20 inputs, for this word or for all words of the form together
(`lowering/verify/block/rule_evidence.py` and below)."""
_FINDINGS = """`sassxlate verify rules` generates words of all forms of a rule's instructions:
every modifier, sign and selector by itself, 24 random combinations for each row of the tables,
RZ and PT, destinations that are sources or overlap them, guards, constants, uniform registers. Each
is checked in two environments: all lanes together, and some lanes waiting elsewhere. *Tested*:
inputs instead of a proof, never counted as a proof: 2**20 for each form (for 19 words of IMMA and
BMMA 2**19); the forms that proofs of blocks need are in `lowering/verify/block/rule_evidence.py`.
*Refused*: a typed error instead of a translation. Counts are words in one environment; for sm_80
and sm_120 only of floating point, conversions and atomics."""
_OTHERS = """The same for opcode forms that one of these architectures has and sm_90 does not:
1,043 groups of a rule and a form, none of which ended in an error. Forms that both have were not
checked again. The one word that was refuted (64-bit CS2UR did not write the upper register) is
fixed since, and counted with its result of today. A name in capitals is an instruction without a
rule."""
