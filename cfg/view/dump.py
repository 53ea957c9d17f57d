"""A control-flow graph as text: blocks with their analyses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sassxlate.cfg.graph import Cfg
from sassxlate.cfg.liveness import liveness
from sassxlate.cfg.loops import EXIT, structure
from sassxlate.cfg.uniformity import analyse
from sassxlate.disasm.sass.instruction import RegRef


def names_of(refs: Iterable[RegRef]) -> str:
    """Registers in groups, as in ``R0-3 UR4 P0``."""
    order = {"R": 0, "UR": 1, "P": 2, "UP": 3, "B": 4}
    groups: dict[str, list[int]] = {}
    for r in refs:
        groups.setdefault(r.file, []).append(r.index)
    parts: list[str] = []
    for file in sorted(groups, key=lambda f: order[f]):
        for lo, hi in runs(groups[file]):
            parts.append(f"{file}{lo}" if lo == hi else f"{file}{lo}-{hi}")
    return " ".join(parts)


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Maximal runs of consecutive numbers as (first, last)."""
    out: list[tuple[int, int]] = []
    for n in sorted(set(numbers)):
        if out and out[-1][1] == n - 1:
            out[-1] = (out[-1][0], n)
        else:
            out.append((n, n))
    return out


def _block_name(cfg: Cfg, index: int) -> str:
    return "exit" if index == EXIT else f"{cfg.blocks[index].start:04x}"


def to_text(cfg: Cfg, heads: Mapping[int, str] | None = None) -> str:
    """Every block with its edges, immediate dominators, loop depth, liveness and uniformity;
    ``heads``: further facts about a block, by its start."""
    live, uniform, shape = liveness(cfg), analyse(cfg), structure(cfg)
    lines = [f"kernel {cfg.name} sm_{cfg.arch}: {len(cfg.blocks)} blocks, {len(shape.loops)} loops"]
    for loop in shape.loops:
        ends = " ".join(_block_name(cfg, b) for b in loop.latches)
        lines.append(f"loop {_block_name(cfg, loop.header)} from {ends}: {len(loop.body)} blocks")
    for b in cfg.blocks:
        i = b.index
        facts = [
            f"idom {_block_name(cfg, shape.idom.get(i, i))}",
            f"ipdom {_block_name(cfg, shape.ipdom.get(i, EXIT))}",
            f"depth {shape.depth(i)}",
            "converged" if uniform.converged[i] else "divergent",
            *([heads[b.start]] if heads and heads.get(b.start) else []),
        ]
        lines += ["", f"block {b.start:04x}..{b.end:04x}  {', '.join(facts)}"]
        lines.append(f"  in  {names_of(live.live_in[i])}")
        lines += [f"  /*{ins.offset:04x}*/ {ins.text} ;" for ins in b.instructions]
        lines.append(f"  out {names_of(live.live_out[i])}")
        lines += [f"  -> {_block_name(cfg, e.dst)} {e.kind}" for e in cfg.successors[i]]
    return "\n".join(lines) + "\n"
