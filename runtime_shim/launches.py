"""Which kernels a run launched, with which grids: from the driver library's trace of calls."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sassxlate.disasm.containers.demangle import demangle

# runtime_shim/native/cuda/trace.h has the format of a line.
_LINE = re.compile(
    r"cuLaunch\w*Kernel\w* (\d+) grid (\d+ \d+ \d+) block (\d+ \d+ \d+) shared (\d+) (\S+)"
)


def lines(folder: Path) -> Iterator[str]:
    """A line per kernel and shape, in the order of the first launch, with the CUDA error where it
    failed: ``2 x saxpy(int) <<<(32, 1, 1), (256, 1, 1), 0>>>``.  Kernels that a graph launches are
    not among them."""
    found: Counter[tuple[str, ...]] = Counter()
    for file in sorted(folder.glob("cuda-*.txt")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            match = _LINE.match(line)
            if match is not None:
                found[match.groups()] += 1
    for (result, grid, block, shared, name), count in found.items():
        shape = f"({grid.replace(' ', ', ')}), ({block.replace(' ', ', ')}), {shared}"
        failed = f": error {result}" if result != "0" else ""
        yield f"{count} x {demangle(name)} <<<{shape}>>>{failed}"


__all__ = ["lines"]
