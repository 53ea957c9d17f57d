"""The picture of a kernel's SASS."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from sassxlate.cfg.graph import Cfg, Edge
from sassxlate.cfg.loops import structure
from sassxlate.cfg.regions import regions
from sassxlate.cfg.uniformity import analyse
from sassxlate.cfg.view.picture import Arc, ArcKind, Line, Loop, Node, Picture, nested
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.disasm.sass.traits import traits


def names_of(refs: Iterable[RegRef]) -> tuple[str, ...]:
    """Register names as listings print them."""
    return tuple(f"{r.file}{r.index}" for r in sorted(refs, key=lambda r: (r.file, r.index)))


def _kind(cfg: Cfg, edge: Edge) -> ArcKind:
    ways = [e for e in cfg.successors[edge.src] if e.kind != "back"]
    if edge.kind == "call":
        return "call"
    if edge.kind == "ret":
        return "return"
    if len(ways) < 2:
        return "jump"
    if len(ways) > 2 or traits(cfg.blocks[edge.src].last).transfer == "indirect":
        return "case"
    return "taken" if edge.kind == "taken" else "fall"


def _order(edge: Arc) -> tuple[int, int]:
    """Puts the fall-through on the left, in address order."""
    return edge.src, edge.kind != "fall"


def picture(cfg: Cfg, shown: str = "", runs: Mapping[int, int] | None = None) -> Picture:
    """``runs``: executions of a block by warps, by the offset of its first instruction; a block
    that is missing has an unknown count."""
    shape, uniform = structure(cfg), analyse(cfg)
    joins: dict[int, set[str]] = defaultdict(set)
    for region in regions(cfg)[0]:
        if region.target in cfg.by_start:
            joins[region.target].add(f"B{region.barrier}")
    loops = tuple(Loop(loop.header, loop.body) for loop in shape.loops)
    nodes = tuple(
        Node(
            index=block.index,
            start=block.start,
            lines=tuple(
                Line(i.offset, i.text, names_of(i.writes), names_of(i.reads))
                for i in block.instructions
            ),
            divergent=not uniform.converged[block.index],
            joins=tuple(sorted(joins[block.start])),
            loops=nested(loops, block.index),
            runs=None if runs is None else runs.get(block.start),
        )
        for block in cfg.blocks
    )
    # A call goes to its callee and from there to the return sites; an arc over it adds nothing.
    over = {b.index for b in cfg.blocks if any(e.kind == "call" for e in cfg.successors[b.index])}
    arcs = [
        Arc(e.src, e.dst, _kind(cfg, e), shape.dominates(e.dst, e.src))
        for e in cfg.edges
        if not (e.kind == "back" and e.src in over)
    ]
    return Picture(
        cfg.name, shown or cfg.name, f"sm_{cfg.arch}", nodes, tuple(sorted(arcs, key=_order)), loops
    )
