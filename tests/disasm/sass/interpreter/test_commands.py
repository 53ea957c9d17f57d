"""`sassxlate interpret`, `sassxlate verify launches`, and what the latter concludes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sassxlate.cli import main
from sassxlate.cli.interpret import command
from sassxlate.disasm.sass.interpreter import Launch, run
from sassxlate.lowering.trace.compare_memory import Different, Same, Unknown, compare
from sassxlate.runtime_shim import paths
from tests.disasm.sass.interpreter import launches

ROOT = Path(__file__).resolve().parents[4]
PROGRAMS = ROOT / "fixtures" / "programs"
KERNELS = ROOT / "fixtures" / "kernels" / "sm_90"


def _interpret(*options: str) -> str:
    fixed = ["-k", "carry_chains", "--grid", "2", "--block", "64"]
    fixed += ["--arg", "buf:4k:random", "--arg", "buf:4k:count", "--arg", "buf:8k"]
    fixed += ["--arg", "i32:100", *options]
    done = CliRunner().invoke(command, [str(KERNELS / "carry_chains.cubin"), *fixed])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def test_dump_and_trace(tmp_path: Path) -> None:
    file = tmp_path / "out"
    text = _interpret("--dump", "2:16", "--out", f"2:{file}", "--trace", "1:3")
    lines = text.splitlines()
    assert any("SR_CTAID.X    " in line and line.endswith(" = 0x0") for line in lines)
    assert lines[-1].startswith("carry_chains (sm_90): executed ")
    dumped = " ".join(line.partition(": ")[2] for line in lines if line.startswith("0000"))
    words = np.fromfile(file, "<u4")
    assert dumped.split() == [f"{w:08x}" for w in words[:16].tolist()]


def test_stop_and_json() -> None:
    assert "lane 0 of warp 0, 128 lanes here" in _interpret("--stop-at", "0x30")
    first, second = (json.loads(_interpret("--format", "json", "--seed", seed)) for seed in "01")
    assert first["executed"]
    assert set(first["buffers"]) == {"0", "1", "2"}
    assert first["buffers"]["2"] != second["buffers"]["2"]


@pytest.mark.parametrize(
    "options",
    [["--arg", "u32:1"], ["--arg", "what:1"], ["--stop-at", "x"], ["--trace", "a"]],
)
def test_wrong_call(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    if options[0] != "--arg":
        buffers = [x for _ in range(3) for x in ("--arg", "buf:64")]
        options = [*options, *buffers, "--arg", "i32:0"]
    with pytest.raises(SystemExit) as ended:
        main(["interpret", str(KERNELS / "carry_chains.cubin"), "-k", "carry_chains", *options])
    assert ended.value.code == 2
    assert "SX0826" in capsys.readouterr().err


# --- what is concluded ---------------------------------------------------------------------------

_BASE = 0x7000_0000_0000
_EACH = """
S2R R0, SR_TID.X ;
S2R R1, SR_CTAID.X ;
ULDC.64 UR4, c[0x0][0x210] ;
MOV R2, UR4 ;
MOV R3, UR5 ;
"""


def _launch(text: str) -> Launch:
    bank = bytearray(0x400)
    bank[0x210:0x218] = _BASE.to_bytes(8, "little")
    data = np.zeros(1024, np.uint8)
    code = launches.assembled(_EACH + text, 90)
    return Launch("k", 90, code, (2, 1, 1), (64, 1, 1), {0: bytes(bank)}, [(_BASE, data)])


STORES = """
IMAD.WIDE R2, R0, 0x4, R2 ;
MOV R4, 0x7fffffff ;
STG.E desc[UR6][R2.64], R4 ;
EXIT ;
"""
TICKETS = """
MOV R4, 0x1 ;
ATOMG.E.ADD.STRONG.GPU PT, R5, desc[UR6][R2.64], R4 ;
IADD3 R0, R1, 0x10, RZ ;
IMAD.WIDE R2, R0, 0x4, R2 ;
STG.E desc[UR6][R2.64], R5 ;
EXIT ;
"""


def test_differences_name_the_instruction() -> None:
    launch = _launch(STORES)
    after = run(launch).device.data(0).copy()
    assert compare(launch, {_BASE: after}, frozenset(), 0) == Same()
    after.view(np.uint32)[5] = 0xFFC00001  # another NaN
    found = compare(launch, {_BASE: after}, frozenset(), 0)
    assert found == Different(1, _BASE + 20, 0x7FFFFFFF, 0xFFC00001, 0x70, (1, 0, 5))
    after.view(np.uint32)[5] = 0x7FFFFFFF
    after.view(np.uint32)[9] = 3
    found = compare(launch, {_BASE: after}, frozenset(), 0)
    assert found == Different(1, _BASE + 36, 0x7FFFFFFF, 3, 0x70, (1, 0, 9))
    after.view(np.uint32)[9] = 0x7FFFFFFF
    after.view(np.uint32)[200] = 1  # which no instruction writes
    assert compare(launch, {_BASE: after}, frozenset(), 0) == Different(1, _BASE + 800, 0, 1, None)


def test_the_nan_of_doubles() -> None:
    launch = _launch(STORES.replace("0x7fffffff", "0xfff80000"))
    after = run(launch).device.data(0).copy()
    after.view(np.uint32)[5] = 0x7FF80001
    assert compare(launch, {_BASE: after}, frozenset(), 0) == Same(("NaN payload",))
    assert compare(launch, {_BASE: after}, frozenset((0x70,)), 0) == Same(("MUFU", "NaN payload"))


def test_what_the_order_decides_is_unknown() -> None:
    launch = _launch(TICKETS)
    after = run(launch).device.data(0).copy()
    assert compare(launch, {_BASE: after}, frozenset(), 0) == Same()
    after.view(np.uint32)[16] ^= 1  # the order of arrival
    found = compare(launch, {_BASE: after}, frozenset(), 0)
    assert isinstance(found, Unknown), found
    assert "order" in found.reason
    after.view(np.uint32)[0] = 1  # how many came
    assert isinstance(compare(launch, {_BASE: after}, frozenset(), 0), Different)


def test_the_limit_is_unknown() -> None:
    assert isinstance(compare(_launch(STORES), {}, frozenset(), 3), Unknown)


# --- programs ------------------------------------------------------------------------------------


def _verify(*arguments: str, capability: str = "9.0") -> str:
    if not (paths.library_dir() / "libcuda.so.1").is_file():
        pytest.skip("the native libraries are not built (pip install .)")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", "verify", "launches", "-v", *arguments],
        capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "SASSXLATE_CC": capability},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_program() -> None:
    lines = _verify(str(PROGRAMS / "reduction")).splitlines()
    assert [line.rsplit(": ", 1)[1] for line in lines] == ["same", "same", "2 same"]


def test_launch_by_hand() -> None:
    buffers = [x for _ in range(3) for x in ("--arg", "buf:8k:random")]
    cubin = str(KERNELS / "conversions.cubin")
    shape = ["-k", "conversions", "--grid", "2", "--block", "64", *buffers, "--arg", "i32:100"]
    assert "all: 1 same" in _verify(*shape, cubin)


@pytest.mark.sweep
@pytest.mark.parametrize("capability", ["8.0", "9.0"])
@pytest.mark.parametrize("name", ["collatz", "reduction", "saxpy"])
def test_kept_programs(name: str, capability: str) -> None:
    assert "unknown" not in _verify(str(PROGRAMS / name), capability=capability)
