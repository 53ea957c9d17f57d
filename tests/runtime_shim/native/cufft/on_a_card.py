"""A program that the tests start with a HIP library that is not the emulated device's."""

from __future__ import annotations

from ctypes import byref, c_int, c_size_t, c_void_p

from cufft_api import (
    C2C,
    C2R,
    FORWARD,
    INVERSE,
    R2C,
    Z2Z,
    Cuda,
    Cufft,
)

cuda, cufft = Cuda(), Cufft(12)
memory = cuda.allocate(4096)
print(f"memory {memory:#x}", flush=True)


def show(name: str, *arguments: object) -> None:
    """One call and its result."""
    code = cufft.code(name, *arguments)
    print(f"{name} -> {code}", flush=True)


data, other = c_void_p(memory), c_void_p(memory + 2048)
size = c_size_t()
show("cufftEstimate1d", 100, C2C, 2, byref(size))
print("size", size.value, flush=True)
plan = cufft.create()
show("cufftSetAutoAllocation", plan, 0)
show("cufftMakePlan2d", plan, 8, 16, R2C, byref(size))
print("size", size.value, flush=True)
show("cufftSetWorkArea", plan, data)
show("cufftSetStream", plan, c_void_p(1))
show("cufftExecR2C", plan, data, other)
show("cufftExecC2C", plan, data, other, FORWARD)
show("cufftDestroy", plan)
many = c_int()
lengths, stored = (c_int * 2)(4, 5), (c_int * 2)(6, 7)
show("cufftPlanMany", byref(many), 2, lengths, stored, 1, 42, stored, 2, 84, Z2Z, 3)
show("cufftExecZ2Z", many, data, data, INVERSE)
back = c_int()
show("cufftPlan1d", byref(back), 9, C2R, 1)
show("cufftSetStream", back, c_void_p(2))
show("cufftExecC2R", back, data, other)
stream, graph = cuda.stream(), c_void_p()
show("cufftSetStream", back, stream)
cuda.call("cuStreamBeginCapture_v2", stream, 0)
show("cufftExecC2R", back, data, other)
cuda.call("cuStreamEndCapture", stream, byref(graph))
show("cufftPlan1d", byref(many), -1, C2C, 1)
