"""Which engine writes code: the one place where a name becomes a proposer.  Cheap to import."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from sassxlate.errors import ModelError, Where

if TYPE_CHECKING:  # these need the solver, an extra; the rules do not
    from sassxlate.lowering.engine.engine import Engine
    from sassxlate.lowering.engine.memo import Memo

EngineName: TypeAlias = Literal["rules", "search", "model", "hybrid"]
NAMES: Final[tuple[EngineName, ...]] = get_args(EngineName)
ENGINE: Final = "SASSXLATE_ENGINE"  # of `translate` where no option says


def usual(model: str | None) -> EngineName:
    """The engine where none is asked for: the environment's; else hybrid with a model at hand and
    what it needs, the extra ``llm`` and the solver; else rules.  ModelError SX1008 for an engine of
    the environment that is none."""
    named = os.environ.get(ENGINE)
    if named:
        if named not in NAMES:
            text = f"{ENGINE}={named} is none of {', '.join(NAMES[:-1])} and {NAMES[-1]}"
            raise ModelError("SX1008", text)
        return named
    from sassxlate.llm.engine import models

    present = model is not None or os.environ.get(models.MODEL) or models.shipped() is not None
    return "hybrid" if present and models.installed("z3", *models.EXTRA) else "rules"


def engine(
    name: EngineName,
    model: str | None = None,
    samples: int = 1,
    device: str = "auto",
    memo: Memo | None = None,
) -> Engine | None:
    """The engine that options name; None for the rules.

    Raises ModelError: SX1008 for options that do not go together, SX1002 without the solver, and
    what :func:`.models.language_model` raises.
    """
    if name in ("rules", "search"):
        if model is not None:
            raise ModelError("SX1008", f"--engine {name} asks no model", Where(model))
        if samples != 1:
            raise ModelError("SX1008", f"--samples {samples}: {name} gives one answer, no model")
    if name == "rules":
        return None
    from sassxlate.llm.engine import models

    if not models.installed("z3"):
        raise ModelError("SX1002", "no block is taken unproved; pip install 'sassxlate[verify]'")
    from sassxlate.lowering.engine.engine import Engine
    from sassxlate.lowering.engine.memo import Memo

    if name == "search":
        from sassxlate.lowering.engine.search import SearchProposer
        from sassxlate.lowering.verify.steps.prover import Prover

        prover = Prover()
        return Engine(SearchProposer(prover, memo or Memo()), name, prover=prover)
    from sassxlate.llm.engine.model import model_engine

    return model_engine(models.language_model(model, device), name, samples, memo)


__all__ = ["ENGINE", "NAMES", "EngineName", "engine", "usual"]
