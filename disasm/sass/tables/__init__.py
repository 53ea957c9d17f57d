"""The encoding tables, by category."""

from __future__ import annotations

from ..spec import Row
from . import (
    cluster,
    control,
    convert,
    float32,
    graphics,
    half,
    integer,
    logic,
    memory,
    packed,
    surface,
    system,
    tensor,
    texture,
    tmem,
    warpgroup,
    wide,
)

ROWS: tuple[Row, ...] = (
    *integer.ROWS,
    *logic.ROWS,
    *float32.ROWS,
    *convert.ROWS,
    *half.ROWS,
    *memory.ROWS,
    *tensor.ROWS,
    *packed.ROWS,
    *tmem.ROWS,
    *texture.ROWS,
    *surface.ROWS,
    *graphics.ROWS,
    *system.ROWS,
    *wide.ROWS,
    *control.ROWS,
    *cluster.ROWS,
    *warpgroup.ROWS,
)
