"""A small user of /dev/kfd, as AMD's runtime is one: run under the emulated card's library.

Arguments: a code object, and what to do.  It writes what it finds as JSON.  The structures are the
kernel's (include/uapi/linux/kfd_ioctl.h) and HSA's.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any

GPU = 0x5358
PAGE = 4096
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
]
PROT_NONE, PROT_RW = 0, 3
MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS = 2, 0x10, 0x20


class Card:
    """/dev/kfd, open."""

    def __init__(self) -> None:
        self.fd = os.open("/dev/kfd", os.O_RDWR | os.O_CLOEXEC)
        self.handles: list[int] = []

    def ask(self, number: int, form: str, *values: int) -> tuple[Any, ...]:
        """An ioctl: its structure after the call."""
        data = bytearray(struct.pack(form, *values))
        request = 3 << 30 | len(data) << 16 | ord("K") << 8 | number
        fcntl.ioctl(self.fd, request, data, True)
        return struct.unpack(form, data)

    def memory(self, size: int, *, mapped: bool = True) -> int:
        """Memory of the card: its address, which is this process's too."""
        size = -(-size // PAGE) * PAGE
        at = libc.mmap(None, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        args = self.ask(0x16, "<4Q2I", at, size, 0, 0, GPU, 1)
        self.handles.append(args[2])
        if mapped:
            self.ask(0x18, "<2Q2I", args[2], 0, 1, 0)
        return int(at)

    def event(self, kind: int = 0) -> int:
        return int(self.ask(0x08, "<Q6I", 0, 0, kind, 1, 0, 0, 0)[5])

    def wait(self, event: int, milliseconds: int) -> tuple[int, bytes]:
        """0, or 1 if the time was over; and the event's data."""
        data = ctypes.create_string_buffer(struct.pack("<4Q", 0, 0, 0, 0) + bytes(16))
        struct.pack_into("<I", data, 40, event)
        args = self.ask(0x0C, "<Q4I", ctypes.addressof(data), 1, 1, milliseconds, 9)
        return int(args[4]), data.raw

    def signal(self, event: int) -> int:
        """A signal of value 1 that tells through an event."""
        at, mailbox = self.memory(PAGE), self.memory(PAGE)
        put(at, "<qqQIIQQ", 1, 1, mailbox, event, 0, 0, 0)
        return at


def put(at: int, form: str, *values: Any) -> None:
    data = struct.pack(form, *values)
    ctypes.memmove(at, data, len(data))


def get(at: int, form: str) -> tuple[Any, ...]:
    return struct.unpack(form, ctypes.string_at(at, struct.calcsize(form)))


class Queue:
    """An AQL queue of 16 packets."""

    def __init__(self, card: Card, error_event: int = 0) -> None:
        self.card = card
        self.ring, self.pointers = card.memory(PAGE), card.memory(PAGE)
        self.save, self.error = card.memory(PAGE), card.memory(PAGE)
        put(self.save, "<6IQII", 0, 0, 0, 0, 0, 0, self.error, error_event, 0)
        for slot in range(16):
            put(self.ring + 64 * slot, "<H", 1)
        write, read = self.pointers, self.pointers + 64
        sizes = (1024, GPU, 2, 100, 7, 0)
        args = card.ask(
            *(0x02, "<4Q6I3Q4I", self.ring, write, read, 0, *sizes, 0, 0, self.save, 0, 0, 0, 0)
        )
        self.number = int(args[9])
        self.written = 0

    def push(self, body: bytes, kind: int) -> None:
        at = self.ring + 64 * (self.written % 16)
        ctypes.memmove(at + 2, body[2:], 62)
        self.written += 1
        put(self.pointers, "<Q", self.written)
        put(at, "<H", kind)

    def dispatch(
        self, kernel: int, kernarg: int, groups: int, signal: int, threads: int = 32
    ) -> None:
        body = struct.pack(
            *("<HHHHHHIIIIIQQQQ", 0, 1, threads, 1, 1, 0, groups * 32, 1, 1, 0, 0),
            *(kernel, kernarg, 0, signal),
        )
        self.push(body, 2)

    def barrier(self, awaited: int, signal: int) -> None:
        self.push(struct.pack("<HHI5QQQ", 0, 0, 0, awaited, 0, 0, 0, 0, 0, signal), 3)


def load(card: Card, code: bytes) -> tuple[int, int]:
    """The code object in the card's memory and in the list of loaded ones: where it is, and the
    address of its only descriptor."""
    offset, count = struct.unpack_from("<Q14xH", code, 32)[0], struct.unpack_from("<H", code, 56)[0]
    headers = [struct.unpack_from("<IIQQQQQQ", code, offset + 56 * n) for n in range(count)]
    loads = [header for header in headers if header[0] == 1]
    base = card.memory(max(header[3] + header[6] for header in loads))
    for header in loads:
        ctypes.memmove(base + header[3], code[header[2] : header[2] + header[5]], header[5])
    card.kept = kept = ctypes.create_string_buffer(code, len(code))  # type: ignore[attr-defined]
    uri = f"memory://{os.getpid()}#offset={ctypes.addressof(kept):#x}&size={len(code)}"
    text = ctypes.create_string_buffer(uri.encode())
    link = card.memory(PAGE)
    card.text = text  # type: ignore[attr-defined]
    put(link + 64, "<5Q", base, ctypes.addressof(text), 0, 0, 0)
    put(link, "<iiQQii", 10, 0, link + 64, 0, 0, 0)
    card.ask(0x25, "<QII", link, 1, 0)
    return base, base + int(sys.argv[3])


def finished(card: Card, signal: int, event: int) -> int:
    """The signal's value once it has been told of, or after ten seconds."""
    card.wait(event, 10000)
    return int(get(signal + 8, "<q")[0])


def version(card: Card) -> dict[str, Any]:
    apertures = ctypes.create_string_buffer(56)
    count = card.ask(0x14, "<QII", ctypes.addressof(apertures), 1, 0)[1]
    topology = "/sys/devices/virtual/kfd/kfd/topology"
    return {
        "version": card.ask(0x01, "<II", 0, 0),
        "nodes": count,
        "apertures": struct.unpack("<6QII", apertures.raw),
        "node": dict(line.split() for line in open_c(f"{topology}/nodes/1/properties")),
    }


def open_c(path: str) -> list[str]:
    """The lines of a file that the C library opens."""
    libc.fopen.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(libc.fopen(path.encode(), b"r"))
    buffer = ctypes.create_string_buffer(1 << 16)
    libc.fread(buffer, 1, len(buffer) - 1, stream)
    libc.fclose(stream)
    return buffer.value.decode().splitlines()


def run(card: Card, code: bytes) -> dict[str, Any]:
    _, kernel = load(card, code)
    event = card.event()
    first, second = card.signal(event), card.signal(event)
    held = card.signal(event)
    queue, other = Queue(card), Queue(card)
    out, kernarg = card.memory(PAGE), card.memory(PAGE)
    put(kernarg, "<Q", out)
    other.barrier(held, second)  # waits for the other queue's kernel
    waits = card.wait(event, 50)[0], get(second + 8, "<q")[0]
    queue.dispatch(kernel, kernarg, 2, held)
    queue.barrier(0, first)
    deadline = time.monotonic() + 30
    while get(second + 8, "<q")[0] and time.monotonic() < deadline:
        card.wait(event, 100)
    values = list(get(out, "<64I"))
    times = get(held + 32, "<QQ")
    card.ask(0x03, "<II", queue.number, 0)
    card.ask(0x03, "<II", other.number, 0)
    signals = [get(at + 8, "<q")[0] for at in (held, first, second)]
    return {"waits": waits, "values": values, "signals": signals, "times": times}


def fault(card: Card, code: bytes) -> dict[str, Any]:
    """A kernel that stores to memory which is not mapped to the card."""
    _, kernel = load(card, code)
    told, memory_event, event = card.event(), card.event(8), card.event()
    queue = Queue(card, told)
    out, kernarg = card.memory(PAGE, mapped=False), card.memory(PAGE)
    put(kernarg, "<Q", out)
    signal = card.signal(event)
    queue.dispatch(kernel, kernarg, 1, signal)
    result, data = card.wait(memory_event, 30000)
    card.wait(told, 30000)
    return {
        "result": result,
        "not_present": struct.unpack_from("<I", data)[0],
        "address": struct.unpack_from("<Q", data, 16)[0],
        "wanted": out,
        "exception": get(queue.error, "<Q")[0],
        "signal": get(signal + 8, "<q")[0],
    }


def bad(card: Card, code: bytes) -> dict[str, Any]:
    """What is refused: each ioctl's error number, and each packet's exception."""
    _, kernel = load(card, code)

    def error(number: int, form: str, *values: int) -> int:
        try:
            card.ask(number, form, *values)
        except OSError as problem:
            return problem.errno or 0
        return 0

    def exception(*arguments: int) -> int:
        told = card.event()
        queue = Queue(card, told)
        queue.dispatch(*arguments)
        card.wait(told, 30000)
        return int(get(queue.error, "<Q")[0])

    out, kernarg = card.memory(PAGE), card.memory(PAGE)
    put(kernarg, "<Q", out)
    return {
        "unknown": error(0x7E, "<II", 0, 0),
        "odd_size": error(0x16, "<4Q2I", 0, 5, 0, 0, GPU, 1),
        "other_card": error(0x16, "<4Q2I", 0, PAGE, 0, 0, 1, 1),
        "handle": error(0x18, "<2Q2I", 999, 0, 1, 0),
        "event": error(0x0A, "<II", 999, 0),
        "queue": error(0x03, "<II", 999, 0),
        "too_much": error(0x16, "<4Q2I", 0, 1 << 50, 0, 0, GPU, 1),
        "no_kernel": exception(out, kernarg, 1, 0),
        "part": exception(kernel, kernarg, 1, 0, 24),
        "threads": exception(kernel, kernarg, 64, 0, 2048),
        "arguments": exception(kernel, card.memory(PAGE, mapped=False), 1, 0),
    }


def twice(card: Card, code: bytes) -> dict[str, Any]:
    """The same kernel runs again after its code in memory was changed: not the old code."""
    base, kernel = load(card, code)
    told = card.event()
    queue = Queue(card, told)
    out, kernarg, event = card.memory(PAGE), card.memory(PAGE), card.event()
    put(kernarg, "<Q", out)
    signal = card.signal(event)
    queue.dispatch(kernel, kernarg, 1, signal)
    first = finished(card, signal, event)
    ctypes.memset(base + int(sys.argv[4]), 0, 4)
    queue.dispatch(kernel, kernarg, 1, card.signal(event))
    card.wait(told, 30000)
    return {"first": first, "exception": get(queue.error, "<Q")[0]}


def shown(card: Card) -> dict[str, Any]:
    """Memory without an address: exported, imported as libdrm has it, and given one."""
    handle = card.ask(0x16, "<4Q2I", 0, 2 * PAGE, 0, 0, GPU, 1)[2]
    fd = card.ask(0x24, "<QII", handle, 0, 0)[2]
    size = card.ask(0x1C, "<QQ4I", 0, 0, 0, 0, 0, fd)[0]
    with mmap.mmap(fd, size) as view:
        view[PAGE : PAGE + 3] = b"abc"
    render = os.open("/dev/dri/renderD128", os.O_RDWR)
    device, words = ctypes.c_void_p(), (ctypes.c_uint32 * 2)()
    libc.amdgpu_device_initialize(render, words, ctypes.byref(words, 4), ctypes.byref(device))
    found = (ctypes.c_uint64 * 2)()
    imported = libc.amdgpu_bo_import(device, 2, fd, found)
    buffer = ctypes.c_void_p(found[0])
    at = libc.mmap(None, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    place = (ctypes.c_uint64(PAGE), ctypes.c_uint64(PAGE), ctypes.c_uint64(at), ctypes.c_uint64(6))
    mapped = libc.amdgpu_bo_va_op(buffer, *place, 1)
    text = ctypes.string_at(at, 3).decode()
    return {
        "size": size,
        "codes": [imported, mapped, libc.amdgpu_bo_va_op(buffer, *place, 1)],
        "text": text,
        "hidden": libc.amdgpu_bo_va_op(buffer, *place, 2),
    }


def main() -> None:
    card = Card()
    what = globals()[sys.argv[2]]
    code = Path(sys.argv[1]).read_bytes()
    result = what(card) if what in (version, shown) else what(card, code)
    print(json.dumps(result))
    assert mmap.PAGESIZE == PAGE


if __name__ == "__main__":
    main()
