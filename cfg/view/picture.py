"""The drawn form of a control-flow graph, for either instruction set: blocks of lines, and arcs.

The drawings (:mod:`.svg`, :mod:`sassxlate.cfg.pages.graph`), JSON and the differences read only
these values, so a kernel's SASS and its RDNA3 look alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

# How control passes along an arc.  taken: a branch that also has a fall-through; fall: the
# fall-through; jump: unconditional; case: one of many targets of an indirect branch.
ArcKind: TypeAlias = Literal["taken", "fall", "jump", "case", "call", "return"]
ARC_KINDS: tuple[ArcKind, ...] = ("taken", "fall", "jump", "case", "call", "return")


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction: its byte offset, its text, and the registers as named in listings."""

    offset: int
    text: str
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A basic block.  ``loops`` are indices into :attr:`Picture.loops`, the outermost first."""

    index: int
    start: int
    lines: tuple[Line, ...]
    divergent: bool = False  # lanes of a warp may have diverged
    joins: tuple[str, ...] = ()  # barriers whose lanes reconverge here: "B0"
    loops: tuple[int, ...] = ()
    reachable: bool = True
    runs: int | None = None  # executions by warps, after a run
    note: str = ""
    title: str = ""  # of a node that is no block

    @property
    def name(self) -> str:
        return f"{self.start:04x}"


@dataclass(frozen=True, slots=True)
class Arc:
    """Control may go from node ``src`` to node ``dst``; ``back`` closes a loop."""

    src: int
    dst: int
    kind: ArcKind
    back: bool = False


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop by its header and its blocks."""

    header: int
    body: frozenset[int]


@dataclass(frozen=True, slots=True)
class Picture:
    """A kernel for drawing.  Nodes are in address order, arcs in the order of their sources."""

    name: str
    shown: str  # the demangled name
    target: str  # sm_80, or the AMD processor
    nodes: tuple[Node, ...]
    arcs: tuple[Arc, ...]
    loops: tuple[Loop, ...] = ()
    notes: tuple[str, ...] = ()  # what the picture leaves out, and why
    subtitle: str = ""  # in place of the numbers of blocks and loops

    def successors(self) -> list[list[Arc]]:
        """The arcs that leave each node."""
        out: list[list[Arc]] = [[] for _ in self.nodes]
        for arc in self.arcs:
            out[arc.src].append(arc)
        return out


def nested(loops: Sequence[Loop], node: int) -> tuple[int, ...]:
    """The loops around a node, the largest first."""
    around = [i for i, loop in enumerate(loops) if node in loop.body]
    return tuple(sorted(around, key=lambda i: (-len(loops[i].body), i)))


def with_runs(picture: Picture, runs: Mapping[int, int]) -> Picture:
    """The picture after a run: ``runs`` are the executions of its blocks by their start.  A block's
    note has its share of all executed instructions, or a question mark if its count is missing."""
    total = sum(runs.get(n.start, 0) * len(n.lines) for n in picture.nodes)

    def made(node: Node) -> Node:
        times = runs.get(node.start)
        if times is None:
            return replace(node, runs=None, note=f"{node.note}  ran ?".strip())
        part = 100 * times * len(node.lines) / total if total else 0.0
        shown = "<0.1" if 0 < part < 0.1 else f"{part:.1f}"
        note = f"{node.note}  {shown} %".strip() if times else node.note
        return replace(node, runs=times, note=note)

    return replace(picture, nodes=tuple(made(node) for node in picture.nodes))


def head(node: Node) -> str:
    """The header line of a block."""
    parts = [node.title] if node.title else [node.name, f"{len(node.lines)} instr."]
    parts += [f"joins {' '.join(node.joins)}"] if node.joins else []
    parts += [] if node.reachable else ["not reached"]
    parts += [] if node.runs is None else [f"ran {node.runs:,}"]
    parts += [node.note] if node.note else []
    return "  ".join(parts)
