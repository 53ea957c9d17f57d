"""What an instruction reads and writes, as integers and as sets."""

from __future__ import annotations

import random

from sassxlate.disasm.rdna3 import RRef, effects, registers
from sassxlate.disasm.rdna3.instruction import Inst, S, Sp, V
from sassxlate.disasm.rdna3.reads_writes import (
    LDS,
    MACRO,
    MEM,
    MODE,
    READS,
    SCC,
    SCRATCH,
    bits_of,
    refs_of,
)

EXEC, VCC = RRef("s", 126), RRef("s", 106)


def test_integers_and_sets_say_the_same() -> None:
    draw = random.Random(1)
    alone = [SCC, MODE, MEM, LDS, SCRATCH]
    every = [RRef("v", n) for n in range(256)] + [RRef("s", n) for n in range(128)] + alone
    assert refs_of(bits_of(every)) == frozenset(every)
    for count in [0, 1, *range(2, 60)]:
        some = draw.sample(every, count)
        assert refs_of(bits_of(some)) == frozenset(some)


def test_operands_and_what_has_none() -> None:
    """The registers of operands of each kind, and state that no operand names."""
    found = effects(Inst("v_add_co_ci_u32", (V(3), Sp("vcc_lo"), V(4), S(5), Sp("vcc_lo"))))
    assert found.reads == {RRef("v", 4), RRef("s", 5), VCC, EXEC}
    assert found.writes == {RRef("v", 3), VCC}
    found = effects(Inst("global_load_b128", (V(4, 4), V(8, 2), Sp("off"))))
    assert found.reads == {RRef("v", 8), RRef("v", 9), EXEC, MEM}
    assert found.writes == {RRef("v", n) for n in range(4, 8)}
    found = effects(Inst("s_and_saveexec_b64", (S(6, 2), Sp("vcc", 2))))
    saved = {RRef("s", 126), RRef("s", 127)}
    assert found.reads == {*registers(Sp("vcc", 2)), *saved}
    assert found.writes == {RRef("s", 6), RRef("s", 7), SCC, *saved}
    found = effects(Inst(MACRO, (V(1), READS, S(2), Sp("m0"))))
    memory = {MEM, LDS, SCRATCH}
    assert found.writes == {RRef("v", 1), *memory}
    assert found.reads == {RRef("s", 2), RRef("s", 125), EXEC, MODE, *memory}
