"""What a printf copies: a model of its format, written after C's rules and an H200's output.

A text is the format's bytes; each string that is not null follows its conversion, with a 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sassxlate.lowering.abi.hostcalls import ARGUMENTS

_CONVERSION = re.compile(
    rb"%(?:%|(?P<flags>[-+ #0-9.*]*)(?P<length>[hljztL]*)(?P<letter>.?))", re.DOTALL
)
_ALPHABET = [
    *([b"%"] * 3), *b"s s d l * . 3 0 17 c f p h z L x y G text \n \xff".split(b" "), b" ",
    *b"%s %s %.2s %.s %5.9s %*d %.*s %lld %zu %% %hhx %-5s".split(),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Printed:
    text: bytes
    used: int  # bytes of arguments
    count: int  # conversions


def printed(form: bytes, arguments: bytes | None, string_at: Callable[[int], bytes]) -> Printed:
    """``form`` without its 0; ``arguments``: 256 bytes, None for a null pointer."""
    out, used, count, done = bytearray(), 0, 0, 0

    def take(size: int) -> int:
        nonlocal used
        at = -(-used // size) * size
        used = at + size
        given = (arguments or b"")[at : at + size]
        return int.from_bytes(given, "little") if used <= ARGUMENTS else 0

    for found in _CONVERSION.finditer(form):
        out += form[done : found.end()]
        done = found.end()
        if found["letter"] is None:
            continue
        flags, length, letter = found["flags"], found["length"], found["letter"]
        for n, flag in enumerate(flags):
            if flag == ord("*") and flags[n - 1 : n] != b".":
                take(4)
        if b".*" in flags or set(length) & set(b"jztL"):
            continue
        if not letter or letter not in b"diuoxXeEfFgGaApsc":
            continue
        count += 1
        wide = letter in b"eEfFgGaAps" or (b"l" in length and letter in b"diuoxX")
        value = take(8 if wide else 4)
        if letter == b"s" and value:
            most = 65535
            if b"." in flags:
                digits = flags.rsplit(b".", 1)[1]
                most = int(b"0" + bytes(x for x in digits if x in b"0123456789"))
            out += string_at(value)[: min(most, 65535)] + b"\0"
    return Printed(bytes(out + form[done:] + b"\0"), used, count)


def formats(random: np.random.Generator, number: int) -> list[bytes]:
    """Random ones, and the shapes that matter."""
    fixed = [
        b"", b"plain", b"%d and %5.2f%%, %s", b"%", b"%d%", b"%5%%s", b"%s%s%s", b"%*s|%.*s|%s",
        b"%.s|%.0s|%.1s|%.3s", b"%l", b"%ls%5", b"%.99999999999999s", b"%" + b"1" * 90 + b"s",
        b"%d%s" * 20, b"%f" * 31 + b"%s", b"%f" * 32 + b"%s",
    ]  # fmt: skip
    while len(fixed) < number:
        size = int(random.integers(1, 16))
        places: list[int] = random.integers(0, len(_ALPHABET), size).tolist()
        fixed.append(b"".join(_ALPHABET[n] for n in places))
    return fixed[:number]
