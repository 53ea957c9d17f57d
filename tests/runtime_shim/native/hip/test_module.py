"""Loading of code objects: what is found in them, and that damage never crashes."""

from __future__ import annotations

import random
import struct
from ctypes import byref, c_int, c_size_t, c_void_p, create_string_buffer

import pytest

from .conftest import Script
from .hip_api import Hip, HipError
from .hip_code_objects import Arg, Kernel, build

INVALID_IMAGE, NO_BINARY = 200, 209


def code_of(hip: Hip, image: bytes) -> int:
    """Error number of loading the image; unloads it where there is none."""
    module = c_void_p()
    error = int(hip.hipModuleLoadData(byref(module), image))
    if not error:
        assert hip.hipModuleUnload(module) == 0
    return error


def test_functions_and_globals_are_found_by_name(hip: Hip) -> None:
    data = random.Random(3).randbytes(100)
    module = hip.load(
        build([Kernel("ids"), Kernel("saxpy")], {"table": data, "one": b"\x2a\0\0\0"})
    )
    assert hip.function(module, "ids") != hip.function(module, "saxpy")
    with pytest.raises(HipError, match="500"):
        hip.function(module, "absent")
    pointer, size = c_void_p(), c_size_t()
    hip.ok("hipModuleGetGlobal", byref(pointer), byref(size), c_void_p(module), b"table")
    assert size.value == len(data)
    assert hip.read(pointer.value or 0, 100) == data
    hip.write(pointer.value or 0, b"new")
    assert hip.read(pointer.value or 0, 4) == b"new" + data[3:4]
    assert hip.hipModuleGetGlobal(byref(pointer), byref(size), c_void_p(module), b"ids") == 500
    assert hip.hipModuleUnload(c_void_p(module)) == 0
    assert hip.hipModuleUnload(c_void_p(module)) == 400
    assert hip.hipModuleGetFunction(byref(pointer), c_void_p(module), b"ids") == 400


def test_notes_of_several_kernels(hip: Hip) -> None:
    """Each kernel of a file whose kernels have notes of their own, with its attributes."""
    kernels = [Kernel(name, group_size=size) for name, size in (("a", 64), ("b", 128), ("c", 256))]
    module = hip.load(build(kernels, apart=True))
    for kernel in kernels:
        value = c_int()
        function = c_void_p(hip.function(module, kernel.name))
        hip.ok("hipFuncGetAttribute", byref(value), 1, function)
        assert value.value == kernel.group_size


def test_attributes_and_occupancy(hip: Hip) -> None:
    module = hip.load(
        build([Kernel("ids", group_size=16384, private_size=40, vgprs=120, max_threads=256)])
    )
    function = c_void_p(hip.function(module, "ids"))

    def attribute(number: int) -> int:
        value = c_int()
        hip.ok("hipFuncGetAttribute", byref(value), number, function)
        return value.value

    assert [attribute(n) for n in (0, 1, 3, 4)] == [256, 16384, 40, 120]
    assert attribute(8) == 65536 - 16384
    assert hip.hipFuncSetAttribute(function, 8, 65536 - 16384) == 0
    assert hip.hipFuncSetAttribute(function, 8, 65536) == 1
    blocks = c_int()
    grid, block = c_int(), c_int()
    hip.ok(
        "hipModuleOccupancyMaxPotentialBlockSize",
        byref(grid),
        byref(block),
        function,
        c_size_t(0),
        0,
    )
    assert block.value in (192, 256)
    assert hip.hipFuncGetAttribute(byref(blocks), 0, c_void_p(0xDEAD)) == 400
    hip.ok("hipModuleUnload", c_void_p(module))


def test_occupancy_is_that_of_a_card(script: Script) -> None:
    """In a process of its own: a CUDA program's driver, loaded beside, asks for more LDS."""
    done = script("""
module = hip.load(build([Kernel("ids", group_size=16384, vgprs=120, max_threads=256)]))
function, blocks = c_void_p(hip.function(module, "ids")), c_int()
for threads, shared in ((256, 0), (256, 16384), (512, 0)):
    name = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"
    hip.ok(name, byref(blocks), function, threads, c_size_t(shared))
    print(blocks.value)
""")
    # 12 waves a SIMD, 4 SIMDs, 8 waves a workgroup; 128 KiB of LDS; more threads than it may have.
    assert done.stdout.split() == ["6", "4", "0"], done.stderr


def test_code_objects_of_other_devices_are_refused(hip: Hip) -> None:
    kernels = [Kernel("ids")]
    assert code_of(hip, build(kernels)) == 0
    assert code_of(hip, build(kernels, flags=0x36)) == NO_BINARY  # gfx1030
    assert code_of(hip, build(kernels, machine=190)) == NO_BINARY
    assert code_of(hip, build(kernels, abi_version=9)) == NO_BINARY
    assert code_of(hip, build([Kernel("ids", properties=0x8)])) == NO_BINARY  # wave64
    assert code_of(hip, b"\x7fELF") == INVALID_IMAGE
    assert code_of(hip, bytes(64)) == INVALID_IMAGE
    assert code_of(hip, build([Kernel("k", kernarg_size=16, args=(Arg(12, 8),))])) == INVALID_IMAGE


def test_unreadable_images_are_an_error(hip: Hip) -> None:
    module = c_void_p()
    assert hip.hipModuleLoadData(byref(module), None) == 1
    assert hip.hipModuleLoadData(byref(module), c_void_p(0x1000)) == INVALID_IMAGE


def test_bundles_give_their_gfx1100_entry(hip: Hip) -> None:
    image = build([Kernel("ids")])

    def bundle(name: bytes) -> bytes:
        entries = [(b"host-x86_64-unknown-linux--", b""), (name, image)]
        at = 32 + sum(24 + len(n) for n, _ in entries)
        head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
        for entry_name, data in entries:
            head += struct.pack("<QQQ", at, len(data), len(entry_name)) + entry_name
        return head + image

    assert code_of(hip, bundle(b"hipv4-amdgcn-amd-amdhsa--gfx1100")) == 0
    assert code_of(hip, bundle(b"hipv4-amdgcn-amd-amdhsa--gfx90a")) == NO_BINARY


@pytest.mark.parametrize("seed", range(4))
def test_damaged_code_objects_never_crash(
    hip: Hip, seed: int, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(seed)
    good = build([Kernel("ids"), Kernel("tree", group_size=64)], {"table": bytes(50)})
    counts: dict[int, int] = {}
    for _ in range(500):
        bad = bytearray(good)
        if rng.random() < 0.2:
            del bad[rng.randrange(len(bad)) :]
        for _ in range(rng.choice([1, 1, 2, 8])):
            if bad:
                # Most of the structure is at the beginning.
                at = (
                    rng.randrange(min(len(bad), 900))
                    if rng.random() < 0.7
                    else rng.randrange(len(bad))
                )
                bad[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        # What follows the image belongs to something else.
        buffer = create_string_buffer(bytes(bad) + rng.randbytes(64))
        error = code_of(hip, buffer.raw)
        counts[error] = counts.get(error, 0) + 1
    assert set(counts) <= {0, 2, INVALID_IMAGE, NO_BINARY}, counts
    assert counts[INVALID_IMAGE] > 20
    said = capfd.readouterr().err.splitlines()
    assert len(said) == sum(n for error, n in counts.items() if error)
    assert all(line.startswith("sassxlate: SX0654: ") for line in said)
