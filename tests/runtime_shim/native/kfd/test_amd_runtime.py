"""AMD's own HIP on the emulated card: each version of ROCm that has been fetched.

All of it: ``pytest -m "sweep or not sweep" tests/runtime_shim/native/kfd``.
"""

from __future__ import annotations

import hashlib
import re
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.runtime_shim import rocm
from tests.lowering.emulated import load
from tools.generate import programs
from tools.witness.executor import record

from .conftest import ROOT, Run, bundle, said

PROGRAMS = ROOT / "fixtures/programs"
KEPT = ("saxpy", "reduction", "collatz")
Tool = Callable[..., str]


@pytest.mark.parametrize("name", KEPT)
def test_program(name: str, on_amd: Run) -> None:
    """Programs with a static CUDA runtime pass, and nothing is said."""
    done = on_amd("run", "--device", "hip", "--emulated-card", "--", PROGRAMS / name)
    assert (done.returncode, said(done)) == (0, []), done.stdout + done.stderr
    assert done.stdout.endswith("PASS\n")


def test_dispatches_are_recorded(
    on_amd: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each dispatch is a file for other executors; a folder that is not there is reported."""
    monkeypatch.setenv("SASSXLATE_RECORD_DISPATCHES", str(tmp_path))
    done = on_amd("run", "--emulated-card", "--", PROGRAMS / "saxpy")
    assert (done.returncode, said(done)) == (0, [])
    read = [record.read(file) for file in sorted(tmp_path.glob("DISPATCH.*"))]
    (ours,) = [one for one in read if "saxpy" in one.kernel]
    y = {at: page for at, page in ours.changed.items() if not _host(ours, at)}
    assert len(y) * record.PAGE >= 4 * ours.grid[0] - record.PAGE
    assert ours.bytes_at(ours.descriptor, 64) != bytes(64)
    monkeypatch.setenv("SASSXLATE_RECORD_DISPATCHES", str(tmp_path / "missing"))
    done = on_amd("run", "--emulated-card", "--", PROGRAMS / "saxpy")
    assert done.returncode == 0
    assert "SX0877" in done.stderr


def _host(dispatch: record.Dispatch, address: int) -> bool:
    return any(r.host_memory and r.begin <= address < r.end for r in dispatch.ranges)


@pytest.mark.sweep
@pytest.mark.parametrize("tier", ["llvm", "baseline"])
@pytest.mark.parametrize("name", list(programs.load_programs()))
def test_all_programs(
    name: str, tier: str, on_amd: Run, tmp_path_factory: pytest.TempPathFactory, nvcc: Tool
) -> None:
    """The sixteen programs of the fixtures, on code of both tiers."""
    assert nvcc
    folder = tmp_path_factory.getbasetemp() / "sixteen"
    program = folder / name
    if not program.exists():
        folder.mkdir(exist_ok=True)
        programs.build_program(programs.load_programs()[name], program, (80,))
    done = on_amd("run", "--emulated-card", "--tier", tier, "--", program)
    assert (done.returncode, said(done)) == (0, []), done.stdout + done.stderr
    assert done.stdout.endswith("PASS\n")


@pytest.mark.sweep
def test_selftest(on_amd: Run, tmp_path: Path) -> None:
    """Every fixture of the selftest passes."""
    output = tmp_path / "report.json"
    done = on_amd("selftest", "--emulated-card", "-o", output, timeout=3600)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert " fail" not in done.stdout


# What a program of HIP's asks for by itself, without CUDA: copies of every direction and kind, and
# the errors of what is wrong.
HIP = r"""
#include <dlfcn.h>
#include <cstdio>
#include <cstring>
#include <vector>
using Call = int (*)(...);
static void *library;
static Call f(const char *name) { return reinterpret_cast<Call>(dlsym(library, name)); }
static void say(const char *what, int error) { printf("%s %d\n", what, error); }
int main(int, char **argv) {
  library = dlopen(argv[1], RTLD_NOW);
  if (!library) { puts(dlerror()); return 1; }
  int count = -1;
  say("count", f("hipGetDeviceCount")(&count));
  printf("devices %d\n", count);
  const size_t size = 300001;
  std::vector<unsigned char> from(size), to(size);
  for (size_t i = 0; i < size; ++i) from[i] = static_cast<unsigned char>(i * 7 + i / 256);
  void *a = nullptr, *b = nullptr, *pinned = nullptr, *managed = nullptr;
  say("malloc", f("hipMalloc")(&a, size) | f("hipMalloc")(&b, size));
  say("host", f("hipHostMalloc")(&pinned, size, 0));
  say("managed", f("hipMallocManaged")(&managed, size, 1));
  say("up", f("hipMemcpy")(a, from.data(), size, 1));
  say("across", f("hipMemcpy")((char *)b + 3, (char *)a + 1, size - 5, 3));
  say("pinned", f("hipMemcpy")(pinned, b, size, 2));
  printf("same %d\n", memcmp((char *)pinned + 3, from.data() + 1, size - 5) == 0);
  say("set", f("hipMemset")((char *)a + 5, 0x5a, size - 7));
  say("down", f("hipMemcpy")(to.data(), a, size, 2));
  bool same = to[4] == from[4] && to[size - 1] == from[size - 1];
  for (size_t i = 5; i < size - 2; ++i) same = same && to[i] == 0x5a;
  printf("filled %d\n", same);
  say("2d", f("hipMemcpy2D")(to.data(), size_t(100), a, size_t(128), size_t(100), size_t(50), 2));
  say("into managed", f("hipMemcpy")(managed, from.data(), size, 4));
  printf("same %d\n", memcmp(managed, from.data(), size) == 0);
  void *stream = nullptr, *event = nullptr;
  say("stream", f("hipStreamCreate")(&stream) | f("hipEventCreate")(&event));
  say("async", f("hipMemcpyAsync")(to.data(), pinned, size, 2, stream));
  say("record", f("hipEventRecord")(event, stream));
  say("wait", f("hipEventSynchronize")(event));
  printf("same %d\n", memcmp(to.data(), pinned, size) == 0);
  say("register", f("hipHostRegister")(from.data(), size, 0));
  void *mapped = nullptr;
  say("pointer", f("hipHostGetDevicePointer")(&mapped, from.data(), 0));
  say("from registered", f("hipMemcpy")(a, mapped, size, 3));
  say("down", f("hipMemcpy")(to.data(), a, size, 2));
  printf("same %d\n", memcmp(to.data(), from.data(), size) == 0);
  say("unregister", f("hipHostUnregister")(from.data()));
  say("free", f("hipFree")(a) | f("hipFree")(b) | f("hipHostFree")(pinned) | f("hipFree")(managed));
  void *module = nullptr;
  const char *junk = "no code object at all, but as long as the header of an ELF file is";
  say("junk", f("hipModuleLoadData")(&module, junk));
  say("too much", f("hipMalloc")(&a, size_t(1) << 60));
  return 0;
}
"""
EXPECTED = """count 0
devices 1
malloc 0
host 0
managed 0
up 0
across 0
pinned 0
same 1
set 0
down 0
filled 1
2d 0
into managed 0
same 1
stream 0
async 0
record 0
wait 0
same 1
register 0
pointer 0
from registered 0
down 0
same 1
unregister 0
free 0
junk 200
too much 2
"""


def test_hip_program(on_amd: Run, version: str, tmp_path: Path, gxx: Tool) -> None:
    """A HIP program that knows nothing of us: AMD's copies by the copy engines and by its own
    kernels, pinned, registered and managed memory, streams and events."""
    (tmp_path / "hip.cpp").write_text(HIP)
    gxx("-O1", tmp_path / "hip.cpp", "-o", tmp_path / "hip", "-ldl")
    (userland,) = (one for one in rocm.fetched() if one.name == version)
    done = on_amd("run", "--emulated-card", "--", tmp_path / "hip", userland.hip)
    assert done.stdout == EXPECTED, done.stderr
    assert (done.returncode, said(done)) == (0, [])


def test_script_is_refused(on_amd: Run, tmp_path: Path) -> None:
    """AMD's loader starts programs alone; the message says what to do."""
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\ntrue\n")
    script.chmod(0o755)
    done = on_amd("run", "--emulated-card", "--", script)
    assert done.returncode != 0
    assert re.search(r"SX0875: .* is a script", done.stderr)


# Loads modules, each a file and the name of its kernel.
MODULES = r"""
import ctypes, sys
hip = ctypes.CDLL(sys.argv[1])
for name, kernel in zip(sys.argv[2::2], sys.argv[3::2]):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    image = ctypes.create_string_buffer(open(name, "rb").read())
    print(hip.hipModuleLoadData(ctypes.byref(module), image), flush=True)
    print(hip.hipModuleGetFunction(ctypes.byref(function), module, kernel.encode()), flush=True)
"""


def _compressed(code_object: bytes) -> bytes:
    """An offload bundle as hipcc --offload-compress writes it (clang's second version, zlib)."""
    whole = bundle(code_object)
    packed, digest = zlib.compress(whole), hashlib.md5(whole, usedforsecurity=False).digest()[:8]
    return struct.pack("<4sHHII8s", b"CCOB", 2, 0, 24 + len(packed), len(whole), digest) + packed


def test_compressed_bundles(on_amd: Run, version: str, tmp_path: Path) -> None:
    """Each has its own code, though comgr's cache may take one for the other."""
    words: list[object] = []
    for kernel in ("early_exit", "divergent_if"):
        file = tmp_path / kernel
        file.write_bytes(_compressed(translate_kernel(load(kernel, 80), kernel).code_object))
        words += [file, kernel]
    library = f"libamdhip64.so.{version[0]}"
    done = on_amd(*("run", "--emulated-card", "--", sys.executable, "-c", MODULES, library), *words)
    assert done.stdout.split() == ["0"] * 4, done.stderr


def test_doctor(on_amd: Run, version: str) -> None:
    done = on_amd("doctor")
    assert re.search(rf"ok +ROCm +{re.escape(version)}: .*libamdhip64", done.stdout)


def test_page(on_amd: Run, version: str) -> None:
    """The page's last command, from the checkout; the two before it have been called."""
    page = (ROOT / "docs/amd-runtime.md").read_text()
    (block,) = re.findall(r"^```console\n(.*?)^```$", page, re.M | re.S)
    commands = [line.removeprefix("$ ") for line in block.splitlines()]
    assert commands[:2] == ["pip install -q -e .", "python -m tools.rocm fetch 7.2.4"]
    program, *words = commands[2].split()
    assert program == "sassxlate"
    done = on_amd(*(ROOT / w if w.startswith("fixtures/") else w for w in words))
    assert done.stdout.endswith("PASS\n"), done.stderr
    assert version


DRIVER = ROOT / "tests/runtime_shim/native/cuda/programs"
# Not here: "fault" and "reset", after which AMD's library has ended the process.
CHECKS = (
    *("launch", "library", "mixed", "variables", "shared", "limits", "extended", "memory"),
    *("streams", "contexts", "threads", "forked", "ending"),
    *("access_rights", "mapped_ranges"),
)


@pytest.mark.sweep
def test_driver_calls(
    on_amd: Run, libraries: Path, tmp_path_factory: pytest.TempPathFactory, nvcc: Tool
) -> None:
    """Groups of driver calls, as the driver's own tests make them."""
    folder = tmp_path_factory.mktemp("driver")
    program, image = folder / "driver", folder / "kernels.cubin"
    link = (f"-L{libraries}", "-l:libcuda.so.1")
    nvcc("-std=c++17", "-cudart", "none", *sorted(DRIVER.glob("driver*.cpp")), "-o", program, *link)
    nvcc("-cubin", "-arch=sm_80", DRIVER / "kernels.cu", "-o", image)
    for name in CHECKS:
        done = on_amd("run", "--emulated-card", "--keep-status", "--", program, name, image)
        assert done.stdout.endswith("PASS\n"), f"{name}: {done.stdout}{done.stderr}"


@pytest.mark.sweep
def test_hostcalls(on_amd: Run, tmp_path: Path, nvcc: Tool) -> None:
    """printf, assert, malloc and free in kernels; the assertion's error stays."""
    nvcc("-arch=sm_80", ROOT / "tests/e2e/builds/hostcalls.cu", "-o", tmp_path / "hostcalls")
    done = on_amd("run", "--emulated-card", "--keep-status", "--", tmp_path / "hostcalls")
    tail = ["lists wrong = 0, failures = 0", "assert: cudaErrorAssert", "after: cudaErrorAssert"]
    assert done.stdout.splitlines()[-3:] == tail, done.stderr


@pytest.mark.sweep
def test_errors(on_amd: Run, version: str, tmp_path: Path, nvcc: Tool) -> None:
    """152 calls of the runtime, most of them wrong, with CUDA's answers: HIP 7 has those after a
    kernel's fault too, HIP 6 ends the process there, on a card as well."""
    folder = ROOT / "tests/runtime_shim/native/cudart"
    nvcc("-arch=sm_80", folder / "programs/answers.cu", "-o", tmp_path / "answers")
    kept = (folder / "answers.txt").read_text().splitlines()
    wanted = [line for line in kept if not line.startswith("#")]
    done = on_amd("run", "--emulated-card", "--keep-status", "--", tmp_path / "answers")
    printed = done.stdout.splitlines()
    assert printed == wanted[: len(printed)], done.stderr
    assert "SX0661" in done.stderr
    if version.startswith("6."):
        assert done.returncode == 128 + 6
        assert len(printed) > 140
    else:
        assert (done.returncode, len(printed)) == (0, len(wanted))
