"""The encoding tables, by category."""

from __future__ import annotations

from sassxlate.disasm.sass.tables import graphics
from sassxlate.disasm.sass.tables.arithmetic import convert, half, integer, logic, pack
from sassxlate.disasm.sass.tables.arithmetic import float as float32
from sassxlate.disasm.sass.tables.control import control, system
from sassxlate.disasm.sass.tables.memory import asynchronous, memory, surface, texture, wide
from sassxlate.disasm.sass.tables.spec import Row
from sassxlate.disasm.sass.tables.warp import matrix, tensor_memory, warpgroup

MODULES = (
    integer,
    logic,
    float32,
    convert,
    half,
    memory,
    matrix,
    pack,
    tensor_memory,
    texture,
    surface,
    graphics,
    system,
    wide,
    control,
    asynchronous,
    warpgroup,
)  # in the order of their rows
ROWS: tuple[Row, ...] = tuple(row for module in MODULES for row in module.ROWS)
