"""The shapes of instructions that translated kernels have, and packs by the text of their shapes.

``shapes.txt`` is what fixtures' kernels have (tools/generate/stencil_shapes.py).  A shape that it
lacks is made when a kernel first has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from sassxlate.lowering.emulate.options import host_isa
from sassxlate.lowering.emulate.stencils import pack
from sassxlate.lowering.emulate.stencils.stencil import Shape

PATH: Final = Path(__file__).with_name("shapes.txt")


def text_of(shape: Shape) -> str:
    """32 hexadecimal digits: 64 bits of the encoding, the DPP word, MODE."""
    return f"{shape.word:016x}{shape.dpp:08x}{shape.mode & 0xFFFFFFFF:08x}"


def shape_of(text: str) -> Shape:
    mode = int(text[24:], 16)
    return Shape(int(text[:16], 16), int(text[16:24], 16), mode if mode >> 31 == 0 else -1)


def known_shapes() -> tuple[Shape, ...]:
    lines = PATH.read_text(encoding="ascii").splitlines()
    return tuple(shape_of(line.split()[0]) for line in lines if line and line[0] != "#")


def write(shapes: Iterable[Shape]) -> str:
    """The text of ``shapes.txt``: with each shape, the instruction with canonical registers."""
    head = "# Made by tools/generate/stencil_shapes.py: the shapes that fixtures' kernels have.\n"
    return head + "".join(f"{text_of(s)} {s.instruction().op}\n" for s in sorted(shapes))


def pack_of(shapes: Sequence[str]) -> bytes:
    """The pack of some shapes by their text for this machine; without any, of all that are known.

    Shapes that the emulated device does not have are left out.

    Raises:
        EmulatorError: SX0690, the compiled code cannot be used.
    """
    wanted = tuple(map(shape_of, shapes)) if shapes else known_shapes()
    return pack.make(wanted, host_isa(), tables=not shapes).data
