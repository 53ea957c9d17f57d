"""Work in groups, for commands that share it out to processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from sassxlate.errors import SassxlateError

T = TypeVar("T")


def groups(chosen: Iterable[T], most: int) -> Iterator[list[T]]:
    """Up to ``most`` at a time; those before an error, then the error, as one by one."""
    group: list[T] = []
    try:
        for one in chosen:
            group.append(one)
            if len(group) == most:
                yield group
                group = []
    except SassxlateError:
        if group:
            yield group
        raise
    if group:
        yield group
