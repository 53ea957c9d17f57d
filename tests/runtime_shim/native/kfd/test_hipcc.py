"""HIP programs as hipcc builds them, kernels in the executable, on AMD's HIP and the emulated
card."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate import toolchain
from sassxlate.runtime_shim import rocm

from .conftest import Run, bundle, said

HERE = Path(__file__).parent / "hipcc"
Tool = Callable[..., str]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program's object file for the host, which holds its kernels: what hipcc's steps make."""
    zig = toolchain.zig_library()
    if zig is None:
        pytest.skip("clang for gfx1100 is not here (pip install '.[test]')")
    folder = tmp_path_factory.mktemp("hipcc")
    tools = (sys.executable, "-m", "ziglang")

    def run(*words: object) -> None:
        done = subprocess.run(
            [*tools, *map(str, words)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    clang = ("clang", "-resource-dir", zig, "-O2", "-std=c++17")
    source = HERE / "program.hip"
    language = ("-x", "hip", "-nogpuinc", "-nogpulib", "--offload-arch=gfx1100")
    text, plain, code = folder / "kernels.s", folder / "kernels.o", folder / "kernels.hsaco"
    device = ("--offload-device-only", "--no-gpu-bundle-output", "-S")
    run(*clang, *language, *device, "-o", text, source)
    run("clang", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-c", "-o", plain, text)
    run("ld.lld", "-shared", plain, "-o", code)
    whole, host = folder / "kernels.hipfb", folder / "program.o"
    whole.write_bytes(bundle(code.read_bytes()))
    include = ("-Xclang", "-fcuda-include-gpubinary", "-Xclang", whole)
    run(*clang, *language, "--offload-host-only", *include, "-fPIC", "-c", "-o", host, source)
    return host


PARTS = (
    *("float", "double", "int", "total", "weigh", "recursive", "sorted", "lanes", "streams"),
    *("indirect", "graph", "together", "peer"),
)


def test_program(on_amd: Run, version: str, compiled: Path, tmp_path: Path, gxx: Tool) -> None:
    """Registered kernels and variables, shared memory, recursion, spills, streams and callbacks,
    graphs, a cooperative launch."""
    (userland,) = (one for one in rocm.fetched() if one.name == version)
    program = tmp_path / "program"
    loose = "-Wl,--unresolved-symbols=ignore-in-shared-libs"
    gxx(compiled, "-o", program, userland.hip, loose)
    done = on_amd("run", "--emulated-card", "--", program)
    assert done.stdout.splitlines() == [*(f"{part} ok" for part in PARTS), "PASS"], done.stderr
    assert (done.returncode, said(done)) == (0, [])


SELF = r"""
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>
int main() {
  char text[PATH_MAX] = {}, real[PATH_MAX] = {};
  const std::string by_number = "/proc/" + std::to_string(getpid()) + "/exe";
  printf("%zd\n", readlink("/proc/self/exe", text, 4));
  printf("%.4s\n", text);
  if (readlink(by_number.c_str(), text, sizeof text - 1) > 0) puts(text);
  if (realpath("/proc/self/exe", real)) puts(real);
  printf("%ld\n", static_cast<long>(lseek(open("/proc/self/exe", O_RDONLY), 0, SEEK_END)));
  if (FILE *file = fopen("/proc/self/exe", "rb")) {
    fseek(file, 0, SEEK_END);
    printf("%ld\n", ftell(file));
  }
  printf("%zd\n", readlink("/proc/1/exe/x", text, sizeof text));
}
"""


def test_its_own_file(on_amd: Run, tmp_path: Path, gxx: Tool) -> None:
    """A program finds itself at /proc/self/exe, not the dynamic linker that started it."""
    (tmp_path / "self.cpp").write_text(SELF)
    program = (tmp_path / "self").resolve()
    gxx("-O1", tmp_path / "self.cpp", "-o", program)
    done = on_amd("run", "--emulated-card", "--", program)
    path, size = str(program), str(program.stat().st_size)
    assert done.stdout.splitlines() == ["4", path[:4], path, path, size, size, "-1"], done.stderr
