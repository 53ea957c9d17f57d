"""The model that an engine uses: the named one, or the shipped one."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from sassxlate.errors import ModelError, Where
from sassxlate.llm.inference.qwen2 import read_config
from sassxlate.llm.language.tokenizer import vocabulary

if TYPE_CHECKING:  # the engine needs the solver, an extra; the rules do not
    from sassxlate.llm.engine.engine import Memo, Mode, ModelEngine, Proposer

WEIGHTS = Path(__file__).parents[1] / "weights"
MODEL = "SASSXLATE_MODEL"
ENGINE = "SASSXLATE_ENGINE"  # the engine of `translate` without an option
_EXTRA = ("torch", "transformers", "safetensors")


def shipped() -> Path | None:
    """The folder of the shipped model; None if there is none."""
    found = WEIGHTS.is_dir() and any(WEIGHTS.glob("*.safetensors"))
    return WEIGHTS if found and (WEIGHTS / "config.json").is_file() else None


def installed(*names: str) -> bool:
    """Whether packages are installed, without importing them."""
    return all(importlib.util.find_spec(name) is not None for name in names)


def usual(model: str | None) -> Mode:
    """The default engine: the environment's; otherwise hybrid, if there is a model and its
    requirements, the extra ``llm`` and the solver, are installed; otherwise rules.  ModelError
    SX1008 for an invalid engine in the environment."""
    named = os.environ.get(ENGINE)
    if named:
        known: dict[str, Mode] = {"rules": "rules", "model": "model", "hybrid": "hybrid"}
        if named not in known:
            raise ModelError("SX1008", f"{ENGINE}={named} is none of rules, model and hybrid")
        return known[named]
    present = model is not None or os.environ.get(MODEL) or shipped() is not None
    return "hybrid" if present and installed("z3", *_EXTRA) else "rules"


def proposer(model: str | None, device: str = "auto", seed: int = 0) -> Proposer:
    """The proposer for a model: a folder, a hub's identifier, or the shipped model (None).

    A small Qwen2 of the block language runs by itself on a CPU, anything else with transformers.
    Raises ModelError: SX1001 if there is none, SX1002 to SX1005 as for reading it.
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
    return BlockModel(folder, seed)


def _for_text(folder: Path) -> bool:
    return any((folder / n).exists() for n in ("tokenizer.json", "tokenizer_config.json"))


def _small(folder: Path) -> bool:
    """Whether the model is small enough for the CPU code.  ModelError as read_config."""
    try:
        return read_config(folder).parameters < 200_000_000
    except ModelError as error:
        if error.code == "SX1004" and installed("torch", "transformers"):
            return False
        raise


def engine(
    mode: Mode, model: str | None, samples: int = 1, device: str = "auto", memo: Memo | None = None
) -> ModelEngine | None:
    """The engine selected by options; None for the rules.

    Raises ModelError: SX1008 for options that do not go together, SX1002 without the solver, and
    as :func:`proposer`.
    """
    if mode == "rules":
        if model is not None:
            raise ModelError("SX1008", "--engine rules asks no model", Where(model))
        return None
    if not installed("z3"):
        raise ModelError("SX1002", "no block is taken unproved; pip install 'sassxlate[verify]'")
    assert vocabulary()
    from sassxlate.llm.engine.engine import Memo, ModelEngine

    return ModelEngine(proposer(model, device), mode, samples, memo or Memo())


__all__ = ["ENGINE", "MODEL", "engine", "installed", "proposer", "shipped", "usual"]
