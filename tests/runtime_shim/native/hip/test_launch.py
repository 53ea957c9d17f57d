"""Launches: initial state of waves, barriers, arguments, the host image's way into the process."""

from __future__ import annotations

import ctypes
import hashlib
import random
import re
import struct
from collections.abc import Iterator
from ctypes import c_size_t, c_uint, c_void_p
from pathlib import Path

import pytest

from sassxlate.lowering.emulate.image.abi import IMAGE_VERSION
from sassxlate.runtime_shim.cache.store import SEAL_SIZE, seal

from .conftest import Script
from .hip_api import Hip
from .hip_code_objects import Arg, Kernel, build
from .hip_images import StubService


@pytest.fixture(scope="module")
def modules(hip: Hip) -> Iterator[list[int]]:
    loaded: list[int] = []
    yield loaded
    for module in loaded:
        hip.ok("hipModuleUnload", c_void_p(module))


def kernel(hip: Hip, modules: list[int], description: Kernel) -> int:
    modules.append(hip.load(build([description])))
    return hip.function(modules[-1], description.name)


@pytest.mark.parametrize(
    ("dimensions", "grid", "block"),
    [
        (3, (2, 3, 2), (5, 7, 2)),
        (3, (4, 1, 1), (33, 1, 1)),
        (3, (1, 1, 1), (1024, 1, 1)),
        (3, (1, 2, 5), (8, 8, 8)),
        (3, (7, 1, 1), (1, 1, 1)),
    ],
)
def test_ids_of_every_lane(
    hip: Hip,
    modules: list[int],
    dimensions: int,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
) -> None:
    function = kernel(hip, modules, Kernel("ids", dimensions=dimensions))
    (gx, gy, gz), (bx, by, bz) = grid, block
    total = gx * gy * gz * bx * by * bz
    out = hip.malloc(16 * total)
    hip.ok("hipMemset", c_void_p(out), 0xFF, c_size_t(16 * total))
    assert hip.launch(function, grid, block, struct.pack("<QIIIII", out, bx, by, bz, gx, gy)) == 0
    words = hip.words(out, 4 * total)
    hip.free(out)
    at = 0
    for z, y, x in ((z, y, x) for z in range(gz) for y in range(gy) for x in range(gx)):
        for tz, ty, tx in ((c, b, a) for c in range(bz) for b in range(by) for a in range(bx)):
            assert words[at : at + 4] == [tx | ty << 10 | tz << 20, x, y, z]
            at += 4


def test_disabled_ids_are_not_in_v0(hip: Hip, modules: list[int]) -> None:
    # One dimension: the descriptor asks for x alone, so the bits of y and z stay zero.
    function = kernel(hip, modules, Kernel("tree", dimensions=1, group_size=256))
    out = hip.malloc(8)
    assert hip.launch(function, 2, 64, struct.pack("<QI", out, 64)) == 0
    assert hip.words(out, 2) == [64 * 63 // 2, 64 * 63 // 2 + 64]
    hip.free(out)


def test_saxpy_over_many_workgroups(hip: Hip, modules: list[int]) -> None:
    function = kernel(hip, modules, Kernel("saxpy"))
    n = 70_001
    x = [float(i % 1000) for i in range(n)]
    y = [float(i % 77) for i in range(n)]
    out, px, py = (hip.malloc(4 * n) for _ in range(3))
    hip.write(px, struct.pack(f"<{n}f", *x))
    hip.write(py, struct.pack(f"<{n}f", *y))
    args = struct.pack("<QQQIf", out, px, py, n, 2.0)
    assert hip.launch(function, (n + 255) // 256, 256, args) == 0
    assert list(struct.unpack(f"<{n}f", hip.read(out, 4 * n))) == [
        2 * a + b for a, b in zip(x, y, strict=True)
    ]
    for pointer in (out, px, py):
        hip.free(pointer)


@pytest.mark.parametrize("block", [32, 64, 256, 1024])
def test_barriers_with_dynamic_and_static_shared_memory(
    hip: Hip, modules: list[int], block: int
) -> None:
    static = kernel(hip, modules, Kernel("tree", group_size=4 * block))
    dynamic = kernel(hip, modules, Kernel("tree"))
    out = hip.malloc(400)
    args = struct.pack("<QI", out, block)
    expected = [block * (block - 1) // 2 + group * block for group in range(100)]
    for function, shared in ((static, 0), (dynamic, 4 * block)):
        hip.ok("hipMemset", c_void_p(out), 0, c_size_t(400))
        assert hip.launch(function, 100, block, args, shared=shared) == 0
        assert hip.words(out, 100) == expected
    hip.free(out)


def test_waves_that_ended_do_not_hold_up_a_barrier(hip: Hip, modules: list[int]) -> None:
    function = kernel(hip, modules, Kernel("early", group_size=256))
    out = hip.malloc(40)
    assert hip.launch(function, 10, 256, struct.pack("<QI", out, 8)) == 0
    assert hip.words(out, 10) == [10] * 10
    hip.free(out)


@pytest.mark.parametrize("waves", [1, 2, 3, 8, 32])
def test_waves_that_give_way_and_end_between_barriers(
    hip: Hip, modules: list[int], waves: int
) -> None:
    function = kernel(hip, modules, Kernel("meet", group_size=4 * 32))
    groups = 2 * waves + 40
    out = hip.malloc(4 * groups * waves)
    hip.ok("hipMemset", c_void_p(out), 0xFF, c_size_t(4 * groups * waves))
    assert hip.launch(function, groups, 32 * waves, struct.pack("<QI", out, waves)) == 0
    expected = [(5 * w + g) % (waves + 1) for g in range(groups) for w in range(waves)]
    assert hip.words(out, groups * waves) == expected
    hip.free(out)


@pytest.mark.parametrize("every", [0, 1, 4, 37])
@pytest.mark.parametrize("least", [0, 1, 2, 3, 20])
@pytest.mark.parametrize("waves", [1, 2, 3, 8, 32])
def test_waves_go_from_barrier_to_barrier(
    hip: Hip, modules: list[int], waves: int, least: int, every: int
) -> None:
    function = kernel(hip, modules, Kernel("rounds", group_size=4 * 32))
    total = 40 * waves
    out = hip.malloc(4 * total)
    hip.ok("hipMemset", c_void_p(out), 0xFF, c_size_t(4 * total))
    args = struct.pack("<QIIII", out, waves, least, every, 0xFFFFFFFF)
    assert hip.launch(function, 40, 32 * waves, args) == 0
    assert hip.words(out, total) == [least + (w % 3 == 1) * (w & 2) for w in range(waves)] * 40
    hip.free(out)


@pytest.mark.parametrize("at", [0, 5, 63, 100, 639])
def test_a_fault_between_barriers_names_its_wave(script: Script, at: int) -> None:
    """Of 80 workgroups with 8 waves each."""
    done = script(
        "m = hip.load(build([Kernel('rounds', group_size=128)]))\n"
        f"args = struct.pack('<QIIII', hip.malloc(4096), 8, 20, 0, {at})\n"
        "print(hip.launch(hip.function(m, 'rounds'), 80, 256, args), hip.hipDeviceSynchronize())\n",
        SASSXLATE_THREADS="1",
    )
    assert done.stdout == "0 719\n", done.stderr
    where = rf"trap 0x2, lane 5 of wave {at % 8}, workgroup \({at // 8},0,0\)"
    assert re.search(where, done.stderr), done.stderr


@pytest.mark.parametrize("sleeps", [0, 1])
@pytest.mark.parametrize(
    ("groups", "cooperative"), [(2, False), (200, False), (200, True), (1500, True)]
)
def test_a_barrier_over_the_grid_ends(
    hip: Hip, modules: list[int], groups: int, cooperative: bool, sleeps: int
) -> None:
    function = kernel(hip, modules, Kernel("grid"))
    out = hip.malloc(4 * groups + 512)
    counter = hip.malloc(4)
    hip.ok("hipMemset", c_void_p(counter), 0, c_size_t(4))
    args = struct.pack("<QQII", counter, out, groups, sleeps)
    assert hip.launch(function, groups, 32, args, cooperative=cooperative) == 0
    assert hip.words(out, groups) == [3 * groups] * groups
    hip.free(out)
    hip.free(counter)


def test_workgroups_that_wait_for_the_one_before(hip: Hip, modules: list[int]) -> None:
    function = kernel(hip, modules, Kernel("chain"))
    flags = hip.malloc(4 * 2000)
    hip.ok("hipMemset", c_void_p(flags), 0, c_size_t(8000))
    assert hip.launch(function, 2000, 32, struct.pack("<Q", flags)) == 0
    assert hip.words(flags, 2000) == list(range(1, 2001))
    hip.free(flags)


def test_the_environment_of_a_wave(hip: Hip, modules: list[int]) -> None:
    function = kernel(hip, modules, Kernel("environment", group_size=100, private_size=1000))
    out = hip.malloc(64)
    for _ in range(2):  # the second finds what the first left
        assert hip.launch(function, 1, 7, struct.pack("<Q", out), shared=20) == 0
        mxcsr, lds, scratch, clocks, dirty, message, base, exec_, frame = hip.words(out, 9)
        assert mxcsr & 0xFFC0 == 0x1F80
        assert (lds, scratch, clocks, dirty, message, base) == (128, 1008, 1, 0, 1, 1)  # in steps
        assert (exec_, frame) == (0x7F, 0)
    hip.free(out)


def test_the_rounding_of_the_application_is_not_that_of_waves(script: Script) -> None:
    done = script("""
upward, libm = 0x800, ctypes.CDLL("libm.so.6")
libm.fesetround(upward)  # the library's threads, which begin with the first launch, inherit it
module, out = hip.load(build([Kernel("environment", group_size=100)])), hip.malloc(64)
status = hip.launch(hip.function(module, "environment"), 1, 7, struct.pack("<Q", out), shared=20)
print(status, hex(hip.words(out, 1)[0] & 0xFFC0), libm.fegetround() == upward)
""")
    assert done.stdout == "0 0x1f80 True\n", done.stderr


def test_arguments_by_metadata_hidden_ones_and_extra(hip: Hip, modules: list[int]) -> None:
    args = (
        Arg(0, 8, "global_buffer"),
        Arg(8, 4),
        Arg(12, 2),
        Arg(16, 8),
        *(Arg(24 + 4 * i, 4, f"hidden_block_count_{a}") for i, a in enumerate("xyz")),
        *(Arg(36 + 2 * i, 2, f"hidden_group_size_{a}") for i, a in enumerate("xyz")),
        *(Arg(42 + 2 * i, 2, f"hidden_remainder_{a}") for i, a in enumerate("xyz")),
        Arg(88, 2, "hidden_grid_dims"),
        Arg(92, 4, "hidden_dynamic_lds_size"),
    )
    function = kernel(hip, modules, Kernel("dump_args", kernarg_size=280, args=args))
    out = hip.malloc(280)
    values = [
        ctypes.c_uint64(out),
        c_uint(96),
        ctypes.c_uint16(0xBEEF),
        ctypes.c_uint64(1 << 60 | 5),
    ]
    params = (c_void_p * 4)(*(ctypes.addressof(v) for v in values))
    dims = [c_uint(n) for n in (4, 2, 1, 8, 4, 1)]
    assert hip.hipModuleLaunchKernel(c_void_p(function), *dims, c_uint(64), None, params, None) == 0
    got = hip.read(out, 96)
    assert struct.unpack_from("<QIH2xQ", got) == (out, 96, 0xBEEF, 1 << 60 | 5)
    assert struct.unpack_from("<III6H", got, 24) == (4, 2, 1, 8, 4, 1, 0, 0, 0)
    assert struct.unpack_from("<H2xI", got, 88) == (2, 64)
    # The same through `extra`: the hidden ones are filled in all the same.
    assert hip.launch(function, 3, 5, struct.pack("<QIH2xQ", out, 96, 7, 9)) == 0
    got = hip.read(out, 96)
    assert struct.unpack_from("<QIH2xQIII3H", got) == (out, 96, 7, 9, 3, 1, 1, 5, 1, 1)
    # More bytes than the segment has, no arguments at all, or both kinds.
    assert hip.launch(function, 1, 1, bytes(281)) == 1
    assert hip.hipModuleLaunchKernel(c_void_p(function), *dims, c_uint(0), None, None, None) == 1
    extra = (c_void_p * 1)(3)
    assert hip.hipModuleLaunchKernel(c_void_p(function), *dims, c_uint(0), None, params, extra) == 1
    hip.free(out)


def test_bad_shapes_are_refused_and_leave_nothing_behind(hip: Hip, modules: list[int]) -> None:
    function = kernel(hip, modules, Kernel("tree", group_size=4096, max_threads=256))
    out = hip.malloc(64)
    args = struct.pack("<QI", out, 32)
    assert hip.launch(function, 0, 32, args) == 1
    assert hip.launch(function, 1, 0, args) == 1
    assert hip.launch(function, 1, 2048, args) == 1
    assert hip.launch(function, 1, (64, 64), args) == 1
    assert hip.launch(function, 1, 512, args) == 701
    assert hip.launch(function, 1, 32, args, shared=1 << 20) == 1
    assert hip.launch(function, 1, 32, args, shared=65536 - 4096) == 0
    assert hip.launch(0xDEAD, 1, 32, args) == 400
    assert hip.launch(function, 1, 32, args, stream=0xDEAD) == 400
    assert hip.launch(function, 100_000, 32, args, cooperative=True) == 720
    hip.ok("hipDeviceSynchronize")
    hip.free(out)


def test_a_refused_kernel_says_so_once_and_others_run(
    hip: Hip, modules: list[int], capfd: pytest.CaptureFixture[str]
) -> None:
    modules.append(hip.load(build([Kernel("unknown_kernel"), Kernel("dump_args")])))
    bad = hip.function(modules[-1], "unknown_kernel")
    assert [hip.launch(bad, 1, 1, b"") for _ in range(3)] == [801] * 3
    assert capfd.readouterr().err == 'sassxlate: SX0602: unknown_kernel: "refused" \u2014 test\n'
    out = hip.malloc(64)
    assert (
        hip.launch(hip.function(modules[-1], "dump_args"), 1, 1, struct.pack("<QI", out, 16)) == 0
    )
    assert hip.words(out, 3) == [out & 0xFFFFFFFF, out >> 32, 16]
    hip.free(out)


def test_images_come_from_the_cache_and_damaged_ones_are_made_again(
    script: Script, service: StubService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SASSXLATE_TIER", "llvm")  # whose images these are
    body = (
        "m = hip.load(build([Kernel('bump')])); p = hip.malloc(4)\n"
        "hip.ok('hipMemset', c_void_p(p), 0, c_size_t(4))\n"
        "args = struct.pack('<QII', p, 3, 2)\n"
        "print(hip.launch(hip.function(m, 'bump'), 1, 1, args), hip.words(p, 1))\n"
    )
    code = build([Kernel("bump")])
    key = hashlib.blake2b(code + b"\0bump\0plain", digest_size=16).hexdigest()
    service.requests.clear()
    first = script(body, SASSXLATE_CACHE_DIR=str(tmp_path))
    assert (first.stdout, first.stderr) == ("0 [6]\n", "")
    assert [r["op"] for r in service.requests] == ["tag", "compile"]
    made = (service.directory / "bump-False.sxh").read_bytes()
    cached = tmp_path / "host" / "stub" / f"{key}.sxh"
    cached.parent.mkdir(parents=True)
    content = made[:-SEAL_SIZE]

    def put(content: bytes) -> None:
        cached.write_bytes(seal(cached.name, content))

    put(content)
    service.requests.clear()
    warm = script(
        body,
        SASSXLATE_CACHE_DIR=str(tmp_path),
        SASSXLATE_CACHE_TAG="stub",
        SASSXLATE_SOCKET="/nonexistent",
    )
    assert (warm.stdout, warm.stderr, service.requests) == ("0 [6]\n", "", [])
    # Cut short, of another kernel, no image, of another version, or writable by others: none of
    # them is run.
    older = content[:4] + struct.pack("<I", IMAGE_VERSION - 1) + content[8:]
    named = content.replace(b"bump", b"pmub", 1)
    for damage in (content[:5000], named, b"\0" + content[1:], older):
        put(damage)
        again = script(body, SASSXLATE_CACHE_DIR=str(tmp_path))
        assert again.stdout == "0 [6]\n"
        assert not cached.exists()
    put(content)
    cached.chmod(0o666)
    assert script(body, SASSXLATE_CACHE_DIR=str(tmp_path)).stdout == "0 [6]\n"
    assert [r["op"] for r in service.requests] == ["tag", "compile"] * 5


def test_any_name_reaches_the_service_as_it_is(script: Script, service: StubService) -> None:
    rng = random.Random(5)
    for name in ('quo"te\\back', "tab\tnew\nline", "\u00fcber\u2713"):
        size = rng.randrange(1, 400)
        body = (
            f"m = hip.load(build([Kernel({name!r})], {{'g': bytes({size})}}))\n"
            f"print(hip.launch(hip.function(m, {name!r}), 1, 1, b''))"
        )
        service.requests.clear()
        assert script(body).stdout == "801\n"
        assert service.requests[-1]["kernel"] == name
