"""The model beside the search: what each leaves of the rules' cost, and its processor time.

The search is asked the same questions, and its time has its proofs in it, as the model's has.  So
where the search takes less time and leaves less, the model has nothing over it at equal time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from sassxlate.llm.evaluation.corpus import EvaluationBlock
from sassxlate.llm.evaluation.results import Answer, BlockResult, EvaluationRun
from sassxlate.output import table

Pair: TypeAlias = tuple[EvaluationBlock, BlockResult]
_HEAD = ("blocks", "distinct", "search", "model@1", "model@", "both", "over the search",
         "better", "equal", "worse")  # fmt: skip


def figures(groups: Mapping[str, Sequence[Pair]], run: EvaluationRun) -> dict[str, Any] | None:
    """By group of blocks, and for those not in training where that is known; None if no block was
    put to the search (results of none).

    Costs are sums, the rules' is 1: a model's code counts where it is proved and cheaper, the
    rules' elsewhere; ``both`` takes the cheaper of the search's and the model's.  ``saved`` is what
    the model's code (of all samples) leaves out of the search's cost: negative if it costs more.
    ``cpu_ms`` is per distinct block.
    """
    rows: dict[str, Any] = {}
    for name, pairs in groups.items():
        mine = [p for p in pairs if p[1].search is not None]
        if not mine:
            continue
        rows[name] = _row(mine)
        if any(b.seen is not None for b, _ in mine):
            rows[name]["unseen"] = _row([p for p in mine if not p[0].seen])
    return {"blocks": rows, "cpu_ms": _cpu(run)} if rows else None


def _row(pairs: Sequence[Pair]) -> dict[str, Any]:
    rules = sum(b.cost for b, _ in pairs)
    search = [min(b.cost, b.cost if r.search is None else r.search) for b, r in pairs]
    first = [_taken(b, r.first) for b, r in pairs]
    best = [_taken(b, r.best) for b, r in pairs]
    both = sum(map(min, search, best))
    together = list(zip(search, best, strict=True))
    return {
        "distinct": len(pairs),
        "search": _ratio(sum(search), rules),
        "model_first": _ratio(sum(first), rules),
        "model_best": _ratio(sum(best), rules),
        "both": _ratio(both, rules),
        "saved": None if not sum(search) else 1 - sum(best) / sum(search),
        "better": sum(m < s for s, m in together),
        "equal": sum(m == s for s, m in together),
        "worse": sum(m > s for s, m in together),
    }


def _taken(block: EvaluationBlock, answer: Answer) -> int:
    """What an engine that takes cheaper code is left with."""
    if not answer.proved or answer.cost is None:
        return block.cost
    return min(answer.cost, block.cost)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _cpu(run: EvaluationRun) -> dict[str, float | None]:
    """Milliseconds of processor time for each distinct block: the search's; the model's for its
    likeliest answer; and for all samples."""
    results = [r for r in run.results.values() if r.search is not None]
    asked = sum(b.questions for b in run.batches)
    asking = sum(b.asking_cpu_s for b in run.batches)
    if not results or not asked:
        return {"search": None, "model_first": None, "model_best": None}
    proving = sum(r.seconds for r in results) / len(results)
    further = sum(b.further_cpu_s for b in run.batches) / len(results)
    one = asking / asked + proving
    return {
        "search": 1000 * sum(r.search_s for r in results) / len(results),
        "model_first": 1000 * one,
        "model_best": 1000 * (one + further),
    }


def rows(over: Mapping[str, Any], samples: int) -> tuple[list[str], list[Sequence[object]]]:
    """The head of a table, and its rows."""
    head = [f"model@{samples}" if name == "model@" else name for name in _HEAD]
    return head, list(_rows(over))


def _rows(over: Mapping[str, Any]) -> Iterator[Sequence[object]]:
    for name, row in over["blocks"].items():
        yield _cells(name, row)
        if "unseen" in row:
            yield _cells(f"{name}, unseen in training", row["unseen"])


def _cells(name: str, row: Mapping[str, Any]) -> Sequence[object]:
    ratios = [row[k] for k in ("search", "model_first", "model_best", "both")]
    saved = "" if row["saved"] is None else f"{100 * row['saved']:+.2f} %"
    return [
        name, row["distinct"], *("" if r is None else f"{r:.4f}" for r in ratios), saved,
        row["better"], row["equal"], row["worse"],
    ]  # fmt: skip


def times(over: Mapping[str, Any], samples: int) -> str:
    """One line on processor time."""
    cpu = over["cpu_ms"]
    if cpu["search"] is None:
        return ""
    return (
        f"processor time for each distinct block, proofs included: search {cpu['search']:.1f} ms, "
        f"model {cpu['model_first']:.1f} ms at one sample, {cpu['model_best']:.1f} ms at {samples}"
    )


def lines(over: Mapping[str, Any] | None, samples: int) -> Iterator[str]:
    """As text."""
    yield "Beside the search (cost; the rules' is 1, and theirs counts where no answer is cheaper)"
    if over is None:
        yield "  not known"
        return
    head, body = rows(over, samples)
    yield from table(head, body, "  ")
    told = times(over, samples)
    if told:
        yield f"  {told}"


def markdown(over: Mapping[str, Any], samples: int) -> Iterator[str]:
    """As a card has it."""
    head, body = rows(over, samples)
    yield "Beside the search, which is asked the same questions; costs are sums, the rules' is 1:\n"
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in body:
        yield f"| {' | '.join(map(str, row))} |"
    told = times(over, samples)
    if told:
        yield f"\n{told[0].upper()}{told[1:]}."


__all__ = ["figures", "lines", "markdown", "rows", "times"]
