"""Shape ``paths``: launches of drawn sizes, whose pieces take values along unusual ways.

As the shape ``launches``, with numbers of 64 bits and floats among the inputs: what loops hand on
through lanes and shared memory, jump tables, loops with several entries, carries, functions of
many predicates, numbers of a block, atomics that answer, barriers in memory, and, as the last
piece, recursion.
"""

from __future__ import annotations

import random

from .kernel import Kernel, named
from .launches import HEAD, drawn_launch, headers_of, is_newer
from .path_memory import MEMORY
from .path_pieces import PIECES, recursive
from .warps import HELPERS

_HELPERS = "#define GET64(k) ((u64)GET((k) + 1) << 32 | GET(k))\n" + HELPERS
_NEWER = (("cp.async.bulk", 90), ("cp.async", 80), ("mbarrier", 80))  # PTX, its first architecture
_TAIL = """
  SET(0, (u32)h); SET(1, (u32)(h >> 32)); SET(2, g);
}"""


def _oldest(text: str) -> int:
    found = [arch for word, arch in _NEWER if word in text]
    return max([75, *found, 80 if is_newer(text) else 75])


def _kernel(rng: random.Random, name: str) -> Kernel:
    grid, block = drawn_launch(rng)
    size, blocks = block[0] * block[1] * block[2], grid[0] * grid[1] * grid[2]
    body: list[str] = []
    before: list[str] = []
    made = [
        piece(rng, f"{name}_{k}", size, blocks)
        for k, piece in enumerate(rng.sample(PIECES + MEMORY, rng.randrange(2, 6)))
    ]
    if rng.random() < 0.2:
        made.append(recursive(rng, f"{name}_r"))
    for whole in made:
        head, found, text = whole.rpartition("//--\n")
        if found:
            before.append(head)
        body.append("  {\n" + text + "\n  }")
    text = "".join(before) + HEAD.format(name=name, size=size) + "\n".join(body) + _TAIL
    return Kernel(
        name, "paths", text, "rrr", "iisrl-f", headers=headers_of(text), helpers=_HELPERS,
        oldest=_oldest(text), grid=grid, block=block,
    )  # fmt: skip


def kernels(seed: int, first: int, count: int) -> list[Kernel]:
    """Kernels ``first`` to ``first + count``."""
    return [
        _kernel(random.Random(f"paths {seed} {n}"), named("paths", seed, n))
        for n in range(first, first + count)
    ]
