"""Which host functions launch which kernels, as a picture."""

from __future__ import annotations

from sassxlate.cfg.view.picture import Arc, ArcKind, Line, Node, Picture
from sassxlate.disasm.host_code.launches import HostGraph
from sassxlate.disasm.host_code.show import amount, shown, totals


def picture(file: str, graph: HostGraph) -> Picture:
    """The functions from which a launch is reached, and all kernels.  Arcs: ``call``, ``jump`` for
    a launch, ``case`` for a function whose address is taken."""
    functions = sorted(shown(graph), key=lambda at: (at != graph.main, at))
    numbers = {at: number for number, at in enumerate((*functions, *graph.kernels))}
    nodes: list[Node] = []
    arcs: list[Arc] = []

    def link(caller: int, called: int, kind: ArcKind) -> None:
        arcs.append(Arc(numbers[caller], numbers[called], kind, back=called == caller))

    for at in functions:
        unknown = graph.unknown.get(at, ())
        lines = [Line(at, graph.label(at))]
        lines += [Line(place, f"unknown call at {place:#x}") for place in unknown]
        nodes.append(Node(numbers[at], at, tuple(lines), title=f"function {at:#x}"))
        called = graph.edges.get(at, set()) & set(functions)
        taken = graph.takes.get(at, set()) & set(functions) - called
        for one in sorted(called):
            link(at, one, "call")
        for one in sorted(taken):
            link(at, one, "case")
    for stub, kernel in graph.kernels.items():
        text = (Line(stub, kernel.demangled),)
        nodes.append(Node(numbers[stub], stub, text, title=f"kernel, stub {stub:#x}"))
        for at in graph.launching(stub):
            link(at, stub, "jump")
    arcs.sort(key=lambda arc: (arc.src, arc.dst))
    said = f"{amount(len(functions), 'function')}, {totals(graph)}"
    return Picture(file, file, "x86-64", tuple(nodes), tuple(arcs), subtitle=said)


__all__ = ["picture"]
