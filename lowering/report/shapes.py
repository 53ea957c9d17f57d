"""What of a kernel is compared with those of another file, to find it again."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.cfg.diff.kernels import KernelShape
from sassxlate.errors import SassxlateError, UsageError
from sassxlate.lowering.report.graphs import Graph, Rdna3Subject, Subject, drawn
from sassxlate.processes import processes_for

_PART = 64 * 1024  # bytes of code for which another process pays


def kernel_shape(graph: Graph) -> KernelShape:
    """A kernel's graph and, of SASS, what its launch depends on: parameters, static shared memory,
    launch bounds, barriers, constants, whether it has a stack."""
    k = graph.kernel
    if k is None:
        return KernelShape(graph.picture)
    parameters = tuple((p.offset, p.size) for p in k.params)
    rest = (k.shared_size, k.max_threads, k.barriers, len(k.constant2), bool(k.local_size))
    return KernelShape(graph.picture, (parameters, *rest))


@dataclass(frozen=True, slots=True)
class DrawnShape:
    """A kernel's shape; ``problem`` has the reason if its graph is not complete."""

    shape: KernelShape
    problem: SassxlateError | None = None


@dataclass(slots=True)
class _Shared:
    """What forked processes inherit: only a kernel's number is sent to them."""

    subjects: Sequence[Subject] = ()


_shared = _Shared()


def shapes(subjects: Sequence[Subject], jobs: int = 1) -> list[DrawnShape]:
    """The shapes of kernels; ``jobs`` processes, 0: one per core if there is enough to do.

    Raises:
        SassxlateError: as :func:`.graphs.drawn`, for the first kernel that it refuses.
        UsageError: SX0888, the process that drew a kernel died, again when it was alone.
    """
    size = sum(len(s.code if isinstance(s, Rdna3Subject) else s.kernel.code) for s in subjects)
    many = processes_for(jobs, len(subjects), size, _PART)
    if many == 1:
        return [_drawn(subject) for subject in subjects]
    from sassxlate.executors import Begin, Place, in_order

    lost = UsageError("SX0888", "the process that read a kernel died")
    begin = Begin(_take, (subjects,))
    work = in_order(Place(many), _numbered, range(len(subjects)), lost=lost, begin=begin)
    out: list[DrawnShape] = []
    with contextlib.closing(work):
        for one in work:
            if isinstance(one, SassxlateError):
                raise one
            out.append(one)
    return out


def _drawn(subject: Subject) -> DrawnShape:
    graph = drawn(subject)
    return DrawnShape(kernel_shape(graph), graph.problem)


def _take(subjects: Sequence[Subject]) -> None:
    _shared.subjects = subjects


def _numbered(number: int) -> DrawnShape | SassxlateError:
    """An error is a result: the first kernel's is raised, not that of the fastest process."""
    try:
        return _drawn(_shared.subjects[number])
    except SassxlateError as error:
        return error


__all__ = ["DrawnShape", "kernel_shape", "shapes"]
