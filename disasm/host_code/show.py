"""A host program's launches as text, as a value for JSON, and in Graphviz's language."""

from __future__ import annotations

from typing import Any

from sassxlate.disasm.host_code.launches import HostGraph


def amount(number: int, thing: str) -> str:
    """A number of things, in words: ``1 kernel``, ``2 kernels``."""
    ending = "es" if thing.endswith("ch") else "s"
    return f"{number} {thing}{ending if number != 1 else ''}"


def totals(graph: HostGraph) -> str:
    """How many kernels are registered, and how many launches there are."""
    return f"{amount(len(graph.kernels), 'kernel')}, {amount(len(graph.launches), 'launch')}"


def text(file: str, graph: HostGraph) -> str:
    """Kernels, who launches them and how main gets there; then what is not known."""
    lines = [f"// {file}: {totals(graph)} in the code"]
    start = "exports" if graph.main is None else "main"
    for stub, kernel in graph.kernels.items():
        places = " ".join(f"{place:#x}" for place in kernel.registered)
        lines.append(f"{kernel.demangled}: stub {stub:#x}, registered at {places}")
        launching = graph.launching(stub)
        for function in launching:
            sites = " ".join(f"{place:#x}" for place in graph.places(function, stub))
            lines.append(f"    launched by  {graph.label(function)} {sites}".rstrip())
        if not launching:
            takes = ", ".join(graph.label(f) for f in graph.taking(stub))
            lines.append(f"    its address is taken by {takes}" if takes else "    not launched")
        if way := graph.way(stub):
            lines.append(f"    from {start:<8}" + " -> ".join(graph.label(f) for f in way))
        elif launching:
            lines.append(f"    from {start:<8}by no call that is known")
    for launch in graph.launches:
        if not launch.stubs:
            place = f"{graph.label(launch.function)} {launch.address:#x}"
            lines.append(f"unknown kernel: {launch.by} in {place}")
    for function, unknown in sorted(graph.unknown.items()):
        listed = " ".join(f"{place:#x}" for place in unknown)
        lines.append(f"unknown call: {graph.label(function)} {listed}")
    return "\n".join(lines) + "\n"


def value(graph: HostGraph) -> dict[str, Any]:
    """What JSON says; addresses are numbers."""
    used = shown(graph)
    return {
        "main": graph.main,
        "kernels": [
            {
                "name": kernel.name,
                "demangled": kernel.demangled,
                "stub": stub,
                "registered": list(kernel.registered),
                "launched_by": graph.launching(stub),
                "from_main": graph.way(stub),
            }
            for stub, kernel in graph.kernels.items()
        ],
        "launches": [
            {
                "function": launch.function,
                "address": launch.address,
                "by": launch.by,
                "kernels": list(launch.stubs),
            }
            for launch in graph.launches
        ],
        "functions": [
            {
                "address": at,
                "name": graph.functions[at].name,
                "demangled": graph.label(at),
                "calls": sorted(graph.edges.get(at, set())),
                "takes_address_of": sorted(graph.takes.get(at, set())),
                "unknown_calls": graph.unknown.get(at, []),
            }
            for at in sorted(used | set(graph.unknown))
        ],
    }


def dot(file: str, graph: HostGraph) -> str:
    """The functions from which a launch is reached, and the kernels."""
    used = shown(graph)
    lines = ["digraph launches {", f"  label={_quoted(file)};", "  node [shape=box];"]
    for at in sorted(used):
        mark = ", style=dashed" if at in graph.unknown else ""
        lines.append(f"  f{at:x} [label={_quoted(graph.label(at))}{mark}];")
    for stub, kernel in graph.kernels.items():
        lines.append(f"  k{stub:x} [label={_quoted(kernel.demangled)}, style=bold];")
        lines += (f"  f{at:x} -> k{stub:x} [style=bold];" for at in graph.launching(stub))
    for at in sorted(used):
        called = graph.edges.get(at, set()) & used
        lines += (f"  f{at:x} -> f{to:x};" for to in sorted(called))
        taken = (graph.takes.get(at, set()) & used) - called
        lines += (f"  f{at:x} -> f{to:x} [style=dashed];" for to in sorted(taken))
    return "\n".join([*lines, "}"]) + "\n"


def shown(graph: HostGraph) -> set[int]:
    """The functions that launch a kernel, and those from which they are reached."""
    callers: dict[int, set[int]] = {}
    for edges in (graph.edges, graph.takes):
        for caller, called in edges.items():
            for one in called:
                callers.setdefault(one, set()).add(caller)
    stubs = set(graph.kernels)
    work = [f for stub in stubs for f in graph.launching(stub)]
    seen: set[int] = set()
    while work:
        at = work.pop()
        if at not in seen:
            seen.add(at)
            work += callers.get(at, set())
    return seen


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


__all__ = ["amount", "dot", "shown", "text", "totals", "value"]
