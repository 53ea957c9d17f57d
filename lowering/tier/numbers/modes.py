"""Changes of the mode for single instructions: of the rounding, and whether denormal binary32
numbers are flushed.

An instruction is given the mode that it needs, or ``OTHER``: it flushes denormal numbers in a
function that keeps them, and keeps them in one that flushes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

NEAREST: Final = 0  # the function's own mode
OTHER: Final = 1 << 4  # below, a mode is what s_round_mode takes
# What s_denorm_mode takes: bits 1:0 are for binary32, 3:2 for doubles and halves.
_KEEPS, _FLUSHES = 0xF, 0xC

# Instructions that do the same in every mode: those on integers and bits, moves, and accesses to
# memory that compute nothing.
_BLIND: Final = re.compile(
    r"""v_(dual_)?(
          (and|or|xor|xnor|not|and_or|or3|xor3|xad|lshl|lshlrev|lshrrev|ashrrev|lshl_or|lshl_add
            |add_lshl|bfe|bfi|bfm|perm|alignbit|alignbyte|mov|cndmask|readlane|writelane
            |readfirstlane|mbcnt_lo|mbcnt_hi|bcnt|clz|ctz|cls|bfrev|swap)_[a-z]+\d+(_[a-z]+\d+)?
        | (add_nc|sub_nc|subrev_nc|add3|add_co|sub_co|subrev_co|add_co_ci|sub_co_ci|subrev_co_ci
            |mul_lo|mul_hi|mad|min|max|min3|max3|med3|cmp_[a-z]+|cmpx_[a-z]+)_[uib]\d+
            (_[uib]\d+)?
        | mul_[uib]32_[uib]24 | mad_[uib]64_[uib]32 | cmp_[ou]_f32 | nop
        )(_e32|_e64)?
      | s_(?!cbranch|branch|call|setpc|swappc|rfe|endpgm|trap|setreg|round_mode|denorm_mode|barrier
            |subvector|sethalt|getreg|[a-z0-9_]*f16|[a-z0-9_]*f32).*
      | (global|flat|scratch|buffer)_(load|store)_.*
      | ds_(load|store|read|write)[0-9x]*_.*
      | ds_(bpermute|permute|swizzle)_b32
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Change:
    """A scalar instruction that sets a mode."""

    name: str
    value: int

    @property
    def text(self) -> str:
        return f"{self.name} {self.value:#x}"


def entered(mode: int, *, flushes: bool) -> Change:
    """What sets a mode, in a function that ``flushes`` denormal binary32 numbers or keeps them."""
    if mode == OTHER:
        return Change("s_denorm_mode", _KEEPS if flushes else _FLUSHES)
    return Change("s_round_mode", mode)


def left(mode: int, *, flushes: bool) -> Change:
    """What sets the function's own mode after it."""
    if mode == OTHER:
        return Change("s_denorm_mode", _FLUSHES if flushes else _KEEPS)
    return Change("s_round_mode", NEAREST)


def blind(*names: str) -> bool:
    """Whether an instruction, by its name, or two that are issued together, does the same in every
    mode."""
    return all(map(_blind, names))


@lru_cache(4096)
def _blind(name: str) -> bool:
    return _BLIND.fullmatch(name) is not None


__all__ = ["NEAREST", "OTHER", "Change", "blind", "entered", "left"]
