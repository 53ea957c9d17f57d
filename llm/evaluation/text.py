"""The figures of `sassxlate eval` as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sassxlate.llm.evaluation import over_search
from sassxlate.output import table

_NOT_ASKED = {
    "macro": "macros, whose code stays the rules'",
    "guarded": "inside a guard that spans their edge",
    "unsaid": "beyond the language",
}


def lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """All figures, paragraph by paragraph."""
    yield from _head(figures)
    yield ""
    yield from _blocks(figures)
    yield ""
    yield from over_search.lines(figures["over_search"], figures["samples"])
    yield ""
    yield from _lengths(figures)
    yield ""
    yield from _why(figures)
    yield ""
    yield from _programs(figures)
    yield ""
    yield from _rate(figures)


def _percent(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({100 * part / whole:.2f} %)" if whole else "")


def _head(f: Mapping[str, Any]) -> Iterator[str]:
    yield f"model {f['model']}, {f['samples']} samples, seed {f['seed']}"
    for name, c in f["programs"]["files"].items():
        yield (
            f"{name}: {c['programs']} programs (of {c['families']} sources), {c['kernels']} "
            f"kernels, {c['regions']} regions, {c['asked']} of them asked"
        )
        others = [f"{n} {_NOT_ASKED.get(k, k)}" for k, n in c["not_asked"].items()]
        if others:
            yield f"  not asked: {', '.join(others)}"
        if c["refused"]:
            told = ", ".join(f"{code} {n}" for code, n in c["refused"].items())
            yield f"  kernels that the rules refuse: {told}"
    if f["programs"]["errors"]:
        told = ", ".join(f"{code} {n}" for code, n in f["programs"]["errors"].items())
        yield f"files that cannot be read: {told}"
    if f["left"]:
        yield f"{f['left']} blocks are left; the figures are of those that are settled"


def _rows(f: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, row in f["blocks"].items():
        yield name, row
        if "unseen" in row:
            yield f"{name}, unseen in training", row["unseen"]


def _blocks(f: Mapping[str, Any]) -> Iterator[str]:
    n = f["samples"]
    counts = [("Proved", "Proved"), ("Refuted", "Refuted"), ("Unknown", "Unknown"),
              ("refused", "refused"), ("long", "too long")]  # fmt: skip
    yield "Distinct blocks"
    for which, title in _samples(n):
        head = ["blocks", "distinct", title, *(t for _, t in counts), "cheaper", "equal", "dearer",
                "mean cost"]  # fmt: skip
        body: list[Sequence[object]] = []
        for name, row in _rows(f):
            r = row[which]
            body.append([
                name, row["distinct"], _percent(r["share"]), *(r[k] for k, _ in counts),
                r["cheaper"], r["equal"], r["dearer"], _ratio(r["mean_ratio"]),
            ])  # fmt: skip
        yield from table(head, body, "  ")
    yield ("  refused: by the gate, before the verifier; cost: of what is Proved, the rules' is 1")
    rules = {name: row["rules_unproved_too"] for name, row in f["blocks"].items()}
    yield f"  not proved, and the rules' own code is not either: {rules['all']}"
    apart = f["apart"]
    if apart is not None:
        names = ", ".join(f"sm_{a}" for a in apart["never_trained_on"])
        told = ", ".join(f"{apart[w]:+.2f} points {t}" for w, t in _samples(n))
        yield f"  {names} (never trained on) compared with the others: {told}"


def _samples(samples: int) -> list[tuple[str, str]]:
    first = [("first", "Proved@1")]
    return first if samples == 1 else [*first, ("best", f"Proved@{samples}")]


def _lengths(f: Mapping[str, Any]) -> Iterator[str]:
    from sassxlate.llm.evaluation.figures import lengths

    yield "By SASS instructions of a block"
    columns = _samples(f["samples"])
    head = ["blocks", "length", "distinct", *(t for _, t in columns), "cheaper", "equal", "dearer",
            "mean cost"]  # fmt: skip
    body: list[Sequence[object]] = []
    for name, blocks in f["blocks"].items():
        for length, row in lengths(blocks):
            best = row["best"]
            body.append([
                name, length, row["distinct"], *(_percent(row[w]["share"]) for w, _ in columns),
                best["cheaper"], best["equal"], best["dearer"], _ratio(best["mean_ratio"]),
            ])  # fmt: skip
    yield from table(head, body, "  ")


def _why(f: Mapping[str, Any]) -> Iterator[str]:
    yield "Why not proved (the likeliest answer)"
    found = f["blocks"]["all"]["why_not"]
    yield from (f"  {n:6}  {reason}" for reason, n in found.items())
    if not found:
        yield "  (all are)"


def _programs(f: Mapping[str, Any]) -> Iterator[str]:
    yield "Whole programs, no code by the rules but macros"
    if f["whole_programs"] is None:
        yield "  not known: not all blocks of the programs were asked"
        return
    columns = _samples(f["samples"])
    for name, p in f["whole_programs"].items():
        told = ", ".join(f"{_share(p[w], p['programs'])} at {t[7:]}" for w, t in columns)
        yield f"  {name}: right {told} sample(s)"
        kernels = ", ".join(
            f"{_share(p['kernels_' + w], p['kernels'])} at {t[7:]}" for w, t in columns
        )
        yield f"    kernels: {kernels}"
        bodies = ", ".join(
            f"{_share(p['bodies_' + w], p['bodies'])} at {t[7:]}" for w, t in columns
        )
        yield f"    blocks of their graphs: {bodies}"
        if p["programs"]:
            blocks, macros = p["blocks_a_program"], p["macros_a_program"]
            yield (
                f"    blocks per program: {blocks['mean']:.0f} in the mean, {blocks['median']:.0f} "
                f"in the median; {p['distinct_a_program']['mean']:.0f} distinct; macros apart "
                f"{macros['mean']:.1f}"
            )
        if p["with_refused_kernels"]:
            yield f"    wrong because the rules refuse a kernel: {p['with_refused_kernels']}"
        if p["without_questions"]:
            yield f"    without any question: {p['without_questions']}"
    yield "  published, of other programs, by comparing outputs (not measured here):"
    for row in f["published"]:
        yield f"    {row['name']}: {row['programs_correct_percent']:.2f} %"
    yield "Static cost in hybrid mode, the rules' is 1"
    for name, h in f["hybrid"].items():
        yield (
            f"  {name}: {_ratio(h['ratio'])} ({_ratio(h['ratio_of_asked'])} of what is asked); "
            f"{_share(h['taken'], h['regions_asked'])} regions are the model's"
        )
        if h["too_many_temporaries"]:
            yield f"    cheaper but with more temporaries: {h['too_many_temporaries']}"


def _rate(f: Mapping[str, Any]) -> Iterator[str]:
    r = f["rate"]
    one = r["at_one_sample"]
    yield f"Rate on {f['jobs']} processes (load up to {r['load']:.1f}), memoisation off"
    yield "  " + _speed(one, "all lengths")
    if r["median_length"]:
        yield "  " + _speed(r["median_length"], "the median length")
    further = r["further"]
    if further["blocks"]:
        yield (
            f"  further samples of {further['blocks']} blocks: {further['asking_s']:.1f} s asking, "
            f"{further['proving_s']:.1f} s proving"
        )
    memo = r["memo"]
    rate = memo["regions_per_s"]
    yield (
        f"  memoisation: {memo['distinct']} questions of {memo['regions']} regions, "
        f"{_percent(memo['hit_rate'])} asked before" + (f"; {rate:.1f} regions/s" if rate else "")
    )


def _speed(s: Mapping[str, Any], what: str) -> str:
    if not s["blocks_per_s"]:
        return f"{what}: nothing was asked"
    return (
        f"{what}: {s['blocks_per_s']:.1f} distinct blocks/s, {s['blocks']} blocks, "
        f"{s['asking_s']:.1f} s asking, {s['proving_s']:.1f} s proving {s['proofs']}"
    )


__all__ = ["lines"]
