"""Keeps shifts that copy the sign from what puts words together of bytes.

LLVM's AMDGPU backend writes a sum of bits as one v_perm_b32 where each byte comes of one operand
and the other has a zero there.  It takes the bytes that an arithmetic shift fills with the sign
for zeros (`calculateByteProvider`, LLVM 22): ``(x >> 16) | (y & 0xffff0000)`` lost the sign of x,
silently.  Of a copy of the shift's result it knows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sassxlate.lowering.tier.compiler.ssa import Function, Value, changed

_TYPES: Final = ("i16", "i32", "i64")
_NARROW: Final = ("i8", "i16", "i24", "i32")  # whose extension becomes such a shift
_SUMS: Final = ("or", "add", "xor")  # the last two become the first where no bit is in both
# Through which the backend follows a byte.
_WAYS: Final = frozenset(
    ("and", "or", "shl", "lshr", "ashr", "trunc", "zext", "sext", "bitcast", "extractelement",
     "insertelement", "shufflevector", "freeze")
)  # fmt: skip
_SWAPS: Final = "call @llvm.bswap."  # the same
_FUNNELS: Final = ("call @llvm.fshl.", "call @llvm.fshr.")  # sums, of i16 and i64 once expanded
# What may take bytes out of the upper half of an extension from 32 to 64 bits.  The half itself is
# no such shift, but one by 31: indices are mostly such extensions, moved to the left and added.
_UPPER: Final = frozenset(("lshr", "ashr", "bitcast", "extractelement", "shufflevector"))
_DEPTH: Final = 12  # the backend's is 6, of nodes; here some are two values


def _copies_signs(value: Value) -> str:
    """The type of a shift by whole bytes, or of an extension, with the sign; empty for others."""
    if value.op == "ashr" and value.type in _TYPES:
        count = value.args[1]
        return value.type if count.isdecimal() and int(count) % 8 == 0 else ""
    if value.op == "sext" and value.type in _NARROW and value.flags in _TYPES:
        return value.flags
    return ""


def _is_summed(function: Function, name: str) -> bool:
    """Whether a sum of bits may have a value's bytes: directly, or by way of what moves these."""
    first = function.values[name]
    # Values that carry its bytes, and whether these may be those with the sign.
    work = {name: not (first.op == "sext" and first.type == "i32")}
    seen = dict(work)
    for depth in range(_DEPTH):
        following: dict[str, bool] = {}
        for value, signs in work.items():
            for at in function.uses.get(value, ()):
                result = function.result(at)
                user = function.values.get(result)
                if user is None or (result in seen and seen[result] >= signs):
                    continue
                summed = user.op == "or" or (depth > 0 and user.op in _SUMS)
                if (signs and summed) or user.op.startswith(_FUNNELS):
                    return True
                if user.op in _WAYS or summed or user.op.startswith(_SWAPS):
                    carried = signs or user.op in _UPPER or user.op.startswith(_SWAPS)
                    seen[result] = following[result] = carried
        work = following
    return False


def _hide(function: Function) -> Iterator[str]:
    for name, value in list(function.values.items()):
        kind = _copies_signs(value)
        if not kind or not _is_summed(function, name):
            continue
        shifted = f'{name[:-1]}.signs"' if name.endswith('"') else f"{name}.signs"
        called = f"{kind} @llvm.amdgcn.softwqm.{kind}({kind}"
        line = function.lines[value.at]
        function.lines[value.at] = line.replace(f"  {name} = ", f"  {shifted} = ", 1)
        function.insert(value.at + 1, f"{name} = call {called} {shifted})")
        yield f"declare {called})"


def known_signs(text: str) -> str:
    """A module as LLVM prints it after its passes, with a copy of each such shift's result."""
    return changed(text, _hide) if " = ashr " in text or " = sext " in text else text


__all__ = ["known_signs"]
