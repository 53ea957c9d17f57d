"""How many kernels of the optimising tier are proved from SASS to the final machine code.

::

    python -m tools.coverage.whole FILE... [--arch 80] [--limit 60] [-o ROWS.jsonl]

FILEs are whatever has device code, as for ``tools.coverage.tier``.  Each kernel that the tier takes
is Proved, Refuted or Unknown (``lowering/verify/kernel``), within ``--limit`` seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sassxlate.disasm.containers import Cubin
from sassxlate.errors import SassxlateError
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.lowering.tier.translate import by_tier
from sassxlate.lowering.verify.kernel.verify import LIMIT_S, pair_of, verify
from sassxlate.lowering.verify.verdict import Refuted, Unknown
from tools.coverage.tier import kernels


def judged(cubin: Cubin, name: str, target: Target, limit_s: float) -> dict[str, Any]:
    """The verdict on the tier's code for a kernel; ``verdict`` is None where it writes none."""
    row: dict[str, Any] = {"kernel": name, "arch": cubin.arch, "verdict": None}
    try:
        rules = translate_kernel(cubin, name, target=target)
        made = by_tier(rules, target)
    except SassxlateError as why:
        return row | {"why": why.code}
    started = time.process_time()
    found = verify(pair_of(rules, made, target), limit_s=limit_s)
    row |= {"verdict": type(found).__name__, "s": round(time.process_time() - started, 1)}
    if isinstance(found, Unknown):
        row["why"] = found.reason
    elif isinstance(found, Refuted):
        row["why"] = found.summary
    return row


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kernels proved from SASS to machine code.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--arch", type=int, help="only this architecture, like 80")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for each kernel")
    parser.add_argument("-o", "--output", type=Path, help="a line of JSON for each kernel")
    asked = parser.parse_args(given)
    rows: list[dict[str, Any]] = []
    for file, cubin, name in kernels(asked.files, asked.arch):
        rows.append({"file": str(file), **judged(cubin, name, DEFAULT, asked.limit)})
        if asked.output is not None:
            with asked.output.open("a", encoding="utf-8") as out:
                print(json.dumps(rows[-1]), file=out)
    taken = [row for row in rows if row["verdict"] is not None]
    print(f"{len(rows)} kernels, {len(taken)} by the tier")
    for verdict, times in Counter(row["verdict"] for row in taken).most_common():
        print(f"{times:6} {verdict}")
    reasons = Counter(row["why"] for row in taken if "why" in row)
    for why, times in reasons.most_common():
        print(f"{times:6} {why}")
    return int(any(row["verdict"] == "Refuted" for row in taken))


if __name__ == "__main__":
    sys.exit(main())
