"""How many kernels the optimising tier takes, and why it leaves the others to the rules.

::

    python -m tools.coverage.tier FILE... [--arch 80] [--target gfx1100] [--count 2000 --seed 1]
        [-o ROWS.jsonl]

FILEs are whatever has device code: executables, libraries, cubins, folders of them.  With
``--count`` a seeded sample of their kernels is taken; a kernel that two files have counts once.
``--text``: up to LLVM's IR only, which is quicker, and does not show what LLVM refuses.
``--cost``: the processor time of the kernels that it takes, for each instruction of the IR that it
writes (before LLVM's passes): the rules' translation, the tier, and LLVM's process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sassxlate.disasm.containers import Cubin, load
from sassxlate.errors import SassxlateError
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT, TARGETS, Target, target_named
from sassxlate.lowering.tier.refusal import Refused
from sassxlate.lowering.tier.translate import by_tier, module_text


def kernels(paths: Sequence[Path], arch: int | None) -> Iterator[tuple[Path, Cubin, str]]:
    """The kernels of files and folders, in order; what is no container is left out."""
    seen: set[tuple[int, str, bytes]] = set()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if not file.is_file():
                continue
            with suppress(SassxlateError):
                for _, cubin in load(file).cubins():
                    for kernel in cubin.kernels if arch in (None, cubin.arch) else ():
                        key = (cubin.arch, kernel.name, bytes(kernel.code))
                        if key not in seen:
                            seen.add(key)
                            yield file, cubin, kernel.name


def outcome(cubin: Cubin, name: str, target: Target, *, text: bool) -> dict[str, Any]:
    """What becomes of a kernel: ``took`` is llvm, rules or nothing; with the reason, the
    instruction, and seconds of processor time of the tier alone (not of LLVM's process)."""
    row: dict[str, Any] = {"kernel": name, "arch": cubin.arch}
    try:
        rules = translate_kernel(cubin, name, target=target.of_rules)
    except SassxlateError as why:
        return {**row, "took": "nothing", "code": why.code, "why": why.message}
    started = time.process_time()
    try:
        if text:
            module_text(rules, target)
        else:
            by_tier(rules, target)
        row["took"] = "llvm"
    except Refused as why:
        row |= {"took": "rules", "code": why.code, "why": why.message, "at": why.where.inst or ""}
    return {**row, "s": round(time.process_time() - started, 3)}


def _of_children() -> float:
    """Seconds of processor time of the processes that this one has: LLVM's."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            values = stat.read_text().rpartition(")")[2].split()
            if int(values[1]) == os.getpid():
                ticks += int(values[11]) + int(values[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def cost(cubin: Cubin, name: str, target: Target) -> tuple[int, float, float, float] | None:
    """Instructions of a kernel's IR, and seconds of processor time: of the rules' translation, of
    the tier, of LLVM's process.  None where it does not take the tier."""
    try:
        started = time.process_time()
        rules = translate_kernel(cubin, name, target=target.of_rules)
        before = time.process_time() - started
        lines = module_text(rules, target).splitlines()
        others, started = _of_children(), time.process_time()
        by_tier(rules, target)
        mine = time.process_time() - started
    except SassxlateError:
        return None
    return sum(line.startswith("  ") for line in lines), before, mine, _of_children() - others


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The share of kernels that take the tier.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--arch", type=int, help="only this architecture, like 80")
    parser.add_argument("--target", choices=TARGETS, default=DEFAULT.name)
    parser.add_argument("--count", type=int, help="kernels to draw; all without it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text", action="store_true", help="up to LLVM's IR only")
    parser.add_argument("--cost", action="store_true", help="the processor time, instead")
    parser.add_argument("-o", "--output", type=Path, help="a line of JSON for each kernel")
    asked = parser.parse_args(given)
    found = list(kernels(asked.files, asked.arch))
    if asked.count is not None and asked.count < len(found):
        found = random.Random(asked.seed).sample(found, asked.count)
    target = target_named(asked.target)
    if asked.cost:
        costs = [c for _, cubin, name in found if (c := cost(cubin, name, target))][1:]
        if not costs:
            print("no kernel after the first, with which LLVM's process starts")
            return 0
        size, *seconds = map(sum, zip(*costs, strict=True))
        each = [f"{1e6 * s / size:.0f}" for s in (*seconds, sum(seconds))]
        print(f"{len(costs)} kernels after the first, {size} instructions of IR; us of each:")
        print("rules {}, tier {}, LLVM {}, all {}".format(*each))
        return 0
    rows: list[dict[str, Any]] = []
    for file, cubin, name in found:
        rows.append({"file": str(file), **outcome(cubin, name, target, text=asked.text)})
        if asked.output is not None:
            with asked.output.open("a", encoding="utf-8") as out:
                print(json.dumps(rows[-1]), file=out)
    took = Counter(str(r["took"]) for r in rows)
    by_rules = took["llvm"] + took["rules"]
    print(f"{len(rows)} kernels; {took['nothing']} that neither the rules nor the tier take")
    print(f"by the tier: {took['llvm']} of {by_rules}, {took['llvm'] / max(by_rules, 1):.1%}")
    for (code, why), times in Counter(
        (r["code"], r["why"]) for r in rows if r["took"] == "rules"
    ).most_common():
        print(f"{times:6} {code} {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
