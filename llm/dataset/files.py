"""The dataset's files: rows of units, shards of splits, and the datasheet."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sassxlate.errors import ModelError

if TYPE_CHECKING:
    from sassxlate.llm.dataset.rows import TrainingPair

SHARD = 50_000  # rows
_READERS = 8  # threads that open files
_TOGETHER = 1024  # files opened before the first is needed
SPLITS = ("train", "valid", "test")
MODEL = "model-"  # prefix of the names of units found by a model (:mod:`.improve`)


def _arrow() -> tuple[Any, Any]:
    """pyarrow and its parquet module.  ModelError SX1043 if they are not installed."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise ModelError("SX1043", "pyarrow is missing: pip install 'sassxlate[llm]'") from None


def check_installed() -> None:
    """ModelError SX1043 unless what datasets are written with is installed."""
    _arrow()


def _write(path: Path, table: Any) -> None:
    """Writes the file completely or not at all."""
    _, parquet = _arrow()
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    parquet.write_table(table, beside, compression="zstd", compression_level=9)
    beside.replace(path)


def write_rows(path: Path, rows: Sequence[TrainingPair], split: str) -> None:
    """Writes a unit's rows."""
    arrow, _ = _arrow()
    _write(path, arrow.Table.from_pylist([{**asdict(row), "split": split} for row in rows]))


def _tables(paths: Sequence[Path], columns: Sequence[str] | None = None) -> Iterator[Any]:
    """The files' tables, in order; of ``columns``, those that a file has.  With many small files
    most of the time goes into opening them, so several threads read ahead."""
    _, parquet = _arrow()

    def read(path: Path) -> Any:
        with parquet.ParquetFile(path) as file:
            found = file.schema_arrow.names
            return file.read(None if columns is None else [c for c in columns if c in found])

    with ThreadPoolExecutor(_READERS) as pool:
        for at in range(0, len(paths), _TOGETHER):
            yield from pool.map(read, paths[at : at + _TOGETHER])


def _units(folder: Path) -> list[Path]:
    """The rows of units that are done."""
    return sorted(p for p in folder.glob("*.parquet") if p.with_suffix(".json").exists())


def read_ids(folder: Path) -> dict[str, set[str]]:
    """The questions that units have asked so far, by split."""
    out: dict[str, set[str]] = {}
    for table in _tables(_units(folder), ("id", "split")):
        for key, split in zip(table["id"].to_pylist(), table["split"].to_pylist(), strict=True):
            out.setdefault(split, set()).add(key)
    return out


def settings_of(folder: Path) -> dict[str, Any]:
    """What a dataset was begun with; empty if that is not known."""
    try:
        found: Any = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def digest_of(folder: Path) -> str:
    """The digest of a finished dataset; "" if it has none (an earlier version wrote it)."""
    try:
        sheet = json.loads((folder / "datasheet.json").read_text(encoding="utf-8"))
        return str(sheet.get("digest", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def split_shards(folder: Path, split: str) -> list[Path]:
    """The shards of a finished split, in order."""
    return sorted((folder / split).glob("*.parquet"))


def read_shard(path: Path, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """A shard's rows: these columns of them, or all."""
    _, parquet = _arrow()
    with parquet.ParquetFile(path) as file:
        known = file.schema_arrow.names  # an earlier version has fewer
        wanted = None if columns is None else [c for c in columns if c in known]
        return cast("list[dict[str, Any]]", file.read(wanted).to_pylist())


def read_split(folder: Path, split: str) -> Iterator[dict[str, Any]]:
    """The rows of a finished split, in the shards' order."""
    for path in split_shards(folder, split):
        yield from read_shard(path)


def reports(folder: Path) -> Iterator[dict[str, Any]]:
    """The reports of all finished units of programs."""
    paths = sorted((folder / "units").glob("*.json"))
    return map(_report, (p for p in paths if not p.name.startswith(MODEL)))


def model_reports(folder: Path) -> Iterator[dict[str, Any]]:
    """The reports on questions that were put to models: ``tried`` has their ids."""
    return map(_report, sorted((folder / "units").glob(f"{MODEL}*.json")))


def _report(path: Path) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
    except ValueError:
        raise ModelError("SX1044", f"{path} is not a report: remove it, and build again") from None


Best = dict[str, tuple[int, int, int]]  # by question: the cost, the file's index, the row's index


def best_rows(folder: Path, split: str) -> tuple[list[Path], Best]:
    """Files, and the place in them of the cheapest answer to each question of a split: files of the
    units, or of the split's shards if only models' units exist."""
    units = _units(folder / "units")
    models = [p for p in units if p.name.startswith(MODEL)]
    built = [p for p in units if not p.name.startswith(MODEL)]
    paths = [*(built or split_shards(folder, split)), *models]
    best: Best = {}
    for n, table in enumerate(_tables(paths, ("id", "cost", "split"))):
        splits = table["split"].to_pylist() if "split" in table.column_names else None
        rows = zip(table["id"].to_pylist(), table["cost"].to_pylist(), strict=True)
        for at, (key, price) in enumerate(rows):
            if splits is not None and splits[at] != split:
                continue
            if key not in best or price < best[key][0]:
                best[key] = (price, n, at)
    return paths, best


def read_rows(
    paths: Sequence[Path], places: Mapping[str, tuple[int, int]]
) -> dict[str, dict[str, Any]]:
    """Rows by question, from the files and places that :func:`best_rows` names."""
    wanted: dict[int, list[int]] = {}
    for n, at in places.values():
        wanted.setdefault(n, []).append(at)
    out: dict[str, dict[str, Any]] = {}
    files = sorted(wanted)
    for n, table in zip(files, _tables([paths[n] for n in files]), strict=True):
        out |= {row["id"]: row for row in table.take(sorted(wanted[n])).to_pylist()}
    return out


def finish(folder: Path, licences: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Makes the shards of the splits and the datasheet from the units; returns the datasheet.

    Each question is in a split once, with its cheapest answer; the order is that of the
    questions' hashes.  No question of a held-out split is in the training split, in whatever
    architecture's forms: such rows are left out, and counted as ``trained``.  The sheet's
    ``digest`` is of all questions and answers.  ``licences`` are texts by patterns of file names.

    Raises ModelError SX1044 if there is nothing.
    """
    paths = _units(folder / "units")
    if not paths:
        raise ModelError("SX1044", f"{folder} has no rows yet")
    best: dict[str, dict[str, tuple[int, int, int]]] = {s: {} for s in SPLITS}
    times: dict[str, Counter[str]] = {s: Counter() for s in SPLITS}
    said: dict[str, str] = {}
    for n, table in enumerate(_tables(paths, ("id", "split", "cost", "count", "said"))):
        if "said" in table.column_names:
            forms = zip(table["id"].to_pylist(), table["said"].to_pylist(), strict=True)
            said |= {key: form for key, form in forms if form}
        columns = (table[c].to_pylist() for c in ("id", "split", "cost", "count"))
        for at, (key, split, price, count) in enumerate(zip(*columns, strict=True)):
            mine = best[split]
            times[split][key] += count
            if key not in mine or price < mine[key][0]:
                mine[key] = (price, n, at)
    sheet = _sheet(folder, licences or {})
    trained = {*best["train"], *(said[key] for key in best["train"] if key in said)}
    digest = hashlib.blake2b(digest_size=16)
    for split in SPLITS:
        every = best[split]
        chosen = every if split == "train" else {
            key: place for key, place in every.items()
            if key not in trained and said.get(key, key) not in trained
        }  # fmt: skip
        made = _shards(folder / split, paths, chosen, times[split], digest)
        sheet["splits"][split] |= {**made, "trained": len(every) - len(chosen)}
    sheet["digest"] = digest.hexdigest()
    _write_sheet(folder, sheet)
    return sheet


def _shards(
    folder: Path,
    paths: Sequence[Path],
    chosen: Mapping[str, tuple[int, int, int]],
    times: Mapping[str, int],
    digest: hashlib.blake2b,
) -> dict[str, Any]:
    """Writes the shards of one split, by the questions' hashes; returns counts of their contents.
    ``digest`` takes their questions and answers.

    Each file is read once for all shards, whose rows are then in memory: a gigabyte per million
    rows."""
    arrow, _ = _arrow()
    folder.mkdir(exist_ok=True)
    wanted: dict[int, list[str]] = {}
    for key, (_, n, _) in chosen.items():
        wanted.setdefault(n, []).append(key)
    numbers = sorted(wanted)
    parts: list[Any] = []
    places: dict[str, int] = {}
    for n, table in zip(numbers, _tables([paths[n] for n in numbers]), strict=True):
        places |= {key: len(places) + i for i, key in enumerate(wanted[n])}
        parts.append(table.drop_columns(["split"]).take([chosen[key][2] for key in wanted[n]]))
    # Units of an earlier version have no column ``said``.
    every: Any = arrow.concat_tables(parts, promote_options="default") if parts else None
    order = sorted(places)
    files: list[str] = []
    sums: Counter[str] = Counter()
    by: dict[str, Counter[str]] = {"arch": Counter(), "by": Counter(), "modulo": Counter()}
    for shard, at in enumerate(range(0, len(order), SHARD)):
        keys = order[at : at + SHARD]
        table = every.take([places[key] for key in keys])
        table = table.set_column(
            table.schema.get_field_index("count"), "count", arrow.array([times[k] for k in keys])
        )
        for key, answer in zip(keys, table["answer"].to_pylist(), strict=True):
            digest.update(f"{folder.name} {key} {answer}\n".encode())
        name = f"{shard:05d}.parquet"
        _write(folder / name, table)
        files.append(name)
        sums["pairs"] += table.num_rows
        for column in ("cost", "rules_cost", "sass", "rdna", "count"):
            sums[column] += sum(table[column].to_pylist())
        for column, counted in by.items():
            counted.update(str(v) for v in table[column].to_pylist())
    for old in folder.glob("*.parquet"):
        if old.name not in files:
            old.unlink()
    return {"files": files, **sums, **{k: dict(v.most_common()) for k, v in by.items()}}


def _licence(path: str, licences: Mapping[str, str]) -> str:
    found = (text for pattern, text in licences.items() if fnmatch.fnmatch(path, f"*{pattern}*"))
    return next(found, "not stated")


def _sheet(folder: Path, licences: Mapping[str, str]) -> dict[str, Any]:
    """The units' reports, summed."""
    splits: dict[str, Any] = {s: {"programs": set[str](), "units": 0} for s in SPLITS}
    sources: dict[str, dict[str, Any]] = {}
    counts: Counter[str] = Counter()
    why: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    seconds = 0.0
    for report in reports(folder):
        unit = report["unit"]
        mine = splits[report["split"]]
        mine["programs"].add(unit["program"])
        mine["units"] += 1
        source = sources.setdefault(
            os.path.basename(os.path.dirname(unit["path"])) or ".",
            {"files": set[str](), "pairs": 0, "licence": _licence(unit["path"], licences)},
        )
        source["files"].add(unit["path"])
        source["pairs"] += report["rows"]
        counts.update(report["counts"])
        why.update(report["why"])
        errors.update(e["code"] for e in report["errors"])
        seconds += report["seconds"]
    asked: dict[str, Counter[str]] = {}
    for report in model_reports(folder):
        asked.setdefault(report["model"], Counter()).update(report["counts"])
    for mine in splits.values():
        mine["programs"] = len(mine["programs"])
    for source in sources.values():
        source["files"] = len(source["files"])
    return {
        "schema": 1,
        "settings": json.loads((folder / "settings.json").read_text(encoding="utf-8")),
        "splits": splits,
        "regions": dict(counts),
        "unknown": dict(why.most_common(12)),
        "errors": dict(errors.most_common()),
        "sources": dict(sorted(sources.items(), key=lambda s: -s[1]["pairs"])),
        "cpu_seconds": round(seconds, 1),
        "models": {name: dict(sorted(counted.items())) for name, counted in asked.items()},
    }


def _write_sheet(folder: Path, sheet: Mapping[str, Any]) -> None:
    (folder / "datasheet.json").write_text(json.dumps(sheet, indent=1) + "\n", encoding="utf-8")
    (folder / "datasheet.md").write_text("\n".join(_lines(sheet)) + "\n", encoding="utf-8")


def _lines(sheet: Mapping[str, Any]) -> Iterable[str]:
    yield "# Datasheet\n"
    yield (
        "Pairs of a SASS region in canonical form and the cheapest RDNA3 for it that is known and "
        "proved.\n"
    )
    yield (
        "| split | programs | pairs | occurrences | SASS | RDNA3 | cost / rules' | by search "
        "| by a model | left out: in train |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for name, s in sheet["splits"].items():
        if not s.get("pairs"):
            yield f"| {name} | {s['programs']} | 0 |  |  |  |  |  |  |"
            continue
        ratio = s["cost"] / max(1, s["rules_cost"])
        by = {k: s["by"].get(k, 0) / s["pairs"] for k in ("search", "walk", "lifted", "model")}
        searched, modelled = by["search"] + by["walk"] + by["lifted"], by["model"]
        yield (
            f"| {name} | {s['programs']} | {s['pairs']} | {s['count']} | {s['sass']} | {s['rdna']} "
            f"| {ratio:.3f} | {searched:.1%} | {modelled:.1%} | {s.get('trained', '')} |"
        )
    yield "\nArchitectures:\n"
    for name, s in sheet["splits"].items():
        listed = ", ".join(f"sm_{a} {n}" for a, n in s.get("arch", {}).items())
        yield f"* {name}: {listed or 'none'}"
    yield "\nWhose answer is the cheapest:\n"
    for name, s in sheet["splits"].items():
        listed = ", ".join(f"{who} {n}" for who, n in sorted(s.get("by", {}).items()))
        yield f"* {name}: {listed or 'none'}"
    yield "\nEvery pair is Proved. Under which readings (docs/verification.md), by pairs:\n"
    readings: Counter[str] = Counter()
    for s in sheet["splits"].values():
        readings.update(s.get("modulo", {}))
    for reading, n in readings.most_common():
        yield f"* {reading or 'none'}: {n}"
    yield "\nWhat became of the regions (of all units, before questions were compared):\n"
    for what, n in sheet["regions"].items():
        yield f"* {what}: {n}"
    if sheet["unknown"]:
        yield "\nLeft out, because not proved:\n"
        for what, n in sheet["unknown"].items():
            yield f"* {n}: {what}"
    if sheet["errors"]:
        yield "\nKernels and files that were refused, by code: " + ", ".join(
            f"{code} {n}" for code, n in sheet["errors"].items()
        )
    if sheet["models"]:
        yield "\nModels that were asked for cheaper answers, and what became of these:\n"
    for name, counted in sheet["models"].items():
        yield f"* {name}: " + ", ".join(f"{k} {n}" for k, n in counted.items())
    yield "\n| source | files | pairs | licence |\n|---|---|---|---|"
    for name, s in sheet["sources"].items():
        yield f"| {name} | {s['files']} | {s['pairs']} | {s['licence']} |"
    yield f"\nDigest of the questions and answers: {sheet['digest']}."
    yield f"\n{sheet['cpu_seconds']} seconds of a processor."


__all__ = [
    "MODEL", "SPLITS", "best_rows", "check_installed", "digest_of", "finish", "model_reports",
    "read_ids", "read_rows", "read_shard", "read_split", "reports", "split_shards", "write_rows",
]  # fmt: skip
