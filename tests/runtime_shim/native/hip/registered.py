"""Host memory of every kind, for programs of the tests; run with tests/runtime_shim/native/hip on
the path."""

from __future__ import annotations

import ctypes
import os
import tempfile

SIZE = 65536
PAGE = 4096
NONE, READ, WRITE, EXECUTE = 0, 1, 2, 4
SHARED, PRIVATE, ANONYMOUS = 1, 2, 0x20

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def mmap(protection: int, flags: int = PRIVATE | ANONYMOUS, file: int = -1) -> int:
    """The address of SIZE bytes."""
    at = _libc.mmap(None, SIZE, protection, flags, file, 0)
    assert at != ctypes.c_void_p(-1).value, ctypes.get_errno()
    return int(at)


def munmap(at: int, size: int) -> None:
    """Takes pages away."""
    assert _libc.munmap(at, size) == 0


def mprotect(at: int, size: int, protection: int) -> None:
    """Changes what may be done with pages."""
    assert _libc.mprotect(at, size, protection) == 0


def written(protection: int | None = None, start: int = 0) -> int:
    """Memory full of 3, protected from ``start`` on."""
    at = mmap(READ | WRITE)
    ctypes.memset(at, 3, SIZE)
    if protection is not None:
        mprotect(at + start, SIZE - start, protection)
    return at


def opened(size: int, mode: int) -> int:
    """A descriptor of a file of 3s."""
    handle, name = tempfile.mkstemp()
    os.write(handle, b"\3" * size)
    os.close(handle)
    file = os.open(name, mode)
    os.unlink(name)
    return file


def without(offset: int, size: int) -> int:
    """Memory of which pages are gone."""
    at = written()
    munmap(at + offset, size)
    return at


def memfd() -> int:
    """A file in memory, shared."""
    file = os.memfd_create("registered")
    os.ftruncate(file, SIZE)
    return mmap(READ | WRITE, SHARED, file)


KINDS = {
    "written": lambda: (written(), SIZE),
    "untouched": lambda: (mmap(READ | WRITE), SIZE),
    "odd": lambda: (written() + 100, SIZE - 300),
    "protected against writing": lambda: (written(READ), SIZE),
    "read-only and untouched": lambda: (mmap(READ), SIZE),
    "no access": lambda: (written(NONE), SIZE),
    "write-only": lambda: (written(WRITE), SIZE),
    "executable": lambda: (written(READ | EXECUTE), SIZE),
    "unmapped": lambda: (without(0, SIZE), SIZE),
    "tail unmapped": lambda: (without(SIZE // 2, SIZE // 2), SIZE),
    "head unmapped": lambda: (without(0, SIZE // 2), SIZE),
    "hole": lambda: (without(SIZE // 2, PAGE), SIZE),
    "tail protected against writing": lambda: (written(READ, SIZE // 2), SIZE),
    "tail without access": lambda: (written(NONE, SIZE // 2), SIZE),
    "private file, read": lambda: (mmap(READ, PRIVATE, opened(SIZE, os.O_RDONLY)), SIZE),
    "private file, written": lambda: (mmap(READ | WRITE, PRIVATE, opened(SIZE, os.O_RDONLY)), SIZE),
    "shared file, read": lambda: (mmap(READ, SHARED, opened(SIZE, os.O_RDONLY)), SIZE),
    "past the end of a file": lambda: (
        mmap(READ | WRITE, SHARED, opened(SIZE // 2, os.O_RDWR)),
        SIZE,
    ),
    "memfd": lambda: (memfd(), SIZE),
    "shared anonymous": lambda: (mmap(READ | WRITE, SHARED | ANONYMOUS), SIZE),
    "null": lambda: (0, SIZE),
    "low address": lambda: (0x1000, SIZE),
    "the system's half": lambda: (0xFFFF888000000000, SIZE),
    "no canonical address": lambda: (0x0123456789ABC000, SIZE),
    "around the end": lambda: ((1 << 64) - PAGE, 2 * PAGE),
}
