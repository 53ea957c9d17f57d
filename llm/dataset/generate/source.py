"""Random CUDA C++: kernels of common shapes, filled with random statements over all types.

A seed decides everything, so a name such as ``gen0-000123`` always denotes the same program.  The
kernels are compiled, not run: it does not matter what they compute, only that nvcc cannot eliminate
it.
"""

from __future__ import annotations

import random

from sassxlate.llm.dataset.generate import unusual
from sassxlate.llm.dataset.generate.scope import Scope

_HEAD = """#include <cuda_fp16.h>
#include <cstdint>
struct Pair { float x; int y; };
struct Body { float3 p; float m; int id; unsigned char tag; };
__constant__ float table_f[64];
__constant__ int table_i[64];
__device__ unsigned counter_u;
"""


_PARAMETERS = (
    "const int* __restrict__ ai, const unsigned* au, const float* __restrict__ af, "
    "const double* ad, const unsigned char* __restrict__ ab, const __half* ah, "
    "const long long* al, const short* as, const Body* bodies, Body* bodies_out, int* oi, "
    "unsigned* ou, float* of, double* od, unsigned char* ob, int n, float s, unsigned k, "
    "double x, long long m"
)


def free_kernel(rng: random.Random, name: str) -> str:
    """A kernel of random statements."""
    scope = Scope(rng)
    for kind, names in {
        "int": ["t", "n"], "float": ["s"], "unsigned": ["k"], "double": ["x"], "long long": ["m"],
    }.items():  # fmt: skip
        for n in names:
            scope.add(kind, n)
    lines = [f'extern "C" __global__ void {name}({_PARAMETERS}) {{']
    lines.append("  __shared__ float sf[256]; __shared__ int si[256]; __shared__ double sd[256];")
    lines.append(f"  int t = {rng.choice(_INDEX)};")
    if rng.random() < 0.5:
        lines.append("  if (t >= n) return;")
        scope.together = False
    for _ in range(rng.randint(1, 3)):
        scope.load()
    scope.some(4, 16)
    for kind, place in (("float", "of"), ("int", "oi"), ("double", "od"), ("unsigned", "ou")):
        mine = [v for v in scope.names.get(kind, ()) if v.startswith(("v", "q", "b"))]
        if mine and rng.random() < 0.8:
            scope.line(f"{place}[t] = {' + '.join(mine[-6:])};")
    used = "\n".join(scope.lines)
    return "\n".join([*lines, used, "}"])


_INDEX = (
    "blockIdx.x * blockDim.x + threadIdx.x", "blockIdx.x * 256 + threadIdx.x", "threadIdx.x",
    "(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x",
    "blockIdx.x * blockDim.x * 4 + threadIdx.x",
)  # fmt: skip


KERNELS = 12  # per program, by default


def source(seed: int, number: int, kernels: int = KERNELS) -> str:
    """The program with a number: CUDA C++ with this many kernels, none of which is in a program of
    another size."""
    from sassxlate.llm.dataset.generate.shapes import shaped_kernel

    parts = [_HEAD + unusual.HEAD]
    for n in range(kernels):
        size = f" {kernels}" if kernels != KERNELS else ""
        rng = random.Random(f"{seed}{size} {number} {n}")
        name = f"k{number}_{n}"
        parts.append(shaped_kernel(rng, name) if rng.random() < 0.4 else free_kernel(rng, name))
    return "\n\n".join(parts) + "\n"


__all__ = ["KERNELS", "free_kernel", "source"]
