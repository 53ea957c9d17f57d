"""The names of a cubin's functions, without reading the cubin."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sassxlate.disasm.containers.elf import NAMES_RATIO, Elf, fail, printable

# A table of names may hold one within another, so each place is tried.
_SECTION = re.compile(rb"(?=\.text\.([^\0]+))")


def function_names(image: bytes) -> Iterator[str]:
    """Mangled names, one for each function with a section of its own, which every kernel has; a
    name may come twice, and some may belong to no function.

    A fiftieth of the time that :func:`parse_cubin` takes, which a library of thousands of cubins
    needs for the few that are asked for.  Raises ContainerError SX0103 to SX0107 (ELF).
    """
    left = NAMES_RATIO * len(image)
    for found in _SECTION.finditer(bytes(Elf(image).section_names)):
        left -= found.end(1) - found.start(1)
        if left < 0:
            raise fail("SX0107", "the sections' names share bytes")
        yield printable(found[1])
