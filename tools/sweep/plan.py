"""The kernels of the sweep, the groups in which they are compiled, and the flags."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from tools.sweep import chains, features, floats, launches, paths, programs, ptx, warps

from .kernel import SEED, Group, Kernel


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    kernels: Callable[[int, int, int], list[Kernel]]
    count: int
    group: int  # kernels of a translation unit


SHAPES = (
    Shape("programs", programs.kernels, 2000, 25),
    Shape("warps", warps.kernels, 900, 25),
    Shape("ptx", ptx.kernels, 1600, 50),
    Shape("floats", floats.kernels, 700, 25),
    Shape("launches", launches.kernels, 600, 20),
    Shape("chains", chains.kernels, 800, 20),
    Shape("paths", paths.kernels, 800, 20),
    Shape("features", features.kernels, 300, 20),
)
# nvcc's options of each kind of flags
FLAGS = {
    "O3": ("-O3",),
    "O1": ("-Xptxas", "-O1"),
    "O0": ("-Xcicc", "-O0", "-Xptxas", "-O0"),
    "G": ("-G",),
    "fast": ("-use_fast_math",),
    "nofma": ("--fmad=false",),
    "ftz": ("-ftz=true",),
    "rdc": ("-rdc=true",),
}
ARCHES = (75, 80, 86, 89, 90, 100, 103, 120, 121)
TRUTHS = ("O3", "O1", "G", "fast", "nofma", "ftz")  # taken on the GPU
FLUSHES = ("fast", "ftz")
_FLOATS_ALONE = (*FLUSHES, "nofma")


def shapes_of(names: Iterable[str]) -> tuple[str, ...]:
    """The shapes of kernels of these names."""
    return tuple({name.partition("_")[0] for name in names})


def groups(seed: int = SEED, shapes: Collection[str] | None = None) -> Iterator[Group]:
    """All groups, or those of some shapes."""
    for shape in SHAPES:
        if shapes is not None and shape.name not in shapes:
            continue
        for first in range(0, shape.count, shape.group):
            count = min(shape.group, shape.count - first)
            made = shape.kernels(seed, first, count)
            yield Group(f"{shape.name}_{first // shape.group:03d}", tuple(made))


def wanted(group: Group, flags: str) -> bool:
    """Whether the flags can change what the group's kernels compute."""
    if flags == "ftz" and group.name.startswith("chains"):
        return True
    return flags not in _FLOATS_ALONE or group.name.startswith("floats")


def in_turn(groups: list[Group]) -> list[Group]:
    """One of each shape, again and again, so that any part of the sweep has all shapes."""
    by_shape: dict[str, list[Group]] = {}
    for group in groups:
        by_shape.setdefault(group.kernels[0].shape, []).append(group)
    rows = zip_longest(*by_shape.values())
    return [group for row in rows for group in row if group is not None]
