"""The figures of a measured model: blocks, whole programs, costs, rates.

Everything is counted from the results, so that an interrupted run and an uninterrupted one give the
same figures.  Shares are of the blocks asked for; others are counted separately.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import Any, Final

from sassxlate.llm.evaluation import over_search
from sassxlate.llm.evaluation.corpus import (
    Corpus,
    EvaluationBlock,
    Kernel,
    ProgramQuestions,
    families,
)
from sassxlate.llm.evaluation.results import Answer, Batch, BlockResult, EvaluationRun
from sassxlate.lowering.optimize.regions import LONGEST

BUCKETS: Final = (
    (1, 2), (3, 4), (5, LONGEST - 1), (LONGEST, LONGEST), (LONGEST + 1, 16), (17, 24), (25, 999),
)  # fmt: skip
# Published figures for whole programs, not measured here: other programs, and "correct" means that
# outputs of runs agreed, not that anything is proved.
PUBLISHED: Final = (
    ("CASS-7B (ACL 2026)", 69.11),
    ("CASS-7B (first version)", 37.5),
    ("GPT-5.1", 22.22),
    ("ZLUDA", 7.86),
)
_TRAINED = 99  # later architectures are usually in no training data

Pair = tuple[EvaluationBlock, BlockResult]


def figures(
    corpus: Corpus, run: EvaluationRun, samples: int, every: bool = False
) -> dict[str, Any]:
    """All figures, as JSON values.  ``every``: the model was trained on all architectures."""
    pairs = [(b, run.results[k]) for k, b in corpus.blocks.items() if k in run.results]
    arches = {f"sm_{a}": [p for p in pairs if p[0].arch == a] for a in corpus.arches}
    whole = not corpus.sampled and run.left == 0
    return {
        "samples": samples,
        "left": run.left,
        "programs": _counts(corpus),
        "blocks": {
            **{name: blocks_of(mine) for name, mine in arches.items()},
            "all": blocks_of(pairs),
        },
        "over_search": over_search.figures({**arches, "all": pairs}, run),
        "apart": None if every else _apart(pairs),
        "whole_programs": (
            {f"sm_{a}": _programs(corpus, run, a) for a in corpus.arches} if whole else None
        ),
        "hybrid": {f"sm_{a}": _hybrid(corpus, run, a) for a in corpus.arches} if whole else None,
        "rate": _rate(corpus, run),
        "published": [{"name": n, "programs_correct_percent": v} for n, v in PUBLISHED],
    }


def _counts(corpus: Corpus) -> dict[str, Any]:
    out: dict[str, Any] = {"families": families(corpus), "files": {}, "errors": Counter()}
    for arch in corpus.arches:
        mine = [p for p in corpus.programs if p.arch == arch]
        kernels = [k for p in mine for k in p.kernels]
        others: Counter[str] = sum((k.others for k in kernels), Counter[str]())
        out["files"][f"sm_{arch}"] = {
            "programs": len(mine),
            "families": len({p.family for p in mine}),
            "kernels": len(kernels),
            "refused": dict(Counter(k.error for k in kernels if k.error)),
            "regions": sum(k.blocks.total() + k.others.total() for k in kernels),
            "asked": sum(k.blocks.total() for k in kernels),
            "not_asked": dict(others.most_common()),
        }
    out["errors"] = dict(Counter(e.code for e in corpus.errors))
    return out


# --- blocks ----------------------------------------------------------------------------------


def blocks_of(pairs: Sequence[Pair]) -> dict[str, Any]:
    """The figures of distinct blocks; separately for those not seen in training, if that is
    known."""
    out = _row(pairs)
    if any(b.seen is not None for b, _ in pairs):
        out["unseen"] = _row([p for p in pairs if not p[0].seen])
    out["by_length"] = {
        (f"{low}-{high}" if low != high else f"{low}"): _row(
            [p for p in pairs if low <= p[0].sass <= high]
        )
        for low, high in BUCKETS
    }
    out["why_not"] = _why([r.first for _, r in pairs])
    out["why_not_best"] = _why([r.best for _, r in pairs])
    return out


def _row(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Three verdicts, and answers that did not reach the verifier: ``refused`` by the gate before
    it, ``long`` for the model.  ``first`` is of the likeliest answer, ``best`` of all samples."""
    unproved = [r for _, r in pairs if not r.best.proved and r.rules_proved is not None]
    return {
        "distinct": len(pairs),
        "first": _outcomes([(b, r.first) for b, r in pairs]),
        "best": _outcomes([(b, r.best) for b, r in pairs]),
        "rules_unproved_too": sum(r.rules_proved is False for r in unproved),
    }


def _outcomes(answers: Sequence[tuple[EvaluationBlock, Answer]]) -> dict[str, Any]:
    counted = Counter(a.outcome for _, a in answers)
    proved = [(a.cost or 0, b.cost) for b, a in answers if a.proved]
    ratios = [mine / rules for mine, rules in proved if rules]
    total = sum(rules for _, rules in proved)
    return {
        **{name: counted[name] for name in ("Proved", "Refuted", "Unknown", "refused", "long")},
        "share": len(proved) / len(answers) if answers else None,
        "cheaper": sum(mine < rules for mine, rules in proved),
        "equal": sum(mine == rules for mine, rules in proved),
        "dearer": sum(mine > rules for mine, rules in proved),
        "mean_ratio": mean(ratios) if ratios else None,
        "ratio_of_sums": sum(mine for mine, _ in proved) / total if total else None,
    }


_NUMBERS = re.compile(r"^instruction \d+: |0x[0-9a-f]+|\b[vs]\d+\b")


_REASONS = 16  # most reasons listed


def _why(answers: Iterable[Answer]) -> dict[str, int]:
    """Why answers are not proved: the gate's reason, and for Unknown and the like also the
    detail."""
    out: Counter[str] = Counter()
    for answer in answers:
        if answer.proved:
            continue
        detail = _NUMBERS.sub(lambda m: "" if m[0].startswith("i") else "*", answer.detail)
        told = answer.reason in ("unknown", "encoding", "malformed")
        out[f"{answer.reason}: {detail[:70]}" if told and detail else answer.reason] += 1
    found = dict(out.most_common(_REASONS))
    rest = out.total() - sum(found.values())
    return {**found, "others": rest} if rest else found


def _apart(pairs: Sequence[Pair]) -> dict[str, Any] | None:
    """The difference between architectures in no training data and the others, in percentage
    points."""
    known = [p for p in pairs if p[0].arch <= _TRAINED]
    new = [p for p in pairs if p[0].arch > _TRAINED]
    if not known or not new:
        return None
    out: dict[str, Any] = {"never_trained_on": sorted({b.arch for b, _ in new})}
    for which in ("first", "best"):
        a, b = (mean(getattr(r, which).proved for _, r in part) for part in (known, new))
        out[which] = 100 * (b - a)
    return out


# --- programs --------------------------------------------------------------------------------


def _programs(corpus: Corpus, run: EvaluationRun, arch: int) -> dict[str, Any]:
    """Whole programs and whole kernels: correct if every block given to the model is
    proved.  A kernel that the rules refuse makes its program incorrect; code that is never asked
    for (the rules' macros) does not count, and a program without any question is left out."""
    mine = [p for p in corpus.programs if p.arch == arch]
    asked = [p for p in mine if any(k.blocks for k in p.kernels)]
    kernels = [k for p in mine for k in p.kernels if k.blocks]
    unseen = [p for p in asked if any(_unseen(corpus, arch, k) for k in p.kernels)]

    def right(parts: Iterable[Kernel], which: str) -> bool:
        return all(
            not k.error and all(_proved(run, arch, key, which) for key, _ in k.blocks)
            for k in parts
        )

    return {
        "programs": len(asked),
        "first": sum(right(p.kernels, "first") for p in asked),
        "best": sum(right(p.kernels, "best") for p in asked),
        "with_unseen": len(unseen),
        "with_refused_kernels": sum(any(k.error for k in p.kernels) for p in asked),
        "without_questions": len(mine) - len(asked),
        "blocks_a_program": _spread([_blocks(p) for p in asked]),
        "distinct_a_program": _spread(
            [len({key for k in p.kernels for key, _ in k.blocks}) for p in asked]
        ),
        "macros_a_program": _spread([sum(k.others.total() for k in p.kernels) for p in asked]),
        "kernels": len(kernels),
        "kernels_first": sum(right([k], "first") for k in kernels),
        "kernels_best": sum(right([k], "best") for k in kernels),
        "bodies": sum(k.bodies.total() for k in kernels),
        "bodies_first": _bodies(run, arch, kernels, "first"),
        "bodies_best": _bodies(run, arch, kernels, "best"),
    }


def _bodies(run: EvaluationRun, arch: int, kernels: Iterable[Kernel], which: str) -> int:
    """The number of blocks of the graphs that are entirely proved, each as often as it occurs."""
    return sum(
        times
        for kernel in kernels
        for keys, times in kernel.bodies.items()
        if all(_proved(run, arch, key, which) for key in keys)
    )


def _proved(run: EvaluationRun, arch: int, key: str, which: str) -> bool:
    answer: Answer = getattr(run.results[arch, key], which)
    return answer.proved


def _unseen(corpus: Corpus, arch: int, kernel: Kernel) -> bool:
    return any(not corpus.blocks[arch, key].seen for key, _ in kernel.blocks)


def _blocks(program: ProgramQuestions) -> int:
    return sum(k.blocks.total() for k in program.kernels)


def _spread(values: Sequence[int]) -> dict[str, float]:
    if not values:
        return {}
    return {"mean": mean(values), "median": median(values), "most": max(values)}


def _hybrid(corpus: Corpus, run: EvaluationRun, arch: int) -> dict[str, Any]:
    """The static cost of all code of the programs, each region as often as it occurs: the
    rules' cost, and with the model's code where it is proved, cheaper, and takes no more vector
    temporaries than that kernel has."""
    rules = hybrid = others = taken = unfit = asked = 0
    for program in corpus.programs:
        if program.arch != arch:
            continue
        for kernel in program.kernels:
            others += kernel.others_cost
            for (key, limit), times in kernel.blocks.items():
                answer, price = run.results[arch, key].best, corpus.blocks[arch, key].cost
                asked += times
                rules += times * price
                cheaper = answer.proved and answer.cost is not None and answer.cost < price
                fits = answer.temps <= limit
                hybrid += times * (answer.cost or 0 if cheaper and fits else price)
                taken += times * (cheaper and fits)
                unfit += times * (cheaper and not fits)
    return {
        "regions_asked": asked,
        "taken": taken,
        "too_many_temporaries": unfit,
        "rules_cost": rules + others,
        "hybrid_cost": hybrid + others,
        "ratio": (hybrid + others) / (rules + others) if rules + others else None,
        "ratio_of_asked": hybrid / rules if rules else None,
    }


# --- rates -----------------------------------------------------------------------------------


def _rate(corpus: Corpus, run: EvaluationRun) -> dict[str, Any]:
    """Rates in wall-clock time.  A question is asked once in a run, whatever the architecture;
    ``memo`` is the number of regions whose question the run had already asked."""
    regions: Counter[str] = Counter()
    for program in corpus.programs:
        for kernel in program.kernels:
            for (key, _), times in kernel.blocks.items():
                regions[key] += times
    total, distinct = regions.total(), len(regions)
    at_one = _speed(run.batches)
    rate = at_one["blocks_per_s"]
    middle = [b for b in run.batches if b.median]
    return {
        "at_one_sample": at_one,
        "median_length": _speed(middle) if middle else None,
        "further": {
            "blocks": sum(b.further for b in run.batches),
            "asking_s": sum(b.further_asking_s for b in run.batches),
            "proving_s": sum(b.further_proving_s for b in run.batches),
        },
        "load": run.load,
        "memo": {
            "regions": total,
            "distinct": distinct,
            "hit_rate": 1 - distinct / total if total else None,
            "regions_per_s": rate * total / distinct if rate and distinct else None,
        },
    }


def _speed(batches: Sequence[Batch]) -> dict[str, Any]:
    questions = sum(b.questions for b in batches)
    asking = sum(b.asking_s for b in batches)
    proving = sum(b.proving_s for b in batches)
    return {
        "blocks": questions,
        "proofs": sum(b.judged for b in batches),
        "words": sum(b.words for b in batches),
        "asking_s": asking,
        "proving_s": proving,
        "asked_per_s": questions / asking if asking else None,
        "blocks_per_s": questions / (asking + proving) if asking + proving else None,
    }


def lengths(blocks: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The buckets that have blocks."""
    return [(name, row) for name, row in blocks["by_length"].items() if row["distinct"]]


__all__ = ["BUCKETS", "PUBLISHED", "blocks_of", "figures", "lengths"]
