"""Kernels whose inputs are a block's, so that nvcc computes with them in uniform registers.

A kernel reads its inputs by ``IN`` and ``IN64``.  Here these read a constant array by the block's
number: the streams' words of the first thread of each block.  Under ``most``, every third
stream is still each thread's own, so that values of both kinds meet.  Names stay, so such results
belong into a folder of their own; there is no GPU's truth for them, and :mod:`.table` compares them
with another architecture's or other flags' code of the same source.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .kernel import Group, Kernel

KINDS: Final = ("all", "most")
STREAMS: Final = 80  # of a launch at most, two words each

_HEAD = """#ifndef GIVEN
#define GIVEN
__constant__ u32 given[{words}];
#undef IN
#undef IN64
#define OF(k) given[(k) * 2 + blockIdx.x]
#define IN(k) ({lane}OF(k))
#define IN64(k) ((u64)IN((k) + 1) << 32 | IN(k))
#endif
"""
_LANE = {"all": "", "most": "(k) % 3 == 2 ? in[(k) * 128 + t] : "}


def uniform(kernel: Kernel, kind: str) -> Kernel:
    """The kernel with a block's inputs, by one of ``KINDS``."""
    head = _HEAD.format(words=2 * STREAMS, lane=_LANE[kind])
    return replace(kernel, helpers=head + kernel.helpers, uniform=True)


def of_blocks(group: Group, kind: str) -> Group:
    """A group of such kernels."""
    return Group(group.name, tuple(uniform(kernel, kind) for kernel in group.kernels))
