"""Which registers hold the words of an access of 256 bits (LDG and STG from sm_100 on).

A module of its own: rules import it, and must not load NumPy.
"""

from __future__ import annotations

from sassxlate.disasm.sass.instruction import Imm, Instruction
from sassxlate.disasm.sass.semantics.rows import NoSemantics


def chosen(ins: Instruction) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The words of 256 bits that go to Rd, and to Rd2, or come from Rb and Rb2: the mask's bits,
    which compilers clear where a word is not used.  Raises NoSemantics for a store of some alone.
    """
    mask = ins.get("mask")
    bits = mask.value if isinstance(mask, Imm) else 0xFF
    if ins.get("Rb") is not None and bits != 0xFF:
        raise NoSemantics("a store of some of eight words")
    words = [i for i in range(8) if bits >> i & 1]
    return tuple(i for i in words if i < 4), tuple(i for i in words if i >= 4)


__all__ = ["chosen"]
