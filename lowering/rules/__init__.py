"""Selection rules by category; ``TABLE`` maps a SASS mnemonic to its rules, the preferred first."""

from __future__ import annotations

from collections.abc import Mapping

from ..context import Rule
from . import (
    asynchronous,
    atomic,
    atomic128,
    compare,
    convert,
    double,
    float32,
    half,
    hostcall,
    integer,
    lanes,
    logic,
    matrix,
    matrix_float,
    memory,
    packing,
    surface,
    texture,
    warp,
)

_CATEGORIES: tuple[tuple[Rule, ...], ...] = (
    integer.RULES,
    lanes.RULES,
    logic.RULES,
    compare.RULES,
    double.RULES,
    float32.RULES,
    half.RULES,
    convert.RULES,
    packing.RULES,
    memory.RULES,
    asynchronous.RULES,
    atomic128.RULES,
    atomic.RULES,
    warp.RULES,
    hostcall.RULES,
    matrix.RULES,
    matrix_float.RULES,
    surface.RULES,
    texture.RULES,
)


def _collect() -> Mapping[str, tuple[Rule, ...]]:
    table: dict[str, tuple[Rule, ...]] = {}
    for rules in _CATEGORIES:
        for rule in rules:
            table[rule.source] = (*table.get(rule.source, ()), rule)
    return table


TABLE = _collect()
