"""The names of the cache's files: of a module, and of a kernel's host code."""

from __future__ import annotations

from sassxlate.runtime_shim.cache.store import key_of


def module_key(image: bytes, capability: int, jit: str = "") -> str:
    """The key of an image on a device of ``capability``: BLAKE2b-128 of bytes, NUL and number, and
    of NUL and the compiler's options if there are any."""
    return key_of(image, str(capability).encode(), *([jit.encode()] if jit else []))


def host_key(
    code_object: bytes,
    kernel: str,
    strict: bool,
    counts: bool = False,
    turns: bool = False,
    entered: str = "",
) -> str:
    """The key of a kernel's host code; ``entered`` as a request has it."""
    kind = b"strict" if strict else b"plain"
    name = kernel.encode("utf-8", "surrogateescape")
    kind += b" counts" * counts + b" turns" * turns
    kind += f" entered {entered}".encode() if entered else b""
    return key_of(code_object, name, kind)


__all__ = ["host_key", "module_key"]
