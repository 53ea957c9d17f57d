"""Behaviour of applications and their environment besides launching kernels, under `sassxlate
run`."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from sassxlate.disasm.containers import load
from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.ptx.tools import Found

HERE = Path(__file__).resolve().parent
SAXPY = HERE.parents[2] / "fixtures" / "programs" / "saxpy"
TIME_LIMIT_S = 120.0  # ten seconds, on a machine that does nothing else
TYPED = re.compile(r"SX0\d{3}: \S")
Done = subprocess.CompletedProcess


@dataclass(frozen=True, slots=True)
class Place:
    """A cache, and how to run programs with it."""

    cache: Path

    def command(self, *command: object, options: tuple[str, ...] = ()) -> list[str]:
        """`sassxlate run OPTIONS -- COMMAND`."""
        start = [sys.executable, "-P", "-m", "sassxlate", "run", *options, "--"]
        return [*start, *map(str, command)]

    def environment(self, **more: str | None) -> dict[str, str]:
        """The tests' own with this cache; None takes a variable away."""
        base: dict[str, str | None] = {
            **os.environ,
            "SASSXLATE_CACHE_DIR": str(self.cache),
            "SASSXLATE_SERVICE_IDLE": "10",
            "PYTHONDONTWRITEBYTECODE": "1",
            **more,
        }
        return {name: value for name, value in base.items() if value is not None}

    def run(
        self,
        *command: object,
        options: tuple[str, ...] = (),
        before: Callable[[], object] | None = None,
        changes: Mapping[str, str | None] | None = None,
        **environment: str | None,
    ) -> Done[str]:
        """Run to the end; fails the test where that takes too long, or shows a traceback."""
        done = subprocess.run(
            self.command(*command, options=options),
            env=self.environment(**{**(changes or {}), **environment}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIME_LIMIT_S,
            preexec_fn=before,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Skips where the libraries are not built."""
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    return Place(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module", params=["static", pytest.param("shared", marks=pytest.mark.sweep)])
def hostile(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    nvcc: Callable[..., str],
) -> Path:
    """programs/hostile.cu with either runtime, and opened.cu as a library beside it."""
    folder = tmp_path_factory.mktemp("hostile")
    common = ("-std=c++17", "-arch=sm_80", "-cudart", request.param)
    programs = HERE / "programs"
    nvcc(*common, programs / "hostile.cu", "-o", folder / "hostile")
    nvcc(
        *(*common, "-shared", "-Xcompiler", "-fPIC"),
        *(programs / "opened.cu", "-o", folder / "libopened.so"),
    )
    return folder / "hostile"


@pytest.mark.parametrize(
    ("what", "status", "output"),
    [
        ("plain", 0, "work 0\n"),
        ("fork_before", 0, "parent 0 child 0\n"),
        ("fork_after", 0, "parent 0 child 3 again 0\n"),
        ("threads", 0, "threads 0\n"),
        ("exit", 5, "running\n"),
        ("_exit", 6, "running\n"),
        ("return", 7, "running\n"),
        ("thread_exit", 8, "running\n"),
        ("abort", 128 + signal.SIGABRT, "running\n"),
        ("segv", 128 + signal.SIGSEGV, ""),
        ("at_exit", 3, "at exit 0\n"),
        ("main_ends", 4, "late 0\n"),
        ("close_all", 0, "closed 0 0\n"),
        ("clearenv", 0, "cleared 0\n"),
    ],
)
@pytest.mark.parametrize("hostile", ["static", "shared"], indirect=True)
def test_what_applications_do(
    place: Place, hostile: Path, what: str, status: int, output: str
) -> None:
    """Processes, threads, ends in the middle of kernels, descriptors and environment."""
    done = place.run(hostile, what)
    assert (done.returncode, done.stdout) == (status, output), done.stderr
    if status <= 128:
        assert done.stderr == ""
    else:
        assert done.stderr == f"sassxlate: hostile was killed by signal {status - 128}\n"


def test_other_programs_and_libraries(place: Place, hostile: Path) -> None:
    """exec of another program, a child by the shell, a library with kernels opened thrice, also
    where few addresses are free."""
    assert place.run(hostile, "exec", hostile, "plain").stdout == "first 0\nwork 0\n"
    assert place.run(hostile, "system", hostile).stdout == "work 0\nown 0 system 0\n"
    for how in ("dlopen", "crowded"):
        done = place.run(hostile, how, hostile.parent / "libopened.so")
        assert done.stdout == "opened 0 own 0\n" * 3, done.stderr


@pytest.mark.parametrize("loop", ["spin", "reckon", "meet"])
def test_kernel_time_limit(place: Place, hostile: Path, loop: str) -> None:
    """Loops that wait for memory, that only reckon, and with barriers: 702, which stays."""
    place.run(hostile, "plain")
    done = place.run(hostile, loop, options=("--kernel-time-limit", "0.5"))
    assert done.stdout == "running\nended 702 then 702\n", done.stderr
    assert done.returncode == 0
    assert re.match(r"sassxlate: SX0668: kernel _Z\S+: /\*[0-9a-f]{4}\*/ ", done.stderr)
    assert place.run(hostile, "plain", options=("--kernel-time-limit", "60")).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("loop", ["spin", "reckon"])
def test_signals_end_endless_kernels(
    place: Place, hostile: Path, loop: str, number: signal.Signals
) -> None:
    """Ctrl-C works in the middle of a kernel."""
    with subprocess.Popen(
        place.command(hostile, loop),
        env=place.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        time.sleep(0.3)
        process.send_signal(number)
        assert process.wait(60) == 128 + number


FACTS = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
got = [ctypes.c_int() for _ in range(2)]
for number, value in zip((75, 76), got):
    assert cuda.cuDeviceGetAttribute(ctypes.byref(value), number, 0) == 0
print(*(value.value for value in got))
"""


@pytest.mark.parametrize(
    ("options", "asked", "told"),
    [
        (("--arch", "sm_86"), None, "8 6"),
        (("--arch", "12.0"), "9.0", "12 0"),
        ((), "75", "7 5"),
        ((), None, "8 0"),
    ],
)
def test_the_capability_is_the_users(
    place: Place, options: tuple[str, ...], asked: str | None, told: str
) -> None:
    done = place.run(sys.executable, "-c", FACTS, options=options, SASSXLATE_CC=asked)
    assert (done.returncode, done.stdout) == (0, f"{told}\n"), done.stderr


@pytest.mark.parametrize("arch", ["sm_91", "volta", "sm_70", "8.0.1", ""])
def test_a_capability_that_is_none(place: Place, arch: str) -> None:
    done = place.run(sys.executable, "-c", FACTS, options=(f"--arch={arch}",))
    assert done.returncode == 2, done.stderr
    assert f"SX0719: --arch {arch}: not one of sm_75, sm_80" in done.stderr


def test_refused_kernel(place: Place, hostile: Path) -> None:
    """801 at its launch, not when it is asked about; the others run; the exit status shows it."""
    program = hostile.with_name("with_refused")
    data = hostile.read_bytes()
    for _, cubin in load(hostile).cubins():
        for kernel in cubin.kernels:
            if "refused" in kernel.name:
                damaged = b"\xff" * 16 + kernel.code[16:]
                assert data.count(kernel.code) == 1
                data = data.replace(kernel.code, damaged)
    program.write_bytes(data)
    program.chmod(0o755)
    for options, status in (((), 3), (("--keep-status",), 0), ((), 3)):
        done = place.run(program, "refused", options=options)
        assert done.stdout == "refused 0 0 801 others 0\n", done.stderr
        assert done.returncode == status
        lines = done.stderr.splitlines()
        named = [line for line in lines if "_Z7refusedPi" in line]
        assert len(named) == 3, lines  # at once, in the summary, and in the last line
        assert all(re.search(r"SX02\d\d: .*/\*0000\*/", line) for line in named[:2])
        assert any("1 refusal in this run" in line for line in lines)
        last = (
            r"sassxlate: DO NOT TRUST the output of with_refused: kernel _Z7refusedPi was not run"
        )
        assert re.fullmatch(last + r" \(SX02\d\d\)", lines[-1])
    # A child's launches count, whatever the program makes of them.
    done = place.run("sh", "-c", '"$0" refused >/dev/null 2>&1; echo fine', program)
    assert (done.returncode, done.stdout) == (3, "fine\n")
    told = "DO NOT TRUST the output of (dash|sh|bash): kernel _Z7refusedPi was not run"
    assert re.search(told, done.stderr.splitlines()[-1]), done.stderr
    # Loading did not fail because of the contents: a program that never uses it notices nothing.
    done = place.run(program, "plain")
    assert (done.returncode, done.stdout, done.stderr) == (0, "work 0\n", "")


@pytest.mark.parametrize("arch", ["75", "90"])
def test_ptx_only(place: Place, tmp_path: Path, nvcc: Callable[..., str], arch: str) -> None:
    """Compiled by ptxas, for a device that is new enough; without one the runtime's own error for
    that, 221, and one line."""
    program = tmp_path / "ptx_only"
    code = f"-gencode=arch=compute_{arch},code=compute_{arch}"
    nvcc("-std=c++17", code, HERE / "programs" / "hostile.cu", "-o", program)
    done = place.run(program, "plain", SASSXLATE_PTXAS="/nonexistent/ptxas")
    assert (done.returncode, done.stdout) == (3, "work 221\n")
    assert f"SX0747: {program.name}+0x" in done.stderr
    if next(iter(Found("ptxas", os.environ)), None) is None:
        pytest.skip("ptxas is not installed (pip install '.[test]')")
    done = place.run(program, "plain")
    assert (done.returncode, done.stdout, done.stderr) == (0, "work 0\n", "")


# -- what surrounds an application; fixtures/programs/saxpy is enough for it


def passes(done: Done[str]) -> None:
    """The program printed PASS."""
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert done.stdout.endswith("PASS\n")


@pytest.mark.parametrize(
    "changes",
    [
        {"HOME": None, "XDG_CACHE_HOME": None},
        {"HOME": "relative", "XDG_CACHE_HOME": None},
        {"XDG_RUNTIME_DIR": None},
        {"XDG_RUNTIME_DIR": "/nonexistent/dir"},
        {"XDG_RUNTIME_DIR": "relative"},
        {"TMPDIR": "/nonexistent"},
        {"LD_PRELOAD": "libm.so.6"},
        {"PYTHONHOME": None, "PYTHONSTARTUP": "/nonexistent", "PATH": "/nonexistent"},
    ],
)
def test_environments(place: Place, changes: dict[str, str | None]) -> None:
    """Variables that are missing or nonsense."""
    passes(place.run(SAXPY, changes=changes))


@pytest.mark.parametrize("cache", ["/proc/none", "/sys/none", "file/below"])
def test_cache_that_takes_nothing(place: Place, tmp_path: Path, cache: str) -> None:
    """One warning; another directory is used."""
    (tmp_path / "file").write_text("")
    done = place.run(SAXPY, SASSXLATE_CACHE_DIR=str(tmp_path / cache))
    passes(done)
    assert done.stderr.count("SX0907") == 1


def test_long_paths(place: Place, tmp_path: Path) -> None:
    """A runtime directory too long for a socket is passed over; a longer socket is an error."""
    long = tmp_path / ("x" * 150)
    long.mkdir(mode=0o700)
    passes(place.run(SAXPY, XDG_RUNTIME_DIR=str(long), SASSXLATE_CACHE_DIR=str(tmp_path / "cold")))
    done = place.run(SAXPY, SASSXLATE_SOCKET=str(long / "s"))
    assert done.returncode == 2
    assert done.stderr.startswith("sassxlate: SX0901: ")


def test_deleted_working_directory(place: Place, tmp_path: Path) -> None:
    """The application runs in the working directory of `run`, even if that is deleted."""
    gone = tmp_path / "gone"
    gone.mkdir()

    def leave() -> None:
        os.chdir(gone)
        gone.rmdir()

    passes(place.run(SAXPY, before=leave))


def test_closed_streams(place: Place) -> None:
    """A closed stream stays closed for the application, and its number is not taken by a file."""
    for numbers in ((0,), (1,), (2,), (0, 1, 2)):

        def close(numbers: tuple[int, ...] = numbers) -> None:
            for number in numbers:
                os.close(number)

        done = place.run(SAXPY, before=close)
        assert done.returncode == 0, f"{numbers}: {done}"
    done = place.run("sh", "-c", "echo text", before=lambda: os.close(1))
    assert done.returncode != 0  # as without us


def test_full_disk(place: Place, tmp_path: Path) -> None:
    """No file may grow: each limit ends in PASS or in a typed refusal, never by a signal."""
    for limit in (0, 100, 4096, 16384):

        def short(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        done = place.run(SAXPY, before=short, SASSXLATE_CACHE_DIR=str(tmp_path / str(limit)))
        if done.returncode:
            assert done.returncode in (1, 3), f"{limit}: {done}"
            assert TYPED.search(done.stderr)
        else:
            passes(done)
        left = [p for p in (tmp_path / str(limit)).rglob("*") if p.name.startswith(".tmp-")]
        assert not left


@pytest.mark.parametrize(
    ("what", "limit"),
    [(resource.RLIMIT_NOFILE, 16), (resource.RLIMIT_AS, 3 << 30), (resource.RLIMIT_CORE, 0)],
)
def test_limits(place: Place, what: int, limit: int) -> None:
    """Few descriptors, little address space."""
    done = place.run(SAXPY, before=lambda: resource.setrlimit(what, (limit, limit)))
    assert done.returncode in (0, 1, 3), done
    assert done.returncode == 0 or TYPED.search(done.stderr)


def test_privileged_program(place: Place, tmp_path: Path) -> None:
    """set-user-ID: the linker would drop our libraries, so it is refused."""
    program = tmp_path / "privileged"
    program.write_bytes(SAXPY.read_bytes())
    try:
        os.chown(program, os.getuid() + 1000, -1)
    except PermissionError:
        pytest.skip("only root gives files away")
    program.chmod(0o4755)
    if os.statvfs(program).f_flag & os.ST_NOSUID:
        pytest.skip("the temporary directory ignores set-user-ID")
    done = place.run(program)
    assert done.returncode == 126
    assert done.stderr.startswith("sassxlate: SX0730: ")


@pytest.mark.sweep
@pytest.mark.parametrize("count", [12, 100])
def test_many_at_once(count: int, tmp_path: Path) -> None:
    """Cold starts share a service: all pass, say the same, and complain of nothing.  Of six,
    test_robust.py says so."""
    place = Place(tmp_path)

    def one(_number: int) -> Done[str]:
        return place.run(SAXPY)

    with ThreadPoolExecutor(count) as pool:
        runs = list(pool.map(one, range(count)))
    for done in runs:
        passes(done)
        assert (done.stdout, done.stderr) == (runs[0].stdout, "")


_WITH_A_THREAD = """
import os, threading, time
from pathlib import Path
from sassxlate.runtime_shim.application import start_and_wait
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
for _ in range(4):
    print(start_and_wait(Path("/bin/sh"), ["sh", "-c", "exit 7"], os.environ), flush=True)
os._exit(0)
"""


def test_end_is_seen_beside_a_thread() -> None:
    """SIGCHLD may go to a thread that does not wait for it; the end is still seen."""
    done = subprocess.run(
        [sys.executable, "-c", _WITH_A_THREAD],
        capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["7"] * 4, done.stderr
