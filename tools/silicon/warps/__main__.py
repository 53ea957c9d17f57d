"""Words that reach other lanes or memory, on the device, against their meanings.

::

    python -m tools.silicon.warps run -o RESULTS    # the device's; needs no other tool
    python -m tools.silicon.warps keep RESULTS      # adds words that were equal to fixtures/silicon

It prints a table by mnemonic, and writes the verdicts to RESULTS.jsonl and the first warps'
changes of every word to RESULTS.0.npz ..., by its number in the lines.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

from tools.silicon.report import print_table

from .words import words

ROOT = Path(__file__).resolve().parents[3]


VERDICTS = ("equal", "differ", "undescribed", "illegal", "began", "late")


def _run(options: argparse.Namespace) -> int:
    from tools.silicon.device import Device

    from .measure import measure

    chosen, _ = words()
    if options.only:
        chosen = [w for w in chosen if re.search(options.only, w.text)]
    chosen = chosen[options.phase :: options.step]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = measure(chosen, options.warps, options.few, options.seed, folder,
                        options.processes, options.seconds)  # fmt: skip
        arrays: dict[str, object] = {}
        for path in folder.glob("*.npz"):
            with np.load(path) as data:
                arrays |= dict(data.items())
    for part in range(options.parts):
        mine = {k: v for k, v in arrays.items() if int(k.partition(".")[0]) % options.parts == part}
        np.savez_compressed(f"{options.output}.{part}.npz", **mine)  # type: ignore[arg-type]
    verdicts: list[tuple[str, str]] = []
    lines: list[str] = []
    for word, result in zip(chosen, found, strict=True):
        name = re.sub(r"^@\S+ ", "", word.text).split()[0].partition(".")[0]
        verdicts.append((name, str(result["verdict"])))
        lines.append(json.dumps({"word": f"{word.word:032x}", "space": word.space,
                                 "kind": word.kind, "text": word.text, **result}))  # fmt: skip
    Path(f"{options.output}.jsonl").write_text("\n".join(lines) + "\n")
    print(Device().describe(), f"{options.warps} warps a word, seed {options.seed}")
    total = print_table(verdicts, VERDICTS)
    return int(total["differ"] > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run")
    command.add_argument("-o", "--output", required=True)
    command.add_argument("--warps", type=int, default=1 << 12)
    command.add_argument("--few", type=int, default=1 << 12, help="warps of matrix products")
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--processes", type=int, default=14)
    command.add_argument("--seconds", type=float, default=1e9, help="stop after that long")
    command.add_argument("--only", default="", help="words whose text has this pattern")
    command.add_argument("--parts", type=int, default=1, help="files of results")
    command.add_argument("--step", type=int, default=1)
    command.add_argument("--phase", type=int, default=0)
    command = commands.add_parser("keep")
    command.add_argument("results", help="as `run -o` was given; of one part")
    options = parser.parse_args()
    if options.command == "keep":
        from .fixture import write

        verdicts = Path(f"{options.results}.jsonl")
        print(f"{write(verdicts, Path(f'{options.results}.0.npz'), more=True)} words")
        return 0
    return _run(options)


if __name__ == "__main__":
    sys.exit(main())
