"""Which shapes of operands have an encoding, as far as rules have asked.

Encoding an instruction, to learn whether one exists, takes longer than to make it; and with
temporaries for results it is not the one that is written in the end.  What is taken for legal here
and is not, is an error when the kernel is encoded.
"""

from __future__ import annotations

from typing import Final

from sassxlate.disasm.rdna3.instruction import Arg, S, V

_LEGAL: Final[dict[str, set[int]]] = {}  # by mnemonic


def shape_of(op: str, args: tuple[Arg, ...]) -> int:
    """What decides whether an instruction of plain registers has an encoding: the file and size of
    each operand, the alignment of scalar ones.  0 if more may count: constants, registers that do
    not exist, and scalars of the VALU, of which it can read so many."""
    shape, scalars = 1, 0
    for arg in args:
        if isinstance(arg, V):
            if arg.index + arg.n > 256:
                return 0
            shape = shape << 8 | arg.n
        elif isinstance(arg, S):
            if arg.index + arg.n > 104 or arg.n > 16:
                return 0
            scalars += 1
            shape = shape << 8 | 0x80 | (arg.index & 3) << 5 | arg.n
        else:
            return 0
    return shape if scalars < 2 or op.startswith("s_") else 0


def known_legal(op: str, shape: int) -> bool:
    """Whether an instruction of this shape, without modifiers, is known to have an encoding."""
    known = _LEGAL.get(op)
    return known is not None and shape in known


def remember_legal(op: str, shape: int) -> None:
    """Such an instruction has one."""
    _LEGAL.setdefault(op, set()).add(shape)


__all__ = ["known_legal", "remember_legal", "shape_of"]
