"""Dominators and components against networkx's."""

from __future__ import annotations

import random
from collections.abc import Iterable

import networkx as nx
import pytest

from sassxlate.cfg.dominators import components, immediate_dominators


def _graph(seed: int) -> tuple[int, list[list[int]]]:
    """Chains, loops, dense and sparse graphs, some with nodes that nothing leads to."""
    draw = random.Random(seed)
    count = draw.choice([1, 2, 3, 8, 40])
    after: list[list[int]] = [[] for _ in range(count)]
    for node in range(count - 1):
        if draw.random() < 0.8:
            after[node].append(node + 1)
    for _ in range(draw.randrange(2 * count + 1)):
        source, target = draw.randrange(count), draw.randrange(count)
        if target not in after[source]:
            after[source].append(target)
    return count, after


def _as_networkx(nodes: Iterable[int], arcs: Iterable[tuple[int, int]]) -> nx.DiGraph[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(nodes)
    for source, target in arcs:
        graph.add_edge(source, target)
    return graph


@pytest.mark.parametrize("seeds", [range(0, 500), range(500, 1000)], ids=str)
def test_as_networkx_has_them(seeds: range) -> None:
    for seed in seeds:
        count, after = _graph(seed)
        graph = _as_networkx(range(count), [(a, b) for a in range(count) for b in after[a]])
        start = seed % count
        expected = dict(nx.immediate_dominators(graph, start)) | {start: start}
        assert immediate_dominators(dict(enumerate(after)), start) == expected, seed

        inside = random.Random(-seed).sample(range(count), 1 + seed % count)
        arcs = [(a, b) for a in inside for b in after[a] if b in inside]
        part = _as_networkx(inside, arcs)
        found = components(inside, after)
        assert set(found) == set(map(frozenset[int], nx.strongly_connected_components(part))), seed
        assert len(found) == len(set(found))
        place = {node: n for n, one in enumerate(found) for node in one}
        assert all(place[a] >= place[b] for a, b in arcs), seed


def test_a_node_without_successors_need_not_be_named() -> None:
    assert immediate_dominators({0: [1, 2], 1: [3], 2: [3]}, 0) == {0: 0, 1: 0, 2: 0, 3: 0}


def test_a_long_chain_is_no_deep_recursion() -> None:
    count = 20_000
    after = [[n + 1] for n in range(count - 1)] + [[0]]
    assert immediate_dominators(dict(enumerate(after)), 0)[count - 1] == count - 2
    assert components(range(count), after) == [frozenset(range(count))]
