"""A model's card, generated from data: nothing in it is typed by hand.

Sizes come from the checkpoint, training from its ``training.json``, data from the dataset's
datasheet, figures from `sassxlate eval` and `sassxlate bench hybrid` as JSON.  Parts that were not
given are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sassxlate.errors import ModelError, Where
from sassxlate.llm.evaluation import over_search
from sassxlate.llm.inference import safetensors
from sassxlate.llm.inference.qwen2 import read_config
from sassxlate.llm.language.limits import limits_of
from sassxlate.lowering.target import DEFAULT

Data = Mapping[str, Any]
_ISA = DEFAULT.language
_HEAD = f"""---
license: apache-2.0
library_name: transformers
tags: [assembly, sass, rdna3, {_ISA}, translation]
---
# The block model of sassxlate

It translates straight-line blocks of NVIDIA SASS to AMD RDNA3 ({_ISA}), in the block language of
sassxlate (`docs/model.md`): registers by what lives there, constants split so that any value can be
said. Its answers are verified: sassxlate takes those that are proved and cost less
than the rules' code. A wrong answer costs time, never correctness."""
_LIMITS = """## Limits

* It knows the block language and nothing else: no prose, no other target, no whole kernels.
  Regions have at most {longest} SASS instructions; what lies between them ({others}) is the rules'.
* Its answers are to be decoded under sassxlate's automaton and judged by its gate. Without both
  they are text that may be wrong.
* It makes the accesses to memory that the rules make. What it saves is arithmetic, moves and code
  size by a model of costs (`lowering/optimize/cost.py`); no AMD card was at hand to measure time
  on.
* Its training data are kernels of a generator, compiled by one release of nvcc, and those of the
  sources that the table names. What is unlike them it answers less often rightly."""


def card(
    folder: Path, figures: Data | None = None, sheet: Data | None = None, hybrid: Data | None = None
) -> str:
    """The text of a checkpoint's README.md.  ModelError as reading the checkpoint."""
    parts = [
        _HEAD,
        "\n".join(_model(folder)),
        "\n".join(_training(folder)),
        "" if sheet is None else "\n".join(_data(sheet)),
        "" if figures is None else "\n".join(_figures(figures)),
        "" if hybrid is None else "\n".join(_hybrid(hybrid)),
        _limits(folder),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _limits(folder: Path) -> str:
    limits = limits_of(folder)
    lanes = "what reaches other lanes, atomics with loops, fences, matrix products"
    others = "transfers of control" if limits.macros else f"transfers of control,\n  {lanes}"
    text = _LIMITS.format(longest=limits.longest, others=others)
    if limits.macros:
        more = f"\n* It writes no code for {lanes}:\n  a word of the answer stands for the rules'."
        text += more
    return text


def _model(folder: Path) -> Iterator[str]:
    config = read_config(folder)
    files = sorted(folder.glob("*.safetensors"))
    size = sum(path.stat().st_size for path in files)
    kinds = sorted({kind for path in files for kind in safetensors.types(path).values()})
    yield "## The model\n"
    yield "| | |"
    yield "|---|---|"
    yield f"| architecture | Qwen2, {config.layers} layers of {config.hidden} |"
    yield f"| heads | {config.heads}, {config.kv_heads} of keys and values |"
    yield f"| parameters | {config.parameters:,} |"
    yield f"| weights | {', '.join(kinds)}, {size / 1e6:.1f} MB |"
    yield f"| vocabulary | {config.vocab:,} words |"
    yield f"| context | {config.context:,} tokens |"
    yield ""
    yield (
        "On a CPU it runs without a framework and without a network: `sassxlate translate FILE "
        "-o DIR --engine hybrid`."
    )


def _training(folder: Path) -> Iterator[str]:
    path = folder / "training.json"
    try:
        about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return
    except ValueError as error:
        raise ModelError("SX1003", f"no JSON: {error}", Where(str(path))) from None
    s, f = about.get("settings", {}), about.get("figures", {})
    if not s or not f:
        return
    yield "## Training\n"
    begun = "Begun with another checkpoint's weights" if s.get("start") else "From scratch"
    yield (
        f"{begun}, AdamW, {f['step']:,} steps of {s['batch']} rows of {s['row']:,} tokens, "
        f"{f.get('seconds', 0) / 60:.0f} minutes, rate {s['rate']:g}, seed {s['seed']}."
    )
    yield (
        f"Held-out answers: loss {f['held_loss']:.4f} a token, {100 * f['right']:.2f} % of tokens "
        f"and {100 * f['whole']:.2f} % of answers as in the data (another answer may be as good)."
    )


def _data(sheet: Data) -> Iterator[str]:
    yield "## Data\n"
    yield (
        "Pairs of a SASS region in canonical form and the cheapest RDNA3 for it that is known and "
        "proved.  Splits are of programs, and no question of a held-out one is in training, in "
        "whatever architecture's forms."
    )
    if sheet.get("digest"):
        yield f"Digest of the questions and answers: `{sheet['digest']}`."
    yield "\n| split | programs | pairs | occurrences | cost, rules' is 1 | left out: in train |"
    yield "|---|---|---|---|---|---|"
    for name, s in sheet["splits"].items():
        if s.get("pairs"):
            yield (
                f"| {name} | {s['programs']:,} | {s['pairs']:,} | {s['count']:,} |"
                f" {s['cost'] / s['rules_cost']:.3f} | {s.get('trained', '')} |"
            )
    yield "\n| source | files | pairs | licence |"
    yield "|---|---|---|---|"
    for name, s in sheet["sources"].items():
        yield f"| {name} | {s['files']:,} | {s['pairs']:,} | {s['licence']} |"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f} %"


def _figures(f: Data) -> Iterator[str]:
    n = f["samples"]
    counts = f["programs"]["files"]
    told = ", ".join(
        f"{c['programs']} of {name} ({c['kernels']} kernels)" for name, c in counts.items()
    )
    yield "## Figures\n"
    yield f"`sassxlate eval`, split {f.get('split', 'all')}, seed {f.get('seed', 0)}: {told}.\n"
    yield (
        f"| blocks | distinct | Proved@1 | Proved@{n} | cheaper | equal | dearer | mean cost, "
        "rules' is 1 |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, row in f["blocks"].items():
        yield _block_row(name, row)
        if "unseen" in row:
            yield _block_row(f"{name}, question not in training", row["unseen"])
    apart = f.get("apart")
    if apart:
        names = ", ".join(f"sm_{a}" for a in apart["never_trained_on"])
        yield (
            f"\n{names}, which is not in the training data, compared with the others: "
            f"{apart['first']:+.2f} points at 1 sample, {apart['best']:+.2f} at {n}."
        )
    if f.get("over_search"):
        yield ""
        yield from over_search.markdown(f["over_search"], n)
    yield f"\n| SASS instructions | distinct | Proved@1 | Proved@{n} | mean cost |"
    yield "|---|---|---|---|---|"
    for name, row in f["blocks"]["all"]["by_length"].items():
        if row["distinct"]:
            yield (
                f"| {name} | {row['distinct']:,} | {_percent(row['first']['share'])} |"
                f" {_percent(row['best']['share'])} | {_number(row['best']['mean_ratio'])} |"
            )
    yield ""
    yield from _programs(f)
    yield from _rate(f["rate"], f.get("jobs", 1))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _block_row(name: str, row: Data) -> str:
    first, best = row["first"], row["best"]
    return (
        f"| {name} | {row['distinct']:,} | {_percent(first['share'])} | {_percent(best['share'])} |"
        f" {best['cheaper']:,} | {best['equal']:,} | {best['dearer']:,} |"
        f" {_number(best['mean_ratio'])} |"
    )


def _programs(f: Data) -> Iterator[str]:
    whole = f["whole_programs"]
    n = f["samples"]
    if whole:
        yield f"| all that is asked is proved | at 1 sample | at {n} |"
        yield "|---|---|---|"
        for name, p in whole.items():
            yield f"| {name}: programs, of {p['programs']:,} | {p['first']:,} | {p['best']:,} |"
            yield (
                f"| {name}: kernels, of {p['kernels']:,} | {p['kernels_first']:,} |"
                f" {p['kernels_best']:,} |"
            )
            yield (
                f"| {name}: blocks of their graphs, of {p['bodies']:,} | {p['bodies_first']:,} |"
                f" {p['bodies_best']:,} |"
            )
        yield ""
    yield "Published of other programs, by comparing outputs, not measured here:"
    yield (
        ", ".join(
            f"{row['name']} {row['programs_correct_percent']:.2f} %" for row in f["published"]
        )
        + "."
    )


def _rate(rate: Data, jobs: int) -> Iterator[str]:
    one, middle, memo = rate["at_one_sample"], rate.get("median_length"), rate["memo"]
    told = [
        f"{row['blocks_per_s']:.1f} distinct blocks per second ({what})"
        for what, row in (("median length", middle), ("all lengths", one))
        if row and row["blocks_per_s"]
    ]
    if told:
        yield f"\nOn {jobs} cores, asked and proved, nothing remembered: {'; '.join(told)}."
    if memo["hit_rate"] is not None:
        yield f"Of these programs' regions {_percent(memo['hit_rate'])} had been asked before."


def _hybrid(h: Data) -> Iterator[str]:
    rows = h["programs"]
    passed = sum(row["passed"] for row in rows)
    yield "## In programs\n"
    yield (
        f"`sassxlate bench hybrid`, {h['arch']}: {passed} of {len(rows)} self-checking programs "
        f"pass with its code, and execute {100 * (1 - h['mean_ratio']):.2f} % fewer instructions "
        "(geometric mean).  Of the regions asked "
        f"{100 * h['hit_rate']:.1f} % had an answer from before by their canonical form."
    )
    rate = h.get("rate")
    if rate:
        yield (
            f"{rate['a_second']:.1f} distinct blocks per second on {rate['cores']} cores, asking "
            f"alone, nothing remembered ({rate['words']:g} words asked, {rate['answered']:g} "
            "answered in the median)."
        )
    yield "\n| program | executed, rules | hybrid | saved | regions | taken |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        yield (
            f"| {row['program']} | {row['rules']:,} | {row['hybrid']:,} |"
            f" {100 * (1 - row['ratio']):.1f} % | {row['regions']} | {row['accepted']} |"
        )


__all__ = ["card"]
