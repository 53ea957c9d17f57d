"""Pieces of the shape ``launches`` by cooperative groups, for blocks of whole warps."""

from __future__ import annotations

import random
from collections.abc import Callable


def _tiles(rng: random.Random, name: str, size: int, blocks: int) -> str:
    tile = rng.choice((1, 2, 4, 8, 16, 32))
    kind = rng.choice(("u32", "i32", "u64", "i64"))
    join = rng.choice(("plus", "less", "greater", "bit_xor", "bit_and", "bit_or"))
    turn = rng.randrange(1, 9)
    return f"""  namespace cg = cooperative_groups;
  auto part = cg::tiled_partition<{tile}>(cg::this_thread_block());
  {kind} v = ({kind})(GET(0) * 0x100000001ull);
  h = h * 31 + (u64)cg::reduce(part, v, cg::{join}<{kind}>());
  h ^= (u64)part.shfl(v, (part.thread_rank() + {turn}) % {tile}) + part.ballot(GET(1) & 1);
  g += part.meta_group_rank() * 3 + part.thread_rank() + part.match_any(GET(2) & 3) + part.meta_group_size();
  part.sync();"""


def _scans(rng: random.Random, name: str, size: int, blocks: int) -> str:
    tile, way = rng.choice((4, 8, 16, 32)), rng.choice(("inclusive", "exclusive"))
    return f"""  namespace cg = cooperative_groups;
  auto part = cg::tiled_partition<{tile}>(cg::this_thread_block());
  u32 v = GET(0);
  h = h * 31 + cg::{way}_scan(part, v, cg::plus<u32>());
  g ^= cg::inclusive_scan(part, v & 0xFFFF, cg::{rng.choice(("greater", "bit_xor", "bit_or"))}<u32>());"""


def _parts(rng: random.Random, name: str, size: int, blocks: int) -> str:
    tile = rng.choice((8, 16, 32))
    label = rng.choice((1, 3, 7))
    return f"""  namespace cg = cooperative_groups;
  auto part = cg::tiled_partition<{tile}>(cg::this_thread_block());
  auto by = cg::labeled_partition(part, GET(1) & {label});
  h = h * 31 + cg::reduce(by, GET(0), cg::plus<u32>()) + by.thread_rank() * 7 + by.size();
  auto two = cg::binary_partition(part, (GET(2) & 1) != 0);
  g += two.size() * 5 + two.shfl(GET(3), {rng.randrange(40)} % two.size()) + two.thread_rank();
  if (GET(2) & 2) {{ auto c = cg::coalesced_threads(); g += c.any(1) ? 3 : 4; c.sync(); }}
  part.sync();"""


def _wide_tiles(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Tiles of several warps where the block divides into such."""
    tile = next((k for k in (256, 128, 64) if size % k == 0), 32)
    memory = (
        f"__shared__ cg::block_tile_memory<{max(size, 64)}> mem; auto block = cg::this_thread_block(mem);"
        if tile > 32
        else "auto block = cg::this_thread_block();"
    )
    return f"""  namespace cg = cooperative_groups;
  {memory}
  auto part = cg::tiled_partition<{tile}>(block);
  h = h * 31 + cg::reduce(part, GET(0), cg::{rng.choice(("plus", "bit_xor", "greater"))}<u32>());
  g ^= part.any(GET(1) == 0) + part.all(GET(2) < 40) * 2 + part.shfl(GET(3), {rng.randrange(tile)});
  block.sync();"""


def _group_copies(rng: random.Random, name: str, size: int, blocks: int) -> str:
    return f"""  namespace cg = cooperative_groups;
  auto block = cg::this_thread_block();
  __shared__ __align__(16) u32 s[{size}];
  u32 words = n < {size} ? n : {size};
  cg::memcpy_async(block, s, in + (b % (n - words + 1)), words * 4);
  cg::wait(block);
  h = h * 31 + s[(l * {rng.choice((1, 5))}) % words];
  block.sync();"""


GROUPS: list[Callable[[random.Random, str, int, int], str]] = [
    _tiles, _scans, _parts, _wide_tiles, _group_copies,
]  # fmt: skip
