"""What a process says of its waits: once a kernel, then at most every 30 s, on a terminal one line
that is rewritten."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sassxlate.runtime_shim.service.status import short_name

ROOT = Path(__file__).resolve().parents[4]
NATIVE = ROOT / "runtime_shim" / "native"
SOURCES = tuple(f"common/{n}.cpp" for n in ("waiting", "log", "json"))
LINE = re.compile(r"sassxlate: translating (\S+), (\d+) s of waiting so far\n")
NAMES = {
    "_Z5saxpyifPKfPf": "saxpy",
    "plain_c": "plain_c",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_":
        "at::native::vectorized_elementwise_kernel",
    "_ZN12_GLOBAL__N_16kernelEPf": "{anonymous}::kernel",
    "_ZN1aclEi": "a::operator",
    "_ZlsR1ai": "operator",
    "_Z1fIiET_S0_": "f",
    "_Z" + "x" * 20: "_Z" + "x" * 20,
    "n" * 100: "n" * 57 + "...",
}  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """waits.cpp, compiled."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++ here")
    made = tmp_path_factory.mktemp("waiting") / "waits"
    command = [compiler, "-std=c++17", "-O1", "-D_GNU_SOURCE", "-pthread", "-Wall", "-Wextra"]
    command += [f"-I{NATIVE}", f"-I{NATIVE / 'common'}"]
    command += [str(Path(__file__).with_name("waits.cpp")), *(str(NATIVE / s) for s in SOURCES)]
    done = subprocess.run([*command, "-o", made], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert not done.stderr, done.stderr.decode()
    return made


def _lines(program: Path, *waits: str, progress: str = "1") -> list[tuple[str, int]]:
    done = subprocess.run(
        [str(program), *waits], env={**os.environ, "SASSXLATE_PROGRESS": progress},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr.endswith("sassxlate: done\n")
    assert len(LINE.findall(done.stderr)) == done.stderr.count("\n") - 1
    return [(name, int(seconds)) for name, seconds in LINE.findall(done.stderr)]


def test_once_then_every_half_minute(program: Path) -> None:
    """A kernel of 110 seconds: a line at 2 s or a little after, and two or three more."""
    lines = _lines(program, "_Z4slowPf", "110")
    assert {name for name, _ in lines} == {"slow"}
    assert 2 <= len(lines) <= 4
    first, *later = [seconds for _, seconds in lines]
    assert 2 <= first <= 20
    gaps = [b - a for a, b in zip([first, *later], later, strict=False)]
    assert min(gaps) >= 29


def test_each_long_kernel_once(program: Path) -> None:
    """Three long ones have a line each; the same kernel again has none."""
    lines = _lines(program, "a", "12", "b", "12", "a", "12", "c", "12")
    names = [name for name, _ in lines]
    assert names.count("b") == names.count("c") == 1
    assert names.count("a") <= 2
    assert names[:2] == ["a", "b"]
    seconds = [number for _, number in lines]
    assert seconds == sorted(seconds)  # of the process, not of the kernel


def test_many_short_ones(program: Path) -> None:
    """Forty kernels of one second each: a line every half minute, not one each."""
    waits = [word for number in range(40) for word in (f"k{number}", "1")]
    assert len(_lines(program, *waits)) <= 3


def test_nothing_is_said(program: Path) -> None:
    """Of short waits, without a terminal, and where it is not wanted."""
    assert _lines(program, "a", "0.5", "b", "0.5") == []
    assert _lines(program, "a", "12", progress="") == []
    assert _lines(program, "a", "12", progress="0") == []


def test_on_a_terminal(program: Path) -> None:
    """One line, rewritten, as wide as the terminal at most, and gone at the end."""
    main, other = pty.openpty()
    name = "k" * 200
    environment = {k: v for k, v in os.environ.items() if k != "SASSXLATE_PROGRESS"}
    with subprocess.Popen([program, name, "20"], stderr=other, env=environment) as process:
        os.close(other)
        said = b""
        while True:
            try:
                data = os.read(main, 4096)
            except OSError:  # it has ended
                break
            if not data:
                break
            said += data
        assert process.wait() == 0
    os.close(main)
    text = said.decode().replace("\r\n", "\n")
    assert text.endswith("\r\x1b[Ksassxlate: done\n")
    shown = [part for part in re.split(r"\r\x1b\[K", text) if "translating" in part]
    assert len(shown) >= 2
    assert "\n" not in "".join(shown)
    assert all(len(part) < 80 for part in shown)
    assert all(re.search(r"k\.\.\., \d+ s of waiting so far$", part) for part in shown)


def test_short_names(program: Path) -> None:
    """The libraries and `service status` shorten names alike."""
    done = subprocess.run(
        [program, "names", *NAMES], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert done.stdout.splitlines() == list(NAMES.values())
    assert [short_name(name) for name in NAMES] == list(NAMES.values())
