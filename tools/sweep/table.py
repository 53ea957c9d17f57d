"""The results of the kernels: one row per shape, architecture and kind of flags."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TypeAlias

from tools.sweep import plan, truth

from .kernel import SEED, Kernel
from .run import lines_of
from .uniform import uniform

_FAULTS = ("SX066",)  # of a kernel that ran
_Row: TypeAlias = tuple[Kernel, int, str, str, str]


def refusal(why: str) -> str:
    """A refusal's code and mnemonic."""
    code, _, text = why.partition(" ")
    match = re.search(r"/\*[0-9a-f]+\*/:? (?:@!?U?P\d )?([A-Z][\w.]*)", text)
    return f"{code} {match.group(1) if match else text[:60]}"


def verdicts(results: Path, known: truth.Truth | None, kernels: dict[str, Kernel]) -> list[_Row]:
    """A row per result: kernel, architecture, flags, verdict, and why it is refused or failed."""
    rows: list[_Row] = []
    for file in sorted(results.glob("*.jsonl")):
        arch, flags = int(file.name.split(".")[0]), file.name.split(".")[1]
        for name, line in lines_of(file).items():
            kernel = kernels.get(name)
            if kernel is None or kernel.source_crc != line["x"]:
                continue
            expected = known.expected(kernel, arch, flags, line.get("v", "")) if known else None
            refused = "r" in line and not line["r"].startswith(_FAULTS)
            said = truth.verdict(kernel, expected, truth.Result.of(line), refused)
            rows.append((kernel, arch, flags, said, str(line.get("r", line.get("e", "")))))
    return rows


def _writers(results: Path) -> None:
    """Of kernels that an engine was asked for: how many it wrote, and why it did not the others."""
    told = [
        str(line["t"])
        for file in sorted(results.glob("*.jsonl"))
        for line in lines_of(file).values()
        if "t" in line
    ]
    others = [t for t in told if t not in ("llvm", "best")]
    if told:
        print(f"written by the engine: {len(told) - len(others)} of {len(told)}")
    reasons = Counter(f"{t[:6]} {t.rpartition(': ')[2][:80]}" for t in others)
    for said, times in reasons.most_common():
        print(f"  not {times:>5}: {said}")


def show(results: Path, listed: bool = False, seed: int = SEED, folder: Path = truth.FOLDER) -> int:
    """Prints the table; 1 if a result differs, also in NaNs of other types than double, or a kernel
    failed.  ``listed``: with the name of each that is not plainly right."""
    try:
        known = truth.load(folder)
    except OSError:
        known = None
    names = (name for file in results.glob("*.jsonl") for name in lines_of(file))
    made = plan.groups(seed, plan.shapes_of(names))
    kernels = {k.name: k for g in made for k in g.kernels}
    return _told(results, verdicts(results, known, kernels), listed)


def beside(results: Path, other: str, listed: bool, seed: int, kind: str) -> int:
    """:func:`show`, with the results ``other`` (``80.O0``) of the same folder as the truth of all
    others; ``kind`` is that of :mod:`.uniform`, if the kernels are of it.

    Without a truth are those whose sums the compiler may contract, and those that have no
    result there.
    """
    expected = lines_of(results / f"{other}.jsonl")
    made = plan.groups(seed, plan.shapes_of(expected))
    kernels = {k.name: uniform(k, kind) if kind else k for g in made for k in g.kernels}
    rows: list[_Row] = []
    for file in sorted(results.glob("*.jsonl")):
        arch, flags = int(file.name.split(".")[0]), file.name.split(".")[1]
        for name, line in lines_of(file).items() if file.name != f"{other}.jsonl" else ():
            kernel, first = kernels.get(name), expected.get(name, {})
            if kernel is None or kernel.source_crc != line["x"]:
                continue
            known = kernel.holds != "code" and first.get("x") == line["x"] and "e" not in first
            refused = "r" in line and not line["r"].startswith(_FAULTS)
            wanted = truth.Result.of(first) if known else None
            said = truth.verdict(kernel, wanted, truth.Result.of(line), refused)
            rows.append((kernel, arch, flags, said, str(line.get("r", line.get("e", "")))))
    return _told(results, rows, listed)


def _told(results: Path, rows: list[_Row], listed: bool) -> int:
    count: dict[tuple[str, int, str], Counter[str]] = {}
    for kernel, arch, flags, said, _ in rows:
        count.setdefault((kernel.shape, arch, flags), Counter())[said] += 1
    print("shape     arch  flags " + "".join(f"{v:>9}" for v in truth.VERDICTS))
    for (shape, arch, flags), found in sorted(count.items()):
        print(
            f"{shape:<9} sm_{arch:<3}{flags:<6}" + "".join(f"{found[v]:>9}" for v in truth.VERDICTS)
        )
    total = Counter(row[3] for row in rows)
    print(f"{'all':<21}" + "".join(f"{total[v]:>9}" for v in truth.VERDICTS))
    reasons = Counter(refusal(why) for *_, said, why in rows if said == "refused")
    for said, times in reasons.most_common():
        print(f"  refused {times:>5}: {said}")
    _writers(results)
    if listed:
        for kernel, arch, flags, said, why in rows:
            if said not in ("same", "bound", "untold"):
                print(f"{said:<8}{kernel.name} sm_{arch} {flags} {why[:160]}")
    return 1 if total["nan"] + total["differ"] + total["failed"] else 0
