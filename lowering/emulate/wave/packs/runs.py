"""Which instructions are executed in packs of active lanes (`loop`).

A run has many scattered loads, and each lane's results in it are made of that lane's registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sassxlate.cfg.rdna3_flow import DecodedStep, Flow
from sassxlate.disasm.rdna3.instruction import Inst, V
from sassxlate.disasm.rdna3.reads_writes import FIRST, SGPR_BITS, effects, keeps_part
from sassxlate.disasm.rdna3.tables.opcodes import OPS
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.lowering.emulate.wave import alu, straight
from sassxlate.lowering.emulate.wave.known_registers import used_later
from sassxlate.lowering.emulate.wave.masks.every_lane import looks_at_others

LOAD = "global_load_b32"
_LEAST = 8  # loads of a run; below that, putting lanes side by side takes longer than is saved
_MOST = 4  # other vector instructions a load; more of them are better off in vectors of 16 lanes
_EXEC = 1 << EXEC_LO
_SCC = 1 << FIRST["scc"]
_V = FIRST["v"]
_BY_NUMBER = "v_movrel"  # its operands do not say which VGPRs it reads
_PRODUCT = "v_mad_i64_i32"
_FIRST_LANE = "v_readfirstlane"  # with no active lane, lane 0


@dataclass(frozen=True, slots=True)
class Run:
    """The steps from ``first`` up to ``end``, by their numbers in the block; ``kept`` are the VGPRs
    that it writes and that are read later, one bit each; ``part``: its number among the kernel's
    runs, and how many there are."""

    first: int
    end: int
    kept: int
    part: tuple[int, int]


def _vector(inst: Inst) -> bool:
    """Whether each lane's result is made of that lane's registers, and nothing else changes."""
    if not inst.op.startswith("v_") or inst.dpp or alu.lookup(inst.op) is None:
        return False
    return not effects(inst).write_bits & (_EXEC | _SCC)


def _scalar(inst: Inst) -> bool:
    if not inst.op.startswith("s_") or alu.lookup(inst.op) is None:
        return False
    return not effects(inst).write_bits & _EXEC


def _scattered(step: DecodedStep, strides: Mapping[int, int]) -> bool:
    inst = step.inst
    return inst.op == LOAD and not inst.glc and strides.get(step.pc) not in (None, 0, 4)


def _stretches(
    steps: Sequence[DecodedStep], strides: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """The longest runs."""
    start, loads, others = 0, 0, 0
    masks = 0  # the SGPRs that the run's vectors have written, one bit each
    for n, step in enumerate(steps):
        inst = step.inst
        if inst.op in straight.NOTHING:
            continue
        fits = inst.op in OPS
        if fits and _scattered(step, strides):
            loads += 1
        elif fits and _vector(inst):
            masks |= effects(inst).write_bits & SGPR_BITS
            others += 1
        elif fits and _scalar(inst) and not effects(inst).read_bits & masks:
            masks &= ~effects(inst).write_bits
        else:
            if _pays(loads, others):
                yield start, n
            start, loads, others, masks = n + 1, 0, 0, 0
    if _pays(loads, others):
        yield start, len(steps)


def _pays(loads: int, others: int) -> bool:
    return loads >= _LEAST and others <= _MOST * loads


def read_and_written(inst: Inst) -> tuple[int, int]:
    """The VGPRs that an instruction reads and writes, one bit each."""
    if inst.op not in OPS or inst.op.startswith(_BY_NUMBER):
        return -1, 0
    found = effects(inst)
    read, written = found.read_bits >> _V, found.write_bits >> _V
    halves = (inst,) if inst.y is None else (replace(inst, y=None), inst.y)
    if any(keeps_part(half) for half in halves):
        read |= written
    return read, written


def factors(steps: Sequence[DecodedStep]) -> list[int]:
    """The VGPRs that a run's indices are multiplied by where it loads by the product, and that it
    does not write: 4 for tables of dwords."""
    found: dict[int, None] = {}
    products: dict[int, int] = {}
    written = 0
    for step in steps:
        inst = step.inst
        if inst.op == LOAD and isinstance(inst.args[1], V):
            factor = products.get(inst.args[1].index)
            if factor is not None:
                found[factor] = None
        now = read_and_written(inst)[1]
        written |= now
        products = {i: by for i, by in products.items() if not now >> i & 3}
        if inst.op == _PRODUCT and isinstance(inst.args[0], V) and isinstance(inst.args[3], V):
            products[inst.args[0].index] = inst.args[3].index
    return [i for i in found if not written >> i & 1]


def _uses(steps: Sequence[DecodedStep]) -> int:
    """The VGPRs whose values at the block's start it may read."""
    used = known = 0
    for step in steps:
        read, written = read_and_written(step.inst)
        # What the block itself wrote is known of the active lanes alone.
        others = looks_at_others(step.inst) or step.inst.op.startswith(_FIRST_LANE)
        used |= read if others else read & ~known
        known |= written
        if step.inst.op in OPS and effects(step.inst).write_bits & _EXEC:
            known = 0  # other lanes may be active
    return used


def runs(flow: Flow, strides: Mapping[int, int]) -> dict[int, list[Run]]:
    """The runs of each block, by its start."""
    found = {start: list(_stretches(block.steps, strides)) for start, block in flow.blocks.items()}
    if flow.indirect or not any(found.values()):
        return {}
    uses = {start: _uses(block.steps) for start, block in flow.blocks.items()}
    later = used_later(uses, {}, {start: b.succs for start, b in flow.blocks.items()})
    out: dict[int, list[Run]] = {}
    number, of = 0, sum(map(len, found.values()))
    for start, stretches in sorted(found.items()):
        steps = flow.blocks[start].steps
        for first, end in stretches:
            kept, written = later[start], 0
            for step in steps[end:]:
                kept |= read_and_written(step.inst)[0]
            for step in steps[first:end]:
                written |= read_and_written(step.inst)[1]
            out.setdefault(start, []).append(Run(first, end, kept & written, (number, of)))
            number += 1
    return out


__all__ = ["LOAD", "Run", "factors", "read_and_written", "runs"]
