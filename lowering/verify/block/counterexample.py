"""A counterexample for a compiler engineer: replayed, in both languages, side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

import numpy as np

from sassxlate.disasm.rdna3 import format_inst
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.domain.numpy_lanes import Vec
from sassxlate.lowering.verify.block.block import BlockPair
from sassxlate.lowering.verify.block.relation import Sides
from sassxlate.lowering.verify.block.replay import OTHERS, Numbers
from sassxlate.lowering.verify.block.trusted_instructions import Cut, cut_at
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.rdna3.wait_counters import waits
from sassxlate.lowering.verify.verdict import Refuted, Undecided

_WIDTH = 52
_MOST = 24  # instructions
_PLACE = re.compile(r"(UR|UP|R|P)(\d+)")
_FILES: Final[Mapping[str, Literal["R", "UR", "P", "UP"]]] = {
    "R": "R", "UR": "UR", "P": "P", "UP": "UP",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Step:
    """One SASS instruction, and the values that it left on both sides, by name."""

    ins: Instruction
    code: Sequence[Placed]
    sass: Mapping[str, int]
    rdna: Mapping[str, int]


def explain_counterexample(block: BlockPair, refuted: Refuted) -> Iterator[str]:
    """Lines of text."""
    if refuted.defect:
        yield refuted.defect
        both = zip(block.sass, block.rdna, strict=True)
        yield from _table([_Step(ins, code, {}, {}) for ins, code in both])
        return
    lane = "an active lane" if refuted.inputs.get("active", 1) else "an inactive lane"
    if any(name.startswith(OTHERS) for name in refuted.inputs):
        lane += ", while other lanes hold other values"
    yield f"{refuted.where}: SASS {refuted.sass:#x}, RDNA3 {refuted.rdna:#x}, in {lane}"
    steps = _slice(_trace(block, refuted), refuted.where)
    read = {f"{r.file}{r.index}" for s in steps for r in s.ins.reads}
    lost = _refuted(refuted.where)
    if not refuted.inputs.get("active", 1) or not any(
        _overwritten(s, r) for s in steps for r in lost
    ):
        read |= {_name(r) for r in lost}  # that value must be kept
    inputs = [
        f"{name} = {value:#x}"
        for name, value in refuted.inputs.items()
        if name in read or (value and name.startswith(("c[", "load", "tid", "lane")))
    ]
    if inputs:
        yield "with " + ", ".join(inputs)
    yield from _table(steps)


def _refuted(where: str) -> list[RegRef]:
    """The register or predicate that differs, if it is one."""
    match = _PLACE.match(where)
    return [RegRef(_FILES[match.group(1)], int(match.group(2)))] if match else []


def _overwritten(step: _Step, ref: RegRef) -> bool:
    return ref in step.ins.writes and step.ins.guard.is_true


def _trace(block: BlockPair, refuted: Refuted) -> list[_Step]:
    """Both sides on the inputs, instruction by instruction, as far as they can run.

    A step that parts the two values of the refuted register shows them, whether the SASS
    instruction writes it or not.
    """
    inputs, apart = refuted.inputs, False
    memory: dict[str, Vec] = {}

    def free(name: str, width: int) -> Vec:
        value = inputs.get(name, 0) & ((1 << width) - 1)
        return memory.setdefault(name, Vec(np.array([value], dtype=np.uint64), width))

    done = waits([*chain.from_iterable(block.rdna), *block.tail]).done
    sides = Sides(block, Numbers(), free, bool(inputs.get("active", 1)), done)
    out: list[_Step] = []
    for n, (ins, code) in enumerate(zip(block.sass, block.rdna, strict=True)):
        try:
            sides.step(ins, code)
            sides.alike()
        except Undecided:
            try:
                cut = cut_at(block, n)
                if not isinstance(cut, Cut):
                    break
                sides.cut(n, ins, cut)
            except Undecided:
                break
        refs = sorted(ins.writes, key=lambda r: (r.file, r.index))
        for ref in _refuted(refuted.where):
            values = [value for _, value in _places(sides, [ref])]
            differ = any(value != _number(sides.lane.get(ref)) for value in values)
            if differ and not apart and ref not in refs:
                refs.append(ref)
            apart = differ
        out.append(
            _Step(ins, code, {_name(r): _number(sides.lane.get(r)) for r in refs},
                  dict(_places(sides, refs)))
        )  # fmt: skip
    return out


def _name(ref: RegRef) -> str:
    return f"{ref.file}{ref.index}"


def _number(value: Vec) -> int:
    return int(value.v[0])


def _places(sides: Sides[Vec], refs: Sequence[RegRef]) -> Iterator[tuple[str, int]]:
    """The places of the registers, and their values."""
    machine, regs = sides.machine, sides.block.regs
    for ref in refs:
        place = sides.table(ref)
        if place is not None:
            table, at = place
            kind = "v" if table is machine.v else "s" if table is machine.s else "scratch+"
            yield f"{kind}{at}", _number(table[at])
        elif ref.file in ("P", "UP"):
            index = (regs.p if ref.file == "P" else regs.up)[ref.index].index
            yield f"s{index}.lane", _number(sides.bit(ref))


def _slice(steps: list[_Step], where: str) -> list[_Step]:
    """The instructions that a register's value depends on; all if something else differs."""
    match = _PLACE.match(where)
    if match is None:
        return steps
    wanted = {where[: match.end()]}
    out: list[_Step] = []
    for step in reversed(steps):
        written = {_name(r) for r in step.ins.writes}
        if not wanted & {*written, *step.sass}:
            continue
        out.append(step)
        if step.ins.guard.is_true:
            wanted -= written
        wanted |= {_name(r) for r in step.ins.reads}
    return out[::-1] or steps


def _table(steps: Sequence[_Step]) -> Iterator[str]:
    yield f"  {'SASS':<{_WIDTH}}  RDNA3"
    if len(steps) > _MOST:
        yield "  ..."
    for step in steps[-_MOST:]:
        left = [f"/*{step.ins.offset:04x}*/ {step.ins.text}"]
        left += [f"{'':9}{name} = {value:#x}" for name, value in step.sass.items()]
        right = [f"/*{s.pc:06x}*/ {format_inst(s.inst)}" for s in step.code]
        right += [f"{'':11}{name} = {value:#x}" for name, value in step.rdna.items()]
        for i in range(max(len(left), len(right))):
            a = left[i] if i < len(left) else ""
            b = right[i] if i < len(right) else ""
            yield f"  {a:<{_WIDTH}}  {b}".rstrip()
