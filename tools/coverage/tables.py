"""The tables of ``fixtures/coverage``: forms and counts, what was measured, what rules do."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sassxlate.disasm.sass.codec.decode import generation_of
from sassxlate.disasm.sass.instruction import Instruction, Pred, Reg

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "fixtures" / "coverage"
FORMS, CONFIRMED = FOLDER / "forms.xz", FOLDER / "confirmed.txt"
LAUNCHED = FOLDER / "launched.txt"
RULES, FINDINGS = FOLDER / "rules.txt", FOLDER / "findings.txt"
OTHERS = FOLDER / "findings_of_others.txt"  # of forms that sm_90 has not
PAGE = ROOT / "docs" / "coverage.md"

# Modifiers that do not change values: cache placement, visibility, scheduling.
UNSEEN = frozenset(
    (
        "E CONSTANT EF EL EU LU NA PRIVATE LTC64B LTC128B LTC256B STRONG WEAK SM CTA GPU SYS MMIO"
    ).split()
)
Counts = dict[str, int]  # "90 wheels" -> occurrences


@dataclass(frozen=True, slots=True)
class Form:
    """One opcode form: a synthetic word of one architecture that has it, and its occurrences."""

    word: int
    arch: int
    counts: Mapping[str, int]


def write_forms(forms: Iterable[Form], path: Path) -> None:
    merged: dict[tuple[int, int], tuple[int, Counts]] = {}
    for form in forms:
        _, counts = merged.setdefault((form.word, generation_of(form.arch)), (form.arch, {}))
        for key, value in form.counts.items():
            counts[key] = counts.get(key, 0) + value
    lines = [
        f"{word:032x} {arch} " + ",".join(f"{k}={n}" for k, n in sorted(counts.items()))
        for (word, _), (arch, counts) in sorted(merged.items())
    ]
    path.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode(), preset=9))


def read_forms(path: Path = FORMS) -> list[Form]:
    out: list[Form] = []
    for line in lzma.decompress(path.read_bytes()).decode().splitlines():
        word, arch, rest = line.split(" ", 2)
        pairs = (part.rpartition("=") for part in rest.split(","))
        out.append(Form(int(word, 16), int(arch), {k: int(n) for k, _, n in pairs}))
    return out


def normal(key: tuple[str, tuple[str, ...]]) -> tuple[str, tuple[str, ...]]:
    """Without what changes no value."""
    name, modifiers = key
    return name, tuple(m for m in modifiers if m not in UNSEEN)


_KINDS = {"Imm": "I", "Label": "L", "Const": "C", "Mem": "M", "BReg": "B", "Scoreboard": "SB"}


def shape_key(ins: Instruction) -> str:
    """Mnemonic, modifiers and kinds of operands: ``BAR.SYNC.DEFER_BLOCKING R,I``; predicates of
    lanes are left out."""
    kinds: list[str] = []
    for operand in ins.operands.values():
        if isinstance(operand, (Reg, Pred)):
            kinds += [operand.file] if operand.file != "P" else []
        else:
            name = type(operand).__name__
            kinds.append(_KINDS.get(name, name))
    return f"{'.'.join([ins.mnemonic, *ins.modifiers])} {','.join(kinds)}".rstrip()


def read_confirmed() -> dict[str, int]:
    lines = CONFIRMED.read_text().splitlines() if CONFIRMED.exists() else []
    return {k: int(n) for k, _, n in (line.rpartition(" ") for line in lines)}


# Forms of control flow and hints that launches reached whose memory was right: how many launches,
# and how many warps executed them: all lanes that had not ended, those that were here, some, none.
Launched = dict[str, tuple[int, int, int, int, int]]


def read_launched() -> Launched:
    out: Launched = {}
    for line in LAUNCHED.read_text().splitlines() if LAUNCHED.exists() else ():
        launches, every, apart, mixed, none, key = line.split(" ", 5)
        out[key] = int(launches), int(every), int(apart), int(mixed), int(none)
    return out


Rules = dict[tuple[int, str], tuple[str, str]]


def read_rules() -> Rules:
    out: Rules = {}
    for line in RULES.read_text().splitlines() if RULES.exists() else ():
        arch, word, status, *detail = line.split(" ", 3)
        out[int(arch), word] = status, detail[0] if detail else ""
    return out


def write_rules(known: Rules) -> None:
    RULES.write_text(
        "".join(f"{a} {w} {s} {d}".rstrip() + "\n" for (a, w), (s, d) in sorted(known.items()))
    )


# Architecture -> (rule -> status -> words, (rule, why unknown) -> words, immediates -> words).
Findings = dict[int, tuple[dict[str, dict[str, int]], dict[tuple[str, str], int], dict[str, int]]]


def summed(lines: Iterable[str], known: Findings, *, some: bool = False) -> Findings:
    """With the findings of ``sassxlate verify rules --format json``; of each architecture in full,
    or of ``some`` rules, whose counts alone change (what is known of immediates stays)."""
    fresh: Findings = {}
    for line in lines:
        found = json.loads(line)
        arch = int(found["arch"].removeprefix("sm_"))
        rules, reasons, immediates = fresh.setdefault(arch, ({}, {}, {}))
        counts = rules.setdefault(found["rule"], {})
        counts[found["status"]] = counts.get(found["status"], 0) + 1
        if found["status"] == "unknown":
            why = found["rule"], found["detail"]
            reasons[why] = reasons.get(why, 0) + 1
        if found["status"] == "proved" and found["immediates"]:
            what = "for all values" if found["immediates"] == "all" else "value by value"
            immediates[what] = immediates.get(what, 0) + 1
    if not some:
        return {**known, **fresh}
    out = dict(known)
    for arch, (rules, reasons, immediates) in fresh.items():
        before = known.get(arch, ({}, {}, immediates))
        kept = {key: n for key, n in before[1].items() if key[0] not in rules}
        out[arch] = {**before[0], **rules}, {**kept, **reasons}, before[2]
    return out


def read_findings(path: Path = FINDINGS) -> Findings:
    out: Findings = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        kind, arch, number, rest = line.split(" ", 3)
        rules, reasons, immediates = out.setdefault(int(arch), ({}, {}, {}))
        if kind == "rule":
            rule, status = rest.split(" ")
            rules.setdefault(rule, {})[status] = int(number)
        elif kind == "unknown":
            rule, _, why = rest.partition(" ")
            reasons[rule, why] = int(number)
        else:
            immediates[rest] = int(number)
    return out


def write_findings(findings: Findings, path: Path = FINDINGS) -> None:
    lines: list[str] = []
    for arch, (rules, reasons, immediates) in sorted(findings.items()):
        for rule, counts in sorted(rules.items()):
            lines += [f"rule {arch} {n} {rule} {status}" for status, n in sorted(counts.items())]
        lines += [f"unknown {arch} {n} {rule} {w}" for (rule, w), n in sorted(reasons.items())]
        lines += [f"immediates {arch} {n} {what}" for what, n in sorted(immediates.items())]
    path.write_text("\n".join(lines) + "\n")
