"""Which engine writes code: the one place where a name becomes a proposer.  Cheap to import."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from sassxlate.errors import ModelError, Where

if TYPE_CHECKING:  # these need the solver, an extra; the rules do not
    from sassxlate.lowering.engine.engine import Engine
    from sassxlate.lowering.engine.memo import Memo
    from sassxlate.lowering.verify.steps.region_proofs import RegionProofs

TIER: Final = ("llvm", "best")  # whole kernels by LLVM, see lowering/tier
NAMES: Final = ("rules", "search", "model", "hybrid", *TIER)
ENGINE: Final = "SASSXLATE_ENGINE"  # of `translate` where no option says


def is_engine(name: str) -> bool:
    """Whether a name is of an engine: one of NAMES, or a proposer's ``FILE.py:NAME``."""
    return name in NAMES or is_file(name)


def is_file(name: str) -> bool:
    """Whether a name is a proposer's ``FILE.py:NAME``, or meant as one."""
    return name.endswith(".py") or ".py:" in name


def tier_identity(name: str) -> str:
    """Of an engine of TIER: all that its code depends on besides the cache's tag, which covers
    this project's sources and LLVM's version."""
    return f"tier {name}"


def usual(model: str | None) -> str:
    """The engine if no option names one: the environment's; with the solver hybrid if a model is
    named, else search; without it the rules.  ModelError SX1008 if the environment names no engine.

    The shipped model is not asked unless an option says so: it saves less than the search, in seven
    times its processor time (docs/decisions.md).
    """
    named = os.environ.get(ENGINE)
    if named:
        if not is_engine(named):
            text = f"{ENGINE}={named} is not one of {', '.join(NAMES)}, nor FILE.py:NAME"
            raise ModelError("SX1008", text)
        return named
    from sassxlate.llm.engine import models

    if not models.installed("z3"):
        return "rules"
    return "hybrid" if model is not None or os.environ.get(models.MODEL) else "search"


def engine(
    name: str,
    model: str | None = None,
    samples: int = 1,
    device: str = "auto",
    memo: Memo | None = None,
    proofs: RegionProofs | None = None,
    processes: int = 0,
) -> Engine | None:
    """The engine that options name; None for the rules, and for the tier of whole kernels.
    ``memo`` has answers of before, ``proofs`` their proofs.  ``processes``: of a model, as
    :func:`.models.language_model`.

    Raises ModelError: SX1008 for options that do not go together, SX1002 without the solver, and
    what :func:`.models.language_model` and :func:`sassxlate.lowering.engine.from_file.load` raise.
    """
    if name not in ("model", "hybrid"):
        if model is not None:
            raise ModelError("SX1008", f"--engine {name} asks no model", Where(model))
        if samples != 1:
            raise ModelError("SX1008", f"--samples {samples}: {name} gives one answer, no model")
    if name == "rules" or name in TIER:
        return None
    from sassxlate.llm.engine import models

    if not models.installed("z3"):
        raise ModelError("SX1002", "no block is taken unproved; pip install 'sassxlate[verify]'")
    from sassxlate.lowering.engine.engine import Engine
    from sassxlate.lowering.engine.memo import Memo
    from sassxlate.lowering.verify.steps.prover import Prover

    prover = Prover(regions=proofs)
    if name == "search":
        from sassxlate.lowering.engine.search import LONGEST, SearchProposer

        memo = memo or Memo()
        proposer = SearchProposer(prover, memo)
        return Engine(
            proposer, name, key=f"{LONGEST} macros", longest=LONGEST, prover=prover, edges=True,
            macros=True, memo=memo,
        )  # fmt: skip
    if is_file(name):
        from sassxlate.lowering.engine.from_file import load

        loaded = load(name)
        return Engine(loaded.proposer, loaded.name, key=f"file {loaded.digest}", prover=prover)
    from sassxlate.llm.engine.model import model_engine

    asked = models.language_model(model, device, processes=processes)
    return model_engine(asked, name, samples, memo, prover)


__all__ = ["ENGINE", "NAMES", "TIER", "engine", "is_engine", "is_file", "tier_identity", "usual"]
