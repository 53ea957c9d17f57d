"""The applications' way to a card, on the stand-in: calls, code objects, launches, results."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sassxlate.lowering.codeobject.code_object import read
from sassxlate.runtime_shim import hip_probe
from tests.runtime_shim.native.cuda.driver_program import SharedBuild, Tool, driver_program
from tests.runtime_shim.native.seam import comgr

from .code_objects import assembled_again, check_code, check_launch
from .conftest import ROOT, Outcome, Standin

PROGRAMS = ROOT / "fixtures/programs"


def check(outcome: Outcome) -> None:
    """No violation; every code object and every launch is one that a card would take."""
    assert outcome.violations == []
    assert outcome.calls[0]["call"] == "hipInit"
    codes = {
        (call["pid"], call["code"]): check_code((outcome.folder / call["file"]).read_bytes())
        for call in outcome.calls
        if call["call"] == "hipModuleLoadData" and call["file"]
    }
    launches = [call for call in outcome.calls if "Launch" in call["call"] and "kernel" in call]
    for launch in launches:
        check_launch(launch, codes[launch["pid"], launch["code"]])


@pytest.mark.parametrize("program", ["saxpy", "reduction", "collatz"])
def test_program(program: str, on_standin: Standin) -> None:
    """A static CUDA runtime's program passes; the host never touches device memory by itself."""
    outcome = on_standin("run", "--device", "hip", "--", PROGRAMS / program)
    assert outcome.status == 0, outcome.output + outcome.errors
    assert outcome.output.endswith("PASS\n")
    assert outcome.of("hipModuleLaunchKernel")
    check(outcome)


def test_code_is_llvms_too(on_standin: Standin) -> None:
    """LLVM's assembler makes the same bytes of the text; readelf reads the metadata."""
    outcome = on_standin("run", "--device", "hip", "--", PROGRAMS / "reduction")
    loads = outcome.of("hipModuleLoadData")
    assert loads
    for load in loads:
        file = outcome.folder / load["file"]
        code = check_code(file.read_bytes())
        (kernel,) = code.kernels
        pair = assembled_again(code, kernel)
        if pair is None:
            pytest.skip("no clang (pip install '.[test]')")
        assert pair[0] == pair[1]
        readelf = shutil.which("llvm-readelf")
        if readelf:
            done = subprocess.run([readelf, "-n", file], capture_output=True, text=True, check=True)
            assert f".symbol:         {kernel.symbol}" in done.stdout
            assert "NT_AMDGPU_METADATA" in done.stdout


def test_amds_reader_takes_it(on_standin: Standin) -> None:
    """The library with which AMD's HIP reads the metadata."""
    library = comgr.library()
    if library is None:
        pytest.skip("no libamd_comgr")
    outcome = on_standin("run", "--device", "hip", "--", PROGRAMS / "reduction")
    for load in outcome.of("hipModuleLoadData"):
        data = (outcome.folder / load["file"]).read_bytes()
        (kernel,) = check_code(data).kernels
        metadata = comgr.Metadata(library, data)
        assert metadata.kernel(".name") == kernel.name
        assert metadata.kernel(".kernarg_segment_size") == str(kernel.descriptor.kernarg_size)


@pytest.fixture(scope="session")
def driver(shared_build: SharedBuild, nvcc: Tool, libraries: Path) -> tuple[Path, Path]:
    """The driver tests' program, and its kernels."""
    made = driver_program(shared_build, nvcc, libraries)
    return made.program, made.images["sm_80"]


# Not here: "fault" and "reset", which rely on the emulated device's errors and memory.
CHECKS = (
    *("launch", "library", "mixed", "variables", "shared", "limits", "extended", "memory"),
    *("streams", "contexts", "threads", "forked", "ending"),
)


@pytest.mark.parametrize("name", CHECKS)
def test_driver_calls(name: str, driver: tuple[Path, Path], on_standin: Standin) -> None:
    """Groups of driver calls, as the driver's own tests make them."""
    options = ("--device", "hip", "--keep-status")
    outcome = on_standin("run", *options, "--", driver[0], name, driver[1])
    assert outcome.output.endswith("PASS\n"), f"{outcome.errors}\n{outcome.violations}"
    check(outcome)


def test_no_card(on_standin: Standin) -> None:
    """AMD's library without a GPU: `hip` is refused by its code, nothing is started."""
    outcome = on_standin("run", "--device", "hip", "--", PROGRAMS / "saxpy", SX_STANDIN_DEVICES="0")
    assert outcome.status == 2
    assert "SX0707" in outcome.errors
    assert "finds no GPU (error 101)" in outcome.errors
    assert outcome.output == ""


def test_no_library(on_standin: Standin) -> None:
    outcome = on_standin("run", "--device", "hip", "--", PROGRAMS / "saxpy", LD_LIBRARY_PATH="")
    if "not found" not in outcome.errors:
        pytest.skip("this machine has AMD's library")
    assert outcome.status == 2
    assert "SX0707" in outcome.errors


def test_card_of_another_kind(on_standin: Standin) -> None:
    """A GPU that takes no gfx1100 code."""
    outcome = on_standin("run", "--device", "hip", "--", PROGRAMS / "saxpy", SX_STANDIN_REFUSE="0")
    assert outcome.status == 2
    assert "the GPU takes no gfx1100 code (error 209)" in outcome.errors


def test_one_card_of_two(on_standin: Standin) -> None:
    """A processor's own graphics first, the card second: the application sees the card alone."""
    outcome = on_standin(
        *("run", "--device", "hip", "--", "env"), SX_STANDIN_REFUSE="0", SX_STANDIN_DEVICES="2"
    )
    assert "HIP_VISIBLE_DEVICES=1\n" in outcome.output
    told = f"SASSXLATE_DEVICES={24 << 30} "
    (line,) = (line for line in outcome.output.splitlines() if line.startswith(told))
    assert re.fullmatch(r"\S+ 0000:[0-9a-f]{2}:00\.0 (75){16} \S.*", line), line
    outcome = on_standin(
        *("run", "--device", "hip", "--", "env"),
        SX_STANDIN_REFUSE="02",
        SX_STANDIN_DEVICES="3",
        HIP_VISIBLE_DEVICES="5,3,4",
    )
    assert "HIP_VISIBLE_DEVICES=3\n" in outcome.output


def test_noise(on_standin: Standin) -> None:
    """A driver's other output is not an answer."""
    outcome = on_standin(
        *("run", "--device", "hip", "--", "env"), SX_STANDIN_NOISE="1", SX_STANDIN_DEVICES="0"
    )
    assert "finds no GPU" in outcome.errors
    outcome = on_standin("run", "--device", "hip", "--", "env", SX_STANDIN_NOISE="1")
    assert "SASSXLATE_HIP=libamdhip64.so.6\n" in outcome.output


@pytest.mark.parametrize(
    ("kfd", "found", "expected"),
    [(True, "lib.so", "lib.so"), (True, None, None), (False, "lib.so", None)],
)
def test_auto(
    monkeypatch: pytest.MonkeyPatch, kfd: bool, found: str | None, expected: str | None
) -> None:
    """The card where the kernel's driver is and HIP takes our code, otherwise the emulated
    device."""
    exists = os.path.exists

    def pretended(path: str) -> bool:
        return kfd if path == "/dev/kfd" else exists(path)

    monkeypatch.setattr("os.path.exists", pretended)
    answer = hip_probe.Found(found, "" if found else "none")

    def find(_: str) -> hip_probe.Found:
        return answer

    monkeypatch.setattr(hip_probe, "find_hip", find)
    chosen = hip_probe.chosen("auto", "gfx1100")
    assert (chosen.path if chosen else None) == expected
    assert hip_probe.chosen("emulator", "gfx1100") is None


@pytest.mark.parametrize(
    ("called", "target"),
    [
        ("gfx1103", "gfx1103"),
        ("gfx1201:sramecc-:xnack-", "gfx1201"),
        ("gfx906:xnack-", None),
        ("", None),
    ],
)
def test_the_cards_own_name(
    called: str, target: str | None, standin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the properties call the processor, without features; none for which no code is made."""
    monkeypatch.setattr(hip_probe, "candidates", lambda: [str(standin)])
    monkeypatch.setenv("SX_STANDIN_ARCH", called)
    assert hip_probe.own_target("hip") == target
    assert hip_probe.own_target("emulator") is None
    monkeypatch.setattr(hip_probe, "candidates", lambda: ["libabsent.so"])
    assert hip_probe.own_target("hip") is None


def test_run_is_for_the_card_that_is_there(on_standin: Standin) -> None:
    """Without --target; the stand-in takes its own processor's code alone."""
    asked = ("run", "--device", "hip", "--", PROGRAMS / "saxpy")
    outcome = on_standin(*asked, SX_STANDIN_ARCH="gfx1103")
    assert outcome.output.endswith("PASS\n"), outcome.errors
    files = [outcome.folder / c["file"] for c in outcome.of("hipModuleLoadData") if c["file"]]
    assert files
    assert {read(f.read_bytes()).target.name for f in files} == {"gfx1103"}
    named = on_standin(*asked, SX_STANDIN_ARCH="gfx1103", SASSXLATE_TARGET="gfx1102")
    assert "SX0707: no AMD GPU that runs gfx1102 code" in named.errors


def test_standin_sees_host_access(standin: Path, libraries: Path) -> None:
    """Whoever reads device memory from the host dies of it."""
    code = (
        "import ctypes, sys\n"
        "hip = ctypes.CDLL(sys.argv[1])\n"
        "p = ctypes.c_void_p()\n"
        "assert hip.hipMalloc(ctypes.byref(p), ctypes.c_size_t(100)) == 0\n"
        "ctypes.string_at(p, 1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, standin],
        env={**os.environ, "SX_STANDIN_DEVICE": str(libraries / "libamdhip64.so")},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -11, done.stderr


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90])
def test_all_programs(
    arch: int, on_standin: Standin, nvcc: Tool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The sixteen programs, built here."""
    assert nvcc
    folder = tmp_path_factory.mktemp("programs")
    command = [sys.executable, "-m", "tools.generate.programs", "-o", folder, "--arch", str(arch)]
    subprocess.run(command, check=True, cwd=ROOT)
    programs = sorted(path for path in folder.iterdir() if os.access(path, os.X_OK))
    assert len(programs) == 16
    for program in programs:
        outcome = on_standin("run", "--device", "hip", "--", program)
        assert outcome.output.endswith("PASS\n"), f"{program}: {outcome.output}{outcome.errors}"
        check(outcome)


@pytest.mark.parametrize(
    ("found", "blas", "state", "detail"),
    [
        (
            hip_probe.Found("lib.so", "", "1"),
            "libhipblas.so.3",
            "ok",
            "lib.so takes gfx1100 code; GPUs 1 of it; cublas by libhipblas.so.3",
        ),
        (
            hip_probe.Found("lib.so", ""),
            None,
            "ok",
            "lib.so takes gfx1100 code; no hipBLAS, so cublas is not replaced there",
        ),
        (hip_probe.Found(None, "HIP does not answer"), None, "optional", "HIP does not answer"),
    ],
)
def test_doctor(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    found: hip_probe.Found,
    blas: str | None,
    state: str,
    detail: str,
) -> None:
    """The output of doctor if the kernel driver is present."""
    from sassxlate.cli import doctor

    kfd = tmp_path / "kfd"
    kfd.touch()
    monkeypatch.setattr(doctor, "_KFD", str(kfd))

    def find(_: str) -> hip_probe.Found:
        return found

    def find_blas(_: str) -> str | None:
        return blas

    monkeypatch.setattr(doctor, "find_hip", find)
    monkeypatch.setattr(doctor.hip_blas, "find", find_blas)
    check = doctor._hip("gfx1100")  # pyright: ignore[reportPrivateUsage]
    assert (check.state, check.detail) == (state, detail)
    assert check.state == "ok" or check.fix
