"""A control-flow graph for other tools: as an object of NetworkX, and as GraphML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sassxlate.cfg.view.picture import Picture

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(picture: Picture) -> nx.MultiDiGraph[int]:
    """The graph, whose nodes are the blocks by number.

    Attributes of the graph: ``name``, ``demangled``, ``target``.  Of a node: ``start`` (offset in
    the kernel's code, bytes), ``instructions`` (their texts, a line each), ``size`` (how many),
    ``divergent``, ``reachable``, ``joins`` (barriers whose lanes meet here), ``loop`` (the header
    of the innermost loop around it, -1: none), and ``runs`` after a run.  Of an edge: ``kind`` and
    ``back``.  All are numbers, texts and truth values, which every format can hold.
    """
    import networkx as nx

    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.graph.update(name=picture.name, demangled=picture.shown, target=picture.target)
    for node in picture.nodes:
        graph.add_node(
            node.index,
            start=node.start,
            size=len(node.lines),
            instructions="\n".join(line.text for line in node.lines),
            divergent=node.divergent,
            reachable=node.reachable,
            joins=" ".join(node.joins),
            loop=picture.loops[node.loops[-1]].header if node.loops else -1,
            **({} if node.runs is None else {"runs": node.runs}),
        )
    for arc in picture.arcs:
        graph.add_edge(arc.src, arc.dst, kind=arc.kind, back=arc.back)
    return graph


def to_graphml(picture: Picture) -> str:
    """The same as GraphML 1.0, which Gephi, yEd, Cytoscape and igraph read.

    Characters that XML does not have, which a damaged name may hold, are written as ``?``.
    """
    import networkx as nx

    graph = to_networkx(picture)
    for attributes in (graph.graph, *(data for _, data in graph.nodes(data=True))):
        for key, value in attributes.items():
            if isinstance(value, str):
                attributes[key] = _of_xml(value)
    return "\n".join(nx.generate_graphml(graph)) + "\n"


def _of_xml(text: str) -> str:
    return "".join(c if c in "\t\n" or (c >= " " and not _outside(c)) else "?" for c in text)


def _outside(character: str) -> bool:
    return "\ud800" <= character <= "\udfff" or character in "\ufffe\uffff"


__all__ = ["to_graphml", "to_networkx"]
