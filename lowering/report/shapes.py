"""What of a kernel is compared with those of another file, to find it again."""

from __future__ import annotations

from sassxlate.cfg.diff.kernels import KernelShape
from sassxlate.lowering.report.graphs import Graph


def kernel_shape(graph: Graph) -> KernelShape:
    """A kernel's graph and, of SASS, what its launch depends on: parameters, static shared memory,
    launch bounds, barriers, constants, whether it has a stack."""
    k = graph.kernel
    if k is None:
        return KernelShape(graph.picture)
    parameters = tuple((p.offset, p.size) for p in k.params)
    rest = (k.shared_size, k.max_threads, k.barriers, len(k.constant2), bool(k.local_size))
    return KernelShape(graph.picture, (parameters, *rest))


__all__ = ["kernel_shape"]
