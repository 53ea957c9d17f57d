"""DPP controls: LLVM's text to the bits of the second word, and back.

DPP16's word: control 8:16, fi 18, bound_ctrl 19, modifiers of VOP1/VOP2/VOPC 20-23, bank_mask
24-27, row_mask 28-31, the register in 0-7 (RDNA3 ISA, section 15.4).  DPP8: 3 bits per lane from
bit 8.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from sassxlate.errors import EncodeError

_RANGES: Final = {"row_shl": 0x100, "row_shr": 0x110, "row_ror": 0x120}
_SHARES: Final = {"row_share": 0x150, "row_xmask": 0x160}
_NAMES: Final = {"row_mirror": 0x140, "row_half_mirror": 0x141}
_LIST = re.compile(r"\[\s*(\d+(?:\s*,\s*\d+)*)\s*\]")


def _bad(text: str) -> EncodeError:
    return EncodeError("SX0512", f"not a DPP control: {text!r}")


def _items(text: str) -> list[str]:
    """The blank-separated items of a control, blanks inside brackets removed."""
    return re.sub(r"\s*,\s*", ",", text).split()


def _number(text: str, low: int, high: int, whole: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        raise _bad(whole) from None
    if not low <= value <= high:
        raise _bad(whole)
    return value


def _control(item: str, whole: str) -> int | None:
    """The 9-bit control of one item, None if the item is none."""
    name, _, value = item.partition(":")
    if name == "quad_perm":
        lanes = _lanes(value, 4, 3, whole)
        return sum(lane << 2 * i for i, lane in enumerate(lanes))
    if name in _RANGES:
        return _RANGES[name] + _number(value, 1, 15, whole)
    if name in _SHARES:
        return _SHARES[name] + _number(value, 0, 15, whole)
    return _NAMES.get(item)


def _lanes(value: str, count: int, top: int, whole: str) -> list[int]:
    match = _LIST.fullmatch(value)
    lanes = [int(x) for x in match.group(1).split(",")] if match else []
    if len(lanes) != count or max(lanes) > top:
        raise _bad(whole)
    return lanes


@lru_cache(maxsize=4096)
def parse(text: str) -> tuple[int, int]:
    """(code of the source field: 250, 233 or 234; the control word without register and signs).

    Raises:
        EncodeError: SX0512, the text is not a DPP control of RDNA3.
    """
    word, code, bank, row, control = 0, 0, 15, 15, None
    for item in _items(text):
        name, _, value = item.partition(":")
        if name == "dpp8":
            lanes = _lanes(value, 8, 7, text)
            control, code = sum(lane << 3 * i for i, lane in enumerate(lanes)), 233
        elif name == "row_mask":
            row = _number(value, 0, 15, text)
        elif name == "bank_mask":
            bank = _number(value, 0, 15, text)
        elif name == "bound_ctrl":
            word |= _number(value, 1, 1, text) << 19
        elif name == "fi":
            word |= _number(value, 0, 1, text) << 18
        else:
            control, code = _control(item, text), 250
            if control is None:
                raise _bad(text)
    if control is None:
        raise _bad(text)
    if code == 233:
        return 234 if word >> 18 & 1 else 233, control << 8
    return code, word | control << 8 | bank << 24 | row << 28


def _control_text(control: int) -> str | None:
    if control < 0x100:
        return "quad_perm:[" + ",".join(str(control >> 2 * i & 3) for i in range(4)) + "]"
    for name, start in _RANGES.items():
        if start < control <= start + 15:
            return f"{name}:{control - start}"
    for name, start in _SHARES.items():
        if start <= control <= start + 15:
            return f"{name}:{control - start}"
    return next((name for name, code in _NAMES.items() if code == control), None)


@lru_cache(maxsize=4096)
def text(code: int, word: int) -> str | None:
    """LLVM's text of a control word (register and sign bits ignored); None if reserved."""
    if code != 250:
        lanes = ",".join(str(word >> 8 + 3 * i & 7) for i in range(8))
        return f"dpp8:[{lanes}]" + (" fi:1" if code == 234 else "")
    control = _control_text(word >> 8 & 0x1FF)
    if control is None or word >> 17 & 1:
        return None
    out = f"{control} row_mask:{word >> 28:#x} bank_mask:{word >> 24 & 15:#x}"
    if word >> 19 & 1:
        out += " bound_ctrl:1"
    return out + (" fi:1" if word >> 18 & 1 else "")
