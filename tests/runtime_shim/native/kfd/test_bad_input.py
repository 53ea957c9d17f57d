"""Bad input on AMD's HIP: CUDA's errors with one line each, and AMD's library never sees it."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from sassxlate.disasm.containers.elf import Elf

from .conftest import ROOT, Run, said

# Modules that are cut off or have wrong bytes, a kernel that is not there, and arguments of a wrong
# size.
BAD = r"""
import ctypes, random, sys
cuda = ctypes.CDLL("libcuda.so.1")
data = open(sys.argv[1], "rb").read()
name = sys.argv[2].encode()
code = range(int(sys.argv[3]), int(sys.argv[4]))
context, module, function = (ctypes.c_void_p() for _ in range(3))
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
def load(image):
    held = ctypes.create_string_buffer(image, len(data) + 4096)
    return cuda.cuModuleLoadData(ctypes.byref(module), held)
def found(image):
    return load(image) or cuda.cuModuleGetFunction(ctypes.byref(function), module, name)
random.seed(1)
print("cut", {found(data[: random.randrange(1, len(data) // 2)]) for _ in range(8)} <= {200, 500})
rest = [at for at in range(64, len(data)) if at not in code]
codes = []
for n in range(64):
    wrong = bytearray(data)
    at = random.randrange(64) if n < 16 else random.choice(rest)
    wrong[at] = random.choice((wrong[at] ^ 1 << random.randrange(8), 0, 255))
    codes.append(found(bytes(wrong)))
print("wrong", set(codes) <= {0, 200, 500}, 0 in codes, 200 in codes)
print("whole", load(data))
print("missing", cuda.cuModuleGetFunction(ctypes.byref(function), module, b"no_such_kernel"))
print("found", cuda.cuModuleGetFunction(ctypes.byref(function), module, name))
size = ctypes.c_size_t(100000)
block = ctypes.create_string_buffer(100000)
extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(block), 2, ctypes.addressof(size), 0)
sizes = (1, 1, 1, 32, 1, 1, 0)
print("size", cuda.cuLaunchKernel(function, *sizes, None, None, extra))
print("end", cuda.cuCtxSynchronize(), flush=True)
"""


def test_bad_input(on_amd: Run) -> None:
    cubin = ROOT / "fixtures/kernels/sm_80/early_exit.cubin"
    (text,) = (s for s in Elf(cubin.read_bytes()).sections if s.name.startswith(".text."))
    span = (text.offset, text.offset + text.size)
    words = (sys.executable, "-c", BAD, cubin, "early_exit", *span)
    done = on_amd("run", "--emulated-card", "--keep-status", "--", *words)
    assert done.stdout.splitlines() == [
        *("cut True", "wrong True True True", "whole 0", "missing 500", "found 0"),
        *("size 1", "end 0"),
    ], done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.sweep
def test_damaged_cache(on_amd: Run, tmp_path: Path) -> None:
    """Code objects and what else is in the cache are made anew once a bit is wrong or bytes are
    missing."""
    choice = random.Random(1)
    program = ("run", "--emulated-card", "--", ROOT / "fixtures/programs/saxpy")
    for cut in (False, True, None):
        done = on_amd(*program, SASSXLATE_CACHE_DIR=str(tmp_path))
        assert (done.returncode, said(done)) == (0, []), done.stdout + done.stderr
        assert done.stdout.endswith("PASS\n")
        kept = [file for file in tmp_path.rglob("*") if file.suffix in (".hsaco", ".o", ".txt")]
        assert ".hsaco" in {file.suffix for file in kept}
        for file in kept if cut is not None else ():
            data = bytearray(file.read_bytes())
            at = choice.randrange(len(data))
            data[at] ^= 1 << choice.randrange(8)
            file.write_bytes(data[:at] if cut else data)
