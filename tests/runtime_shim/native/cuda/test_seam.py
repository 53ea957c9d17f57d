"""AMD's side of the seam without a card: every call that reaches HIP, its arguments, its code."""

from __future__ import annotations

import importlib.util
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate.disasm.containers import parse_cubin
from sassxlate.lowering.pipeline import translate_kernel

from .conftest import HERE, Run
from .driver_program import Built

Tool = Callable[..., str]


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory, gxx: Tool) -> Path:
    """The stand-in, compiled against AMD's header (of the triton wheel)."""
    spec = importlib.util.find_spec("triton")
    include = Path(spec.origin).parent / "backends/amd/include" if spec and spec.origin else None
    if include is None or not (include / "hip/hip_runtime_api.h").is_file():
        pytest.skip("AMD's HIP header is absent (pip install '.[test]')")
    library = tmp_path_factory.mktemp("hip") / "libamdhip64.so"
    source = HERE / "programs" / "recording_hip.cpp"
    gxx("-shared", "-fPIC", "-std=c++17", f"-I{include}", source, "-o", library)
    return library


def record(built: Built, run: Run, recorder: Path, check: str, tmp: Path, **env: str) -> list[str]:
    """The calls of one check of the driver program."""
    log = tmp / "record"
    done = run(
        # `env` last: `run` sets SASSXLATE_HIP itself.
        *("env", f"SASSXLATE_HIP={recorder}", built.program, check, built.images["sm_80"]),
        options=("--keep-status",),
        SX_RECORD=str(log),
        **env,
    )
    assert done.stdout.endswith("PASS\n"), done.stdout + done.stderr
    return log.read_text().splitlines()


@pytest.mark.parametrize("times", ["cold", "warm"])
def test_every_call(built: Built, run: Run, recorder: Path, tmp_path: Path, times: str) -> None:
    """Order, handles, streams, code objects and kernarg segments, to the byte."""
    del times
    cubin = parse_cubin(built.images["sm_80"].read_bytes())
    mixed, variables = (translate_kernel(cubin, name) for name in ("mixed", "variables"))
    size = mixed.launch.kernarg_size
    calls = record(built, run, recorder, "seam", tmp_path, SX_ARGUMENT=str(size))

    loads = [c.split() for c in calls if c.startswith("hipModuleLoadData")]
    assert [bytes.fromhex(c[2]) for c in loads] == [mixed.code_object, variables.code_object]
    functions = [c.split() for c in calls if c.startswith("hipModuleGetFunction")]
    assert [(c[2], c[3]) for c in functions] == [(loads[0][1], "mixed"), (loads[1][1], "variables")]

    params = struct.pack("<b7xdhb5xQ", ord("q"), 2.25, -7, ord("z"), 0x1122334455667788)
    launches = [c.split() for c in calls if "Launch" in c]
    shapes = [
        ("2 3 4 5 6 7 0 0", (5, 6, 7), (2, 3, 4), 0),
        ("8 1 1 32 1 1 128 s", (32, 1, 1), (8, 1, 1), 128),
        ("8 1 1 32 1 1 128 2", (32, 1, 1), (8, 1, 1), 128),
        ("8 1 1 32 1 1 64 s", (32, 1, 1), (8, 1, 1), 64),
    ]
    for call, (text, block, grid, dynamic) in zip(launches, shapes, strict=False):
        assert call[1] == functions[0][1]
        assert " ".join(call[2:10]) == text
        expected = mixed.launch.kernarg(params, block, grid, dynamic_shared=dynamic)
        _same(bytes.fromhex(call[10]), expected, mixed.launch.fills)
    assert [c[0] for c in launches].count("hipModuleLaunchCooperativeKernel") == 1
    assert launches[4][1] == functions[1][1]
    assert " ".join(launches[4][2:10]) == "1 1 1 64 1 1 0 0"
    segment = bytes.fromhex(launches[4][10])
    banks = [f for f in variables.launch.fills if f.kind in ("bank3", "bank4")]
    assert {f.kind for f in banks} == {"bank3", "bank4"}
    assert all(int.from_bytes(segment[f.offset : f.offset + 8], "little") for f in banks)

    names = [c.split()[0] for c in calls]
    assert names[:2] == ["hipInit", "hipGetDeviceCount"]
    assert names.count("hipModuleUnload") == 2
    for call in ("hipMemsetAsync 7 64 s", "hipMemcpyAsync 64 2 s", "hipEventCreateWithFlags 2"):
        assert call in calls
    for call in ("hipStreamCreateWithFlags 1", "hipEventRecord s", "hipStreamWaitEvent 0 0"):
        assert call in calls


def _same(segment: bytes, expected: bytes, fills: tuple[object, ...]) -> None:
    """Equal but for the grid's number, which counts up."""
    ours, theirs = bytearray(segment), bytearray(expected)
    for fill in fills:
        offset = getattr(fill, "offset", 0)
        if getattr(fill, "kind", "") == "gridid":
            ours[offset : offset + 8] = theirs[offset : offset + 8] = bytes(8)
    assert ours == theirs


def test_device_that_takes_no_code(built: Built, run: Run, recorder: Path, tmp_path: Path) -> None:
    """A card that is no gfx1100: 209 at the first use."""
    record(built, run, recorder, "refused", tmp_path, SX_REFUSE="1")
