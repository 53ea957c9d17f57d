"""Words of a table in shared memory at the ends of an unrolled search: each loaded at last."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.compiler.searches import searched
from sassxlate.lowering.tier.translate import by_tier

SOURCE = r"""
extern "C" __global__ void nearest(const float *table, const float *a, int *o) {
    __shared__ float words[256];
    words[threadIdx.x] = table[threadIdx.x + 256 * blockIdx.x];
    __syncthreads();
    int i = threadIdx.x + blockIdx.x * 256, at = 127, low = 0, high = 255;
    float x = a[i], below = -1.0f, above = 1.0f, word = words[at];
    float first = words[0], last = words[255];
    for (int step = 64; step > 0; step /= 2) {
        if (x > word) { low = at; below = word; at += step; }
        else { high = at; above = word; at -= step; }
        word = words[at];
    }
    above = high == 255 ? last : above;
    below = low == 0 ? first : below;
    if (x > word) o[i] = x > (above + word) * 0.5f ? high : at;
    else o[i] = x < (below + word) * 0.5f ? low : at;
}
"""
THREADS, BLOCKS = 256, 4


def _results(made: Translated, given: list[bytes]) -> bytes:
    device = EmulatedDevice(1 << 20)
    size = 4 * THREADS * BLOCKS
    places = [device.alloc(side) for side in given] + [device.alloc(bytes(size))]
    shape = (THREADS, 1, 1), (BLOCKS, 1, 1)
    segment = made.launch.kernarg(struct.pack("<3Q", *places), *shape, {}, 0)
    run_code_object(made.code_object, "nearest", BLOCKS, THREADS, segment, device, CompileOptions())
    return device.read(places[2], size)


def test_of_a_kernel(tmp_path: Path) -> None:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, no NVIDIA wheels")
    source, out = tmp_path / "nearest.cu", tmp_path / "nearest.cubin"
    source.write_text(SOURCE)
    command = [*nvcc.command, "-arch=sm_80", "-ftz=true", "-cubin", "-o", out, source]
    subprocess.run(command, check=True, capture_output=True)
    rules = translate_kernel(parse_cubin(out.read_bytes()), "nearest")
    tier = by_tier(rules, DEFAULT)
    ops = [getattr(item, "op", "") for item in tier.items]
    assert sum("cndmask" in op for op in ops) <= 14  # 8 of the turns
    assert ops.count("v_lshlrev_b32") <= 2
    chance = np.random.default_rng(8)
    tables = chance.uniform(-1, 1, (BLOCKS, 256)).astype(np.float32)
    tables[:2].sort()
    numbers = chance.uniform(-1.2, 1.2, THREADS * BLOCKS).astype(np.float32)
    numbers[::9] = chance.choice(tables.ravel(), len(numbers[::9]))
    numbers[::7] = chance.choice(np.array([0, -0.0, 1e-40, 2, -2, np.nan, np.inf, -np.inf],
                                          np.float32), len(numbers[::7]))  # fmt: skip
    given = [tables.tobytes(), numbers.tobytes()]
    wanted = np.frombuffer(_results(rules, given), np.int32)
    got = np.frombuffer(_results(tier, given), np.int32)
    assert {0, 255} <= set(wanted.tolist())
    assert np.array_equal(got, wanted), np.flatnonzero(got != wanted)[:8]


def _lines(turns: int = 4) -> list[str]:
    """A search of places from 15, in a table at 64."""
    lines = ["%w = load i32, ptr addrspace(3) inttoptr (i32 124 to ptr addrspace(3)), align 4",
             "%c0 = icmp sgt i32 %x, %w", "%p0 = select i1 %c0, i32 23, i32 7",
             "%l0 = select i1 %c0, i32 15, i32 0",
             "%b0 = select i1 %c0, i32 %w, i32 -9"]  # fmt: skip
    for n in range(1, turns):
        b = n - 1
        lines += [
            f"%s{n} = shl nuw nsw i32 %p{b}, 2",
            f"%g{n} = inttoptr i32 %s{n} to ptr addrspace(3)",
            f"%q{n} = getelementptr i8, ptr addrspace(3) %g{n}, i32 64",
            f"%w{n} = load i32, ptr addrspace(3) %q{n}, align 4",
            f"%c{n} = icmp sgt i32 %x, %w{n}",
            f"%t{n} = select i1 %c{n}, i32 {16 >> n + 1}, i32 -{16 >> n + 1}",
            f"%p{n} = add nsw i32 %p{b}, %t{n}",
            f"%l{n} = select i1 %c{n}, i32 %p{b}, i32 %l{b}",
            f"%b{n} = select i1 %c{n}, i32 %w{n}, i32 %b{b}",
        ]
    return [
        *lines,
        "%first = load i32, ptr addrspace(3) inttoptr (i32 64 to ptr addrspace(3)), align 4",
        "%never = icmp eq i32 %l3, 0",
        "%r = select i1 %never, i32 %first, i32 %b3",
    ]


def _module(text: str) -> str:
    return f"define i32 @f(i32 %x, ptr %o) {{\nentry:\n  {text}\n  ret i32 %r\n}}\n"


LOADED = "%r = load i32, ptr addrspace(3) %word."


def test_the_last_word() -> None:
    out = searched(_module("\n  ".join(_lines())))
    assert LOADED in out
    assert ".e = add i32 %word." in out
    assert "call i32 @llvm.smax.i32(i32 %word." in out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i32 -9", "i32 %x"),  # whatever there is in the place of no word
        ("%x, %w2", "%w2, %x"),
    ],
)
def test_what_does_not_matter(old: str, new: str) -> None:
    text = "\n  ".join(_lines())
    assert old in text
    assert LOADED in searched(_module(text.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(i32 64 to", "(i32 68 to"),  # another first word
        ("(i32 124 to", "(i32 128 to"),
        ("%q2 = getelementptr i8, ptr addrspace(3) %g2, i32 64",
         "%q2 = getelementptr i8, ptr addrspace(3) %g2, i32 60"),  # another table
        ("%s2 = shl nuw nsw i32 %p1, 2", "%s2 = shl nuw nsw i32 %p1, 3"),
        ("%b2 = select i1 %c2, i32 %w2, i32 %b1", "%b2 = select i1 %c2, i32 %w1, i32 %b1"),
        ("%b2 = select i1 %c2, i32 %w2, i32 %b1", "%b2 = select i1 %c1, i32 %w2, i32 %b1"),
        ("%b2 = select i1 %c2, i32 %w2, i32 %b1", "%b2 = select i1 %c2, i32 %b1, i32 %w2"),
        ("%l0 = select i1 %c0, i32 15, i32 0", "%l0 = select i1 %c0, i32 15, i32 1"),
        ("icmp eq i32 %l3, 0", "icmp eq i32 %l3, 15"),
        ("icmp eq i32 %l3, 0", "icmp eq i32 %l2, 0"),
        ("icmp eq i32 %l3, 0", "icmp ne i32 %l3, 0"),
        ("%r = select", "%k = add i32 %b3, 1\n  %r = select"),  # the last choice has another use
        ("%c3 = icmp", "store i32 %x, ptr %o\n  %c3 = icmp"),
        ("%c3 = icmp", 'fence syncscope("wavefront") acq_rel\n  %c3 = icmp'),
        ("%c3 = icmp", "br label %next\nnext:\n  %c3 = icmp"),
        ("%w1 = load i32", "%w1 = load volatile i32"),
    ],
)  # fmt: skip
def test_what_is_nearly_one(old: str, new: str) -> None:
    text = "\n  ".join(_lines())
    assert text.count(old) == 1
    assert LOADED not in searched(_module(text.replace(old, new)))
