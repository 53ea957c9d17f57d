"""The valid messages to the service: anything else is answered with SX0903 and has no effect.

Paths are bytes, and JSON has text: a byte that is not UTF-8 is a lone surrogate, U+DC80 to U+DCFF,
on the wire as in Python (PEP 383), whatever the locale's encoding of names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from sassxlate.errors import ServiceError
from sassxlate.llm.engine.choose import TIER
from sassxlate.runtime_shim.ptx.options import KINDS, TEXT_MAX, Kind, parse_options
from sassxlate.runtime_shim.service.wire import FRAME_MAX

_INPUTS_MAX = 1024
_SHAPES_MAX = 1 << 16
PATH_MAX = 4096  # bytes, limits.h
_KEY = re.compile(r"[0-9a-f]{32}")
_BYTES = re.compile(r"(?:[0-9a-f]{2})+")
_ENTERED_MAX = 1 << 20
_SHOWN = 40


def checked(message: Mapping[str, Any]) -> dict[str, Any]:
    """The known fields of a message, validated.

    Raises:
        ServiceError: SX0903, a field of the wrong type, too long, or with characters that no name
        has.
    """
    return {name: see(name, message[name]) for name, see in _FIELDS.items() if name in message}


def path_of(text: str) -> Path:
    """The path in a message."""
    return Path(os.fsdecode(text.encode("utf-8", "surrogateescape")))


def text_of(path: Path) -> str:
    """A path in the form of a message."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")


def _fail(name: str, value: object, what: str) -> ServiceError:
    kind = type(value).__name__
    shown = ascii(value)[:_SHOWN] if isinstance(value, (str, int, float, bool)) else f"a {kind}"
    return ServiceError("SX0903", f"the request's {name!r} is {what}: {shown}")


def _text(name: str, value: object, most: int) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise _fail(name, value, "not a text")
    try:
        size = len(value.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise _fail(name, value, "not a text") from None
    if size > most:
        raise _fail(name, value, "too long")
    return value


def _path(name: str, value: object) -> str:
    return _text(name, value, PATH_MAX)


def _name(name: str, value: object) -> str:
    # A worker receives it in ASCII, six characters for one.
    return _text(name, value, FRAME_MAX // 8)


def _key(name: str, value: object) -> str:
    text = _text(name, value, PATH_MAX)
    if not _KEY.fullmatch(text):
        raise _fail(name, value, "no key of a module")
    return text


def _number(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1000:
        raise _fail(name, value, "not a number")
    return value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, (bool, type(None))):
        raise _fail(name, value, "neither true nor false")
    return bool(value)


def _tier(name: str, value: object) -> str:
    if value not in TIER:
        raise _fail(name, value, "no engine of whole kernels")
    return str(value)


def _options(name: str, value: object) -> str:
    text = _text(name, value, TEXT_MAX)
    parse_options(text)
    return text


def _inputs(name: str, value: object) -> list[str]:
    """Pieces to link, each as ``KIND PATH<tab>NAME``; see :func:`input_of`."""
    if not isinstance(value, list):
        raise _fail(name, value, "no list")
    given = cast("list[object]", value)
    if not 0 < len(given) <= _INPUTS_MAX:
        raise _fail(name, len(given), "no list of pieces, by its length")
    items = [_text(name, item, 2 * PATH_MAX) for item in given]
    for item in items:
        input_of(item)
    return items


def input_of(text: str) -> tuple[Kind, Path, str]:
    """Kind, file and the application's own name of a piece; ServiceError SX0903."""
    kind, _, rest = text.partition(" ")
    path, _, name = rest.partition("\t")
    known = KINDS.get(kind)
    if known is None or not path:
        raise _fail("inputs", text, "no piece")
    return known, path_of(path), name


def _shapes(name: str, value: object) -> list[str]:
    """Shapes of instructions, each as 32 hexadecimal digits; see `stencils.known`."""
    if not isinstance(value, list):
        raise _fail(name, value, "no list")
    given = cast("list[object]", value)
    if not 0 < len(given) <= _SHAPES_MAX:
        raise _fail(name, len(given), "no list of shapes, by its length")
    return [_key(name, item) for item in given]


def _entered(name: str, value: object) -> str:
    """The blocks of a kernel that have been entered: two hexadecimal digits for each eight."""
    text = _text(name, value, _ENTERED_MAX)
    if not _BYTES.fullmatch(text):
        raise _fail(name, value, "no set of blocks")
    return text


_FIELDS: dict[str, Callable[[str, object], object]] = {
    "op": _name,
    "tag": _name,
    "target": _name,
    "image": _path,
    "code_object": _path,
    "module": _key,
    "kernel": _name,
    "engine": _tier,
    "cc": _number,
    "jit": _options,
    "environment": _name,
    "inputs": _inputs,
    "shapes": _shapes,
    "strict": _flag,
    "counts": _flag,
    "turns": _flag,
    "background": _flag,
    "quick": _flag,
    "ready": _flag,
    "entered": _entered,
}

__all__ = ["PATH_MAX", "checked", "input_of", "path_of", "text_of"]
