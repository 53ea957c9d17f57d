"""`sassxlate run --report`: what a program used, with executions counted by the emulated device."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sassxlate.disasm.containers import load
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.store import need, seal
from sassxlate.runtime_shim.replay import counting

SAXPY = Path(__file__).resolve().parents[3] / "fixtures" / "programs" / "saxpy"
COMMAND = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator"]
NAME = "_Z5saxpyifPKfPf"


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    cache = tmp_path_factory.mktemp("cache")
    return {**os.environ, "SASSXLATE_CACHE_DIR": str(cache), "SASSXLATE_SERVICE_IDLE": "5"}


def run(env: dict[str, str], *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def data(env: dict[str, str], out: Path, *words: object) -> dict[str, Any]:
    done = run(env, "--report", out, *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("PASS\n")
    assert done.stderr == ""
    made: dict[str, Any] = json.loads(out.read_text())
    return made


@pytest.mark.parametrize("strict", [False, True])
def test_executions_are_counted(env: dict[str, str], tmp_path: Path, strict: bool) -> None:
    """As many as the device's own sum, which each wave accumulates in a register."""
    tally = tmp_path / "tally"
    options = ["--strict"] if strict else []
    more = {**env, "SASSXLATE_INSTRUCTIONS": str(tally)}
    made = data(more, tmp_path / "r.json", *options, "--", SAXPY)
    (kernel,) = made["kernels"]
    assert (kernel["name"], kernel["status"], made["command"]) == (NAME, "translated", "run")
    runs = kernel["runs"]
    (executed,) = struct.unpack("<Q", tally.read_bytes())
    assert runs["executed"] == made["totals"]["executed"] == executed
    assert runs["waves"] == runs["workgroups"] * runs["threads"] // 32
    blocks = {p["sass_block"]: p.get("runs") for p in kernel["details"]["parts"]}
    assert blocks[0] == runs["waves"]
    assert kernel["resources"]["threads_are"] == "as it was run"
    assert kernel["verdicts"] is None


def test_counting_compiles_nothing_anew(env: dict[str, str], tmp_path: Path) -> None:
    """With the program's code in the cache, a run with a report adds no host code, and counts what
    compiled code with counters does."""
    mine = {**env, "SASSXLATE_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "cache").mkdir()
    run(mine, "--tier", "llvm", "--", SAXPY)
    run(mine, "--tier", "baseline", "--", SAXPY)  # the stencils are there
    compiled = sorted((tmp_path / "cache").glob("host/*/*.sxh"))
    assert len(compiled) == 1
    fast = data(mine, tmp_path / "fast.json", "--", SAXPY)
    assert sorted((tmp_path / "cache").glob("host/*/*.sxh")) == compiled
    slow = data(mine, tmp_path / "slow.json", "--tier", "llvm", "--", SAXPY)
    assert len(list((tmp_path / "cache").glob("host/*/*.sxh"))) == 2
    assert fast["kernels"] == slow["kernels"]


def test_a_page_and_no_counting_without_it(env: dict[str, str], tmp_path: Path) -> None:
    done = run(env, "--report", tmp_path / "r.html", "--", SAXPY, "--oops")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert done.stderr == ""
    done = run(env, "--", "env")
    assert "SASSXLATE_COUNTS" not in done.stdout


def changed(program: Path, word: bytes) -> bytes:
    """The program with another instruction in the place of the kernel's third, sm_90."""
    data = program.read_bytes()
    kernel = next(k for _, c in load(str(program)).cubins() if c.arch == 90 for k in c.kernels)
    assert data.count(kernel.code) == 1
    place = data.index(kernel.code) + 0x20
    return data[:place] + word + data[place + 16 :]


def test_a_refused_kernel(env: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "saxpy"
    program.write_bytes(changed(SAXPY, assemble("KILL", 90, 0x20).to_bytes(16, "little")))
    program.chmod(0o755)
    done = run(env, "--report", tmp_path / "r.json", "--", program)
    assert done.returncode == 3
    made = json.loads((tmp_path / "r.json").read_text())
    (row,) = made["kernels"]
    assert (row["name"], row["refused"]["code"]) == (NAME, "SX0403")
    assert row["shown"].startswith("saxpy(")
    assert "KILL" in row["refused"]["message"]
    assert made["totals"]["refused"] == 1


def test_code_of_another_engine(env: dict[str, str], tmp_path: Path) -> None:
    """The report shows the code that ran, not the rules' code: a kernel in the cache has one more
    nop."""
    run(env, "--", SAXPY)
    (path,) = Path(env["SASSXLATE_CACHE_DIR"]).glob("kernel/*/*.hsaco")
    code = need(path)
    load_ = struct.pack("<I", 0xBF8903F7)  # s_waitcnt vmcnt(0)
    assert load_ in code
    other = code.replace(load_, struct.pack("<I", 0xBF890000), 1)  # waits for all
    path.write_bytes(seal(path.name, other))
    try:
        made = data(env, tmp_path / "r.json", "--", SAXPY)
    finally:
        path.write_bytes(seal(path.name, code))
    (kernel,) = made["kernels"]
    assert kernel["engine"] == "not recorded"
    assert "a model wrote part" in made["notes"][0]
    rows = [row for part in kernel["details"]["parts"] for row in part["rows"]]
    texts = [c["text"] for row in rows for c in row["rdna3"]]
    assert any("lgkmcnt(0)" in t and "vmcnt(0)" in t for t in texts)


def test_a_program_without_kernels(env: dict[str, str], tmp_path: Path) -> None:
    done = run(env, "--report", tmp_path / "r.json", "--", "sh", "-c", "exit 5")
    assert (done.returncode, done.stderr) == (5, "")
    made = json.loads((tmp_path / "r.json").read_text())
    assert (made["kernels"], made["notes"]) == ([], ["The program used no kernel."])


def test_where_no_report_can_be_written(env: dict[str, str], tmp_path: Path) -> None:
    done = run(env, "--report", tmp_path / "r.txt", "--", SAXPY)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("sassxlate: SX0841: ")
    (tmp_path / "file").write_text("")
    done = run(env, "--report", tmp_path / "file/r.html", "--", SAXPY)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("sassxlate: SX0813: ")


def test_damaged_counts(tmp_path: Path) -> None:
    def text(blocks: object, words: int, kernel: str = "kernel k\n") -> bytes:
        head = f"sassxlate-counts 1\nkey 00ff\nblocks {blocks}\n{kernel}".encode()
        return head + bytes(4096 - len(head)) + struct.pack(f"<{words}Q", *range(words))

    file = tmp_path / "counts-1-0"
    file.write_bytes(text(2, 10))
    (tmp_path / "counts-1-1").write_bytes(text(2, 10))
    found = counting.read(tmp_path)["00ff"]
    assert (found.kernel, found.launches, found.waves) == ("k", 0, 4)
    assert (found.threads, found.shared, found.blocks) == (3, 4, (16, 18))
    for wrong in (b"", text("x", 9), text(2, 9), text(-20, 10), text(2, 10, "kern"), b"\0" * 9000):
        file.write_bytes(wrong)
        with pytest.raises(ShimError) as caught:
            counting.read(tmp_path)
        assert caught.value.code == "SX0724"


_OVERRUN = """
import ctypes
cuda, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
assert not cuda.cuMemAllocManaged(ctypes.byref(memory), ctypes.c_size_t(100), 1)
ctypes.memset(memory.value, 1, 104)
print("PASS")
"""


def test_what_was_forgiven_is_named(env: dict[str, str], tmp_path: Path) -> None:
    """A write past an allocation, which an NVIDIA GPU lets pass as well: nothing on stderr."""
    made = data(env, tmp_path / "r.json", sys.executable, "-c", _OVERRUN)
    (note,) = (note for note in made["notes"] if "SX0679" in note)
    assert "4 bytes past the end of an allocation of 100 bytes" in note


_RECURSION = """
import ctypes, sys
cuda, context, module = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
kernel, memory, n = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int(64)
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
assert not cuda.cuModuleLoad(ctypes.byref(module), sys.argv[1].encode())
assert not cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"calls3")
assert not cuda.cuMemAllocManaged(ctypes.byref(memory), ctypes.c_size_t(1 << 16), 1)
words = (ctypes.c_void_p * 4)(*map(ctypes.addressof, (memory, memory, memory, n)))
for _ in range(2):
    assert not cuda.cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, None, words, None)
assert not cuda.cuCtxSynchronize()
print("PASS")
"""
_CALLS = SAXPY.parents[1] / "silicon/sm_90/convergence/calls3.sm_90.cubin"


def test_recursion_that_comes_apart_is_said(env: dict[str, str], tmp_path: Path) -> None:
    """Once in a run, at the first launch: translated now, from the cache, by both tiers and in
    strict mode; a row and a note of the report.  Without a launch nothing is said."""
    program = (sys.executable, "-c", _RECURSION, _CALLS)
    report = ("--report", tmp_path / "r.json")
    for options in (report, ("--tier", "baseline"), ("--strict",)):
        done = run(env, *options, "--", *program)
        assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stderr
        (line,) = done.stderr.splitlines()
        assert line.startswith("sassxlate: SX0773: calls3: it recurses")
    made = json.loads((tmp_path / "r.json").read_text())
    (kernel,) = made["kernels"]
    assert kernel["comes_apart"]
    assert made["notes"] == [line.removeprefix("sassxlate: ")]
    unlaunched = _RECURSION.replace("range(2)", "range(0)")
    done = run(env, "--", sys.executable, "-c", unlaunched, _CALLS)
    assert (done.stdout, done.stderr) == ("PASS\n", "")
