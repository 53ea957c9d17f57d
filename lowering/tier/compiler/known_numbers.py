"""Keeps code generation from computing with floating-point constants.

LLVM 22 folds sums, products and comparisons of constants as the function's mode says, but not
llvm.fma and the roundings to whole numbers: it takes the denormal numbers among their sources as
they are.  The passes leave such calls alone (-disable-fp-call-folding); code generation would fold
them once more, and with them the clamp of what it finds to be -0, to -0 instead of 0.  So a
constant is hidden from it, by a move that means nothing outside of graphics.
"""

from __future__ import annotations

import re

# A call of one of LLVM's functions of binary32 with nothing but constants.
_CALL = re.compile(
    r"^(  .* = (?:tail )?call float @llvm\.(?!amdgcn)[\w.]+\(float )"
    r"([^%,()]+)((?:, float [^%,()]+)*\).*)$",
    re.MULTILINE,
)
_HIDDEN = "@llvm.amdgcn.softwqm.f32"


def hidden(text: str) -> str:
    """A module as LLVM prints it, with the first of such constants hidden."""
    count = 0

    def replaced(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        name = f"%known.{count}"
        move = f"  {name} = call float {_HIDDEN}(float {found[2]})"
        return f"{move}\n{found[1]}{name}{found[3]}"

    text = _CALL.sub(replaced, text)
    if count and f"declare float {_HIDDEN}(" not in text:
        text += f"\ndeclare float {_HIDDEN}(float)\n"
    return text


__all__ = ["hidden"]
