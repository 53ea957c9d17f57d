"""Handles, result codes, streams and graphs, and arguments that no program should pass."""

# lief has parsers of other formats without types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from ctypes import byref, c_int, c_longlong, c_size_t, c_uint64, c_void_p

import numpy as np
import pytest

from .cufft_api import (
    ALLOC_FAILED,
    C2C,
    C2R,
    EXEC_FAILED,
    FORWARD,
    INVALID_PLAN,
    INVALID_SIZE,
    INVALID_VALUE,
    INVERSE,
    NOT_SUPPORTED,
    R2C,
    SUCCESS,
    Cuda,
    Cufft,
    ints,
    library_folder,
    longs,
)

X = (np.arange(16) - 3j).astype(np.complex64)


@pytest.fixture
def memory(cuda: Cuda) -> Iterator[int]:
    """256 bytes of the device."""
    pointer = cuda.upload(X, 256)
    yield pointer
    cuda.free(pointer)


@pytest.mark.parametrize(("major", "version"), [(11, 11401), (12, 12500)])
def test_versions(cuda: Cuda, major: int, version: int) -> None:
    assert cuda
    library = Cufft(major)
    number = c_int()
    library.call("cufftGetVersion", byref(number))
    assert number.value == version
    parts: list[int] = []
    for which in range(3):
        library.call("cufftGetProperty", which, byref(number))
        parts.append(number.value)
    assert parts == [version // 1000, version // 100 % 10, version % 100]
    assert library.code("cufftGetProperty", 3, byref(number)) == INVALID_VALUE
    assert library.code("cufftGetVersion", None) == INVALID_VALUE


def test_sizes_and_types(cufft: Cufft) -> None:
    handle = c_int(77)
    code = cufft.code
    assert code("cufftPlan1d", byref(handle), 0, C2C, 1) == INVALID_SIZE
    assert code("cufftPlan1d", byref(handle), -5, C2C, 1) == INVALID_SIZE
    assert code("cufftPlan1d", byref(handle), 8, C2C, 0) == INVALID_SIZE
    assert code("cufftPlan1d", byref(handle), 8, C2C, -(2**31)) == INVALID_SIZE
    assert code("cufftPlan1d", byref(handle), 8, 0x2B, 1) == INVALID_VALUE
    assert code("cufftPlan1d", None, 8, C2C, 1) == INVALID_VALUE
    assert code("cufftPlan2d", byref(handle), 8, 0, C2C) == INVALID_SIZE
    assert code("cufftPlan3d", byref(handle), 8, 8, -1, C2C) == INVALID_SIZE
    assert handle.value == 77  # nothing was made
    # More than the device holds: before any memory of the machine's is taken.
    assert code("cufftPlan3d", byref(handle), 2**15, 2**15, 2**15, C2C) == ALLOC_FAILED
    assert code("cufftPlan3d", byref(handle), 2**31 - 1, 2**31 - 1, 2**31 - 1, C2C) == INVALID_SIZE
    assert code("cufftPlan1d", byref(handle), 2**31 - 1, C2C, 2**31 - 1) == INVALID_SIZE


def test_layouts_that_cannot_be(cufft: Cufft) -> None:
    handle = cufft.create()
    size = c_size_t()
    four = longs((4, 4, 4))

    def many(
        rank: int, n: object, inside: object, out: object, *numbers: int, batch: int = 2
    ) -> int:
        istride, idist, ostride, odist = map(c_longlong, numbers)
        return cufft.code("cufftMakePlanMany64", handle, rank, n, inside, istride, idist, out,
                          ostride, odist, C2C, c_longlong(batch), byref(size))  # fmt: skip

    assert many(0, four, None, None, 1, 4, 1, 4) == INVALID_VALUE
    assert many(4, four, None, None, 1, 4, 1, 4) == INVALID_VALUE
    assert many(-1, four, four, four, 1, 4, 1, 4) == INVALID_VALUE
    assert many(1, None, None, None, 1, 4, 1, 4) == INVALID_VALUE
    assert many(1, four, four, None, 1, 4, 1, 4) == INVALID_VALUE
    assert many(1, four, four, four, 0, 4, 1, 4) == INVALID_VALUE
    assert many(1, four, four, four, 1, 4, -1, 4) == INVALID_VALUE
    assert many(1, four, four, four, 1, -4, 1, 4) == INVALID_VALUE
    assert many(2, four, longs((4, 0)), four, 1, 4, 1, 4) == INVALID_VALUE
    huge = 2**62
    assert many(1, four, four, four, huge, 4, 1, 4) == INVALID_SIZE
    assert many(1, four, four, four, 1, huge, 1, 4) == INVALID_SIZE
    assert many(2, four, longs((4, huge)), four, 1, 4, 1, 4) == INVALID_SIZE
    assert many(1, four, four, four, 1, 4, 1, 2**40) == ALLOC_FAILED
    assert many(1, four, four, four, 1, 4, 1, 4) == SUCCESS  # the handle is as good as new


def test_handles(cufft: Cufft, memory: int) -> None:
    data = c_void_p(memory)
    size = c_size_t(9)
    for unknown in (0, -1, 123456):
        assert cufft.code("cufftDestroy", unknown) == INVALID_PLAN
        assert cufft.code("cufftExecC2C", unknown, data, data, FORWARD) == INVALID_PLAN
        assert cufft.code("cufftSetStream", unknown, None) == INVALID_PLAN
        assert cufft.code("cufftMakePlan1d", unknown, 8, C2C, 1, byref(size)) == INVALID_PLAN
    handle = cufft.create()
    assert cufft.code("cufftExecC2C", handle, data, data, FORWARD) == INVALID_PLAN
    assert cufft.code("cufftSetWorkArea", handle, None) == INVALID_PLAN
    assert cufft.code("cufftMakePlan1d", handle, 8, C2C, 1, None) == INVALID_VALUE
    cufft.call("cufftSetAutoAllocation", handle, 0)
    cufft.call("cufftMakePlan1d", handle, 8, C2C, 2, byref(size))
    assert cufft.code("cufftMakePlan1d", handle, 8, C2C, 2, byref(size)) == INVALID_PLAN
    assert cufft.code("cufftSetAutoAllocation", handle, 1) == INVALID_PLAN
    cufft.call("cufftGetSize", handle, byref(size))
    cufft.call("cufftSetWorkArea", handle, data)
    cufft.destroy(handle)
    assert cufft.code("cufftDestroy", handle) == INVALID_PLAN
    assert cufft.code("cufftCreate", None) == INVALID_VALUE


def test_arguments_of_executions(
    cuda: Cuda, cufft: Cufft, memory: int, capfd: pytest.CaptureFixture[str]
) -> None:
    handle = cufft.plan_many((16,), C2C, 2)
    real = cufft.plan_many((16,), R2C)
    data = c_void_p(memory)
    assert cufft.code("cufftExecC2C", handle, None, data, FORWARD) == INVALID_VALUE
    assert cufft.code("cufftExecC2C", handle, data, None, FORWARD) == INVALID_VALUE
    for direction in (0, 2, -2):
        assert cufft.code("cufftExecC2C", handle, data, data, direction) == INVALID_VALUE
    assert cufft.code("cufftExecZ2Z", handle, data, data, FORWARD) == INVALID_VALUE
    assert cufft.code("cufftExecR2C", handle, data, data) == INVALID_VALUE
    assert cufft.code("cufftExecC2R", real, data, data) == INVALID_VALUE
    # Outside the memory, beyond its end, in memory of the host, not aligned: nothing is touched.
    host = np.zeros(64, np.complex64)
    for bad in (16, memory + 8, memory - 4096, memory + 2, host.ctypes.data):
        assert cufft.code("cufftExecC2C", handle, c_void_p(bad), data, FORWARD) == EXEC_FAILED, bad
        assert cufft.code("cufftExecC2C", handle, data, c_void_p(bad), FORWARD) == EXEC_FAILED, bad
    assert (cuda.read(memory, (16,), np.complex64) == X).all()
    text = capfd.readouterr().err
    assert text.count("SX0782") <= 2  # once for the input, once for the output
    assert cufft.code("cufftExecC2C", handle, data, data, FORWARD) == SUCCESS


def test_registered_host_memory(cuda: Cuda, cufft: Cufft) -> None:
    data = np.zeros(4096, np.complex64)
    data[:16] = X
    pointer = c_void_p(data.ctypes.data)
    cuda.call("cuMemHostRegister_v2", pointer, c_size_t(data.nbytes), 0)
    handle = cufft.plan_many((16,), C2C)
    cufft.run("cufftExecC2C", handle, data.ctypes.data, data.ctypes.data, FORWARD)
    cuda.call("cuCtxSynchronize")
    assert np.allclose(data[:16], np.fft.fft(X), atol=1e-4)
    cuda.call("cuMemHostUnregister", pointer)


def test_work_is_enqueued(cuda: Cuda, cufft: Cufft, memory: int) -> None:
    """A call returns while the stream waits, and the transform comes after what is before it."""
    released = threading.Event()

    @ctypes.CFUNCTYPE(None, c_void_p)
    def wait(_: object) -> None:
        released.wait(120)

    stream = cuda.stream()
    handle = cufft.plan_many((16,), C2C)
    cufft.call("cufftSetStream", handle, stream)
    cuda.call("cuLaunchHostFunc", stream, wait, None)
    cuda.call("cuMemsetD32Async", c_uint64(memory), 0x3F800000, c_size_t(32), stream)  # 1 + 1i
    cufft.run("cufftExecC2C", handle, memory, memory, FORWARD)
    cufft.destroy(handle)  # the work keeps what it needs
    time.sleep(0.05)
    assert cuda.library.cuStreamQuery(stream) == 600
    released.set()
    cuda.call("cuStreamSynchronize", stream)
    got = cuda.read(memory, (16,), np.complex64)
    wanted = np.zeros(16, np.complex64)
    wanted[0] = 16 + 16j
    assert (got == wanted).all()


def test_captured_in_a_graph(cuda: Cuda, cufft: Cufft, memory: int) -> None:
    """Nothing runs at capture; each launch does, after the plan and the graph are gone."""
    stream, graph, instance = cuda.stream(), c_void_p(), c_void_p()
    handle = cufft.plan_many((16,), C2C)
    cufft.call("cufftSetStream", handle, stream)
    cuda.call("cuStreamBeginCapture_v2", stream, 0)
    cufft.run("cufftExecC2C", handle, memory, memory, FORWARD)
    cuda.call("cuStreamEndCapture", stream, byref(graph))
    assert (cuda.read(memory, (16,), np.complex64) == X).all()
    cuda.call("cuGraphInstantiateWithFlags", byref(instance), graph, c_uint64(0))
    cuda.call("cuGraphDestroy", graph)
    cufft.destroy(handle)
    wanted = X.astype(complex)
    for _ in range(3):
        cuda.call("cuGraphLaunch", instance, stream)
        cuda.call("cuStreamSynchronize", stream)
        wanted = np.fft.fft(wanted)
        got = cuda.read(memory, (16,), np.complex64)
        assert np.linalg.norm(got - wanted) <= 1e-6 * np.linalg.norm(wanted)
    cuda.call("cuGraphExecDestroy", instance)


def test_threads_share_a_plan(cuda: Cuda, cufft: Cufft) -> None:
    handle = cufft.plan_many((1000,), C2C, 5)
    rng = np.random.default_rng(5)
    problems: list[str] = []

    def work(seed: int) -> None:
        x = (rng.standard_normal((5, 1000)) + seed).astype(np.complex64)
        own = Cuda()
        source, target = own.upload(x), own.allocate(x.nbytes)
        for _ in range(5):
            cufft.run("cufftExecC2C", handle, source, target, INVERSE)
            got = own.read(target, x.shape, x.dtype)
            if not np.allclose(got, np.fft.ifft(x) * 1000, atol=0.05):
                problems.append(f"thread {seed}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert cuda


def test_properties(cufft: Cufft) -> None:
    handle = cufft.create()
    value = c_longlong(5)
    defaults = {1: 0, 2: 1, 3: 0, 4: 0}
    for number, usual in defaults.items():
        cufft.call("cufftGetPlanPropertyInt64", handle, number, byref(value))
        assert value.value == usual
        cufft.call("cufftSetPlanPropertyInt64", handle, number, c_longlong(7))
        cufft.call("cufftGetPlanPropertyInt64", handle, number, byref(value))
        assert value.value == 7
        cufft.call("cufftResetPlanProperty", handle, number)
        cufft.call("cufftGetPlanPropertyInt64", handle, number, byref(value))
        assert value.value == usual
    for number in (0, 5, -1):
        assert (
            cufft.code("cufftSetPlanPropertyInt64", handle, number, c_longlong(1)) == NOT_SUPPORTED
        )


def test_what_is_not_there_says_so_once(cufft: Cufft, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    handle = cufft.plan_many((8,), C2R)
    for _ in range(2):
        assert cufft.code("cufftXtSetCallback", handle, None, 0, None) == NOT_SUPPORTED
        assert cufft.code("cufftXtSetJITCallback", handle, b"f", None, 0, 0, None) == NOT_SUPPORTED
        assert cufft.code("cufftXtClearCallback", handle, 0) == NOT_SUPPORTED
        assert cufft.code("cufftXtSetCallbackSharedSize", handle, 0, 0) == NOT_SUPPORTED
        assert cufft.code("cufftXtSetGPUs", handle, 2, ints((0, 1))) == NOT_SUPPORTED
    lines = [line for line in capfd.readouterr().err.splitlines() if "SX0780" in line]
    assert 3 <= len(lines) == len(set(lines)) <= 5
    assert all("is not implemented; it returns 16" in line for line in lines)


@pytest.mark.parametrize("major", [11, 12])
def test_names_and_versions_of_symbols(major: int) -> None:
    """Programs are linked with the version node of NVIDIA's library; nothing else is exported."""
    import lief

    binary = lief.parse(str(library_folder() / "cufft" / f"libcufft.so.{major}"))
    assert isinstance(binary, lief.ELF.Binary)
    names = {str(s.name) for s in binary.exported_symbols}
    assert all(name.startswith(("cufft", "__cufft", f"libcufft.so.{major}")) for name in names), (
        names
    )
    assert {"cufftPlanMany", "cufftXtMakePlanMany", "cufftXtExec", "cufftEstimateMany"} <= names
    assert len(names) >= (75 if major == 12 else 59)
    soname = binary.get(lief.ELF.DynamicEntry.TAG.SONAME)
    assert isinstance(soname, lief.ELF.DynamicSharedObject)
    assert soname.name == f"libcufft.so.{major}"
