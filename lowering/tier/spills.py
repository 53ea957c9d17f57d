"""Vector registers whose lanes keep spilled scalar ones.

LLVM's allocator may spill such a register itself, and LLVM 22 may then store it where it is not
alive any more: wrong code, without an assertion, that its machine verifier alone finds, in six
times the time (warps_s11_0346 on sm_120 with the passes of level 2).  A kernel of which this is
possible is compiled again with registers that are theirs in the whole function, so that the
allocator never sees them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sassxlate.disasm.rdna3 import decode
from sassxlate.disasm.rdna3.instruction import I
from sassxlate.lowering.target import EXEC

_THEIRS: Final = '"amdgpu-prealloc-sgpr-spill-vgprs"'
_ATTRIBUTES: Final = re.compile(r"^attributes #\d+ = \{", re.MULTILINE)
_ALL: Final = I(0xFFFFFFFF)
_TEXT: Final = re.compile(r"s_or_saveexec_b32 \w+, -1|s_mov_b32 exec_lo, -1")


def apart(text: str) -> str:
    """A module's text, whose functions have vector registers for spilled scalar ones alone."""
    return _ATTRIBUTES.sub(rf"\g<0> {_THEIRS}", text)


def of_all_lanes(code: bytes, texts: Sequence[str] = ()) -> bool:
    """Whether all lanes are made to run, as LLVM does to spill or move such a register, and nowhere
    else in a kernel.

    ``texts`` are the instructions where no table of ours has them.
    """
    if texts:
        return any(_TEXT.search(text) for text in texts)
    at = 0
    while at < len(code):
        inst, size = decode(code, at)
        match inst.op, inst.args:
            case ("s_or_saveexec_b32", (_, given)) if given == _ALL:
                return True
            case ("s_mov_b32", (to, given)) if to == EXEC and given == _ALL:
                return True
            case _:
                at += size
    return False


__all__ = ["apart", "of_all_lanes"]
