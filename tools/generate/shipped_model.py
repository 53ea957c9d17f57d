"""Makes llm/weights from a trained checkpoint: the weights, what is known of them, and their card.

    python -m tools.generate.shipped_model MODEL/best --figures eval.json --datasheet
    DATA/datasheet.json \\
        --hybrid hybrid.json [--int8] [-o llm/weights]

The figures are what `sassxlate eval` and `sassxlate bench hybrid` print with `--format json`.
Called again, without a checkpoint, it makes the card anew.  What is too large is refused.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

from sassxlate.errors import SassxlateError
from sassxlate.llm.evaluation.card import card
from sassxlate.llm.inference import safetensors
from sassxlate.llm.inference.block_model import check_vocabulary
from sassxlate.llm.inference.qwen2 import Qwen2, read_config

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = ROOT / "llm" / "weights"
MOST = 64_000_000  # bytes in all


def about(folder: Path) -> dict[str, Any]:
    """The checkpoint's training.json without names of folders of the machine it was made on."""
    try:
        made: dict[str, Any] = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    except OSError:
        return {}
    settings = made.get("settings", {})
    if settings.get("start"):
        settings["start"] = "a checkpoint"
    return made


def ship(source: Path, out: Path, int8: bool) -> None:
    """Writes config.json, model.safetensors and training.json.  SystemExit where it cannot be."""
    check_vocabulary(source)
    weights: dict[str, Any] = {}
    for path in sorted(source.glob("*.safetensors")):
        weights |= safetensors.read(path)
    Qwen2(read_config(source), weights, str(source))  # has all it needs
    if not all(np.isfinite(a).all() for a in weights.values() if a.dtype.kind == "f"):
        raise SystemExit(f"{source}: not all numbers are finite")
    out.mkdir(parents=True, exist_ok=True)
    there = source / "model.safetensors"
    if int8 and there.is_file() and "I8" in safetensors.types(there).values():
        shutil.copyfile(there, out / "model.safetensors")  # made anew they would be others
    else:
        made = safetensors.int8(weights) if int8 else weights
        safetensors.write(out / "model.safetensors", made, {"format": "pt"}, bfloat=not int8)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (out / "training.json").write_text(json.dumps(about(source), indent=1) + "\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkpoint", type=Path, nargs="?")
    parser.add_argument("-o", "--output", type=Path, default=WEIGHTS)
    parser.add_argument("--int8", action="store_true", help="matrices as int8, a scale a row")
    for name in ("figures", "datasheet", "hybrid"):
        parser.add_argument(f"--{name}", type=Path, help=f"{name} as JSON")
    a = parser.parse_args()
    try:
        if a.checkpoint is not None:
            ship(a.checkpoint, a.output, a.int8)
        given = [
            None if path is None else json.loads(path.read_text())
            for path in (a.figures, a.datasheet, a.hybrid)
        ]
        (a.output / "README.md").write_text(card(a.output, *given), encoding="utf-8")
    except SassxlateError as error:
        sys.exit(f"{error}")
    size = sum(path.stat().st_size for path in a.output.iterdir())
    if size > MOST:
        sys.exit(f"{a.output}: {size:,} bytes; {MOST:,} at most")
    print(f"{a.output}: {size:,} bytes, {read_config(a.output).parameters:,} parameters")


if __name__ == "__main__":
    main()
