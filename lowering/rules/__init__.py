"""Selection rules by category; ``TABLE`` maps a SASS mnemonic to its rules, the preferred first."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.lowering.rules.arithmetic import (
    bits,
    compare,
    double,
    half,
    integer,
    logic,
    multiply,
    pack,
    packed_integer,
    pairs,
)
from sassxlate.lowering.rules.arithmetic import float as float32
from sassxlate.lowering.rules.arithmetic.convert import convert
from sassxlate.lowering.rules.control import hostcall
from sassxlate.lowering.rules.memory import (
    asynchronous,
    atomic,
    atomic128,
    memory,
    surface,
    wide,
)
from sassxlate.lowering.rules.memory.tensor import copies as tensor_copies
from sassxlate.lowering.rules.memory.texture import sample
from sassxlate.lowering.rules.rule import Rule
from sassxlate.lowering.rules.warp import matrix, matrix_float, warp, warpgroup

_CATEGORIES: tuple[tuple[Rule, ...], ...] = (
    integer.RULES,
    multiply.RULES,
    packed_integer.RULES,
    logic.RULES,
    bits.RULES,
    compare.RULES,
    double.RULES,
    float32.RULES,
    pairs.RULES,
    half.RULES,
    convert.RULES,
    pack.RULES,
    wide.RULES,  # before the accesses of fewer bits
    memory.RULES,
    asynchronous.RULES,
    tensor_copies.RULES,
    atomic128.RULES,
    atomic.RULES,
    warp.RULES,
    hostcall.RULES,
    matrix.RULES,
    matrix_float.RULES,
    warpgroup.RULES,
    surface.RULES,
    sample.RULES,
)


def _collect() -> Mapping[str, tuple[Rule, ...]]:
    table: dict[str, tuple[Rule, ...]] = {}
    for rules in _CATEGORIES:
        for rule in rules:
            table[rule.source] = (*table.get(rule.source, ()), rule)
    return table


TABLE = _collect()
