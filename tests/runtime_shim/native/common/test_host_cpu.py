"""Which host code a processor runs: by CPUID, compared with what the kernel and LLVM say."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate import options

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[3] / "runtime_shim" / "native"
V3 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "popcnt"}
V4 = {*V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

# Bits by the names of /proc/cpuinfo: word, bit (Intel's SDM, volume 2, CPUID).
BITS = {
    "fma": (0, 12), "movbe": (0, 22), "popcnt": (0, 23), "osxsave": (0, 27), "avx": (0, 28),
    "f16c": (0, 29), "bmi1": (1, 3), "avx2": (1, 5), "bmi2": (1, 8), "avx512f": (1, 16),
    "avx512dq": (1, 17), "avx512cd": (1, 28), "avx512bw": (1, 30), "avx512vl": (1, 31),
    "abm": (2, 5),
}  # fmt: skip
XCR0 = {"sse": 1, "ymm": 2, "opmask": 5, "zmm_hi256": 6, "hi16_zmm": 7}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++ here")
    built = tmp_path_factory.mktemp("cpu") / "cpu"
    command = [compiler, "-std=c++17", "-O1", f"-I{NATIVE / 'common'}", str(HERE / "cpu.cpp")]
    subprocess.run([*command, "-o", str(built)], check=True, timeout=120)
    return built


def _runs(program: Path, *words: int) -> tuple[bool, bool]:
    command = [str(program), *(f"{w:x}" for w in words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    avx2, avx512 = done.stdout.splitlines()[0].split()
    return avx2 == "1", avx512 == "1"


def _words(without: str = "") -> tuple[int, ...]:
    """A processor with everything but the one feature or register state."""
    words = [0, 0, 0]
    for name, (word, bit) in BITS.items():
        if name != without:
            words[word] |= 1 << bit
    return *words, sum(1 << bit for name, bit in XCR0.items() if name != without)


def test_this_processor(program: Path) -> None:
    """The kernel clears the flags of registers that it does not save."""
    cpu = Path("/proc/cpuinfo").read_text().split("\nflags", 1)[1]
    flags = set(cpu.split("\n", 1)[0].split())
    assert _runs(program) == (flags >= V3, flags >= V4)


def test_the_compiler_makes_no_code_that_the_libraries_refuse(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    avx2, avx512 = _runs(program)
    monkeypatch.delenv("SASSXLATE_ISA", raising=False)
    try:
        isa = options.host_isa.__wrapped__()
    except EmulatorError:
        isa = None
    assert isa == ("avx512" if avx512 else "avx2" if avx2 else None)
    # LLVM reads CPUID, not the kernel's list.
    features = llvm.get_host_cpu_features()
    names = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt")
    wide = ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd")
    assert avx2 == all(features.get(name) for name in names)
    assert avx512 == all(features.get(name) for name in (*names, *wide))


def _isa(monkeypatch: pytest.MonkeyPatch, flags: set[str], asked: str = "") -> str:
    monkeypatch.setattr(options, "_flags", lambda: frozenset(flags))
    monkeypatch.setenv("SASSXLATE_ISA", asked)
    try:
        return options.host_isa.__wrapped__()
    except EmulatorError as error:
        return error.code


def test_the_instruction_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best that all features are there for, or the one that is asked for."""
    assert _isa(monkeypatch, V4) == "avx512"
    assert _isa(monkeypatch, V3) == "avx2"
    for feature in V3:
        assert _isa(monkeypatch, V4 - {feature}) == "SX0624"
    for feature in V4 - V3:
        assert _isa(monkeypatch, V4 - {feature}) == "avx2"
    assert _isa(monkeypatch, V4, "avx2") == "avx2"
    assert _isa(monkeypatch, V4, "avx512") == "avx512"
    assert _isa(monkeypatch, V3, "avx512") == "SX0624"
    assert _isa(monkeypatch, V4, "sse2") == "SX0624"
    assert _isa(monkeypatch, set()) == "SX0624"


def test_all_features(program: Path) -> None:
    assert _runs(program, *_words()) == (True, True)
    assert _runs(program, 0, 0, 0, 0) == (False, False)


@pytest.mark.parametrize("missing", [*BITS, *XCR0])
def test_one_feature_missing(program: Path, missing: str) -> None:
    only_512 = missing.startswith("avx512") or missing in ("opmask", "zmm_hi256", "hi16_zmm")
    assert _runs(program, *_words(missing)) == (only_512, False)
