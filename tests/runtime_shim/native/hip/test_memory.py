"""Device memory, host memory and copies of the emulated device."""

from __future__ import annotations

import ctypes
import random
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p

import pytest

from .hip_api import Hip

MIB = 1 << 20


def test_small_allocations_lie_512_bytes_apart(hip: Hip) -> None:
    pointers = [hip.malloc(1) for _ in range(4)]
    assert all(p % 512 == 0 for p in pointers)
    assert len(set(pointers)) == 4
    assert max(pointers) - min(pointers) == 3 * 512
    assert [hip.free(p) for p in pointers] == [0] * 4


def test_zero_bytes_are_a_null_pointer(hip: Hip) -> None:
    assert hip.malloc(0) == 0
    assert hip.free(0) == 0


def test_double_free_and_foreign_pointers_are_invalid(hip: Hip) -> None:
    pointer = hip.malloc(1000)
    assert hip.free(pointer + 8) == 1
    assert hip.free(pointer) == 0
    assert hip.free(pointer) == 1
    assert hip.free(0x1234) == 1
    pinned = hip.host_malloc(100)
    assert hip.free(pinned) == 1
    assert hip.hipHostFree(c_void_p(pinned)) == 0


def test_memory_is_accounted_and_runs_out(hip: Hip) -> None:
    def info() -> tuple[int, int]:
        free, total = c_size_t(), c_size_t()
        hip.ok("hipMemGetInfo", byref(free), byref(total))
        return free.value, total.value

    before, total = info()
    assert total == 256 * MIB
    pointer = hip.malloc(64 * MIB)
    assert before - info()[0] >= 64 * MIB
    failed = c_void_p(1)
    assert hip.hipMalloc(byref(failed), c_size_t(total)) == 2
    assert not failed.value
    assert hip.hipMalloc(byref(failed), c_size_t(1 << 62)) == 2
    assert hip.hipGetLastError() == 2
    assert hip.hipGetLastError() == 0
    assert hip.free(pointer) == 0
    assert info()[0] == before


def test_copies_round_trip_and_device_addresses_are_the_hosts(hip: Hip) -> None:
    data = random.Random(1).randbytes(100_000)
    pointer = hip.malloc(len(data))
    hip.write(pointer, data)
    assert ctypes.string_at(pointer, len(data)) == data
    assert hip.read(pointer + 5, 1000) == data[5:1005]
    other = hip.malloc(len(data))
    hip.ok("hipMemcpyDtoD", c_void_p(other), c_void_p(pointer), c_size_t(len(data)))
    assert hip.read(other, len(data)) == data
    hip.free(pointer)
    hip.free(other)


def test_overruns_are_invalid_and_the_kind_is_a_hint(hip: Hip) -> None:
    pointer, host = hip.malloc(1000), ctypes.create_string_buffer(2000)
    assert hip.hipMemcpyHtoD(c_void_p(pointer), host, c_size_t(1001)) == 1
    assert hip.hipMemcpyDtoH(host, c_void_p(pointer + 999), c_size_t(2)) == 1
    assert hip.hipMemcpy(c_void_p(pointer), host, c_size_t(1000), 4) == 0
    assert hip.hipMemcpy(c_void_p(pointer), c_void_p(pointer), c_size_t(10), 1) == 0
    assert hip.hipMemcpyHtoD(host, host, c_size_t(10)) == 1  # no device memory there
    assert hip.hipMemcpy(c_void_p(pointer), None, c_size_t(10), 1) == 1
    assert hip.hipMemcpy(c_void_p(pointer), None, c_size_t(0), 1) == 0
    assert hip.hipMemcpy(c_void_p(pointer), host, c_size_t(10), 9) == 1
    hip.free(pointer)
    assert hip.hipMemcpyDtoH(host, c_void_p(pointer), c_size_t(1)) == 1


def test_two_dimensional_copies_and_fills(hip: Hip) -> None:
    pitch, pointer = c_size_t(), c_void_p()
    hip.ok("hipMallocPitch", byref(pointer), byref(pitch), c_size_t(100), c_size_t(8))
    assert pitch.value == 512
    assert pointer.value
    source = bytes(range(200)) * 4
    hip.ok("hipMemset2D", pointer, pitch, 0xEE, c_size_t(100), c_size_t(8))
    hip.ok("hipMemcpy2D", pointer, pitch, source, c_size_t(100), c_size_t(60), c_size_t(8), 1)
    rows = [hip.read(pointer.value + 512 * i, 100) for i in range(8)]
    for i, row in enumerate(rows):
        assert row == source[100 * i : 100 * i + 60] + b"\xee" * 40
    narrow = c_size_t(50)
    assert (
        hip.hipMemcpy2D(pointer, narrow, source, c_size_t(100), c_size_t(60), c_size_t(8), 1) == 1
    )
    huge = c_size_t(1 << 63)
    assert hip.hipMemcpy2D(pointer, huge, source, huge, c_size_t(60), c_size_t(8), 1) == 1
    hip.free(pointer.value)


@pytest.mark.parametrize(
    ("name", "value", "pattern"),
    [
        ("hipMemsetD8", 0xAB, b"\xab"),
        ("hipMemsetD16", 0x1234, b"\x34\x12"),
        ("hipMemsetD32", 0x12345678, b"\x78\x56\x34\x12"),
    ],
)
def test_fills(hip: Hip, name: str, value: int, pattern: bytes) -> None:
    pointer = hip.malloc(4096)
    hip.ok("hipMemset", c_void_p(pointer), 0, c_size_t(4096))
    hip.ok(name, c_void_p(pointer + 4), value, c_size_t(10))
    expected = bytes(4) + pattern * 10 + bytes(4)
    assert hip.read(pointer, len(expected)) == expected
    assert getattr(hip, name)(c_void_p(pointer), value, c_size_t(4097)) == 1
    if len(pattern) > 1:
        assert getattr(hip, name)(c_void_p(pointer + 1), value, c_size_t(1)) == 1
    hip.ok(name + "Async", c_void_p(pointer), value, c_size_t(3), None)
    assert hip.read(pointer, 3 * len(pattern)) == pattern * 3
    hip.free(pointer)


def test_registration_of_host_memory(hip: Hip) -> None:
    buffer = ctypes.create_string_buffer(1 << 16)
    at = ctypes.addressof(buffer)
    assert hip.hipHostRegister(c_void_p(at), c_size_t(1 << 16), 0) == 0
    assert hip.hipHostRegister(c_void_p(at), c_size_t(1 << 16), 0) == 712
    assert hip.hipHostRegister(c_void_p(at + 100), c_size_t(10), 0) == 712
    device = c_void_p()
    assert hip.hipHostGetDevicePointer(byref(device), c_void_p(at + 8), 0) == 0
    assert device.value == at + 8
    hip.ok("hipMemsetD8", c_void_p(at), 7, c_size_t(3))
    assert buffer.raw[:4] == b"\7\7\7\0"
    assert hip.hipHostUnregister(c_void_p(at)) == 0
    assert hip.hipHostUnregister(c_void_p(at)) == 713
    assert hip.hipMemsetD8(c_void_p(at), 7, c_size_t(3)) == 1
    assert hip.hipHostRegister(c_void_p(0x10000), c_size_t(4096), 0) == 1  # nothing is mapped there
    assert hip.hipHostRegister(c_void_p(at), c_size_t(0), 0) == 1


def test_attributes_and_ranges_of_pointers(hip: Hip) -> None:
    class Attributes(ctypes.Structure):
        _fields_ = [
            ("type", c_int),
            ("device", c_int),
            ("device_pointer", c_void_p),
            ("host_pointer", c_void_p),
            ("managed", c_int),
            ("flags", c_uint),
        ]

    managed = c_void_p()
    hip.ok("hipMallocManaged", byref(managed), c_size_t(64), 1)
    for pointer, kind in ((hip.malloc(64), 2), (hip.host_malloc(64), 1), (managed.value or 0, 3)):
        attributes, base, size = Attributes(), c_void_p(), c_size_t()
        hip.ok("hipPointerGetAttributes", byref(attributes), c_void_p(pointer + 9))
        assert (attributes.type, attributes.device_pointer) == (kind, pointer + 9)
        assert attributes.managed == (kind == 3)
        hip.ok("hipMemGetAddressRange", byref(base), byref(size), c_void_p(pointer + 9))
        assert (base.value, size.value) == (pointer, 64)
        assert (hip.hipHostFree if kind == 1 else hip.hipFree)(c_void_p(pointer)) == 0
        assert hip.hipMemGetAddressRange(byref(base), byref(size), c_void_p(pointer)) == 500
    attributes = Attributes()
    hip.ok("hipPointerGetAttributes", byref(attributes), c_void_p(0x1000))
    assert attributes.type == 0


def test_random_allocations_never_overlap(hip: Hip) -> None:
    rng = random.Random(2)
    live: dict[int, tuple[int, int]] = {}
    for step in range(3000):
        if live and rng.random() < 0.5:
            pointer = rng.choice(list(live))
            size, tag = live.pop(pointer)
            assert (
                ctypes.string_at(pointer, 1)
                == ctypes.string_at(pointer + size - 1, 1)
                == bytes([tag])
            )
            assert hip.free(pointer) == 0
        else:
            size = rng.choice([1, 511, 512, 513, 4096, 70_000, 1 << 20, rng.randrange(1, 300_000)])
            pointer, tag = hip.malloc(size), step % 251
            assert all(pointer + size <= p or pointer >= p + s for p, (s, _) in live.items())
            ctypes.memset(pointer, tag, 1)
            ctypes.memset(pointer + size - 1, tag, 1)
            live[pointer] = (size, tag)
            if len(live) > 60:
                hip.free(next(iter(live)))
                live.pop(next(iter(live)))
    for pointer in live:
        assert hip.free(pointer) == 0
