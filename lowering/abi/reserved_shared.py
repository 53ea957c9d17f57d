"""The shared memory that CUDA's headers use besides a kernel's own.

Cooperative groups keep the barriers and exchanges of tiles of several warps in it, and take its
place from ``%reserved_smem_offset_1`` of PTX, which is a word of constant bank 0.  They count on
zeros at the start of a block (details/memory.h of CUDA 13.0 clears its own memory only before
sm_80), and on 288 bytes.  From sm_90 on it is at address 0, below the kernel's variables (an H100
says 0, and 0x120 for its end); before, it follows the block's dynamic memory.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from sassxlate.cfg import Cfg
from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.sass.instruction import Const

Place: TypeAlias = Literal["begin", "end"]

KILOBYTE: Final = 1024  # from sm_90 on, at the beginning of a block's shared memory
SIZE: Final = 3 * 128  # bytes; whole stores of a wave clear it

# The word's offset in constant bank 0 (measured: nvcc 13.0's code for the register of PTX).
_WORD_80, _WORD_90, _WORD_100 = 0x124, 0x6C, 0x27C
_END_90 = 0x68  # of the word that says where the memory ends


def reserved(cfg: Cfg) -> Place | None:
    """Where the memory is, if the kernel asks for it."""
    if cfg.arch < 80:
        return None
    if cfg.arch >= 100:
        # The index is -160 times SR_CgaSize, which is 0 here.
        operands = (o for b in cfg.blocks for i in b.instructions for o in i.operands.values())
        asked = any(
            isinstance(o, Const) and o.bank == 0 and o.offset == _WORD_100 for o in operands
        )
        return "begin" if asked else None
    word = _WORD_90 if cfg.arch == 90 else _WORD_80
    asked = any(place == word for _, place in cfg.constant_words)
    return ("begin" if cfg.arch == 90 else "end") if asked else None


def static_bytes(kernel: Kernel, cfg: Cfg) -> int:
    """Bytes of static shared memory; a kernel that has none of its own has the kilobyte, too."""
    least = KILOBYTE if reserved(cfg) == "begin" else 0
    return max(kernel.shared_size, least)


def words_90(cfg: Cfg) -> dict[int, int]:
    """Offset in constant bank 0 -> value, on sm_90, of the words that the kernel reads."""
    if cfg.arch != 90:
        return {}
    read = {place for _, place in cfg.constant_words}
    return {at: value for at, value in {_END_90: 0x120, _WORD_90: 0}.items() if at in read}


def word_at_end(cfg: Cfg) -> int | None:
    """The word that the launcher writes where the memory is at the end."""
    return _WORD_80 if reserved(cfg) == "end" else None
