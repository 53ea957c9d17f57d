"""Clusters of blocks, in launches whose clusters are single blocks: RDNA3 has no other.

A kernel with ``__cluster_dims__`` of several blocks is refused.  In any other, the words of
constant bank 0 from which code takes the shape of its cluster say one block, as on an H100 for a
launch without clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sassxlate.disasm.containers import eiattr
from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.sass.instruction import Const, Instruction
from sassxlate.errors import LoweringError, Where
from sassxlate.lowering.abi.kernarg import Fill, FillKind

_ONE = 0x3F800000  # 1.0f


@dataclass(frozen=True, slots=True)
class _Words:
    """Offsets in constant bank 0 (measured: nvcc 13.0's code for each special register of PTX)."""

    explicit: int  # 1 if the kernel or the launch says how large clusters are
    dims: int  # blocks of a cluster: x, y, z
    inverses: int  # 1.0f over each
    counts: int  # clusters of the grid: x, y, z
    blocks: int  # of a cluster


_WORDS_90 = _Words(0x140, 0x144, 0x150, 0x15C, 0x188)
# Code adds -160 times SR_CgaSize, which is 0 here, to all but the first.
_WORDS_100 = _Words(0x36C, 0x2A0, 0x2B0, 0x2C0, 0x2CC)
_OF = {90: _WORDS_90, **dict.fromkeys((100, 103, 110, 120, 121), _WORDS_100)}


def refuse_clusters(kernel: Kernel) -> None:
    """Raises LoweringError SX0428 for a kernel that says that its clusters have several blocks."""
    for record in kernel.attributes:
        if record.name == "EIATTR_CTA_PER_CLUSTER":
            x, y, z = eiattr.words(record, 3)
            if x * y * z > 1:
                text = f"clusters of {x}x{y}x{z} blocks"
                raise LoweringError("SX0428", text, Where(kernel=kernel.name))


def _explicit(kernel: Kernel) -> int:
    return int(any(record.name == "EIATTR_EXPLICIT_CLUSTER" for record in kernel.attributes))


def cluster_words(kernel: Kernel, grid: Sequence[int]) -> Mapping[int, int]:
    """Offset in constant bank 0 -> value, of the words that describe clusters; empty before sm_90.
    ``grid``: its blocks in x, y and z."""
    words = _OF.get(kernel.arch)
    if words is None:
        return {}
    out = {words.explicit: _explicit(kernel), words.blocks: 1}
    for n, blocks in enumerate(grid):
        out |= {words.dims + 4 * n: 1, words.inverses + 4 * n: _ONE, words.counts + 4 * n: blocks}
    return out


def cluster_fills(kernel: Kernel, named: Iterable[tuple[Instruction, Const]]) -> list[Fill]:
    """What the launcher writes to those words; nothing if the kernel reads none.  ``named``: its
    operands in constant banks."""
    words = _OF.get(kernel.arch)
    if words is None:
        return []
    values = cluster_words(kernel, (0, 0, 0))
    if not _read(named, values):
        return []
    kinds: dict[int, FillKind] = {words.explicit: "explicit_cluster"}
    kinds[words.counts] = "griddim.x"
    kinds[words.counts + 4] = "griddim.y"
    kinds[words.counts + 8] = "griddim.z"
    return [Fill(at, kinds.get(at, "u32"), value) for at, value in sorted(values.items())]


def _read(named: Iterable[tuple[Instruction, Const]], values: Mapping[int, int]) -> bool:
    """Whether an operand, of up to four words, has one of the words."""
    first, last = min(values), max(values)
    for _, o in named:
        if o.bank == 0 and first - 16 < o.offset <= last:
            for at in values:
                if o.offset <= at < o.offset + 16:
                    return True
    return False


__all__ = ["cluster_fills", "cluster_words", "refuse_clusters"]
