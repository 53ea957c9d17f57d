"""Demangled C++ names, by the C++ runtime's own demangler."""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from typing import Protocol

from sassxlate.disasm.containers.elf import printable

# The demangler expands back references, so that a hostile name of a few kilobytes could name
# gigabytes.  Names with more of them than real code has stay mangled.
_MAX_LENGTH = 16384
_MAX_REFERENCES = 4096


class _Demangler(Protocol):
    def __call__(self, name: bytes, /) -> bytes | None: ...


@cache
def _demangler() -> _Demangler | None:
    for library in ("libstdc++.so.6", "libc++abi.so.1", "libc++.so.1"):
        try:
            return _bind(ctypes.CDLL(library), ctypes.CDLL(None))
        except (OSError, AttributeError):
            continue
    return None


def _bind(runtime: ctypes.CDLL, libc: ctypes.CDLL) -> _Demangler:
    demangler = runtime.__cxa_demangle
    demangler.restype = ctypes.c_void_p
    demangler.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    free = libc.free
    free.argtypes = [ctypes.c_void_p]
    free.restype = None

    def call(name: bytes, /) -> bytes | None:
        status = ctypes.c_int(0)
        address = demangler(name, None, None, ctypes.byref(status))
        if not address:
            return None
        try:
            return ctypes.string_at(address) if status.value == 0 else None
        finally:
            free(address)

    return call


@lru_cache(maxsize=65536)
def demangle(name: str) -> str:
    """``_Z5saxpyif`` -> ``saxpy(int, float)``; the name itself if it is not a C++ name."""
    if not name.startswith("_Z") or len(name) > _MAX_LENGTH or "\0" in name:
        return name
    if name.count("S") + name.count("T") > _MAX_REFERENCES:
        return name
    call = _demangler()
    if call is None:
        return name
    found = call(name.encode("utf-8", "surrogateescape"))
    return printable(found) if found else name
