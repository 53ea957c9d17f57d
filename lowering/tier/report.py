"""Which code a kernel gets where the tier is asked: its own, or the rules', and why."""

from __future__ import annotations

import time

from sassxlate.lowering.engine.report import BlockReport, EngineReport
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import Target
from sassxlate.lowering.tier.refusal import Refused
from sassxlate.lowering.tier.translate import by_tier

MODEL = "LLVM's AMDGPU backend"


def chosen(rules: Translated, target: Target, name: str) -> tuple[Translated, EngineReport]:
    """The kernel by the tier (``llvm``), or by the tier if that has fewer instructions (``best``);
    the rules' code if it is refused.  The report has the kernel as its one region, with the numbers
    of instructions as costs.  Raises Refused if the target has no rules."""
    started = time.perf_counter()
    mine: Translated | None = None
    detail = ""
    try:
        mine = by_tier(rules, target)
    except Refused as why:
        if not target.has_rules:
            raise
        detail = f"{why.code}: {why.where}: {why.message}"
    theirs = rules.report.rdna_instructions
    count = None if mine is None else mine.report.rdna_instructions
    always = name == "llvm" or not target.has_rules
    taken = mine is not None and (always or mine.report.rdna_instructions <= theirs)
    instructions = [i for b in rules.cfg.blocks for i in b.instructions]
    region = BlockReport(
        block=0,
        start=instructions[0].offset,
        last=instructions[-1].offset,
        instructions=len(instructions),
        engine="llvm" if taken else "rules",
        outcome="accepted" if taken else "refused" if mine is None else "dearer",
        detail=detail,
        rules_cost=theirs,
        model_cost=count,
        verdict="",
        modulo=(),
        answers=int(mine is not None),
        kept=False,
    )
    seconds = time.perf_counter() - started
    report = EngineReport(name, MODEL, (region,), 1, 1, 0, 0, seconds, 0.0)
    return mine if mine is not None and taken else rules, report


__all__ = ["MODEL", "chosen"]
