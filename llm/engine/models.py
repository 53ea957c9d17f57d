"""Which model is asked: the one that is named, or the shipped one."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from sassxlate.errors import ModelError
from sassxlate.llm.inference.qwen2 import read_config, read_json

if TYPE_CHECKING:
    from sassxlate.llm.inference.language_model import LanguageModel

WEIGHTS = Path(__file__).parents[1] / "weights"
MODEL = "SASSXLATE_MODEL"


def shipped() -> Path | None:
    """The folder of the shipped model; None if there is none."""
    found = WEIGHTS.is_dir() and any(WEIGHTS.glob("*.safetensors"))
    return WEIGHTS if found and (WEIGHTS / "config.json").is_file() else None


def installed(*names: str) -> bool:
    """Whether packages are installed, without importing them."""
    return all(importlib.util.find_spec(name) is not None for name in names)


def language_model(
    model: str | None, device: str = "auto", seed: int = 0, processes: int = 0
) -> LanguageModel:
    """The model that is named: a folder, a hub's identifier, or the shipped model (None).

    A small Qwen2 of the block language runs by itself on a CPU, in so many ``processes`` (0: one
    per core), anything else with transformers.
    Raises ModelError: SX1001 if there is none, SX1002 to SX1005 as for reading it; SX1004 for
    another architecture without transformers.
    """
    from sassxlate.llm.inference.block_model import BlockModel
    from sassxlate.llm.inference.transformers_model import TransformersModel, place_of

    named = model or os.environ.get(MODEL)
    if not named:
        found = shipped()
        if found is None:
            raise ModelError("SX1001", "no model comes along; name one with --model")
        named = str(found)
    place = place_of(named)
    folder = Path(place)
    if not folder.is_dir() or _for_text(folder):
        return TransformersModel(place, device, seed)
    if device == "cuda" or not _small(folder):
        return TransformersModel(place, device, seed)
    return BlockModel(folder, seed, processes or None)


def _for_text(folder: Path) -> bool:
    return any((folder / n).exists() for n in ("tokenizer.json", "tokenizer_config.json"))


def _small(folder: Path) -> bool:
    """Whether the model is small enough for the CPU code.  ModelError as read_config."""
    try:
        return read_config(folder).parameters < 200_000_000
    except ModelError as error:
        if error.code != "SX1004":
            raise
        if installed("torch", "transformers"):
            return False
        kind = read_json(folder).get("model_type")
        text = f"a {kind} model needs torch and transformers; pip install 'sassxlate[llm]'"
        raise ModelError("SX1004", text, error.where) from None


__all__ = ["MODEL", "installed", "language_model", "shipped"]
