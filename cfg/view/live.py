"""A control-flow graph as a list of instructions with the registers that are live before each."""

from __future__ import annotations

from collections.abc import Iterator

from sassxlate.cfg.graph import Cfg
from sassxlate.cfg.liveness import bits_before, liveness
from sassxlate.cfg.register_sets import bits_of, refs_of
from sassxlate.cfg.view.dump import names_of
from sassxlate.disasm.sass.instruction import Instruction, RegRef

_WIDTH = 56  # of an instruction's text


def live_before_each(cfg: Cfg) -> Iterator[tuple[Instruction, frozenset[RegRef]]]:
    """The reachable instructions by offset, each with the registers whose values it or a later one
    may read.  Barrier registers (B0) are among them.  A register that has no value yet is not live,
    although a guarded write may leave it as it is."""
    out_bits, written = liveness(cfg).out_bits, _written(cfg)
    found: list[tuple[Instruction, int]] = []
    for block in cfg.blocks:
        live = out_bits[block.index]
        mine: list[int] = []
        for ins in reversed(block.instructions):
            live = bits_before(ins, live)
            mine.append(live)
        some = written[block.index]
        for ins, bits in zip(block.instructions, reversed(mine), strict=True):
            found.append((ins, bits & (some | bits_of(ins.reads))))
            some |= bits_of(ins.writes)
    for ins, live in sorted(found, key=lambda one: one[0].offset):
        yield ins, refs_of(live)


def _written(cfg: Cfg) -> list[int]:
    """The registers that may have been written before each block, as integers."""
    own = [0] * len(cfg.blocks)
    for block in cfg.blocks:
        for ins in block.instructions:
            own[block.index] |= bits_of(ins.writes)
    before = [0] * len(cfg.blocks)
    left = [*range(len(cfg.blocks))]
    while left:
        index = left.pop()
        after = before[index] | own[index]
        for edge in cfg.successors[index]:
            if after & ~before[edge.dst]:
                before[edge.dst] |= after
                left.append(edge.dst)
    return before


def to_text(cfg: Cfg, shown: str) -> str:
    """A line per instruction: ``/*0130*/ IADD3 R7, R7, 0x2, RZ ; // 3: R2-3 R7 P0``; the number
    counts general registers (R).  The first line has the kernel and the most of them."""
    lines: list[str] = []
    most = 0
    for ins, live in live_before_each(cfg):
        count = sum(ref.file == "R" for ref in live)
        most = max(most, count)
        text = f"/*{ins.offset:04x}*/ {ins.text} ;"
        lines.append(f"    {text:<{_WIDTH}} // {count}: {names_of(live)}".rstrip())
    head = f"{shown}, sm_{cfg.arch}: at most {most} general registers live"
    return "\n".join([head, *lines]) + "\n"


def to_records(cfg: Cfg) -> list[dict[str, object]]:
    """The same as values for JSON: ``offset``, ``text`` and ``live``, names of registers."""
    return [
        {
            "offset": f"{ins.offset:#06x}",
            "text": ins.text,
            "live": [f"{r.file}{r.index}" for r in sorted(live, key=lambda r: (r.file, r.index))],
        }
        for ins, live in live_before_each(cfg)
    ]


__all__ = ["live_before_each", "to_records", "to_text"]
