"""A picture as Graphviz dot in the usual colours of reverse engineering tools, as text, as data."""

from __future__ import annotations

from math import log1p
from typing import Any

from sassxlate.cfg.view.picture import Arc, Node, Picture

_COLOURS = {
    "taken": "green4",
    "fall": "red3",
    "jump": "blue3",
    "case": "goldenrod4",
    "call": "purple",
    "return": "purple",
}


def _escape(text: str) -> str:
    for char in '\\"<>{}|':
        text = text.replace(char, "\\" + char)
    return text.replace("\n", "\\n")


def _label(node: Node) -> str:
    rows = [f"{line.offset:04x}  {line.text}" for line in node.lines]
    head = node.name if node.runs is None else f"{node.name}  ran {node.runs:,}  {node.note}"
    return _escape(head.rstrip()) + "|" + "".join(_escape(r) + "\\l" for r in rows)


def _style(picture: Picture, arc: Arc) -> str:
    backwards = picture.nodes[arc.dst].start <= picture.nodes[arc.src].start
    return f"color={_COLOURS[arc.kind]}, style={'dashed' if backwards else 'solid'}"


def to_dot(picture: Picture) -> str:
    """Green: taken; red: fall-through; blue: unconditional; dashed: backwards."""
    lines = [
        f'digraph "{_escape(picture.name)}" {{',
        '  node [shape=record, fontname="monospace", fontsize=9];',
    ]
    most = max((n.runs or 0 for n in picture.nodes), default=0)
    for node in picture.nodes:
        fill = "lightyellow" if node.divergent else "white" if node.reachable else "gray90"
        if node.runs and most:
            fill = f'"/oranges9/{1 + round(4 * log1p(node.runs) / log1p(most))}"'
        lines.append(
            f'  b{node.index} [label="{{{_label(node)}}}", style=filled, fillcolor={fill}];'
        )
    lines += [f"  b{a.src} -> b{a.dst} [{_style(picture, a)}];" for a in picture.arcs]
    lines.append("}")
    return "\n".join(lines) + "\n"


def to_text(picture: Picture) -> str:
    """Blocks with their instructions, loops and arcs, for pictures without analyses."""
    lines = [
        f"kernel {picture.name} {picture.target}: {len(picture.nodes)} blocks, "
        f"{len(picture.loops)} loops",
        *(f"note: {note}" for note in picture.notes),
    ]
    for loop in picture.loops:
        lines.append(f"loop {picture.nodes[loop.header].name}: {len(loop.body)} blocks")
    ways = picture.successors()
    for node in picture.nodes:
        facts = [f"depth {len(node.loops)}"] + ["not reached"] * (not node.reachable)
        facts += [] if node.runs is None else [f"ran {node.runs:,}"]
        facts += [node.note] if node.note else []
        lines += ["", f"block {node.name}  {', '.join(facts)}"]
        lines += [f"  /*{line.offset:04x}*/ {line.text}" for line in node.lines]
        lines += [
            f"  -> {picture.nodes[a.dst].name} {a.kind}{' back' if a.back else ''}"
            for a in ways[node.index]
        ]
    return "\n".join(lines) + "\n"


def to_data(picture: Picture) -> dict[str, Any]:
    """For JSON: blocks by number, their instructions, arcs and loops."""
    return {
        "name": picture.name,
        "demangled": picture.shown,
        "target": picture.target,
        "notes": list(picture.notes),
        "blocks": [_block(node) for node in picture.nodes],
        "edges": [
            {"from": a.src, "to": a.dst, "kind": a.kind, "back": a.back} for a in picture.arcs
        ],
        "loops": [{"header": loop.header, "blocks": sorted(loop.body)} for loop in picture.loops],
    }


def _block(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = {
        "index": node.index,
        "start": node.start,
        "divergent": node.divergent,
        "reachable": node.reachable,
        "joins": list(node.joins),
        "loops": list(node.loops),
        "instructions": [
            {
                "offset": line.offset,
                "text": line.text,
                "writes": list(line.writes),
                "reads": list(line.reads),
            }
            for line in node.lines
        ],
    }
    return found if node.runs is None else found | {"runs": node.runs}
