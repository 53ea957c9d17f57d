"""Launches compiled kernels from Python, for tests and measurements.

The waves are fibers of a small C++ helper, built with the system's compiler at its first use and
kept in the temporary directory.  Everything runs in the calling thread.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import mmap
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sassxlate.errors import EmulatorError, UsageError, Where
from sassxlate.lowering.emulate import strict_hazards
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.image.abi import DeviceFault
from sassxlate.lowering.emulate.image.image import HostImage
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.stencils.stencil import Shape
from sassxlate.lowering.emulate.trace_buffer import Buffer

_SOURCE = Path(__file__).with_name("runner_host.cpp")


class _Range(ctypes.Structure):
    _fields_ = [("base", ctypes.c_uint64), ("size", ctypes.c_uint64)]


class _Result(ctypes.Structure):
    _fields_ = [
        *((n, ctypes.c_uint32) for n in ("kind", "pc", "lane", "group", "wave", "pad")),
        ("addr", ctypes.c_uint64),
    ]


class _Launch(ctypes.Structure):
    _fields_ = [
        ("entry", ctypes.c_void_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("wg_sgpr", ctypes.c_int32 * 3),
        ("lds_size", ctypes.c_uint32),
        *(
            (n, ctypes.c_uint64)
            for n in (
                "scratch_size", "arena_base", "arena_size", "stack_size", "strict_seed",
                "code_base",
            )
        ),
        ("sgpr", ctypes.POINTER(ctypes.c_uint32)),
        ("ranges", ctypes.POINTER(_Range)),
        ("range_count", ctypes.c_uint64),
        ("resident", ctypes.c_uint32),
        ("fuel", ctypes.c_uint32),
        ("result", _Result),
        ("counts", ctypes.c_void_p),
        ("trace", ctypes.c_void_p),
        ("traced", ctypes.POINTER(ctypes.c_uint64)),
        ("traced_count", ctypes.c_uint64),
        ("stuck", ctypes.c_uint64),
        ("arguments", ctypes.c_void_p),
        ("baseline", ctypes.c_void_p),
        ("times_left", ctypes.c_uint64),
    ]  # fmt: skip


class _Shape(ctypes.Structure):
    _fields_ = [("word", ctypes.c_uint64), ("dpp", ctypes.c_uint32), ("mode", ctypes.c_int32)]


class _Built(ctypes.Structure):
    _fields_ = [
        ("entry", ctypes.c_void_p),
        ("code", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
        ("frame", ctypes.c_uint64),
        *((n, ctypes.c_uint32) for n in ("instructions", "blocks", "missing")),
        ("why", ctypes.c_char * 116),
        ("resumable", ctypes.c_void_p),
    ]


@functools.cache
def _library() -> Any:
    compiler = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        raise UsageError("SX0801", "running kernels from Python needs a C++ compiler (g++)")
    root = _SOURCE.resolve().parents[2]
    header = root / "runtime_shim" / "native"
    if not (header / "abi.h").exists():
        header = root / "sassxlate" / "runtime_shim" / "native"
    stencils = ("stencils", "stencil_decode", "stencil_kernel", "stencil_resume")
    sources = [_SOURCE, *(header / "hip" / f"{name}.cpp" for name in stencils)]
    beside = ("abi.h", "common/host_cpu.h", "hip/stencils.h", "hip/stencil_decode.h")
    headers = [header / name for name in beside]
    content = b"".join(p.read_bytes() for p in (*sources, *headers))
    key = hashlib.sha256(content).hexdigest()[:16]
    out = Path(tempfile.gettempdir()) / f"sassxlate-runner-{os.getuid()}-{key}.so"
    if not out.exists():
        with tempfile.TemporaryDirectory() as tmp:
            made = Path(tmp) / "runner.so"
            command = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", "-o", str(made)]
            folders = [f"-I{header / folder}" for folder in ("", "common", "hip")]
            subprocess.run(
                [*command, *folders, *map(str, sources)], check=True, capture_output=True
            )
            partial = out.with_suffix(f".{os.getpid()}")
            shutil.copyfile(made, partial)
            os.replace(partial, out)
    library = ctypes.CDLL(str(out))
    library.sx_run.argtypes = [ctypes.POINTER(_Launch)]
    library.sx_pack_open.restype = ctypes.c_void_p
    library.sx_pack_open.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    library.sx_pack_close.argtypes = [ctypes.c_void_p]
    library.sx_build.argtypes = [
        ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64,
        ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(_Built),
        ctypes.POINTER(_Shape), ctypes.c_uint64,
    ]  # fmt: skip
    library.sx_release.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
    return library


class EmulatedDevice:
    """Device memory: one arena whose addresses are the host's; freed when collected."""

    def __init__(self, size: int = 1 << 26) -> None:
        self._map = mmap.mmap(-1, size)
        self._view = (ctypes.c_char * size).from_buffer(self._map)
        self.base = ctypes.addressof(self._view)
        self.size = size
        self._next = 256

    def alloc(self, what: int | bytes, align: int = 256) -> int:
        """The address of new memory: that many zero bytes, or a copy of these bytes."""
        size = what if isinstance(what, int) else len(what)
        start = -(-self._next // align) * align
        if start + size > self.size:
            raise MemoryError(f"{size} bytes do not fit in the device's arena")
        self._next = start + size
        if not isinstance(what, int):
            self.write(self.base + start, what)
        return self.base + start

    def write(self, address: int, data: bytes) -> None:
        ctypes.memmove(address, data, len(data))

    def read(self, address: int, size: int) -> bytes:
        return ctypes.string_at(address, size)


class LoadedImage:
    """An image mapped readable and executable."""

    def __init__(self, image: HostImage) -> None:
        self.image = image
        size = -(-len(image.code) // mmap.PAGESIZE) * mmap.PAGESIZE
        prot = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        self._map = mmap.mmap(-1, size, prot=prot)
        self._map.write(image.code)
        self._view = (ctypes.c_char * size).from_buffer(self._map)
        self.entry = ctypes.addressof(self._view) + image.entry


class LoadedPack:
    """A pack of stencils (`stencils.pack`) in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._close = _library().sx_pack_close
        self.handle = _library().sx_pack_open(data, len(data))
        if not self.handle:
            raise EmulatorError("SX0690", "the pack of stencils cannot be used")

    def __del__(self) -> None:
        if self.handle:
            self._close(self.handle)


class BaselineKernel:
    """A kernel built of stencils, in place of a `LoadedImage`.  `missing` are the shapes that the
    packs lack, `why` another reason for which there is no code; then `entry` is None."""

    def __init__(
        self,
        packs: Sequence[LoadedPack],
        code: bytes,
        entry: int = 0,
        mode: int = 0xF0 | 1 << 8,
        counts: bool = False,
        kernel: str = "kernel",
    ) -> None:
        built, room = _Built(), len(code) // 4 + 16
        missing = (_Shape * room)()
        handles = (ctypes.c_void_p * len(packs))(*(p.handle for p in packs))
        self._packs = tuple(packs)
        library = _library()
        self._release = library.sx_release
        library.sx_build(
            handles, len(packs), code, len(code), entry, mode, counts, ctypes.byref(built),
            missing, room,
        )  # fmt: skip
        self._code, self._size = built.code, built.size
        self.resumable = built.resumable
        self.entry: int | None = built.entry
        self.missing = tuple(Shape(m.word, m.dpp, m.mode) for m in missing[: built.missing])
        self.why: str = built.why.decode()
        blocks = built.blocks if counts else 0
        size, frame = int(built.size), int(built.frame)
        self.image = HostImage(b"", kernel, built.instructions, size, 0, frame, counts=blocks)
        self.times_left = 0  # that waves have come from compiled code
        self.marks = (ctypes.c_uint8 * max(built.blocks, 1))()

    @property
    def entered(self) -> frozenset[int]:
        """The blocks that waves have entered, by number, of a kernel that notes them."""
        return frozenset(n for n, mark in enumerate(self.marks) if mark)

    def __del__(self) -> None:
        self._release(self._code, self._size, self.resumable)


@dataclass(frozen=True, slots=True)
class Setup:
    """Launch state from a kernel descriptor.

    ``sgpr`` are initial user SGPRs by index, ``wg_sgpr`` the registers of workgroup ids x, y and z
    (None: none); ``kernarg_sgpr`` is the pair that holds the kernarg segment's address, and
    ``kernarg_size`` the least bytes of it.
    """

    kernarg_sgpr: int | None = 0
    kernarg_size: int = 8
    wg_sgpr: tuple[int | None, int | None, int | None] = (None, None, None)
    lds_size: int = 0
    scratch_size: int = 0
    sgpr: tuple[tuple[int, int], ...] = ()


def _three(x: Sequence[int] | int) -> tuple[int, int, int]:
    t = (x,) if isinstance(x, int) else tuple(x)
    a, b, c = (*t, 1, 1, 1)[:3]
    return a, b, c


def run_image(
    loaded: LoadedImage | BaselineKernel,
    setup: Setup,
    grid: Sequence[int] | int,
    block: Sequence[int] | int,
    kernarg: bytes,
    device: EmulatedDevice,
    *,
    dynamic_lds: int = 0,
    resident: bool = False,
    fuel: int = 10000,
    strict_seed: int = 0,
    code_base: int = 0,
    counts: Any = None,
    trace: Buffer | None = None,
    traced: Sequence[int] | None = None,
    ranges: Sequence[tuple[int, int]] | None = None,
    rest: BaselineKernel | None = None,
) -> int:
    """Runs a launch of `grid` workgroups to its end.  `counts` is an array of c_uint64, to which an
    image made with `CompileOptions.counts` adds.  `trace` takes the records that an image made with
    `CompileOptions.trace` writes for the waves `traced` (numbered over the grid; None: all).
    `ranges` are the (address, size) that exist; None: the whole of `device`.  `rest` goes on with
    waves that leave an image made with `CompileOptions.entered`.

    Returns the number of waves that wait at barriers that no other wave will reach.

    Raises:
        EmulatorError: SX0630, a wave stopped; the message has the kind, workgroup, wave, lane and
        address, and ``where.offset`` the instruction.
    """
    launch = _Launch()
    launch.entry = loaded.entry
    launch.grid = (ctypes.c_uint32 * 3)(*_three(grid))
    launch.block = (ctypes.c_uint32 * 3)(*_three(block))
    launch.wg_sgpr = (ctypes.c_int32 * 3)(*(-1 if i is None else i for i in setup.wg_sgpr))
    launch.lds_size = setup.lds_size + dynamic_lds
    launch.scratch_size = -(-setup.scratch_size // 4) * 4
    launch.arena_base, launch.arena_size = device.base, device.size
    marked = rest if rest is not None else loaded
    both = loaded.image.stack + (marked.image.stack if marked is rest else 0)
    launch.stack_size = -(-(both + (1 << 16)) // 4096) * 4096
    launch.strict_seed, launch.code_base = strict_seed, code_base
    sgpr = (ctypes.c_uint32 * 128)()
    for index, value in setup.sgpr:
        sgpr[index] = value & 0xFFFFFFFF
    address = 0
    kernarg = kernarg.ljust(setup.kernarg_size, b"\0")
    if setup.kernarg_sgpr is not None:
        address = device.alloc(kernarg or bytes(8))
        sgpr[setup.kernarg_sgpr] = address & 0xFFFFFFFF
        sgpr[setup.kernarg_sgpr + 1] = address >> 32
    launch.arguments = address
    launch.baseline = rest.resumable if rest is not None else None
    launch.sgpr = ctypes.cast(sgpr, ctypes.POINTER(ctypes.c_uint32))
    launch.ranges, launch.range_count = None, 0
    if ranges is not None:
        known = [*ranges, (address, max(len(kernarg), 8))]
        launch.arena_size = 0
        launch.ranges = (_Range * len(known))(*(_Range(*r) for r in known))
        launch.range_count = len(known)
    launch.trace = trace.address if trace is not None else None
    if trace is None and loaded.image.traces:
        raise UsageError("SX0801", "an image that traces needs a buffer")
    if traced is not None:
        numbers = sorted(set(traced))
        launch.traced = (ctypes.c_uint64 * max(len(numbers), 1))(*numbers)
        launch.traced_count = len(numbers)
    launch.resident, launch.fuel = resident, fuel
    if counts is None and isinstance(marked, BaselineKernel) and not marked.image.counts:
        launch.counts = ctypes.addressof(marked.marks)
    else:
        launch.counts = ctypes.addressof(counts) if counts is not None else None
    if counts is None and loaded.image.counts:
        raise UsageError("SX0801", "an image that counts needs counters")
    failed = _library().sx_run(ctypes.byref(launch))
    if rest is not None:
        rest.times_left += int(launch.times_left)
    if failed:
        r = launch.result
        kind = DeviceFault(r.kind).name.lower()
        raise EmulatorError(
            "SX0630",
            f"{kind} fault in workgroup {r.group}, wave {r.wave}, lane {r.lane}: "
            + (strict_hazards.describe(r.addr) if r.kind == DeviceFault.STRICT else f"{r.addr:#x}"),
            Where(kernel=loaded.image.kernel, offset=r.pc),
        )
    return int(launch.stuck)


def setup_of(descriptor: Any) -> Setup:
    """The Setup that a kernel descriptor of `lowering.codeobject` describes."""
    at, kernarg = 0, None
    for name, n in (
        ("enable_dispatch_ptr", 2), ("enable_queue_ptr", 2), ("enable_kernarg_ptr", 2),
        ("enable_dispatch_id", 2), ("enable_private_segment_size", 1),
    ):  # fmt: skip
        if getattr(descriptor, name, False):
            if name == "enable_kernarg_ptr":
                kernarg = at
            at += n
    at = descriptor.user_sgpr_count
    wg: list[int | None] = []
    for axis in "xyz":
        on = getattr(descriptor, f"enable_workgroup_id_{axis}")
        wg.append(at if on else None)
        at += bool(on)
    return Setup(
        kernarg_sgpr=kernarg,
        kernarg_size=descriptor.kernarg_size,
        wg_sgpr=(wg[0], wg[1], wg[2]),
        lds_size=descriptor.group_segment_size,
        scratch_size=descriptor.private_segment_size,
    )


def run_code_object(
    data: bytes,
    kernel: str,
    grid: Sequence[int] | int,
    block: Sequence[int] | int,
    kernarg: bytes,
    device: EmulatedDevice,
    options: CompileOptions | None = None,
    **launch: Any,
) -> None:
    """Compiles a kernel of a code object (cached by content) and runs a launch of it.

    Raises:
        EmulatorError: SX06xx while compiling; SX0630, a wave stopped.
    """
    loaded, setup = _loaded(data, kernel, options or CompileOptions())
    run_image(loaded, setup, grid, block, kernarg, device, **launch)


@functools.lru_cache(maxsize=64)
def _loaded(data: bytes, kernel: str, options: CompileOptions) -> tuple[LoadedImage, Setup]:
    from sassxlate.lowering.codeobject.code_object import read
    from sassxlate.lowering.emulate.compiler import compile_code_object

    setup = setup_of(read(data).kernel(kernel).descriptor)
    return LoadedImage(compile_code_object(data, kernel, options)), setup


def run_code(
    code: bytes,
    grid: Sequence[int] | int,
    block: Sequence[int] | int,
    kernarg: bytes,
    device: EmulatedDevice,
    setup: Setup | None = None,
    options: CompileOptions | None = None,
    **launch: Any,
) -> None:
    """Like `run_code_object`, for bare machine code that starts at its first byte."""
    loaded = _loaded_code(code, options or CompileOptions())
    run_image(loaded, setup or Setup(), grid, block, kernarg, device, **launch)


@functools.lru_cache(maxsize=64)
def _loaded_code(code: bytes, options: CompileOptions) -> LoadedImage:
    return LoadedImage(compile_kernel(code, 0, options))


__all__ = [
    "BaselineKernel",
    "EmulatedDevice",
    "LoadedImage",
    "LoadedPack",
    "Setup",
    "run_code",
    "run_code_object",
    "run_image",
]
