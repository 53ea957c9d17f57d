"""Modules share C files, whose names CMake knows before there are any."""

from __future__ import annotations

import re
from pathlib import Path

from tools.compiled.__main__ import UNITS, units

CMAKE = Path(__file__).parents[3] / "runtime_shim" / "native" / "translator" / "CMakeLists.txt"


def test_cmake_names_every_unit() -> None:
    named = re.findall(r"\bunit\d+\b", CMAKE.read_text())
    assert named == [f"unit{number}" for number in range(UNITS)]


def test_every_file_is_in_one_unit_of_about_the_same_size() -> None:
    sizes = {Path(f"{number:03}.c"): number * number for number in range(100)}
    dealt = units(list(sizes.items()))
    assert len(dealt) == UNITS
    assert sorted(path for unit in dealt for path in unit) == sorted(sizes)
    total = [sum(sizes[path] for path in unit) for unit in dealt]
    assert max(total) - min(total) <= 0.05 * max(total)
    assert dealt == units(list(reversed(sizes.items())))
