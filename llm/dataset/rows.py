"""A kernel's rows of the dataset: questions with the cheapest known and proved answer."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sassxlate.disasm.containers.values import Cubin
from sassxlate.errors import EncodeError, SassxlateError
from sassxlate.llm.language.limits import QuestionLimits
from sassxlate.llm.language.older_forms.restate import too_long
from sassxlate.llm.language.prompt import question_words
from sassxlate.lowering.engine.macros import regions
from sassxlate.lowering.engine.parts import no_guard, parts
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.optimize.lift.candidates import Known, relowered
from sassxlate.lowering.optimize.regions import CutRegion, cut_regions
from sassxlate.lowering.optimize.search import improved, walked
from sassxlate.lowering.pipeline import select_kernel
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.region import RegionSite
from sassxlate.lowering.region.text import answer_text, read_code
from sassxlate.lowering.select.stages import Selected
from sassxlate.lowering.verify import Proved, Unknown, Verdict
from sassxlate.lowering.verify.steps.framing import flat_items
from sassxlate.lowering.verify.steps.legality import check_legality
from sassxlate.lowering.verify.steps.prover import Code, Prover, ends_of, lives


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """A pair.  ``cost`` and ``rules_cost`` are in the units of lowering/optimize/cost.py;
    ``modulo`` names the readings of the proof; ``by`` is ``rules``, ``search``, ``walk`` or
    ``lifted``; ``count`` is how often the question occurs in the kernel where it was found."""

    id: str
    prompt: str
    answer: str
    rules: str  # the rules' answer if the target is another; otherwise ""
    cost: int
    rules_cost: int
    sass: int
    rdna: int
    arch: int
    program: str
    kernel: str
    modulo: str
    by: str
    count: int = 1
    said: str = ""  # the id of the question as a model is asked it, in older forms; "": the same
    asked: str = ""  # that question, and the answer in its names; "": the same
    asked_answer: str = ""


def row_id(text: str) -> str:
    """The identifier of a question: a hash of its canonical text."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def regions_of(
    piece: RegionSite, selected: Selected, limits: QuestionLimits
) -> Iterable[CutRegion]:
    """A piece's regions as an engine of a model with these limits asks for them."""
    long = partial(too_long, longest=limits.longest)
    if limits.macros:
        return regions(piece, selected, limits.longest, too_long=long, macros=True)
    items = selected.items[piece.first : piece.end]
    return cut_regions(
        piece.block, selected.regs, piece.live_out, limits.longest, items, too_long=long
    )


@dataclass(slots=True)
class Harvest:
    """Rows from kernels, each question once.  ``counts`` has the outcomes of the regions:
    ``macro``, ``again`` (a known question), ``unknown`` (not proved), ``rules``, ``search``,
    ``walk``, ``lifted``; and how many rows are of a ``part`` of one.  ``readings`` counts the
    readings under which rows are proved; ``why`` the reasons why not.  ``lifted``: LLVM is also
    tried, for all rows of a kernel at once.  ``walks``: so many seeds of the stochastic search,
    from the rules' code and from the search's.  ``limits``: which questions a kernel poses."""

    prover: Prover = field(default_factory=Prover)
    seen: set[str] = field(default_factory=set[str])
    search: bool = True
    lifted: bool = False
    walks: int = 0
    limits: QuestionLimits = field(default_factory=QuestionLimits)
    of_parts: set[str] = field(default_factory=set[str])  # rows of parts only
    rows: dict[str, TrainingPair] = field(default_factory=dict[str, TrainingPair])
    waiting: list[tuple[str, Known]] = field(default_factory=list[tuple[str, Known]])
    counts: Counter[str] = field(default_factory=Counter[str])
    again: Counter[str] = field(default_factory=Counter[str])
    why: Counter[str] = field(default_factory=Counter[str])

    def kernel(self, cubin: Cubin, name: str, program: str) -> None:
        """The rows of one kernel.  SassxlateError if it cannot be translated."""
        selected = select_kernel(cubin, name)
        regs = selected.regs
        self.counts["kernels"] += 1
        for piece in selected.pieces:
            for region in regions_of(piece, selected, self.limits):
                self.counts["regions"] += 1
                if region.macro:
                    self.counts["macro"] += 1
                    continue
                self._region(region, regs, cubin.arch, program, name)
        self._lift()

    def _lift(self) -> None:
        """Replaces answers for which LLVM's code is cheaper."""
        waiting, self.waiting = self.waiting, []
        found = relowered([known for _, known in waiting], self.prover)
        for (key, known), better in zip(waiting, found, strict=True):
            if better is None:
                continue
            row = self.rows[key]
            rules = row.rules or row.answer
            answer = answer_text(better.code, known.question)
            _, asked, answered = _older(known.region, known.regs, answer)
            self.rows[key] = replace(
                row,
                answer=answer,
                asked=asked,
                asked_answer=answered,
                rules=rules,
                cost=better.cost,
                rdna=_count(answer),
                modulo="; ".join(better.modulo),
                by="lifted",
            )
            self.counts[row.by] -= 1
            self.counts["lifted"] += 1

    def _region(
        self, region: CutRegion, regs: RegisterMap, arch: int, program: str, name: str
    ) -> None:
        question = region.asked
        assert question is not None
        text = question.text
        key = row_id(text)
        self.again[key] += 1
        # A row that was only a part so far is now searched and counted as a whole.
        if key in self.seen and key not in self.of_parts:
            self.counts["again"] += 1
            return
        self.seen.add(key)
        rules = _rules(region)
        code: Code = read_code(rules.split(), question)
        try:
            verdict = self.prover.region(region.block, regs, region.live_out, code)
        except EncodeError as error:  # not expressible: a value that lanes may not share
            verdict = Unknown(error.message)
        if not isinstance(verdict, Proved):
            self.counts["unknown"] += 1
            self.why[_reason(verdict)] += 1
            return
        before = cost(flat_items(region.block, code))
        answer, after, modulo, by = rules, before, verdict.modulo, "rules"
        if self.search and (found := improved(region, regs, question, self.prover, code)):
            answer, code = answer_text(found.code, question), found.code
            after, modulo, by = found.cost, found.modulo, "search"
        if self.walks:
            theirs: Code = read_code(rules.split(), question)
            better = walked(region, regs, question, self.prover, theirs, range(self.walks))
            if better is not None and better.cost < after:
                answer, code = answer_text(better.code, question), better.code
                after, modulo, by = better.cost, better.modulo, "walk"
        if self.lifted and not region.block.macros:
            self.waiting.append((key, Known(region, regs, question, code)))
        self.counts[by] += 1
        if key in self.of_parts:
            self.of_parts.remove(key)
            self.counts["part"] -= 1
        row = _row(region, regs, answer, (after, before), modulo, by, (arch, program, name))
        self.rows[key] = row
        self._parts(region, regs, code, row)

    def _parts(self, region: CutRegion, regs: RegisterMap, code: Code, whole: TrainingPair) -> None:
        """The rows of a region's parts, and of their parts: the questions of an engine if the whole
        is not proved.  A region is split where a step of its code may end, so that the parts'
        answers make the whole's answer; each is proved separately."""
        count = len(region.block.instructions)
        if count < _WORTH_CUTTING:
            return
        ends = set(ends_of(region.block, regs, lives(region.block, region.live_out), code))
        plain = no_guard(region)
        at = 0
        for part in parts(region, regs, lambda n: n in ends and plain(n)):
            groups = code[at : at + len(part.block.instructions)]
            at += len(groups)
            mine = self._part(part, regs, groups, whole)
            if mine is not None:
                self._parts(part, regs, mine, whole)

    def _part(
        self, part: CutRegion, regs: RegisterMap, groups: Code, whole: TrainingPair
    ) -> Code | None:
        """Adds the row of a part: the region's code for it if that is cheaper than the rules', else
        the rules'.  Returns the code, or None if it is not proved."""
        question = part.asked
        assert question is not None
        macros = part.block.macros
        if all(ins.offset in macros for ins in part.block.instructions):
            return groups  # nothing to ask
        try:
            answer, rules = answer_text(groups, question), _rules(part)
            code: Code = read_code(answer.split(), question)
            theirs: Code = read_code(rules.split(), question)
            check_legality(code, question)
            verdict = self.prover.region(part.block, regs, part.live_out, code)
            price = cost(flat_items(part.block, code))
            before = cost(flat_items(part.block, theirs))
            if answer != rules and price >= before:
                other = self.prover.region(part.block, regs, part.live_out, theirs)
                if isinstance(other, Proved):
                    answer, code, verdict, price = rules, theirs, other, before
        except SassxlateError:
            return None
        if not isinstance(verdict, Proved):
            return None
        key = row_id(question.text)
        if key not in self.seen:
            self.seen.add(key)
            self.of_parts.add(key)
            self.counts["part"] += 1
            by = "rules" if answer == rules else "search" if whole.by == "rules" else whole.by
            place = whole.arch, whole.program, whole.kernel
            costs = price, before
            self.rows[key] = _row(part, regs, answer, costs, verdict.modulo, by, place)
        return code

    def taken(self) -> list[TrainingPair]:
        """The rows, with the number of occurrences of their questions."""
        return [replace(row, count=self.again[key]) for key, row in self.rows.items()]


def _reason(verdict: Verdict) -> str:
    """Why a block is not proved, without the place."""
    text = verdict.reason if isinstance(verdict, Unknown) else f"refuted: {verdict}"
    return re.sub(r"^instruction \d+: ", "", text)[:120]


def _rules(region: CutRegion) -> str:
    """The rules' answer."""
    return "\n".join(map(" ".join, region.answer))


def _row(
    region: CutRegion,
    regs: RegisterMap,
    answer: str,
    costs: tuple[int, int],
    modulo: Sequence[str],
    by: str,
    place: tuple[int, str, str],
) -> TrainingPair:
    """The row of a region or a part.  ``costs`` are the answer's and the rules', ``place`` the
    architecture, the program and the kernel."""
    assert region.asked is not None
    text = region.asked.text
    said, asked, answered = _older(region, regs, answer)
    arch, program, kernel = place
    return TrainingPair(
        row_id(text), text, answer, _rules(region) if by != "rules" else "", costs[0], costs[1],
        len(region.block.instructions), _count(answer), arch, program, kernel,
        "; ".join(modulo), by, said=said, asked=asked, asked_answer=answered,
    )  # fmt: skip


def _older(region: CutRegion, regs: RegisterMap, answer: str) -> tuple[str, str, str]:
    """A question as a model is asked it: its id, its text, and the answer in its names; all empty
    if that is the region's own text, the last two if the answer needs what has no older name."""
    own = region.asked
    assert own is not None
    asked = question_words(region.block, regs, region.live_out, own)
    if asked.text == own.text:
        return "", "", ""
    try:
        answered = answer_text(read_code(answer.split(), own), asked)
    except EncodeError:
        return row_id(asked.text), "", ""
    return row_id(asked.text), asked.text, answered


def _count(answer: str) -> int:
    """The RDNA3 instructions of an answer."""
    return len([w for w in answer.split() if w.startswith(_MNEMONICS)])


_WORTH_CUTTING = 4  # instructions
_MNEMONICS = ("v_", "s_", "ds_", "global_", "flat_", "scratch_")

__all__ = ["Harvest", "TrainingPair", "regions_of", "row_id"]
