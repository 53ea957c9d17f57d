"""`sassxlate run` stands in for the application: streams, signals, statuses, refusals to start."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from sassxlate.errors import ShimError
from sassxlate.lowering.emulate.options import host_isa
from sassxlate.runtime_shim import application, paths
from sassxlate.runtime_shim.cache.store import need

Value = TypeVar("Value")
Run = Callable[..., "subprocess.CompletedProcess[str]"]
SAXPY = Path(__file__).parents[3] / "fixtures" / "programs" / "saxpy"
COMMAND = [sys.executable, "-P", "-m", "sassxlate", "run"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment with a cache of the test's own."""
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    return {
        **os.environ,
        "SASSXLATE_CACHE_DIR": str(tmp_path / "cache"),
        "SASSXLATE_SERVICE_IDLE": "1",
    }


@pytest.fixture
def run(env: dict[str, str]) -> Run:
    """`sassxlate run OPTIONS -- COMMAND`."""

    def go(
        *command: object, options: tuple[str, ...] = (), stdin: str = "", **more: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *options, "--", *map(str, command)],
            input=stdin,
            env={**env, **more},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return go


def test_streams_and_status_pass_through(run: Run) -> None:
    """Input, both outputs, arguments with spaces and dashes, and the status are the program's."""
    done = run("sh", "-c", 'cat; echo "$0|$1" >&2; exit 41', "a b", "--help", stdin="in\n")
    assert (done.stdout, done.stderr, done.returncode) == ("in\n", "a b|--help\n", 41)


def test_without_the_separator(env: dict[str, str]) -> None:
    """Options after the program's name are the program's."""
    done = subprocess.run(
        [*COMMAND, "echo", "--strict"], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout == "--strict\n"


def test_environment(run: Run, tmp_path: Path) -> None:
    """Our libraries come first; what was there stays; the rest is untouched."""
    done = run("env", LD_LIBRARY_PATH="/x:/y", LD_PRELOAD="", MARK="1", options=("--strict",))
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert seen["LD_LIBRARY_PATH"].endswith(":/x:/y")
    assert Path(seen["LD_LIBRARY_PATH"].split(":")[0], "libcuda.so.1").is_file()
    assert seen["MARK"] == "1"
    assert seen["SASSXLATE_STRICT"] == "1"
    assert seen["SASSXLATE_CACHE_DIR"] == str(tmp_path / "cache")
    assert len(seen["SASSXLATE_CACHE_TAG"]) == 32


@pytest.mark.skipif(host_isa() != "avx512", reason="one instruction set here")
def test_the_instruction_set(run: Run, tmp_path: Path) -> None:
    """SASSXLATE_ISA=avx2: code of the baseline tier for AVX2, beside the other's in the cache."""
    for isa in ("avx2", "avx512"):
        done = run(SAXPY, options=("--device", "emulator"), SASSXLATE_ISA=isa)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("PASS\n")
    packs = [need(path) for path in (tmp_path / "cache").rglob("stencils.sxs")]
    assert sorted(struct.unpack_from("<4sII", pack)[2] for pack in packs) == [0, 1]


def test_a_run_inside_of_a_run(run: Run) -> None:
    """The inner one's options decide which libraries are replaced; nothing is there twice."""
    done = run(*COMMAND, "--replace", "none", "--", "env", LD_LIBRARY_PATH="/x:", LD_PRELOAD="")
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    ours, *others = seen["LD_LIBRARY_PATH"].split(":")
    assert others == ["/x", ""]
    assert Path(ours, "libcuda.so.1").is_file()
    assert seen["LD_PRELOAD"].count("sassxlate") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP])
def test_signals_reach_the_program(env: dict[str, str], number: signal.Signals) -> None:
    """A signal sent to `run` is the program's; its answer is the status."""
    script = f"trap 'echo got; exit 7' {number.name[3:]}; echo ready; while :; do sleep 0.02; done"
    with subprocess.Popen(
        [*COMMAND, "--", "sh", "-c", script], env=env, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.read() == "got\n"
        assert process.wait(60) == 7


def test_death_by_signal(run: Run) -> None:
    """128 plus the signal's number, as in a shell; one line."""
    done = run("sh", "-c", "kill -SEGV $$")
    assert done.returncode == 128 + signal.SIGSEGV
    assert done.stderr == "sassxlate: sh was killed by signal 11\n"


def test_pipe_signal_is_the_default(run: Run) -> None:
    """Python ignores SIGPIPE; the program must not inherit that."""
    done = run("sh", "-c", "(yes; echo $? >&2) | head -1")
    assert done.stdout == "y\n"
    assert "141" in done.stderr or "Broken pipe" not in done.stderr


def test_exits_promptly(run: Run) -> None:
    """The overhead of a start is small."""

    def took(start: Callable[[], object]) -> float:
        started = time.monotonic()
        start()
        return time.monotonic() - started

    assert run("true").returncode == 0
    python = [sys.executable, "-I", "-S", "-c", ""]  # as slow as the machine is now
    best, bare = 60.0, 60.0
    for _ in range(5):
        best = min(best, took(lambda: run("true")))
        bare = min(bare, took(lambda: subprocess.run(python, check=True)))
    assert best < 0.6 + 15 * bare


def elf(machine: int = 62, bits: int = 2, kind: int = 2, interp: bool = True) -> bytes:
    """An ELF header with one program header."""
    head = bytearray(64 + 56)
    head[:6] = b"\x7fELF" + bytes([bits, 1])
    head[16:20] = kind.to_bytes(2, "little") + machine.to_bytes(2, "little")
    head[32:40] = (64).to_bytes(8, "little")
    head[54:58] = (56).to_bytes(2, "little") + (1).to_bytes(2, "little")
    head[64:68] = (3 if interp else 1).to_bytes(4, "little")
    return bytes(head)


@pytest.mark.parametrize(
    ("content", "code", "status"),
    [
        (b"", "SX0702", 126),
        (b"hello\n", "SX0702", 126),
        (b"\x7fELF", "SX0703", 126),
        (elf(bits=1), "SX0703", 126),
        (elf(machine=183), "SX0703", 126),
        (elf(kind=1), "SX0702", 126),
        (elf()[:100], "SX0702", 126),
        (elf(interp=False), "SX0704", 126),
        (b"#!/no/such/interpreter\n", "SX0702", 126),
    ],
)
def test_what_cannot_run(run: Run, tmp_path: Path, content: bytes, code: str, status: int) -> None:
    """One typed line and env's status; nothing was started."""
    program = tmp_path / "program"
    program.write_bytes(content)
    program.chmod(0o755)
    done = run(program)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.count("\n") == 1
    assert code in done.stderr
    assert str(program) in done.stderr


def test_not_found_and_not_executable(run: Run, tmp_path: Path) -> None:
    """127 and 126."""
    for name in ("no-such-program-here", tmp_path / "absent", "/"):
        done = run(name)
        assert done.returncode == (126 if name == "/" else 127)
        assert done.stderr.count("\n") == 1
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    assert run(plain).returncode == 126


def test_missing_library(run: Run, tmp_path: Path, gxx: Callable[..., str]) -> None:
    """The dynamic linker's complaint gets a code, a name and env's status."""
    library, program = tmp_path / "libgone.so.7", tmp_path / "program"
    (tmp_path / "a.cpp").write_text("int gone() { return 0; }")
    (tmp_path / "b.cpp").write_text("int gone(); int main() { return gone(); }")
    gxx("-shared", "-fPIC", tmp_path / "a.cpp", "-o", library, f"-Wl,-soname,{library.name}")
    gxx(tmp_path / "b.cpp", library, "-o", program)
    library.unlink()
    done = run(program)
    assert done.returncode == 127
    assert f"SX0705: {program} needs libgone.so.7" in done.stderr


def test_unusable_cache(run: Run, tmp_path: Path) -> None:
    """A cache directory that takes no files: one warning, and the program runs."""
    (tmp_path / "file").write_text("")
    done = run("echo", "ran", SASSXLATE_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr.count("SX0907") == 1


def test_wrong_settings(run: Run) -> None:
    """Usage errors are reported before anything starts."""
    assert run("true", SASSXLATE_CACHE_SIZE="lots").returncode == 2
    assert run("true", options=("--seed", "3")).returncode == 2
    assert run("true", options=("--device", "cpu")).returncode == 2
    assert run("true", SASSXLATE_LIB="/nowhere").returncode == 2


def test_library_path_with_a_colon(run: Run, tmp_path: Path) -> None:
    """LD_LIBRARY_PATH cannot hold a colon: a link is used instead."""
    odd = tmp_path / "a:b c"
    odd.symlink_to(paths.library_dir(), target_is_directory=True)
    done = run("sh", "-c", 'ls "${LD_LIBRARY_PATH%%:*}"', SASSXLATE_LIB=str(odd))
    assert "libcuda.so.1" in done.stdout


def test_report_lines(tmp_path: Path) -> None:
    """Rows are distinguished; duplicates and invalid lines are skipped."""
    path = tmp_path / "report"
    late = "forgiven\tSX0679\tlate\nforgiven\tSX0679\tlate\n"
    row = "refused\tSX0426\t801\t_Z1kv\tSX0426: _Z1kv: no"
    path.write_text(f"{row}\n{row}\nrubbish\nrefused\tx\ty\tz\tw\nkernel\ta\tb\tname\n" + late)
    report = application.read_report(path)
    assert report.refusals == (application.Refusal("SX0426", 801, "_Z1kv", "SX0426: _Z1kv: no"),)
    assert report.kernels == (application.LoadedKernel("a", "b", "name"),)
    assert report.forgiven == ("SX0679: late",)
    assert application.read_report(tmp_path / "absent").refusals == ()


def test_cache_command(env: dict[str, str], tmp_path: Path) -> None:
    """`cache dir`, `stats` and `clean`."""

    def cache(*args: str) -> str:
        return subprocess.run(
            [sys.executable, "-P", "-m", "sassxlate", "cache", *args],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    file = tmp_path / "cache" / "host" / "tag" / "x.sxh"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"12345")
    assert cache("dir") == f"{tmp_path / 'cache'}\n"
    stats = json.loads(cache("stats", "--format", "json"))
    assert stats["areas"]["host"] == {"files": 1, "bytes": 5}
    assert cache("clean") == "5 bytes freed\n"
    assert not file.exists()


def test_application_ends_with_a_killed_runner(env: dict[str, str], tmp_path: Path) -> None:
    """SIGKILL cannot be forwarded, yet no application survives."""
    note = tmp_path / "pid"
    process = subprocess.Popen(
        [*COMMAND, "--", "/bin/sh", "-c", f"echo $$ > {note}; while :; do :; done"],
        env=env,
    )
    try:
        pid = _eventually(lambda: note.read_text().strip() if note.exists() else "")
    finally:
        process.kill()
        process.wait()
    _eventually(lambda: not Path(f"/proc/{pid}/exe").exists())


def _eventually(get: Callable[[], Value]) -> Value:
    """The first true result within ten seconds."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if value := get():
            return value
        time.sleep(0.02)
    raise AssertionError("nothing happened for ten seconds")


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def test_interrupts_ignored_at_start(env: dict[str, str], tmp_path: Path) -> None:
    """As a shell's `&` leaves it: the program inherits that, ends by itself, or by SIGTERM."""
    say = "kill -INT $$; echo alive"
    done = subprocess.run(
        [*COMMAND, "--", "/bin/sh", "-c", say], env=env, capture_output=True, text=True,
        timeout=120, preexec_fn=_ignore_interrupts, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "alive\n"), done
    ready = tmp_path / "ready"
    process = subprocess.Popen(
        [*COMMAND, "--", "/bin/sh", "-c", f": > {ready}; while :; do :; done"],
        env=env, preexec_fn=_ignore_interrupts,
    )  # fmt: skip
    try:
        assert _eventually(lambda: "there" if ready.exists() else "")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    finally:
        process.kill()


def test_the_tests_under_ignored_interrupts() -> None:
    """Those that wait for Ctrl-C would wait forever: pytest's start puts it back."""
    text = (
        "import signal, sys, types; sys.path.insert(0, 'tests'); import conftest; "
        "none = types.SimpleNamespace(option=None); "
        "conftest.pytest_configure(none); print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=Path(__file__).resolve().parents[3],
        preexec_fn=_ignore_interrupts, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout == "False\n", done
