"""The report of a translation or a run: the result for each kernel, as data and as a page.

A kernel's details are encoded as soon as they are known, so that a library of hundreds of kernels
needs no more memory than its report is long.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sassxlate import __version__
from sassxlate.cfg.pages.report import pack, to_html
from sassxlate.cfg.view.side_by_side import Beside, figures, part_data
from sassxlate.errors import SassxlateError, catalogue
from sassxlate.lowering.report.side_by_side import WHOLE
from sassxlate.output import SCHEMA, write_whole

if TYPE_CHECKING:
    from sassxlate.lowering.report.judged import Judged
    from sassxlate.lowering.report.occupancy import Occupancy
    from sassxlate.lowering.select.translated import Translated

KIND = "sassxlate-report"
ASKED = (  # fields of an engine's report
    "engine", "model", "regions", "asked", "accepted", "saved", "distinct", "remembered",
    "asking_s", "judging_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ran:
    """How a kernel was used in a run: the most threads and dynamic shared memory of a block."""

    launches: int
    workgroups: int
    waves: int
    threads: int
    dynamic: int


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A kernel's row of the table, and its details as they are written."""

    row: dict[str, Any]
    details: str


@dataclass(slots=True)
class KernelReports:
    """Takes in kernels one by one, then is written.  ``program`` is what was translated or run,
    ``target`` the processor; ``verified`` and ``counted`` say whether that was asked for."""

    form: Form
    command: Literal["translate", "run"]
    program: str
    target: str
    verified: bool = False
    counted: bool = False
    notes: list[str] = field(default_factory=list[str])
    _entries: list[KernelEntry] = field(default_factory=list["KernelEntry"])

    def refused(self, name: str, shown: str, target: str, where: str, error: RefusedBy) -> None:
        """A kernel for which there is no code."""
        row = _names(name, shown, target, where) | {"status": "refused", "refused": error.data()}
        self._add(row, {})

    def translated(
        self,
        done: Translated,
        found: Beside,
        where: str,
        judged: Sequence[Judged] | None = None,
        ran: Ran | None = None,
        answers: Mapping[str, Any] | None = None,
    ) -> None:
        """A kernel with its code; ``found`` has executions if they were counted, and the writer of
        each part.  ``answers``: the report of an engine other than the rules, as data."""
        counts = Counter(type(j.verdict).__name__.lower() for j in judged or ())
        f = figures(found)
        row = _names(found.name, found.shown, found.target, where) | {
            "status": "withheld" if counts["refuted"] else "translated",
            "engine": _engines(found),
            "sass": f.sass,
            "sass_without_code": f.without,
            "rdna3": f.rdna3,
            "added": dict(f.added),
            "blocks": done.report.blocks,
            "waiting_points": done.report.waiting_points,
            "comes_apart": done.report.comes_apart,
            "code_bytes": done.report.code_bytes,
            "resources": resources(done, ran),
            "verdicts": None
            if judged is None
            else {name: counts[name] for name in ("proved", "refuted", "unknown")},
            "runs": None if ran is None else asdict(ran) | {"executed": _executed(found)},
            "asked": None if answers is None else {name: answers[name] for name in ASKED},
        }
        verdicts = {j.start: j for j in judged or ()}
        parts = [_part(part_data(p), verdicts.get(p.start or 0), p.start) for p in found.parts]
        details = {
            "kinds": dict(found.kinds),
            "rules": dict(done.report.rules),
            "parts": parts,
        } | ({} if answers is None else {"answers": list(answers["blocks"])})
        self._add(row, details)

    def _add(self, row: dict[str, Any], details: dict[str, Any]) -> None:
        packed = pack(details) if self.form == "html" else json.dumps(details)
        self._entries.append(KernelEntry(row, packed))

    def take(self) -> list[KernelEntry]:
        """The kernels so far, which are no longer in this report: for :meth:`give`."""
        taken, self._entries = self._entries, []
        return taken

    def give(self, entries: Iterable[KernelEntry]) -> None:
        """Kernels that another report of the same form took in, such as another process's."""
        self._entries += entries

    @property
    def _kernels(self) -> list[dict[str, Any]]:
        return [entry.row for entry in self._entries]

    def totals(self) -> dict[str, Any]:
        """Totals over all kernels."""
        states = Counter(row["status"] for row in self._kernels)
        made = [row for row in self._kernels if row["status"] != "refused"]
        codes = Counter(row["refused"]["code"] for row in self._kernels if "refused" in row)
        added: Counter[str] = Counter()
        for row in made:
            added.update(row["added"])
        entries = catalogue()
        return {
            "kernels": len(self._kernels),
            **{name: states[name] for name in ("translated", "withheld", "refused")},
            "sass": sum(row["sass"] for row in made),
            "rdna3": sum(row["rdna3"] for row in made),
            "added": dict(sorted(added.items())),
            "verdicts": _sum(row["verdicts"] for row in made) if self.verified else None,
            "executed": sum(row["runs"]["executed"] for row in made if row["runs"])
            if self.counted
            else None,
            "asked": _asked(row["asked"] for row in made if row["asked"]),
            "refusals": [
                {"code": code, "title": entries.get(code, {}).get("title", ""), "kernels": n}
                for code, n in sorted(codes.items())
            ],
        }

    def data(self) -> dict[str, Any]:
        """The data without the kernels' details."""
        return {
            "schema": SCHEMA,
            "kind": KIND,
            "version": __version__,
            "command": self.command,
            "program": self.program,
            "target": self.target,
            "notes": self.notes,
            "totals": self.totals(),
        }

    def text(self) -> str:
        """The file's contents."""
        if self.form == "html":
            details = [entry.details for entry in self._entries]
            return to_html(self.data() | {"kernels": self._kernels}, details)
        head = json.dumps(self.data(), indent=1)
        kernels = ",\n".join(
            json.dumps(entry.row)[:-1] + ', "details": ' + entry.details + "}"
            for entry in self._entries
        )
        return f'{head[:-2]},\n "kernels": [\n{kernels}\n]}}\n'

    def write(self, path: Path) -> None:
        """Writes the whole file or nothing.  UsageError SX0813."""
        write_whole(path, self.text().encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class RefusedBy:
    """The reason why there is no code."""

    code: str
    message: str
    offset: int | None = None
    instruction: str = ""

    @classmethod
    def of(cls, error: SassxlateError) -> RefusedBy:
        return cls(error.code, str(error), error.where.offset, error.where.inst or "")

    def data(self) -> dict[str, Any]:
        title = catalogue().get(self.code, {}).get("title", "")
        return {
            "code": self.code, "title": title, "message": self.message, "offset": self.offset,
            "instruction": self.instruction,
        }  # fmt: skip


def _names(name: str, shown: str, target: str, where: str) -> dict[str, Any]:
    return {"name": name, "shown": shown or name, "arch": target, "where": where}


def _engines(found: Beside) -> str:
    """All writers of code, the rules first; "not recorded" for a code object from elsewhere."""
    names = {row.engine for part in found.parts for row in part.rows if row.engine and row.code}
    if not names and figures(found).standing:
        return "not recorded"
    if [part.name for part in found.parts] != [WHOLE]:
        names.add("rules")
    return ", ".join(sorted(names, key=lambda name: (name != "rules", name)))


def _sum(some: Any) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in some:
        total.update(one or {})
    return {name: total[name] for name in ("proved", "refuted", "unknown")}


def _asked(some: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The work of engines other than the rules; None if none was used."""
    rows = list(some)
    if not rows:
        return None
    models = " ".join(dict.fromkeys(row["model"] for row in rows))
    engines = " ".join(dict.fromkeys(row["engine"] for row in rows))
    numbers = {name: sum(row[name] for row in rows) for name in ASKED[2:]}
    return {"engine": engines, "model": models, **numbers}


def _executed(found: Beside) -> int:
    """RDNA3 instructions that waves executed."""
    return sum(code.runs or 0 for part in found.parts for code in part.codes())


def _part(data: dict[str, Any], judged: Judged | None, start: int | None) -> dict[str, Any]:
    if start is None or judged is None:
        return data
    verdict = judged.verdict
    data["verdict"] = {"is": type(verdict).__name__.lower(), **asdict(verdict)}
    if judged.shown:
        data["verdict"]["shown"] = list(judged.shown)
    return data


def resources(done: Translated, ran: Ran | None) -> dict[str, Any]:
    """Registers, memory and occupancy of both sides, for blocks of as many threads as the run had,
    or the kernel may have at most, or 256."""
    from sassxlate.lowering.report.occupancy import USUAL, of_cu, of_sm

    kernel, launch, target = done.kernel, done.launch, done.selected.regs.target
    threads, why = USUAL, "assumed"
    if kernel.max_threads:
        x, y, z = kernel.max_threads
        threads, why = x * y * z, "the kernel's limit"
    if ran is not None and ran.threads:
        threads, why = ran.threads, "as it was run"
    dynamic = 0 if ran is None else ran.dynamic
    ours = of_cu(target, done.report.vgprs, launch.lds_static, threads, dynamic)
    theirs = of_sm(kernel.arch, kernel.registers, kernel.shared_size, threads, dynamic)
    return {
        "threads": threads,
        "threads_are": why,
        "dynamic_shared": dynamic,
        "sass": {
            "registers": kernel.registers,
            "shared": kernel.shared_size,
            "stack": kernel.local_size,
            "barriers": kernel.barriers,
            "occupancy": _occupancy(theirs, "warps"),
        },
        "rdna3": {
            "vgprs": done.report.vgprs,
            "sgprs": target.sgprs,
            "lds": launch.lds_static,
            "scratch": launch.private_size if done.selected.uses_private else 0,
            "spilled": done.report.spilled,
            "max_threads": launch.max_threads,
            "occupancy": _occupancy(ours, "waves"),
        },
    }


def _occupancy(found: Occupancy | None, unit: str) -> Mapping[str, Any] | None:
    if found is None:
        return None
    return {
        "unit": unit, "resident": found.resident, "most": found.most, "blocks": found.blocks,
        "limit": found.limit,
    }  # fmt: skip


Form: TypeAlias = Literal["html", "json"]


__all__ = ["Form", "KernelEntry", "KernelReports", "Ran", "RefusedBy", "resources"]
