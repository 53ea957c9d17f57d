"""Instructions of which the pass over NaN bits asks nothing more have nothing to answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass import decode_filled
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.nans.reads import (
    carries,
    is_plain,
    made,
    moved,
    numeric,
    sources_of_doubles,
)
from sassxlate.lowering.nans.values import Bounds, float_result

KERNELS = Path(__file__).parents[3] / "fixtures" / "kernels"


def _answers(ins: Instruction) -> tuple[object, ...]:
    roles, _ = numeric(ins)
    result = float_result(ins, Bounds())
    return roles, int(made(ins)), moved(ins), carries(ins), sources_of_doubles(ins), result


@pytest.mark.parametrize("arch", [80, 90, 120])
def test_nothing_is_found_in_plain_instructions(arch: int) -> None:
    """One instruction of each mnemonic with its modifiers, of all fixtures."""
    found: dict[tuple[object, ...], Instruction] = {}
    for path in sorted((KERNELS / f"sm_{arch}").glob("*.cubin")):
        for kernel in parse_cubin(path.read_bytes()).kernels:
            for ins in decode_filled(kernel.code, kernel.arch):
                if isinstance(ins, Instruction):
                    found.setdefault((ins.mnemonic, ins.modifiers), ins)
    plain = [ins for ins in found.values() if is_plain(ins)]
    assert 100 < len(plain) < len(found)
    nothing = ((), 0, (), False, (), None)
    assert [ins.text for ins in plain if _answers(ins) != nothing] == []
