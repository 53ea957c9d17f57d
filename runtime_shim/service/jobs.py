"""What the service is asked for: jobs, who waits for them, and which of them come first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

from sassxlate.runtime_shim.cache.store import name_key

Request: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[object, ...]
Kind: TypeAlias = tuple[bool, ...]
_KINDS = ("strict", "counts", "turns")  # the request's fields that make a kind of host code
_NAMED = (
    "image", "cc", "code_object", "jit", "environment", "inputs", "shapes",
    "offset", "size", "record", "patterns", "engine", "entered",
)  # fmt: skip


class Priority(IntEnum):
    """The order of jobs: a job that comes later here never keeps one that comes first from a
    processor."""

    WAIT = 0  # an application stands still until it is done
    BETTER = 1  # better code for a kernel that runs already
    PREPARE = 2  # kernels that earlier runs of an application used
    GUESS = 3  # neighbours of a kernel that was asked for


@dataclass(frozen=True, slots=True)
class Waiter:
    """Who gets the answer: ``client`` is the connection, ``pid`` its process (0: unknown)."""

    reply: Callable[[Answer], None]
    client: object = None
    pid: int = 0
    since: float = field(default_factory=time.monotonic)  # seconds of the monotonic clock


@dataclass(slots=True, eq=False)
class Job:
    """A request and who waits for its answer."""

    request: Request
    waiting: list[Waiter] = field(default_factory=list[Waiter])
    priority: Priority = Priority.WAIT
    began: float = field(default_factory=time.monotonic)  # when it was queued
    started: float = 0.0  # when a worker got it, later by each pause
    then: Request | None = None  # what is done next if this succeeds
    done: Callable[[Answer], None] | None = None  # of the service's own


def kind_of(request: Request) -> Kind:
    """The kind of host code of a request: strict or not, counting or not, in turns or not."""
    return tuple(bool(request.get(name)) for name in _KINDS)


def as_fields(kind: Kind) -> dict[str, bool]:
    """The fields of a request for a kind of host code; :func:`kind_of` reads them."""
    return dict(zip(_KINDS, kind, strict=True))


def identity(request: Request) -> Key:
    """Equal for requests with the same answer: while one is under way, another waits for it."""
    kernel = request.get("kernel")
    return (
        str(request.get("op")),
        str(request.get("module")),
        name_key(str(kernel)) if kernel is not None else str(request.get("kernel_key")),
        bool(request.get("compile")),
        *kind_of(request),
        bool(request.get("quick")),
        *(str(request.get(name)) for name in _NAMED),
    )


__all__ = [
    "Answer",
    "Job",
    "Key",
    "Kind",
    "Priority",
    "Request",
    "Waiter",
    "as_fields",
    "identity",
    "kind_of",
]
