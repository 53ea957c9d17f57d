"""A dispatch's memory in this process, at the addresses that it had; and what became of it."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass

from tools.witness.executor.record import PAGE, Dispatch

_FIXED_NOREPLACE, _NORESERVE = 0x100000, 0x4000
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]


class TakenError(Exception):
    """This process already has something at an address; another one may not."""


@dataclass(frozen=True, slots=True)
class WordThatDiffers:
    """A 32-bit word of memory after a dispatch, by our executor and by the other."""

    address: int
    ours: int
    theirs: int


def place(dispatch: Dispatch) -> None:
    """Map the dispatch's ranges and fill them.  Raises `TakenError`.

    To be called before anything large is imported: what is mapped later stays out of the way.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_NOREPLACE | _NORESERVE
    end = 0
    for one in sorted(dispatch.ranges, key=lambda r: r.begin):
        begin = max(one.begin & -PAGE, end)
        end = max(end, one.end + PAGE - 1 & -PAGE)
        if begin >= end:
            continue
        got = _libc.mmap(begin, end - begin, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if got != begin:
            raise TakenError(f"0x{begin:x}")
    for address, page in dispatch.before.items():
        ctypes.memmove(address, page, PAGE)


def differences(dispatch: Dispatch) -> list[WordThatDiffers]:
    """The words of memory that are not as our executor left them.

    The host writes meanwhile, too: into the queue, whose range is left out, and into signals and
    other host memory.  There a word that the other executor left as it was is not compared.
    """
    wanted = {**dispatch.before, **dispatch.changed}
    zero = bytes(PAGE)
    out: list[WordThatDiffers] = []
    with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
        for one in dispatch.ranges:
            if one.begin <= dispatch.address < one.end:
                continue
            begin, count = one.begin & -PAGE, (one.end - (one.begin & -PAGE) + PAGE - 1) // PAGE
            pagemap.seek(begin // PAGE * 8)
            entries = memoryview(pagemap.read(8 * count)).cast("Q")
            for i, entry in enumerate(entries):
                address = begin + i * PAGE
                if not entry >> 62 and address not in wanted:
                    continue
                ours, theirs = wanted.get(address, zero), ctypes.string_at(address, PAGE)
                if ours == theirs:
                    continue
                a, b = memoryview(ours).cast("I"), memoryview(theirs).cast("I")
                then = memoryview(dispatch.before.get(address, zero)).cast("I")
                out += [
                    WordThatDiffers(address + 4 * k, a[k], b[k])
                    for k in range(PAGE // 4)
                    if a[k] != b[k] and not (one.host_memory and b[k] == then[k])
                ]
    return out
