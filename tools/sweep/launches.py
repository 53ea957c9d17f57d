"""Shape ``launches``: grids and blocks of drawn sizes, each thread through several features.

A kernel is a row of pieces that a block of any shape may execute: each reads streams of the launch's
own length and folds its values into two hashes.  Barriers stand where all threads of a block come
past, and operations of warps name the lanes that the last warp of a block has.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from .kernel import Kernel, named
from .launch_groups import GROUPS
from .launch_pieces import PIECES

_BLOCKS = (
    (64, 1, 1), (96, 1, 1), (128, 1, 1), (256, 1, 1), (512, 1, 1), (1024, 1, 1), (32, 1, 1), (1, 1, 1),
    (31, 1, 1), (33, 1, 1), (65, 1, 1), (100, 1, 1), (127, 1, 1), (250, 1, 1), (1000, 1, 1), (8, 8, 1),
    (16, 16, 1), (32, 4, 1), (32, 8, 2), (5, 7, 3), (3, 11, 1), (17, 2, 5), (1, 32, 2), (2, 2, 16),
    (7, 1, 9), (64, 3, 1), (10, 10, 10), (4, 64, 1), (1, 1, 64), (13, 13, 2),
)  # fmt: skip
_GRIDS = (
    (1, 1, 1), (2, 1, 1), (3, 1, 1), (5, 1, 1), (8, 1, 1), (13, 1, 1), (2, 2, 1), (3, 2, 1),
    (1, 3, 2), (2, 1, 3), (65, 1, 1), (64, 1, 1), (7, 5, 2),
)  # fmt: skip
_MOST = 6000  # threads of a launch
_HEADERS = (
    ("__half", "cuda_fp16.h"), ("bfloat16", "cuda_bf16.h"), ("cg::", "cooperative_groups.h"),
    ("cg::reduce", "cooperative_groups/reduce.h"), ("_scan(", "cooperative_groups/scan.h"),
    ("memcpy_async(", "cooperative_groups/memcpy_async.h"), ("__pipeline_", "cuda_pipeline.h"),
    ("__nv_cvt_", "cuda_fp8.h"),
)  # fmt: skip
_NEWER = (
    "__nv_bfloat162",
    "__pipeline_",
    "__reduce_",
    "memcpy_async(",
    "_relu(",
    "__hmax2",
    "__hmin2",
)
HEAD = """extern "C" __launch_bounds__({size}) __global__ void {name}(const u32 *in, u32 *out, u32 n) {{
  const u32 nt = blockDim.x * blockDim.y * blockDim.z;
  const u32 l = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const u32 b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const u32 t = b * nt + l, lane = l & 31, lanes = nt - (l & ~31u) < 32 ? nt - (l & ~31u) : 32;
  const u32 warp = lanes == 32 ? ~0u : (1u << lanes) - 1;
  u64 h = t; u32 g = l; (void)lane; (void)warp; (void)g;
"""
_TAIL = """
  SET(0, (u32)h); SET(1, (u32)(h >> 32)); SET(2, g);
}"""


def drawn_launch(rng: random.Random) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """A grid and a block."""
    block = rng.choice(_BLOCKS)
    size = block[0] * block[1] * block[2]
    return rng.choice([g for g in _GRIDS if g[0] * g[1] * g[2] * size <= _MOST]), block


def headers_of(text: str) -> tuple[str, ...]:
    """The headers that a kernel's text needs."""
    return tuple(header for word, header in _HEADERS if word in text)


def is_newer(text: str) -> bool:
    """Whether it needs sm_80."""
    return any(word in text for word in _NEWER)


def _kernel(rng: random.Random, name: str) -> Kernel:
    grid, block = drawn_launch(rng)
    size = block[0] * block[1] * block[2]
    blocks = grid[0] * grid[1] * grid[2]
    whole = size % 32 == 0
    pieces: list[Callable[[random.Random, str, int, int], str]] = list(PIECES)
    if whole:
        pieces += GROUPS * 2
    body: list[str] = []
    before: list[str] = []
    for k, piece in enumerate(rng.sample(pieces, rng.randrange(2, 6))):
        head, found, text = piece(rng, f"{name}_{k}", size, blocks).rpartition("//--\n")
        if found:
            before.append(head)
        body.append("  {\n" + text + "\n  }")
    if rng.random() < 0.3:  # the rest runs without the threads that end here
        body.append(f"  if (GET(1) % {rng.randrange(2, 6)} == 0) {{ SET(2, 77 + l); return; }}")
        body.append(
            f"  for (u32 k = 0; k < (GET(3) & 15); ++k) h = h * {rng.randrange(3, 99, 2)} + GET(k & 3);"
        )
    text = "".join(before) + HEAD.format(name=name, size=size) + "\n".join(body) + _TAIL
    return Kernel(
        name, "launches", text, "rrr", "iisr", headers=headers_of(text),
        oldest=80 if is_newer(text) else 75,
        grid=grid, block=block,
    )  # fmt: skip


def kernels(seed: int, first: int, count: int) -> list[Kernel]:
    """Kernels ``first`` to ``first + count``."""
    return [
        _kernel(random.Random(f"launches {seed} {n}"), named("launches", seed, n))
        for n in range(first, first + count)
    ]
