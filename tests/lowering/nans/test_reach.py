"""Reach answers as a search of the whole graph does, and looks at each place once."""

from __future__ import annotations

import random
from collections.abc import Mapping

from sassxlate.lowering.nans.reach import Reach

MAKERS, PLACES = 12, 20


def searched(inputs: Mapping[int, set[int]], starts: frozenset[int]) -> set[int]:
    out, work = set(starts), list(starts)
    while work:
        one = work.pop()
        new = inputs[one] - out if one < 0 else set[int]()
        out |= new
        work += new
    return {one for one in out if one >= 0}


def test_as_a_search_of_random_graphs() -> None:
    draw = random.Random(4)
    answers = {"none": 0, "one": 0, "several": 0, "too heavy": 0}
    for _ in range(400):
        nodes = [*range(-PLACES, 0), *range(MAKERS)]
        inputs = {
            place: set(draw.sample(nodes, draw.choice((1, 1, 2, 3)))) for place in range(-PLACES, 0)
        }
        left_out = set(draw.sample(range(MAKERS), draw.randrange(MAKERS)))
        weights = {maker: draw.choice((1, 4, 8)) for maker in range(MAKERS)}
        reach = Reach(inputs, left_out)
        for _ in range(8):
            starts = frozenset(draw.sample(nodes, draw.choice((1, 1, 3))))
            limit = draw.choice((1, 4, 30, 64))
            expected = searched(inputs, starts) - left_out
            total = sum(weights[maker] for maker in expected)
            assert reach.all(starts) == expected
            assert reach.any(starts) == bool(expected)
            found = reach.lighter(starts, weights, limit)
            if len(expected) > 1 and total >= limit:
                assert found is None
                answers["too heavy"] += 1
            else:
                assert found == (expected, total)
                answers[("none", "one", "several")[min(len(expected), 2)]] += 1
    assert min(answers.values()) > 50, answers


class Counted(dict[int, set[int]]):
    looked = 0

    def __getitem__(self, place: int) -> set[int]:
        self.looked += 1
        return super().__getitem__(place)


def test_a_long_chain_is_looked_at_once() -> None:
    length = 5000
    inputs = Counted({-n: {-n - 1, n} for n in range(1, length)})
    inputs[-length] = {0}
    reach = Reach(inputs, ())
    weights = dict.fromkeys(range(length), 1)
    for n in range(1, length + 1):
        assert (reach.lighter([-n], weights, 2) is None) == (n < length)
    assert inputs.looked <= 2 * length
