"""Verifies every lowering rule for all forms of its instructions.

A rule's result on one word in one environment is proved, tested, refuted, unknown or a refusal.
An immediate is proved for all its values at once if the code differs only in the literal, see
:mod:`.immediates`; values proved one by one are reported as such.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from sassxlate.disasm.sass.instruction import Const, Imm, Instruction, Mem, Pred, Reg
from sassxlate.disasm.sass.semantics import NoSemantics, semantics_table
from sassxlate.disasm.sass.semantics.arithmetic.error_bounds import near
from sassxlate.disasm.sass.semantics.warp_state import SemanticsFault
from sassxlate.disasm.sass.tables.spec import GENERATION_OF, Row
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import SassxlateError, UsageError
from sassxlate.executors import Place, in_order
from sassxlate.lowering.rules import TABLE
from sassxlate.lowering.rules.rule import choose
from sassxlate.lowering.target import DEFAULT, LANES, Target
from sassxlate.lowering.verify.block.block import BlockPair
from sassxlate.lowering.verify.block.check import verify
from sassxlate.lowering.verify.block.replay import Close, differential
from sassxlate.lowering.verify.block.rule_evidence import form_key
from sassxlate.lowering.verify.rules.forms import FormCase, cases, rows
from sassxlate.lowering.verify.rules.immediates import for_all
from sassxlate.lowering.verify.rules.one_instruction import SURROUNDINGS, Surroundings, translated
from sassxlate.lowering.verify.verdict import Proved, Refuted, Undecided

# Words of one form, each with its number in its row, which selects the environment.
Share: TypeAlias = list[tuple[int, FormCase]]
Status: TypeAlias = Literal["proved", "tested", "refuted", "unknown", "refused"]
STATUSES: tuple[Status, ...] = ("proved", "tested", "refuted", "unknown", "refused")
# The reasons of Unknown when only floating point kept the solver from deciding.
_GAVE_UP = "the solver gave up"  # inputs do not settle that
_FLOATS, _TRIED = "floating point beyond the solver", "random inputs agree"


@dataclass(frozen=True, slots=True)
class RuleCheckSettings:
    """The extent of the check; ``vectors``: inputs of a form that the solver cannot decide."""

    arch: int = 90
    combinations: int = 24  # random words per row
    words: int = 0  # most words per row, evenly sampled; 0: all
    seed: int = 1
    timeout_ms: int = 10_000
    vectors: int = 1 << 20
    target: Target = DEFAULT


@dataclass(frozen=True, slots=True)
class Finding:
    """One word in one environment.  ``immediates`` is the number of values it covers: ``all``
    2**32, a count of those that were proved one by one, or nothing."""

    rule: str
    form: str
    text: str
    word: int
    surroundings: Surroundings
    status: Status
    detail: str = ""
    immediates: str = ""
    vectors: int = 0


def rule_of(ins: Instruction) -> str:
    """The name of the rule that translates an instruction; its mnemonic if there is none."""
    rule = choose(TABLE.get(ins.mnemonic, ()), ins)
    return ins.mnemonic if rule is None else rule.name


def form_of(ins: Instruction) -> str:
    """Mnemonic, modifiers, and the kind of each operand."""
    kinds: list[str] = []
    for operand in ins.operands.values():
        match operand:
            case Reg():
                kinds.append(operand.file)
            case Pred():
                kinds.append("P")
            case Imm():
                kinds.append("imm")
            case Const():
                kinds.append("c" if operand.ur is None else "cx")
            case Mem():
                kinds.append("[UR]" if operand.ureg is not None else "[]")
            case _:
                kinds.append(type(operand).__name__)
    return " ".join([".".join([ins.mnemonic, *ins.modifiers]), ",".join(kinds)])


def chosen(patterns: Sequence[str], settings: RuleCheckSettings) -> list[Row]:
    """The rows of the encoding tables whose mnemonic, or one of its rules, matches a pattern."""
    from fnmatch import fnmatch

    def wanted(mnemonic: str) -> bool:
        names = [mnemonic, *(r.name for r in TABLE[mnemonic])]
        return not patterns or any(fnmatch(n.lower(), p.lower()) for p in patterns for n in names)

    return rows(GENERATION_OF[settings.arch], wanted)


def _usable(ins: Instruction, target: Target) -> bool:
    try:
        translated(ins, "together", target)
    except SassxlateError:
        return False
    return True


def shares(row: Row, settings: RuleCheckSettings) -> list[Share]:
    """The words of one row of the encoding tables, grouped by form."""
    generation = GENERATION_OF[settings.arch]
    usable = partial(_usable, target=settings.target)
    found = [*cases(row, settings.arch, generation, settings.combinations, settings.seed, usable)]
    step = max(1, -(-len(found) // settings.words)) if settings.words else 1
    groups: dict[str, Share] = defaultdict(list)
    for n, case in enumerate(found[::step]):
        groups[f"{rule_of(case.ins)} {form_key(case.ins)}"].append((n, case))
    return [*groups.values()]


def verify_share(share: Share, settings: RuleCheckSettings) -> list[Finding]:
    """The findings of one form of a row; words that the solver leaves undecided are tested on
    numbers."""
    out: list[Finding] = []
    open_: list[_Open] = []
    for n, case in share:
        for surroundings in SURROUNDINGS if case.alone else (SURROUNDINGS[n % 2],):
            finding, block = _judge(case, surroundings, settings)
            if finding.status == "unknown" and not finding.detail.startswith(_GAVE_UP):
                open_.append(_Open(len(out), case.ins, surroundings, block))
            out.append(finding)
    if open_:
        _test(open_, out, settings)
    return out


def verify_word(ins: Instruction, settings: RuleCheckSettings) -> tuple[Status, str]:
    """The worse of an instruction's two findings, and its detail."""
    found: list[Finding] = []
    open_: list[_Open] = []
    for surroundings in SURROUNDINGS:
        finding, block = _judge(FormCase(ins), surroundings, settings)
        if finding.status == "unknown" and not finding.detail.startswith(_GAVE_UP):
            open_.append(_Open(len(found), ins, surroundings, block))
        found.append(finding)
    if open_:
        _test(open_, found, settings)
    order: tuple[Status, ...] = ("proved", "tested", "unknown", "refused", "refuted")
    worst = max(found, key=lambda f: order.index(f.status))
    return worst.status, worst.detail


def _judge(
    case: FormCase, surroundings: Surroundings, settings: RuleCheckSettings
) -> tuple[Finding, BlockPair | None]:
    """The finding on a word; with its block if numbers may still decide."""
    ins = case.ins
    finding = Finding(rule_of(ins), form_of(ins), ins.text, ins.word, surroundings, "refused")
    try:
        block = translated(ins, surroundings, settings.target)
    except SassxlateError as error:
        return replace(finding, detail=f"{error.code}: {error.message}"), None
    if case.immediate:
        found = for_all(case, surroundings, settings.timeout_ms, settings.target)
        if found is not None:
            refuted, immediates, modulo = found
            if refuted:
                return replace(finding, status="refuted", detail=refuted), None
            done = replace(finding, status="proved", detail=modulo, immediates=immediates)
            return done, None
    verdict = verify(block, timeout_ms=settings.timeout_ms, tested=traits(ins).clock)
    one = "1" if case.immediate else ""
    if isinstance(verdict, Proved):
        modulo = ", ".join(verdict.modulo)
        return replace(finding, status="proved", detail=modulo, immediates=one), None
    wrong = isinstance(verdict, Refuted) and not verdict.inputs
    if not wrong and _close(ins) is not None:
        return replace(finding, status="unknown", detail="other steps to an approximation"), block
    if isinstance(verdict, Refuted):
        return replace(finding, status="refuted", detail=verdict.summary), None
    floats = verdict.reason.startswith(_FLOATS) and verdict.reason.endswith(_TRIED)
    numbers = block if floats or _close(ins) is not None else None
    return replace(finding, status="unknown", detail=verdict.reason, immediates=one), numbers


def _close(ins: Instruction) -> Close | None:
    """For approximations: which results are within the bounds that the vendor states."""
    meaning = semantics_table().get(ins.mnemonic)
    if meaning is None or not meaning.approximate:
        return None
    return lambda a, b: near(ins.modifiers, a.astype(np.uint32), b.astype(np.uint32))


@dataclass(frozen=True, slots=True)
class _Open:
    """A finding that numbers may still settle; ``block`` if one lane is enough for that."""

    at: int
    ins: Instruction
    surroundings: Surroundings
    block: BlockPair | None

    def differs(self, count: int, seed: int, target: Target) -> str | None:
        """A difference among ``count`` inputs.  Raises the error of a form that cannot be run."""
        if self.block is not None:
            for n, first in enumerate(range(0, count, _CHUNK)):
                size = min(_CHUNK, count - first)
                close = _close(self.ins)
                refuted = differential(self.block, size, seed=seed + n, close=close)
                if refuted is not None:
                    return refuted.summary
            return None
        from sassxlate.lowering.verify.rules.warps import tried

        waves = max(1, count // LANES)
        for n, first in enumerate(range(0, waves, _WAVES)):
            found = tried(self.ins, self.surroundings, min(_WAVES, waves - first), seed + n, target)
            if found is not None:
                return str(found)
        return None


_CHUNK = 1 << 15  # lanes at a time
_WAVES = 1 << 12
_LEAST = 1 << 10  # least inputs of a word


def _test(group: Sequence[_Open], out: list[Finding], settings: RuleCheckSettings) -> None:
    """Tests the words of one form that the solver cannot decide: together they get at least
    ``settings.vectors`` inputs, each its own share."""
    from sassxlate.errors import EmulatorError

    if not settings.vectors:
        return
    can: list[_Open] = []
    for one in group:  # a few inputs show which can be run at all
        try:
            difference = one.differs(_LEAST, 999 * settings.seed, settings.target)
        except (Undecided, NoSemantics, SemanticsFault, SassxlateError) as reason:
            if not isinstance(reason, Undecided):
                detail = f"{out[one.at].detail}; {reason}"
                out[one.at] = replace(out[one.at], detail=detail)
            if isinstance(reason, EmulatorError):
                out[one.at] = replace(out[one.at], status="refuted")
            continue
        if difference is None:
            can.append(one)
        else:
            out[one.at] = replace(out[one.at], status="refuted", detail=difference)
    share = max(_LEAST, -(-settings.vectors // max(1, len(can))))
    good: list[int] = []
    for n, one in enumerate(can):
        difference = one.differs(share, 1000 * settings.seed + 100 * n, settings.target)
        if difference is None:
            good.append(one.at)
        else:
            out[one.at] = replace(out[one.at], status="refuted", detail=difference)
    for at in good if share * len(good) >= settings.vectors else ():
        out[at] = replace(out[at], status="tested", vectors=share * len(good))


def table(findings: Sequence[Finding]) -> Mapping[str, Mapping[Status, int]]:
    """Findings by rule and status."""
    out: dict[str, dict[Status, int]] = {}
    for finding in findings:
        counts = out.setdefault(finding.rule, dict.fromkeys(STATUSES, 0))
        counts[finding.status] += 1
    return out


def each(
    patterns: Sequence[str],
    settings: RuleCheckSettings,
    place: Place,
    told: Callable[[float], None],
) -> Iterator[list[Finding]]:
    """The findings of the rows that patterns select, form by form and in order, in processes or on
    a cluster; ``told`` is called with the finished part of a row, which adds up to 1.0 for each.

    Raises:
        UsageError: the cluster cannot be used; SX0888, every process that worked on a form died.
    """
    todo = chosen(patterns, settings)
    if place.jobs <= 1 and place.cluster is None:
        for row in todo:
            for share in shares(row, settings):
                yield verify_share(share, settings)
            told(1.0)
        return
    numbers = [_number(row) for row in todo]
    lost = UsageError("SX0888", "every process that worked on one of the forms died")
    listed = list(in_order(place, partial(_listed, settings=settings), numbers, lost=lost))
    # A form is the unit: the conversions alone would keep one process busy for an hour.
    work = [(share, len(forms)) for forms in listed for share in forms]
    for forms in listed:
        if not forms:
            told(1.0)
    verify = partial(verify_share, settings=settings)
    found = in_order(place, verify, [share for share, _ in work], lost=lost)
    for (_, of), findings in zip(work, found, strict=True):
        yield findings
        told(1 / of)


def _number(row: Row) -> int:
    from sassxlate.disasm.sass.tables import ROWS

    return next(n for n, other in enumerate(ROWS) if other is row)


def _listed(number: int, settings: RuleCheckSettings) -> list[Share]:
    from sassxlate.disasm.sass.tables import ROWS

    return shares(ROWS[number], settings)
