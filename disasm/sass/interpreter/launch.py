"""A launch as a value: code, constants, memory and shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sassxlate.disasm.sass.codec.section import decode_section
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.interpreter.memory import Bytes
from sassxlate.disasm.sass.semantics.arithmetic.multiprocessor import COUNT as MULTIPROCESSORS
from sassxlate.disasm.sass.semantics.single_block_clusters import alone
from sassxlate.disasm.sass.semantics.warpgroups import meeting

LaunchShape = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel.

    ``code`` is complete: it includes the functions that it calls, and has no relocations.
    ``banks`` are the constant banks by number.  ``patches`` are the 32-bit immediates that the
    loader fills in, by code offset.  ``multiprocessors`` are the device's.
    """

    name: str
    arch: int
    code: bytes
    grid: LaunchShape
    block: LaunchShape
    banks: Mapping[int, bytes]
    pieces: Sequence[tuple[int, Bytes]] = ()
    shared: int = 0  # bytes per block, static and dynamic
    local: int = 0  # bytes per lane
    patches: Mapping[int, int] = field(default_factory=dict[int, int])
    cooperative: bool = False
    multiprocessors: int = MULTIPROCESSORS

    @property
    def threads(self) -> int:
        """Threads per block."""
        x, y, z = self.block
        return x * y * z

    @property
    def blocks(self) -> int:
        x, y, z = self.grid
        return x * y * z


def instructions(launch: Launch) -> list[Instruction | None]:
    """The code by index; None if a word is not an instruction."""
    code = bytearray(launch.code)
    for offset, value in launch.patches.items():
        code[offset + 4 : offset + 8] = value.to_bytes(4, "little")
    items = decode_section(bytes(code), launch.arch).instructions
    return [meeting(alone(item)) if isinstance(item, Instruction) else None for item in items]
