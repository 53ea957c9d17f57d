"""Shape ``chains``: launches of drawn sizes, whose pieces are chains of numbers that end in sums.

As the shape ``launches``, with two sums of floats and a word of halves in slots of their own, and
with floats, halves, bf16 and doubles among the inputs, NaNs with payloads in all of them.
"""

from __future__ import annotations

import random

from .chain_blocks import BLOCKS
from .chain_pieces import PIECES
from .kernel import Kernel, named
from .launch_pieces import PIECES as OTHERS
from .launches import HEAD, drawn_launch, headers_of, is_newer

_HELPERS = """#define GETF(k) __uint_as_float(GET(k))
#define GETD(k) __longlong_as_double((i64)((u64)GET((k) + 1) << 32 | GET(k)))
"""
_TAIL = """
  SET(0, (u32)h); SET(1, (u32)(h >> 32)); SET(2, g); SET(3, __float_as_uint(f)); SET(4, __float_as_uint(e)); SET(5, q);
}"""


def _kernel(rng: random.Random, name: str) -> Kernel:
    grid, block = drawn_launch(rng)
    size, blocks = block[0] * block[1] * block[2], grid[0] * grid[1] * grid[2]
    body = ["  float f = GETF(7), e = 0; u32 q = 0; (void)e;"]
    before: list[str] = []
    chosen = [rng.choice(PIECES + BLOCKS) for _ in range(rng.randrange(2, 6))]
    if rng.random() < 0.4:
        chosen.insert(rng.randrange(len(chosen)), rng.choice(OTHERS))
    for k, piece in enumerate(chosen):
        head, found, text = piece(rng, f"{name}_{k}", size, blocks).rpartition("//--\n")
        if found:
            before.append(head)
        body.append("  {\n" + text + "\n  }")
    text = "".join(before) + HEAD.format(name=name, size=size) + "\n".join(body) + _TAIL
    return Kernel(
        name, "chains", text, "rrrffr", "iisrfEBfd-", holds="exact", headers=headers_of(text), helpers=_HELPERS,
        oldest=80 if is_newer(text) else 75, grid=grid, block=block,
    )  # fmt: skip


def kernels(seed: int, first: int, count: int) -> list[Kernel]:
    """Kernels ``first`` to ``first + count``."""
    return [
        _kernel(random.Random(f"chains {seed} {n}"), named("chains", seed, n))
        for n in range(first, first + count)
    ]
