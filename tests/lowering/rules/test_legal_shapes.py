"""Whether an instruction of plain registers has an encoding depends on its operands' shapes."""

from __future__ import annotations

import random

from sassxlate.disasm.rdna3 import OPS, can_encode
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.lowering.builder.legal_shapes import shape_of

VALU = ("VOP1", "VOP2", "VOPC", "VOP3", "VOP3SD", "VOP3P")


def _drawn(draw: random.Random, file: str, n: int, align: int) -> Arg:
    if file == "v":
        return V(draw.randrange(256 - n), n)
    return S(draw.randrange(20) * 4 + align, n)


def test_registers_of_a_shape_are_alike() -> None:
    """Every instruction of the ALUs, with scalars in each one of its operands in turn: three draws
    of registers all have an encoding, or none has."""
    draw = random.Random(1)
    seen = legal = 0
    for op, row in OPS.items():
        scalar = all(form.startswith("SOP") for form in row.formats)
        if not scalar and not set(row.formats) <= set(VALU):
            continue
        count = len(row.args)
        for place in range(-1, count):
            align = draw.randrange(4)
            files = ["s" if scalar or n == place else "v" for n in range(count)]
            sizes = [operand.n for operand in row.args]
            drawn = [
                tuple(_drawn(draw, f, n, align) for f, n in zip(files, sizes, strict=True))
                for _ in range(3)
            ]
            shapes = {shape_of(op, args) for args in drawn}
            assert len(shapes) == 1
            if shapes == {0}:
                continue
            verdicts = {can_encode(Inst(op, args)) is None for args in drawn}
            assert len(verdicts) == 1, (op, drawn)
            seen += 1
            legal += verdicts == {True}
    assert seen > 2000
    assert legal > 1000


def test_what_has_no_shape() -> None:
    """Constants, special registers, registers that do not exist, several scalars of the VALU."""
    assert shape_of("v_add_f32", (V(0), V(1), V(255)))
    assert shape_of("s_add_u32", (S(0), S(1), S(2)))
    for args in (
        (V(0), V(1), V(256)),
        (V(0), V(1), V(255, 2)),
        (V(0), S(1), S(2)),
        (V(0), S(104), V(2)),
        (V(0), I(1), V(2)),
        (V(0), Sp("vcc_lo"), V(2)),
    ):
        assert shape_of("v_add_f32", args) == 0
