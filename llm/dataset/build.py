"""Builds the dataset: splits files into units of work, runs them in several processes, and resumes
after a stop.

A folder of the dataset has ``units/``: for each unit of work (some kernels of a cubin) its rows
(``.parquet``) and, written last, its report (``.json``).  A unit whose ``.json`` exists is
done; there is no other state, so a build that was killed continues where it stopped.
``proofs.sqlite3`` stores proofs.  :mod:`.dataset_files` makes the shards from the units.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import multiprocessing
import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from sassxlate.disasm.containers import Cubin, load
from sassxlate.errors import ModelError, SassxlateError
from sassxlate.executors import HERE, Begin, Place, in_order, work_through
from sassxlate.llm.dataset.files import write_rows
from sassxlate.llm.dataset.rows import Harvest
from sassxlate.llm.dataset.verdict_store import VerdictStore, sources_tag
from sassxlate.llm.language.limits import QuestionLimits
from sassxlate.lowering.optimize.regions import LONGEST
from sassxlate.lowering.verify.steps.prover import Prover

PART = 48 * 1024  # bytes of SASS in a unit
_FILES = 16  # files that a process reads at a time, to list their units
SPLITS = ("train", "valid", "test")
TRAINED = 99  # later architectures are only in held-out splits


@dataclass(frozen=True, slots=True)
class DatasetSettings:
    """The settings that determine the rows.  ``valid`` and ``test`` are shares of the programs;
    ``tag`` identifies the source code that decides verdicts; ``longest``, ``macros`` and
    ``every`` are those of :class:`~sassxlate.llm.language.limits.QuestionLimits`."""

    seed: int = 0
    valid: float = 0.01
    test: float = 0.05
    search: bool = True
    lifted: bool = False
    walks: int = 0
    timeout_ms: int = 1_000
    tag: str = ""
    longest: int = LONGEST
    macros: bool = False
    every: bool = False

    @property
    def limits(self) -> QuestionLimits:
        return QuestionLimits(self.longest, self.macros, self.every)


@dataclass(frozen=True, slots=True)
class Unit:
    """Kernels ``first`` to ``end`` of a file's ``number``-th cubin.  ``content`` is the file's
    digest."""

    path: str
    program: str
    content: str
    number: int
    arch: int
    first: int
    end: int

    @property
    def id(self) -> str:
        """The same in whatever folder the file lies, so that the order of rows is, too."""
        name = Path(self.path).name
        text = f"{name} {self.content} {self.number} {self.first} {self.end}"
        return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


@dataclass(slots=True)
class DatasetReport:
    """The report on a unit."""

    unit: Unit
    split: str
    rows: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict[str, int])
    modulo: dict[str, int] = field(default_factory=dict[str, int])
    why: dict[str, int] = field(default_factory=dict[str, int])
    errors: list[dict[str, str]] = field(default_factory=list[dict[str, str]])


def program_of(path: Path) -> str:
    """The name of a program: the file's up to its first dot, so that builds of one program for
    several architectures and levels (``scan.O3.sm_80.cubin``) are one."""
    return path.name.split(".")[0] or path.name


def place_of(program: str, seed: int) -> float:
    """A program's place from 0 to 1, by a hash: the lowest ones are held out."""
    digest = hashlib.blake2b(f"{seed} {program}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def split_of(program: str, settings: DatasetSettings) -> str:
    """The split that a program and all of its blocks belong to."""
    place = place_of(program, settings.seed)
    if place < settings.test:
        return "test"
    return "valid" if place < settings.test + settings.valid else "train"


def files_in(sources: Iterable[Path]) -> Iterator[Path]:
    """The files of folders, and files, in order.  Anything but an ELF file or fatbin is skipped
    inside folders."""
    for source in sources:
        if not source.is_dir():
            yield source
            continue
        for base, dirs, names in os.walk(source):
            dirs.sort()
            for name in sorted(names):
                path = Path(base, name)
                if path.is_file() and not path.is_symlink() and _may_hold_code(path):
                    yield path


def _may_hold_code(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            head = stream.read(8)
    except OSError:
        return True  # the reader reports why not
    return head.startswith((b"\x7fELF", b"\x50\xed\x55\xba", b"!<arch>"))


def units_of(path: Path, arches: frozenset[int] | None, settings: DatasetSettings) -> list[Unit]:
    """A file's units.  ContainerError for a file that cannot be read."""
    with path.open("rb") as file:
        content = hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=10)).hexdigest()
    program = program_of(path)
    held_out = split_of(program, settings) != "train"
    out: list[Unit] = []
    for number, (_, cubin) in enumerate(load(path).cubins()):
        if cubin.relocatable or (arches is not None and cubin.arch not in arches):
            continue
        if cubin.arch > TRAINED and not held_out and not settings.every:
            continue
        first = size_here = 0
        for n, kernel in enumerate(cubin.kernels):
            size_here += len(kernel.code)
            if size_here >= PART or n == len(cubin.kernels) - 1:
                out.append(Unit(str(path), program, content, number, cubin.arch, first, n + 1))
                first, size_here = n + 1, 0
    return out


# --- one process -----------------------------------------------------------------------------


@dataclass(slots=True)
class _Worker:
    """The state of a worker process."""

    folder: Path
    settings: DatasetSettings
    proofs: VerdictStore
    prover: Prover
    loaded: tuple[str, list[Cubin]] = ("", [])

    def work(self, unit: Unit) -> DatasetReport:
        started = time.process_time()
        split = split_of(unit.program, self.settings)
        report = DatasetReport(unit, split)
        # Nothing that another unit has found: rows do not depend on who works on what, and when.
        wanted = self.settings
        harvest = Harvest(
            self.prover, search=wanted.search, lifted=wanted.lifted, walks=wanted.walks,
            limits=wanted.limits,
        )  # fmt: skip
        if self.loaded[0] != unit.path:
            self.loaded = ("", [])
            self.loaded = unit.path, [cubin for _, cubin in load(unit.path).cubins()]
        cubin = self.loaded[1][unit.number]
        for kernel in cubin.kernels[unit.first : unit.end]:
            try:
                harvest.kernel(cubin, kernel.name, unit.program)
            except SassxlateError as error:
                harvest.counts["refused"] += 1
                report.errors.append(_error(error, unit.path))
            except (RecursionError, MemoryError) as fault:
                where = {"file": unit.path, "kernel": kernel.name}
                report.errors.append({"code": "SX1041", "message": repr(fault), **where})
        rows = harvest.taken()
        report.rows = len(rows)
        report.counts = dict(harvest.counts)
        report.modulo = dict(Counter(row.modulo for row in rows))
        report.why = dict(harvest.why.most_common(8))
        self.proofs.flush()
        if len(self.prover.kept) > 200_000:
            self.prover.kept.clear()
        if rows:
            write_rows(self.folder / "units" / f"{unit.id}.parquet", rows, split)
        report.seconds = time.process_time() - started
        write_report(self.folder, report)
        return report


def _error(error: SassxlateError, path: str) -> dict[str, str]:
    return {
        "code": error.code,
        "message": error.message,
        "file": error.where.file or path,
        "kernel": error.where.kernel or "",
    }


def write_report(folder: Path, report: DatasetReport) -> None:
    """Marks a unit as done."""
    path = folder / "units" / f"{report.unit.id}.json"
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    beside.write_text(json.dumps(asdict(report)), encoding="utf-8")
    beside.replace(path)


_worker: _Worker | None = None


def _begin(folder: Path, settings: DatasetSettings) -> None:
    """Makes this process a worker."""
    global _worker
    if _worker is not None:
        _worker.proofs.close()
    if multiprocessing.parent_process() is not None:
        # Existing objects stay alive, and few new ones are in cycles.
        gc.freeze()
        gc.set_threshold(100_000, 20, 100)
    # z3's Python binding repeats checks that the types of terms already guarantee.
    vars(importlib.import_module("z3.z3"))["Z3_DEBUG"] = False
    tag = f"{settings.tag[:32]} {sources_tag()} {settings.timeout_ms}"
    proofs = VerdictStore(folder / "proofs.sqlite3", tag)
    prover = Prover(proofs.read, proofs.write, settings.timeout_ms, settings.timeout_ms)
    _worker = _Worker(folder, settings, proofs, prover)


def _work(unit: Unit) -> DatasetReport:
    assert _worker is not None
    return _worker.work(unit)


# --- all of them -----------------------------------------------------------------------------


@dataclass(slots=True)
class Progress:
    """The progress of a build."""

    units: int = 0  # all units to do, by this call or another
    done: int = 0
    rows: int = 0
    regions: int = 0
    errors: int = 0
    seconds: float = 0.0  # processor seconds in this call


def build(
    folder: Path,
    sources: Sequence[Path],
    settings: DatasetSettings,
    *,
    place: Place = HERE,
    arches: frozenset[int] | None = None,
    limit_s: float | None = None,
    shard: tuple[int, int] = (0, 1),
    told: Callable[[Progress], None] = lambda _: None,
    failed: Callable[[SassxlateError], None] = lambda _: None,
) -> Progress:
    """Does the unfinished units of part ``shard[0]`` of ``shard[1]``, and begins no new ones after
    ``limit_s`` seconds, in processes or on a cluster, whose workers find the folder and the sources
    under the same paths.  A unit's rows depend on nothing but the unit and the settings, so the
    shards are the same for any order and number of processes, as long as no proof meets its limit
    of time.  A file that cannot be read is reported to ``failed`` and skipped; errors in a unit are
    in its report.

    Raises ModelError SX1040 if the folder belongs to a build with other settings, SX1041 if a
    process that reads files dies, UsageError if the cluster cannot be used.
    """
    folder = folder.absolute()
    sources = [source.absolute() for source in sources] if place.cluster else sources
    started = time.monotonic()
    (folder / "units").mkdir(parents=True, exist_ok=True)
    _settle(folder, settings)
    progress = Progress()
    todo: list[Unit] = []
    known: set[str] = set()  # a copy of a file has the same units
    for units in _units(files_in(sources), arches, settings, place.jobs):
        if isinstance(units, SassxlateError):
            progress.errors += 1
            failed(units)
            continue
        for unit in units:
            if int(unit.id[:8], 16) % shard[1] != shard[0] or unit.id in known:
                continue
            known.add(unit.id)
            progress.units += 1
            if (folder / "units" / f"{unit.id}.json").exists():
                progress.done += 1
            else:
                todo.append(unit)
    told(progress)
    for report in _reports(folder, todo, settings, place, limit_s, started):
        progress.done += 1
        progress.rows += report.rows
        progress.regions += report.counts.get("regions", 0)
        progress.errors += len(report.errors)
        progress.seconds += report.seconds
        told(progress)
    return progress


def _units(
    paths: Iterable[Path], arches: frozenset[int] | None, settings: DatasetSettings, jobs: int
) -> Iterator[list[Unit] | SassxlateError]:
    """Each file's units in order, or the reason why it has none.  Reading ten thousand cubins takes
    one process minutes, so several do it.  Raises ModelError SX1041 if one of them dies."""
    listed = list(paths)
    at_once = [listed[at : at + _FILES] for at in range(0, len(listed), _FILES)]
    place = Place(jobs if len(at_once) > 1 else 1)
    read = partial(_units_of_files, arches=arches, settings=settings)
    lost = ModelError("SX1041", "a process that read the files died: fewer (-j)?")
    for some in in_order(place, read, at_once, lost=lost):
        yield from some


def _units_of_files(
    paths: Sequence[Path], arches: frozenset[int] | None, settings: DatasetSettings
) -> list[list[Unit] | SassxlateError]:
    return [_units_or_why(path, arches, settings) for path in paths]


def _units_or_why(
    path: Path, arches: frozenset[int] | None, settings: DatasetSettings
) -> list[Unit] | SassxlateError:
    try:
        return units_of(path, arches, settings)
    except SassxlateError as error:
        return error.at(file=str(path))
    except OSError as error:
        return ModelError("SX1042", f"{path}: {error.strerror or error}")


def _settle(folder: Path, settings: DatasetSettings) -> None:
    """Stores the settings, or compares them with those with which the folder was begun."""
    path = folder / "settings.json"
    mine = {k: v for k, v in asdict(settings).items() if k in ("seed", "valid", "test")}
    # An option that is not used is not named, as in folders of before it.
    usual = asdict(DatasetSettings())
    more = ("longest", "macros", "every")
    mine |= {k: v for k, v in asdict(settings).items() if k in more and v != usual[k]}
    if not path.exists():
        path.write_text(json.dumps(mine), encoding="utf-8")
        return
    try:
        theirs = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        theirs = None
    if theirs != mine:
        message = f"{folder} was begun with {theirs}, not {mine}: its questions would not be alike"
        raise ModelError("SX1040", message)


def _reports(
    folder: Path,
    todo: Sequence[Unit],
    settings: DatasetSettings,
    place: Place,
    limit_s: float | None,
    started: float,
) -> Iterator[DatasetReport]:
    def late() -> bool:
        return limit_s is not None and time.monotonic() - started > limit_s

    begin = Begin(_begin, (folder, settings), uuid.uuid4().hex)
    for done in work_through(place, _work, todo, begin=begin, late=late):
        report = done.result
        if report is None:
            unit = done.job
            report = DatasetReport(unit, split_of(unit.program, settings))
            message = "the process that worked on it died"
            report.errors.append({"code": "SX1041", "message": message, "file": unit.path})
            write_report(folder, report)
        yield report


__all__ = [
    "DatasetReport",
    "DatasetSettings",
    "Progress",
    "Unit",
    "build",
    "files_in",
    "program_of",
    "split_of",
]
