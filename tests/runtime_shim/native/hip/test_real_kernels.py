"""The whole way: gfx1100 assembly, LLVM's assembler and linker, our compiler, the library."""

from __future__ import annotations

import importlib.util
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from ctypes import c_size_t, c_void_p
from pathlib import Path
from typing import Any

import pytest

from sassxlate.errors import SassxlateError
from sassxlate.runtime_shim.cache.store import seal

from .conftest import HERE, Script
from .hip_api import Hip
from .hip_images import StubService

KERNELS = HERE / "kernels.s"


class CompilingService(StubService):
    """Answers with what the emulator's compiler makes of the code object."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, b"", {})
        self._lock = threading.Lock()

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        from sassxlate.lowering.emulate import compile_code_object

        if request["op"] in ("tag", "stencils"):
            return super()._answer(request)
        kernel, strict = request["kernel"], bool(request["strict"])
        part: str = request.get("entered", "")
        path = self.directory / f"{kernel}-{strict}{part and '-'}{part}.sxh"
        try:
            with self._lock:
                code = Path(request["code_object"]).read_bytes()
                quick = bool(request.get("quick"))
                made = compile_code_object(code, kernel, strict=strict, quick=quick, entered=part)
                path.write_bytes(seal(path.name, made))
        except SassxlateError as error:
            return {"ok": False, "cuda_error": 801, "line": str(error)}
        return {"ok": True, "image": str(path)}


def metadata(text: str) -> str:
    """The note that goes with the kernels of the assembly text."""
    lines = ["", ".amdgpu_metadata", "---", "amdhsa.version: [1, 2]", "amdhsa.kernels:"]
    for name, lds, scratch in re.findall(r"^finish (\w+)(?:, (\d+))?(?:, (\d+))?$", text, re.M):
        lines += [
            f"  - .name: {name}",
            f"    .symbol: {name}.kd",
            "    .kernarg_segment_size: 32",
            "    .kernarg_segment_align: 8",
            f"    .group_segment_fixed_size: {lds or 0}",
            f"    .private_segment_fixed_size: {scratch or 0}",
            "    .wavefront_size: 32",
            "    .sgpr_count: 32",
            "    .vgpr_count: 16",
            "    .max_flat_workgroup_size: 1024",
            "    .args: [{.offset: 0, .size: 32, .value_kind: by_value}]",
        ]
    return "\n".join([*lines, "...", ".end_amdgpu_metadata", ""])


@pytest.fixture(scope="module")
def code_object(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("no ziglang to assemble with")
    directory = tmp_path_factory.mktemp("kernels")
    text = KERNELS.read_text()
    (directory / "k.s").write_text(text + metadata(text))
    for command in (
        ["cc", "-target", "amdgcn-amdhsa", "-mcpu=gfx1100", "-c", "k.s", "-o", "k.o"],
        ["ld.lld", "-shared", "k.o", "-o", "k.hsaco"],
    ):
        subprocess.run([sys.executable, "-m", "ziglang", *command], cwd=directory, check=True)
    return directory / "k.hsaco"


@pytest.fixture(scope="module")
def real(hip: Hip, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CompilingService]:
    directory = tmp_path_factory.mktemp("real")
    patch = pytest.MonkeyPatch()
    made = CompilingService(directory)
    patch.setenv("SASSXLATE_SOCKET", str(made.path))
    patch.setenv("SASSXLATE_CACHE_TAG", "real")
    yield made
    patch.undo()


@pytest.fixture(scope="module")
def module(hip: Hip, real: CompilingService, code_object: Path) -> Iterator[int]:
    loaded = hip.load(code_object.read_bytes())
    yield loaded
    hip.ok("hipModuleUnload", c_void_p(loaded))


def test_saxpy(hip: Hip, module: int) -> None:
    n = 256 * 40
    x, y, out = (hip.malloc(4 * n) for _ in range(3))
    hip.write(x, struct.pack(f"<{n}f", *(float(i) for i in range(n))))
    hip.write(y, struct.pack(f"<{n}f", *(float(i % 7) for i in range(n))))
    args = struct.pack("<QQQ", x, y, out)
    assert hip.launch(hip.function(module, "saxpy"), n // 256, 256, args) == 0
    result = struct.unpack(f"<{n}f", hip.read(out, 4 * n))
    assert result == tuple(2.0 * i + i % 7 for i in range(n))
    for pointer in (x, y, out):
        hip.free(pointer)


def test_barrier_scratch_and_constants(hip: Hip, module: int) -> None:
    out = hip.malloc(4 * 256 * 9)
    args = struct.pack("<Q", out)
    assert hip.launch(hip.function(module, "reverse"), 9, 256, args) == 0
    assert hip.words(out, 256 * 9) == list(range(255, -1, -1)) * 9
    assert hip.launch(hip.function(module, "keep"), 1, 64, args) == 0
    assert hip.words(out, 64) == [i + 396 for i in range(64)]
    assert hip.launch(hip.function(module, "constant"), 1, 32, args) == 0
    assert hip.words(out, 1) == [0x2A2B2C2D]
    hip.free(out)


@pytest.mark.parametrize("groups", [3, 300])
def test_spinning_workgroups_meet(hip: Hip, module: int, groups: int) -> None:
    out, counter = hip.malloc(4 * groups), hip.malloc(4)
    hip.ok("hipMemset", c_void_p(counter), 0, c_size_t(4))
    args = struct.pack("<QQI", out, counter, groups)
    assert hip.launch(hip.function(module, "meet"), groups, 32, args) == 0
    assert hip.words(out, groups) == [groups] * groups
    hip.free(out)
    hip.free(counter)


@pytest.mark.parametrize(
    ("kernel", "value", "error", "line"),
    [
        ("wild", "0x40", 700, r"SX0661: .* illegal address 0x40, lane 3 of wave 0, .*"),
        ("wild", "1 << 63", 700, r"SX0661: .* 0x8000000000000000, lane 3 of wave 0, .*"),
        ("wild", "out + 2", 716, r"SX0662: .*"),
        ("wild_lds", "512", 700, r"SX0664: .*"),
        ("wild_lds", "0xfffffff0", 700, r"SX0664: .*"),
        ("wild_scratch", "64", 700, r"SX0665: .*"),
        ("wild_scratch", "1 << 20", 700, r"SX0665: .*"),
        ("trap", "0", 719, r"SX0663: kernel trap: /\*0004\*/ \[bf900002 bfb00000\] trap 0x2, .*"),
    ],
)
def test_faults(
    script: Script,
    real: CompilingService,
    code_object: Path,
    kernel: str,
    value: str,
    error: int,
    line: str,
) -> None:
    done = script(
        f"m = hip.load(open({str(code_object)!r}, 'rb').read()); out = hip.malloc(64)\n"
        f"args = struct.pack('<QQ', out, {value})\n"
        f"print(hip.launch(hip.function(m, {kernel!r}), 1, 32, args), hip.hipDeviceSynchronize())\n"
    )
    assert done.stdout == f"0 {error}\n", done.stderr
    assert re.fullmatch(f"sassxlate: {line}\n", done.stderr), done.stderr


@pytest.mark.parametrize("at", [3, 255, 256 * 5 + 77, 256 * 23 + 40, 256 * 24 - 1])
def test_a_fault_in_a_run_of_waves(
    script: Script, real: CompilingService, code_object: Path, at: int
) -> None:
    """The waves before it, of the same call, are done; it names its own."""
    done = script(
        f"m = hip.load(open({str(code_object)!r}, 'rb').read()); out = hip.malloc(4 * 256 * 24)\n"
        f"args = struct.pack('<QQ', out, {at})\n"
        "print(hip.launch(hip.function(m, 'wild_at'), 24, 256, args),\n"
        "      hip.hipDeviceSynchronize())\n",
        SASSXLATE_THREADS="1",
    )
    assert done.stdout == "0 700\n", done.stderr
    where = f"lane {at % 32} of wave {at % 256 // 32}, workgroup ({at // 256},0,0)"
    assert where in done.stderr


def test_strict_images_run_and_see_each_allocation(
    script: Script, real: CompilingService, code_object: Path
) -> None:
    body = (
        f"m = hip.load(open({str(code_object)!r}, 'rb').read())\n"
        "out = hip.malloc(1024 + 4); other = hip.malloc(4096)\n"
        "run = lambda k, *a: hip.launch(hip.function(m, k), 1, 256, struct.pack('<QQ', *a))\n"
        "print(run('reverse', out, 0), hip.words(out, 256) == list(range(255, -1, -1)))\n"
        "print(run('wild', out, out + 1024), hip.hipDeviceSynchronize())\n"
        "print(run('wild', out, out + 1028), hip.hipDeviceSynchronize())\n"
    )
    done = script(body, SASSXLATE_STRICT="1", SASSXLATE_STRICT_SEED="7")
    assert done.stdout.splitlines() == ["0 True", "0 0", "0 700"], done.stderr
