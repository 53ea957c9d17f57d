"""The encoding tables, by category."""

from __future__ import annotations

from sassxlate.disasm.sass.tables import graphics
from sassxlate.disasm.sass.tables.arithmetic import convert, half, integer, logic, pack
from sassxlate.disasm.sass.tables.arithmetic import float as float32
from sassxlate.disasm.sass.tables.control import control, system
from sassxlate.disasm.sass.tables.memory import asynchronous, memory, surface, texture, wide
from sassxlate.disasm.sass.tables.spec import Row
from sassxlate.disasm.sass.tables.warp import matrix, tensor_memory, warpgroup

ROWS: tuple[Row, ...] = (
    *integer.ROWS,
    *logic.ROWS,
    *float32.ROWS,
    *convert.ROWS,
    *half.ROWS,
    *memory.ROWS,
    *matrix.ROWS,
    *pack.ROWS,
    *tensor_memory.ROWS,
    *texture.ROWS,
    *surface.ROWS,
    *graphics.ROWS,
    *system.ROWS,
    *wide.ROWS,
    *control.ROWS,
    *asynchronous.ROWS,
    *warpgroup.ROWS,
)
