"""PyTorch's operators on the emulated device or on a GPU, each against the CPU's result.

    python -m tools.clients.torch_operators run OUT.jsonl --python VENV/bin/python
    python -m tools.clients.torch_operators run GPU.jsonl --reference gpu
    python -m tools.clients.torch_operators run OUT.jsonl --truth GPU.jsonl --jobs 16 --limit 560
    python -m tools.clients.torch_operators table OUT.jsonl --json SUMMARY.json

``run`` starts torch's Python under ``sassxlate run``; with ``--reference gpu`` it starts it alone,
on a machine with an NVIDIA GPU, and records what the GPU gives: ``--truth`` then compares with
those values, and with the CPU's only where the GPU has none.  Cases that OUT holds are not run
again, so that an interrupted run goes on where it was; ``--again VERDICT`` runs those of a verdict
again.  The order is by dtype: every operator once, then every operator with its second dtype.
Standard library alone; torch's Python needs torch and NumPy.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from pathlib import Path

from . import results
from .operators import OPERATORS, cases
from .supervise import Plan, Runner


def _chosen(arguments: argparse.Namespace) -> list[str]:
    """The names of the cases that are asked for, in order."""
    names = [case.id for case in cases()]
    if arguments.only:
        names = [name for name in names if re.search(arguments.only, name)]
    if arguments.sample:
        kept = set(random.Random(arguments.seed).sample(names, min(arguments.sample, len(names))))
        names = [name for name in names if name in kept]
    return names


def run(arguments: argparse.Namespace) -> int:
    """The verb ``run``."""
    began = time.monotonic()
    direct = arguments.reference == "gpu" or arguments.device == "cpu"
    options = [part for given in arguments.option for part in given.split()]
    under = (sys.executable, "-m", "sassxlate", "run", "--keep-status", *options, "--")
    plan = Plan(
        (*(() if direct else under), arguments.python),
        arguments.device,
        arguments.truth.resolve() if arguments.truth else None,
        arguments.group,
        arguments.jobs,
        arguments.timeout,
        began + arguments.limit,
        arguments.logs,
    )
    if arguments.logs:
        arguments.logs.mkdir(parents=True, exist_ok=True)
    names = _chosen(arguments)
    done = results.load(arguments.out)
    todo = [n for n in names if n not in done or done[n]["verdict"] in arguments.again]
    whole = Runner(plan, arguments.out).run(todo)
    rows = results.load(arguments.out)
    text = results.table(rows, names)
    arguments.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text.split("\n| case |", maxsplit=1)[0])
    took = time.monotonic() - began
    print(f"{took:.0f} s" + ("" if whole else ": the time limit ended the run"))
    return 0


def table(arguments: argparse.Namespace) -> int:
    """The verb ``table``."""
    names = [case.id for case in cases()]
    rows = results.load(arguments.out)
    print(results.table(rows, names), end="")
    if arguments.json:
        summary = results.summary(rows, names)
        arguments.json.write_text(json.dumps(summary, indent=0) + "\n", encoding="utf-8")
    return 0


def listing(_: argparse.Namespace) -> int:
    """The verb ``list``: operators, dtypes, tolerances."""
    for op in OPERATORS:
        print(f"{op.name:26}{' '.join(op.dtypes):50}{op.tolerance.units:g} {op.tolerance.of}")
    print(f"{len(OPERATORS)} operators, {len(cases())} cases")
    return 0


def main() -> int:
    """The command of the module's description."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    one = verbs.add_parser("run")
    one.add_argument("out", type=Path)
    one.add_argument("--python", default=sys.executable, help="torch's Python")
    one.add_argument("--reference", choices=("cpu", "gpu"), default="cpu", help="gpu: record one")
    one.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: tries itself")
    one.add_argument("--truth", type=Path, help="what --reference gpu recorded")
    one.add_argument("--only", help="cases whose name, OPERATOR/DTYPE, matches this expression")
    one.add_argument("--sample", type=int, default=0, help="so many cases at random")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--again", action="append", default=[], choices=results.VERDICTS)
    one.add_argument("--group", type=int, default=12, help="cases a process")
    one.add_argument("--timeout", type=float, default=150.0, help="seconds of a case")
    one.add_argument("--limit", type=float, default=1e9, help="seconds of the whole run")
    one.add_argument("--logs", type=Path, help="a folder for what the processes print")
    one.add_argument("--option", action="append", default=[], help="of `sassxlate run`")
    one.add_argument("-j", "--jobs", type=int, default=1)
    one.set_defaults(verb=run)
    two = verbs.add_parser("table")
    two.add_argument("out", type=Path)
    two.add_argument("--json", type=Path)
    two.set_defaults(verb=table)
    three = verbs.add_parser("list")
    three.set_defaults(verb=listing)
    arguments = parser.parse_args()
    verb: int = arguments.verb(arguments)
    return verb


if __name__ == "__main__":
    sys.exit(main())
