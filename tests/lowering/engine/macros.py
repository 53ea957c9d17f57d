"""Regions with macros, from SASS text, and the gate's word on an answer in words."""

from __future__ import annotations

from collections.abc import Iterable

from sassxlate.disasm.rdna3.instruction import S, V
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.lowering.abi.kernarg import bank_layout
from sassxlate.lowering.engine.gate import Gate, Judgement
from sassxlate.lowering.optimize.regions import CutRegion, cut_regions, never
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.macro import opened
from sassxlate.lowering.region.region import KernelEnv, Region
from sassxlate.lowering.region.text import read_code
from sassxlate.lowering.target import DEFAULT

REGS = RegisterMap(
    target=DEFAULT, r={n: n for n in range(32)}, spilled={}, ur={n: 32 + n for n in range(8)},
    ur_lanes={}, p={n: S(20 + n) for n in range(4)}, up={n: S(24 + n) for n in range(2)},
    live=S(31), save_exec=S(30), ready={}, regions=(), consts={}, stemps=tuple(range(60, 80)),
    tid=V(100), vtemp_base=40, lane_vgprs=(), scratch_spill=0,
)  # fmt: skip


def _instruction(text: str, offset: int) -> Instruction:
    found = decode(assemble(text, 90, offset), offset, 90)
    assert isinstance(found, Instruction)
    return found


def _ref(name: str) -> RegRef:
    file = name.rstrip("0123456789")
    return RegRef(file, int(name[len(file) :]))  # type: ignore[arg-type]


def regions(sass: str, live_out: Iterable[str], *, merged: Iterable[str] = ()) -> list[CutRegion]:
    """The parts of a block, with macros; ``live_out`` and ``merged`` name SASS registers."""
    lines = [line.strip() for line in sass.split(";")]
    block = Region(
        0,
        tuple(_instruction(line, 16 * n) for n, line in enumerate(lines)),
        not merged,
        frozenset(map(_ref, merged)),
        KernelEnv("", 90, bank_layout(90), {}),
    )
    live = frozenset(map(_ref, live_out))
    return cut_regions(block, REGS, live, 64, too_long=never, macros=True)


def region(sass: str, live_out: Iterable[str], *, merged: Iterable[str] = ()) -> CutRegion:
    """The only part of a block."""
    (found,) = regions(sass, live_out, merged=merged)
    assert found.asked is not None
    return found


def judged(part: CutRegion, answer: str) -> Judgement:
    """What the gate says of an answer, whatever it costs."""
    assert part.asked is not None
    code = read_code(answer.split(), part.asked)
    sass, macros = part.block.instructions, part.block.macros
    rules = [item for group in opened(part.code, sass, macros) for item in group]
    return Gate(24, cheaper=False).judge(part.block, REGS, part.live_out, code, rules)
