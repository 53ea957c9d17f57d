"""Shared by the benchmarks: figures with their spread, the machine, printing."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from sassxlate import __version__, compiled
from sassxlate.errors import UsageError
from sassxlate.lowering.emulate.options import Isa, host_isa
from sassxlate.output import print_json, table

Better = Literal["more", "less"]
REPEAT = 15


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured quantity: its values in the order of measurement; ``target`` for the median."""

    name: str
    unit: str
    values: tuple[float, ...]
    better: Better = "less"
    target: float | None = None
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the median reaches the target; None if there is none."""
        if self.target is None:
            return None
        return self.median >= self.target if self.better == "more" else self.median <= self.target

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "repeats": len(self.values),
            "min": min(self.values),
            "median": self.median,
            "max": max(self.values),
            "better": self.better,
            "target": self.target,
            "met": self.met,
            "note": self.note,
        }


def ratio(name: str, above: Figure, below: Figure, note: str = "") -> Figure:
    """The ratio of two figures of one run, round by round: the effect of other load on both
    cancels."""
    values = tuple(a / b for a, b in zip(above.values, below.values, strict=True))
    return Figure(name, "x", values, above.better, None, note)


def seconds(action: Callable[[], object]) -> float:
    """Wall time of a call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.machine()


def machine() -> dict[str, Any]:
    """The conditions of a figure: CPU, its vector instructions, versions, and the machine's
    load."""
    llvm: Any = importlib.import_module("llvmlite.binding")
    try:
        isa: str = host_isa()
    except Exception:
        isa = "none"
    names = {"avx512": "AVX-512", "avx2": "AVX2"}
    return {
        "cpu": _cpu_model(),
        "vectors": names.get(isa, isa),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "sassxlate": __version__,
        "python": platform.python_version(),
        "llvmlite": importlib.metadata.version("llvmlite"),
        "llvm": ".".join(str(n) for n in llvm.llvm_version_info),
        "translator": "compiled" if compiled.state() == "used" else "sources",
    }


def fixtures(given: str | None) -> Path:
    """The repository's ``fixtures`` directory: as given, beside the package, or here.

    Raises:
        UsageError: SX0815, it is missing: an installed package does not include it.
    """
    beside = Path(__file__).resolve().parents[2] / "fixtures"
    candidates = [Path(given)] if given else [beside, Path("fixtures").absolute()]
    for path in candidates:
        if (path / "bench").is_dir():
            return path
    raise UsageError("SX0815", f"no fixtures in {candidates[0]}; run in a clone, or --fixtures DIR")


def _number(x: float) -> str:
    """Three significant digits; large ones with an exponent."""
    if x >= 1e5:
        return f"{x:.3g}".replace("e+0", "e").replace("e+", "e")
    return f"{x:.3g}" if x < 100 else f"{x:.0f}"


def show(title: str, figures: Iterable[Figure], output_format: str) -> None:
    """Prints the machine and the figures, as a table or as one JSON document."""
    host, rows = machine(), list(figures)
    if output_format == "json":
        listed = [figure.as_dict() for figure in rows]
        print_json("bench-figures", {"bench": title, "machine": host, "figures": listed})
        return
    click.echo(
        f"{host['cpu']}, {host['vectors']}, {host['cores']} cores, load {host['load']}\n"
        f"sassxlate {host['sassxlate']}, Python {host['python']}, "
        f"llvmlite {host['llvmlite']}, LLVM {host['llvm']}, "
        f"translator: {host['translator']}\n"
    )
    head = ("figure", "min", "median", "max", "unit", "n", "target", "")
    cells: list[tuple[str, ...]] = []
    for f in rows:
        sign = ">=" if f.better == "more" else "<="
        target = f"{sign} {_number(f.target)}" if f.target is not None else ""
        met = {True: "met", False: "MISSED", None: ""}[f.met]
        spread = (_number(v) for v in (min(f.values), f.median, max(f.values)))
        cells.append((f.name, *spread, f.unit, str(len(f.values)), target, met))
    for line in table(head, cells):
        click.echo(line)
    for f in rows:
        if f.note:
            click.echo(f"{f.name}: {f.note}")


def isa_of(name: str) -> Isa:
    """The ISA by name; ``auto`` is this machine's best.

    Raises:
        EmulatorError: SX0624, the machine has not even AVX2.
        UsageError: SX0816, AVX-512 was requested and is missing.
    """
    best = host_isa()
    if name == "avx2":
        return "avx2"
    if name == "avx512" and best != "avx512":
        raise UsageError("SX0816", "this machine has no AVX-512")
    return best
