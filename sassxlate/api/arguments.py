"""Python values as the bytes of a kernel's parameters."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sassxlate.errors import UsageError, Where

if TYPE_CHECKING:
    from sassxlate.api.binary import Kernel, Parameter

_FLOATS = {2: "e", 4: "f", 8: "d"}
_C_FLOATS = ("float", "double", "__half")


def packed(kernel: Kernel, values: Sequence[Any]) -> list[bytes]:
    """Each argument as its parameter's bytes.

    A Python int or bool becomes an integer of the parameter's size, a float a floating-point number
    of it; where the kernel's name says the parameter's type, an int for a float or double becomes
    one, and a number for any other type that it does not fit is an error.  NumPy scalars must have
    the size, and be integers or floating-point numbers as the type is; ctypes values and bytes must
    have the size.  What has an attribute ``handle`` is a pointer.

    Raises UsageError SX0881: the wrong number of arguments, or one that does not fit.
    """
    parameters = kernel.parameters
    where = Where(kernel.file, kernel.name)
    if len(values) != len(parameters):
        text = f"{len(parameters)} arguments are needed, {len(values)} are given"
        raise UsageError("SX0881", text, where)
    out: list[bytes] = []
    for number, (parameter, value) in enumerate(zip(parameters, values, strict=True)):
        try:
            out.append(_bytes(parameter, value))
        except (ValueError, OverflowError, struct.error) as error:
            kind = f" ({parameter.type})" if parameter.type else ""
            text = f"argument {number}{kind} of {parameter.size} bytes: {error}"
            raise UsageError("SX0881", text, where) from None
    return out


def _bytes(parameter: Parameter, value: Any) -> bytes:
    size, kind = parameter.size, parameter.type.removeprefix("const ").removesuffix(" const")
    handle = getattr(value, "handle", None)
    if handle is not None:
        value = int(handle)
        if kind and "*" not in kind and kind not in ("unsigned long", "long", "unsigned long long"):
            raise ValueError("a buffer is given for what is no pointer")
    data = _own_bytes(value, kind)
    if data is not None:
        if len(data) != size:
            raise ValueError(f"{type(value).__name__} has {len(data)}")
        return data
    if isinstance(value, float) or (isinstance(value, int) and kind in _C_FLOATS):
        if (kind and kind not in _C_FLOATS) or size not in _FLOATS:
            raise ValueError(f"{value!r} is no value of it")
        return struct.pack(f"<{_FLOATS[size]}", value)
    if isinstance(value, int):  # bool is one
        if (kind and not _is_integer(kind)) or size not in (1, 2, 4, 8):
            raise ValueError("an int is no value of it: NumPy scalars and bytes say what it is")
        if kind == "bool" and value not in (0, 1):
            raise ValueError(f"{value} is no truth value")
        return value.to_bytes(size, "little", signed=value < 0)
    raise ValueError(f"{type(value).__name__} is not a number, buffer, bytes or ctypes value")


def _own_bytes(value: Any, kind: str) -> bytes | None:
    """The bytes of a value that has a size of its own; otherwise None."""
    if isinstance(value, np.generic):
        scalar = cast("Any", value)
        floating = isinstance(value, np.floating)
        if (kind in _C_FLOATS and not floating) or (_is_integer(kind) and floating):
            raise ValueError(f"{value!r} is no value of it")
        return bytes(scalar.tobytes())
    if isinstance(value, bytes):
        return value
    if hasattr(value, "_b_base_"):  # of ctypes
        return bytes(memoryview(value))
    return None


_INTEGERS = {"bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int",
          "unsigned int", "long", "unsigned long", "long long", "unsigned long long"}  # fmt: skip


def _is_integer(kind: str) -> bool:
    """Whether a type is an integer or a pointer."""
    return kind in _INTEGERS or kind.endswith("*")


__all__ = ["packed"]
